"""Progress: in place, in order, as often as an eye can follow, bounded in the journal."""

import asyncio
import threading
from typing import Any

import pytest

from lastword import AssistantTool, Session, ToolRegistry
from lastword.call.desk import MAX_JOURNALED
from lastword.call.events import Finished, Reported
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL, until

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


async def reports_of(registry: ToolRegistry, work, session: Session | None = None) -> tuple[list[Reported], Session]:
    registry.register("work", SCHEMA, work)
    session = session or Session(registry)
    heard: list[Any] = []
    session.listen(heard.append)
    await session.call("work")
    assert isinstance(heard[-1], Finished)
    return [event for event in heard if isinstance(event, Reported)], session


@requirement("TOOL-51")
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_reports_arrive_in_order_with_their_call(registry: ToolRegistry, how):
    """Before the end, whichever thread they come from."""

    def work(args, context):
        for n in range(5):
            context.report(f"step {n}")
        AssistantTool.report("last", fraction=0.5)

    async def work_async(args, context):
        work(args, context)

    reports, session = await reports_of(registry, work if how == "sync" else work_async)
    assert [report.message for report in reports] == [*(f"step {n}" for n in range(5)), "last"]
    assert reports[-1].fraction == 0.5
    finished = await session.journal.history(session.id, kind="finished")
    assert {report.call_id for report in reports} == {finished[0].subject}


@requirement("TOOL-51")
async def test_the_same_id_is_one_line_and_is_coalesced(registry: ToolRegistry):
    """A thousand updates in a moment are the first and the last; nothing of the end is lost."""

    def work(args, context):
        for n in range(1000):
            context.report(f"{n} of 1000", id="bar", fraction=n / 1000)
        context.report("1000 of 1000", id="bar", fraction=1)

    reports, _ = await reports_of(registry, work)
    assert reports[0].message == "0 of 1000"
    assert reports[-1] == Reported(reports[0].call_id, "1000 of 1000", "bar", 1.0)
    assert len(reports) < 50


@requirement("TOOL-51")
async def test_what_is_held_back_keeps_its_place_before_a_line_of_its_own(registry: ToolRegistry):
    """A line without an id comes after everything that was said before it."""

    def work(args, context):
        context.report("0%", id="bar")
        context.report("50%", id="bar")
        context.report("halfway")
        context.report("100%", id="bar")

    reports, _ = await reports_of(registry, work)
    assert [report.message for report in reports] == ["0%", "50%", "halfway", "100%"]


@requirement("TOOL-51")
async def test_an_update_that_was_held_back_is_shown_while_the_tool_still_runs(registry: ToolRegistry):
    """Coalescing delays, it does not wait for the end."""
    heard: list[Any] = []
    shown = threading.Event()

    def work(args, context):
        context.report("0%", id="bar")
        context.report("50%", id="bar")
        assert shown.wait(5)

    registry.register("work", SCHEMA, work)
    session = Session(registry)

    def listener(event: object) -> None:
        heard.append(event)
        if getattr(event, "message", "") == "50%":
            shown.set()

    session.listen(listener)
    assert (await session.call("work")).kind == "succeeded"


@requirement("TOOL-51")
async def test_reports_are_journaled_in_bounded_number(registry: ToolRegistry, history):
    """The screen sees all of them; the journal sees how it went."""

    def work(args, context):
        for n in range(MAX_JOURNALED * 3):
            context.report(str(n))

    reports, session = await reports_of(registry, work)
    assert len(reports) == MAX_JOURNALED * 3
    journaled = [data for kind, data in await history(session.journal, session.id) if kind == "reported"]
    assert len(journaled) == MAX_JOURNALED
    assert journaled[0] == {"message": "0", "id": None, "fraction": None}


@requirement("TOOL-51")
@pytest.mark.parametrize(("fraction", "shown"), [(-1, 0.0), (0.4, 0.4), (7, 1.0), (None, None)])
async def test_a_fraction_stays_between_nothing_and_all(registry: ToolRegistry, fraction, shown):
    """A bar cannot be drawn longer than it is."""
    reports, _ = await reports_of(registry, lambda args, context: context.report("x", fraction=fraction))
    assert reports[0].fraction == shown


@requirement("TOOL-51")
async def test_an_abandoned_tool_reports_nothing_more(registry: ToolRegistry):
    """Its call is over; a line after the end would belong to nothing."""
    running, told, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(args, context):
        running.set()
        await go_on.wait()
        context.report("too late")
        told.set()

    registry.register("work", SCHEMA, work)
    session = Session(registry)
    heard: list[Any] = []
    session.listen(heard.append)
    call = asyncio.create_task(session.call("work"))
    await running.wait()
    session.cancel(next(iter(session._setting.running)))
    await call
    go_on.set()
    await told.wait()
    await asyncio.sleep(0.06)
    assert isinstance(heard[-1], Finished)


async def test_a_request_function_has_nobody_to_report_to(registry: ToolRegistry, assistant):
    """Its progress is nobody's business; saying so is no mistake either."""

    def request(context):
        context.report("drawing")
        AssistantTool.report("drawing")
        return {"message": "?"}

    assistant(request)
    heard: list[Any] = []
    session = Session(registry, approver=FixedApprover())
    session.listen(heard.append)
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert not any(isinstance(event, Reported) for event in heard)


async def test_events_are_an_async_iterator(registry: ToolRegistry):
    """For whoever prefers a loop to a listener."""
    registry.register("work", SCHEMA, lambda args, context: context.report("hello"))
    session = Session(registry)
    seen = []

    async def read() -> None:
        async for event in session.events():
            seen.append(type(event).__name__)
            if isinstance(event, Finished):
                return

    reading = asyncio.create_task(read())
    await until(lambda: session._door.setting.audience.listeners)
    await session.call("work")
    await reading
    assert seen == ["Started", "Reported", "Finished"]
