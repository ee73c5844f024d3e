"""The object users hold: opened once, reopened with its past, used from sync and async code."""

import asyncio
import contextlib
import logging
import threading
from typing import Any

import pytest

from lastword import Limits, Outcome, Preset, Session, ToolRegistry, wait_for_answer
from lastword.consent import ALLOWED
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.store import MemoryStore
from lastword.testing import FixedApprover, memory_journal
from requirements import requirement
from sending import CALL, until

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


class Slow(MemoryStore):
    """Lets others run wherever a store on a disk would."""

    async def read(self, **facts):
        found = await super().read(**facts)
        await asyncio.sleep(0)
        return found

    async def head(self):
        await asyncio.sleep(0)
        return await super().head()


def test_sync_code_is_welcome(registry: ToolRegistry, send, effects):
    """One loop in the background, for as many calls as one likes."""
    session = Session(registry, approver=FixedApprover())
    assert [session.call_sync("send", CALL).kind for _ in range(3)] == ["succeeded"] * 3
    session.close_sync()
    with pytest.raises(SessionError, match="the session is closed"):
        session.call_sync("send", CALL)
    session.close_sync()
    assert effects == [CALL] * 3


def test_threads_that_make_the_first_call_at_once_share_one_loop(registry: ToolRegistry, send, monkeypatch):
    """Whichever comes second waits for the loop of the first, and neither waits for a loop that nobody runs."""
    both, make, made = threading.Barrier(2), asyncio.new_event_loop, []

    def make_slowly() -> asyncio.AbstractEventLoop:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.1)
        made.append(make())
        return made[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", make_slowly)
    session, kinds = Session(registry, approver=FixedApprover()), []
    callers = [
        threading.Thread(target=lambda: kinds.append(session.call_sync("send", CALL).kind), daemon=True)
        for _ in range(2)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(5)
    assert (kinds, len(made)) == (["succeeded"] * 2, 1)
    session.close_sync()


def test_closing_tells_whoever_still_waits(registry: ToolRegistry, send, caplog):
    """A question that nobody answered leaves neither a task nor a warning behind."""
    session = Session(registry, approver=wait_for_answer, limits=Limits(watch_after_seconds=0))
    asked = threading.Event()
    session.listen(lambda event: asked.set())
    caller = threading.Thread(target=lambda: _swallow(session), daemon=True)
    caller.start()
    assert asked.wait(5)
    session.close_sync()
    caller.join(5)
    assert not caller.is_alive()
    assert "destroyed" not in caplog.text


def _swallow(session: Session, tool: str = "send", arguments: dict[str, Any] | None = None) -> None:
    with contextlib.suppress(BaseException):
        session.call_sync(tool, CALL if arguments is None else arguments)


def test_what_is_told_to_stop_by_the_close_makes_no_further_call(registry: ToolRegistry, send, effects):
    """Code that ends with its session finds it closed: nothing is asked, and nothing runs on a loop that ends."""
    begun, said = threading.Event(), list[str]()

    async def work(args, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                said.append((await session.call("send", CALL)).kind)
            except SessionError as problem:
                said.append(problem.fact)

    registry.register("work", SCHEMA, work)
    session = Session(registry, approver=FixedApprover())
    caller = threading.Thread(target=_swallow, args=(session, "work", {}), daemon=True)
    caller.start()
    assert begun.wait(5)
    session.close_sync()
    caller.join(5)
    assert (said, effects) == (["the session is closed"], [])


async def test_a_session_on_a_loop_is_not_used_from_another(registry: ToolRegistry, send):
    """In words, instead of a deadlock."""
    async with Session(registry) as session:
        with pytest.raises(SessionError, match="already lives on an event loop"):
            session.call_sync("send", CALL)


WAITING = {
    "call": lambda session: session.call_sync("nothing"),
    "script": lambda session: session.run_script_sync("PRINT(1)"),
    "close": lambda session: session.close_sync(),
}


@pytest.mark.parametrize("what", WAITING)
def test_what_runs_on_the_loop_of_a_session_does_not_wait_for_it(registry: ToolRegistry, caplog, what: str):
    """An inline tool that calls like sync code would stop its session for ever."""
    caplog.set_level(logging.CRITICAL, "lastword")

    def wait(args, context):
        with pytest.raises(SessionError, match="cannot wait for itself"):
            WAITING[what](session)
        return "refused"

    registry.register("wait", SCHEMA, wait, inline=True)
    registry.register("nothing", SCHEMA, lambda args, context: None, inline=True)
    session = Session(registry)
    told = []
    caller = threading.Thread(target=lambda: told.append(session.call_sync("wait").message), daemon=True)
    caller.start()
    caller.join(30)
    assert told == ["refused"]
    assert session.call_sync("nothing").kind == "succeeded"
    session.close_sync()


@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
def test_a_session_outlives_the_loop_it_was_opened_on(registry: ToolRegistry, send, effects, where: str):
    """A program may call `asyncio.run` more than once. Its cards can be answered and cancelled in each of them."""
    session = Session(registry, approver=wait_for_answer)

    async def ask(decide) -> str:
        call = asyncio.create_task(session.call("send", CALL))
        await until(session.pending)
        [card] = session.pending()
        await (asyncio.to_thread(decide, card) if where == "in a thread" else _at_once(decide, card))
        return (await asyncio.wait_for(call, 30)).kind

    def allow(card):
        return session.answer(card.call_id, card.allow())

    def cancel(card):
        session.cancel(card.call_id)

    for decide, kind in ((allow, "succeeded"), (allow, "succeeded"), (cancel, "denied")):
        assert asyncio.run(ask(decide)) == kind
        assert session.answer("gone", ALLOWED) == []  # Between two loops there is nothing to answer.
        session.cancel("gone")
    assert effects == [CALL, CALL]


async def _at_once(function, *args):
    return function(*args)


@requirement("TOOL-22")
async def test_two_first_calls_at_once_bring_the_past_back_once(registry: ToolRegistry):
    """Otherwise the slower one would put old state over the faster one's changes."""
    journal = Journal(Slow())
    async with Session(registry, id="s", journal=journal) as before:
        before.set_state("n", 1)

    def add(args, context):
        context.set_state("n", context.get_state_value("n") + 1)
        return context.get_state_value("n")

    registry.register("add", SCHEMA, add, inline=True)
    session = Session(registry, id="s", journal=journal)
    outcomes = await asyncio.gather(*(session.call("add") for _ in range(5)))
    assert sorted(outcome.value for outcome in outcomes) == [2, 3, 4, 5, 6]


@requirement("TOOL-45", "TOOL-47")
async def test_an_answer_written_between_two_looks_is_not_slept_through(registry: ToolRegistry, send, effects):
    """The watcher looks where the journal ends before it reads, so that what comes in between wakes it."""

    class Between(Slow):
        hook: Any = None

        async def taken(self, once):
            found = await super().taken(once)
            if self.hook and once.startswith("answer:"):
                hook, self.hook = self.hook, None
                await hook()
            return found

    store = Between()
    journal = Journal(store)
    session = Session(registry, approver=wait_for_answer, journal=journal, limits=Limits(watch_after_seconds=0))

    async def answer() -> None:
        [facts] = await journal.waiting()
        assert await journal.answer(facts, ALLOWED, "phone")

    store.hook = answer
    assert (await asyncio.wait_for(session.call("send", CALL), 30)).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45", "TOOL-47")
async def test_an_answer_from_elsewhere_on_the_same_journal_is_heard(registry: ToolRegistry, send, effects):
    """As another process would give it: by the facts of the card."""
    journal = memory_journal()
    session = Session(registry, approver=wait_for_answer, journal=journal, limits=Limits(watch_after_seconds=0))
    call = asyncio.create_task(session.call("send", CALL))
    await until(session.pending)
    await asyncio.sleep(0.01)
    [facts] = await journal.waiting()
    assert (facts["tool"], facts["arguments"], facts["session_id"]) == ("send", CALL, session.id)
    assert await journal.answer(facts, ALLOWED, by="phone")
    outcome = await asyncio.wait_for(call, 30)
    assert outcome.kind == "succeeded"
    answered = await journal.history(session.id, kind="answered")
    assert b'"approver":{"kind":"person","name":"phone","where":"program"}' in (answered[0].data or b"")
    assert effects == [CALL]
    await session.close()


async def test_the_cards_that_wait_can_be_looked_at_from_any_thread(registry: ToolRegistry, send):
    """A window reads them while calls come and go."""
    session = Session(registry, approver=FixedApprover())
    stop = threading.Event()
    problems: list[Exception] = []

    def look() -> None:
        while not stop.is_set():
            try:
                session.pending()
            except Exception as problem:
                problems.append(problem)

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(50):
        await session.call("send", CALL)
    stop.set()
    looking.join()
    assert problems == []


async def test_a_preset_can_be_changed_while_a_session_lives(registry: ToolRegistry, assistant, effects):
    """It is the user's key, and they may take it back."""
    assistant(autoApprove=True)
    session = Session(registry, preset=Preset(auto_approve=True))
    assert (await session.call("send", CALL)).approval == "auto"
    session.preset = Preset()
    assert (await session.call("send", CALL)).kind == "no_approver"
    assert session.preset == Preset()
    assert len(effects) == 1


@requirement("TOOL-41")
async def test_a_preset_taken_back_while_the_card_is_drawn_approves_nothing(registry: ToolRegistry, assistant, effects):
    """The key must be there when it is turned, and not a moment before. The card says which half is missing now."""

    drawing, taken_back = threading.Event(), threading.Event()

    def slow(params):
        drawing.set()
        assert taken_back.wait(30)
        return {"message": "Send it?"}

    async def call_while_the_preset_is_taken_back() -> Outcome:
        session.preset = Preset(auto_approve=True)
        drawing.clear()
        taken_back.clear()
        call = asyncio.create_task(session.call("send", CALL))
        await until(drawing.is_set)
        session.preset = Preset(auto_approve=False, name="careful")
        taken_back.set()
        return await call

    assistant(slow, autoApprove=True)
    asked = FixedApprover()
    session = Session(registry, approver=asked)
    outcome = await call_while_the_preset_is_taken_back()
    assert (outcome.kind, outcome.approval) == ("succeeded", "person")
    assert [request.missing for request in asked.requests] == [("preset",)]
    session._door.desk._approver = None
    assert (await call_while_the_preset_is_taken_back()).kind == "no_approver"
    assert effects == [CALL]


async def test_a_session_has_an_id_of_its_own_unless_it_is_given_one(registry: ToolRegistry):
    """Random, so that no two share one."""
    assert len({Session(registry).id for _ in range(100)}) == 100
    assert Session(registry, id="mine").id == "mine"
    assert Session(registry).registry is registry
    assert Session(registry).editor is None
