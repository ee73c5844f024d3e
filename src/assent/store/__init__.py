"""What a memory must be able to do: one contract, short drivers.

A store is one append-only list of records, chained by digest, shared by everything that must be remembered: the calls
and runs of sessions, and the conversations of the server. It knows nothing of either. Drivers: `memory` and `sqlite`.

Three ideas carry the whole product:

* **Order.** Records become durable in the order in which they were accepted, so a durable record implies all before it.
* **Groups.** `commit` makes its records durable together or not at all.
* **Once.** A record may claim a key that no other record of the store ever had. Who comes second gets False, in this
  process or in another one. An answer, the burning of a seal and the claim on a run are such records.

The chain: a record's digest covers the digest before it, its own head and the digest of its data. Data can therefore be
forgotten (pruned) without breaking the chain or freeing a key, and nothing else can change unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Protocol

import msgspec

from assent.errors import Tampered

GENESIS = "0" * 64
"""The digest before the first record."""

_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True, gc=False):
    """Something to remember, before the store has put it in its place."""

    stream: str
    """The session or conversation it belongs to."""
    kind: str
    subject: str
    """The call, run or message it is about."""
    at: int
    """Microseconds since the epoch. Only for people: order is the store's, whatever the clock did."""
    data: bytes
    """Canonical JSON."""
    once: str | None = None
    """A key that only one record of the store may ever have."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """An entry in its place. `data` is None when it was pruned."""

    seq: int
    stream: str
    kind: str
    subject: str
    at: int
    data: bytes | None
    once: str | None
    data_digest: str
    digest: str


class Head(msgspec.Struct, frozen=True):
    """The end of the chain. Whoever keeps one can prove later that nothing before it was changed or cut off."""

    seq: int
    digest: str


class Store(Protocol):
    """The contract of a driver."""

    def append(self, entry: Entry) -> None:
        """Accept an entry without waiting for the disk. For what may be lost in a crash, but never reordered."""

    async def commit(self, *entries: Entry) -> bool:
        """Make the entries durable, together and after everything accepted before.

        False, with nothing written, when a key that one of them claims is taken.
        """

    async def read(
        self,
        *,
        stream: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Record]:
        """The records that match, oldest first. What this process accepted is seen, durable or not."""

    async def taken(self, once: str) -> Record | None:
        """The record that holds this key."""

    async def head(self) -> Head:
        """Where the chain ends now."""

    async def changed(self, after: int) -> None:
        """Return once there is a record beyond `after`, whichever process wrote it."""

    async def forget(self, seqs: Iterable[int]) -> int:
        """Drop the data of these records; heads, keys and chain stay. Returns how many had data."""

    async def close(self) -> None:
        """Make everything accepted durable, then let go."""


def link(previous: str, seq: int, entry: Entry) -> Record:
    """Put an entry behind the record whose digest is `previous`."""
    data_digest = sha256(entry.data).hexdigest()
    digest = _digest(previous, seq, entry.stream, entry.kind, entry.subject, entry.at, entry.once, data_digest)
    return Record(seq, entry.stream, entry.kind, entry.subject, entry.at, entry.data, entry.once, data_digest, digest)


def _digest(*head: object) -> str:
    return sha256(_encode(head)).hexdigest()


def verify(records: Iterable[Record], *, start: Head | None = None, head: Head | None = None) -> Head:
    """Walk the chain and return its end; raise Tampered at the first record that does not fit.

    A chain alone cannot know that its tail was cut off: pass a `head` kept elsewhere to prove that it was not.
    """
    last = start or Head(0, GENESIS)
    seen_head = head is None or head == last
    for record in records:
        if record.seq != last.seq + 1:
            raise Tampered(
                f"record {last.seq + 1} is missing or out of place (found {record.seq})",
                hint="restore the journal from a copy, and keep both for whoever investigates",
            )
        expected = _digest(
            last.digest,
            record.seq,
            record.stream,
            record.kind,
            record.subject,
            record.at,
            record.once,
            record.data_digest,
        )
        if expected != record.digest or (
            record.data is not None and sha256(record.data).hexdigest() != record.data_digest
        ):
            raise Tampered(
                f"record {record.seq} ({record.kind}) was changed after it was written",
                hint="everything before it is as it was written; restore from a copy to see what it said",
            )
        last = Head(record.seq, record.digest)
        if head is not None and record.seq == head.seq:
            if record.digest != head.digest:
                raise Tampered(f"record {record.seq} is not the one that the given head names")
            seen_head = True
    if not seen_head and head is not None:
        raise Tampered(
            f"the journal ends at record {last.seq}, but the given head is record {head.seq}: its tail was cut off"
        )
    return last
