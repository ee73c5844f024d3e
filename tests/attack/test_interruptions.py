"""A call is interrupted wherever it can wait. Nothing runs that should not, and the journal says what happened."""

import asyncio
import logging
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from lastword import Limits, Preset, Session, ToolRegistry, wait_for_answer
from lastword.consent import ALLOWED
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.store import MemoryStore
from lastword.testing import FixedApprover, memory_journal
from requirements import requirement
from sending import CALL, asked, until

pytestmark = pytest.mark.usefixtures("collected")

LIMITS = Limits(cancel_grace_seconds=0.05, draw_timeout_seconds=5)


async def stop_waiting(call: asyncio.Task[Any]) -> None:
    """As a host does that has no use for the outcome any more."""
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


class Halting(MemoryStore):
    """A store that stops for good before, or after, it has written a record of one kind."""

    def __init__(self, kind: str, after: bool) -> None:
        super().__init__()
        self.kind, self.after = kind, after
        self.halted = asyncio.Event()

    async def commit(self, *entries: Any) -> bool:
        here = any(entry.kind == self.kind for entry in entries)
        if here and not self.after:
            await self._halt()
        written = await super().commit(*entries)
        if here and self.after:
            await self._halt()
        return written

    async def _halt(self) -> None:
        self.halted.set()
        await asyncio.Event().wait()


@requirement("TOOL-48", "TOOL-52")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["asked", "answered", "burned"])
async def test_a_host_that_stops_waiting_while_the_journal_writes_runs_nothing(
    registry: ToolRegistry, send, effects, kind: str, after: bool
):
    """Whatever was written by then stays written, and the end is written too."""
    store = Halting(kind, after)
    session = Session(registry, approver=FixedApprover(), journal=Journal(store))
    call = asyncio.create_task(session.call("send", CALL))
    await store.halted.wait()
    await stop_waiting(call)
    assert effects == []
    kinds = [record.kind for record in await store.read(stream=session.id)]
    assert kinds[-1] == "finished"
    assert ("burned" in kinds) == (kind != "asked" and after)


@requirement("TOOL-45", "TOOL-52")
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
async def test_a_host_that_stops_waiting_while_the_end_is_written_adds_no_second_end(
    registry: ToolRegistry, send, effects, history, written: bool
):
    """A call that succeeded must not be called cancelled afterwards; one whose end was lost is in doubt."""
    store = Halting("finished", written)
    journal = Journal(store)
    session = Session(registry, approver=FixedApprover(), journal=journal)
    call = asyncio.create_task(session.call("send", CALL))
    await store.halted.wait()
    await stop_waiting(call)
    assert effects
    ends = [facts["kind"] for kind, facts in await history(journal, session.id) if kind == "finished"]
    assert ends == (["succeeded"] if written else [])
    assert len(await session.in_doubt()) == (0 if written else 1)


@requirement("TOOL-48")
async def test_a_host_that_stops_waiting_for_a_card_takes_it_away(registry: ToolRegistry, send, effects, history):
    """Without an end in the journal the card would wait there for ever, for an answer that starts nothing."""
    journal = memory_journal()
    session = Session(registry, approver=wait_for_answer, journal=journal)
    call, _ = await asked(session)
    await stop_waiting(call)
    assert session.pending() == []
    assert await journal.waiting() == []
    records = await history(journal, session.id)
    assert [kind for kind, _ in records] == ["asked", "finished"]
    assert records[-1][1]["kind"] == "cancelled"
    assert effects == []


@requirement("TOOL-42", "TOOL-56")
async def test_a_host_that_stops_waiting_while_the_card_is_drawn_stops_the_drawing(registry: ToolRegistry, assistant):
    """The request function is told, and nobody is asked."""
    drawing, told = asyncio.Event(), asyncio.Event()

    async def request(params):
        drawing.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    assistant(request)
    approver = FixedApprover()
    call = asyncio.create_task(Session(registry, approver=approver).call("send", CALL))
    await drawing.wait()
    await stop_waiting(call)
    await asyncio.wait_for(told.wait(), 30)
    assert approver.requests == []


