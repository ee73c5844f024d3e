"""What a memory must be able to do: one contract, short drivers.

A store is one append-only list of records, chained by digest, shared by everything that must be remembered: the calls
and runs of sessions, and the conversations of the server. It knows nothing of either, but for one table of rules: which
kinds of records replace or end each other (chain.py). Drivers: `memory`, `sqlite` and `postgres`.

Four ideas carry the whole product:

* **Order.** Records become durable in the order in which they were accepted, so a durable record implies all before it.
* **Groups.** `commit` makes its records durable together or not at all.
* **Once.** A record may claim a key that no other record of the store ever had. Who comes second gets False, in this
  process or in another one. An answer, the burning of a seal and the start of a call are such records.
* **Contents.** Bytes that a record holds beside its data, such as an image that a tool made. They become durable with
  the record, are kept once by their digest however many records hold them, and are gone when the last of those was
  forgotten. Whoever reads them gets what was written, or Tampered.

Data can be forgotten (pruned) without breaking the chain (chain.py) or freeing a key, and nothing else can change
unseen. What is read is proven in three strengths: `prove` for whatever is only shown or told, `prove_from` for what
starts something by the word of an old record, and `verify` for all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextvars import ContextVar
from operator import attrgetter
from pathlib import Path
from types import coroutine
from typing import Any, Protocol

import msgspec

from lastword.store.chain import (
    GENESIS,
    INVESTIGATE,
    Behind,
    Entry,
    Head,
    Pruned,
    Record,
    StoreError,
    Tampered,
    compare,
    cut_off,
    digest,
    follow,
    follows,
    tampered,
    verify,
)

# The largest value that canonical JSON admits has 16 million characters, of at most six bytes each when escaped.
MAX_DATA_BYTES = 100_000_000
# Contents are held in memory whole, by whoever writes and by whoever reads. What is larger belongs into a file.
MAX_CONTENT_BYTES = 32 * 2**20
WRITE = "write into the journal"


class ReadOnlyGuard(Protocol):
    """Whoever watches code that may only look, such as a tool's while its card is drawn (tools/guard/)."""

    def refuse(self, what: str) -> Exception: ...


read_only_guard: ContextVar[ReadOnlyGuard | None] = ContextVar("lastword_guard", default=None)
"""Who watches this task or thread; None when it may do what it likes. The guard stands above this room and puts itself
here, so a store refuses whoever is watched, by whichever way they came to hold it."""


def refuse_if_watched(what: str, name: str = "") -> None:
    """For effects of our own: refuse them while somebody watches this task or thread."""
    guard = read_only_guard.get()
    if guard is not None:
        raise guard.refuse(what + name)


class Filter(msgspec.Struct, frozen=True, gc=False):
    """Which records are wanted, and how many of them: the first of more than `limit`, the last of more than `last`."""

    stream: str | None = None
    kinds: Sequence[str] | None = None
    subject: str | None = None
    below: str | None = None
    after: int = 0
    limit: int | None = None
    last: int | None = None


