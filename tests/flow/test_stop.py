"""Everything is stopped while the assistant is at work: it does not go on with the next step."""

import asyncio
from threading import Thread
from typing import Any

import pytest

from flow.conftest import MakeStage, request
from lastword.call import stop, stop_all
from lastword.consent import ALLOWED, Answerer
from requirements import requirement


@pytest.fixture(autouse=True)
def quick_ears(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a quarter of a second for people."""
    monkeypatch.setattr(stop_all, "LISTEN_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(stop_all, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(stop_all, "HEARD_SECONDS", 0.2)


@requirement("TOOL-58", "API-40")
async def test_a_turn_ends_when_everything_is_stopped_while_its_tool_runs(stage: MakeStage):
    """The model would only ask for the next one. It hears of what was stopped with the person's next message."""
    s = await stage([request("search", word="comet"), "I see."])
    satellite = s.satellite()
    turn = asyncio.create_task(satellite.say("Search."))
    await s.running.wait()
    stopped = await (await stop(s.journal, Answerer.person(where="command"))).settled()
    ended = await turn
    assert (ended.bound, ended.words) == (
        "stop",
        "Stopped: everything was stopped. What was done is kept. Say something to go on.",
    )
    assert [call.tool for call in stopped.cancelled] == ["search"]
    assert len(s.model.requests) == 1
    assert not await satellite.is_unfinished()
    assert (await satellite.say("What happened?")).text == "I see."
    assert "comet in 1990" in str(s.sent())


@requirement("TOOL-58", "API-40")
async def test_what_the_model_asks_for_after_a_stop_is_not_carried_out(stage: MakeStage):
    """It was thinking when the person stopped everything. What it comes up with is of the turn before."""

    def think(body: Any) -> str:
        if "Send Ann one." in str(body["messages"][-1]):
            somebody = Thread(target=lambda: asyncio.run(stop(s.journal, Answerer.person(where="command"))))
            somebody.start()
            somebody.join()
            return request("send", to="Ann")
        return "I see."

    s = await stage(think)
    satellite = s.satellite(ALLOWED)
    assert (await satellite.say("Send Ann one.")).bound == "stop"
    assert s.did == []
    assert await s.journal.store.read(kind="asked") == []
    assert (await satellite.say("Never mind.")).text == "I see."
    assert s.did == []