@requirement("TOOL-52")
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_host_that_stops_waiting_for_a_tool_tells_it(registry: ToolRegistry, history, how: str):
    """is_cancelled turns true, and the journal does not leave the call in doubt."""
    running = threading.Event()
    seen: list[bool] = []

    def work(args, context):
        running.set()
        while not context.is_cancelled:
            time.sleep(0.001)
        seen.append(True)

    async def work_async(args, context):
        running.set()
        await until(lambda: context.is_cancelled)
        seen.append(True)

    schema = {"description": "Works.", "parameters": [], "returns": "any"}
    registry.register("work", schema, work if how == "sync" else work_async)
    session = Session(registry, limits=LIMITS)
    call = asyncio.create_task(session.call("work"))
    await until(running.is_set)
    await stop_waiting(call)
    await until(lambda: seen)
    records = await history(session.journal, session.id)
    assert [kind for kind, _ in records] == ["started", "finished"]
    assert records[-1][1]["kind"] == "cancelled"


async def cancel_when_running(session: Session, running: Any, tool: str = "work") -> Any:
    """Start a call, cancel it as a person would once it runs, and give its outcome."""
    call = asyncio.create_task(session.call(tool))
    await until(running.is_set)
    [call_id] = session._setting.running
    session.cancel(call_id)
    return await asyncio.wait_for(call, 30)


SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


@requirement("TOOL-52")
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("trouble", ["raises", "hangs", "hangs async", "returns nonsense", "exits", "cancels"])
async def test_an_on_cancel_that_misbehaves_does_not_keep_the_person_waiting(
    registry: ToolRegistry, caplog, how: str, trouble: str
):
    """The call is cancelled all the same, and the loop goes on."""
    caplog.set_level(logging.CRITICAL, "lastword")
    running, stop = threading.Event(), threading.Event()

    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    async def stop_own_task() -> None:
        # What many write: stop what runs in the background, and wait until it has stopped.
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        task.cancel()
        await task

    def stop_from_thread() -> None:
        raise asyncio.CancelledError

    def on_cancel() -> Any:
        if trouble == "raises":
            raise RuntimeError("no")
        if trouble == "hangs" and how == "sync":
            return stop.wait(30)
        if trouble in ("hangs", "hangs async"):
            return hang()
        if trouble == "exits":
            sys.exit(1)
        if trouble == "cancels":
            return stop_own_task() if how == "async" else stop_from_thread()
        return object.__new__(Unprintable)

    def work(args, context):
        context.on_cancel = on_cancel
        running.set()
        stop.wait(30)

    async def work_async(args, context):
        context.on_cancel(on_cancel)
        running.set()
        await asyncio.Event().wait()

    registry.register("work", SCHEMA, work if how == "sync" else work_async)
    session = Session(registry, limits=LIMITS)
    began = time.monotonic()
    outcome = await cancel_when_running(session, running)
    stop.set()
    assert outcome.kind == "cancelled"
    assert "What it had done by then stays done" in outcome.message
    assert time.monotonic() - began < 15


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("no words")


@requirement("TOOL-52")
async def test_a_slow_on_cancel_does_not_block_the_loop(registry: ToolRegistry):
    """A sync tool's function runs beside the loop, as the tool does."""
    running, stop = threading.Event(), threading.Event()
    turned: list[float] = []

    def on_cancel() -> str:
        while len(turned) < 3:
            time.sleep(0.001)
        return "three turns"

    def work(args, context):
        context.on_cancel = on_cancel
        running.set()
        stop.wait(30)

    async def turn() -> None:
        while len(turned) < 3:
            await asyncio.sleep(0.001)
            if session._setting.running and next(iter(session._setting.running.values())).cancelling:
                turned.append(time.monotonic())

    registry.register("work", SCHEMA, work)
    session = Session(registry, limits=Limits(cancel_grace_seconds=5))
    outcome, _ = await asyncio.gather(cancel_when_running(session, running), turn())
    stop.set()
    assert "three turns" in outcome.message


