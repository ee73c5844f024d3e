"""Running an implementation: on the loop or in a thread, cancelled, timed out, never twice."""

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from lastword import AssistantTool, Limits, Outcome, Session, ToolRegistry, wait_for_answer
from lastword.testing import FixedApprover
from lastword.tools import Tool
from lastword.tools.declaration import manifest_of
from requirements import requirement
from sending import CALL, until

pytestmark = pytest.mark.usefixtures("collected")

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


async def cancelled(session: Session, running: threading.Event):
    """Start the tool, cancel it once it runs, and give its outcome."""
    call = asyncio.create_task(session.call("work"))
    await until(running.is_set)
    [call_id] = session._setting.running
    session.cancel(call_id)
    return await asyncio.wait_for(call, 30)


@requirement("TOOL-15")
@pytest.mark.parametrize(("how", "on_the_loop"), [("sync", False), ("async", True), ("inline", True)])
async def test_sync_functions_run_beside_the_loop_and_async_ones_on_it(registry: ToolRegistry, how, on_the_loop):
    """In daemon threads of ours; `inline` keeps a small pure function on the loop."""
    seen = []

    def work(args, context):
        seen.append(threading.current_thread())

    async def work_async(args, context):
        work(args, context)

    registry.register("work", SCHEMA, work_async if how == "async" else work, inline=how == "inline")
    await Session(registry).call("work")
    assert (seen[0] is threading.main_thread()) == on_the_loop
    if not on_the_loop:
        assert seen[0].daemon
        assert seen[0].name == "lastword-tool"


@requirement("TOOL-15")
async def test_many_sync_tools_run_at_once(registry: ToolRegistry):
    """A barrier that only opens when all of them are there; and the threads are used again."""
    barrier = threading.Barrier(20, timeout=5)
    registry.register("work", SCHEMA, lambda args, context: barrier.wait())
    session = Session(registry)
    for _ in range(2):
        outcomes = await asyncio.gather(*(session.call("work") for _ in range(20)))
        assert {outcome.kind for outcome in outcomes} == {"succeeded"}
    assert sum(thread.name == "lastword-tool" for thread in threading.enumerate()) <= 60


@requirement("TOOL-15")
async def test_a_call_may_end_before_anybody_waits_for_it(registry: ToolRegistry):
    """The door gives something to wait for; whoever does so late is told the end, and does not wait for ever."""
    registry.register("work", SCHEMA, lambda args, context: 5)
    session = await Session(registry).open()
    call = session._door.carry_out("call", "work", {})
    assert not isinstance(call, Outcome)
    execution: Any = session._setting.running["call"]
    await until(lambda: execution._settled is not None)
    assert (await asyncio.wait_for(call, 30)).kind == "succeeded"


@requirement("TOOL-15")
async def test_an_async_function_in_disguise_is_awaited(registry: ToolRegistry):
    """Behind a lambda, or as an object with an async call."""

    async def work(args, context):
        await asyncio.sleep(0)
        return 5

    class Callable:
        async def __call__(self, args, context):
            return 6

    registry.register("work", SCHEMA, lambda args, context: work(args, context))
    registry.register("inline", SCHEMA, lambda args, context: work(args, context), inline=True)
    registry.register("object", SCHEMA, Callable())
    session = Session(registry)
    assert [(await session.call(name)).value for name in ("work", "inline", "object")] == [5, 5, 6]


@requirement("TOOL-52")
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("setting", ["assigned", "passed", "AssistantTool", "async"])
async def test_a_person_stops_a_call_and_keeps_what_it_has(registry: ToolRegistry, how, setting):
    """is_cancelled turns true, on_cancel gives the partial result for the model, once."""
    running = threading.Event()
    asked = []

    def partial():
        asked.append(1)
        return "two of five"

    async def partial_async():
        return partial()

    def prepare(context):
        if setting == "assigned":
            context.on_cancel = partial
        elif setting == "passed":
            context.on_cancel(partial)
        elif setting == "AssistantTool":
            AssistantTool.on_cancel = partial
        else:
            context.on_cancel = partial_async
        running.set()

    def work(args, context):
        prepare(context)
        while not context.is_cancelled:
            time.sleep(0.001)
        return "ignored"

    async def work_async(args, context):
        prepare(context)
        await until(lambda: AssistantTool.is_cancelled)
        return "ignored"

    registry.register("work", SCHEMA, work if how == "sync" else work_async)
    session = Session(registry)
    outcome = await cancelled(session, running)
    assert outcome.kind == "cancelled"
    assert outcome.message == "work was cancelled by the person while it ran. What it had by then:\ntwo of five"
    assert asked == [1]
    session.cancel(outcome.call_id)
    await asyncio.sleep(0.01)
    assert asked == [1]


