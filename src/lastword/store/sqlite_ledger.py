"""The connection that writes: one transaction at a time, chained inside it. Knows nothing of threads or of waiting.

A COMMIT that reports an error may still have happened. A record's digest depends on all before it, so looking for the
digest that the last record would have settles the question, and nothing is written twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec

from lastword.errors import StoreError
from lastword.store import GENESIS, Entry, Head, link
from lastword.store.sqlite_file import check_version, connect

_INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Change(msgspec.Struct, frozen=True, gc=False):
    """Entries to be written together, then records that shall lose their data."""

    entries: tuple[Entry, ...] = ()
    prune: tuple[int, ...] = ()


class InDoubt(Exception):
    """The disk failed in COMMIT and again when asked whether it happened. `Ledger.happened` asks once more."""


class Ledger:
    """The file, opened on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = str(path)
        self._connection: apsw.Connection | None = None
        self._identity = (0, 0)
        self._expected = Head(0, GENESIS)

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def open(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = connect(self._path)
            self._identity = _identity(self._place)
        return self._connection

    def close(self) -> None:
        """Let go of the file. Everything committed is durable already, so tidying up may fail."""
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None

    def last_seq(self) -> int:
        return int(self.open().execute("SELECT ifnull(max(seq), 0) FROM records").get)

    def write(self, changes: Sequence[Change]) -> list[int]:
        """Carry out the changes in one transaction.

        Per change, the number of records written and pruned; -1 when a key that it claims is taken, and then nothing
        of it was written. When this raises, nothing of any change was written; except InDoubt, where that is unknown.
        """
        connection = self.open()
        if not any(change.entries or change.prune for change in changes):
            return [0] * len(changes)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._check_place()
            check_version(connection, self._path)
            before = head = _head(connection)
            results = []
            for change in changes:
                head, result = _apply(connection, head, change)
                results.append(result)
        except BaseException:
            self._roll_back()
            raise
        try:
            connection.execute("COMMIT")
        except apsw.Error:
            self._roll_back()
            self._expected = head
            if head == before or not self.happened():
                self._bury()
                raise
        if any(change.prune for change in changes):
            # The log still holds what was pruned.
            self._bury()
        return results

    def happened(self) -> bool:
        """Whether the transaction whose COMMIT failed last is in the file."""
        try:
            found = self.open().execute("SELECT digest FROM records WHERE seq = ?", (self._expected.seq,)).get
        except (apsw.Error, StoreError) as problem:
            raise InDoubt from problem
        return bool(found == self._expected.digest)

    def _bury(self) -> None:
        """Empty the log into the file.

        A transaction whose COMMIT failed may lie complete in the log, where a crash now would let it rise again. The
        next transaction writes over it; this does so at once, if the disk and the other processes let it.
        """
        with suppress(apsw.Error):
            self.open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _roll_back(self) -> None:
        connection = self.open()
        if connection.in_transaction:
            with suppress(apsw.Error):
                connection.execute("ROLLBACK")

    def _check_place(self) -> None:
        """Refuse to write to a file that nobody will find again: SQLite itself would go on in silence."""
        if _identity(self._place) != self._identity:
            raise StoreError(
                "the file was moved, replaced or deleted while it was in use",
                place=self._place,
                hint="put it back, or end this process and start again",
            )


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _head(connection: apsw.Connection) -> Head:
    # Read in every transaction, since another process may have written. It takes 3 µs of the 200 that a commit takes.
    row = connection.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").get
    return Head(*row) if row else Head(0, GENESIS)


def _apply(connection: apsw.Connection, head: Head, change: Change) -> tuple[Head, int]:
    for entry in change.entries:
        if entry.once is not None and connection.execute("SELECT 1 FROM records WHERE once = ?", (entry.once,)).get:
            return head, -1
    for entry in change.entries:
        record = link(head.digest, head.seq + 1, entry)
        connection.execute(_INSERT, msgspec.structs.astuple(record))
        head = Head(record.seq, record.digest)
    count = len(change.entries)
    for seq in change.prune:
        connection.execute("UPDATE records SET data = NULL WHERE seq = ? AND data IS NOT NULL", (seq,))
        count += connection.changes()
    return head, count
