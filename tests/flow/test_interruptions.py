"""Connections that break and servers that go away: nothing is done twice and no result is lost."""

import asyncio
import itertools
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from flow.conftest import QUICK, Cut, MakeStage, Stage, cut_short, native, request, served
from lastword import ApprovalRequest, UserAction
from lastword.consent import ALLOWED
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.server import HttpUpstream, ServerLimits, build_app
from lastword.store import Entry, MemoryStore, StoreAddress
from lastword.talk import ApiError, ConnectionLost, HttpWire, InProcessWire
from lastword.talk.turn import Bounds, Forgotten, Retrying
from lastword.testing.scripted import Fault, Pause
from requirements import requirement

ASKING = {
    "json": request("send", to="Ann"),
    "native": native(("call_1", "send", '{"to": "Ann"}')),
    "script": 'CALL send { to: "Ann" }',
}


def results(stage: Stage) -> list[dict[str, Any]]:
    """The results that the model was shown in its last request."""
    return [m for m in stage.sent() if m["role"] == "tool" or str(m["content"]).startswith("Result of the tool")]


@requirement("API-42")
@pytest.mark.parametrize("protocol", ["json", "native", "script"])
@pytest.mark.parametrize(("turn", "how"), list(itertools.product([0, 1], ["before", "within", "after"])))
async def test_a_connection_that_breaks_once_loses_and_repeats_nothing(
    stage: MakeStage, protocol: str, turn: int, how: str
):
    """Before or after the execution, and wherever in the exchange it breaks."""
    asks = ASKING[protocol]
    s = await stage(lambda body: "Sent." if any("Sent 1 to Ann" in str(m) for m in body["messages"]) else asks)
    satellite = s.satellite(ALLOWED, protocol=protocol, wire=Cut(InProcessWire(s.app), {turn: how}))
    ended = await satellite.say("Send Ann one.")
    assert ended.text == "Sent."
    assert s.did == [("send", "Ann", 1)]
    assert len(results(s)) == 1
    assert [type(heard) for heard in s.heard].count(Retrying) == 1
    assert len(await s.records(satellite, "delivered")) == 1
    # The person's words stand once in the history, however often they were sent.
    assert [m["content"] for m in s.sent()].count("Send Ann one.") == 1


@requirement("API-42")
async def test_an_answer_that_was_lost_is_not_asked_for_again(stage: MakeStage):
    """The server has the turn. Asking the model once more would cost, and might say something else."""
    s = await stage([request("lookup_weather", city="Lisbon"), "Clear."])
    wire = Cut(InProcessWire(s.app), {0: "after", 2: "after"})
    assert (await s.satellite(wire=wire).say("Weather?")).text == "Clear."
    assert len(s.model.requests) == 2
    assert s.text.endswith("Clear.")


async def test_a_server_that_stays_away_is_an_error_and_the_result_waits(stage: MakeStage):
    """After a named number of attempts the person is told. What was done is delivered with their next message."""
    s = await stage([request("send", to="Ann"), "I see."])
    wire = Cut(InProcessWire(s.app), {1: "before", 2: "before"})
    satellite = s.satellite(ALLOWED, wire=wire, bounds=Bounds(reconnects=1))
    with pytest.raises(ConnectionLost):
        await satellite.say("Send.")
    assert s.did == [("send", "Ann", 1)]
    assert (await satellite.say("Are you there?")).text == "I see."
    result, words = s.sent()[-2:]
    assert "Sent 1 to Ann." in result["content"]
    assert words["content"] == "Are you there?"


async def test_a_model_that_fails_for_a_moment_is_asked_again(stage: MakeStage):
    """502 from the model's server may pass, and our server asks again; a refusal of the request does not."""
    s = await stage([Fault("status", status=500), "Hello."], limits=RETRYING)
    assert (await s.satellite().say("Hi.")).text == "Hello."
    s = await stage([Fault("status", status=400, body=b"too long"), "Hello."])
    with pytest.raises(ApiError, match="too long"):
        await s.satellite().say("Hi.")
    assert len(s.model.requests) == 1
    s = await stage([Fault("status", status=401), "Hello."])
    with pytest.raises(ApiError, match="refused our key"):
        await s.satellite().say("Hi.")
    assert len(s.model.requests) == 1