@requirement("TOOL-52")
async def test_what_a_tool_returns_after_it_was_cancelled_is_ignored(registry: ToolRegistry):
    """It sees is_cancelled and hurries to say that it succeeded. The person said stop."""
    running = asyncio.Event()
    asked = asyncio.Event()

    async def partial() -> str:
        asked.set()
        await asyncio.sleep(0.02)
        return "half of it"

    async def work(args, context):
        context.on_cancel = partial
        running.set()
        await asked.wait()
        return "all of it"

    registry.register("work", SCHEMA, work)
    outcome = await cancel_when_running(Session(registry), running)
    assert outcome.kind == "cancelled"
    assert outcome.message.endswith("half of it")


@requirement("TOOL-48", "TOOL-33")
@pytest.mark.parametrize("how", ["async", "inline", "thread"])
@pytest.mark.parametrize("problem", [asyncio.CancelledError, SystemExit])
async def test_a_tool_that_cancels_itself_or_exits_has_failed(registry: ToolRegistry, caplog, how: str, problem):
    """Nobody cancelled it, so nobody is said to have; and one tool's exit is not the end of the program."""
    caplog.set_level(logging.CRITICAL, "lastword")

    def work(args, context):
        raise problem

    async def work_async(args, context):
        raise problem

    registry.register("work", SCHEMA, work_async if how == "async" else work, inline=how == "inline")
    outcome = await Session(registry).call("work")
    assert outcome.kind == "raised"
    assert problem.__name__ in outcome.message


