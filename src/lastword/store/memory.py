"""The store that lives as long as its process: for tests, trials and sessions that should leave no trace."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from threading import Lock

import msgspec

from lastword.store.chain import (
    GENESIS,
    Behind,
    Current,
    Entry,
    Head,
    Pruned,
    Record,
    chain,
    check_content,
    kinds_of,
    not_held,
)
from lastword.store.contract import Filter, Store

# Chaining many records in one go costs half of chaining each by itself. Every read chains first, so none sees less.
CHAINED_AT_ONCE = 256


class MemoryStore(Store):
    """What was written in one list, and its chain in another; records are made of both when they are read.

    What was accepted is chained a page at a time, in the order in which it came, and always before it is read.
    Where the records of a stream or subject are, and which still count, is indexed at the first look-up.
    """

    def __init__(self) -> None:
        # A session used from sync code lives on another thread, and may share the store with this one.
        self._lock = Lock()
        self._accepted: deque[Entry] = deque()
        self._entries: list[Entry] = []
        self._digests: list[str] = []
        self._forgotten: dict[int, str] = {}  # The digests of data that was forgotten, by place.
        self._streams: dict[str, list[int]] = {}
        self._subjects: dict[str, list[int]] = {}
        self._current = Current()
        self._kinds: set[str] = set()  # Of all that was accepted. Each is in it before its entry is.
        self._noted = 0
        self._keys: dict[str, int] = {}
        self._claimed = False  # Whether something accepted claims a key.
        self._holding = False  # Whether something accepted holds contents.
        self._contents: dict[str, bytes] = {}  # By digest.
        self._holds: dict[int, tuple[str, ...]] = {}  # The digests that a record holds, by place.
        self._held: set[str] = set()
        self._waiters: set[asyncio.Future[None]] = set()

    def _append(self, entry: Entry) -> None:
        self._kinds.add(entry.kind)
        if entry.contents:  # Kept once from the beginning: it may be large, and the same again and again.
            with self._lock:
                self._holding = True
                self._accepted.append(entry)
                self._chain()
            return
        self._accepted.append(entry)  # One step, and so safe from other threads without the lock.
        if self._waiters or len(self._accepted) >= CHAINED_AT_ONCE:
            with self._lock:
                self._chain()

    async def _commit(self, entries: tuple[Entry, ...]) -> bool:
        with self._lock:
            for entry in entries:
                if entry.once is not None and entry.once in self._keys:
                    return False
            for entry in entries:
                if entry.once is not None:
                    self._keys[entry.once] = -1  # Taken; where it stands is known once it is chained.
                    self._claimed = True
                if entry.contents:
                    self._holding = True
                self._kinds.add(entry.kind)
            self._accepted.extend(entries)
            if self._holding or self._waiters or len(self._accepted) >= CHAINED_AT_ONCE:
                self._chain()
        return True

    async def _select(self, wanted: Filter) -> Sequence[Record]:
        stream, subject, below, last = wanted.stream, wanted.subject, wanted.below, wanted.last
        most = wanted.limit if last is None else last
        with self._lock:
            self._chain()
            self._note_places()
            if below is not None:
                names = [name for name in self._subjects if name == below or name.startswith(f"{below}.")]
                places: Sequence[int] = sorted(place for name in names for place in self._subjects[name])
            elif subject is not None:
                places = self._subjects.get(subject, ())
            elif stream is not None:
                places = self._streams.get(stream, ())
            else:
                places = range(len(self._entries))
            found: list[int] = []
            # The record in place n has the number n + 1, so the first one beyond `after` is in the place `after`.
            span = range(bisect_left(places, wanted.after), len(places))
            for index in span if last is None else reversed(span):
                if most is not None and len(found) >= most:
                    break
                entry = self._entries[places[index]]
                if stream is not None and entry.stream != stream:
                    continue
                if subject is not None and entry.subject != subject:
                    continue
                if wanted.kinds is None or entry.kind in wanted.kinds:
                    found.append(places[index])
            return [self._record(place) for place in (found if last is None else reversed(found))]

    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        kinds = kinds_of(kind)
        if self._kinds.isdisjoint(kinds):
            return []  # Asked for grants before every question; what was accepted may wait for a better moment.
        with self._lock:
            self._chain()
            self._note_places()
            seqs = self._current.seqs(kinds, stream)
            return [self._record(seq - 1) for seq in seqs]

    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        with self._lock:
            self._chain()
            found = [self._record(seq - 1) for seq in sorted(set(seqs)) if 0 < seq <= len(self._entries)]
        return [msgspec.structs.replace(record, data=None) for record in found]

    async def taken(self, once: str) -> Record | None:
        if once not in self._keys:  # One step, and so right without the lock: a commit takes its keys before it ends.
            return None  # Asked for every approved call; what was accepted may wait for a better moment.
        with self._lock:
            self._chain()
            return self._record(self._keys[once])

    async def head(self) -> Head:
        with self._lock:
            self._chain()
            return Head(len(self._digests), self._digests[-1]) if self._digests else Head(0, GENESIS)

    async def behind(self) -> Behind | None:
        """It lives and ends with this process, so no head from outside can be ahead of it."""
        return None

    async def _accept(self, head: Head) -> None:
        if not await self.contains(head):
            raise not_held(head)

    async def changed(self, after: int) -> None:
        while True:
            with self._lock:
                self._chain()
                if len(self._entries) > after:
                    return
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
            try:
                await waiter
            finally:
                with self._lock:
                    self._waiters.discard(waiter)

    async def content(self, digest: str) -> bytes | None:
        with self._lock:
            self._chain()
            data = self._contents.get(digest)
        return None if data is None else check_content(digest, data)

    async def _forget(self, seqs: Iterable[int]) -> Pruned:
        forgotten = Pruned()
        with self._lock:
            self._chain()
            self._note_places()  # What counts has the names that the data gives.
            for seq in seqs:
                if 0 < seq <= len(self._entries) and seq - 1 not in self._forgotten:
                    entry = self._entries[seq - 1]
                    self._forgotten[seq - 1] = sha256(entry.data).hexdigest()
                    self._entries[seq - 1] = msgspec.structs.replace(entry, data=b"")
                    self._current.drop(seq, entry.stream, entry.kind)
                    forgotten += Pruned(1) + self._release(seq - 1)
        return forgotten

    def _release(self, place: int) -> Pruned:
        """A record holds nothing any more. What no other one holds is gone. The lock is held."""
        released = self._holds.pop(place, ())
        still = {digest for digests in self._holds.values() for digest in digests} if released else ()
        gone = [self._contents.pop(digest) for digest in released if digest not in still]
        return Pruned(0, len(gone), sum(map(len, gone)))

    def _hold(self, name: str) -> Callable[[], None] | None:
        with self._lock:
            if name in self._held:
                return None
            self._held.add(name)
        return lambda: self._held.discard(name)

    def is_held(self, name: str) -> bool:
        return name in self._held

    async def examine(self) -> None:
        """No other process can reach it."""

    async def _close(self) -> None:
        """Nothing to flush. The records stay readable: a closed session may still be looked at."""

    def _chain(self) -> None:
        """Put what was accepted in its place, and wake those who wait for a change. The lock is held."""
        if not self._accepted:
            return
        # Other threads may append meanwhile, at the other end; what they add is chained the next time.
        take = self._accepted.popleft
        new = [take() for _ in range(len(self._accepted))]
        if self._claimed:
            for place, entry in enumerate(new, len(self._entries)):
                if entry.once is not None:
                    self._keys[entry.once] = place
            self._claimed = False
        if self._holding:
            new = [self._without_contents(place, entry) for place, entry in enumerate(new, len(self._entries))]
            self._holding = False
        last = self._digests[-1] if self._digests else GENESIS
        self._digests += chain(last, len(self._entries) + 1, new)
        self._entries += new
        self._wake()

    def _without_contents(self, place: int, entry: Entry) -> Entry:
        """Put what an entry holds where it is found by its digest. The lock is held."""
        if not entry.contents:
            return entry
        held = {sha256(data).hexdigest(): data for data in entry.contents}
        for digest, data in held.items():
            self._contents.setdefault(digest, data)
        self._holds[place] = tuple(held)
        return msgspec.structs.replace(entry, contents=())

    def _record(self, place: int) -> Record:
        entry = self._entries[place]
        forgotten = self._forgotten.get(place)
        return Record(
            place + 1,
            entry.stream,
            entry.kind,
            entry.subject,
            entry.at,
            entry.data if forgotten is None else None,
            entry.once,
            forgotten or sha256(entry.data).hexdigest(),
            self._digests[place],
        )

    def _note_places(self) -> None:
        """Index what was written since the last look-up: most records of a trial are never read."""
        for place in range(self._noted, len(self._entries)):
            entry = self._entries[place]
            self._streams.setdefault(entry.stream, []).append(place)
            self._subjects.setdefault(entry.subject, []).append(place)
            self._current.take(place + 1, entry.stream, entry.kind, entry.subject, entry.data)
        self._noted = len(self._entries)

    def _wake(self) -> None:
        for waiter in self._waiters:
            # The loop is closed, and its coroutines with it.
            if not (loop := waiter.get_loop()).is_closed():
                loop.call_soon_threadsafe(_resolve, waiter)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
