"""Records, and the chain that they make. Nothing here knows of a store.

A record's digest covers the digest before it, its own head and the digest of its data. Data can therefore be forgotten
without breaking the chain, and nothing else can change unseen. Whoever kept a head can prove that nothing was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from lastword.errors import StoreError, Tampered

GENESIS = "0" * 64
"""The digest before the first record."""
INVESTIGATE = "restore the journal from a copy, and keep both for whoever investigates"

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
    irrevocable: bool = False
    """Whether something happens once it is durable that nobody can take back. It is written only to a store that holds
    everything that was ever seen of it, and where the store then ends is kept outside before the commit returns."""
    contents: tuple[bytes, ...] = ()
    """What it holds beside its data. The chain covers them if the data names their digests."""


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

    def __str__(self) -> str:
        """The form in which a person keeps it and gives it back: `SEQ:DIGEST`."""
        return f"{self.seq}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read a head as `str(head)` writes it."""
        found = re.fullmatch(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})", text.strip(), re.ASCII)
        if found is None:
            raise StoreError(
                f"{text.strip()!r} is not the head of a journal",
                hint="a head is a number, a colon and 64 hexadecimal digits, as `lastword journal verify` prints it",
            )
        return cls(int(found[1]), found[2])


def link(previous: str, seq: int, entry: Entry) -> Record:
    """Put an entry behind the record whose digest is `previous`."""
    of_data = sha256(entry.data).hexdigest()
    chained = digest(previous, seq, entry, of_data)
    return Record(seq, entry.stream, entry.kind, entry.subject, entry.at, entry.data, entry.once, of_data, chained)


def digest(previous: str, seq: int, head: Entry | Record, of_data: str) -> str:
    """The digest of a record: of the one before, its head and the digest of its data."""
    covered = (previous, seq, head.stream, head.kind, head.subject, head.at, head.once, of_data)
    return sha256(_encode(covered)).hexdigest()


def chain(previous: str, seq: int, entries: Iterable[Entry]) -> list[str]:
    """The digests of entries that are put, one after the other, behind the record whose digest is `previous`.

    The same as `digest` for each, in one loop: a memory of calls that need no approval does little else.
    """
    sha, encode = sha256, _encode
    digests = []
    for entry in entries:
        of_data = sha(entry.data).hexdigest()
        covered = (previous, seq, entry.stream, entry.kind, entry.subject, entry.at, entry.once, of_data)
        previous = sha(encode(covered)).hexdigest()
        digests.append(previous)
        seq += 1
    return digests


def verify(records: Iterable[Record], *, start: Head | None = None, head: Head | None = None) -> Head:
    """Walk the chain and return its end; raise Tampered at the first record that does not fit.

    A chain alone cannot know that its tail was cut off: pass a `head` kept elsewhere to prove that it was not.
    """
    last = start or Head(0, GENESIS)
    compare(last, head)
    for record in records:
        last = follow(last, record)
        compare(last, head)
    if head is not None and head.seq > last.seq:
        raise cut_off(last.seq, head)
    return last


def follow(last: Head, record: Record) -> Head:
    """Where the chain ends after one more record."""
    if record.seq != last.seq + 1:
        raise Tampered(
            f"record {last.seq + 1} is missing or out of place (found {record.seq})",
            hint=INVESTIGATE,
        )
    if not follows(last.digest, record):
        raise tampered(record)
    return Head(record.seq, record.digest)


def follows(previous: str, record: Record) -> bool:
    """Whether a record is as it was written, if the one before it has this digest."""
    if record.data is not None and sha256(record.data).hexdigest() != record.data_digest:
        return False
    return digest(previous, record.seq, record, record.data_digest) == record.digest


def compare(here: Head, pin: Head | None) -> None:
    """Raise Tampered when another record stands where a head that somebody kept names one."""
    if pin is not None and pin.seq == here.seq and pin.digest != here.digest:
        raise Tampered(
            f"record {here.seq} is not the one that the given head names",
            hint="this is another journal, or one that was written anew from some record on",
        )


def cut_off(end: int, head: Head) -> Tampered:
    """The chain ends before a head that somebody kept."""
    return Tampered(
        f"the journal ends at record {end}, but the given head is record {head.seq}: its tail was cut off",
        hint=INVESTIGATE,
    )


def tampered(record: Record, how: str | None = None) -> Tampered:
    """A record that does not fit where it stands."""
    return Tampered(
        f"record {record.seq} ({record.kind}) was changed after it was written{f': {how}' if how else ''}",
        hint="everything before it is as it was written; restore from a copy to see what it said",
    )


def check_content(digest: str, data: object) -> bytes:
    """The bytes that were kept under this digest, if they are those."""
    if type(data) is not bytes or sha256(data).hexdigest() != digest:
        raise Tampered(
            "what a record holds was changed after it was written",
            place=digest,
            hint="restore the journal from a copy to see what it was",
        )
    return data
