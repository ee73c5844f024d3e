"""Whether a SQLite file holds what was seen of it: its records against the head that is kept beside it.

A file that never had a head beside it, new or from an earlier version, gets one without a question. A mark in the file
says that it has, so that a head that is gone later is missed.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from lastword.errors import StoreError
from lastword.store.contract import GENESIS, Behind, Head
from lastword.store.head_file import HeadFile, lacking, start_refused
from lastword.store.sqlite_file import WITH_STANDING, form_of

_MARK = "a head is kept beside it"


class Seen:
    """The head that is kept beside one file."""

    def __init__(self, path: Path) -> None:
        self._place = str(path)
        self._file = HeadFile(path.with_name(f"{path.name}-head"))

    @property
    def files(self) -> tuple[Path, ...]:
        return self._file.files

    def missing(self, connection: apsw.Connection) -> Behind | None:
        """What the file lacks of what was seen of it."""
        found = end_of(connection)
        try:
            seen = self._file.read()
        except StoreError as problem:
            return Behind(problem.fact, found, None)
        if seen is None:
            if not _is_marked(connection):
                return None
            return Behind("the file beside it that says how far it went is gone", found, None)
        if contains(connection, seen):
            return None
        return lacking(found, seen)

    def refusal(self, behind: Behind) -> StoreError:
        """Why nothing that cannot be taken back is written."""
        return start_refused(behind, self._place)

    def prepare(self, connection: apsw.Connection) -> None:
        """Have a head beside the file before the file says so. Inside a transaction that writes."""
        if self._file.read() is None:
            self._file.make(end_of(connection))
        connection.execute("INSERT OR IGNORE INTO marks VALUES (?)", (_MARK,))

    def accept(self, connection: apsw.Connection, head: Head) -> None:
        """Let this head count, whatever was there before. Inside a transaction that writes."""
        self._file.make(head)
        connection.execute("INSERT OR IGNORE INTO marks VALUES (?)", (_MARK,))

    def keep(self, head: Head) -> None:
        """Keep a head that is durable in the file."""
        self._file.advance(head)


def _is_marked(connection: apsw.Connection) -> bool:
    if form_of(connection) < WITH_STANDING:
        return False  # Only to be looked at, so it was not brought up to date.
    return connection.execute("SELECT 1 FROM marks WHERE name = ?", (_MARK,)).get is not None


def end_of(connection: apsw.Connection) -> Head:
    """Where the records end. It takes 3 µs of the 200 that a commit takes."""
    row = connection.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").get
    return Head(*row) if row else Head(0, GENESIS)


def contains(connection: apsw.Connection, head: Head) -> bool:
    """Whether the record that a head names is there."""
    if not head.seq:
        return head.digest == GENESIS
    found = connection.execute("SELECT digest FROM records WHERE seq = ?", (head.seq,)).get
    return bool(found == head.digest)
