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

import asyncio
from collections.abc import Iterable
from operator import attrgetter

from lastword.errors import Tampered
from lastword.store.contract import GENESIS, PAGE_RECORDS, Head, Record, Store, digest, follow, follows, tampered

_INVESTIGATE = "restore the journal from a copy, and keep both for whoever investigates"


async def prove(store: Store, records: Iterable[Record]) -> None:
    """Raise Tampered when one of these records does not fit between its neighbours, as the store has them."""
    given = {record.seq: record for record in records}
    beside = {seq for own in given for seq in (own - 1, own + 1) if seq and seq not in given}
    links = {link.seq: link for link in await store.links(sorted(beside))}
    ends: list[int] = []
    # A replay proves two records for every CALL: neighbours follow each other here without being looked up.
    seq, previous = 0, GENESIS
    for record in sorted(given.values(), key=_seq):
        if record.seq != seq + 1:
            before = links.get(record.seq - 1)
            if before is None and record.seq != 1:
                raise _missing(record.seq - 1)
            previous = GENESIS if before is None else before.digest
        seq = record.seq
        if not follows(previous, record):
            raise tampered(record)
        previous = record.digest
        if seq + 1 not in given:
            after = links.get(seq + 1)
            if after is None:
                ends.append(seq)
            elif digest(previous, after.seq, after, after.data_digest) != after.digest:
                raise tampered(record, "the next one does not follow from it")
    # Only the last record has none behind it. It may just have been the last, when somebody writes at this moment.
    if ends and (short := [seq for seq in ends if seq < (await store.head()).seq]):
        found = {link.seq for link in await store.links([seq + 1 for seq in short])}
        for seq in short:
            if seq + 1 not in found:
                raise _missing(seq + 1)


_seq = attrgetter("seq")


async def prove_from(store: Store, seq: int) -> Head:
    """Raise Tampered when the chain does not hold from this record to its end. Returns where it ends."""
    before = await store.links([seq - 1]) if seq > 1 else ()
    if seq > 1 and not before:
        raise _missing(seq - 1)
    last = Head(seq - 1, before[0].digest) if before else Head(0, GENESIS)
    while links := await store.links(range(last.seq + 1, last.seq + 1 + PAGE_RECORDS)):
        for link in links:
            last = follow(last, link)
        await asyncio.sleep(0)  # It may be a long way, and others wait for their turn meanwhile.
    # Somebody writes at this moment, or a whole page of records is gone and what is behind it does not follow.
    for link in await store.links(range(last.seq + 1, (await store.head()).seq + 1)):
        last = follow(last, link)
    return last


def _missing(seq: int) -> Tampered:
    return Tampered(f"record {seq} is missing", hint=_INVESTIGATE)
