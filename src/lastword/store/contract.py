"""What a memory must be able to do: one contract, short drivers.

A store is one append-only list of records, chained by digest, shared by everything that must be remembered: the calls
and runs of sessions, and the conversations of the server. It knows nothing of either, but for one table of rules: which
kinds of records replace or end each other (standing.py). Drivers: `memory`, `sqlite` and `postgres`.

Four ideas carry the whole product:

* **Order.** Records become durable in the order in which they were accepted, so a durable record implies all before it.
* **Groups.** `commit` makes its records durable together or not at all.
* **Once.** A record may claim a key that no other record of the store ever had. Who comes second gets False, in this
  process or in another one. An answer, the burning of a seal and the start of a call are such records.
* **Contents.** Bytes that a record holds beside its data, such as an image that a tool made. They become durable with
  the record, are kept once by their digest however many records hold them, and are gone when the last of those was
  forgotten. Whoever reads them gets what was written, or Tampered.

The chain: a record's digest covers the digest before it, its own head and the digest of its data. Data can therefore be
forgotten (pruned) without breaking the chain or freeing a key, and nothing else can change unseen. What is proven
before a record is acted upon is in proof.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from lastword.errors import StoreError, Tampered
from lastword.store.pen import WRITE, refuse_if_watched

GENESIS = "0" * 64
"""The digest before the first record."""

# The largest value that canonical JSON admits has 16 million characters, of at most six bytes each when escaped.
MAX_DATA_BYTES = 100_000_000
# Contents are held in memory whole, by whoever writes and by whoever reads. What is larger belongs into a file.
MAX_CONTENT_BYTES = 32 * 2**20
# A walk over a whole store holds this many records at a time, however long the store is.
PAGE_RECORDS = 500

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

    @property
    def size(self) -> int:
        """The bytes of its data and of what it holds."""
        return len(self.data) + sum(map(len, self.contents)) if self.contents else len(self.data)


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


class Pruned(msgspec.Struct, frozen=True):
    """What is gone."""

    records: int = 0
    """How many lost their data."""
    contents: int = 0
    """How many contents nobody holds any more."""
    content_bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.records + other.records,
            self.contents + other.contents,
            self.content_bytes + other.content_bytes,
        )


class Behind(msgspec.Struct, frozen=True):
    """A store that does not hold what was seen of it: its log was lost, it was restored from a copy, it is another."""

    fact: str
    """What does not fit, in words."""
    found: Head
    """Where the store ends."""
    seen: Head | None
    """Where it was last seen to end; None when that is not known any more."""


class Store(Protocol):
    """The contract of a driver. Every method may be called from any thread, and from any running event loop.

    While a guard watches (pen.py) whatever changes something is refused: `append`, `commit` of entries, `accept`,
    `forget`, `hold` and `close`.
    """

    @property
    def files(self) -> Sequence[Path]:
        """The files of this machine that it lies in, whether they are there at this moment or not, and folders that
        hold nothing else. Nobody but the store writes them."""

    def append(self, entry: Entry) -> None:
        """Accept an entry without waiting for the disk. For what may be lost in a crash, but never reordered.

        It claims no key: whether a key was free is only known after a commit. What could not be written is kept,
        written as soon as that is possible, and reported by `commit`, `read` and `close` until then.
        """

    async def commit(self, *entries: Entry) -> bool:
        """Make the entries durable, together and after everything accepted before.

        False, with nothing written, when a key that one of them claims is taken. StoreError, with nothing written,
        when they could not be made durable. Without entries it waits until everything accepted before is durable. A
        commit that is cancelled while it waits may still happen.
        """

    async def read(
        self,
        *,
        stream: str | None = None,
        kind: str | Sequence[str] | None = None,
        subject: str | None = None,
        below: str | None = None,
        after: int = 0,
        limit: int | None = None,
        last: int | None = None,
    ) -> Sequence[Record]:
        """The records that match, oldest first. What this store object accepted is seen, waiting for it if need be.

        Several kinds match any of them. `below` matches a subject and those that begin with it and a dot: a run and
        its calls. Of more than `limit` the first are given, of more than `last` the last.
        """

    async def standing(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        """The records of these kinds that still count by the rules of standing.py, in the order in which each began to.

        It costs what it returns, however long the list is.
        """

    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        """These records without their data, oldest first: what the chain is made of. Missing ones are passed over."""

    async def taken(self, once: str) -> Record | None:
        """The record that holds this key."""

    async def head(self) -> Head:
        """Where the chain ends now."""

    async def behind(self) -> Behind | None:
        """What is missing of what was seen of this store, here or in another process; None when all of it is there."""

    async def accept(self, head: Head) -> None:
        """Take this head as what was last seen, whatever was seen before: a person has read what `behind` says.

        StoreError when the store does not hold it.
        """

    async def changed(self, after: int) -> None:
        """Return once there is a record beyond `after`, whichever process wrote it."""

    async def content(self, digest: str) -> bytes | None:
        """The bytes of this digest; None when no record holds such. Raises Tampered when they are others."""

    async def forget(self, seqs: Iterable[int]) -> Pruned:
        """Drop the data of these records, and the contents that only they hold; heads, keys and chain stay.

        Numbers that no record has, and records that were forgotten before, are passed over. MayNotForget, with nothing
        forgotten, where that is another's right.
        """

    def hold(self, name: str) -> Callable[[], None] | None:
        """Hold a name until the returned function is called or this process ends; None when somebody else holds it.

        Where a living process can lose what it holds, as one that is cut off from a server, and another has taken a
        name of it, whatever it still wants to write is refused with Overtaken.
        """

    def is_held(self, name: str) -> bool:
        """Whether somebody holds a name at this moment. Whoever asks takes nothing by that, and nobody loses it."""

    async def examine(self) -> None:
        """Raise Tampered where what lies beside the records contradicts them: an index from which a key was removed."""

    async def close(self) -> None:
        """Make everything accepted durable, then let go. Using the store again opens it again.

        StoreError when something accepted could not be made durable; the store then stays open, so that closing can
        be tried again.
        """


def check(entry: Entry) -> None:
    """Refuse what no driver can hold, before it is accepted and somebody relies on it; and whoever may not write."""
    refuse_if_watched(WRITE)
    at, once = entry.at, entry.once
    fits = len(entry.data) <= MAX_DATA_BYTES and 0 <= at < 2**63 and (once is None or once.isascii())
    if entry.contents and (largest := max(map(len, entry.contents))) > MAX_CONTENT_BYTES:
        raise StoreError(
            f"an entry of kind {entry.kind} holds a content of {largest} bytes; {MAX_CONTENT_BYTES} is the most",
            hint="keep large data in a file, and its path in the journal",
        )
    if fits and entry.subject.isascii() and entry.stream.isascii() and entry.kind.isascii():
        return  # Nearly always, and every call pays for it several times.
    if len(entry.data) > MAX_DATA_BYTES:
        raise StoreError(
            f"an entry of kind {entry.kind} has {len(entry.data)} bytes; {MAX_DATA_BYTES} is the most",
            hint="keep large data in a file, and its path in the journal",
        )
    if not -(2**63) <= entry.at < 2**63:
        raise StoreError(f"the time {entry.at} of an entry does not fit 64 bits", hint="times are in microseconds")
    try:
        for text in (entry.stream, entry.kind, entry.subject, entry.once or ""):
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError as problem:
        raise StoreError(
            f"{problem.object!r} holds half a character, the surrogate U+{ord(problem.object[problem.start]):04X}"
        ) from None


def check_group(entries: Sequence[Entry]) -> None:
    """Refuse a group that no driver can hold, whole."""
    for entry in entries:
        check(entry)
    if len(entries) > 1:
        keys = [entry.once for entry in entries if entry.once is not None]
        assert len(keys) == len(set(keys)), "a group claims one key twice"


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
    _compare(last, head)
    for record in records:
        last = follow(last, record)
        _compare(last, head)
    if head is not None and head.seq > last.seq:
        raise _cut_off(last.seq, head)
    return last


async def verify_store(store: Store, *, head: Head | None = None, start: Head | None = None) -> Head:
    """Verify a whole store, one page of records in memory at a time, then what lies beside the records.

    Whoever has verified it up to a `start` can go on from there. What lies beside the records is then left alone: it
    can only be compared with all of them.
    """
    last = Head(0, GENESIS) if start is None else start
    for known in (start, head):
        # The walk meets a head that lies before its start as little as the start itself.
        if start is not None and known is not None and 0 < known.seq <= start.seq:
            await _check_held(store, known)
    while page := await store.read(after=last.seq, limit=PAGE_RECORDS):
        last = verify(page, start=last, head=head if head is not None and head.seq <= page[-1].seq else None)
    last = verify((), start=last, head=head)
    if start is None:
        await store.examine()
    return last


async def _check_held(store: Store, known: Head) -> None:
    found = await store.links([known.seq])
    if not found:
        raise _cut_off((await store.head()).seq, known)
    _compare(Head(known.seq, found[0].digest), known)


async def contains(store: Store, head: Head) -> bool:
    """Whether the store has the record that a head names."""
    if not head.seq:
        return head.digest == GENESIS
    return any(found.digest == head.digest for found in await store.links([head.seq]))


def not_held(head: Head) -> StoreError:
    """Somebody accepts what is not there."""
    return StoreError(f"this journal does not hold the head {head}", hint="look at it again, and accept what is there")


def _cut_off(end: int, head: Head) -> Tampered:
    return Tampered(
        f"the journal ends at record {end}, but the given head is record {head.seq}: its tail was cut off",
        hint="restore the journal from a copy, and keep both for whoever investigates",
    )


def follow(last: Head, record: Record) -> Head:
    """Where the chain ends after one more record."""
    if record.seq != last.seq + 1:
        raise Tampered(
            f"record {last.seq + 1} is missing or out of place (found {record.seq})",
            hint="restore the journal from a copy, and keep both for whoever investigates",
        )
    if not follows(last.digest, record):
        raise tampered(record)
    return Head(record.seq, record.digest)


def follows(previous: str, record: Record) -> bool:
    """Whether a record is as it was written, if the one before it has this digest."""
    if record.data is not None and sha256(record.data).hexdigest() != record.data_digest:
        return False
    return digest(previous, record.seq, record, record.data_digest) == record.digest


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


def _compare(here: Head, pin: Head | None) -> None:
    if pin is not None and pin.seq == here.seq and pin.digest != here.digest:
        raise Tampered(
            f"record {here.seq} is not the one that the given head names",
            hint="this is another journal, or one that was written anew from some record on",
        )


def parse_head(text: str) -> Head:
    """Read a head as `str(head)` writes it."""
    found = re.fullmatch(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})", text.strip(), re.ASCII)
    if found is None:
        raise StoreError(
            f"{text.strip()!r} is not the head of a journal",
            hint="a head is a number, a colon and 64 hexadecimal digits, as `lastword journal verify` prints it",
        )
    return Head(int(found[1]), found[2])
