"""What the drivers share that write beyond their own process: one thread that writes (writer.py), and how SQL asks.

A driver says how its ledger is opened and how it is asked. Reading is its own business; nothing is opened before the
first use.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Generic, NamedTuple

from lastword.errors import NewerStore, StoreError, Tampered
from lastword.store.chain import CurrentRow, Entry, Head, Pruned
from lastword.store.contract import WRITE, Filter, Store, refuse_if_watched
from lastword.store.writer import TAKEN, Adopted, AnyLedger, Applied, Job, StoreChange, Writer

# Other processes can write between two transactions of this many, so that none waits long.
FORGET_RECORDS = 500

COLUMNS = ("seq", "stream", "kind", "subject", "at", "data", "once", "data_digest", "digest")


class DurableStore(Store, Generic[AnyLedger]):
    """Records that outlive the process, in a place that others may use at the same time."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lock = Lock()
        self._writer: Writer[AnyLedger] | None = None

    @abstractmethod
    def _open_writer(self) -> Writer[AnyLedger]:
        """A writer for the ledger of this store, which connects when it is first used."""

    def _append(self, entry: Entry) -> None:
        while not self._living_writer().append(entry):
            pass

    async def _commit(self, entries: tuple[Entry, ...]) -> bool:
        return await self._change(StoreChange(entries)) is not TAKEN

    async def accept(self, head: Head) -> None:
        refuse_if_watched(WRITE)
        await self._change(StoreChange(accept=head))

    async def forget(self, seqs: Iterable[int]) -> Pruned:
        refuse_if_watched(WRITE)
        forgotten = Pruned()
        rest = iter(seqs)
        while some := tuple(islice(rest, FORGET_RECORDS)):
            forgotten += (await self._change(StoreChange(prune=some))).forgotten
        return forgotten

    async def changed(self, after: int) -> None:
        reply = asyncio.get_running_loop().create_future()
        while True:
            writer = self._living_writer()
            self._listen(writer.ledger)
            if writer.watch(after, reply):
                break
        try:
            await reply
        finally:
            writer.unwatch(reply)

    def _listen(self, ledger: AnyLedger) -> None:
        """Hear of what others write, where that can be heard."""

    async def close(self) -> None:
        refuse_if_watched(WRITE)
        ended = asyncio.get_running_loop().create_future()
        while self._writer is not None:
            if self._stop(ended):
                await ended
            else:
                await self._change(StoreChange())

    # What is needed to take all of it elsewhere (exports.py).

    @abstractmethod
    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        """Which of these records hold which contents: number and digest."""

    @abstractmethod
    async def current_rows(self) -> Sequence[CurrentRow]:
        """Where all the records are that still count."""

    async def adopt(self, adopted: Adopted) -> None:
        """Write something of another store as it is there. StoreError when it does not follow what is here."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange(adopted=adopted))

    async def _change(self, change: StoreChange) -> Applied:
        reply = asyncio.get_running_loop().create_future()
        job = Job(change, reply)
        while not self._living_writer().submit(job):
            pass
        done: Applied = await reply
        return done

    async def _catch_up(self) -> Writer[AnyLedger]:
        """Let everything accepted reach the ledger before it is read. Usually it has."""
        writer = self._living_writer()
        if writer.unwritten or not writer.ledger.is_open:
            await self._change(StoreChange())
            writer = self._living_writer()
        return writer

    def _living_writer(self) -> Writer[AnyLedger]:
        writer = self._writer
        if writer is None or writer.process != os.getpid():
            writer = self._start_writer()
        return writer

    def _start_writer(self) -> Writer[AnyLedger]:
        with self._lock:
            if self._writer is None:
                self._writer = self._open_writer()
                weakref.finalize(self, self._writer.retire).atexit = False
            elif self._writer.process != os.getpid():
                raise StoreError(
                    "the store was opened before the process forked",
                    place=self._place,
                    hint="open it in the new process; a connection cannot be shared by two",
                )
            return self._writer

    def _stop(self, ended: asyncio.Future[None]) -> bool:
        """End the writer; `ended` is answered when it has let go. False when something is left to write."""
        with self._lock:
            if self._writer is None:
                ended.set_result(None)
            elif not self._writer.stop(ended):
                return False
            self._writer = None
            self._close_readers()
            return True

    def _close_readers(self) -> None:
        """Let go of what the store itself has open. The lock is held."""

    def _joined(self, seq: int, kind: str | bytes, stream: str | bytes, row: Sequence[Any]) -> Sequence[Any]:
        """The columns of a record that is said to count, if they are those of that record."""
        if tuple(row[:3]) != (seq, stream, kind):
            what = kind.decode(errors="replace") if isinstance(kind, bytes) else kind
            raise Tampered(
                f"record {seq} ({what}), which still counts, is missing or was changed",
                place=self._place,
                hint="lastword journal verify finds the first record that does not fit; restore from a copy",
            )
        return row


def load_migrations(folder: str) -> list[str]:
    """The steps from nothing to the present form. Step n is in the file whose name begins with n."""
    # By the package's resources it would cost the start of every hook.
    found = sorted(Path(__file__).with_name(folder).glob("*.sql"))
    for number, step in enumerate(found, start=1):
        assert step.name.startswith(f"{number:04d}_"), f"{step.name} is not step {number}"
    return [step.read_text(encoding="utf-8") for step in found]


def of_a_later_version(form: int, known: int, place: str, kind: str) -> NewerStore:
    """What was brought further than this version can follow."""
    return NewerStore(
        f"written by a later version of lastword (its form is {form}, this version knows {known})",
        place=place,
        hint=f"upgrade lastword, or name another {kind}",
    )


WRONG_CONTENTS = """
SELECT h.digest, 'is missing' FROM holds AS h LEFT JOIN contents AS c USING (digest) WHERE c.digest IS NULL
UNION ALL SELECT h.digest, 'is held by a record that was forgotten' FROM holds AS h
    LEFT JOIN records AS r USING (seq) WHERE r.data IS NULL
