"""The schema of a store in PostgreSQL: making it, knowing it for ours, bringing it up to date, and who may use it.

Nothing here reads or writes records.
"""

from __future__ import annotations

from importlib.resources import files

from lastword.errors import NewerStore, StoreError
from lastword.store.postgres_driver import NO_SUCH_TABLE, Connection, InsufficientPrivilege

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


def _load_migrations() -> list[str]:
    """The steps from nothing to the present form. Step n is in the file whose name begins with n."""
    folder = files("lastword.store") / "postgres_migrations"
    found = sorted((step for step in folder.iterdir() if step.name.endswith(".sql")), key=lambda step: step.name)
    for number, step in enumerate(found, start=1):
        assert step.name.startswith(f"{number:04d}_"), f"{step.name} is not step {number}"
    return [step.read_text(encoding="utf-8") for step in found]


MIGRATIONS = _load_migrations()


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
        raise NewerStore(
            f"written by a later version of lastword (its form is {form}, this version knows {len(MIGRATIONS)})",
            place=place,
            hint="upgrade lastword, or name another store",
        )
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
