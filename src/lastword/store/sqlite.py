"""The store in a SQLite file: for one person on one machine, and any number of their processes.

Reads happen inline, on a connection of their own. Writing is what all durable stores share (group_commit.py), and what
one transaction does is here: its records are chained inside it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec

from lastword.store.chain import (
    GENESIS,
    NAMED_BY_DATA,
    Behind,
    CurrentRow,
    Head,
    Pruned,
    Record,
    StoreError,
    check_content,
    kinds_of,
    tampered,
)
from lastword.store.group_commit import DurableStore, Writer
from lastword.store.ledger import APPLIED, COLUMNS, Applied, Batch, Conditions, Dialect, InDoubt, StoreChange, joined
from lastword.store.private_files import hold, holds_folder
from lastword.store.sqlite_file import (
    WITH_CONTENTS,
    WITH_CURRENT,
    SqliteKnownHead,
    check_version,
    connect,
    connect_for_reading,
    end_of,
    examine,
    explain,
    form_of,
    not_text,
    roll_back,
    work_out_current,
)

if TYPE_CHECKING:
    from lastword.store.contract import Filter

# As many values as SQLite surely takes in one question, and few enough that the plan is found in no time.
ASKED_AT_ONCE = 500

# A run's records are read in one stretch if at most so many others stand between two of them, on the average.
DENSE = 4

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM records"
_LINKS = _SELECT.replace("data,", "NULL,", 1)
_SPAN = "SELECT min(seq), max(seq), count(*) FROM records"
_CURRENT = f"""
SELECT s.since, s.seq, s.kind, s.stream, {", ".join(f"r.{column}" for column in COLUMNS)}
FROM standing AS s LEFT JOIN records AS r ON r.seq = s.seq WHERE """
_INSERT = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
# What a step does, and how much of it is said: kind, stream, name, number.
_STEPS = {
    "begins": ("INSERT INTO standing VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO UPDATE SET seq = excluded.seq", 4),
    "ends": ("DELETE FROM standing WHERE kind = ? AND stream = ? AND name = ?", 3),
    "ends all": ("DELETE FROM standing WHERE kind = ? AND stream = ?", 2),
}
_FIRST_SEQ = -(2**63)
_DIALECT = Dialect(lambda number: "?", "+{}", str)

T = TypeVar("T")


class SqliteStore(DurableStore["SqliteLedger"]):
    """Records in a file that other processes may use at the same time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Absolute, so that a process that changes its folder still means the same file.
        self.path = Path(os.path.abspath(path))
        super().__init__(str(self.path))
        self._known_head = SqliteKnownHead(self.path)
        # What SQLite has beside it counts: a `-journal` that somebody else wrote would be played back into it.
        beside = [self.path.with_name(self.path.name + ending) for ending in ("-wal", "-shm", "-journal")]
        self.files = (self.path, *beside, *self._known_head.files, holds_folder(self.path))
        self._reader: apsw.Connection | None = None

    def _open_writer(self) -> Writer[SqliteLedger]:
        return Writer(SqliteLedger(self.path))

    async def _select(self, wanted: Filter) -> Sequence[Record]:
        await self._catch_up()
        where, after, is_scattered = Conditions(_DIALECT), wanted.after, False
        if wanted.below is not None:
            span = (wanted.below, f"{wanted.below}/")
            [(first, end, count)] = self._query(f"{_SPAN} WHERE subject >= ? AND subject < ?", span)
            # Most runs stand alone in the list, and one stretch of it is read in half the time of as many places.
            is_scattered = not count or end - first >= DENSE * count
            if not is_scattered:
                where.add("seq <= {}", end)
                where.is_narrow = True
                after = max(after, first - 1)
        where.select(wanted)
        where.add("+seq >= {}" if is_scattered else "seq >= {}", after + 1 if after else _FIRST_SEQ)
        sql = f"{_SELECT} WHERE {where}"
        if wanted.last is not None:
            rows = self._query(f"{sql} ORDER BY seq DESC LIMIT ?", (*where.values, wanted.last))[::-1]
        elif is_scattered and wanted.limit is None:
            # They come in the order of their names. Python sorts a thousand rows in a fifth of the time SQLite takes.
            rows = sorted(self._query(sql, where.values), key=itemgetter(0))
        else:
            most = -1 if wanted.limit is None else wanted.limit
            rows = self._query(f"{sql} ORDER BY seq LIMIT ?", (*where.values, most))
        return [_record(row) for row in rows]

    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        await self._catch_up()
        kinds = kinds_of(kind)
        if self._look(form_of) < WITH_CURRENT:  # It cannot be written, and was not brought up to date.
            seqs = self._look(work_out_current).seqs(kinds, stream)
            return [record for seq in seqs for record in await self.read(after=seq - 1, limit=1)]
        sql = f"{_CURRENT} s.kind IN ({', '.join('?' * len(kinds))})"
        if stream is not None:
            sql += " AND s.stream = ?"
        rows = sorted(self._query(sql, (*kinds, *(() if stream is None else (stream,)))))
        return [_record(joined(self._place, seq, of_kind, of_stream, row)) for _, seq, of_kind, of_stream, *row in rows]

    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        await self._catch_up()
        if isinstance(seqs, range) and seqs.step == 1:
            rows = self._query(f"{_LINKS} WHERE seq >= ? AND seq < ? ORDER BY seq", (seqs.start, seqs.stop))
            return [Record(*row) for row in rows]
        found: list[Record] = []
        rest = iter(sorted(set(seqs)))
        while some := list(islice(rest, ASKED_AT_ONCE)):
            places = ", ".join("?" * len(some))
            found += [Record(*row) for row in self._query(f"{_LINKS} WHERE seq IN ({places}) ORDER BY seq", some)]
        return found

    async def taken(self, once: str) -> Record | None:
        await self._catch_up()
        rows = self._query(f"{_SELECT} WHERE once = ?", (once,))
        return _record(rows[0]) if rows else None

    async def head(self) -> Head:
        await self._catch_up()
        return self._look(end_of)

    async def behind(self) -> Behind | None:
        await self._catch_up()
        return self._look(self._known_head.missing)

    async def content(self, digest: str) -> bytes | None:
        await self._catch_up()
        if self._look(form_of) < WITH_CONTENTS:  # It cannot be written, and was not brought up to date.
            return None
        rows = self._query("SELECT data FROM contents WHERE digest = ?", (digest,))
        return check_content(digest, rows[0][0]) if rows else None

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        await self._catch_up()
        if self._look(form_of) < WITH_CONTENTS:
            return []
        rows = self._query("SELECT seq, digest FROM holds WHERE seq >= ? AND seq < ?", (seqs.start, seqs.stop))
        return [(seq, digest) for seq, digest in rows]

    async def current_rows(self) -> Sequence[CurrentRow]:
        await self._catch_up()
        if self._look(form_of) < WITH_CURRENT:
            return list(self._look(work_out_current).rows())
        rows = self._query("SELECT kind, stream, name, since, seq FROM standing", ())
        return [(kind, stream, name, since, seq) for kind, stream, name, since, seq in rows]

    def _hold(self, name: str) -> Callable[[], None] | None:
        try:
            return hold(self.path, name)
        except OSError as problem:
            raise explain(problem, holds_folder(self.path)) from problem

    def is_held(self, name: str) -> bool:
        release = self._hold(name)
        if release is not None:
            release()
        return release is None

    async def examine(self) -> None:
        await self._catch_up()
        # It reads the whole file, and other readers should not wait for that.
        await asyncio.to_thread(examine, self.path)

    def _close_readers(self) -> None:
        if self._reader is not None:
            # Before the writer's: the last connection to go empties the log, and that takes its time.
            self._reader.close()
            self._reader = None

    def _query(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._look(lambda reader: reader.execute(sql, tuple(values)).fetchall())

    def _look(self, question: Callable[[apsw.Connection], T]) -> T:
        with self._lock:
            if self._reader is None:
                self._reader = connect_for_reading(self.path)
            try:
                return question(self._reader)
            except apsw.Error as problem:
                raise explain(problem, self.path) from problem
            except UnicodeDecodeError as problem:
                raise not_text(problem, self.path) from None


def _record(row: Sequence[Any]) -> Record:
    record = Record(*row)
    if record.data is not None and type(record.data) is not bytes:
        raise tampered(record, "its data is not bytes")
    return record


class SqliteLedger:
    """The file, opened on first use."""

    # A look takes some microseconds.
    poll_seconds = 0.02

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = str(path)
        self._connection: apsw.Connection | None = None
        self.is_open = False
        self._identity = (0, 0)
        self._known_head = SqliteKnownHead(path)
        self._expected = Head(0, GENESIS)

    def open(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = connect(self._path)
            self._identity = _identity(self._place)
            self.is_open = True
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None
            self.is_open = False

    @property
    def place(self) -> str:
        return self._place

    def last_seq(self) -> int | None:
        try:
            return int(self.open().execute("SELECT ifnull(max(seq), 0) FROM records").get)
        except apsw.BusyError:
            return None

    def in_words(self, problem: Exception) -> StoreError | None:
        return explain(problem, self._path) if isinstance(problem, apsw.Error | OSError) else None

    def write(self, changes: Sequence[StoreChange]) -> list[Applied | StoreError]:
        connection = self.open()
        if all(change.is_empty for change in changes):
            return [APPLIED] * len(changes)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._check_place()
            check_version(connection, self._path)
            # Read in every transaction, since another process may have written.
            before = end_of(connection)
            batch = Batch(before, lambda key: connection.execute("SELECT 1 FROM records WHERE once = ?", (key,)).get)
            is_irrevocable = any(change.is_irrevocable for change in changes)
            refusal = self._known_head.refusal(connection) if is_irrevocable else None
            results = [refusal if refusal and change.is_irrevocable else batch.add(change) for change in changes]
            _put(connection, batch)
            for place, change in enumerate(changes):
                if change.prune and results[place] is APPLIED:
                    results[place] = Applied(_forget(connection, change.prune))
                if change.accept is not None:
                    results[place] = self._known_head.accept(connection, change.accept)
        except BaseException:
            roll_back(connection)
            raise
        self._expected = batch.head
        try:
            connection.execute("COMMIT")
        except apsw.Error:
            roll_back(connection)
            if batch.head == before or not self.happened():
                self._bury()
                raise
        if any(change.prune for change in changes):
            # The log still holds what was pruned.
            self._bury()
        return results

    def keep_head(self) -> None:
        self._known_head.keep(self._expected)

    def happened(self) -> bool:
        """Whether the transaction whose COMMIT failed last is in the file."""
        try:
            found = self.open().execute("SELECT digest FROM records WHERE seq = ?", (self._expected.seq,)).get
        except (apsw.Error, StoreError) as problem:
            raise InDoubt(
                "the disk failed while this was written, and it is not known whether it was",
                place=self._place,
                hint="check the disk, and look into the journal before you repeat anything",
            ) from problem
        return bool(found == self._expected.digest)

    def _bury(self) -> None:
        """Empty the log into the file.

        A transaction whose COMMIT failed may lie complete in the log, where a crash now would let it rise again. The
        next transaction writes over it; this does so at once, if the disk and the other processes let it.
        """
        with suppress(apsw.Error):
            self.open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

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


def _put(connection: apsw.Connection, batch: Batch) -> None:
    """Write a batch, in the transaction that it is for."""
    for record in batch.records:
        connection.execute(_INSERT, msgspec.structs.astuple(record))
    for what, *row in batch.steps:
        sql, count = _STEPS[what]
        connection.execute(sql, row[:count])
    for digest, data in batch.contents.items():
        if not connection.execute("SELECT 1 FROM contents WHERE digest = ?", (digest,)).get:
            connection.execute("INSERT INTO contents VALUES (?, ?)", (digest, data))
    for held in batch.holds:
        connection.execute("INSERT OR IGNORE INTO holds VALUES (?, ?)", held)


def _forget(connection: apsw.Connection, seqs: Sequence[int]) -> Pruned:
    forgotten = Pruned()
    for seq in seqs:
        connection.execute("UPDATE records SET data = NULL WHERE seq = ? AND data IS NOT NULL", (seq,))
        if connection.changes():
            kind, stream = connection.execute("SELECT kind, stream FROM records WHERE seq = ?", (seq,)).get
            if kind in NAMED_BY_DATA:  # What it said gave it its name, which is to be forgotten as well.
                connection.execute(f"{_STEPS['ends all'][0]} AND seq = ?", (kind, stream, seq))
            forgotten += Pruned(1) + _release(connection, seq)
    return forgotten


def _release(connection: apsw.Connection, seq: int) -> Pruned:
    """A record holds nothing any more. What no other one holds is gone."""
    held = [digest for (digest,) in connection.execute("SELECT digest FROM holds WHERE seq = ?", (seq,))]
    if not held:
        return Pruned()
    connection.execute("DELETE FROM holds WHERE seq = ?", (seq,))
    count = size = 0
    for digest in held:
        if not connection.execute("SELECT 1 FROM holds WHERE digest = ? LIMIT 1", (digest,)).get:
            size += int(
                connection.execute("SELECT ifnull(max(length(data)), 0) FROM contents WHERE digest = ?", (digest,)).get
            )
            connection.execute("DELETE FROM contents WHERE digest = ?", (digest,))
            count += connection.changes()
    return Pruned(0, count, size)
