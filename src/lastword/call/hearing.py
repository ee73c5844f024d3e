"""What others write into the journal for a session: answers to its cards, and that everything was stopped.

A session listens while a card of it waits, and while a call or a script of it takes longer than a moment. It is told of
both by records; nothing else passes between two programs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from lastword.call.door import Door
from lastword.consent import LiveCall, Stoppable, read_answerer
from lastword.errors import StoreError
from lastword.journal import ANSWERED, answer_key, data_of, question_answer_key, stop_key
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


class Hearing:
    """The ears of one session."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._journal = door.journal
        self._listening: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._card_came = asyncio.Event()
        self._stops = 0

    def listen(self) -> None:
        """Listen until nothing waits and nothing runs."""
        self._card_came.set()
        if self._listening is None or self._listening.done():
            self._card_came = asyncio.Event()
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def listen_later(self) -> asyncio.TimerHandle:
        """Listen in a moment, unless what begins now is over by then and cancels it."""
        return asyncio.get_running_loop().call_later(LISTEN_AFTER_SECONDS, self.listen)

    def close(self) -> None:
        for task in (self._listening, *self._settling):
            if task is not None:
                task.cancel()
        self._listening = None

    @property
    def _is_needed(self) -> bool:
        return bool(self._door.live or self._door.runs)

    async def _listen(self) -> None:
        while self._is_needed:
            try:
                await self._hear_while_needed()
            except StoreError as problem:
                log.warning("session %s: others cannot be heard now: %s", self._door.session_id, problem)
                await asyncio.sleep(DEAF_SECONDS)

    async def _hear_while_needed(self) -> None:
        store, pending, questions = self._journal.store, self._door.desk.pending, self._door.questions.pending
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
                await self._journal.history(self._door.session_id, kind=("answered", ANSWERED), after=seen)
                if seen
                else ()
            )
            keys = {answer_key(waiting.request.nonce) for waiting in pending.values()}
            for key in (keys | {question_answer_key(id) for id in questions}) - known:
                # A card from before a restart may have its answer already, however far back.
                known.add(key)
                if answer := await store.taken(key):
                    answers.append(answer)
            # A stop denies what waits, and is written down before: whoever heard its no first would go on to the next.
            await self.hear_stop()
            for answer in answers:
                await (self._door.questions if answer.kind == ANSWERED else self._door.desk).heard(answer)
            seen = head.seq
            await store.changed(head.seq)

    async def hear_stop(self) -> None:
        """If everything was stopped since the last look: stop what of ours was there before it."""
        number = await self._journal.stops()
        if number == self._stops:
            return
        self._stops = number
        record = await self._journal.store.taken(stop_key(number))
        assert record is not None, "a stop was counted that nobody wrote down"
        by = read_answerer(data_of(record).get("by"))
        reached: dict[str, LiveCall] = {}
        for call_id, live in list(self._door.live.items()):
            if await self._was_there(call_id, live, number, record):
                reached[call_id] = live
        runs = [run for run in self._door.runs.values() if run.stops < number]
        for run in runs:
            run.is_stopped = True
        working = {call_id: live.execution for call_id, live in reached.items() if live.execution is not None}
        self._door.stop(reached, by)
        if reached or runs:
            self._journal.note(self._door.session_id, "stop_heard", stop_key(number), {"calls": list(reached)})
            task = asyncio.get_running_loop().create_task(self._see_through(number, working))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _was_there(self, call_id: str, live: LiveCall, number: int, stop: Record) -> bool:
        """Whether a call was asked for before this stop. One that asks nobody is where its first record is."""
        if live.stops is not None:
            return live.stops < number
        first = await self._journal.store.read(subject=call_id, limit=1)
        # Its record does not wait for the disk, so it may have been overtaken by the stop; its time has not.
        return not first or first[0].seq < stop.seq or first[0].at <= stop.at

    async def _see_through(self, number: int, told: Mapping[str, Stoppable]) -> None:
        """Say which code goes on although it was told to stop."""
        for _ in range(2 + int(self._door.limits.cancel_grace_seconds / SETTLE_SECONDS)):
            if not any(execution.is_working for execution in told.values()):
                break
            await asyncio.sleep(SETTLE_SECONDS)
        working = [call_id for call_id, execution in told.items() if execution.is_working]
        self._journal.note(self._door.session_id, "stop_settled", stop_key(number), {"working": working})
