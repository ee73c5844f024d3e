"""The store in a SQLite file: for one person on one machine, and any number of their processes.

Reads happen inline, on a connection of their own; writing is the business of one thread (`writer`). Nothing is
opened before the first use.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import apsw

from lastword.errors import StoreError, Tampered
from lastword.store.change import TAKEN, Adopted, Applied, StoreChange
from lastword.store.contract import Behind, Entry, Head, Pruned, Record, check, check_content, check_group
from lastword.store.holds import hold, holds_folder
from lastword.store.pen import WRITE, refuse_if_watched
from lastword.store.sqlite_examine import examine
from lastword.store.sqlite_file import (
    WITH_CONTENTS,
    WITH_STANDING,
    connect_for_reading,
    explain,
    form_of,
    not_text,
    work_out_standing,
)
from lastword.store.sqlite_ledger import SqliteLedger
from lastword.store.sqlite_seen import Seen, end_of
from lastword.store.standing import StandingRow
from lastword.store.writer import Job, Writer

# Other processes can write between two transactions of this many, so that none waits long.
FORGET_RECORDS = 500

# As many values as SQLite surely takes in one question, and few enough that the plan is found in no time.
ASKED_AT_ONCE = 500

# A run's records are read in one stretch if at most so many others stand between two of them, on the average.
DENSE = 4

_SELECT = "SELECT seq, stream, kind, subject, at, data, once, data_digest, digest FROM records"
_LINKS = "SELECT seq, stream, kind, subject, at, NULL, once, data_digest, digest FROM records"
_SPAN = "SELECT min(seq), max(seq), count(*) FROM records"
_STANDING = """
SELECT s.since, s.seq, s.kind, s.stream,
       r.seq, r.stream, r.kind, r.subject, r.at, r.data, r.once, r.data_digest, r.digest
