"""Chat completions through the official client: plain, streaming, tools, errors."""

import openai
import pytest

from lastword.testing.scripted import Fault, Pause
from requirements import requirement


@requirement("API-20")
def test_the_official_client_gets_an_answer(house):
    """The promise is OpenAI's own client, unchanged."""
    model = house.model(["It is 18 degrees."])
    client = house.server(model, model="scripted").client()
    answer = client.chat.completions.create(
        model="lastword", messages=[{"role": "user", "content": "Weather?"}], temperature=0.5
    )
    assert answer.choices[0].message.content == "It is 18 degrees."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 10
    assert answer.tool_request is None
    assert answer.tool_requests == []
    assert answer.conversation_id is None
    assert model.requests == [
        {"model": "scripted", "messages": [{"role": "user", "content": "Weather?"}], "temperature": 0.5}
    ]


@requirement("API-20")
def test_the_official_client_gets_a_stream(house):
    """Pieces as they come, then the reason it ended, then what it cost."""
    client = house.server(["one two three"]).client()
    stream = client.chat.completions.create(
        model="lastword",
        messages=[{"role": "user", "content": "Count"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [piece for piece in text if piece] == ["one ", "two ", "three"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 10
    assert chunks[-1].choices == []
    assert chunks[-1].tool_requests == []
    assert len({chunk.id for chunk in chunks}) == 1


ASK = '{"tool_request": {"name": "lookup_weather", "arguments": {"city": "Lisbon"}}}'


def ask(name="lookup_weather", arguments='{"city": "Lisbon"}', id="call_1"):
    """A native tool call."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [{"type": "function", "function": {"name": "lookup_weather", "parameters": {"type": "object"}}}]


@requirement("API-10", "API-20")
def test_a_tool_request_is_exposed_and_the_message_kept(house):
    """The satellite reads the request from its own field; the message stays what the model said."""
    answer = house.server([ASK]).chat("Weather?").json
    request = answer["tool_request"]
    assert (request["name"], request["arguments"]) == ("lookup_weather", {"city": "Lisbon"})
    assert request["id"].startswith("call_")
    assert answer["tool_requests"] == [request]
    assert answer["tool_request_error"] is None
    assert answer["choices"][0]["message"]["content"] == ASK


@requirement("API-11", "API-20")
@pytest.mark.parametrize("stream", [False, True])
def test_a_near_miss_is_exposed_with_a_code_and_words(house, stream):
    """A satellite can tell the model what was wrong, without guessing itself; also where the text was shown already."""
    answer = house.server([["Sure!\n", ASK]]).chat("Weather?", stream=stream, stream_options={"include_usage": True})
    for said in answer.chunks[-2:] if stream else [answer.json]:
        assert said["tool_request"] is None
        assert said["tool_request_error"] == {
            "code": "text_before",
            "message": "there is something before the JSON object; send the object alone",
        }


@requirement("API-20")
def test_text_streams_at_once_and_a_request_is_held_back(house):
    """Nobody should watch JSON being typed; nobody should wait for prose."""
    gate = Pause()
    server = house.server([["Hel", gate, "lo."], ['{"tool', '_request": {"name": ', gate, '"t"}}']])
    client = server.client()
    messages = [{"role": "user", "content": "Hi"}]
    stream = client.chat.completions.create(model="lastword", messages=messages, stream=True)
    texts = (chunk.choices[0].delta.content for chunk in stream)
    assert next(text for text in texts if text) == "Hel", "it came while the model still waits at the gate"
    gate.open()
    assert "".join(text or "" for text in texts) == "lo."

    answer = server.chat("Hi", stream=True)
    *before, last = answer.chunks
    assert [chunk["choices"][0]["delta"].get("content") for chunk in before] == [""]
    assert last["choices"][0]["delta"] == {"content": '{"tool_request": {"name": "t"}}'}
    assert last["tool_request"]["name"] == "t"
    assert answer.body.endswith(b"data: [DONE]\n\n")


@requirement("API-20")
def test_text_that_only_began_like_a_request_comes_whole(house):
    """What was held back is not lost when it turns out to be text."""
    chunks = house.server([['{"', "answer", '": 42}', " done"]]).chat("Hi", stream=True).chunks
    texts = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert [text for text in texts if text] == ['{"answer', '": 42}', " done"]
    assert chunks[-1]["tool_request"] is None
    assert chunks[-1]["tool_request_error"] is None


@requirement("API-14")
def test_native_calls_come_out_natively_and_as_requests(house):
    """A client of either kind finds what it looks for."""
    model = house.model([{"tool_calls": [ask(), ask("read_clock", "", "call_2")]}])
    client = house.server(model).client()
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Weather?"}], tools=TOOLS, tool_choice="auto"
    )
    calls = answer.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["lookup_weather", "read_clock"]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.tool_requests == [
        {"id": "call_1", "name": "lookup_weather", "arguments": {"city": "Lisbon"}},
        {"id": "call_2", "name": "read_clock", "arguments": {}},
    ]
    assert answer.tool_request == answer.tool_requests[0]
    assert model.requests[0]["tools"] == TOOLS
    assert model.requests[0]["tool_choice"] == "auto"


@requirement("API-14", "API-20")
def test_native_calls_in_a_stream_are_put_together(house):
    """The arguments arrive in halves; the request in the last chunk is whole."""
    chunks = house.server([{"content": "Looking.", "tool_calls": [ask()]}]).chat("Hi", stream=True, tools=TOOLS).chunks
    pieces = [
        call["function"]["arguments"] for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert "".join(pieces) == '{"city": "Lisbon"}'
    assert len(pieces) == 3
    assert chunks[-1]["tool_requests"] == [{"id": "call_1", "name": "lookup_weather", "arguments": {"city": "Lisbon"}}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@requirement("API-14")
def test_native_arguments_that_cannot_be_read_are_named(house):
    """The call stays visible natively; it is not a request, and the reason says why."""
    bad = ask(arguments='{"city": "Lis', id="call_9")
    answer = house.server([{"tool_calls": [bad, ask()]}]).chat("Hi", tools=TOOLS).json
    assert [request["id"] for request in answer["tool_requests"]] == ["call_1"]
    assert answer["tool_request_error"]["code"] == "not_json"
    assert "call_9 of lookup_weather" in answer["tool_request_error"]["message"]


@requirement("API-14")
def test_calls_without_ids_of_their_own_get_some(house):
    """Some servers leave them out, or repeat them, and a result has to name what it answers."""
    nameless = {"function": {"name": "t", "arguments": "{}"}}
    model = house.model(lambda body: {"tool_calls": [nameless, nameless] if body.get("seed") else [ask(), ask()]})
    server = house.server(model)
    for seed in (0, 1):
        answer = server.chat("Hi", tools=TOOLS, seed=seed).json
        ids = [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]
        assert len(set(ids)) == 2
        assert [request["id"] for request in answer["tool_requests"]] == ids
        chunks = server.chat("Hi", tools=TOOLS, stream=True, seed=seed).chunks
        seen = {call["id"] for c in chunks for call in c["choices"][0]["delta"].get("tool_calls", ()) if "id" in call}
        assert seen == {request["id"] for request in chunks[-1]["tool_requests"]}
        assert len(seen) == 2


@requirement("API-14", "API-20")
def test_native_text_is_text(house):
    """Where the model can call natively, JSON in its words is only JSON."""
    server = house.server(lambda _: ASK)
    assert server.chat("Hi", tools=TOOLS).json["tool_request"] is None
    assert server.chat("Hi", tool_protocol="native").json["tool_request"] is None
    assert server.chat("Hi", tools=TOOLS, tool_protocol="json").json["tool_request"]["name"] == "lookup_weather"
    first, *_ = [
        c for c in server.chat("Hi", tools=TOOLS, stream=True).chunks if c["choices"][0]["delta"].get("content")
    ]
    assert first["choices"][0]["delta"]["content"] == '{"tool_request": ', "and is not held back"


SCRIPT = 'LET price = CALL get_price { token: "BTC" }\nIF price > 1.5 THEN PRINT("high, really") END\n'


@requirement("API-13")
@pytest.mark.parametrize("stream", [False, True])
def test_a_script_is_exposed_when_it_was_asked_for(house, stream):
    """The server reads it and hands it on. It cannot run it."""
    server = house.server([SCRIPT, SCRIPT])
    answer = server.chat("Price?", tool_protocol="script", stream=stream)
    last = answer.chunks[-1] if stream else answer.json
    assert last["script"]["text"] == SCRIPT
    assert last["script"]["id"]
    assert last["tool_request"] is None
    if stream:
        shown = [chunk["choices"][0]["delta"].get("content") for chunk in answer.chunks[:-1]]
        assert not any(shown), "a script is held back until it is known to be one"
    plain = server.chat("Price?", tool_protocol="json").json
    assert plain["script"] is None


@requirement("API-13")
@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        "Paris (France)",
        "Hello world",
        "1 + 1",
        '"quoted"',
        "",
        "I would write LET x = 1, but no.",
        f"```\n{SCRIPT}```",
        "LET x =",
        "LET x = 1 LET",
        "// only a comment",
        "{}",
        "x" * 250_000,
        "PRINT(1) " * 25_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_merely_parses_is_text(house, text):
    """A script does something: a keyword statement or a call of a function that exists."""
    server = house.server(lambda _: text)
    answer = server.chat("Capital?", tool_protocol="script").json
    assert (answer["script"], answer["tool_request"]) == (None, None)
    assert answer["choices"][0]["message"]["content"] == text
    chunks = server.chat("Capital?", tool_protocol="script", stream=True).chunks
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == text


@requirement("API-13", "API-10")
@pytest.mark.parametrize("text", ["PRINT(NOW())", "LET x = 1", "SET x = 2", 'CALC { formula: "1", vars: {} }', ASK])
def test_what_does_something_is_a_script(house, text):
    """One keyword or one built-in is enough. A request in JSON comes before a script."""
    answer = house.server([text]).chat("Hi", tool_protocol="script").json
    assert (answer["script"] or {}).get("text") == (None if text == ASK else text)
    assert (answer["tool_request"] is not None) == (text == ASK)


@requirement("API-13")
def test_prose_streams_at_once_also_where_scripts_are_allowed(house):
    """A comma between two words is enough to know that it is no script."""
    gate = Pause()
    server = house.server([["It is warm, and clear, in Lisbon", gate, " today"]])
    stream = server.client().chat.completions.create(
        model="lastword",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        extra_body={"tool_protocol": "script"},
    )
    texts = (chunk.choices[0].delta.content for chunk in stream)
    assert next(text for text in texts if text).startswith("It is warm")
    gate.open()
    assert "".join(text or "" for text in texts) == " today"


@requirement("API-26")
@pytest.mark.parametrize("fields", [{}, {"conversation_id": "c1"}])
def test_the_persona_comes_first_and_the_satellites_prompt_after_it(house, fields):
    """One persona, from the operator; a satellite adds to it and cannot replace it."""
    model = house.model(["Hello."])
    server = house.server(model, persona="You are Ada.")
    server.chat({"role": "system", "content": "Tools: none."}, "Hi", **fields)
    assert model.requests[0]["messages"] == [
        {"role": "system", "content": "You are Ada."},
        {"role": "system", "content": "Tools: none."},
        {"role": "user", "content": "Hi"},
    ]


@requirement("API-26", "API-53")
@pytest.mark.parametrize("fields", [{}, {"conversation_id": "c1"}])
def test_a_satellites_prompt_has_a_limit(house, fields):
    """prompt_characters: the persona is the operator's, and must not be drowned."""
    model = house.model(["Hello."])
    server = house.server(model, limits={"prompt_characters": 20})
    fits = server.chat({"role": "system", "content": "x" * 20}, "Hi", **fields)
    assert fits.status == 200
    two = [{"role": "system", "content": "x" * 10}, {"role": "developer", "content": "y" * 10}]
    answer = server.chat(*two, "Hi", **fields)
    assert (answer.status, answer.code) == (400, "prompt_too_long")
    assert len(model.requests) == 1


@requirement("API-21")
def test_without_a_conversation_the_clients_messages_are_used_as_they_are(house):
    """Fields that we do not know are not ours to drop."""
    model = house.model(["Hello."])
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}], "name": "ana"},
        {"role": "assistant", "content": "A cat.", "refusal": None},
        {"role": "user", "content": "Sure?"},
    ]
    server = house.server(model)
    fields = {"logit_bias": {"1": 2}, "seed": None, "stream": False, "stream_options": None, "tool_protocol": "json"}
    assert server.chat(*messages, **fields).status == 200
    assert model.requests == [{"model": "scripted", "messages": messages, "logit_bias": {"1": 2}}]


