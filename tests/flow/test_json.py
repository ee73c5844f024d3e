"""Conversations in JSON requests."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from flow.conftest import MakeStage, cut_short, native, request
from lastword import ApprovalRequest, UserAction
from lastword.call.events import Event, Reported
from lastword.consent import ALLOWED
from lastword.talk import turn
from lastword.talk.turn import Bounds, Repairing
from lastword.testing.scripted import Pause
from requirements import requirement


@requirement("API-2", "API-25", "API-40")
async def test_a_result_goes_back_until_the_model_answers_in_words(stage: MakeStage):
    """Seed 004's flow, from the person's question to the answer. The server asks the model once for each request."""
    s = await stage([request("lookup_weather", city="Lisbon"), "It is 18 degrees in Lisbon."])
    satellite = s.satellite()
    ended = await satellite.say("What is the weather in Lisbon?")
    assert (ended.text, ended.bound, ended.steps) == ("It is 18 degrees in Lisbon.", None, 2)
    assert s.did == [("lookup_weather", "Lisbon")]
    assert s.text == "It is 18 degrees in Lisbon."
    assert len(s.model.requests) == 2
    result = s.sent()[-1]
    assert result["role"] == "user"
    assert '"message":"Lisbon is 18°C and clear."' in result["content"]


@requirement("API-2")
async def test_an_approved_call_runs_with_what_was_shown(stage: MakeStage):
    """The card stands between the model's wish and its effect, in a conversation too."""
    s = await stage([request("send", to="Ann", amount=5), "Done."])
    shown: list[dict[str, Any]] = []

    def look(card: ApprovalRequest) -> UserAction:
        shown.append(card.arguments)
        assert s.did == []
        return card.allow()

    await s.satellite(look).say("Send Ann 5.")
    assert shown == [{"to": "Ann", "amount": 5}]
    assert s.did == [("send", "Ann", 5)]


@requirement("API-2")
async def test_a_denial_reaches_the_model_with_its_reason(stage: MakeStage):
    """The model reacts to the reason, and nothing was sent."""
    s = await stage([request("send", to="Ann"), "Then I will not."])
    ended = await s.satellite(UserAction(False, True, "wrong person")).say("Send Ann something.")
    assert ended.text == "Then I will not."
    assert s.did == []
    assert "Their reason: wrong person" in s.sent()[-1]["content"]


@requirement("API-2")
async def test_the_model_is_told_what_the_person_changed(stage: MakeStage):
    """What ran is not what was asked for, and the model must not believe it was."""
    s = await stage([request("send", to="Ann", amount=5), "Ah, two."])
    await s.satellite(lambda card: card.edit(amount=2)).say("Send Ann 5.")
    assert s.did == [("send", "Ann", 2)]
    told = json.loads(s.sent()[-1]["content"].split("\n")[2])
    assert told["message"].startswith("The person changed the arguments of send before approving. What ran: ")
    assert '"amount":2' in told["message"]


async def test_nobody_to_ask_is_told_and_nothing_runs(stage: MakeStage):
    """A satellite without a person cannot act for one."""
    s = await stage([request("send", to="Ann"), "I could not."])
    await s.satellite().say("Send Ann something.")
    assert s.did == []
    assert "there is nobody to ask" in s.sent()[-1]["content"]


async def test_a_cancelled_call_keeps_its_partial_result(stage: MakeStage):
    """Stop keeps what was done, and the model goes on from there."""
    s = await stage([request("search", word="Ada"), "At least 1990."])
    satellite = s.satellite()
    events: list[Event] = []
    satellite.session.listen(events.append)
    saying = asyncio.create_task(satellite.say("Search for Ada."))
    await s.running.wait()
    report = next(event for event in events if isinstance(event, Reported))
    satellite.session.cancel(report.call_id)
    assert (await saying).text == "At least 1990."
    assert "Ada in 1990" in s.sent()[-1]["content"]


async def test_a_stopped_turn_tells_the_model_with_the_next_message(stage: MakeStage):
    """A second Ctrl+C stops the turn. What became of the call is not lost: it goes with what the person says next."""
    s = await stage([request("search", word="Ada"), "I see."])
    satellite = s.satellite()
    await cut_short(satellite.say("Search for Ada."), s.running)
    await satellite.say("Never mind.")
    result, words = s.sent()[-2:]
    assert "search was cancelled" in result["content"]
    assert words["content"] == "Never mind."
    assert [m["role"] for m in s.sent()] == ["user", "assistant", "user", "user"]


@requirement("API-41")
async def test_a_request_gone_wrong_is_repaired_from_our_words(stage: MakeStage):
    """The model hears what was wrong and how it must look, and its second try runs."""
    fenced = f"```json\n{request('lookup_weather', city='Lisbon')}\n```"
    s = await stage([fenced, request("lookup_weather", city="Lisbon"), "Clear."])
    ended = await s.satellite().say("Weather?")
    assert ended.text == "Clear."
    assert s.did == [("lookup_weather", "Lisbon")]
    told = s.sent(1)[-1]
    assert told["role"] == "user"
    assert told["content"].startswith("[From the program, not from the person]")
    assert "inside a markdown fence" in told["content"]
    assert [type(heard) for heard in s.heard].count(Repairing) == 1


@requirement("API-41", "API-40")
async def test_a_model_that_cannot_be_repaired_is_stopped_by_name(stage: MakeStage):
    """Telling it for ever would cost for ever."""
    s = await stage(lambda body: "Sure: " + request("lookup_weather", city="Lisbon"))
    ended = await s.satellite(bounds=Bounds(repairs=2)).say("Weather?")
    assert ended.bound == "repairs"
    assert "`repairs`" in ended.words
    assert len(s.model.requests) == 3
    assert s.did == []