RETRYING = ServerLimits(retry_seconds=0.01, connect_seconds=2.0, idle_seconds=0.2)
ALWAYS = {
    "broken": (Fault("status", status=500), 3),
    "busy": (Fault("status", status=429), 3),
    "unavailable": (Fault("status", status=503, retry_after="0"), 3),
    "gone": (Fault("reset"), 3),
    "gone in the middle": (Fault("die", after=["Hel"]), 1),
    "stuck in the middle": (Fault("hang", after=["Hel"]), 1),
    "garbage": (Fault("garbage"), 1),
    "refuses": (Fault("status", status=400), 1),
    "refuses our key": (Fault("status", status=401), 1),
}


@requirement("API-72")
@pytest.mark.parametrize("how", ALWAYS)
async def test_one_message_to_a_failing_model_costs_as_many_requests_as_the_page_says(stage: MakeStage, how: str):
    """Server and satellite both tried again, and one message made twenty-one requests: each of them may cost money."""
    fault, most = ALWAYS[how]
    s = await stage(lambda body: fault, limits=RETRYING)
    with pytest.raises(ApiError):
        await s.satellite().say("Hi.")
    assert len(s.model.requests) == most


@requirement("API-72")
async def test_a_question_that_is_too_long_is_asked_once_more_and_each_of_the_two_is_tried_three_times(
    stage: MakeStage,
):
    """A retry inside a retry is how requests multiply: the second question is the last, whatever it is refused for."""
    away = Fault("status", status=503, retry_after="0")
    too_long = Fault("status", status=400, body=b"too much", code="context_length_exceeded")
    s = await stage(["Hello.", away, away, too_long, away, away, too_long, "Never asked for."], limits=RETRYING)
    satellite = s.satellite()
    await satellite.say("Hi. " * 200)
    with pytest.raises(ApiError, match="longer than the model can see"):
        await satellite.say("And now?")
    assert len(s.model.requests) == 1 + 2 * (1 + RETRYING.retries)
    assert len(s.model.requests[-1]["messages"]) < len(s.model.requests[1]["messages"])


