"""The latest time that was written down since something began: a clock that is set back does not unsay it.

Records are in the order in which they were accepted, and their times are whatever a clock said. So what is asked for is
the greatest time of all records from one place on, of whichever program. Every record is looked at once.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from weakref import WeakKeyDictionary

from lastword.store import PAGE_RECORDS, Store


class _Walk:
    """The records of one store from a place on, as far as they were looked at."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.seen = first - 1
        self._latest: list[tuple[int, int]] = []
        """Places and times, the times falling: each is the latest of all records from its place on."""

    def take(self, seq: int, at: int) -> None:
        if seq <= self.seen:
            return  # Two calls look at the same time, and the other one was here.
        self.seen = seq
        while self._latest and self._latest[-1][1] <= at:
            self._latest.pop()
        self._latest.append((seq, at))

    def latest(self, seq: int) -> int:
        place = bisect_left(self._latest, (seq,))
        return self._latest[place][1] if place < len(self._latest) else 0


_walks: WeakKeyDictionary[Store, _Walk] = WeakKeyDictionary()


async def latest_since(store: Store, seq: int) -> float:
    """The greatest time that this record or any after it has, in seconds."""
    walk = _walks.get(store)
    if walk is None or seq < walk.first:
        walk = _walks[store] = _Walk(seq)
    end = (await store.head()).seq
    while walk.seen < end:
        last = min(walk.seen + PAGE_RECORDS, end)
        for link in await store.links(range(walk.seen + 1, last + 1)):
            walk.take(link.seq, link.at)
        walk.seen = max(walk.seen, last)
        await asyncio.sleep(0)  # It may be a day's records, and others wait for their turn meanwhile.
    return walk.latest(seq) / 1e6