@requirement("API-21", "API-22")
def test_without_a_conversation_pending_is_what_the_message_before_asked_for(house):
    """The client carries the history, and with it the request that a result may answer."""
    model = house.model(["Clear.", "Fine.", "Oh.", "Hm."])
    server = house.server(model)
    result = {"role": "tool_result", "name": "lookup_weather", "content": "18°C"}
    answer = server.chat("Weather?", {"role": "assistant", "content": ASK}, result)
    assert answer.json["ignored_tool_results"] == []
    said = model.requests[0]["messages"][-1]
    assert said["role"] == "user"
    assert "18°C" in said["content"]
    assert '"lookup_weather"' in said["content"]

    orphans = [result, {"role": "assistant", "content": "Text."}, result]
    answer = server.chat(result, "Weather?", *orphans, "So?")
    assert (
        answer.json["ignored_tool_results"] == [{"reason": "nothing_pending", "name": "lookup_weather", "id": None}] * 3
    )
    assert [message["content"] for message in model.requests[1]["messages"]] == ["Weather?", "Text.", "So?"]

    answer = server.chat("Weather?", {"role": "assistant", "content": ASK}, "Never mind", result, "So?")
    assert [entry["reason"] for entry in answer.json["ignored_tool_results"]] == ["nothing_pending"]

    asked = {"role": "assistant", "content": ASK}
    other = {"role": "tool_result", "name": "send_mail", "content": "sent"}
    answer = server.chat("Weather?", asked, other, result, result, "So?")
    assert [entry["reason"] for entry in answer.json["ignored_tool_results"]] == ["other_request", "duplicate"]
    assert answer.status == 200


