"""The store in PostgreSQL: for any number of processes on any number of machines.

The contract is the one of every store, and so are the records, down to the last digest. Here is what reads them, on
connections of its own, and the schema that they lie in: making it, knowing it for ours, bringing it up to date, who
may use it, and whether what lies beside the records contradicts them. Writing is what all durable stores share
(group_commit.py), one transaction at a time (postgres_ledger.py). Nothing is reached before the first use.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lastword.store.address import PostgresAddress
from lastword.store.chain import (
    GENESIS,
    KINDS,
    Behind,
    Current,
    CurrentRow,
    Head,
    MayNotForget,
    Pruned,
    Record,
    StoreError,
    Tampered,
    check_content,
    contradicted,
    kinds_of,
)
from lastword.store.group_commit import DurableStore, Writer
from lastword.store.head_file import PostgresKnownHead, missing
from lastword.store.ledger import (
    COLUMNS,
    RESTORE,
    WRONG_CONTENTS,
    Conditions,
    Dialect,
    joined,
    load_migrations,
)
from lastword.store.postgres_connection import NO_SUCH_TABLE, Connection, InsufficientPrivilege, PostgresLink, channel
from lastword.store.postgres_leases import PostgresLeases
from lastword.store.postgres_ledger import PostgresLedger, check_form

if TYPE_CHECKING:
    from lastword.store.contract import Filter

# Found in pg_locks by whoever wonders what two processes wait for: "LWRD".
MIGRATION_LOCK = 0x4C575244

# By these a store is known for ours, in whatever form it is: the tables that it has had from the first.
TABLES = ("records", "head", "standing", "contents", "holds", "owners", "names")
READING = ("lives", "held")
WRITING = ("begin_append", "append", "try_append", "has_happened", "new_owner", "take", "let_go", "leave")
FORGETTING = ("forget",)


MIGRATIONS = load_migrations("postgres_migrations")

_COLUMNS = ", ".join(COLUMNS)
_LINKS = _COLUMNS.replace("data,", "NULL::bytea,", 1)
_DIALECT = Dialect("${}".format, "({} || ''::bytea)", str.encode)

T = TypeVar("T")


class PostgresStore(DurableStore[PostgresLedger]):
    """Records in a schema that other processes may use at the same time."""

    def __init__(self, address: str, *, heads: Path | None = None) -> None:
        self.address = PostgresAddress(address)
        super().__init__(self.address.shown)
        self._known_head = PostgresKnownHead(heads, self.address)
        self.files = (self._known_head.folder,)
        self._schema = f'"{self.address.schema}"'

    def _open_writer(self) -> Writer[PostgresLedger]:
        link = PostgresLink(self.address, prepare)
        leases = PostgresLeases(link, lambda: writer.wake(), lambda last: writer.heard(last))
        writer = Writer(PostgresLedger(link, leases, self._known_head, len(MIGRATIONS)))
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

    async def _forget(self, seqs: Iterable[int]) -> Pruned:
        sql = f"SELECT has_function_privilege('{self._schema}.forget(bigint[], bytea[])', 'EXECUTE')"
        if not (await self._query(sql, []))[0][0]:
            # Asked before it is tried: what fails in a transaction fails for everybody who shares it.
            raise MayNotForget(
                "this role may not do that: it may append, and not forget",
                place=self.address.shown,
                hint="its owner gives the right: lastword journal grant ROLE --forgetting",
            )
        return await super()._forget(seqs)

    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        sql = f"SELECT seq, digest FROM {self._schema}.holds WHERE seq >= $1 AND seq < $2"
        return [(seq, digest) for seq, digest in await self._query(sql, [seqs.start, seqs.stop])]

    async def current_rows(self) -> Sequence[CurrentRow]:
        rows = await self._query(f"SELECT kind, stream, name, since, seq FROM {self._schema}.standing", [])
        return [(kind.decode(), stream.decode(), name.decode(), *places) for kind, stream, name, *places in rows]

    async def _grant(self, role: str, forgetting: bool) -> bool:
        await self._ask(lambda reader: grant(reader, self.address.schema, role, forgetting=forgetting))
        return True

    def _hold(self, name: str) -> Callable[[], None] | None:
        return self._living_writer().ledger.leases.hold(name)

    def is_held(self, name: str) -> bool:
        return self._living_writer().ledger.leases.is_held(name)

    async def examine(self) -> None:
        await self._ask(lambda reader: examine(reader, self.address.schema, self.address.shown))

    async def _query(self, sql: str, values: list[Any]) -> list[Sequence[Any]]:
        return [tuple(row) for row in await self._ask(lambda reader: reader.fetch(sql, *values))]

    async def _ask(self, question: Callable[[Connection], Awaitable[T]]) -> T:
        """Ask, once everything accepted has reached the server."""
        link = (await self._catch_up()).ledger.link
        return await link.ask(link.look(question))


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


async def prepare(connection: Connection, schema: str, place: str) -> None:
    """See that the schema is there, ours, and in the form that this version writes. Raises StoreError in words."""
    form = await _form_of(connection, schema)
    if form is None or form < len(MIGRATIONS):
        try:
            await _migrate(connection, schema, place)
        except InsufficientPrivilege:
            missing = "is not there yet" if form is None else "was written by an earlier version of lastword"
            raise StoreError(
                f"the store {missing}, and this role may not change that",
                place=place,
                hint="whoever owns the database does it: lastword journal grant ROLE",
            ) from None
        form = await _form_of(connection, schema)
    check_form(form or 0, len(MIGRATIONS), place)


async def _form_of(connection: Connection, schema: str) -> int | None:
    """How far it was brought: the number of the last migration that it has seen. None when there is no store."""
    try:
        found: int | None = await connection.fetchval(f'SELECT form FROM "{schema}".head')
    except NO_SUCH_TABLE:
        return None
    return found


async def _migrate(connection: Connection, schema: str, place: str) -> None:
    """Carry out the migrations that this schema has not seen, all together, while nobody else can."""
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK}, hashtext('{schema}'))")
        # Looked at before anything is changed: somebody else's schema stays as it is.
        things = await connection.fetch(
            "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1",
            schema,
        )
        form = 0
        if {row["relname"] for row in things} >= set(TABLES):
            # Another process may have been faster, and of a later version, while this one waited for the lock.
            form = await connection.fetchval(f'SELECT form FROM "{schema}".head FOR UPDATE')
        elif things:
            raise StoreError(
                f"the schema {schema} is there, and is not a store of lastword",
                place=place,
                hint="choose another with ?store=NAME; this one was left as it is",
            )
        if form >= len(MIGRATIONS):
            return
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        await connection.execute(f'SET LOCAL search_path = "{schema}", pg_temp')
        for step in MIGRATIONS[form:]:
            await connection.execute(filled_in(step, schema))
        await connection.execute("UPDATE head SET form = $1", len(MIGRATIONS))


def filled_in(step: str, schema: str) -> str:
    """A migration for this schema. Its name was checked: letters, digits and underscores."""
    return step.replace("{schema}", f'"{schema}"').replace("{channel}", f"'{channel(schema)}'")


async def grant(connection: Connection, schema: str, role: str, *, forgetting: bool) -> None:
    """Let a role read and append, and nothing else; and forget, if it is said."""
    quoted: str = await connection.fetchval("SELECT quote_ident($1)", role)
    if not await connection.fetchval("SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)", role):
        raise StoreError(f"the server knows no role {role!r}", hint="make it: createuser NAME")
    functions = (*READING, *WRITING, *(FORGETTING if forgetting else ()))
    signatures = await connection.fetch(
        "SELECT p.oid::regprocedure::text AS name FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = $1 AND p.proname = ANY ($2)",
        schema,
        list(functions),
    )
    async with connection.transaction():
        # Whatever it had before: rights that were given by hand may be too many.
        await connection.execute(f'REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM {quoted}')
        await connection.execute(f'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "{schema}" FROM {quoted}')
        await connection.execute(f'REVOKE ALL ON SCHEMA "{schema}" FROM {quoted}')
        await connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {quoted}')
        await connection.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {quoted}')
        for row in signatures:
            await connection.execute(f"GRANT EXECUTE ON FUNCTION {row['name']} TO {quoted}")


# Records that are read together.
PAGE = 2000

# Whatever could answer in the place of a table, or do something beside it.
_STRANGE = """
SELECT 'the trigger ' || t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = $1::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'the rule ' || r.rulename FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
WHERE c.relnamespace = $1::regnamespace
UNION ALL SELECT 'the policy ' || p.polname FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
WHERE c.relnamespace = $1::regnamespace
UNION ALL SELECT 'the table ' || i.inhrelid::regclass FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhparent
WHERE c.relnamespace = $1::regnamespace
UNION ALL SELECT 'the index ' || c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relnamespace = $1::regnamespace AND NOT (i.indisvalid AND i.indisready AND i.indislive)
"""
_TABLE = re.compile(r"CREATE TABLE (\w+)")
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+)")
_FUNCTION = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION (\w+)\(.*?\nAS \$\$(.*?)\$\$", re.DOTALL)


async def examine(connection: Connection, schema: str, place: str) -> None:
    """Raise Tampered where a store contradicts itself. It reads all of it, a page at a time, as it is at one moment."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await connection.execute(f'SET LOCAL search_path = "{schema}", pg_temp')
        contradiction = (
            await _schema_changed(connection, schema)
            or await _head_changed(connection)
            or await _current_changed(connection)
            or await _contents_changed(connection)
        )
    if contradiction is not None:
        raise Tampered(contradiction, place=place, hint=RESTORE)


