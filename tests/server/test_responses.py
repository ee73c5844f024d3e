"""`/v1/responses`: the same turn in OpenAI's newer form, and everything that it refuses."""

import asyncio
import json
import time
from typing import Any

import pytest

from lastword.server.auth import Tokens
from lastword.server.conversations import Conversations
from lastword.store import MemoryStore
from lastword.testing.scripted import Fault, Pause
from requirements import requirement

ASK = '{"tool_request": {"name": "weather", "arguments": {"city": "Lisbon"}}}'
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
TOOLS = [{"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": True}]
CHAT_TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}, "strict": True}}]
PATH = "/v1/responses"


def ask(server: Any, input: Any, token: str | None = None, **fields: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else None
    return server.send("POST", PATH, {"input": input, **fields}, headers)


def output(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def kinds(answer: Any) -> list[str]:
    return [event["type"] for event in answer.chunks]


def shown(model: Any) -> list[Any]:
    """What the model was shown last."""
    return [(message["role"], message["content"]) for message in model.requests[-1]["messages"]]


@requirement("API-67")
def test_the_model_is_asked_in_the_form_that_every_server_knows(house):
    """What both forms know is translated; nothing of the newer one reaches the model's server."""
    model = house.model(["Hello."])
    server = house.server(model, model="scripted")
    schema = {"type": "object"}
    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    answer = ask(
        server,
        [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        instructions="Be brief.",
        tools=TOOLS,
        tool_choice={"type": "function", "name": "weather"},
        max_output_tokens=50,
        temperature=0.5,
        text={"format": form, "verbosity": "low"},
        reasoning={"effort": "low"},
        metadata={"for": "us"},
        include=["reasoning.encrypted_content"],
        truncation="auto",
    )
    assert answer.status == 200, answer.body
    assert model.requests == [
        {
            "model": "scripted",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "tools": CHAT_TOOLS,
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
            "max_tokens": 50,
            "temperature": 0.5,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            },
            "verbosity": "low",
            "reasoning_effort": "low",
        }
    ]
    assert answer.json["metadata"] == {"for": "us"}
    assert answer.json["instructions"] == "Be brief."


@requirement("API-67")
def test_pictures_and_files_of_the_user_reach_the_model(house):
    """Their parts have other names in chat requests."""
    model = house.model(["I see."])
    parts = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
    ]
    assert ask(house.server(model), [{"role": "user", "content": parts}]).status == 200
    assert model.requests[0]["messages"][0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
    ]


@requirement("API-67")
def test_a_stream_has_the_official_events_in_the_official_order(house):
    """Clients are state machines over these names; each event says where it belongs and which one it is."""
    answer = ask(house.server(["Hello there."]), "Hi", stream=True)
    assert kinds(answer) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    events = answer.chunks
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["delta"] for event in events if "delta" in event] == ["Hello ", "there."]
    names = [line[7:] for line in answer.body.decode().split("\n") if line.startswith("event: ")]
    assert names == kinds(answer)
    response = events[-1]["response"]
    assert response["usage"]["total_tokens"] == 10
    assert response["output"] == [events[-2]["item"]]
    assert events[0]["response"]["id"] == response["id"]
    assert events[0]["response"]["status"] == "in_progress"


@requirement("API-67")
@pytest.mark.parametrize("native", [True, False])
def test_what_the_model_asks_for_comes_out_as_function_calls(house, native):
    """Natively or in our own protocol, whole or streamed: a client finds one kind of item."""
    reply = {"content": "Looking.", "tool_calls": [CALL]} if native else ASK
    server = house.server(lambda _: reply)
    fields: dict[str, Any] = {"tools": TOOLS} if native else {}
    whole = ask(server, "Hi", **fields).json
    events = ask(server, "Hi", stream=True, **fields).chunks
    for response in (whole, events[-1]["response"]):
        *words, call = response["output"]
        assert [item["content"][0]["text"] for item in words] == (["Looking."] if native else [])
        assert (call["type"], call["name"], call["status"]) == ("function_call", "weather", "completed")
        assert json.loads(call["arguments"]) == {"city": "Lisbon"}
        assert call["call_id"] == response["tool_request"]["id"]
    pieces = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    (done,) = [e for e in events if e["type"] == "response.function_call_arguments.done"]
    assert "".join(pieces) == done["arguments"] == events[-1]["response"]["output"][-1]["arguments"]
    texts = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert texts == (["Looking."] if native else []), "nobody watches JSON being typed"


