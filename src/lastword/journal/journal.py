"""The memory of calls: what was asked, answered, burned, started and finished, in the words of the product.

A journal writes records of a session into a store and reads them back. It decides what must be on disk before the next
step may happen, and nothing else: where the bytes go is the store's business (store/), and whether a call may run is
decided in call/.

The order that makes a crash harmless: *asked* is durable before anybody is asked; *answered*, *burned* and *started*
before the tool's code runs, the last two, and mostly all three, together or not at all. *Started* takes a key of the
call's own, so that not even a second yes starts it a second time. A call that was started and not finished, and whose
process is gone, is in doubt; nothing here ever starts it again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from weakref import ref

import msgspec
from msgspec import UNSET

from lastword import values
from lastword.consent import (
    Answerer,
    ApprovalRequest,
    AskingSession,
    Call,
    Kept,
    LiveCall,
    Outcome,
    People,
    Seal,
    Secrets,
    UserAction,
)
from lastword.errors import SessionError, Tampered
from lastword.journal.call_life import (
    ASKED,
    SESSION_KINDS,
    AnsweredFacts,
    FinishedFacts,
    HandedOverFacts,
    Life,
    NotAsked,
    OnceKey,
    StartedFacts,
    asked_by,
    data_of,
    read_answer,
)
from lastword.journal.programs import Programs
from lastword.store import Entry, MemoryStore, Pruned, Record, Store, refuse_if_watched

if TYPE_CHECKING:
    from lastword.tools import Tool

_encode = msgspec.json.Encoder().encode
_OF_AN_ACTION = attrgetter("primary_confirmed", "secondary_confirmed", "reason", "arguments")
_OF_AN_END = attrgetter(*FinishedFacts.__struct_fields__)
Clock = Callable[[], float]


class Journal:
    """Records of sessions in a store: in memory when none is given."""

    def __init__(self, store: Store | None = None, clock: Clock = time.time, people: People | None = None) -> None:
        self.store: Store = MemoryStore() if store is None else store
        self.clock = clock
        self.people = people or People()
        self.programs = Programs(self.store)
        self.data_of = data_of
        """What a record says. Who holds a journal needs nothing else for it."""
        self._stops, self._next_stop = 0, OnceKey.stop(1)
        self._started_here: dict[str, ref[LiveCall]] = {}
        """The calls that this process has started and not ended. One that nobody holds any more is not carried out."""

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_if_watched("change the journal")  # its clock, its people or its store, for one
        super().__setattr__(name, value)

    # What needs a person is durable before the next step.

    def asked(
        self, request: ApprovalRequest, asking: AskingSession | None = None, facts: bytes | None = None
    ) -> Awaitable[bool]:
        """Write a question down. Who has made its `facts` already hands them over."""
        us = self.programs
        facts = facts or request.written(us.current or us.own_name(), asking, us.program)
        return self.store.commit(Entry(request.session_id, "asked", request.call_id, self._now(), facts))

    def facts_of(self, request: ApprovalRequest, asking: AskingSession | None) -> Callable[[], bytes]:
        """What makes the facts that `asked` writes, in any thread: of a large request that is done beside the loop."""
        return partial(request.written, self.programs.own_name(), asking, self.programs.program)

    def answered(self, request: ApprovalRequest, action: UserAction, sealed: Seal, *more: Entry) -> Awaitable[bool]:
        """Write the answer down, and what came with it. False when the question was answered before, or elsewhere."""
        return self.store.commit(*more, self._answered(request, action, sealed))

    def burn_and_start(
        self,
        session_id: str,
        call: Call,
        tool: Tool,
        sealed: Seal,
        approval: str,
        live: LiveCall,
        use: NotAsked = ASKED,
        *answered: Entry,
    ) -> Awaitable[bool]:
        """Spend the approval and mark the call as started, together. False when it was spent before."""
        facts = _encode({"seal": sealed.digest, "nonce": sealed.nonce})
        at, once = int(self.clock() * 1_000_000), OnceKey.burn(sealed.nonce)
        burned = Entry(session_id, "burned", call.id, at, facts, once)
        begun = self._begun(session_id, call, tool, approval, use.why)
        return self._start(call.id, live, (*use.uses, *answered, burned, *begun))

    def answer_and_start(
        self,
        request: ApprovalRequest,
        action: UserAction,
        call: Call,
        tool: Tool,
        sealed: Seal,
        approval: str,
        live: LiveCall,
        use: NotAsked = ASKED,
    ) -> Awaitable[bool]:
        """Write the answer down, spend it and mark the call as started, all together. False when it had an answer."""
        answered = self._answered(request, action, sealed)  # First, so that the times of the records go forward, too.
        return self.burn_and_start(request.session_id, call, tool, sealed, approval, live, use, answered)

    async def start_again(self, session_id: str, call: Call, tool: Tool, life: Life, why: str, live: LiveCall) -> bool:
        """Mark a call in doubt as started once more. False when somebody else was faster to decide."""
        noted = self.entry(session_id, "restarted", call.id, {"why": why}, once=OnceKey.start(call.id, life.starts))
        assert life.started is not None
        with self._overtaking(life):
            started = self._started(session_id, call, tool, life.started["approval"])
            return await self._start(call.id, live, (noted, started))

    def _start(self, call_id: str, live: LiveCall, entries: tuple[Entry, ...]) -> Awaitable[bool]:
        """Mark a call as started. It counts as running for as long as its phase says so."""
        self._started_here[call_id] = ref(live)
        return self.store.commit(*entries)

    def is_running(self, life: Life) -> bool:
        """Whether a call that was started and has no end is being carried out right now, here or in another process."""
        if not life.in_doubt or life.started is None:
            return False
        process = life.started["process"]
        if process == self.programs.current:
            started = self._started_here.get(life.call_id)
            live = None if started is None else started()
            return live is not None and live.phase in LiveCall.ACTING
        if life.unwritten:
            return False
        return self.programs.does_live(process)

    def holding(self, what: str, name: str) -> AbstractContextManager[None]:
        """Carry out a call or a run alone. When a process dies the system lets go for it, and another may go on."""
        taken = f"this {what} is being carried out by another program"
        return self._holding(f"{what}:{name}", taken, name, "lastword show says how it stands")

    @contextmanager
    def _holding(self, held: str, taken: str, place: str, hint: str) -> Iterator[None]:
        release = self.store.hold(held)
        if release is None:
            raise SessionError(taken, place=place, hint=hint)
        try:
            yield
        finally:
            release()

    async def settle(self, session_id: str, outcome: Outcome, life: Life, why: str) -> bool:
        """End a call in doubt by somebody's word. False when somebody else was faster to decide."""
        ends = (self._settled(session_id, outcome.call_id, life, why), self._finished(session_id, outcome))
        with self._overtaking(life):
            return await self.store.commit(*ends)

    def _overtaking(self, life: Life) -> AbstractContextManager[None]:
        """Decide about a call that another process has started. If that one lives after all, it writes nothing more."""
        process = "" if life.started is None else life.started["process"]
        if not self.programs.is_another(process):
            return nullcontext()
        hint = "wait for it, or cancel it where it runs"
        return self._holding(f"process:{process}", "this call is still running", life.call_id, hint)

    def finished(self, session_id: str, outcome: Outcome, contents: tuple[bytes, ...] = ()) -> Awaitable[bool]:
        """Make the end of an approved call durable before anybody hears of it, and what it gave together with it."""
        committed = self.store.commit(self._finished(session_id, outcome, contents))
        started = self._started_here.get(outcome.call_id)
        if started is not None and ((live := started()) is None or live.phase not in LiveCall.ACTING):
            del self._started_here[outcome.call_id]
        return committed

    async def changing_file(self, session_id: str, call_id: str, facts: dict[str, Any]) -> None:
        """Make durable what is about to happen to a file, so that it can be taken back whatever comes next."""
        await self.store.commit(self.entry(session_id, "changing_file", call_id, facts))

    async def undone(
        self, session_id: str, call_id: str, life: Life, facts: dict[str, Any], outcome: Outcome | None = None
    ) -> bool:
        """Write down, once, that a call was taken back; one in doubt ends by that. False: somebody was faster."""
        entries = [self.entry(session_id, "undone", call_id, facts, once=OnceKey.undo(call_id))]
        if outcome is None:
            return await self.store.commit(*entries)
        entries.append(self._settled(session_id, call_id, life, f"taken back by {facts['by']}"))
        with self._overtaking(life):
            return await self.store.commit(*entries, self._finished(session_id, outcome))

    async def undone_already(self, call_id: str) -> dict[str, Any] | None:
        """Who took a call back, if anybody did."""
        record = await self.store.taken(OnceKey.undo(call_id))
        return None if record is None else {"by": "somebody"} | data_of(record)

    # What needs no person is written without waiting: by definition it may run again.

    def started_freely(self, session_id: str, call: Call, tool: Tool) -> None:
        self.store.append(self._started(session_id, call, tool, "not_needed"))

    def finished_freely(self, session_id: str, outcome: Outcome, contents: tuple[bytes, ...] = ()) -> None:
        self.store.append(self._finished(session_id, outcome, contents))

    def note(self, session_id: str, kind: str, subject: str, data: dict[str, Any]) -> None:
        """Reports, changes of state, and whatever else only has to stay in order."""
        self.store.append(self.entry(session_id, kind, subject, data))

    async def claim(self, session_id: str, kind: str, subject: str, data: dict[str, Any], once: str) -> bool:
        """Write something down that may happen only once, durably. False when it had happened before."""
        return await self.store.commit(self.entry(session_id, kind, subject, data, once))

    async def history(
        self, session_id: str, *, kind: str | Sequence[str] | None = None, after: int = 0
    ) -> Sequence[Record]:
        return await self.store.read(stream=session_id, kind=kind, after=after)

    async def recent(self, session_id: str, most: int) -> Sequence[Record]:
        """The end of a session's story, whole calls only, and every call that is still open, however old it is."""
        found = {record.seq: record for record in await self.store.read(stream=session_id, last=most)}
        subjects = {record.subject for record in found.values() if record.kind in ("asked", "started", "run_started")}
        if len(found) == most:  # Something is left out. What had begun before that would be half a story.
            found = {seq: r for seq, r in found.items() if r.subject in subjects or r.kind not in SESSION_KINDS}
        for opened in await self.store.current(("asked", "burned", "conversation"), stream=session_id):
            if opened.kind == "conversation":
                found[opened.seq] = opened
            elif opened.seq not in found:
                found |= {record.seq: record for record in await self.store.read(subject=opened.subject)}
        return [found[seq] for seq in sorted(found)]

    async def standing(self, kind: str | Sequence[str], session_id: str) -> Sequence[Record]:
        """The records of a session that still count, as they were written; Tampered when they are not."""
        records = await self.store.current(kind, stream=session_id)
        await self.store.prove(records)
        return records

    async def life(self, call_id: str) -> Life:
        """Everything that is known of one call. Raises Tampered when that is not what was written."""
        records = await self.store.read(subject=call_id)
        await self.store.prove(records)
        return Life.of(call_id, records)

    async def in_doubt(self, session_id: str | None = None) -> list[Life]:
        """The calls of which nobody knows how they ended, oldest first."""
        unended = await self.store.current("burned", stream=session_id)
        lives = [await self.life(record.subject) for record in unended]
        return [life for life in lives if life.in_doubt and not self.is_running(life)]

    async def prove_since(self, subject: str) -> None:
        """Raise Tampered when something was changed or hidden since a call or a run began.

        Before something starts by the word of old records: that it was done already may be among what was hidden.
        """
        first = await self.store.read(subject=subject, limit=1)
        if first:
            await self.store.prove_from(first[0].seq)

    async def answer_to(self, request: ApprovalRequest) -> tuple[UserAction, Seal]:
        """The answer that a question got, whoever gave it."""
        record = await self.store.taken(OnceKey.answer(request.nonce))
        assert record is not None, "asked for an answer that nobody gave"
        await self.store.prove([record])
        return read_answer(request.nonce, data_of(record))

    async def waiting(self) -> list[dict[str, Any]]:
        """The questions that nobody has answered, of all sessions, oldest first: the facts of their cards.

        `asker` says of each whether the program that asked still waits for the answer (journal/programs.py). Raises
        Tampered when one of them is not what was written.
        """
        found, damaged = await self.questions(everybodys=True)
        for problem in damaged.values():
            raise problem
        return found

    async def questions(self, *, everybodys: bool = False) -> tuple[list[dict[str, Any]], dict[str, Tampered]]:
        """What waits for whoever sits here, and apart from it, by call, the questions that are not what was written.

        For surfaces: one damaged question must not hide those of everybody else, and is itself never shown as a card.
        """
        return await self.programs.waiting_cards(None if everybodys else self.people)

    async def is_used_elsewhere(self, session_id: str) -> bool:
        """Whether another program that lives waits for an answer or carries out a call in this session."""
        if await self.programs.waits_elsewhere(session_id):
            return True
        for record in await self.store.current("burned", stream=session_id):
            life = await self.life(record.subject)
            if life.started is not None and self.programs.is_another(life.started["process"]) and self.is_running(life):
                return True
        return False

    async def stops(self) -> int:
        """How often everything was stopped, by anybody who shares this memory."""
        while await self.store.taken(self._next_stop) is not None:
            self._stops += 1
            self._next_stop = OnceKey.stop(self._stops + 1)
        return self._stops

    async def answer(
        self, facts: dict[str, Any], action: UserAction, by: Answerer | str, *more: Entry, is_stop: bool = False
    ) -> bool:
        """Answer a waiting question from anywhere, having seen these facts. False when it does not wait any more.

        Refused when whoever answers, as their principal or as the one who sits here, may not: a stop is anybody's.
        """
        records = await self.store.read(subject=facts["call_id"])
        # Whose it is says the record: the facts went through other hands.
        signed = self.people.signed(Answerer.named(by), "" if is_stop else asked_by(records), facts["call_id"])
        if any(record.kind == "finished" for record in records):
            return False  # It expired, or whoever asked is gone: a yes would be taken and nothing would happen.
        if action.grant is not None and not more:
            raise SessionError("a grant is written down with its answer", hint="rules.Grants.answer_elsewhere")
        secrets = facts["secrets"]
        for name, value in (action.arguments or {}).items():
            if name in secrets and value not in (Secrets.MASK, facts["arguments"].get(name)):
                raise SessionError(
                    f"the secret argument {name} can only be changed where the call was made",
                    hint="leave it as it is; a secret does not pass through the journal",
                )
        sealed = Seal(action.answers or facts["digest"], facts["nonce"], signed, self.clock())
        return await self.store.commit(*more, self._answer(facts["session_id"], facts["call_id"], action, sealed))

    async def content(self, call_id: str, digest: str) -> tuple[Kept, bytes]:
        """What a call returned beside its value: what is known of it, and the bytes, proven against their digest."""
        kept = (await self.life(call_id)).kept(digest)
        data = await self.store.content(digest)
        if data is None:
            raise Tampered(
                f"{kept.name}, which a record holds, is not there any more",
                place=call_id,
                hint="it was taken out of the journal; restore from a copy to see it",
            )
        return kept, data

    async def prove_contents(self) -> None:
        """Raise Tampered when a record names content that is not there, or is not what it was."""
        after = 0
        while page := await self.store.read(kind="finished", after=after, limit=self.store.PAGE_RECORDS):
            after = page[-1].seq
            for record in page:
                for kept in Life.content_of(record):
                    await self.content(record.subject, kept.digest)

    async def unfinished(self) -> set[str]:
        """The sessions that still have a waiting question, a call in doubt or an unfinished run."""
        begun = await self.store.current(("burned", "run_started", "question_asked"))
        return {record.stream for record in begun} | {facts["session_id"] for facts in await self.waiting()}

    async def prune(self, before: float) -> Pruned:
        """Forget what the records of old sessions say, and what they hold. What is still open is kept whole."""
        kept = await self.unfinished()
        old: dict[str, list[int]] = {}
        after = 0
        while page := await self.store.read(after=after, limit=self.store.PAGE_RECORDS):
            after = page[-1].seq
            for record in page:
                if record.at >= before * 1_000_000:
                    # One record of today keeps its session, whatever the clock said before and after it.
                    kept.add(record.stream)
                elif record.kind in SESSION_KINDS and record.data is not None:
                    old.setdefault(record.stream, []).append(record.seq)
        return await self.store.forget(seq for stream, seqs in old.items() if stream not in kept for seq in seqs)

    async def close(self) -> None:
        await self.store.close()
        self.programs.let_go()

    def _answered(self, request: ApprovalRequest, action: UserAction, sealed: Seal) -> Entry:
        if action.arguments is not None:
            hidden = Secrets.hide(action.arguments, request.manifest.secrets)
            action = msgspec.structs.replace(action, arguments=hidden)
        return self._answer(request.session_id, request.call_id, action, sealed)

    def _answer(self, session_id: str, call_id: str, action: UserAction, sealed: Seal) -> Entry:
        given, rest = (sealed.request, sealed.approver, sealed.answered_at), True if action.rest else UNSET
        facts = _encode(AnsweredFacts(*_OF_AN_ACTION(action), *given, rest, action.acts, action.grant))
        at, once = int(self.clock() * 1_000_000), OnceKey.answer(sealed.nonce)
        return Entry(session_id, "answered", call_id, at, facts, once)

    def _begun(self, session_id: str, call: Call, tool: Tool, approval: str, why: str) -> tuple[Entry, ...]:
        """The first start of a call; of one that another program carries out, that it was handed over."""
        once = OnceKey.start(call.id, 0)
        if tool.carried_out_by is None:
            return (self._started(session_id, call, tool, approval, once, why),)
        # It stands where others have their start, and is its end as far as this program goes: it must not count
        # as open for as long as the other may take.
        data = HandedOverFacts(call.tool, msgspec.Raw(call.arguments), call.origin, approval, tool.carried_out_by, why)
        handed = Entry(session_id, "handed_over", call.id, self._now(), _encode(data), once, irrevocable=True)
        return handed, self._finished(session_id, Outcome.handed_over(call, tool.carried_out_by, approval, why))

    def _started(
        self, session_id: str, call: Call, tool: Tool, approval: str, once: str | None = None, why: str = ""
    ) -> Entry:
        secrets = tool.secrets
        shown = call.arguments if not secrets else values.written(Secrets.hide(values.decode(call.arguments), secrets))
        name, needed = self.programs.current or self.programs.own_name(), approval != "not_needed"
        idempotent, process = tool.manifest.idempotent, name if needed else ""
        data = StartedFacts(call.tool, tool.digest, msgspec.Raw(shown), call.origin, approval, idempotent, process, why)
        at = int(self.clock() * 1_000_000)
        return Entry(session_id, "started", call.id, at, _encode(data), once, needed)

    def process_name(self) -> str:
        """Under which name this process holds what it asked and started, for as long as it lives."""
        return self.programs.own_name()

    def _settled(self, session_id: str, call_id: str, life: Life, why: str) -> Entry:
        return self.entry(session_id, "settled", call_id, {"why": why}, once=OnceKey.start(call_id, life.starts))

    def _finished(self, session_id: str, outcome: Outcome, contents: tuple[bytes, ...] = ()) -> Entry:
        facts = _encode(FinishedFacts(*_OF_AN_END(outcome)))
        at = int(self.clock() * 1_000_000)
        return Entry(session_id, "finished", outcome.call_id, at, facts, None, False, contents)

    def entry(self, session_id: str, kind: str, subject: str, data: Any, once: str | None = None) -> Entry:
        """Something to write down now, in one commit with something else."""
        return Entry(session_id, kind, subject, int(self.clock() * 1_000_000), _encode(data), once)

    def _now(self) -> int:
        return int(self.clock() * 1_000_000)