FROM standing AS s LEFT JOIN records AS r ON r.seq = s.seq
WHERE s.kind"""
_FIRST_SEQ = -(2**63)

T = TypeVar("T")


class SqliteStore:
    """Records in a file that other processes may use at the same time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Absolute, so that a process that changes its folder still means the same file.
        self.path = Path(os.path.abspath(path))
        self._seen = Seen(self.path)
        # What SQLite has beside it counts: a `-journal` that somebody else wrote would be played back into it.
        beside = [self.path.with_name(self.path.name + ending) for ending in ("-wal", "-shm", "-journal")]
        self.files = (self.path, *beside, *self._seen.files, holds_folder(self.path))
        self._lock = Lock()
        self._writer: Writer | None = None
        self._reader: apsw.Connection | None = None

    def append(self, entry: Entry) -> None:
        assert entry.once is None, "an entry that claims a key is committed, not appended"
        assert not entry.irrevocable, "what cannot be taken back is committed, not appended"
        check(entry)
        while not self._living_writer().append(entry):
            pass

    async def commit(self, *entries: Entry) -> bool:
        check_group(entries)
        return await self._change(StoreChange(entries)) is not TAKEN

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
        assert limit is None or last is None, "the first or the last, not both"
        await self._catch_up()
        # The planner would not know which of two indexes is the narrower one. The plus sign hides a column from it.
        hidden = ""
        conditions: list[str] = []
        values: list[Any] = []
        is_dense = False
        if below is not None:
            # The slash follows the dot, so this span of the index holds what is wanted and hardly anything else.
            span = [below, f"{below}/"]
            [(first, end, count)] = self._query(f"{_SPAN} WHERE subject >= ? AND subject < ?", span)
            # Most runs stand alone in the list, and one stretch of it is read in half the time of as many places.
            is_dense = count > 0 and end - first < DENSE * count
            if is_dense:
                conditions.append("seq <= ?")
                values.append(end)
                after, hidden = max(after, first - 1), "+"
            conditions.append(f"{hidden}subject >= ? AND {hidden}subject < ?")
            conditions.append("(+subject = ? OR substr(subject, 1, ?) = ?)")
            values += [*span, below, len(below) + 1, f"{below}."]
            hidden = "+"
        for column, value in (("subject", subject), ("stream", stream)):
            if value is not None:
                conditions.append(f"{hidden}{column} = ?")
                values.append(value)
                hidden = "+"
        if kind is not None:
            kinds = [kind] if isinstance(kind, str) else list(kind)
            conditions.append(f"{hidden}kind IN ({', '.join('?' * len(kinds))})")
            values += kinds
        is_scattered = below is not None and not is_dense
        conditions.append(f"{'+' if is_scattered else ''}seq >= ?")
        values.append(after + 1 if after else _FIRST_SEQ)
        wanted = f"{_SELECT} WHERE {' AND '.join(conditions)}"
        if last is not None:
            rows = self._query(f"{wanted} ORDER BY seq DESC LIMIT ?", [*values, last])[::-1]
        elif is_scattered and limit is None:
            # They come in the order of their names. Python sorts a thousand rows in a fifth of the time SQLite takes.
            rows = sorted(self._query(wanted, values), key=itemgetter(0))
        else:
            rows = self._query(f"{wanted} ORDER BY seq LIMIT ?", [*values, -1 if limit is None else limit])
        return [_record(row) for row in rows]

    async def standing(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        await self._catch_up()
        if self._look(form_of) < WITH_STANDING:  # It cannot be written, and was not brought up to date.
            return await self._worked_out(kind, stream)
        values: list[Any] = [kind] if isinstance(kind, str) else list(kind)
        wanted = f"{_STANDING} IN ({', '.join('?' * len(values))})"
        if stream is not None:
            wanted += " AND s.stream = ?"
            values.append(stream)
        found = []
        for _, seq, of_kind, of_stream, *row in sorted(self._query(wanted, values)):
            if (row[0], row[1], row[2]) != (seq, of_stream, of_kind):
                raise Tampered(
                    f"record {seq} ({of_kind}), which still counts, is missing or was changed",
                    place=str(self.path),
                    hint="lastword journal verify finds the first record that does not fit; restore from a copy",
                )
            found.append(_record(row))
        return found

    async def _worked_out(self, kind: str | Sequence[str], stream: str | None) -> Sequence[Record]:
        seqs = self._look(work_out_standing).seqs((kind,) if isinstance(kind, str) else kind, stream)
        return [record for seq in seqs for record in await self.read(after=seq - 1, limit=1)]

    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        await self._catch_up()
        if isinstance(seqs, range) and seqs.step == 1:
            rows = self._query(f"{_LINKS} WHERE seq >= ? AND seq < ? ORDER BY seq", [seqs.start, seqs.stop])
            return [Record(*row) for row in rows]
        found: list[Record] = []
        rest = iter(sorted(set(seqs)))
        while some := list(islice(rest, ASKED_AT_ONCE)):
            places = ", ".join("?" * len(some))
            found += [Record(*row) for row in self._query(f"{_LINKS} WHERE seq IN ({places}) ORDER BY seq", some)]
        return found

    async def taken(self, once: str) -> Record | None:
        await self._catch_up()
        rows = self._query(f"{_SELECT} WHERE once = ?", [once])
        return _record(rows[0]) if rows else None

    async def head(self) -> Head:
        await self._catch_up()
        return self._look(end_of)

    async def behind(self) -> Behind | None:
        await self._catch_up()
        return self._look(self._seen.missing)

    async def accept(self, head: Head) -> None:
        refuse_if_watched(WRITE)
        await self._change(StoreChange(accept=head))

    async def changed(self, after: int) -> None:
        reply = asyncio.get_running_loop().create_future()
        while not (writer := self._living_writer()).watch(after, reply):
            pass
        try:
            await reply
        finally:
            writer.unwatch(reply)

    async def content(self, digest: str) -> bytes | None:
        await self._catch_up()
        if self._look(form_of) < WITH_CONTENTS:  # It cannot be written, and was not brought up to date.
            return None
        rows = self._query("SELECT data FROM contents WHERE digest = ?", [digest])
        return check_content(digest, rows[0][0]) if rows else None

    async def forget(self, seqs: Iterable[int]) -> Pruned:
        refuse_if_watched(WRITE)
        forgotten = Pruned()
        rest = iter(seqs)
        while some := tuple(islice(rest, FORGET_RECORDS)):
            forgotten += (await self._change(StoreChange(prune=some))).forgotten
        return forgotten

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        """Which of these records hold which contents: number and digest."""
        await self._catch_up()
        if self._look(form_of) < WITH_CONTENTS:
            return []
        rows = self._query("SELECT seq, digest FROM holds WHERE seq >= ? AND seq < ?", [seqs.start, seqs.stop])
        return [(seq, digest) for seq, digest in rows]

    async def standing_rows(self) -> Sequence[StandingRow]:
        """Where all the records are that still count."""
        await self._catch_up()
        if self._look(form_of) < WITH_STANDING:
            return list(self._look(work_out_standing).rows())
        rows = self._query("SELECT kind, stream, name, since, seq FROM standing", [])
        return [(kind, stream, name, since, seq) for kind, stream, name, since, seq in rows]

    async def adopt(self, adopted: Adopted) -> None:
        """Write something of another store as it is there. StoreError when it does not follow what is here."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange(adopted=adopted))

    def hold(self, name: str) -> Callable[[], None] | None:
        refuse_if_watched(WRITE)
        return self._hold(name)

    def _hold(self, name: str) -> Callable[[], None] | None:
        try:
            return hold(holds_folder(self.path), name)
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

    async def close(self) -> None:
        refuse_if_watched(WRITE)
        ended = asyncio.get_running_loop().create_future()
        while self._writer is not None:
            if self._stop(ended):
                await ended
            else:
                await self._change(StoreChange())

    def _stop(self, ended: asyncio.Future[None]) -> bool:
        with self._lock:
            if self._writer is not None:
                if not self._writer.stop(ended):
                    return False
                self._writer = None
            if self._reader is not None:
                # Before the writer's: the last connection to go empties the log, and that takes its time.
                self._reader.close()
                self._reader = None
            return True

    async def _change(self, change: StoreChange) -> Applied:
        reply = asyncio.get_running_loop().create_future()
        job = Job(change, reply)
        while not self._living_writer().submit(job):
            pass
        done: Applied = await reply
        return done

    async def _catch_up(self) -> None:
        """Let everything accepted reach the file before it is read. Usually it has."""
        writer = self._living_writer()
        if writer.unwritten or not writer.is_open:
            await self._change(StoreChange())

    def _query(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
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

    def _living_writer(self) -> Writer:
        writer = self._writer
        if writer is None or writer.process != os.getpid():
            writer = self._start_writer()
        return writer

    def _start_writer(self) -> Writer:
        with self._lock:
            if self._writer is None:
                self._writer = Writer(SqliteLedger(self.path))
                weakref.finalize(self, self._writer.retire).atexit = False
            elif self._writer.process != os.getpid():
                raise StoreError(
                    "the store was opened before the process forked",
                    place=str(self.path),
                    hint="open it in the new process; a connection cannot be shared by two",
                )
            return self._writer


def _record(row: Sequence[Any]) -> Record:
    record = Record(*row)
    if record.data is not None and type(record.data) is not bytes:
        raise Tampered(
            f"record {record.seq} ({record.kind}) was changed after it was written: its data is not bytes",
            hint="everything before it is as it was written; restore from a copy to see what it said",
        )
    return record
