"""Stop everything: what waits is denied, what runs is cancelled, and what could not be stopped is said.

One act for all sessions and programs that share a journal. It begins with a durable record that takes the next number;
whoever starts a call looks, after the start is on the disk, whether that number is still the one it was asked under. So
a start comes before the stop, and is cancelled, or after it, and does not run: nothing that was asked for before can be
allowed after. Denying the cards is for the people who see them.

Programs hear of it as they hear answers, say which calls they stopped, and a little later which code went on all the
same. Who does not answer in time is named, and so is what nobody can stop: calls of programs that are dead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.call.setting import CANCEL_GRACE_SECONDS
from lastword.card import called, one_line, summary_of
from lastword.consent import Answerer, LiveCall, Outcome, Secrets, UserAction
from lastword.errors import StoreError, Tampered
from lastword.journal import Journal, Life, OnceKey, ToolQuestions, data_of, read_answer

if TYPE_CHECKING:
    from lastword.call.door import Door
    from lastword.store import Record

log = logging.getLogger("lastword")

# How long to leave a failing disk alone before listening again.
DEAF_SECONDS = 1.0
# What lasts no longer is over before anybody could stop it, and pays nothing for being stoppable.
LISTEN_AFTER_SECONDS = 0.25
# How often to look for a stop while something runs and no card waits. A look is one question to an index.
LOOK_SECONDS = 0.25
# How often to look whether code that was told to stop has stopped.
SETTLE_SECONDS = 0.05

STREAM = "stop"
"""Where the acts themselves are written down. Their number is in their key."""

# Whoever listens has heard by then. Somebody's call may have begun a moment ago, and its session be about to listen.
HEARD_SECONDS = LISTEN_AFTER_SECONDS + LOOK_SECONDS + 0.2
# Whoever heard has seen by then whether their code stops.
SETTLED_SECONDS = HEARD_SECONDS + CANCEL_GRACE_SECONDS + 0.5

# So many calls of one tool of one program are one line.
MANY = 5

Revoke = Callable[[Answerer], Awaitable[Sequence[str]]]
"""Takes back what would allow something later, such as grants and plans; says in words what it took back."""


class Reached(msgspec.Struct, frozen=True):
    """A call that a stop was about."""

    call_id: str
    tool: str
    session_id: str
    name: str = ""
    """What people call the tool; marked for a screen, as the next two are."""
    about: str = ""
    """Its arguments, in a line."""
    program: str = ""
    """Who asked for it."""

    @property
    def called(self) -> str:
        """The call as a person knows it. Its id says nothing to anybody."""
        return f"{self.name} ({self.about})" if self.about else self.name


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What one act of stopping everything did, and what it could not do."""

    number: int
    denied: tuple[Reached, ...] = ()
    """They waited for an answer."""
    voided: tuple[Reached, ...] = ()
    """They were allowed, and had not started."""
    cancelled: tuple[Reached, ...] = ()
    """They ran, or were about to."""
    revoked: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Questions whose records were changed by somebody. No answer can be given to them, and none counts."""
    working: tuple[Reached, ...] = ()
    """They were cancelled, and their code goes on all the same."""
    unheard: tuple[Reached, ...] = ()
    """They run in a program that has not answered."""
    in_doubt: tuple[Reached, ...] = ()
    """Their program is dead, and nobody knows how they ended."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing goes on that could be seen."""
        return not (self.working or self.unheard)

    def words(self) -> list[str]:
        """Line by line, for people, and marked for a screen."""
        going_on = {call.call_id for call in self.working}
        stopped = [call for call in self.cancelled if call.call_id not in going_on]
        lines = [
            *_told_of(self.denied, "waited for an answer, and was denied"),
            *_told_of(self.voided, "was allowed, and will not start"),
            *_told_of(stopped, "was cancelled"),
            *(f"revoked: {what}" for what in self.revoked),
        ]
        first = "Everything is stopped." if lines else "Nothing waited, and nothing ran."
        rest = [
            *_told_of(self.working, "was cancelled, and its code still runs: end the program"),
            *_told_of(self.unheard, "runs in a program that does not answer: end the program"),
            *(
                f"{call.called} is in doubt, its program is dead: lastword resolve {call.call_id}"
                for call in self.in_doubt
            ),
            *(
                f"a question was changed by somebody, and counts no more ({call_id}): lastword journal verify"
                for call_id in self.unreadable
            ),
        ]
        if not self.is_complete:
            first = "Not everything could be stopped."
        return [
            first,
            *(f"  {line}" for line in lines),
            *(["What is left:"] if rest else []),
            *(f"  {r}" for r in rest),
        ]


