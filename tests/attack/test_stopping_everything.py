"""Stopping everything, and whoever tries to get something through all the same.

The promise: nothing that was asked for before the stop is allowed after it, whichever program asked, whoever says yes,
and at whatever moment the stop falls. And what could not be stopped is not called stopped.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from lastword import Answerer, Limits, Preset, Run, Session, ToolRegistry, open_journal, wait_for_answer
from lastword.call import Stopped, stop
from lastword.call import stop_all as stopping
from lastword.consent import ALLOWED, ApprovalRequest, Call, LiveCall, Outcome
from lastword.journal import Journal, OnceKey, data_of
from lastword.journal.programs import this_program
from lastword.store import Entry, MemoryStore, Record
from lastword.testing import FixedApprover, memory_journal
from lastword.tools import Manifest, Tool
from requirements import requirement
from sending import CALL, asked, ended, left_waiting, until

SCRIPT = 'CALL send { to: "Ann", amount: 5 }'
ADA = Answerer.person("ada", "terminal")


@pytest.fixture(autouse=True)
def quick_ears(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a quarter of a second for people."""
    monkeypatch.setattr(stopping, "LISTEN_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(stopping, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(stopping, "HEARD_SECONDS", 0.2)


async def stop_all(journal: Journal) -> Stopped:
    return await (await stop(journal, ADA)).settled()


async def only_write_it_down(journal: Journal) -> None:
    """A stop whose program died before it could deny anything."""
    number = await journal.stops() + 1
    assert await journal.claim("stop", "stop", OnceKey.stop(number), {"by": {"kind": "person"}}, OnceKey.stop(number))


@pytest.fixture
def hangs(registry: ToolRegistry, effects: list[Any]) -> Iterator[Callable[..., Any]]:
    """Tools that go on until they are stopped, after their effect; in a thread they do not even look."""
    gate = threading.Event()

    async def hang(arguments: dict[str, Any], context: Any) -> str:
        effects.append("began")
        await asyncio.Event().wait()
        return "never"

    def stubborn(arguments: dict[str, Any], context: Any) -> str:
        effects.append("began")
        gate.wait(20)
        return "at last"

    def make(name: str, *, asks: bool = True, thread: bool = False, **facts: Any) -> None:
        manifest = Manifest(id=name, display_name=name, description="Takes for ever.", require_approval=asks, **facts)
        registry.add(Tool(manifest, "registry", stubborn if thread else hang))

    yield make
    gate.set()


async def begun(session: Session, tool: str, effects: list[Any]) -> asyncio.Task[Outcome]:
    before = len(effects)
    call = asyncio.create_task(session.call(tool))
    await until(lambda: len(effects) > before)
    return call


@requirement("TOOL-58", "TOOL-59")
async def test_what_waits_is_denied_in_every_session_and_can_never_be_allowed(registry: ToolRegistry, send, effects):
    """By whichever way the late yes comes: the card's own window, another window, another program. And it is remembered
    who stopped: the answers are theirs."""
    journal = memory_journal()
    sessions = [Session(registry, approver=wait_for_answer, journal=journal) for _ in range(3)]
    waiting = [(session, *await asked(session)) for session in sessions]
    questions = await journal.waiting()
    stopped = await stop_all(journal)
    assert {call.call_id for call in stopped.denied} == {facts["call_id"] for facts in questions}
    for (session, call, card), facts in zip(waiting, questions, strict=True):
        assert session.answer(card.call_id, card.allow()) == []
        assert not await journal.answer(facts, ALLOWED, "too late")
        outcome = await call
        assert outcome.kind == "denied"
        assert "Their reason: everything was stopped" in outcome.message
    assert (effects, await journal.waiting(), stopped.is_complete) == ([], [], True)
    wanted = {"kind": "person", "name": "ada", "where": "terminal"}
    [record] = await journal.store.read(kind="stop")
    answers = await journal.store.read(kind="answered")
    assert [data_of(record)["by"], *(data_of(answer)["approver"] for answer in answers)] == [wanted] * 4


class Slow(MemoryStore):
    """Whoever reads the questions that wait, in order to deny them, gets to it after their program has."""

    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        if kind == "asked":
            while not await self.read(kind="finished"):
                await self.changed((await self.head()).seq)
        return await super().current(kind, stream=stream)


@requirement("TOOL-58")
async def test_a_card_that_its_own_program_denies_first_is_told_as_denied(registry: ToolRegistry, send, effects):
    """It heard of the stop before whoever stopped got to its card. That is no cancellation: it never ran."""
    journal = Journal(Slow())
    session = Session(registry, approver=wait_for_answer, journal=journal, limits=Limits(watch_after_seconds=0))
    call, _ = await asked(session)
    stopped = await stop_all(journal)
    assert (await call).kind == "denied"
    assert ([reached.tool for reached in stopped.denied], stopped.cancelled, effects) == (["send"], (), [])


@requirement("TOOL-58")
async def test_a_card_that_a_dead_program_left_is_denied_for_good(registry: ToolRegistry, send, effects):
    """Whoever goes on with its run finds the no, and asks nobody."""
    journal = memory_journal()
    await run_that_waits(registry, journal)
    assert [call.call_id for call in (await stop_all(journal)).denied] == ["r.0"]
    run, asked_again = await resumed(registry, journal)
    assert (run.status, asked_again, effects) == ("done", [], [])


async def run_that_waits(registry: ToolRegistry, journal: Journal, script: str = SCRIPT) -> None:
    """A run that its program left while its card waits."""
    session = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    await left_waiting(session, session.run_script(script, run_id="r"))


async def resumed(registry: ToolRegistry, journal: Journal, answer: Any = ALLOWED) -> tuple[Run, list[ApprovalRequest]]:
    """Somebody goes on with it: how it ended, and what they were asked."""
    approver = FixedApprover(answer)
    return await Session(registry, id="s", approver=approver, journal=journal).resume("r"), approver.requests


async def left_with_a_yes(registry: ToolRegistry, journal: Journal) -> None:
    """The same, where its card was allowed from elsewhere, by somebody who did not know that its program was gone."""
    await run_that_waits(registry, journal)
    [facts] = await journal.waiting()
    assert await journal.answer(facts, ALLOWED, "phone")


@requirement("TOOL-58")
@pytest.mark.parametrize("how", ["whole", "only written down"])
async def test_a_yes_that_has_started_nothing_is_taken_back(registry: ToolRegistry, send, effects, how: str):
    """It was given before the stop, and the run goes on after it, within the minute. The person is asked anew. And it
    can be spent by nobody, not even by a program of an earlier version, which knows nothing of stops."""
    journal = memory_journal()
    await left_with_a_yes(registry, journal)
    if how == "whole":
        assert [call.call_id for call in (await stop_all(journal)).voided] == ["r.0"]
        [question] = await journal.store.read(kind="asked")
        assert await journal.store.taken(OnceKey.burn(data_of(question)["nonce"])) is not None, "its key is gone"
    else:
        await only_write_it_down(journal)
    _, again = await resumed(registry, journal, ApprovalRequest.deny)
    assert [card.problem for card in again] == ["it was asked before, and everything was stopped since"]
    assert effects == []


@requirement("TOOL-58")
async def test_a_question_of_an_earlier_version_counts_as_asked_before_the_stop(registry: ToolRegistry, send, effects):
    """Its record does not say under which stop it was asked."""
    journal, other = memory_journal(), memory_journal()
    await left_with_a_yes(registry, journal)
    await only_write_it_down(journal)
    for record in await journal.store.read():
        data = {name: said for name, said in data_of(record).items() if name not in ("process", "stops")}
        if record.once:
            await other.claim(record.stream, record.kind, record.subject, data, record.once)
        else:
            other.note(record.stream, record.kind, record.subject, data)
    _, again = await resumed(registry, other, ApprovalRequest.deny)
    assert (len(again), effects) == (1, [])


class StopsAt(MemoryStore):
    """A memory in which a stop is written right before, or right after, the first group with such a record."""

    def __init__(self, kind: str, *, after: bool = False) -> None:
        super().__init__()
        self.kind, self.after, self.journal = kind, after, Journal(self)

    async def commit(self, *entries):
        if not any(entry.kind == self.kind for entry in entries) or await self.journal.stops():
            return await super().commit(*entries)
        if not self.after:
            await only_write_it_down(self.journal)
        done = await super().commit(*entries)
        if self.after:
            await only_write_it_down(self.journal)
        return done


@requirement("TOOL-58", "TOOL-45")
@pytest.mark.parametrize("answer", ["allow", "edit", "auto", "elsewhere"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["asked", "answered", "started"])
async def test_a_stop_at_any_moment_before_the_code_runs_keeps_it_from_running(
    registry: ToolRegistry, assistant, effects, answer: str, kind: str, after: bool
):
    """Nobody has heard of it yet. The start looks for itself, after it is on the disk and before the tool's code."""
    assistant(autoApprove=True)
    store = StopsAt(kind, after=after)

    async def elsewhere(request: ApprovalRequest):
        assert await store.journal.answer(request.facts(), request.allow(), "phone")
        return await wait_for_answer(request)

    approver = {
        "allow": FixedApprover(),
        "edit": FixedApprover(lambda request: request.edit(amount=1)),
        "auto": None,
        "elsewhere": elsewhere,
    }[answer]
    preset, limits = Preset(answer == "auto"), Limits(watch_after_seconds=0)
    session = Session(registry, approver=approver, journal=store.journal, preset=preset, limits=limits)
    outcome = await session.call("send", CALL)
    assert outcome.kind in ("cancelled", "denied")
    assert effects == []
    await session.close()


@requirement("TOOL-58")
async def test_a_call_is_not_asked_for_again_after_a_stop(registry: ToolRegistry, send, effects):
    """The answer did not fit, for whatever reason. Before a stop the card would be drawn again."""
    journal = memory_journal()

    async def misses(request: ApprovalRequest):
        await only_write_it_down(journal)
        return type(ALLOWED)(True, False, answers="0" * 64)

    approver = FixedApprover([misses, ALLOWED])
    outcome = await Session(registry, approver=approver, journal=journal).call("send", CALL)
    assert (outcome.kind, len(approver.requests), effects) == ("cancelled", 1, [])
    assert "before it ran. Nothing was done" in outcome.message


@requirement("TOOL-58")
@pytest.mark.parametrize("thread", [False, True], ids=["task", "thread"])
@pytest.mark.parametrize("asks", [True, False], ids=["approved", "free"])
async def test_what_runs_is_cancelled_in_another_program(
    registry: ToolRegistry, hangs, effects, shared_address: str, asks: bool, thread: bool
):
    """It hears of it through the file alone, though no card of it waits."""
    hangs("hang", asks=asks, thread=thread)
    theirs, ours = (open_journal(shared_address) for _ in range(2))
    limits = Limits(cancel_grace_seconds=0.1)
    session = Session(registry, approver=FixedApprover(), journal=theirs, limits=limits)
    call = await begun(session, "hang", effects)
    stopped = await stop_all(ours)
    outcome = await call
    # A thread that was approved and does not stop may still act, so nobody knows how it ends.
    assert outcome.kind == ("outcome_unknown" if asks and thread else "cancelled")
    assert [reached.call_id for reached in stopped.cancelled] == [outcome.call_id]
    assert [reached.call_id for reached in stopped.working] == ([outcome.call_id] if thread else [])
    assert stopped.is_complete is not thread
    assert stopped.in_doubt == stopped.unheard == ()
    await session.close()
    await theirs.close()
    await ours.close()


class Overtaking(MemoryStore):
    """The record of a call that asks nobody does not wait for the disk, and a stop gets there before it."""

    def append(self, entry: Entry) -> None:
        if entry.kind == "started":
            data = b'{"by":{"kind":"person","where":"command"}}'
            stopped = Entry("stop", "stop", OnceKey.stop(1), entry.at + 1, data, OnceKey.stop(1))
            with pytest.raises(StopIteration):  # It waits for nothing.
                super().commit(stopped).__await__().send(None)
        super().append(entry)


@requirement("TOOL-58")
async def test_a_free_call_that_began_right_before_the_stop_is_cancelled(registry: ToolRegistry, hangs, effects):
    """It began before, whatever the order of the records says."""
    hangs("hang", asks=False)
    outcome = await Session(registry, journal=Journal(Overtaking())).call("hang")
    assert (outcome.kind, effects) == ("cancelled", ["began"])


@requirement("TOOL-58")
async def test_a_call_of_a_program_that_does_not_listen_is_named(registry, send, shared_address: str, monkeypatch):
    """It lives, and holds its name; whether it ever hears of the stop nobody knows."""
    deaf, ours = (open_journal(shared_address) for _ in range(2))
    seen = FixedApprover(ApprovalRequest.deny)
    await Session(registry, approver=seen).call("send", CALL)
    request, from_elsewhere = seen.requests[0], LiveCall()
    await deaf.asked(request)
    await deaf.answer(request.facts(), request.allow(), "ada")
    _, sealed = await deaf.answer_to(request)
    call = Call(request.call_id, "send", b"{}")
    assert await deaf.burn_and_start(request.session_id, call, send, sealed, "person", from_elsewhere)
    monkeypatch.setattr(stopping, "SETTLED_SECONDS", 0.2)
    stopped = await stop_all(ours)
    assert [reached.call_id for reached in stopped.unheard] == [request.call_id]
    assert not stopped.is_complete
    assert stopped.words()[0] == "Not everything could be stopped."
    await deaf.close()
    later = await stop_all(ours)
    assert [reached.call_id for reached in later.in_doubt] == [request.call_id]
    assert "is in doubt, its program is dead: lastword resolve" in "\n".join(later.words())
    await ours.close()


@requirement("TOOL-58")
@pytest.mark.parametrize("where", ["while a card waits", "while a tool runs", "between quick calls"])
async def test_a_script_makes_no_further_call(registry: ToolRegistry, assistant, hangs, effects, where: str):
    """The call that was stopped is one of many. The rest must not go on as if it had merely been denied."""
    journal = memory_journal()
    hangs("hang")
    calls: list[int] = []

    def quick(arguments: dict[str, Any], context: Any) -> int:
        calls.append(1)
        return 1

    registry.register("quick", {"description": "Counts.", "parameters": []}, quick, inline=True)
    assistant()
    text = {
        "while a card waits": f"{SCRIPT}\n{SCRIPT}",
        "while a tool runs": f"CALL hang {{}}\n{SCRIPT}",
        "between quick calls": f"FOR n IN many DO\nCALL quick {{}}\nEND\n{SCRIPT}",
    }[where]
    approver = wait_for_answer if where == "while a card waits" else FixedApprover([ALLOWED])
    session = Session(registry, id="s", approver=approver, journal=journal, limits=Limits(watch_after_seconds=0))
    run = asyncio.create_task(session.run_script(text, {"many": list(range(100_000))}))
    await until(lambda: session.pending() or effects or len(calls) > 100)
    await stop_all(journal)
    stopped = await run
    assert stopped.status == "cancelled"
    assert "everything was stopped" in str(stopped.error)
    assert effects == (["began"] if where == "while a tool runs" else [])
    assert len(await journal.store.read(kind="asked")) == (0 if where == "between quick calls" else 1)


@requirement("TOOL-58")
@pytest.mark.parametrize("asks", [True, False], ids=["approved", "free"])
async def test_a_stop_of_yesterday_stops_nothing_of_today(registry: ToolRegistry, effects, asks: bool):
    """A session that was idle hears of it late, and must not take it for its new call's."""
    journal = memory_journal()
    gate = asyncio.Event()

    async def work(arguments: dict[str, Any], context: Any) -> str:
        effects.append("began")
        await gate.wait()
        return "done"

    registry.register("work", {"description": "Works.", "parameters": []}, work, require_approval=asks)
    session = Session(registry, approver=FixedApprover(), journal=journal)
    await session.open()
    await stop_all(journal)
    call = await begun(session, "work", effects)
    await until(lambda: session._subscription._stops == 1)
    gate.set()
    assert (await call).kind == "succeeded"


@requirement("TOOL-58", "NUWA-62")
async def test_a_run_that_is_resumed_after_a_stop_goes_on(registry: ToolRegistry, send, effects):
    """Who resumes it wants it. Only what was asked before is over."""
    journal = memory_journal()
    await run_that_waits(registry, journal, f"{SCRIPT}\n{SCRIPT}")
    await stop_all(journal)
    run, again = await resumed(registry, journal)
    assert (run.status, len(again), effects) == ("done", 1, [CALL])


@requirement("TOOL-58")
async def test_an_idempotent_call_in_doubt_is_not_retried_by_itself_after_a_stop(
    registry: ToolRegistry, hangs, effects
):
    """What was agreed to was agreed to before. A person can still say: again."""
    hangs("hang", idempotent=True)
    journal = memory_journal()
    session = Session(registry, id="s", approver=FixedApprover(), journal=journal)
    call = asyncio.create_task(session.call("hang", call_id="c"))
    await until(lambda: effects)
    dead = Journal(MemoryStore())
    for record in await journal.store.read():
        await dead.store.commit(
            Entry(record.stream, record.kind, record.subject, record.at, record.data or b"", record.once)
        )
    await ended(call)
    await stop_all(dead)
    again = Session(registry, id="s", approver=FixedApprover([]), journal=dead)
    assert (await again.call("hang", call_id="c")).kind == "outcome_unknown"
    assert effects == ["began"]


@requirement("TOOL-58")
async def test_a_question_that_somebody_changed_does_not_keep_the_others_from_being_denied(
    registry: ToolRegistry, send, effects
):
    """One bad record must not be a way to survive a stop."""
    journal = memory_journal()
    journal.note("s", "asked", "bad", {"not": "a question"})
    session = Session(registry, approver=wait_for_answer, journal=journal)
    call, _ = await asked(session)
    stopped = await stop_all(journal)
    assert (stopped.unreadable, len(stopped.denied)) == (("bad",), 1)
    assert (await call).kind == "denied"
    words = "\n".join(stopped.words())
    assert "a question was changed by somebody, and counts no more (bad): lastword journal verify" in words


@requirement("TOOL-58")
async def test_what_was_stopped_is_said_in_words_and_many_alike_in_one_line(registry: ToolRegistry, send, hangs):
    """An id says nothing to whoever pressed stop, and two hundred lines are not read."""
    journal = memory_journal()
    for many in ("mark", "look"):
        hangs(many)
    session = Session(registry, approver=wait_for_answer, journal=journal)
    odd = {"to": "A\u202enn", "amount": 5}
    calls = [asyncio.create_task(session.call("send", odd))]
    calls += [asyncio.create_task(session.call("mark")) for _ in range(stopping.MANY)]
    calls += [asyncio.create_task(session.call("look")) for _ in range(2)]
    await until(lambda: len(session.pending()) == len(calls))
    words = (await stop_all(journal)).words()
    asked = f", asked for by {this_program()},"
    assert words == [
        "Everything is stopped.",
        f"  Send money (to: A‹U+202E›nn, amount: 5){asked} waited for an answer, and was denied",
        f"  mark, {stopping.MANY} times{asked} waited for an answer, and was denied",
        *[f"  look{asked} waited for an answer, and was denied"] * 2,
    ]
    await asyncio.gather(*calls)


class Faster(MemoryStore):
    """Somebody else writes the same stop down a moment before."""

    async def commit(self, *entries: Entry) -> bool:
        if entries[0].kind == "stop" and await self.taken(OnceKey.stop(1)) is None:
            assert await super().commit(entries[0])
        return await super().commit(*entries)


@requirement("TOOL-58")
async def test_two_who_stop_in_the_same_moment_both_stop():
    """Neither may fail because the other was faster."""
    stopped = await stop_all(Journal(Faster()))
    assert stopped.number == 2
    assert stopped.words() == ["Nothing waited, and nothing ran."]


@requirement("TOOL-58", "TOOL-47")
async def test_a_card_that_a_person_changes_after_a_stop_says_that_it_is_newer(registry: ToolRegistry, send):
    """Both of its questions do: the one they saw, and the one that their change became."""
    journal = memory_journal()
    await only_write_it_down(journal)
    approver = FixedApprover(lambda request: request.edit(amount=1))
    assert (await Session(registry, approver=approver, journal=journal).call("send", CALL)).success
    assert [data_of(record)["stops"] for record in await journal.store.read(kind="asked")] == [1, 1]


@requirement("TOOL-58")
async def test_a_session_stops_everything_of_its_memory(registry: ToolRegistry, hangs, send, effects, monkeypatch):
    """For a window's button: its own calls at once, though it does not listen yet, and everybody else's."""
    monkeypatch.setattr(stopping, "LISTEN_AFTER_SECONDS", 1000)
    hangs("hang")
    journal = memory_journal()
    mine = Session(registry, approver=FixedApprover(), journal=journal)
    other = Session(registry, approver=wait_for_answer, journal=journal)
    running = await begun(mine, "hang", effects)
    waiting, _ = await asked(other)
    stopped = await mine.stop(ADA)
    assert [reached.tool for reached in stopped.denied] == ["send"]
    assert [reached.tool for reached in stopped.cancelled] == ["hang"]
    assert ((await running).kind, (await waiting).kind) == ("cancelled", "denied")
    assert (await mine.call("unknown")).kind == "unknown_tool"


@requirement("TOOL-58")
async def test_what_else_would_allow_something_is_revoked_first():
    """Grants and plans, when there are any: they must not answer what the denial leaves open."""
    journal, order = memory_journal(), []

    async def grants(by: Answerer) -> list[str]:
        order.append((await journal.stops(), by))
        return ["the grant g1"]

    stopped = await (await stop(journal, ADA, revoke=[grants])).settled()
    assert order == [(1, ADA)]
    assert stopped.words() == ["Everything is stopped.", "  revoked: the grant g1"]