@requirement("API-67")
def test_a_function_call_is_closed_after_the_turn_was_remembered(house):
    """A client runs what it was asked for when its item is closed; by then its result must find the request."""
    store = MemoryStore()
    server = house.server([{"tool_calls": [CALL]}], store=store)

    async def full(*_: Any) -> bool:
        raise OSError("disk full")

    store.commit = full  # type: ignore[method-assign]
    answer = ask(server, "Hi", stream=True, tools=TOOLS)
    assert "response.function_call_arguments.delta" in kinds(answer)
    assert "response.output_item.done" not in kinds(answer)
    assert kinds(answer)[-1] == "error"


@requirement("API-67")
@pytest.mark.parametrize(("reason", "told"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_breaks_off_says_so(house, reason, told):
    """Half an answer must not look like a whole one."""
    message = {"role": "assistant", "content": "Once upon"}
    choice = {"index": 0, "message": message, "delta": message, "finish_reason": reason}
    server = house.server(lambda _: Fault("garbage", body=json.dumps({"choices": [choice]}).encode()))
    events = ask(server, "Hi", stream=True).chunks
    assert events[-1]["type"] == "response.incomplete"
    for response in (ask(server, "Hi").json, events[-1]["response"]):
        assert response["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": told}
        assert response["output"][0]["status"] == "incomplete"
        assert response["usage"] is None, "nobody counted"


@requirement("API-67")
@pytest.mark.parametrize("stream", [False, True])
def test_previous_response_id_is_the_conversation(house, stream):
    """The server owns the history: only what is new is sent, and instructions are not part of it."""
    model = house.model(["One.", "Two.", "Three."])
    server = house.server(model)
    first = ask(server, "A", instructions="Rhyme.").json
    answer = ask(server, "B", previous_response_id=first["id"], stream=stream)
    second = answer.chunks[-1]["response"] if stream else answer.json
    assert shown(model) == [("user", "A"), ("assistant", "One."), ("user", "B")]
    assert second["conversation_id"] == first["conversation_id"]
    assert second["previous_response_id"] == first["id"]
    # The same conversation, in the other form.
    server.chat("C", conversation_id=first["conversation_id"])
    assert shown(model)[-3:] == [("user", "B"), ("assistant", "Two."), ("user", "C")]


@requirement("API-67")
def test_a_conversation_of_the_other_form_goes_on_by_its_id(house):
    """`conversation` is our `conversation_id`, as a text or as an object."""
    model = house.model(lambda _: "Yes.")
    server = house.server(model)
    server.chat("A", conversation_id="kitchen")
    ask(server, "B", conversation="kitchen")
    response = ask(server, "C", conversation={"id": "kitchen"}).json
    assert [words for role, words in shown(model) if role == "user"] == ["A", "B", "C"]
    assert response["conversation"] == {"id": "kitchen"}
    assert response["id"] == "resp_3_kitchen"


@requirement("API-67")
def test_a_conversation_goes_on_from_its_newest_response_alone(house):
    """It is a line, not a tree. Two answers to one response would each believe that they are the history."""
    model = house.model(lambda _: "Yes.")
    server = house.server(model)
    first = ask(server, "A").json["id"]
    ask(server, "B", previous_response_id=first)
    late = ask(server, "C", previous_response_id=first)
    assert (late.status, late.code, late.json["error"]["param"]) == (
        409,
        "conversation_went_on",
        "previous_response_id",
    )
    # Both names at once could name two.
    both = ask(server, "C", previous_response_id=first, conversation="kitchen")
    assert (both.status, both.json["error"]["param"]) == (400, "conversation")
    assert len(model.requests) == 2


@requirement("API-67", "API-51")
def test_nobody_goes_on_with_or_reads_what_is_anothers(house):
    """An id says where its thing is. Whose it is, the store knows; that it exists is not for others to know."""
    store = MemoryStore()
    tokens = {name: asyncio.run(Tokens(store).create(name, ["chat"]))[1] for name in ("ann", "bob")}
    model = house.model(lambda _: "Secret.")
    server = house.server(model, store=store)
    mine = ask(server, "A", tokens["ann"]).json
    item = mine["output"][0]["id"]
    refused = [
        ask(server, "B", tokens["bob"], previous_response_id=mine["id"]),
        ask(server, "B", tokens["bob"], conversation=mine["conversation_id"]),
        ask(server, [{"type": "item_reference", "id": item}, {"role": "user", "content": "B"}], tokens["bob"]),
        server.send("GET", f"{PATH}/{mine['id']}", headers={"Authorization": f"Bearer {tokens['bob']}"}),
    ]
    assert [answer.status for answer in refused] == [404] * 4
    assert len(model.requests) == 1
    assert (
        server.send("GET", f"{PATH}/{mine['id']}", headers={"Authorization": f"Bearer {tokens['ann']}"}).status == 200
    )


@requirement("API-67")
def test_with_store_false_nothing_is_kept(house):
    """The client keeps its history itself, and its ids lead nowhere."""
    store = MemoryStore()
    server = house.server(lambda _: "Hello.", store=store)
    response = ask(server, "Remember me", store=False).json
    assert response["store"] is False
    assert response["conversation"] is None
    assert not any(b"Remember me" in (record.data or b"") for record in asyncio.run(store.read()))
    late = ask(server, "B", previous_response_id=response["id"])
    assert (late.status, late.code) == (404, "previous_response_not_found")
    assert server.send("GET", f"{PATH}/{response['id']}").status == 404
    kept = ask(server, "A").json["id"]
    both = ask(server, "B", previous_response_id=kept, store=False)
    assert (both.status, both.code) == (409, "conversation_is_stored")


@requirement("API-67")
def test_a_deleted_conversation_takes_its_responses_with_it(house):
    """Forgetting is not only for one of the two forms."""
    server = house.server(lambda _: "Hello.")
    response = ask(server, "A").json
    assert server.send("DELETE", f"/v1/conversations/{response['conversation_id']}").status == 200
    assert server.send("GET", f"{PATH}/{response['id']}").status == 404
    assert ask(server, "B", previous_response_id=response["id"]).status == 404


@requirement("API-67")
@pytest.mark.parametrize("number", [2, 3, 4])
def test_an_answer_that_was_gone_back_over_is_found_no_more(house, number):
    """Going back is a turn itself, the third here, and has no answer. Whoever names one hears that there is none."""
    model = house.model(lambda _: "Hello.")
    server = house.server(model)
    first = ask(server, "A").json
    ask(server, "B", previous_response_id=first["id"])
    id = first["conversation_id"]
    assert server.send("POST", f"/v1/conversations/{id}/rewind", {"turns": 1}).status == 200
    named = f"resp_{number}_{id}"
    late = ask(server, "C", previous_response_id=named)
    assert (late.status, late.code) == (404, "previous_response_not_found")
    assert server.send("GET", f"{PATH}/{named}").status == 404
    item = {"type": "item_reference", "id": named.replace("resp", "msg")}
    assert ask(server, [item, {"role": "user", "content": "C"}]).code == "item_not_found"
    assert server.send("GET", f"{PATH}/{first['id']}").status == 200
    assert len(model.requests) == 2


@requirement("API-67", "API-22")
def test_a_result_is_honoured_while_its_request_is_pending_and_once(house):
    """A result that nobody asked for is a mistake or a forgery, in this form too."""
    model = house.model([{"tool_calls": [CALL]}, "Clear.", "Bye."])
    server = house.server(model)
    asked = ask(server, "Weather?", tools=TOOLS).json["id"]
    forged = ask(server, [output("c9", "Snow")], previous_response_id=asked, tools=TOOLS)
    assert (forged.status, forged.code) == (409, "nothing_new")
    answered = ask(server, [output("c1", "18°C")], previous_response_id=asked, tools=TOOLS).json
    assert shown(model)[-1] == ("tool", "18°C")
    again = ask(server, [output("c1", "Snow"), {"role": "user", "content": "Bye"}], previous_response_id=answered["id"])
    assert again.json["ignored_tool_results"] == [{"reason": "nothing_pending", "name": None, "id": "c1"}]
    assert "Snow" not in json.dumps(model.requests[-1])


@requirement("API-67")
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("native", [True, False])
def test_a_client_that_sends_its_whole_history_is_understood(house, native, store):
    """Many send back every item they got and never name a response. The model sees one history, in its own protocol."""
    model = house.model([{"content": "Looking.", "tool_calls": [CALL]} if native else ASK, "Clear.", "Bye."])
    server = house.server(model)
    fields: dict[str, Any] = {"store": store, **({"tools": TOOLS} if native else {})}
    history: list[Any] = [{"role": "user", "content": "Weather?"}]
    first = ask(server, history, **fields).json
    history += [*first["output"], output(first["output"][-1]["call_id"], "18°C")]
    second = ask(server, history, **fields).json
    assert second["ignored_tool_results"] == []
    if native:
        assert model.requests[1]["messages"] == [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "18°C"},
        ]
    else:
        (_, asked, (role, result)) = shown(model)
        assert json.loads(asked[1]) == json.loads(ASK)
        assert role == "user"
        assert "18°C" in result
    if store:
        ask(server, "Thanks", previous_response_id=second["id"], **fields)
        assert model.requests[2]["messages"][: len(model.requests[1]["messages"])] == model.requests[1]["messages"]
        assert shown(model)[-2:] == [("assistant", "Clear."), ("user", "Thanks")]


@requirement("API-67", "API-22")
@pytest.mark.parametrize("store", [True, False])
def test_a_history_with_a_result_that_nothing_in_it_asked_for_is_refused(house, store):
    """Whoever brings a history brings their own words; a result still needs a request before it."""
    model = house.model(["Hello."])
    server = house.server(model)
    alone = ask(server, [output("c1", "Snow")], store=store, tools=TOOLS)
    assert (alone.status, alone.code) == (409, "nothing_new")
    history = [
        {"role": "user", "content": "Hi"},
        output("c1", "Snow"),
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "And?"},
    ]
    answer = ask(server, history, store=store, tools=TOOLS).json
    assert [entry["id"] for entry in answer["ignored_tool_results"]] == ["c1"]
    assert "Snow" not in json.dumps(model.requests)