@pytest.mark.parametrize("problem", [RuntimeError, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("at", ["Asked", "Answered", "Started", "Finished"])
async def test_a_listener_that_raises_breaks_no_call(
    registry: ToolRegistry, send, effects, history, caplog, at: str, problem
):
    """Whoever watches must not be able to stop, repeat or leave in doubt what is watched."""
    caplog.set_level(logging.CRITICAL, "lastword")
    session = Session(registry, approver=FixedApprover())
    heard: list[Any] = []

    def broken(event: Any) -> None:
        if type(event).__name__ == at:
            raise problem("a window was closed")

    stop = session.listen(broken)
    session.listen(heard.append)
    assert (await session.call("send", CALL)).kind == "succeeded"
    stop()
    assert effects == [CALL]
    assert [type(event).__name__ for event in heard] == ["Asked", "Answered", "Started", "Finished"]
    kinds = [kind for kind, _ in await history(session.journal, session.id)]
    assert kinds == ["asked", "answered", "burned", "started", "finished"]


@requirement("TOOL-52")
async def test_a_host_that_stops_waiting_to_be_told_again_changes_no_end(registry: ToolRegistry, send, effects):
    """A call that has ended is asked for by its id once more: whoever loses patience must not end it a second time."""

    class Slow(MemoryStore):
        async def read(self, **facts: Any) -> Any:
            found = await super().read(**facts)
            await asyncio.sleep(0)
            return found

    session = Session(registry, approver=FixedApprover(), journal=Journal(Slow()))
    first = await session.call("send", CALL, call_id="x")
    for turns in range(8):
        asking = asyncio.create_task(session.call("send", CALL, call_id="x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking})
    assert await session.call("send", CALL, call_id="x") == first
    assert len(await session.journal.store.read(subject="x", kind="finished")) == 1
    assert effects == [CALL]


class Unhurried(MemoryStore):
    """Whoever commits lets the others go on for a moment, before and after."""

    async def commit(self, *entries: Any) -> bool:
        for _ in range(3):
            await asyncio.sleep(0)
        written = await super().commit(*entries)
        for _ in range(3):
            await asyncio.sleep(0)
        return written


@requirement("TOOL-52")
@pytest.mark.parametrize("at", ["Asked", "Answered", "Started"])
@pytest.mark.parametrize("approval", ["person", "auto", "not needed"])
async def test_a_call_cancelled_between_two_steps_does_not_run(
    registry: ToolRegistry, assistant, effects, at: str, approval: str
):
    """The card is answered, the tool does not run yet, and the person wants it to stop: nothing has to be done."""

    def execute() -> Any:
        effects.append("ran")
        return {"success": True, "message": "Sent."}

    assistant(None, execute, requireApproval=approval != "not needed", autoApprove=approval == "auto")
    preset = Preset(auto_approve=approval == "auto")
    session = Session(registry, approver=FixedApprover(), preset=preset, journal=Journal(Unhurried()))
    heard: list[str] = []

    def stop(event: Any) -> None:
        heard.append(type(event).__name__)
        if heard[-1] == at:
            session.cancel(event.request.call_id if at == "Asked" else event.call_id)

    session.listen(stop)
    outcome = await asyncio.wait_for(session.call("send", CALL), 30)
    if at not in heard:  # A preset shows no card, and what needs no approval gets no answer.
        assert approval != "person"
        assert effects == ["ran"]
        return
    assert outcome.kind == ("denied" if at == "Asked" else "cancelled")
    assert effects == []
    if at != "Asked":
        assert outcome.message == "send was cancelled by the person before it ran. Nothing was done."
    assert len(await session.journal.store.read(subject=outcome.call_id, kind="finished")) == 1


@requirement("TOOL-52")
@pytest.mark.parametrize("auto", [False, True])
async def test_a_call_cancelled_while_its_card_is_drawn_is_not_asked_about(
    registry: ToolRegistry, assistant, effects, auto: bool
):
    """Whoever gave the call its id can cancel it before there is a card, and nobody should see one afterwards."""

    drawing, cancelled = threading.Event(), threading.Event()

    def draw(params: Any) -> Any:
        drawing.set()
        assert cancelled.wait(30)
        return {"message": "Send it?"}

    assistant(draw, autoApprove=auto)
    approver = FixedApprover()
    session = Session(registry, approver=approver, preset=Preset(auto_approve=auto))
    call = asyncio.create_task(session.call("send", CALL, call_id="x"))
    await until(drawing.is_set)
    session.cancel("x")
    cancelled.set()
    outcome = await call
    assert outcome.kind == "denied"
    assert approver.requests == []
    assert effects == []


@requirement("TOOL-45")
@pytest.mark.parametrize("windows", [1, 2])
@pytest.mark.parametrize("turns", range(12))
async def test_a_call_that_is_asked_for_by_its_id_while_it_lives_runs_once(
    registry: ToolRegistry, assistant, windows: int, turns: int
):
    """With both keys there nobody is asked, so nobody would notice a second time. In one window, or in another one."""
    ran: list[str] = []

    async def execute(context: Any) -> Any:
        ran.append(context.call_id)
        await asyncio.sleep(0)
        return {"success": True, "message": "Sent."}

    assistant(None, execute, autoApprove=True)
    journal = Journal(Unhurried())
    sessions = [Session(registry, id="s", preset=Preset(auto_approve=True), journal=journal) for _ in range(windows)]
    await asyncio.gather(*(session.open() for session in sessions))
    first = asyncio.create_task(sessions[0].call("send", CALL))
    for _ in range(4):  # It is asked for in the journal by then, and so its id can be known.
        await asyncio.sleep(0)
    [asked] = await journal.store.read(kind="asked")
    for _ in range(turns):
        await asyncio.sleep(0)
    second = asyncio.create_task(sessions[-1].call("send", CALL, call_id=asked.subject))
    await asyncio.wait({first, second})
    told = [call.exception() or call.result().kind for call in (first, second)]
    assert "succeeded" in told
    assert all(isinstance(one, SessionError) or one in ("succeeded", "outcome_unknown") for one in told)
    assert ran == [asked.subject]
    assert len(await journal.store.read(subject=asked.subject, kind="finished")) == 1


async def test_a_tool_that_lends_its_id_to_another_call_does_not_lose_its_own_end(registry: ToolRegistry, history):
    """An id names one call. It is a key for whoever the tool talks to, and not for the session that gave it."""

    async def outer(args: Any, context: Any) -> str:
        with pytest.raises(SessionError, match="is being carried out already"):
            await session.call("inner", call_id=context.call_id)
        return "refused"

    registry.register("outer", SCHEMA, outer)
    registry.register("inner", SCHEMA, lambda args, context: None, inline=True)
    session = Session(registry)
    assert (await session.call("outer")).message == "refused"
    assert [kind for kind, _ in await history(session.journal, session.id)] == ["started", "finished"]


@requirement("TEAM-9")
async def test_a_listener_that_does_not_read_is_told_so_and_breaks_no_call(registry: ToolRegistry, monkeypatch, caplog):
    """Its queue is full, so it hears nothing more. It gets what there is and an error, and never waits for ever."""
    caplog.set_level(logging.CRITICAL, "lastword")
    monkeypatch.setattr("lastword.call.setting.MAX_WAITING", 2)
    registry.register("work", SCHEMA, lambda args, context: 1)
    session = Session(registry)
    events = session.events()
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    for _ in range(5):
        assert (await session.call("work")).kind == "succeeded"
    assert await asyncio.wait_for(first, 30)
    assert await asyncio.wait_for(anext(events), 30)
    assert await asyncio.wait_for(anext(events), 30)
    with pytest.raises(SessionError, match="more than 2 events waited to be read"):
        await asyncio.wait_for(anext(events), 30)
    assert session._door.setting.audience.listeners == []


async def test_a_listener_that_failed_hears_nothing_more(registry: ToolRegistry, caplog):
    """One that raises would raise at every event; it is named in the log once, and forgotten."""
    registry.register("work", SCHEMA, lambda args, context: 1)
    session = Session(registry)
    heard = []

    def fail(event: Any) -> None:
        heard.append(event)
        raise RuntimeError("broken")

    session.listen(fail)
    for _ in range(3):
        assert (await session.call("work")).success
    assert len(heard) == 1
    assert [record.message for record in caplog.records] == ["a listener failed and hears nothing more"]
    assert caplog.records[0].exc_info is not None


@requirement("TOOL-15")
def test_a_tool_that_never_stops_does_not_keep_the_program_alive(tmp_path):
    """An abandoned thread is a daemon: the program ends when it wants to."""
    program = textwrap.dedent(
        """
        import threading, asyncio, lastword
        registry = lastword.ToolRegistry()
        registry.register(
            "hang", {"description": "d", "parameters": [], "returns": "any"}, lambda a, c: threading.Event().wait()
        )
        async def main():
            limits = lastword.Limits(call_timeout_seconds=0.05, cancel_grace_seconds=0)
            session = lastword.Session(registry, limits=limits)
            print((await session.call("hang")).kind, flush=True)
        asyncio.run(main())
        sync = lastword.Session(registry, limits=lastword.Limits(call_timeout_seconds=0.05))
        print(sync.call_sync("hang").kind)
        """
    )
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, cwd=tmp_path)
    assert ended.stdout.split() == ["timed_out", "timed_out"], ended.stderr
    assert ended.returncode == 0
    assert time.monotonic() - began < 15


@requirement("TOOL-45")
async def test_an_answer_from_another_thread_wakes_the_session(registry: ToolRegistry, send, effects):
    """A window of a toolkit lives in a thread of its own."""
    # Nothing else may wake the loop, or it would find the answer by accident.
    session = Session(registry, approver=wait_for_answer, limits=Limits(watch_after_seconds=60))
    pressed: list[str] = []

    def press() -> None:
        while not session.pending():
            time.sleep(0.001)
        time.sleep(0.05)
        pressed.extend(session.answer(session.pending()[0].call_id, ALLOWED, by="window"))

    window = threading.Thread(target=press)
    window.start()
    call = await asyncio.wait_for(session.call("send", CALL), timeout=30)
    window.join()
    assert call.kind == "succeeded"
    assert pressed == [call.call_id]
    assert effects == [CALL]