class Store(ABC):
    """The contract of a driver. Every method may be called from any thread, and from any running event loop.

    While a guard watches whatever changes something is refused: `append`, `commit` of entries, `accept`, `forget`,
    `hold`, `grant` and `close`. It is refused here, once; a driver says how the rest is done.
    """

    PAGE_RECORDS = 500
    """A walk over a whole store holds this many records at a time, however long the store is."""

    files: Sequence[Path] = ()
    """The files of this machine that it lies in, whether they are there at this moment or not, and folders that hold
    nothing else. Nobody but the store writes them."""

    def append(self, entry: Entry) -> None:
        """Accept an entry without waiting for the disk. For what may be lost in a crash, but never reordered.

        It claims no key: whether a key was free is only known after a commit. What could not be written is kept,
        written as soon as that is possible, and reported by `commit`, `read` and `close` until then.
        """
        assert entry.once is None, "an entry that claims a key is committed, not appended"
        assert not entry.irrevocable, "what cannot be taken back is committed, not appended"
        if read_only_guard.get() is not None:
            refuse_if_watched(WRITE)
        _check(entry)
        self._append(entry)

    @abstractmethod
    def _append(self, entry: Entry) -> None:
        """Accept an entry that was checked."""

    def commit(self, *entries: Entry) -> Awaitable[bool]:
        """Make the entries durable, together and after everything accepted before.

        False, with nothing written, when a key that one of them claims is taken. StoreError, with nothing written,
        when they could not be made durable. Without entries it waits until everything accepted before is durable. A
        commit that is cancelled while it waits may still happen. What no driver can hold is refused at once.
        """
        if entries:
            if read_only_guard.get() is not None:
                refuse_if_watched(WRITE)
            for entry in entries:
                _check(entry)
            if len(entries) > 1:
                keys = [entry.once for entry in entries if entry.once is not None]
                assert len(keys) == len(set(keys)), "a group claims one key twice"
        return self._commit(entries)

    @abstractmethod
    def _commit(self, entries: tuple[Entry, ...]) -> Awaitable[bool]:
        """Make a group durable that was checked."""

    def read(
        self,
        *,
        stream: str | None = None,
        kind: str | Sequence[str] | None = None,
        subject: str | None = None,
        below: str | None = None,
        after: int = 0,
        limit: int | None = None,
        last: int | None = None,
    ) -> Coroutine[Any, Any, Sequence[Record]]:
        """The records that match, oldest first. What this store object accepted is seen, waiting for it if need be.

        Several kinds match any of them. `below` matches a subject and those that begin with it and a dot: a run and
        its calls. Of more than `limit` the first are given, of more than `last` the last.
        """
        assert limit is None or last is None, "the first or the last, not both"
        kinds = (kind,) if isinstance(kind, str) else kind
        return self._select(Filter(stream, kinds, subject, below, after, limit, last))

    @abstractmethod
    async def _select(self, wanted: Filter) -> Sequence[Record]:
        """The records that a filter lets through, oldest first."""

    @abstractmethod
    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        """The records of these kinds that still count by the rules of chain.py, in the order in which each began to.

        It costs what it returns, however long the list is.
        """

    @abstractmethod
    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        """These records without their data, oldest first: what the chain is made of. Missing ones are passed over."""

    @abstractmethod
    async def taken(self, once: str) -> Record | None:
        """The record that holds this key."""

    @abstractmethod
    async def head(self) -> Head:
        """Where the chain ends now."""

    @abstractmethod
    async def behind(self) -> Behind | None:
        """What is missing of what was seen of this store, here or in another process; None when all of it is there."""

    async def accept(self, head: Head) -> None:
        """Take this head as what was last seen, whatever was seen before: a person has read what `behind` says.

        StoreError when the store does not hold it.
        """
        refuse_if_watched(WRITE)
        await self._accept(head)

    @abstractmethod
    async def _accept(self, head: Head) -> None:
        """Keep this head as the one that was seen."""

    @abstractmethod
    async def changed(self, after: int) -> None:
        """Return once there is a record beyond `after`, whichever process wrote it."""

    @abstractmethod
    async def content(self, digest: str) -> bytes | None:
        """The bytes of this digest; None when no record holds such. Raises Tampered when they are others."""

    async def forget(self, seqs: Iterable[int]) -> Pruned:
        """Drop the data of these records, and the contents that only they hold; heads, keys and chain stay.

        Numbers that no record has, and records that were forgotten before, are passed over. MayNotForget, with nothing
        forgotten, where that is another's right.
        """
        refuse_if_watched(WRITE)
        return await self._forget(seqs)

    @abstractmethod
    async def _forget(self, seqs: Iterable[int]) -> Pruned:
        """Drop the data of these records."""

    def hold(self, name: str) -> Callable[[], None] | None:
        """Hold a name until the returned function is called or this process ends; None when somebody else holds it.

        Where a living process can lose what it holds, as one that is cut off from a server, and another has taken a
        name of it, whatever it still wants to write is refused with Overtaken.
        """
        refuse_if_watched(WRITE)
        return self._hold(name)

    @abstractmethod
    def _hold(self, name: str) -> Callable[[], None] | None:
        """Hold a name, or say that somebody else does."""

    @abstractmethod
    def is_held(self, name: str) -> bool:
        """Whether somebody holds a name at this moment. Whoever asks takes nothing by that, and nobody loses it."""

    @abstractmethod
    async def examine(self) -> None:
        """Raise Tampered where what lies beside the records contradicts them: an index from which a key was removed."""

    async def grant(self, role: str, *, forgetting: bool) -> bool:
        """Let a role of the server read and append here, and nothing else; and forget, if that is said.

        False, with nothing changed, where there are no roles.
        """
        refuse_if_watched(WRITE)
        return await self._grant(role, forgetting)

    async def _grant(self, role: str, forgetting: bool) -> bool:
        return False

    async def close(self) -> None:
        """Make everything accepted durable, then let go. Using the store again opens it again.

        StoreError when something accepted could not be made durable; the store then stays open, so that closing can
        be tried again.
        """
        refuse_if_watched(WRITE)
        await self._close()

    @abstractmethod
    async def _close(self) -> None:
        """Make everything accepted durable, then let go."""

    async def contains(self, head: Head) -> bool:
        """Whether it has the record that a head names."""
        if not head.seq:
            return head.digest == GENESIS
        return any(found.digest == head.digest for found in await self.links([head.seq]))

    async def verify(self, *, head: Head | None = None, start: Head | None = None) -> Head:
        """Verify all of it, one page of records in memory at a time, then what lies beside the records.

        Whoever has verified it up to a `start` can go on from there. What lies beside the records is then left alone:
        it can only be compared with all of them.
        """
        last = Head(0, GENESIS) if start is None else start
        for known in (start, head):
            # The walk meets a head that lies before its start as little as the start itself.
            if start is not None and known is not None and 0 < known.seq <= start.seq:
                found = await self.links([known.seq])
                if not found:
                    raise cut_off((await self.head()).seq, known)
                compare(Head(known.seq, found[0].digest), known)
        while page := await self.read(after=last.seq, limit=self.PAGE_RECORDS):
            last = verify(page, start=last, head=head if head is not None and head.seq <= page[-1].seq else None)
        last = verify((), start=last, head=head)
        if start is None:
            await self.examine()
        return last

    async def prove(self, records: Iterable[Record]) -> None:
        """Raise Tampered when one of these records does not fit between its neighbours, as the store has them.

        Each must follow from the one before it, and the one after it must follow from it. Whoever edits a record, puts
        one in or takes one out must have written the neighbours anew as well.
        """
        given = {record.seq: record for record in records}
        beside = {seq for own in given for seq in (own - 1, own + 1) if seq and seq not in given}
        links = {link.seq: link for link in await self.links(sorted(beside))}
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
        if ends and (short := [seq for seq in ends if seq < (await self.head()).seq]):
            found = {link.seq for link in await self.links([seq + 1 for seq in short])}
            for seq in short:
                if seq + 1 not in found:
                    raise _missing(seq + 1)

    async def prove_from(self, seq: int) -> Head:
        """Raise Tampered when the chain, without the data, does not hold from this record to its end; else its end.

        Whoever hid something behind that record, by whatever edit, must have written everything anew up to the head;
        and the head that was last seen is kept outside (head_file.py).
        """
        before = await self.links([seq - 1]) if seq > 1 else ()
        if seq > 1 and not before:
            raise _missing(seq - 1)
        last = Head(seq - 1, before[0].digest) if before else Head(0, GENESIS)
        while links := await self.links(range(last.seq + 1, last.seq + 1 + self.PAGE_RECORDS)):
            for link in links:
                last = follow(last, link)
            await _turn()  # It may be a long way, and others wait for theirs meanwhile.
        # Somebody writes at this moment, or a whole page of records is gone and what is behind it does not follow.
        for link in await self.links(range(last.seq + 1, (await self.head()).seq + 1)):
            last = follow(last, link)
        return last


@coroutine
def _turn() -> Generator[None, None, None]:
    """What `asyncio.sleep(0)` does. To import asyncio brings ssl, which the guard has to wrap before anybody has it."""
    yield


_seq = attrgetter("seq")


def _missing(seq: int) -> Tampered:
    return Tampered(f"record {seq} is missing", hint=INVESTIGATE)


def _check(entry: Entry) -> None:
    """Refuse what no driver can hold, before it is accepted and somebody relies on it."""
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