@requirement("API-67")
def test_items_may_be_named_instead_of_sent(house):
    """Some clients keep ids alone. An id of what was not kept, or of nothing, is refused before the model is asked."""
    model = house.model([{"content": "Looking.", "tool_calls": [CALL]}, "Clear."])
    server = house.server(model)
    first = ask(server, "Weather?", tools=TOOLS).json
    named = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    user = {"role": "user", "content": "Weather?"}
    assert ask(server, [user, *named, output("c1", "18°C")], tools=TOOLS).status == 200
    assert model.requests[1]["messages"][1] == {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]}
    for id in ("msg_9_nowhere", "fc_1_7." + first["conversation_id"], "msg_x", "", "fc_1_0", first["id"]):
        refused = ask(server, [{"type": "item_reference", "id": id}, user])
        assert (refused.status, refused.code) == (404, "item_not_found"), id
    assert len(model.requests) == 2


@requirement("API-67")
def test_a_response_can_be_read_again(house):
    """The words and requests of every turn, also of one that was answered since; not what is only like a request."""
    model = house.model([ASK, "Clear.", ASK])
    server = house.server(model)
    first = ask(server, "Weather?").json
    read = [server.send("GET", f"{PATH}/{first['id']}").json["output"]]
    second = ask(server, [output(first["output"][0]["call_id"], "18°C")], previous_response_id=first["id"]).json
    read.append(server.send("GET", f"{PATH}/{first['id']}").json["output"])
    assert read == [first["output"], first["output"]]
    assert server.send("GET", f"{PATH}/{second['id']}").json["output"] == second["output"]
    # For a model with native calls the same words are words.
    third = ask(server, "Quote it", previous_response_id=second["id"], tools=TOOLS).json
    assert third["output"][0]["content"][0]["text"] == ASK
    assert server.send("GET", f"{PATH}/{third['id']}").json["output"] == third["output"]
    for id in ("resp_4_" + first["conversation_id"], "resp_0_x", "resp_1", first["output"][0]["id"]):
        assert server.send("GET", f"{PATH}/{id}").status == 404


