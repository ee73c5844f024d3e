"""Proving records before they are acted upon, at a cost that fits what is read.

`verify` walks a whole list, and nobody can do that before every call. What is read is proven in two strengths:

* `prove` looks at records and their neighbours: each must follow from the one before it, and the one after it must
  follow from it. Whoever edits a record, puts one in or takes one out must have written the neighbours anew as well.
  For whatever is only shown or told.
* `prove_from` walks the chain from a record to the head, without the data. Whoever hid something behind that record,
  by whatever edit, must have written everything anew up to the head; and the head that was last seen is kept outside
  (head_file.py). For what starts something by the word of an old record.
"""

from __future__ import annotations

from collections.abc import Iterable

from lastword.errors import Tampered
from lastword.store import GENESIS, PAGE_RECORDS, Head, Record, Store, digest, follow

_INVESTIGATE = "restore the journal from a copy, and keep both for whoever investigates"


async def prove(store: Store, records: Iterable[Record]) -> None:
    """Raise Tampered when one of these records does not fit between its neighbours, as the store has them."""
    given = {record.seq: record for record in records}
    if not given:
        return
    beside = {seq + 1 for seq in given} | {seq - 1 for seq in given}
    links = {link.seq: link for link in await store.links(sorted(beside - given.keys() - {0}))}
    ends: list[int] = []
    for seq, record in given.items():
        before = given.get(seq - 1) or links.get(seq - 1)
        if before is None and seq != 1:
            raise _missing(seq - 1)
        follow(Head(0, GENESIS) if before is None else Head(seq - 1, before.digest), record)
        if seq + 1 in given:
            continue
        after = links.get(seq + 1)
        if after is None:
            ends.append(seq)
        elif digest(record.digest, after.seq, after, after.data_digest) != after.digest:
            raise Tampered(
                f"record {seq} ({record.kind}) was changed after it was written: the next one does not follow from it",
                hint=_INVESTIGATE,
            )
    if ends and min(ends) < (end := await store.head()).seq:
        # A record without one behind it is the last. It may just have been, when somebody writes at this moment.
        later = [seq for seq in ends if seq < end.seq]
        if len(await store.links([seq + 1 for seq in later])) < len(later):
            raise _missing(later[0] + 1)


async def prove_from(store: Store, seq: int) -> Head:
    """Raise Tampered when the chain does not hold from this record to its end. Returns where it ends."""
    before = await store.links([seq - 1]) if seq > 1 else ()
    if seq > 1 and not before:
        raise _missing(seq - 1)
    last = Head(seq - 1, before[0].digest) if before else Head(0, GENESIS)
    while links := await store.links(range(last.seq + 1, last.seq + 1 + PAGE_RECORDS)):
        for link in links:
            last = follow(last, link)
    if (end := await store.head()).seq > last.seq:
        # Somebody writes at this moment, or a whole page of records is gone.
        for link in await store.links(range(last.seq + 1, end.seq + 1)):
            last = follow(last, link)
        if last.seq < end.seq:
            raise _missing(last.seq + 1)
    return last


def _missing(seq: int) -> Tampered:
    return Tampered(f"record {seq} is missing", hint=_INVESTIGATE)