async def _schema_changed(connection: Connection, schema: str) -> str | None:
    written = "\n".join(filled_in(step, schema) for step in MIGRATIONS)
    tables = await connection.fetch("SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace", schema)
    missing = {*_TABLE.findall(written), *_INDEX.findall(written)} - {name for (name,) in tables}
    if missing:
        return f"{sorted(missing)[0]} is missing"
    for (strange,) in await connection.fetch(_STRANGE, schema):
        return f"{strange} is not ours"
    meant = dict(_FUNCTION.findall(written))
    found = await connection.fetch(
        "SELECT proname, prosrc, prosecdef FROM pg_proc WHERE pronamespace = $1::regnamespace", schema
    )
    for name, body, is_definer in found:
        if meant.get(name) != body or not is_definer:
            return f"the function {name} was changed"
    return None if len(found) == len(meant) else "a function is missing, or there is one too many"


async def _head_changed(connection: Connection) -> str | None:
    head = await connection.fetchrow("SELECT seq, digest FROM head")
    last = await connection.fetchrow("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1") or (0, GENESIS)
    if head is None or tuple(head) != tuple(last):
        return f"its end is said to be another than its last record, {last[0]}"
    return None


async def _current_changed(connection: Connection) -> str | None:
    current, after = Current(), 0
    kinds = [kind.encode() for kind in sorted(KINDS)]
    sql = (
        "SELECT seq, stream, kind, subject, data FROM records WHERE kind = ANY ($1) AND seq > $2 ORDER BY seq LIMIT $3"
    )
    while rows := await connection.fetch(sql, kinds, after, PAGE):
        for seq, stream, kind, subject, data in rows:
            current.take(seq, stream.decode(), kind.decode(), subject.decode(), data)
        after = rows[-1][0]
    said = await connection.fetch("SELECT kind, stream, name, since, seq FROM standing")
    forgotten = await connection.fetch("SELECT DISTINCT kind, stream FROM records WHERE data IS NULL")
    kept: list[Any] = [(*(text.decode(errors="replace") for text in row[:3]), *row[3:]) for row in said]
    return contradicted(kept, current.rows(), {(kind.decode(), stream.decode()) for kind, stream in forgotten})


async def _contents_changed(connection: Connection) -> str | None:
    after = ""
    while row := await connection.fetchrow(
        "SELECT digest, data FROM contents WHERE digest > $1 ORDER BY digest LIMIT 1", after
    ):
        after = row[0]
        check_content(row[0], row[1])
    found = await connection.fetchrow(WRONG_CONTENTS)
    return None if found is None else f"the content {found[0]} {found[1]}"
