"""What lies beside the records of a SQLite file, against the records: schema, indexes, and what is said to count."""

from __future__ import annotations

from pathlib import Path

import apsw

from lastword.errors import Tampered
from lastword.store.contract import check_content
from lastword.store.sqlite_file import (
    MIGRATIONS,
    WITH_CONTENTS,
    WITH_STANDING,
    connect_for_reading,
    explain,
    form_of,
    not_text,
    work_out_standing,
)
from lastword.store.standing import contradicted

_RESTORE = "restore it from a copy, and keep both for whoever investigates"


def examine(path: Path) -> None:
    """Raise Tampered where the file contradicts itself: an index that hides a record, a trigger that swallows one."""
    connection = connect_for_reading(path)
    pattern = apsw.Connection(":memory:")
    try:
        # A file that cannot be written stays in the form that it has.
        for step in MIGRATIONS[: form_of(connection)]:
            pattern.execute(step).fetchall()
        if _schema(connection) != _schema(pattern):
            raise Tampered("its tables, indexes or triggers were changed", place=str(path), hint=_RESTORE)
        found = connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise Tampered(f"it contradicts itself: {found}", place=str(path), hint=_RESTORE)
        if form_of(connection) >= WITH_STANDING:
            _compare_standing(connection, path)
        if form_of(connection) >= WITH_CONTENTS:
            _compare_contents(connection, path)
    except apsw.Error as problem:
        raise explain(problem, path) from problem
    except UnicodeDecodeError as problem:
        raise not_text(problem, path) from None
    finally:
        pattern.close()
        connection.close()


def _compare_contents(connection: apsw.Connection, path: Path) -> None:
    """Raise Tampered when a content is not what its digest says, is missing, or is held by no record."""
    for digest, data in connection.execute("SELECT digest, data FROM contents"):
        check_content(digest, data)
    sql = """
    SELECT h.digest, 'is missing' FROM holds AS h LEFT JOIN contents AS c USING (digest) WHERE c.digest IS NULL
    UNION ALL SELECT h.digest, 'is held by a record that was forgotten' FROM holds AS h
        LEFT JOIN records AS r USING (seq) WHERE r.data IS NULL
    UNION ALL SELECT c.digest, 'is held by no record' FROM contents AS c
        WHERE NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.digest = c.digest)
    LIMIT 1"""
    for digest, fact in connection.execute(sql):
        raise Tampered(f"the content {digest} {fact}", place=str(path), hint=_RESTORE)


def _schema(connection: apsw.Connection) -> list[tuple[object, ...]]:
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    return list(connection.execute(sql))


def _compare_standing(connection: apsw.Connection, path: Path) -> None:
    """Raise Tampered when what is said to count is not what the records say."""
    kept = list(connection.execute("SELECT kind, stream, name, since, seq FROM standing"))
    # Of what was forgotten nobody knows the name any more, nor therefore which of the same kind it had replaced.
    unsure = set(connection.execute("SELECT DISTINCT kind, stream FROM records WHERE data IS NULL"))
    contradiction = contradicted(kept, work_out_standing(connection).rows(), unsure)
    if contradiction is not None:
        raise Tampered(contradiction, place=str(path), hint=_RESTORE)