@requirement("API-72")
def test_the_page_about_the_api_names_the_most_requests_of_one_message():
    """The number is what somebody who pays for each of them reads."""
    bounds = Bounds()
    most = (bounds.steps + bounds.reconnects) * (1 + ServerLimits().retries) * 2
    words = " ".join((Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8").split())
    assert f"(`steps` + `reconnects`) × (1 + `retries`) × 2 requests: {most}," in words


@requirement("API-72")
async def test_the_message_can_be_sent_again_after_a_failure(stage: MakeStage):
    """What ends is the attempt, and the person decides about another; nothing of the first was kept."""
    s = await stage([*[Fault("status", status=500)] * 3, "Hello."], limits=RETRYING)
    satellite = s.satellite()
    with pytest.raises(ApiError):
        await satellite.say("Hi.")
    assert (await satellite.say("Hi.")).text == "Hello."
    assert [m["content"] for m in s.sent()] == ["Hi."]


@requirement("API-72")
async def test_lost_connections_of_a_whole_message_share_one_budget(stage: MakeStage):
    """A connection that breaks at every step has the model asked twice for each; that must come to an end as well."""
    s = await stage(lambda body: request("lookup_weather", city="Lisbon"))
    wire = Cut(InProcessWire(s.app), dict.fromkeys(range(0, 100, 2), "within"))
    satellite = s.satellite(wire=wire, bounds=Bounds(reconnects=3, steps=50))
    with pytest.raises(ConnectionLost):
        await satellite.say("Hi.")
    assert len(s.model.requests) <= 8


@requirement("API-42")
async def test_a_server_that_restarts_between_execution_and_delivery_gets_the_result_once(
    stage: MakeStage, tmp_path: Path
):
    """Pending survives the server, and the outcome survives the connection."""
    address = f"sqlite:///{tmp_path / 'server.db'}"
    s = await stage([request("send", to="Ann"), "Sent."])
    async with AsyncExitStack() as stack:

        async def start(port: int = 0) -> tuple[AsyncExitStack, int]:
            running = AsyncExitStack()
            store = StoreAddress(address).open()
            running.push_async_callback(store.close)
            app = build_app(store, HttpUpstream(s.model.url, limits=QUICK), limits=QUICK, log=lambda line: None)
            return running, await running.enter_async_context(served(app, port))

        first, port = await start()
        stack.push_async_callback(first.aclose)

        async def restart_and_allow(card: ApprovalRequest) -> UserAction:
            await first.aclose()
            second, _ = await start(port)
            stack.push_async_callback(second.aclose)
            return card.allow()

        wire = HttpWire(f"http://127.0.0.1:{port}/v1")
        stack.push_async_callback(wire.close)
        satellite = s.satellite(restart_and_allow, wire=wire)
        assert (await satellite.say("Send Ann one.")).text == "Sent."
        assert s.did == [("send", "Ann", 1)]
        assert len(results(s)) == 1


async def test_a_server_that_forgot_the_conversation_begins_a_new_one(stage: MakeStage):
    """Its memory is gone, ours is not: the model hears what came of its request, and the person is told."""
    s = await stage([request("send", to="Ann"), "I see."])
    empty = build_app(MemoryStore(), HttpUpstream(s.model.url, limits=QUICK), limits=QUICK, log=lambda line: None)

    class Forgetful(InProcessWire):
        def forget(self) -> None:
            self._app = empty

    wire = Forgetful(s.app)

    def forget_and_allow(card: ApprovalRequest) -> UserAction:
        wire.forget()
        return card.allow()

    satellite = s.satellite(forget_and_allow, wire=Cut(wire, {1: "before"}))
    first = satellite.conversation_id
    async with InProcessWire.alive(empty):
        assert (await satellite.say("Send.")).text == "I see."
    assert s.did == [("send", "Ann", 1)]
    assert satellite.conversation_id != first
    assert any(isinstance(heard, Forgotten) for heard in s.heard)
    assert "The earlier conversation was lost" in s.sent()[-1]["content"]
    assert "Sent 1 to Ann." in s.sent()[-1]["content"]


async def test_two_programs_in_one_conversation_are_told_apart(stage: MakeStage):
    """Whoever comes second must not take the other's turn for an answer to its own."""
    s = await stage(lambda body: f"Answer {len(body['messages'])}.")
    first = s.satellite(id="shared", wire=Cut(InProcessWire(s.app), {1: "before"}))
    await first.say("One.")
    await s.satellite(id="shared").say("Two.")
    with pytest.raises(SessionError, match="somebody else"):
        await first.say("Three.")


@requirement("API-42")
async def test_a_new_process_goes_on_with_what_the_old_one_left(stage: MakeStage):
    """The request is pending at the server and was never begun here: it is asked, run and delivered."""
    s = await stage([request("send", to="Ann"), "Sent."])
    old = s.satellite(ALLOWED, id="kept", wire=Cut(InProcessWire(s.app), {0: "after"}), bounds=Bounds(reconnects=0))
    with pytest.raises(ConnectionLost):
        await old.say("Send.")
    assert s.did == []
    ended = await s.satellite(ALLOWED, id="kept").resume()
    assert ended is not None
    assert ended.text == "Sent."
    assert s.did == [("send", "Ann", 1)]
    assert await s.satellite(ALLOWED, id="kept").resume() is None


@requirement("API-42")
async def test_a_call_in_doubt_is_told_as_unknown_and_left_for_a_person(stage: MakeStage):
    """The program died while the tool ran. Nobody knows, nobody repeats it, and the model is told so."""
    s = await stage([request("pay", to="Ann"), "A person has to look."])
    paying = asyncio.Event()

    @s.registry.tool(effect="irreversible")
    async def pay(to: str) -> str:
        """Pays somebody."""
        s.did.append(to)
        paying.set()
        await asyncio.sleep(3600)
        return "Paid."

    # It hangs there, and the system takes from it what it held: to the second satellite it is a dead process.
    dead = asyncio.create_task(s.satellite(ALLOWED, id="doubt").say("Pay Ann."))
    await paying.wait()
    s.journal.store._held.clear()
    s.journal = Journal(s.journal.store)
    second = s.satellite(ALLOWED, id="doubt")
    ended = await second.resume()
    assert ended is not None
    assert ended.text == "A person has to look."
    assert s.did == ["Ann"]
    assert "It is not known whether pay was carried out" in s.sent()[-1]["content"]
    assert [life.started["tool"] for life in await second.session.in_doubt() if life.started] == ["pay"]
    dead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dead


@requirement("API-42")
async def test_a_script_that_was_interrupted_goes_on_where_it_was(stage: MakeStage):
    """Its first call is done and stays done; the second, which had not begun, runs."""
    script = 'LET a = CALL send { to: "Ann" }\nPRINT(a)\nCALL send { to: "Ben" }'
    s = await stage([script, "Both."])
    asked = asyncio.Event()

    async def first_only(card: ApprovalRequest) -> UserAction:
        if card.arguments["to"] == "Ben":
            asked.set()
            await asyncio.sleep(3600)
        return card.allow()

    await cut_short(s.satellite(first_only, id="script", protocol="script").say("Both."), asked)
    ended = await s.satellite(ALLOWED, id="script", protocol="script").resume()
    assert ended is not None
    assert ended.text == "Both."
    assert s.did == [("send", "Ann", 1), ("send", "Ben", 1)]
    assert "Sent 1 to Ann." in results(s)[0]["content"]


async def test_a_stopped_script_tells_the_model_how_far_it_came(stage: MakeStage):
    """The turn was stopped in the middle of a script. What it had done is not lost on the model."""
    script = 'CALL lookup_weather { city: "Lisbon" }\nCALL search { word: "Ada" }'
    s = await stage([script, "I see."])
    satellite = s.satellite(protocol="script")
    await cut_short(satellite.say("Search."), s.running)
    await satellite.say("Never mind.")
    assert "Lisbon is 18°C" in results(s)[0]["content"]
    assert "stopped by the person" in results(s)[0]["content"]


async def test_a_script_that_is_stopped_leaves_no_call_in_doubt(stage: MakeStage):
    """Whoever stops a turn has not crashed: the call that ran is cancelled, and known to be."""
    s = await stage(["CALL hold {}", "I see."])
    holding = asyncio.Event()

    @s.registry.tool(effect="reversible")
    async def hold() -> str:
        """Holds on."""
        holding.set()
        await asyncio.sleep(3600)
        return "Held."

    satellite = s.satellite(ALLOWED, protocol="script")
    await cut_short(satellite.say("Hold."), holding)
    assert await satellite.session.in_doubt() == []
    await satellite.say("Never mind.")
    assert "hold was cancelled" in results(s)[0]["content"]


async def test_what_a_person_stopped_does_not_go_on_by_itself(stage: MakeStage):
    """They stopped the turn and left. Coming back must not run what they stopped; speaking tells the model."""
    both = native(("a", "search", '{"word": "Ada"}'), ("b", "lookup_weather", '{"city": "Lisbon"}'))
    s = await stage([both, "I see."])
    satellite = s.satellite(id="left", protocol="native")
    await cut_short(satellite.say("Search."), s.running)
    await satellite.leave_off()
    later = s.satellite(id="left", protocol="native")
    assert await later.resume() is None
    await later.say("Never mind.")
    assert s.did == []
    told = {m["tool_call_id"]: m["content"] for m in s.sent() if m["role"] == "tool"}
    assert "search was cancelled" in told["a"]
    assert "abandoned" in told["b"]


async def test_a_result_is_durable_before_it_is_sent(stage: MakeStage):
    """What needs no approval is written without waiting. Before the model hears of it, it is on disk all the same."""

    class Counting(MemoryStore):
        waiting = 0

        def append(self, entry: Entry) -> None:
            self.waiting += 1
            super().append(entry)

        async def commit(self, *entries: Entry) -> bool:
            self.waiting = 0
            return await super().commit(*entries)

    store = Counting()
    seen: list[int] = []

    class Watching(InProcessWire):
        def exchange(self, method: str, path: str, body: bytes | None, headers: Any = None) -> Any:
            if b"tool_result" in (body or b""):
                seen.append(store.waiting)
            return super().exchange(method, path, body, headers)

    s = await stage([request("lookup_weather", city="Lisbon"), "Clear."], journal=Journal(store))
    await s.satellite(wire=Watching(s.app)).say("Weather?")
    assert seen == [0]


async def test_a_satellite_that_lost_an_answer_looks_before_it_speaks_again(stage: MakeStage):
    """The server has the turn whose answer was lost. The next call is named by the turn that it really is in."""
    s = await stage([native(("0", "send", '{"to": "Ann"}')), native(("0", "send", '{"to": "Ben"}')), "Done."])
    wire = Cut(InProcessWire(s.app), {0: "after"})
    satellite = s.satellite(ALLOWED, protocol="native", wire=wire, bounds=Bounds(reconnects=0))
    with pytest.raises(ConnectionLost):
        await satellite.say("Send Ann one.")
    await satellite.say("No, Ben.")
    assert s.did == [("send", "Ben", 1)]
    assert [facts["turn"] for facts in await s.records(satellite, "requested")] == [2]


async def test_a_turn_that_nobody_waits_for_is_taken_from_the_model(stage: MakeStage):
    """Stopping has to reach the model's server: it would go on thinking, and cost, for nobody."""
    gate = Pause()
    s = await stage([["Let me ", gate, "think"]])
    satellite = s.satellite()
    saying = asyncio.create_task(satellite.say("Go."))
    await asyncio.to_thread(gate.reached.wait, 10)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    assert await asyncio.to_thread(s.model.cancelled.wait, 10)
