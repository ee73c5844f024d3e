"""What lies beside the records of a SQLite file, against the records: schema, indexes, and what is said to count."""

from __future__ import annotations

from pathlib import Path

import apsw

from lastword.errors import Tampered
from lastword.store.sqlite_file import (
    MIGRATIONS,
    WITH_STANDING,
    connect_for_reading,
    explain,
    form_of,
    not_text,
    work_out_standing,
)
from lastword.store.standing import NAMED_BY_DATA

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
    except apsw.Error as problem:
        raise explain(problem, path) from problem
    except UnicodeDecodeError as problem:
        raise not_text(problem, path) from None
    finally:
        pattern.close()
        connection.close()


def _schema(connection: apsw.Connection) -> list[tuple[object, ...]]:
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    return list(connection.execute(sql))


def _compare_standing(connection: apsw.Connection, path: Path) -> None:
    """Raise Tampered when what is said to count is not what the records say."""
    columns = "kind, stream, name, since, seq"
    kept = {row[:3]: row[3:] for row in connection.execute(f"SELECT {columns} FROM standing")}
    true = {row[:3]: row[3:] for row in work_out_standing(connection).rows()}
    # Of what was forgotten nobody knows the name any more, nor therefore which of the same kind it had replaced.
    unsure = set(connection.execute("SELECT DISTINCT kind, stream FROM records WHERE data IS NULL"))
    for what in kept.keys() | true.keys():
        kind, stream, _ = what
        if kept.get(what) == true.get(what):
            continue
        forgotten = kind in NAMED_BY_DATA and (kind, stream) in unsure
        if forgotten and (what not in kept or (what in true and kept[what][1] == true[what][1])):
            continue
        seq = (kept.get(what) or true[what])[1]
        raise Tampered(
            f"what it says of record {seq} ({kind}), whether it still counts, is not what the records say",
            place=str(path),
            hint=_RESTORE,
        )
