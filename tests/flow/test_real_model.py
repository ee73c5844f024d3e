"""A real llama.cpp with a real, tiny model: what the engine takes, streams, refuses and stops.

The model is SmolLM2 with 135 million parameters: enough to prove mechanics, too small to prove anything about quality.
Its file is looked for in LASTWORD_TEST_MODELS or the user's cache folder, where `./test` puts it; where it could not be
had, `./test` says so in its last lines.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from flow.conftest import TINY
from lastword import Session, ToolRegistry
from lastword.server import HttpUpstream, ServerLimits, build_app
from lastword.store import MemoryStore
from lastword.talk import Api, Heard, InProcessWire, Said, Satellite
from lastword.talk.constraint import constraint
from lastword.talk.turn import Outgrown
from lastword.wire import ToolRequest, parse_tool_request
from requirements import requirement

ROOT = Path(__file__).parent.parent.parent
NAME = TINY.name
CONTEXT = 512
# A loaded machine may take long for a hundred tokens; a test that waits is better than one that fails.
PATIENT = ServerLimits(first_byte_seconds=600.0, idle_seconds=600.0)


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """The address of a llama.cpp with this model, which ends with the test."""
    command = [sys.executable, str(ROOT / "bench" / "engine.py"), str(TINY), "--context", str(CONTEXT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        lines = iter(process.stdout.readline, b"")
        address = next(line for line in lines if line.startswith(b"listening on ")).decode().split()[-1]
        yield f"{address}/v1"
        process.stdin.close()


class Short(HttpUpstream):
    """The engine, asked for short replies: what they say does not matter."""

    def stream(self, body):
        return super().stream({"max_tokens": 12, "temperature": 0, **body})


@pytest.fixture
async def upstream(engine: str) -> AsyncIterator[HttpUpstream]:
    found = Short(engine, limits=PATIENT)
    yield found
    await found.close()


@pytest.fixture
def session() -> Session:
    registry = ToolRegistry()

    @registry.tool(require_approval=False, effect="none")
    def get_time(city: str) -> str:
        """Says what time it is."""
        return f"In {city} it is noon."

    return Session(registry)


@requirement("API-65")
async def test_the_engine_says_how_much_it_sees_and_that_it_takes_grammars(upstream: HttpUpstream):
    """What is read from its pages is what the real one writes there."""
    abilities = await upstream.abilities()
    assert (abilities.dialect, abilities.context_tokens) == ("llama.cpp", CONTEXT)


@requirement("API-61")
@pytest.mark.parametrize("protocol", ["json", "script"])
async def test_the_engine_takes_our_grammar_and_keeps_to_it(upstream: HttpUpstream, session: Session, protocol):
    """A grammar that only our own tests can read holds nobody to anything."""
    form = constraint(session, protocol)
    assert form is not None
    messages = [{"role": "user", "content": "Write only JSON: {'tool_request': 1}"}]
    body = {"model": NAME, "messages": messages, "stream": True, "grammar": form["grammar"]}
    async with aclosing(upstream.stream({**body, "max_tokens": 120})) as chunks:
        pieces = [c["delta"].get("content") or "" async for chunk in chunks for c in chunk["choices"]]
    text = "".join(pieces)
    assert text
    assert len(pieces) > 2  # it streams
    found = parse_tool_request(text)
    # Whatever it was up to: it ends as a request, or it was never one.
    assert isinstance(found, ToolRequest) or "tool_request" not in text, text


@requirement("API-61")
async def test_a_model_that_may_say_nothing_but_a_request_makes_one_that_is_carried_out(
    upstream: HttpUpstream, session: Session
):
    """The half of our grammar that is for requests: what comes out of the engine is valid to the last byte."""
    form = constraint(session, "json")
    assert form is not None
    only = form["grammar"].replace("(request | text)", "request", 1)
    body = {"model": NAME, "messages": [{"role": "user", "content": "What time is it in Rome?"}], "grammar": only}
    async with aclosing(upstream.stream({**body, "stream": True, "max_tokens": 120})) as chunks:
        text = "".join([c["delta"].get("content") or "" async for chunk in chunks for c in chunk["choices"]])
    found = parse_tool_request(text)
    assert isinstance(found, ToolRequest), text
    assert (await session.call(found.name, found.arguments)).success


@requirement("API-65")
@pytest.mark.parametrize("turns", [6, pytest.param(30, marks=pytest.mark.long)])
async def test_turns_beyond_512_tokens_lose_none_and_the_person_is_told_once(engine: str, session: Session, turns: int):
    """With the real engine's own count of tokens, and its own refusals."""
    heard: list[Heard] = []
    app = build_app(MemoryStore(), Short(engine, limits=PATIENT), limits=PATIENT, log=lambda line: None)
    async with InProcessWire.alive(app), session:
        satellite = Satellite(session, Api(InProcessWire(app)), hear=heard.append)
        for turn in range(turns):
            ended = await satellite.say(f"This is number {turn}. Tell me something about the number {turn}.")
            assert ended.bound in (None, "repairs")
        conversation = await satellite._api.conversation(satellite.conversation_id)
    assert conversation is not None
    said = [m["content"] for m in conversation["messages"] if m["role"] == "user"]
    assert sum("This is number" in words for words in said) >= min(turns, 20)  # the page holds the newest
    assert conversation["turns"] >= turns
    assert len([one for one in heard if isinstance(one, Outgrown)]) == 1


async def test_a_turn_that_the_person_stops_leaves_the_engine_free(engine: str, session: Session):
    """Who hangs up is not waited for: the one place that the engine has answers the next question."""
    begun = asyncio.Event()
    app = build_app(MemoryStore(), HttpUpstream(engine, limits=PATIENT), limits=PATIENT, log=lambda line: None)
    async with InProcessWire.alive(app), session:
        api = Api(InProcessWire(app))
        first = Satellite(session, api, constrain="never", hear=lambda h: begun.set() if isinstance(h, Said) else None)
        turn = asyncio.ensure_future(first.say("Count from one to one thousand, in words."))
        await begun.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    free = Short(engine, limits=PATIENT)
    body = {"model": NAME, "messages": [{"role": "user", "content": "Hi."}], "stream": True}
    async with aclosing(free.stream(body)) as chunks:
        assert [chunk async for chunk in chunks]
    await free.close()