@requirement("TOOL-52")
async def test_what_a_stopped_call_has_is_told_as_json_like_any_result(registry: ToolRegistry):
    """A model that reads Python's way of writing a list or None copies it into its next arguments."""
    running = threading.Event()

    async def work(args, context):
        context.on_cancel = lambda: {"found": ["a", None], "done": True}
        running.set()
        await asyncio.Event().wait()

    registry.register("work", SCHEMA, work)
    outcome = await cancelled(Session(registry), running)
    assert outcome.message.endswith('What it had by then:\n{"found":["a",null],"done":true}')


@requirement("TOOL-52")
async def test_without_on_cancel_the_result_says_that_it_was_cancelled(registry: ToolRegistry):
    """And that what was done stays done."""
    running = threading.Event()

    async def work(args, context):
        running.set()
        await asyncio.Event().wait()

    registry.register("work", SCHEMA, work)
    outcome = await cancelled(Session(registry, limits=Limits(cancel_grace_seconds=0.01)), running)
    assert outcome.kind == "cancelled"
    assert "What it had done by then stays done" in outcome.message


@requirement("TOOL-52")
async def test_on_cancel_belongs_to_one_call(registry: ToolRegistry):
    """It is gone with the call that set it."""
    running = threading.Event()
    turns = iter([True, False])

    async def work(args, context):
        if next(turns):
            AssistantTool.on_cancel = lambda: "from the first call"
            return "done"
        running.set()
        return await asyncio.Event().wait()

    registry.register("work", SCHEMA, work)
    session = Session(registry, limits=Limits(cancel_grace_seconds=0.01))
    assert (await session.call("work")).message == "done"
    assert "from the first call" not in (await cancelled(session, running)).message


@requirement("TOOL-52")
async def test_an_async_tool_that_does_not_stop_is_cancelled_after_a_grace_period(registry: ToolRegistry):
    """It had time to see is_cancelled and to tidy up."""
    running, stopped = threading.Event(), asyncio.Event()

    async def work(args, context):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    registry.register("work", SCHEMA, work)
    outcome = await cancelled(Session(registry, limits=Limits(cancel_grace_seconds=0.02)), running)
    assert outcome.kind == "cancelled"
    assert not stopped.is_set()
    await asyncio.wait_for(stopped.wait(), 30)


@requirement("TOOL-52")
async def test_a_thread_that_does_not_stop_is_abandoned_and_reported(registry: ToolRegistry, caplog):
    """The person has the outcome at once; the log names the tool and what to do."""
    running, release = threading.Event(), threading.Event()

    def work(args, context):
        running.set()
        release.wait(5)

    registry.register("work", SCHEMA, work)
    outcome = await cancelled(Session(registry, limits=Limits(cancel_grace_seconds=0.02)), running)
    assert outcome.kind == "cancelled"
    await until(lambda: "its thread was abandoned" in caplog.text)
    assert outcome.call_id in caplog.text
    release.set()


