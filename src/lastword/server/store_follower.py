"""The end of the store's list, read once for all who follow it.

Tokens and conversations are folds over records that other processes write too, so every request has to look whether
there is something new. One look at the end of the list serves both, and everybody whose request is here by then: what
a request must see was written before it was sent.

Whoever follows is handed each record once, in order. After a long silence the list may have grown by more than is worth
reading; followers are then told that records were skipped, and read what they need from the beginning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lastword.log import traceback_of

if TYPE_CHECKING:
    from lastword.store import Record, Store

log = logging.getLogger("lastword.server")

# Records in memory at a time: the others in the store, those of sessions, may hold whole files.
PAGE_RECORDS = 32
# Beyond this many records it is cheaper to read a conversation anew than everything that came meanwhile.
MAX_BEHIND_RECORDS = 2000


class StoreFollower:
    """Follows a store's list for whoever asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followers: list[tuple[Callable[[Record], None], Callable[[], None]]] = []
        self.seq = -1
        """How far the list was read; before the first look, nowhere."""
        self.looks = 0
        """How many have begun."""
        self._iteration = 0
        self._fresh_in: int | None = None
        self._is_looking = False
        # For all who came while a look was under way: the next one, which begins when that has ended.
        self._next: asyncio.Future[None] | None = None
        self._leading: asyncio.Task[None] | None = None

    def follow(self, take: Callable[[Record], None], lose: Callable[[], None]) -> None:
        """Hand every new record to `take`. `lose` is called when some were left out."""
        self._followers.append((take, lose))

    async def look(self) -> None:
        """Hand out what is new. Returns at once when somebody has looked in this iteration of the event loop.

        Whatever runs in this iteration was ready before that look, and so were the bytes of its request. The number
        of the iteration is taken before the store is asked: a store that yields to the loop ends the iteration.

        Such a store is asked by one at a time. A look that is under way may have begun before what somebody else has
        to see was written; all who come meanwhile share the next one, and what is new is read once for all of them.
        """
        if self._fresh_in == self._iteration:
            return
        if self._is_looking:
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._next)
            return
        await self._look_alone()

    async def _look_alone(self) -> None:
        self._is_looking = True
        try:
            await self._look()
        finally:
            waiting, self._next = self._next, None
            self._is_looking = waiting is not None
            if waiting is not None:
                self._leading = asyncio.get_running_loop().create_task(self._look_for(waiting))

    async def _look_for(self, waiting: asyncio.Future[None]) -> None:
        try:
            await self._look_alone()
        except asyncio.CancelledError:
            waiting.cancel()
            raise
        except Exception as problem:
            waiting.set_exception(problem)
            waiting.exception()  # Whoever waited may be gone.
        else:
            waiting.set_result(None)

    async def _look(self) -> None:
        asyncio.get_running_loop().call_soon(self._end_iteration)
        now = self._iteration
        self.looks += 1
        if self.seq < 0:
            await self._start_anew()
        read = 0
        while records := await self._store.read(after=self.seq, limit=PAGE_RECORDS):
            # If the store yielded to the loop, another look may have been faster; followers know what they have seen.
            self.seq = max(self.seq, records[-1].seq)
            self._hand_out(records)
            if len(records) < PAGE_RECORDS:
                break
            read += len(records)
            if read >= MAX_BEHIND_RECORDS:
                await self._start_anew()
        self._fresh_in = now

    def forget_look(self) -> None:
        """This process has written something that the next question must see."""
        self._fresh_in = None

    def _hand_out(self, records: Sequence[Record]) -> None:
        for record in records:
            try:
                for take, _ in self._followers:
                    take(record)
            except Exception as problem:
                # Somebody has written what cannot be read. Whoever needs that record meets it again and fails; all
                # others read what is theirs, and miss nothing that came after it.
                log.error("record %d (%s) cannot be read\n%s", record.seq, record.kind, traceback_of(problem))
                self._lose()
                return

    async def _start_anew(self) -> None:
        self.seq = (await self._store.head()).seq
        self._lose()

    def _lose(self) -> None:
        for _, lose in self._followers:
            lose()

    def _end_iteration(self) -> None:
        self._iteration += 1
