"""A card is drawn in time or not at all, also when the code that draws it blocks; and nobody else waits for it."""

import asyncio
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lastword import Limits, Preset, Session, ToolRegistry
from lastword.consent import ALLOWED, DENIED
from lastword.errors import NotAllowedNow
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL, until


def _hangs(params: Any) -> Any:
    threading.Event().wait(30)


async def _hangs_async(params: Any) -> Any:
    await asyncio.Event().wait()


async def _hangs_stubbornly(params: Any) -> Any:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return {"message": "Send it?"}


async def _blocks_async(params: Any) -> Any:
    threading.Event().wait(30)


async def _previews_slowly(params: Any) -> Any:
    async def show() -> None:
        threading.Event().wait(30)

    return {"message": "?", "preview_button": {"label": "Show", "action": show}}


def _hangs_when_read(params: Any) -> Any:
    return Slow(message="?")


class Slow(dict):
    """Takes its time when it is asked what it says."""

    def keys(self) -> Any:
        threading.Event().wait(30)

    __iter__ = keys


SLOW = [_hangs, _hangs_async, _hangs_stubbornly, _blocks_async, _previews_slowly, _hangs_when_read]


@requirement("TOOL-42", "TOOL-56")
@pytest.mark.parametrize("request_function", SLOW)
@pytest.mark.parametrize("auto", [False, True], ids=["person", "auto"])
async def test_a_request_function_that_hangs_or_blocks_is_refused_and_holds_up_nobody_else(
    registry: ToolRegistry, assistant, effects, request_function, auto: bool
):
    """It has a time limit, also where nobody would have looked at the card, and although it never gives way; whatever
    else is on the loop goes on meanwhile."""
    assistant(request_function, autoApprove=True)
    approver, limits = FixedApprover(), Limits(draw_timeout_seconds=0.2)
    session = Session(registry, approver=approver, preset=Preset(auto_approve=auto), limits=limits)
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    began = time.monotonic()
    ticking = asyncio.create_task(tick())
    outcome = await session.call("send", CALL)
    ticking.cancel()
    assert outcome.kind == "refused"
    assert "it did not finish within 0.2 seconds" in outcome.message
    assert time.monotonic() - began < 15
    assert turns > 5
    assert approver.requests == effects == []


@requirement("TOOL-56")
async def test_the_request_function_and_its_preview_share_one_time_limit(registry: ToolRegistry, assistant, effects):
    """Either alone would be in time."""

    def half() -> None:
        time.sleep(0.15)

    def request(params):
        half()
        return {"message": "?", "preview_button": {"label": "Show", "action": half}}

    assistant(request)
    approver = FixedApprover()
    limits = Limits(draw_timeout_seconds=0.2)
    outcome = await Session(registry, approver=approver, limits=limits).call("send", CALL)
    assert "it did not finish within 0.2 seconds" in outcome.message
    assert approver.requests == effects == []


@requirement("TOOL-56")
async def test_a_card_that_took_too_long_is_not_shown_although_nobody_noticed(
    registry: ToolRegistry, assistant, effects
):
    """A busy loop hears of the card and of the end of its time in the same moment, and of the card first."""
    drawing, late = threading.Event(), threading.Event()

    def request(params):
        drawing.set()
        assert late.wait(30)
        return {"message": "?"}

    assistant(request)
    approver = FixedApprover()
    limits = Limits(draw_timeout_seconds=0.5)
    call = asyncio.create_task(Session(registry, approver=approver, limits=limits).call("send", CALL))
    await until(drawing.is_set)
    began = time.monotonic()
    while time.monotonic() - began < 0.5 or _is_anybody_busy():  # and nobody else gets a turn
        late.wait(0.6)
        late.set()
    outcome = await call
    assert outcome.kind == "refused"
    assert "it did not finish within 0.5 seconds" in outcome.message
    assert approver.requests == effects == []


@requirement("TOOL-56")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_comes_back_after_its_time_is_still_watched(
    registry: ToolRegistry, assistant, effect_file: Path, kind: str
):
    """The code that was left behind may go on, and may not act; nor does its preview begin."""
    woken = threading.Event()
    went_on: list[Any] = []

    def act() -> Any:
        assert woken.wait(30)
        try:
            effect_file.write_text("forged")
        except NotAllowedNow as problem:
            went_on.append(problem)
        return {"message": "?", "preview_button": {"label": "Show", "action": lambda: went_on.append("previewed")}}

    def request(params, context):
        contexts.append(context)
        return act()

    async def request_async(params, context):
        contexts.append(context)
        return act()

    contexts: list[Any] = []
    assistant(request if kind == "sync" else request_async)
    limits = Limits(draw_timeout_seconds=0.05)
    while not contexts:  # On a busy machine the time may be over before it began.
        outcome = await Session(registry, approver=FixedApprover(), limits=limits).call("send", CALL)
        assert outcome.kind == "refused"
    assert contexts[0].is_cancelled
    woken.set()
    await until(lambda: went_on)
    await until(lambda: not _is_anybody_busy())
    assert {type(step) for step in went_on} == {NotAllowedNow}
    assert not effect_file.exists()


def _is_anybody_busy() -> bool:
    """Whether a thread for tools that this test has set to work has not come back from it."""
    frames = sys._current_frames()
    return any(
        _has(frames[thread.ident], "act", "request") for thread in threading.enumerate() if thread.ident in frames
    )


def _has(frame: FrameType | None, *names: str) -> bool:
    while frame is not None:
        if frame.f_code.co_name in names and frame.f_code.co_filename == __file__:
            return True
        frame = frame.f_back
    return False


@requirement("TOOL-56")
@pytest.mark.parametrize("when", ["while it waits", "while its preview does"])
async def test_a_request_function_that_awaits_is_told_that_its_time_is_up(registry: ToolRegistry, assistant, when: str):
    """So that it can let go of what it holds."""
    told = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            told.set()
            raise

    async def request(params):
        if when == "while it waits":
            await wait()
        return {"message": "?", "preview_button": {"label": "Show", "action": wait}}

    assistant(request)
    limits = Limits(draw_timeout_seconds=0.05)
    assert (await Session(registry, approver=FixedApprover(), limits=limits).call("send", CALL)).kind == "refused"
    await until(told.is_set)


@requirement("TOOL-56")
async def test_generators_that_a_request_function_leaves_are_closed_with_its_loop(registry: ToolRegistry, assistant):
    """Nothing of its own outlives the phase."""
    closed: list[str] = []
    kept: list[Any] = []

    async def numbers():
        try:
            yield 1
        finally:
            closed.append("closed")

    async def request(params):
        kept.append(numbers())
        return {"message": f"{await anext(kept[0])}"}

    assistant(request)
    approver = FixedApprover(lambda request: ALLOWED if closed else DENIED)
    assert (await Session(registry, approver=approver).call("send", CALL)).kind == "succeeded"