def _told_of(reached: Sequence[Reached], what: str) -> Iterator[str]:
    """A line for each call, and one for many that are alike: nobody reads two hundred of them."""
    alike: dict[tuple[str, str], list[Reached]] = {}
    for call in reached:
        alike.setdefault((call.tool, call.program), []).append(call)
    for calls in alike.values():
        asked = f", asked for by {calls[0].program}," if calls[0].program else ""
        if len(calls) < MANY:
            yield from (f"{call.called}{asked} {what}" for call in calls)
        else:
            yield f"{calls[0].name}, {len(calls)} times{asked or ','} {what}"


async def stop(journal: Journal, by: Answerer, *, revoke: Iterable[Revoke] = ()) -> StopUnderWay:
    """Stop everything. What waits is denied when this returns; `settled` says what became of what ran."""
    number = await journal.stops() + 1
    while not await journal.claim(STREAM, "stop", key := OnceKey.stop(number), {"by": msgspec.to_builtins(by)}, key):
        number += 1  # Somebody else stopped everything in the same moment.
    stopping = StopUnderWay(journal, number)
    for take_back in revoke:
        stopping.revoked += await take_back(by)
    await stopping.deny(by)
    await stopping.find_running()
    return stopping


class StopUnderWay:
    """A stop that is written down, until everything that it reached has come to its end."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal = journal
        self._number = number
        self.revoked: list[str] = []
        self._denied: list[Reached] = []
        self._voided: list[Reached] = []
        self._unreadable: list[str] = []
        self._running: list[Life] = []
        self._in_doubt: list[Reached] = []

    async def deny(self, by: Answerer) -> None:
        """Deny every question that waits, and take back every yes that has started nothing yet."""
        store = self._journal.store
        no = UserAction(False, True, Outcome.STOPPED)
        for record in await store.current("asked"):
            try:
                facts = data_of(record)
                # Nothing is proven here: a no is safe whatever the record says, and must not be kept from the others.
                if facts and await self._journal.answer(facts, no, by, is_stop=True):
                    self._denied.append(_reached(record, facts))
                elif facts and await self._void(record, facts["nonce"]):
                    self._voided.append(_reached(record, facts))
            except (Tampered, KeyError):
                self._unreadable.append(record.subject)

    async def _void(self, record: Record, nonce: str) -> bool:
        """Spend a yes on nothing. False when it was a no, or has started its call."""
        answer = await self._journal.store.taken(OnceKey.answer(nonce))
        if answer is None or answer.data is None or not read_answer(nonce, data_of(answer))[0].agrees:
            return False
        why = {"why": Outcome.STOPPED}
        return await self._journal.claim(record.stream, "voided", record.subject, why, once=OnceKey.burn(nonce))

    async def find_running(self) -> None:
        """Look which calls had started with somebody's consent and have no end."""
        unended = await self._journal.store.current("burned")
        for call_id in dict.fromkeys(record.subject for record in unended):
            life = await self._journal.life(call_id)
            if self._journal.is_running(life):
                self._running.append(life)
            elif life.in_doubt:
                self._in_doubt.append(_of(life))

    async def settled(self) -> Stopped:
        """Wait until whoever listens has stopped what runs there, for a bounded time, and say how it stands."""
        loop, store = asyncio.get_running_loop(), self._journal.store
        began = loop.time()
        while True:
            head = await store.head()
            heard, settled = await self._heard()
            missing = {life.session_id for life in self._running} | set(heard)
            limit = HEARD_SECONDS if missing <= settled.keys() else SETTLED_SECONDS
            try:
                async with asyncio.timeout(began + limit - loop.time()):
                    await store.changed(head.seq)
            except TimeoutError:
                return await self._told(*await self._heard())

    async def _heard(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """What the sessions that heard of it have stopped, and what of it goes on; by session."""
        heard: dict[str, list[str]] = {}
        settled: dict[str, list[str]] = {}
        kinds = ("stop_heard", "stop_settled")
        for record in await self._journal.store.read(subject=OnceKey.stop(self._number), kind=kinds):
            if record.kind == "stop_heard":
                heard[record.stream] = data_of(record).get("calls", [])
            else:
                settled[record.stream] = data_of(record).get("working", [])
        return heard, settled

    async def _told(self, heard: dict[str, list[str]], settled: dict[str, list[str]]) -> Stopped:
        lives = {call_id: await self._journal.life(call_id) for calls in heard.values() for call_id in calls}
        here = {call.call_id for call in (*self._denied, *self._voided)}
        there = [life for call_id, life in lives.items() if call_id not in here]
        working = {call_id for calls in settled.values() for call_id in calls}
        unheard: list[Reached] = []
        for life in [await self._journal.life(life.call_id) for life in self._running if life.call_id not in lives]:
            if self._journal.is_running(life):
                unheard.append(_of(life))
            elif life.in_doubt:
                self._in_doubt.append(_of(life))
        return Stopped(
            number=self._number,
            # A program that heard of it first has denied its card itself.
            denied=(*self._denied, *(_of(life) for life in there if life.started is None)),
            voided=tuple(self._voided),
            cancelled=tuple(_of(life) for life in there if life.started is not None),
            revoked=tuple(self.revoked),
            unreadable=tuple(self._unreadable),
            working=tuple(_of(lives[call_id]) for call_id in lives if call_id in working),
            unheard=tuple(unheard),
            in_doubt=tuple(self._in_doubt),
        )


def _reached(record: Record, facts: dict[str, Any]) -> Reached:
    return Reached(record.subject, facts["tool"], record.stream, *_words_of(facts, record.stream))


def _of(life: Life) -> Reached:
    facts = life.started or life.asked or life.finished or {}
    known = _words_of((life.asked or {}) | facts, life.session_id)
    return Reached(life.call_id, facts.get("tool", "a tool"), life.session_id, *known)


def _words_of(facts: dict[str, Any], session_id: str) -> tuple[str, str, str]:
    """What a person knows a call by: the tool's name, its arguments, who asked. A damaged record says less of it."""
    arguments, program, process = facts.get("arguments"), facts.get("program"), facts.get("process")
    return (
        one_line(str(facts.get("display_name") or facts.get("tool") or "a tool")),
        summary_of(Secrets.unhidden(arguments)) if isinstance(arguments, dict) else "",
        called(program, str(process or ""), session_id) if isinstance(program, str) and program else "",
    )


class Subscription:
    """What others write into the journal for one session: answers to its cards, and that everything was stopped.

    A session listens while a card of it waits, and while a call or a script of it takes longer than a moment. It is
    told of both by records; nothing else passes between two programs.
    """

    def __init__(self, door: Door) -> None:
        self._door = door
        self._setting = door.setting
        self._journal = door.journal
        self._listening: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._card_came = asyncio.Event()
        self._stops = 0
        self.waited_for: set[object] = set()
        """One for everything that somebody waits for at this moment."""
        self._waited_before: set[object] = set()
        self.looks_on: asyncio.AbstractEventLoop | None = None
        """The loop on which it is looked from time to time whether something takes longer than a moment."""

    def listen(self) -> None:
        """Listen until nothing waits and nothing runs."""
        self._card_came.set()
        if self._listening is None or self._listening.done():
            self._card_came = asyncio.Event()
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def look_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen when something is waited for longer than a moment. One clock for all calls: most are over by then."""
        self.looks_on = loop
        loop.call_later(LISTEN_AFTER_SECONDS / 2, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._waited_before.isdisjoint(self.waited_for):
            self.listen()
        self._waited_before = set(self.waited_for)
        if self.looks_on is loop and self.waited_for:
            self.look_on(loop)
        elif self.looks_on is loop:
            self.looks_on = None

    def close(self) -> None:
        for task in (self._listening, *self._settling):
            if task is not None:
                task.cancel()
        self._listening = None

    @property
    def _is_needed(self) -> bool:
        return bool(self._setting.live or self._setting.runs)

    async def _listen(self) -> None:
        while self._is_needed:
            try:
                await self._hear_while_needed()
            except StoreError as problem:
                log.warning("session %s: others cannot be heard now: %s", self._setting.session_id, problem)
                await asyncio.sleep(DEAF_SECONDS)

    async def _hear_while_needed(self) -> None:
        store, desk = self._journal.store, self._door.desk
        pending, questions = desk.pending, desk.questions
        known: set[str] = set()
        seen = 0
        while self._is_needed:
            if not pending and not questions:
                await self.hear_stop()
                self._card_came.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._card_came.wait()
                continue
            # The end is looked up before the answers are: one that comes in between is not slept through.
            head = await store.head()
            answers = list(
                await self._journal.history(
                    self._setting.session_id, kind=("answered", ToolQuestions.ANSWERED), after=seen
                )
                if seen
                else ()
            )
            keys = {OnceKey.answer(waiting.request.nonce) for waiting in pending.values()}
            for key in (keys | {ToolQuestions.key(id) for id in questions}) - known:
                # A card from before a restart may have its answer already, however far back.
                known.add(key)
                if answer := await store.taken(key):
                    answers.append(answer)
            # A stop denies what waits, and is written down before: whoever heard its no first would go on to the next.
            await self.hear_stop()
            for answer in answers:
                if answer.kind == ToolQuestions.ANSWERED:
                    desk.question_answered_elsewhere(answer)
                else:
                    await desk.answered_elsewhere(answer)
            seen = head.seq
            await store.changed(head.seq)

    async def hear_stop(self) -> None:
        """If everything was stopped since the last look: stop what of ours was there before it."""
        number = await self._journal.stops()
        if number == self._stops:
            return
        self._stops = number
        record = await self._journal.store.taken(OnceKey.stop(number))
        assert record is not None, "a stop was counted that nobody wrote down"
        by = Answerer.read(data_of(record).get("by"))
        reached: dict[str, LiveCall] = {}
        for call_id, live in list(self._setting.live.items()):
            if await self._was_there(call_id, live, number, record):
                reached[call_id] = live
        runs = [run for run in self._setting.runs.values() if run.stops < number]
        for run in runs:
            run.is_stopped = True
        working = {call_id: live.execution for call_id, live in reached.items() if live.execution is not None}
        self._stop(reached, by)
        if reached or runs:
            self._journal.note(self._setting.session_id, "stop_heard", OnceKey.stop(number), {"calls": list(reached)})
            task = asyncio.get_running_loop().create_task(self._see_through(number, working))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    def _stop(self, reached: Mapping[str, LiveCall], by: Answerer) -> None:
        """Deny what waits of these calls, and cancel what runs."""
        desk = self._door.desk
        for call_id, live in reached.items():
            if by.kind != "person":
                live.cancelled_by = str(by)
            waiting = desk.pending.get(call_id)
            if waiting is None or not desk.answer(call_id, waiting.request.deny(Outcome.STOPPED), by):
                desk.cancel(call_id)

    async def _was_there(self, call_id: str, live: LiveCall, number: int, stop: Record) -> bool:
        """Whether a call was asked for before this stop. One that asks nobody is where its first record is."""
        if live.stops is not None:
            return live.stops < number
        first = await self._journal.store.read(subject=call_id, limit=1)
        # Its record does not wait for the disk, so it may have been overtaken by the stop; its time has not.
        return not first or first[0].seq < stop.seq or first[0].at <= stop.at

    async def _see_through(self, number: int, told: Mapping[str, LiveCall.Stoppable]) -> None:
        """Say which code goes on although it was told to stop."""
        for _ in range(2 + int(self._setting.limits.cancel_grace_seconds / SETTLE_SECONDS)):
            if not any(execution.is_working for execution in told.values()):
                break
            await asyncio.sleep(SETTLE_SECONDS)
        working = [call_id for call_id, execution in told.items() if execution.is_working]
        self._journal.note(self._setting.session_id, "stop_settled", OnceKey.stop(number), {"working": working})
