"""A whole store from one place to another: a file to a server, and back. Proven on both sides.

The records are written as they are, so the chain ends in the same digest, and a head that somebody kept of the one is a
head of the other. What was forgotten stays forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lastword.errors import StoreError
from lastword.store.change import Adopted
from lastword.store.contract import PAGE_RECORDS, Head, Store, contains, verify, verify_store
from lastword.store.standing import StandingRow

# Records that hold contents may be large: a page of them is cut into groups of about this size.
GROUP_BYTES = 16 * 2**20


class MovableStore(Store, Protocol):
    """A store that gives everything away, and takes it."""

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]: ...

    async def standing_rows(self) -> Sequence[StandingRow]: ...

    async def adopt(self, adopted: Adopted) -> None: ...


async def copy_store(source: MovableStore, target: MovableStore, told: Callable[[int], None] | None = None) -> Head:
    """Copy all of a store into an empty one, or go on where a copy was interrupted. Where both then end.

    Raises Tampered when the source does not hold, or the copy is not the same; StoreError when the target is another
    store, or somebody writes into either of them meanwhile.
    """
    await verify_store(source)
    last = await target.head()
    if not await contains(source, last):
        raise StoreError(
            f"there is another journal already, of {last.seq} records", hint="copy into a store that is empty"
        )
    while page := await source.read(after=last.seq, limit=PAGE_RECORDS):
        verify(page, start=last)
        held: dict[int, list[tuple[str, bytes, int]]] = {}
        for seq, digest in await source.holdings(range(page[0].seq, page[-1].seq + 1)):
            data = await source.content(digest)
            assert data is not None, "the store was verified"
            held.setdefault(seq, []).append((digest, data, seq))
        while page:
            count, size = 0, 0
            while count < len(page) and (not count or size < GROUP_BYTES):
                size += len(page[count].data or b"") + sum(len(data) for _, data, _ in held.get(page[count].seq, ()))
                count += 1
            group, page = page[:count], page[count:]
            contents = tuple(one for record in group for one in held.get(record.seq, ()))
            await target.adopt(Adopted(tuple(group), contents))
            last = Head(group[-1].seq, group[-1].digest)
        if told is not None:
            told(last.seq)
    counts, counted = set(await source.standing_rows()), set(await target.standing_rows())
    await target.adopt(Adopted(standing=tuple(counts - counted), ended=tuple(counted - counts)))
    await verify_store(target, head=last)
    for store in (source, target):
        if await store.head() != last:
            raise StoreError(
                "somebody wrote into it while it was copied", hint="stop whatever uses it, and copy again: it goes on"
            )
    return last