@requirement("API-22")
def test_the_id_of_a_stateless_request_can_be_used_for_its_result(house):
    """The answer gives an id, and nothing but the message itself comes back: the id is made from the message."""
    model = house.model([ASK, "Clear.", "Hm."])
    server = house.server(model)
    id = server.chat("Weather?").json["tool_request"]["id"]
    asked = {"role": "assistant", "content": ASK}
    right = server.chat("Weather?", asked, {"role": "tool", "tool_call_id": id, "content": "18°C"}, "So?")
    assert right.json["ignored_tool_results"] == []
    wrong = server.chat("Weather?", asked, {"role": "tool", "tool_call_id": "call_x", "content": "18°C"}, "So?")
    assert wrong.json["ignored_tool_results"] == [{"reason": "other_request", "name": None, "id": "call_x"}]


@requirement("API-14", "API-22")
def test_native_results_stay_native_without_a_conversation(house):
    """OpenAI's own loop, as every client has it."""
    model = house.model(["Clear."])
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [ask()]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18°C"},
    ]
    assert house.server(model).chat(*messages, tools=TOOLS).status == 200
    assert model.requests[0]["messages"] == messages


@requirement("API-13", "API-22")
def test_a_script_without_a_conversation_can_be_answered(house):
    """Its result is that of a tool named script."""
    model = house.model([SCRIPT, "Done."])
    server = house.server(model)
    id = server.chat("Price?", tool_protocol="script").json["script"]["id"]
    result = {"role": "tool_result", "name": "script", "id": id, "content": "high, really"}
    answer = server.chat("Price?", {"role": "assistant", "content": SCRIPT}, result, tool_protocol="script")
    assert answer.json["ignored_tool_results"] == []
    assert "high, really" in model.requests[1]["messages"][-1]["content"]