@requirement("API-67", "API-54")
def test_a_secret_argument_goes_out_with_the_answer_and_is_not_kept(house):
    """The new form must not be a way around what the old one keeps."""
    reply = '{"tool_request": {"name": "unlock", "arguments": {"pin": "4711"}}}'
    server = house.server([reply])
    response = ask(server, "Open", secret_arguments={"unlock": ["pin"]}).json
    assert json.loads(response["output"][0]["arguments"]) == {"pin": "4711"}
    assert "4711" not in server.send("GET", f"{PATH}/{response['id']}").body.decode()


@requirement("API-67")
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"colour": "red"}, "colour"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "weather"}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "name": "x"}}, "tool_choice"),
        ({"reasoning": {"summary": "auto"}}, "reasoning"),
        ({"include": ["file_search_call.results"]}, "include"),
        ({"text": {"format": {"type": "grammar"}}}, "text"),
        ({"truncation": "maybe"}, "truncation"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"previous_response_id": "resp_1_../x"}, "previous_response_id"),
        ({"conversation": "../x"}, "conversation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": ["Hi"]}, "input"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "", "arguments": ""}]}, "input"),
    ],
    ids=str,
)
def test_what_is_not_understood_is_refused_by_name(plain, fields, param):
    """This form is translated, so a parameter that we do not know would be dropped in silence."""
    answer = plain.send("POST", PATH, {"input": "Hi", **fields})
    assert answer.status == 400
    error = answer.json["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert error["message"]


@requirement("API-67")
@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000, b'{"input": "\\ud800"}'])
def test_a_body_that_is_no_request_is_refused(plain, body):
    """As in the older form."""
    answer = plain.send("POST", PATH, body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"


@requirement("API-67", "API-53")
def test_the_limits_of_a_request_hold_in_this_form(house):
    """A second door with no limits would be the one to use."""
    server = house.server(["Hello."], limits={"messages": 3, "prompt_characters": 10})
    many = ask(server, [{"role": "user", "content": "x"}] * 4)
    assert (many.status, many.code, many.json["error"]["param"]) == (413, "too_many_messages", "input")
    assert ask(server, "Hi", instructions="x" * 11).code == "prompt_too_long"


@requirement("API-67")
def test_a_stream_that_breaks_ends_with_an_error_and_nothing_is_kept(house):
    """In both forms that clients look for: fields of the event, and an object in it."""
    model = house.model([Fault("die", after=["One ", "two"]), "Fresh."])
    server = house.server(model)
    answer = ask(server, "Count", stream=True, conversation="c")
    last = answer.chunks[-1]
    assert last["type"] == "error"
    assert last["sequence_number"] == len(answer.chunks) - 1
    assert last["code"] == last["error"]["code"] == "upstream_died"
    assert last["message"] == last["error"]["message"]
    assert "response.output_item.done" not in kinds(answer)
    ask(server, "Again", conversation="c")
    assert shown(model) == [("user", "Again")]


@requirement("API-20", "API-67")
def test_a_client_that_leaves_in_the_middle_of_a_stream_ends_the_models_work_and_nothing_is_kept(house):
    """Nobody pays for an answer that nobody reads; half of one in the history would be believed."""
    gate = Pause()
    store = MemoryStore()
    model = house.model([["One", " two", gate, " three"], "Fresh."])
    server = house.server(model, store=store)
    with server.client() as client:
        answer = client.responses.create(model="m", input="Count", stream=True, conversation="c")
        events = iter(answer)
        while next(events).type != "response.output_text.delta":
            pass
        assert gate.reached.wait(60)
        answer.close()
        assert model.cancelled.wait(60), "the request to the model was broken off"
        again = client.responses.create(model="m", input="Again", conversation="c")
    assert again.output_text == "Fresh."
    assert shown(model) == [("user", "Again")]
    kept = [record.data for record in asyncio.run(store.read(kind="conversation.message"))]
    assert len(kept) == 2, "the second question and its answer"


@requirement("API-67", "API-69")
def test_retention_does_not_wait_for_requests_that_were_answered_elsewhere(house, monkeypatch):
    """A client that repeats its history leaves a pending request behind with every result. None of them would end."""
    store = MemoryStore()
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 40 * 86_400 * 10**9)
    server = house.server(lambda _: ASK, store=store)
    ask(server, "Weather?")
    ask(server, "Weather?", conversation="kitchen")
    monkeypatch.setattr(time, "time_ns", lambda: now)
    ended = asyncio.run(Conversations(store).end_unused(now / 1e9 - 30 * 86_400, keep_pending=True))
    assert ended.conversations == 1
    assert [entry["id"] for entry in server.send("GET", "/v1/conversations").json["data"]] == ["kitchen"]


@requirement("API-67", "API-27")
def test_the_document_says_how_large_a_number_may_be_and_a_whole_one_may_have_a_point(house):
    """A number beyond 64 bits is read as no integer, and for JSON Schema 50.0 is one, unlike 50.5: whoever keeps to the
    document must not be refused for it."""
    model = house.model(lambda _: "Hello.")
    server = house.server(model, model="scripted")
    fields = server.send("GET", "/openapi.json").json["components"]["schemas"]["ResponsesRequest"]["properties"]
    [number] = [form for form in fields["max_output_tokens"]["anyOf"] if form["type"] == "integer"]
    for most, status in ((number["maximum"], 200), (50.0, 200), (10**30, 400), (50.5, 400)):
        assert ask(server, "Hi", max_output_tokens=most).status == status
    assert str(model.requests[-1]["max_tokens"]) == "50"