async def test_an_unknown_tool_is_told_with_the_nearest_name(stage: MakeStage):
    """A result that the model can repair its next request from."""
    s = await stage([request("lookup_wether", city="Lisbon"), "Sorry."])
    await s.satellite().say("Weather?")
    assert "did you mean lookup_weather?" in s.sent()[-1]["content"]


@requirement("API-40")
async def test_the_bound_on_steps_stops_the_loop_and_loses_no_result(stage: MakeStage):
    """It stops, says which bound, and the last result goes with the next message."""
    s = await stage(lambda body: request("lookup_weather", city=f"city {len(body['messages'])}"))
    satellite = s.satellite(bounds=Bounds(steps=3))
    ended = await satellite.say("Go.")
    assert (ended.bound, ended.steps) == ("steps", 3)
    assert "3 times" in ended.words
    assert len(s.model.requests) == 3
    assert len(s.did) == 3
    await satellite.say("Go on.")
    result, words = s.sent(3)[-2:]
    assert f"{s.did[2][1]} is 18°C" in result["content"]
    assert words["content"] == "Go on."


@requirement("API-40")
async def test_the_bound_on_tokens_stops_the_loop(stage: MakeStage):
    """The scripted model says that every answer took 10."""
    s = await stage(lambda body: request("lookup_weather", city="Lisbon"))
    ended = await s.satellite(bounds=Bounds(tokens=25)).say("Go.")
    assert (ended.bound, ended.steps, ended.tokens) == ("tokens", 3, 30)


@requirement("API-40")
async def test_the_bound_on_seconds_stops_a_model_that_thinks_too_long(stage: MakeStage):
    """The time the model takes is counted; the conversation can go on afterwards."""
    gate = Pause()
    s = await stage([["Let me ", gate, "think"], "Hello."])
    satellite = s.satellite(bounds=Bounds(seconds=0.1))
    ended = await satellite.say("Go.")
    assert ended.bound == "seconds"
    gate.open()
    satellite.bounds = Bounds()
    assert (await satellite.say("Again.")).text == "Hello."
    assert [m["content"] for m in s.sent()] == ["Again."]


async def test_the_time_a_person_takes_is_not_counted(stage: MakeStage, monkeypatch: pytest.MonkeyPatch):
    """Suspend, never fail: a card may wait longer than the model may think."""
    s = await stage([request("send", to="Ann"), "Sent."])
    now = [0.0]
    monkeypatch.setattr(turn, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def slow(card: ApprovalRequest) -> UserAction:
        now[0] += 3_600
        return ALLOWED

    ended = await s.satellite(slow, bounds=Bounds(seconds=60)).say("Send.")
    assert (ended.text, ended.bound, ended.seconds) == ("Sent.", None, 0)


async def test_several_calls_of_one_reply_run_in_their_order(stage: MakeStage):
    """Native models ask for several at once. The second waits for the first, and each gets its own result."""
    both = native(("call_1", "send", '{"to": "Ann"}'), ("call_2", "lookup_weather", '{"city": "Lisbon"}'))
    s = await stage([both, "Both."])
    await s.satellite(ALLOWED, protocol="native").say("Do both.")
    assert s.did == [("send", "Ann", 1), ("lookup_weather", "Lisbon")]
    results = {m["tool_call_id"]: m["content"] for m in s.sent() if m["role"] == "tool"}
    assert "Sent 1 to Ann." in results["call_1"]
    assert "18°C" in results["call_2"]


@requirement("API-41")
async def test_a_native_call_that_cannot_be_read_is_answered_under_its_own_id(stage: MakeStage):
    """The other call of the same reply runs, and the broken one is told what is wrong."""
    both = native(("a", "lookup_weather", '{"city": '), ("b", "lookup_weather", '{"city": "Lisbon"}'))
    s = await stage([both, "One of two."])
    await s.satellite(protocol="native").say("Do both.")
    assert s.did == [("lookup_weather", "Lisbon")]
    results = {m["tool_call_id"]: m["content"] for m in s.sent() if m["role"] == "tool"}
    assert "Nothing was run" in results["a"]
    assert "18°C" in results["b"]


async def test_the_same_native_id_in_two_turns_means_two_calls(stage: MakeStage):
    """Some servers count their calls from zero in every message. The second must not get the first one's result."""
    s = await stage([native(("0", "send", '{"to": "Ann"}')), native(("0", "send", '{"to": "Ben"}')), "Both."])
    await s.satellite(ALLOWED, protocol="native").say("Ann, then Ben.")
    assert s.did == [("send", "Ann", 1), ("send", "Ben", 1)]


async def test_a_native_model_is_given_the_tools_beside_the_messages(stage: MakeStage):
    """What OpenAI's dialect has a place for goes there."""
    s = await stage(["Hello."])
    await s.satellite(protocol="native").say("Hi.")
    names = [tool["function"]["name"] for tool in s.model.requests[0]["tools"]]
    assert names == ["lookup_weather", "send", "search"]


async def test_what_happened_outside_goes_with_the_next_message_once(stage: MakeStage):
    """A person who undid something should not have to tell the model."""
    s = await stage(["Hello.", "I see.", "Fine."])
    satellite = s.satellite()
    await satellite.say("Hi.")
    satellite.tell("The person took back the change to notes.md.")
    await satellite.say("Go on.")
    assert s.sent()[-2]["content"].endswith("The person took back the change to notes.md.")
    await satellite.say("And now?")
    assert sum("took back" in m["content"] for m in s.sent()) == 1
