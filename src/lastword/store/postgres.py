"""The store in PostgreSQL: for any number of processes on any number of machines.

The contract is the one of `lastword.store`, and so are the records, down to the last digest. Questions are asked on
connections of their own; writing is the business of one thread (`writer`). Nothing is reached before the first use.
"""

from __future__ import annotations

import asyncio
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from lastword.errors import MayNotForget, StoreError, Tampered
from lastword.store.change import TAKEN, Adopted, Applied, StoreChange
from lastword.store.contract import Behind, Entry, Head, Pruned, Record, check, check_content, check_group
from lastword.store.folders import data_folder
from lastword.store.pen import WRITE, refuse_if_watched
from lastword.store.postgres_address import PostgresAddress
from lastword.store.postgres_examine import examine
from lastword.store.postgres_ledger import PostgresLedger
from lastword.store.postgres_link import PostgresLink
from lastword.store.postgres_owner import PostgresOwner
from lastword.store.postgres_schema import grant
from lastword.store.postgres_seen import PostgresSeen
from lastword.store.standing import StandingRow
from lastword.store.writer import Job, Writer

# Other processes can write between two transactions of this many, so that none waits long.
FORGET_RECORDS = 500

_COLUMNS = "seq, stream, kind, subject, at, data, once, data_digest, digest"
_LINKS = "seq, stream, kind, subject, at, NULL::bytea, once, data_digest, digest"


class _Reach:
    """What a store has while it is open: the thread that writes, the link, and what is held through it."""

    def __init__(self, address: PostgresAddress, seen: PostgresSeen) -> None:
        self.link = PostgresLink(address)
        self.owner = PostgresOwner(self.link, lambda: self.writer.wake(), lambda last: self.writer.heard(last))
        self.writer = Writer(PostgresLedger(self.link, self.owner, seen))


