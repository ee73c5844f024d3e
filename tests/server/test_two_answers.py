"""A model's server that sends more, less or something else than one answer. None of it is our own failure."""

import json

import pytest
from server_by_bytes import ByteServer, sent_events

from lastword.server.api_types import Refusal
from lastword.server.server_limits import ServerLimits
from lastword.server.upstream import HttpUpstream
from lastword.testing.scripted import Fault
from requirements import requirement


def piece(words: str, index: int | None = 0) -> dict:
    return {"index": index, "delta": {"content": words}}


@requirement("API-30")
@pytest.mark.parametrize(
    "beside",
    [[piece("Other.", 1)], [{"index": 1}], [{"index": 1, "delta": None}], [piece("Twice.")]],
    ids=["a second answer", "without a piece", "with nothing", "the same index twice"],
)
def test_what_is_sent_of_another_answer_is_no_part_of_the_one_that_was_asked_for(house, beside):
    """It was a failure of our own where it had no piece, and a sentence of both where it came by itself."""
    chunks = [
        {"choices": [piece("One "), *beside]},
        {"choices": [piece("other ", 1)]},
        {"choices": [piece("answer.", None)]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    with ByteServer(sent_events(*chunks)) as model:
        answer = house.server(None, upstream=model.url, model="m").chat("Hi", stream=True)
    assert answer.status == 200, answer.body
    said = [choice["delta"].get("content") or "" for chunk in answer.chunks for choice in chunk["choices"]]
    assert "".join(said) == "One answer."


@requirement("API-30")
@pytest.mark.parametrize("choices", [[5], [piece("a"), 5], {}, [None], [{"index": 0, "delta": []}]])
def test_choices_that_are_none_are_the_models_servers_failure(house, choices):
    """502 says whose fault it is; 500 would send somebody looking into our log."""
    with ByteServer(sent_events({"choices": choices})) as model:
        answer = house.server(None, upstream=model.url, model="m").chat("Hi", stream=True)
    assert (answer.status, answer.code) == (502, "upstream_garbage")


@requirement("API-30")
def test_a_web_page_in_place_of_an_answer_is_called_one(house):
    """The address of something else was given. "It broke off" would have people look for a weak network."""
    with ByteServer(b"<html>Welcome</html>", media="text/html") as model:
        answer = house.server(None, upstream=model.url, model="m").chat("Hi", stream=True)
        listed = house.server(None, upstream=model.url).chat("Hi", stream=True)
    assert (answer.status, answer.code) == (502, "upstream_garbage")
    assert listed.json["error"] == answer.json["error"], "also where its list is asked for first"
    assert answer.json["error"]["message"].startswith("the model's server answered with a web page")
    assert "is its address right?" in answer.json["error"]["message"]


@requirement("API-30")
def test_an_error_that_is_only_a_text_is_repeated(house):
    """Some servers have no more to say than that, and it is what somebody needs to know."""
    with ByteServer(sent_events({"error": "the model runner has stopped; sk-secret-key"})) as model:
        answer = house.server(None, upstream=model.url, model="m").chat("Hi", stream=True)
    assert (answer.status, answer.code) == (502, "upstream_failed")
    assert "the model runner has stopped; [removed]" in answer.json["error"]["message"]


@requirement("API-30")
async def test_a_list_of_models_is_not_fetched_from_another_host(house):
    """What another one lists is not what this one has, and no host of ours is asked for it on somebody's behalf."""
    elsewhere = house.model(["Hello."])
    with ByteServer(b"", status="302 Found", headers=f"Location: {elsewhere.url}/models\r\n") as model:
        upstream = HttpUpstream(model.url, limits=ServerLimits(connect_seconds=5.0))
        with pytest.raises(Refusal, match="status 302"):
            await upstream.models()
        await upstream.close()


@requirement("API-30")
async def test_names_of_models_are_texts():
    """Anything else of that name would be asked for in a form that no server knows."""
    listed = json.dumps({"data": [{"id": "a"}, {"id": {"b": 1}}, {"id": 5}, {"id": ""}, "c", {}]})
    with ByteServer(listed.encode(), media="application/json") as model:
        upstream = HttpUpstream(model.url)
        assert await upstream.models() == ["a"]
        await upstream.close()


@requirement("API-30")
def test_a_stream_of_ours_that_breaks_off_is_still_said_to_break_off(house):
    """Beside the case above: here an answer had begun."""
    model = house.model([Fault("short", after=["Once"])])
    answer = house.server(model).chat("Hi", stream=True)
    assert b"broke off" in answer.body
