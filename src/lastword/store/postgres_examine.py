"""What lies beside the records in PostgreSQL, against the records: functions, triggers, and what is said to count."""

from __future__ import annotations

import re
from typing import Any

from lastword.errors import Tampered
from lastword.store.contract import GENESIS, check_content
from lastword.store.postgres_driver import Connection
from lastword.store.postgres_schema import MIGRATIONS, filled_in
from lastword.store.standing import KINDS, Standing, contradicted

_RESTORE = "restore it from a copy, and keep both for whoever investigates"
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
            or await _standing_changed(connection)
            or await _contents_changed(connection)
        )
    if contradiction is not None:
        raise Tampered(contradiction, place=place, hint=_RESTORE)


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


async def _standing_changed(connection: Connection) -> str | None:
    standing, after = Standing(), 0
    kinds = [kind.encode() for kind in sorted(KINDS)]
    sql = (
        "SELECT seq, stream, kind, subject, data FROM records WHERE kind = ANY ($1) AND seq > $2 ORDER BY seq LIMIT $3"
    )
    while rows := await connection.fetch(sql, kinds, after, PAGE):
        for seq, stream, kind, subject, data in rows:
            standing.take(seq, stream.decode(), kind.decode(), subject.decode(), data)
        after = rows[-1][0]
    said = await connection.fetch("SELECT kind, stream, name, since, seq FROM standing")
    forgotten = await connection.fetch("SELECT DISTINCT kind, stream FROM records WHERE data IS NULL")
    kept: list[Any] = [(*(text.decode(errors="replace") for text in row[:3]), *row[3:]) for row in said]
    return contradicted(kept, standing.rows(), {(kind.decode(), stream.decode()) for kind, stream in forgotten})


async def _contents_changed(connection: Connection) -> str | None:
    after = ""
    while row := await connection.fetchrow(
        "SELECT digest, data FROM contents WHERE digest > $1 ORDER BY digest LIMIT 1", after
    ):
        after = row[0]
        check_content(row[0], row[1])
    found = await connection.fetchrow(
        """
        SELECT h.digest, 'is missing' FROM holds AS h LEFT JOIN contents AS c USING (digest) WHERE c.digest IS NULL
        UNION ALL SELECT h.digest, 'is held by a record that was forgotten' FROM holds AS h
            LEFT JOIN records AS r USING (seq) WHERE r.data IS NULL
        UNION ALL SELECT c.digest, 'is held by no record' FROM contents AS c
            WHERE NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.digest = c.digest)
        LIMIT 1"""
    )
    return None if found is None else f"the content {found[0]} {found[1]}"