class PostgresStore:
    """Records in a schema that other processes may use at the same time."""

    def __init__(self, address: str, *, heads: Path | None = None) -> None:
        self.address = PostgresAddress(address)
        if heads is None:
            heads = data_folder(sys.platform, os.environ, Path.home()) / "heads"
        self.files = (heads,)
        self._seen = PostgresSeen(heads / f"{self.address.digest}-head", self.address.shown)
        self._schema = f'"{self.address.schema}"'
        self._lock = Lock()
        self._open: _Reach | None = None

    def append(self, entry: Entry) -> None:
        assert entry.once is None, "an entry that claims a key is committed, not appended"
        assert not entry.irrevocable, "what cannot be taken back is committed, not appended"
        check(entry)
        while not self._reach().writer.append(entry):
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
        asked = _Question(f"{self._schema}.records")
        if below is not None:
            # The slash follows the dot, so this span of the index holds what is wanted and hardly anything else.
            start, span = below.encode(), f"{below}/".encode()
            asked.where("subject >= {} AND subject < {}", start, span)
            asked.where("(subject = {} OR substring(subject FOR {}) = {})", start, len(start) + 1, start + b".")
        for column, value in (("subject", subject), ("stream", stream)):
            if value is not None:
                asked.only(column, [value.encode()])
        if kind is not None:
            asked.only("kind", [kind.encode()] if isinstance(kind, str) else [one.encode() for one in kind])
        if after:
            asked.where("seq > {}", after)
        return [_record(row) for row in await self._query(asked.sql(_COLUMNS, limit, last), asked.values)]

    async def standing(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        columns = ", ".join(f"r.{column}" for column in _COLUMNS.split(", "))
        sql = (
            f"SELECT s.since, s.seq AS place, s.kind AS of_kind, s.stream AS of_stream, {columns} "
            f"FROM {self._schema}.standing AS s LEFT JOIN {self._schema}.records AS r ON r.seq = s.seq "
            "WHERE "
        )
        values: list[Any] = [[kind.encode()] if isinstance(kind, str) else [one.encode() for one in kind]]
        if stream is None:
            # By an index of its own, in which what ended makes room for what begins.
            sql += "(s.kind || ''::bytea) = ANY ($1)"
        else:
            sql += "s.kind = ANY ($1) AND s.stream = $2"
            values.append(stream.encode())
        found = []
        for since, place, of_kind, of_stream, *row in sorted(await self._query(sql, values), key=_by_since):
            assert since > 0
            if (row[0], row[1], row[2]) != (place, of_stream, of_kind):
                what = of_kind.decode(errors="replace")
                raise Tampered(
                    f"record {place} ({what}), which still counts, is missing or was changed",
                    place=self.address.shown,
                    hint="lastword journal verify finds the first record that does not fit; restore from a copy",
                )
            found.append(_record(row))
        return found

    async def links(self, seqs: Sequence[int]) -> Sequence[Record]:
        sql = f"SELECT {_LINKS} FROM {self._schema}.records WHERE "
        if isinstance(seqs, range) and seqs.step == 1:
            rows = await self._query(f"{sql} seq >= $1 AND seq < $2 ORDER BY seq", [seqs.start, seqs.stop])
        else:
            rows = await self._query(f"{sql} seq = ANY ($1) ORDER BY seq", [sorted(set(seqs))])
        return [_record(row) for row in rows]

    async def taken(self, once: str) -> Record | None:
        sql = f"SELECT {_COLUMNS} FROM {self._schema}.records WHERE once = $1"
        rows = await self._query(sql, [once.encode()])
        return _record(rows[0]) if rows else None

    async def head(self) -> Head:
        [(seq, digest)] = await self._query(f"SELECT seq, digest FROM {self._schema}.head", [])
        return Head(seq, digest)

    async def behind(self) -> Behind | None:
        if not self._seen.knows_first:
            rows = await self._query(f"SELECT digest FROM {self._schema}.records WHERE seq = 1", [])
            self._seen.know_first(rows[0][0] if rows else None)
        seen = self._seen.read()
        sql = f"SELECT h.seq, h.digest, r.digest FROM {self._schema}.head AS h LEFT JOIN {self._schema}.records AS r"
        [(seq, digest, at_seen)] = await self._query(
            f"{sql} ON r.seq = $1", [seen.seq if isinstance(seen, Head) else 0]
        )
        return self._seen.missing(seen, Head(seq, digest), at_seen)

    async def accept(self, head: Head) -> None:
        refuse_if_watched(WRITE)
        await self._change(StoreChange(accept=head))

    async def changed(self, after: int) -> None:
        reply = asyncio.get_running_loop().create_future()
        while True:
            reach = self._reach()
            reach.owner.watch()
            if reach.writer.watch(after, reply):
                break
        try:
            await reply
        finally:
            reach.writer.unwatch(reply)

    async def content(self, digest: str) -> bytes | None:
        rows = await self._query(f"SELECT data FROM {self._schema}.contents WHERE digest = $1", [digest])
        return check_content(digest, rows[0][0]) if rows else None

    async def forget(self, seqs: Iterable[int]) -> Pruned:
        refuse_if_watched(WRITE)
        sql = f"SELECT has_function_privilege('{self._schema}.forget(bigint[], bytea[])', 'EXECUTE')"
        if not (await self._query(sql, []))[0][0]:
            # Asked before it is tried: what fails in a transaction fails for everybody who shares it.
            raise MayNotForget(
                "this role may not do that: it may append, and not forget",
                place=self.address.shown,
                hint="its owner gives the right: lastword journal grant ROLE --forgetting",
            )
        forgotten = Pruned()
        rest = iter(seqs)
        while some := tuple(islice(rest, FORGET_RECORDS)):
            forgotten += (await self._change(StoreChange(prune=some))).forgotten
        return forgotten

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        """Which of these records hold which contents: number and digest."""
        sql = f"SELECT seq, digest FROM {self._schema}.holds WHERE seq >= $1 AND seq < $2"
        return [(seq, digest) for seq, digest in await self._query(sql, [seqs.start, seqs.stop])]

    async def standing_rows(self) -> Sequence[StandingRow]:
        """Where all the records are that still count."""
        rows = await self._query(f"SELECT kind, stream, name, since, seq FROM {self._schema}.standing", [])
        return [(kind.decode(), stream.decode(), name.decode(), *places) for kind, stream, name, *places in rows]

    async def adopt(self, adopted: Adopted) -> None:
        """Write something of another store as it is there. StoreError when it does not follow what is here."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange(adopted=adopted))

    async def grant(self, role: str, *, forgetting: bool) -> None:
        """Let a role read and append here, and nothing else; and forget, if that is said."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange())
        link = self._reach().link
        await link.ask(link.look(lambda reader: grant(reader, self.address.schema, role, forgetting=forgetting)))

    def hold(self, name: str) -> Callable[[], None] | None:
        refuse_if_watched(WRITE)
        return self._reach().owner.hold(name)

    def is_held(self, name: str) -> bool:
        return self._reach().owner.is_held(name)

    async def examine(self) -> None:
        await self._change(StoreChange())
        link = self._reach().link
        await link.ask(link.look(lambda reader: examine(reader, self.address.schema, self.address.shown)))

    async def close(self) -> None:
        refuse_if_watched(WRITE)
        ended = asyncio.get_running_loop().create_future()
        while self._open is not None:
            if self._stop(ended):
                await ended
            else:
                await self._change(StoreChange())

    def _stop(self, ended: asyncio.Future[None]) -> bool:
        with self._lock:
            if self._open is None:
                ended.set_result(None)
            elif self._open.writer.stop(ended):
                self._open = None
            else:
                return False
            return True

    async def _change(self, change: StoreChange) -> Applied:
        reply = asyncio.get_running_loop().create_future()
        job = Job(change, reply)
        while not self._reach().writer.submit(job):
            pass
        done: Applied = await reply
        return done

    async def _query(self, sql: str, values: list[Any]) -> list[Sequence[Any]]:
        """Ask, once everything accepted has reached the server. Usually it has."""
        reach = self._reach()
        if reach.writer.unwritten or not reach.link.is_prepared:
            await self._change(StoreChange())
            reach = self._reach()
        found = await reach.link.ask(reach.link.look(lambda reader: reader.fetch(sql, *values)))
        return [tuple(row) for row in found]

    def _reach(self) -> _Reach:
        reach = self._open
        if reach is None or reach.writer.process != os.getpid():
            reach = self._start()
        return reach

    def _start(self) -> _Reach:
        with self._lock:
            if self._open is None:
                self._open = _Reach(self.address, self._seen)
                weakref.finalize(self, self._open.writer.retire).atexit = False
            elif self._open.writer.process != os.getpid():
                raise StoreError(
                    "the store was opened before the process forked",
                    place=self.address.shown,
                    hint="open it in the new process; a connection cannot be shared by two",
                )
            return self._open


class _Question:
    """A SELECT that is put together, with the index that it shall use: the one of the first column that is named."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._conditions: list[str] = []
        self.values: list[Any] = []

    def where(self, condition: str, *values: Any) -> None:
        first = len(self.values) + 1
        self._conditions.append(condition.format(*(f"${number}" for number in range(first, first + len(values)))))
        self.values += values

    def only(self, column: str, values: list[bytes]) -> None:
        """Where a column has one of these values. No wider index than the first is to be used."""
        name = f"({column} || ''::bytea)" if self._conditions else column
        if len(values) == 1:
            self.where(f"{name} = {{}}", values[0])
        else:
            self.where(f"{name} = ANY ({{}})", values)

    def sql(self, columns: str, limit: int | None, last: int | None) -> str:
        conditions = " AND ".join(self._conditions) or "true"
        sql = f"SELECT {columns} FROM {self._table} WHERE {conditions} ORDER BY seq"
        if last is not None:
            self.values.append(last)
            return f"SELECT * FROM ({sql} DESC LIMIT ${len(self.values)}) AS found ORDER BY seq"
        if limit is not None:
            self.values.append(limit)
            sql += f" LIMIT ${len(self.values)}"
        return sql


def _by_since(row: Sequence[Any]) -> int:
    since: int = row[0]
    return since


def _record(row: Sequence[Any]) -> Record:
    seq, stream, kind, subject, at, data, once, data_digest, digest = row
    try:
        return Record(
            seq,
            stream.decode(),
            kind.decode(),
            subject.decode(),
            at,
            data,
            None if once is None else once.decode(),
            data_digest,
            digest,
        )
    except UnicodeDecodeError as problem:
        raise Tampered(
            f"record {seq} holds text that is not UTF-8: {problem.object!r}",
            hint="it was changed after it was written; restore from a copy",
        ) from None
