"""The store in PostgreSQL: for any number of processes on any number of machines.

The contract is the one of every store, and so are the records, down to the last digest. Questions are asked on
connections of their own. Writing is what all durable stores share (durable.py). Nothing is reached before the first
use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from lastword.errors import MayNotForget, Tampered
from lastword.store.address import PostgresAddress
from lastword.store.chain import Behind, CurrentRow, Head, Pruned, Record, check_content
from lastword.store.contract import WRITE, Filter, kinds_of, refuse_if_watched
from lastword.store.durable import DurableStore, Writer
from lastword.store.head_file import PostgresKnownHead, missing
from lastword.store.ledger import COLUMNS, Conditions, Dialect, StoreChange, joined
from lastword.store.postgres_connection import PostgresLink
from lastword.store.postgres_leases import PostgresLeases
from lastword.store.postgres_ledger import PostgresLedger
from lastword.store.postgres_schema import examine, grant, prepare
from lastword.store.private_files import data_folder

_COLUMNS = ", ".join(COLUMNS)
_LINKS = _COLUMNS.replace("data,", "NULL::bytea,", 1)
_DIALECT = Dialect("${}".format, "({} || ''::bytea)", str.encode)


class PostgresStore(DurableStore[PostgresLedger]):
    """Records in a schema that other processes may use at the same time."""

    def __init__(self, address: str, *, heads: Path | None = None) -> None:
        self.address = PostgresAddress(address)
        super().__init__(self.address.shown)
        if heads is None:
            heads = data_folder(sys.platform, os.environ, Path.home()) / "heads"
        self.files = (heads,)
        self._known_head = PostgresKnownHead(heads / f"{self.address.digest}-head", self.address.shown)
        self._schema = f'"{self.address.schema}"'

    def _open_writer(self) -> Writer[PostgresLedger]:
        link = PostgresLink(self.address, prepare)
        leases = PostgresLeases(link, lambda: writer.wake(), lambda last: writer.heard(last))
        writer = Writer(PostgresLedger(link, leases, self._known_head))
        return writer

    async def _select(self, wanted: Filter) -> Sequence[Record]:
        where = Conditions(_DIALECT)
        where.select(wanted)
        if wanted.after:
            where.add("seq > {}", wanted.after)
        sql = f"SELECT {_COLUMNS} FROM {self._schema}.records WHERE {where} ORDER BY seq"
        most = wanted.limit if wanted.last is None else wanted.last
        if most is not None:
            where.values.append(most)
            sql += f"{'' if wanted.last is None else ' DESC'} LIMIT ${len(where.values)}"
        if wanted.last is not None:
            sql = f"SELECT * FROM ({sql}) AS found ORDER BY seq"
        return [_record(row) for row in await self._query(sql, where.values)]

    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        columns = ", ".join(f"r.{column}" for column in COLUMNS)
        sql = (
            f"SELECT s.since, s.seq AS place, s.kind AS of_kind, s.stream AS of_stream, {columns} "
            f"FROM {self._schema}.standing AS s LEFT JOIN {self._schema}.records AS r ON r.seq = s.seq "
            "WHERE "
        )
        values: list[Any] = [[one.encode() for one in kinds_of(kind)]]
        if stream is None:
            # By an index of its own, in which what ended makes room for what begins.
            sql += "(s.kind || ''::bytea) = ANY ($1)"
        else:
            sql += "s.kind = ANY ($1) AND s.stream = $2"
            values.append(stream.encode())
        rows = sorted(await self._query(sql, values), key=itemgetter(0))
        return [_record(joined(self._place, seq, of_kind, of_stream, row)) for _, seq, of_kind, of_stream, *row in rows]

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
        if not self._known_head.knows_first:
            rows = await self._query(f"SELECT digest FROM {self._schema}.records WHERE seq = 1", [])
            self._known_head.know_first(rows[0][0] if rows else None)
        seen = self._known_head.read()
        sql = f"SELECT h.seq, h.digest, r.digest FROM {self._schema}.head AS h LEFT JOIN {self._schema}.records AS r"
        [(seq, digest, at_seen)] = await self._query(
            f"{sql} ON r.seq = $1", [seen.seq if isinstance(seen, Head) else 0]
        )
        return missing(seen, Head(seq, digest), at_seen)

    def _listen(self, ledger: PostgresLedger) -> None:
        ledger.leases.watch()

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
        return await super().forget(seqs)

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        sql = f"SELECT seq, digest FROM {self._schema}.holds WHERE seq >= $1 AND seq < $2"
        return [(seq, digest) for seq, digest in await self._query(sql, [seqs.start, seqs.stop])]

    async def current_rows(self) -> Sequence[CurrentRow]:
        rows = await self._query(f"SELECT kind, stream, name, since, seq FROM {self._schema}.standing", [])
        return [(kind.decode(), stream.decode(), name.decode(), *places) for kind, stream, name, *places in rows]

    async def grant(self, role: str, *, forgetting: bool) -> None:
        """Let a role read and append here, and nothing else; and forget, if that is said."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange())
        link = self._living_writer().ledger.link
        await link.ask(link.look(lambda reader: grant(reader, self.address.schema, role, forgetting=forgetting)))

    def hold(self, name: str) -> Callable[[], None] | None:
        refuse_if_watched(WRITE)
        return self._living_writer().ledger.leases.hold(name)

    def is_held(self, name: str) -> bool:
        return self._living_writer().ledger.leases.is_held(name)

    async def examine(self) -> None:
        await self._change(StoreChange())
        link = self._living_writer().ledger.link
        await link.ask(link.look(lambda reader: examine(reader, self.address.schema, self.address.shown)))

    async def _query(self, sql: str, values: list[Any]) -> list[Sequence[Any]]:
        """Ask, once everything accepted has reached the server."""
        link = (await self._catch_up()).ledger.link
        found = await link.ask(link.look(lambda reader: reader.fetch(sql, *values)))
        return [tuple(row) for row in found]


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