@requirement("TOOL-52")
async def test_cancelling_a_card_that_waits_closes_it(registry: ToolRegistry, send, effects):
    """Nobody answered, so nothing runs."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.create_task(session.call("send", CALL))
    await until(session.pending)
    session.cancel(session.pending()[0].call_id)
    outcome = await call
    assert outcome.kind == "denied"
    assert "closed the question" in outcome.message
    session.cancel("no such call")
    assert effects == []


@requirement("TOOL-52")
def test_a_session_used_from_sync_code_can_be_cancelled_from_another_thread(registry: ToolRegistry):
    """Ctrl+C in a terminal arrives in the main thread, the session lives in another."""
    running = threading.Event()

    def work(args, context):
        context.on_cancel = lambda: "some"
        running.set()
        while not context.is_cancelled:
            time.sleep(0.001)

    registry.register("work", SCHEMA, work)
    session = Session(registry)
    outcomes = []
    caller = threading.Thread(target=lambda: outcomes.append(session.call_sync("work")))
    caller.start()
    assert running.wait(5)
    session.cancel(next(iter(session._setting.running)))
    caller.join(5)
    session.close_sync()
    assert outcomes[0].message.endswith("some")


@requirement("TOOL-53")
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("tool", "limit", "seconds"), [(0.02, None, "0.02"), (None, 0.03, "0.03"), (5, 0.02, "0.02"), (0.02, 5, "0.02")]
)
async def test_a_timeout_is_its_own_outcome(registry: ToolRegistry, caplog, how, tool, limit, seconds):
    """Per tool and per session, the shorter of the two; not a denial, and honest about what it may have done."""
    caplog.set_level(logging.CRITICAL, "lastword")
    release = threading.Event()

    def work(args, context):
        while not context.is_cancelled:
            time.sleep(0.001)
        release.set()

    async def work_async(args, context):
        await until(lambda: context.is_cancelled)
        release.set()

    schema = SCHEMA | ({"timeoutSeconds": tool} if tool else {})
    registry.register("work", schema, work if how == "sync" else work_async)
    session = Session(registry, limits=Limits(call_timeout_seconds=limit, cancel_grace_seconds=0.01))
    outcome = await session.call("work")
    assert outcome.kind == "timed_out"
    assert f"did not finish within {seconds} seconds" in outcome.message
    assert "It may have done part of it" in outcome.message
    await until(release.is_set)


@requirement("TOOL-53")
async def test_without_a_limit_nothing_times_out(registry: ToolRegistry):
    """The default is patience."""
    registry.register("work", SCHEMA, lambda args, context: time.sleep(0.05) or "done")
    assert (await Session(registry).call("work")).message == "done"


async def test_a_value_with_a_broken_way_to_json_fails_the_call_and_nothing_else(registry: ToolRegistry, caplog):
    """A model's own serialisation is the tool's code, and may raise anything. Where it did stands in the log."""

    class Broken:
        def model_dump(self, mode):
            raise KeyError("no")

    registry.register("work", SCHEMA, lambda args, context: Broken())
    session = Session(registry)
    outcome = await session.call("work")
    assert outcome.kind == "failed"
    assert "JSON cannot hold" in outcome.message
    (line,) = caplog.records
    assert line.getMessage() == f"call {outcome.call_id}: what work returned could not be made JSON"
    assert line.exc_info[0] is KeyError
    assert [record.kind for record in await session.journal.history(session.id)] == ["started", "finished"]


@requirement("TOOL-33")
@pytest.mark.parametrize("inline", [False, True], ids=["thread", "inline"])
async def test_a_result_that_cannot_say_what_it_is_ends_the_call(registry: ToolRegistry, caplog, inline: bool):
    """A proxy whose object cannot be made raises at the first look. Its call must not wait for ever."""
    caplog.set_level(logging.CRITICAL, "lastword")

    class Lazy:
        @property  # type: ignore[misc]
        def __class__(self):
            raise RuntimeError("not yet")

    registry.register("work", SCHEMA, lambda args, context: Lazy(), inline=inline)
    session = Session(registry)
    outcome = await asyncio.wait_for(session.call("work"), 30)
    assert outcome.kind == "raised"
    assert [record.kind for record in await session.journal.history(session.id)] == ["started", "finished"]


class Exiting:
    """An argument whose type does not only refuse a value."""

    def __init__(self, problem: type[BaseException]) -> None:
        self.problem = problem

    def __call__(self, value):
        raise self.problem


@requirement("TOOL-33")
@pytest.mark.parametrize("problem", [SystemExit, asyncio.CancelledError, GeneratorExit])
async def test_a_type_that_ends_the_program_has_failed(registry: ToolRegistry, caplog, problem):
    """What an argument's type raises is as much the tool's code as what its function raises."""
    caplog.set_level(logging.CRITICAL, "lastword")

    def work(x: int) -> int:
        return x

    manifest, _ = manifest_of(work, require_approval=False)
    registry.add(Tool(manifest, "function", work, converters={"x": Exiting(problem)}))
    session = Session(registry)
    assert (await session.call("work", {"x": 1})).kind == "raised"
    assert [record.kind for record in await session.journal.history(session.id)] == ["started", "finished"]


@requirement("TOOL-24")
async def test_a_context_knows_its_call(registry: ToolRegistry, assistant):
    """State, reports, cancellation, the call's id, the manifest, the session's id."""
    seen = []

    def execute(context):
        seen.append(context)
        context.report("hello")
        context.set_state("a", 1)
        return {"success": True, "message": ""}

    assistant(lambda context: seen.append(context) or {"message": "?"}, execute)
    session = Session(registry, approver=FixedApprover())
    outcome = await session.call("send", CALL)
    for context in seen:
        assert context.call_id == outcome.call_id
        assert context.manifest.id == "send"
        assert context.session_id == session.id
        assert context.is_cancelled is False
    assert seen[1].get_state_value("a") == 1
    assert seen[1].get_all_state() == session.get_all_state() == {"a": 1}