UNION ALL SELECT c.digest, 'is held by no record' FROM contents AS c
    WHERE NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.digest = c.digest)
LIMIT 1"""
"""Finds a content that is missing, or is held by no record."""
RESTORE = "restore it from a copy, and keep both for whoever investigates"


class Dialect(NamedTuple):
    """What two kinds of SQL do not have in common."""

    mark: Callable[[int], str]
    """The place of the value of this number."""
    hidden: str
    """A column that the planner must not look up by an index. It would not know which of two is the narrower one."""
    text: Callable[[str], Any]
    """How a text is stored."""


class Conditions:
    """What follows WHERE. The first column that is named is looked up by its index, the others are not."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._conditions: list[str] = []
        self.values: list[Any] = []
        self.is_narrow = False
        """Whether a column was named."""

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"

    def add(self, condition: str, *values: Any) -> None:
        """One more condition, with a pair of braces for each value."""
        first = len(self.values) + 1
        self._conditions.append(condition.format(*(self._dialect.mark(first + n) for n in range(len(values)))))
        self.values += values

    def select(self, wanted: Filter) -> None:
        """Everything that a filter says, but for the numbers of the records."""
        if wanted.below is not None:
            text, below = self._dialect.text, wanted.below
            column, hidden = self._column("subject"), self._dialect.hidden.format("subject")
            # The slash follows the dot, so this span of the index holds what is wanted and hardly anything else.
            self.add(f"{column} >= {{}} AND {column} < {{}}", text(below), text(f"{below}/"))
            start = text(f"{below}.")
            self.add(f"({hidden} = {{}} OR substr({hidden}, 1, {{}}) = {{}})", text(below), len(start), start)
        if wanted.subject is not None:
            self.only("subject", (wanted.subject,))
        if wanted.stream is not None:
            self.only("stream", (wanted.stream,))
        if wanted.kinds is not None:
            self.only("kind", wanted.kinds)

    def only(self, column: str, values: Sequence[str]) -> None:
        """Where a column has one of these values."""
        places = ", ".join(["{}"] * len(values)) or "NULL"
        self.add(f"{self._column(column)} IN ({places})", *map(self._dialect.text, values))

    def _column(self, name: str) -> str:
        found = self._dialect.hidden.format(name) if self.is_narrow else name
        self.is_narrow = True
        return found
