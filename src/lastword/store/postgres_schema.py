"""The schema of a store in PostgreSQL: making it, knowing it for ours, bringing it up to date, who may use it, and
whether what lies beside the records contradicts them.

Nothing here writes records.
"""

from __future__ import annotations

import re
from typing import Any

from lastword.errors import StoreError, Tampered
from lastword.store.chain import GENESIS, KINDS, Current, check_content, contradicted
from lastword.store.ledger import RESTORE, WRONG_CONTENTS, load_migrations, of_a_later_version
from lastword.store.postgres_connection import NO_SUCH_TABLE, Connection, InsufficientPrivilege

# Found in pg_locks by whoever wonders what two processes wait for: "LWRD".
MIGRATION_LOCK = 0x4C575244

# By these a store is known for ours, in whatever form it is: the tables that it has had from the first.
TABLES = ("records", "head", "standing", "contents", "holds", "owners", "names")
READING = ("lives", "held")
WRITING = ("begin_append", "append", "try_append", "has_happened", "new_owner", "take", "let_go", "leave")
FORGETTING = ("forget",)


def channel(schema: str) -> str:
    """Where it is said that something was written. Channels belong to a database, and a store to a schema."""
    return f"lastword_{schema}"[:63]


MIGRATIONS = load_migrations("postgres_migrations")


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
    check_form(form or 0, place)


def check_form(form: int, place: str) -> None:
    """Refuse a store that another version of lastword has brought into a form that this one cannot write."""
    if form > len(MIGRATIONS):
        raise of_a_later_version(form, len(MIGRATIONS), place, "store")
    if form < len(MIGRATIONS):
        raise StoreError(
            f"brought back into an earlier form ({form}, this version writes {len(MIGRATIONS)})",
            place=place,
            hint="start this process again, and it is brought up to date",
        )


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
