"""The store in a SQLite file: for one person on one machine, and any number of their processes.

Reads happen inline, on a connection of their own. Writing is what all durable stores share (durable.py).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import apsw

from lastword.store.chain import Behind, CurrentRow, Head, Record, check_content, tampered
from lastword.store.contract import WRITE, Filter, kinds_of, refuse_if_watched
from lastword.store.durable import DurableStore, Writer
from lastword.store.ledger import COLUMNS, Conditions, Dialect, joined
from lastword.store.private_files import hold, holds_folder
from lastword.store.sqlite_file import (
    WITH_CONTENTS,
    WITH_CURRENT,
    connect_for_reading,
    examine,
    explain,
    form_of,
    not_text,
    work_out_current,
)
from lastword.store.sqlite_ledger import SqliteKnownHead, SqliteLedger, end_of

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
_FIRST_SEQ = -(2**63)
_DIALECT = Dialect(lambda number: "?", "+{}", str)

T = TypeVar("T")


class SqliteStore(DurableStore[SqliteLedger]):
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

    def hold(self, name: str) -> Callable[[], None] | None:
        refuse_if_watched(WRITE)
        return self._hold(name)

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