@requirement("API-25")
def test_the_model_is_asked_once_a_turn(house):
    """The loop is the satellite's. A request, a near miss and a script end the turn like text does."""
    for reply in (ASK, f"x {ASK}", SCRIPT, "Text."):
        model = house.model(lambda _, reply=reply: reply)
        house.server(model).chat("Hi", tool_protocol="script", conversation_id="c")
        assert len(model.requests) == 1


@requirement("API-20")
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, None),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "tool_result", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}], "stream": "yes"}, "stream"),
        ({"messages": [{"role": "user", "content": "x"}], "n": 2}, "n"),
        ({"messages": [{"role": "user", "content": "x"}], "conversation_id": "a b"}, "conversation_id"),
        ({"messages": [{"role": "user", "content": "x"}], "conversation_id": "a\n"}, "conversation_id"),
        ({"messages": [{"role": "user", "content": "x"}], "conversation_id": "../x"}, "conversation_id"),
        ({"messages": [{"role": "user", "content": "x"}], "conversation_id": ""}, "conversation_id"),
        ({"messages": [{"role": "user", "content": "x"}], "conversation_id": "x" * 129}, "conversation_id"),
        ({"messages": [{"role": "user", "content": "x"}], "tool_protocol": "xml"}, "tool_protocol"),
        ([], None),
        (b"{", None),
        (b"\xff", None),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', None),
        (b"[" * 100_000, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_request_is_named_in_openais_shape(plain, body, param):
    """The client raises its own error class, with the parameter in it."""
    answer = plain.send("POST", "/v1/chat/completions", body)
    assert answer.status == 400
    error = answer.json["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"]


@requirement("API-20")
def test_the_official_client_raises_its_own_errors(house):
    """Status and shape are what the client's error classes are made from."""
    server = house.server([Fault("status", status=429, retry_after="7")], limits={"retries": 0})
    client = server.client()
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="m", messages=[], extra_body={"messages": [{"role": "x"}]})
    assert bad.value.param == "messages"
    with pytest.raises(openai.RateLimitError) as busy:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert busy.value.code == "upstream_busy"
    assert busy.value.response.headers["retry-after"] == "7"


@requirement("API-20", "API-30")
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_cancels_the_models_work(house, stream):
    """Nobody pays for an answer that nobody reads; and the turn never was."""
    gate = Pause()
    model = house.model([["One", " two", gate, " three"], "Fresh."])
    server = house.server(model)
    client = server.client()
    fields = {"conversation_id": "c1"}
    messages = [{"role": "user", "content": "Count"}]
    if stream:
        answer = client.chat.completions.create(model="m", messages=messages, stream=True, extra_body=fields)
        next(iter(answer))
        assert gate.reached.wait(10)
        answer.close()
    else:
        # Long enough for the request to have reached the model, also on a machine that stops for a moment.
        impatient = client.with_options(timeout=2.0)
        with pytest.raises(openai.APITimeoutError):
            impatient.chat.completions.create(model="m", messages=messages, extra_body=fields)
    assert model.cancelled.wait(10), "the request to the model was broken off"
    assert server.chat("Again", **fields).status == 200
    messages = model.requests[-1]["messages"]
    assert [message["content"] for message in messages] == ["Again"], "nothing of the broken turn was stored"
