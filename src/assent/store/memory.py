"""The store that lives as long as its process: for tests, trials and sessions that should leave no trace."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence

import msgspec

from assent.store import GENESIS, Entry, Head, Record, link


class MemoryStore:
    """All records in one list, with the positions of each stream and subject beside it."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._streams: dict[str, list[int]] = {}
        self._subjects: dict[str, list[int]] = {}
        self._keys: dict[str, int] = {}
        self._last = GENESIS
        self._waiters: set[asyncio.Future[None]] = set()
        self._lock = threading.RLock()  # Tools change state from threads of their own.

    def append(self, entry: Entry) -> None:
        with self._lock:
            place = len(self._records)
            if entry.once is not None:
                assert entry.once not in self._keys, "an entry that claims a key is committed, not appended"
                self._keys[entry.once] = place
            record = link(self._last, place + 1, entry)
            self._last = record.digest
            self._records.append(record)
            self._streams.setdefault(entry.stream, []).append(place)
            self._subjects.setdefault(entry.subject, []).append(place)
            if self._waiters:
                self._wake()

    async def commit(self, *entries: Entry) -> bool:
        with self._lock:
            if any(entry.once in self._keys for entry in entries if entry.once is not None):
                return False
            for entry in entries:
                self.append(entry)
            return True

    async def read(
        self,
        *,
        stream: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Record]:
        if subject is not None:
            places: Iterable[int] = self._subjects.get(subject, ())
        elif stream is not None:
            places = self._streams.get(stream, ())
        else:
            places = range(after, len(self._records))
        found = []
        for place in places:
            record = self._records[place]
            if (
                record.seq > after
                and (stream is None or record.stream == stream)
                and (kind is None or record.kind == kind)
            ):
                found.append(record)
                if limit is not None and len(found) == limit:
                    break
        return found

    async def taken(self, once: str) -> Record | None:
        place = self._keys.get(once)
        return None if place is None else self._records[place]

    async def head(self) -> Head:
        return Head(len(self._records), self._last)

    async def changed(self, after: int) -> None:
        while len(self._records) <= after:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)

    async def forget(self, seqs: Iterable[int]) -> int:
        forgotten = 0
        for seq in seqs:
            record = self._records[seq - 1]
            if record.data is not None:
                self._records[seq - 1] = msgspec.structs.replace(record, data=None)
                forgotten += 1
        return forgotten

    async def close(self) -> None:
        """Nothing to flush. The records stay readable: a closed session may still be looked at."""

    def _wake(self) -> None:
        for waiter in self._waiters:
            # A session used from sync code lives on another thread's loop.
            waiter.get_loop().call_soon_threadsafe(_resolve, waiter)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
