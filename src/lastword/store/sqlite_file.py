"""The SQLite file itself: making it, knowing it for ours, bringing it up to date, what was seen of it, examining what
lies beside its records, and words for what can go wrong.

Nothing here writes records.

Nothing that cannot be taken back is written into a file that lacks what was seen of it. The head that was seen is kept
beside the file. A file that never had one, new or from an earlier version, gets one without a question. A mark in the
file says that it has, so that a head that is gone later is missed.
"""

from __future__ import annotations

import os
import shutil
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

import apsw

from lastword.store.chain import (
    GENESIS,
    KINDS,
    Behind,
    Current,
    Head,
    StoreError,
    Tampered,
    check_content,
    contradicted,
    not_held,
)
from lastword.store.head_file import HeadFile, missing, start_refused
from lastword.store.ledger import APPLIED, RESTORE, WRONG_CONTENTS, Applied, load_migrations, of_a_later_version
from lastword.store.private_files import make_private, sync_names

# "ASST": the mark by which the file is known for ours, here and to file(1).
APPLICATION_ID = 0x41535354
# How long to wait for another process to finish writing. Its commits take milliseconds; ten seconds of silence
# mean that it is stopped, or that the file is held open in a transaction by hand.
BUSY_SECONDS = 10.0
# After a burst the log is cut back to this, so that one large import does not occupy the disk for ever.
MAX_LOG_BYTES = 64 * 2**20

_MARK = "a head is kept beside it"

# The form from which on the file says which records still count.
WITH_CURRENT = 2
# The form from which on records may hold contents.
WITH_CONTENTS = 3


def connect(path: Path) -> apsw.Connection:
    """Open the file for writing; make it and bring it up to date if need be. Raises StoreError in words."""
    try:
        create(path)
        connection = _open(path)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection
    except (apsw.Error, OSError) as problem:
        raise explain(problem, path) from problem
    except UnicodeDecodeError as problem:
        raise not_text(problem, path) from None


def connect_for_reading(path: Path) -> apsw.Connection:
    """A second connection to a file that `connect` has opened before."""
    try:
        connection = _open(path)
        connection.pragma("query_only", True)
        return connection
    except apsw.Error as problem:
        raise explain(problem, path) from problem


def work_out_current(connection: apsw.Connection) -> Current:
    """Which records count, from all that were ever written."""
    current = Current()
    kinds = ", ".join(f"'{kind}'" for kind in sorted(KINDS))
    sql = f"SELECT seq, stream, kind, subject, data FROM records WHERE +kind IN ({kinds}) ORDER BY seq"
    for row in connection.execute(sql):
        current.take(*row)
    return current


def _open(path: Path) -> apsw.Connection:
    connection = _connected(str(path))
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    except (apsw.ReadOnlyError, apsw.CantOpenError):
        connection.close()
        if _may_write(path.parent) or not path.is_file():
            raise
        return _open_where_nothing_can_be_made(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_where_nothing_can_be_made(path: Path) -> apsw.Connection:
    """Open a file on a disk or in a folder that cannot be written, to look at it. SQLite would make files beside it."""
    log = Path(f"{path}-wal")
    if not log.exists() or not log.stat().st_size:
        # No process has it open or can open it for writing, so it does not change while it is read.
        return _connected(f"file:{quote(str(path))}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    # Its writer crashed, and the newest records are in the write-ahead log. They are read from a copy of both files.
    copies = TemporaryDirectory(prefix="lastword-")
    for file in (path, log):
        shutil.copyfile(file, Path(copies.name) / file.name)
    connection = _connected(str(Path(copies.name) / path.name), apsw.SQLITE_OPEN_READONLY)
    weakref.finalize(connection, copies.cleanup)
    return connection


def _connected(name: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    connection = apsw.Connection(name, flags=flags)
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    # Whoever can write the file could leave a trigger or a view in it that says yes and does nothing. Ours has none.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Without this a statement is planned anew for every value that is bound to it, which takes longer than to carry it
    # out; and the file holds no statistics that could make one value's plan differ from another's.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def create(path: Path) -> None:
    """Make an empty file that only its owner can read, and the folders above it, unless they exist.

    SQLite gives its log and its index the mode of the file. Only a new file is opened: closing a file drops every lock
    that this process holds on it, so an existing one is left to SQLite alone.
    """
    make_private(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(descriptor)
    sync_names(path.parent)


def _prepare(connection: apsw.Connection, path: Path) -> None:
    # Looked at before anything is changed: somebody else's file stays as it is.
    _recognise(connection, path)
    if connection.readonly("main"):
        return  # It can be looked at, in whatever form it is.
    _enter_log_mode(connection)
    connection.pragma("synchronous", "full")
    # Where the system has two kinds of sync, only the full one reaches the disk.
    connection.pragma("fullfsync", True)
    connection.pragma("checkpoint_fullfsync", True)
    # What was pruned is overwritten, not only unlinked.
    connection.pragma("secure_delete", True)
    connection.pragma("journal_size_limit", MAX_LOG_BYTES)
    migrate(connection, path)


def _recognise(connection: apsw.Connection, path: Path) -> None:
    # One transaction, so that a new file to which another process gives tables and mark is seen with both or neither.
    connection.execute("BEGIN")
    try:
        ours = connection.pragma("application_id") == APPLICATION_ID
        empty = not connection.execute("SELECT count(*) FROM sqlite_schema").get
        if ours:
            check_version(connection, path)
    finally:
        roll_back(connection)
    if not ours and not empty:
        raise StoreError(
            "this is a database, but not one of lastword",
            place=str(path),
            hint="name another file; this one was left as it is",
        )


def _enter_log_mode(connection: apsw.Connection) -> None:
    """Turn the write-ahead log on. It is a property of the file, so usually it is on."""
    deadline = monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            # Two processes that open a new file at once can each hold what the other needs. SQLite then refuses at
            # once instead of waiting, and the one that tries again finds the log switched on.
            if monotonic() > deadline:
                raise
            sleep(0.005)
            continue
        if mode != "wal":
            raise StoreError(
                f"the write-ahead log cannot be used here (SQLite stays in {mode} mode)",
                hint="keep the journal on a local disk, not on a network folder",
            )
        return


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Carry out the migrations that this file has not seen, all together, while nobody else can write."""
    if form_of(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster, and of a later version, while this one waited for the lock.
        check_version(connection, path)
        for step in MIGRATIONS[form_of(connection) :]:
            connection.execute(step).fetchall()
        connection.execute("DELETE FROM standing")
        connection.executemany("INSERT INTO standing VALUES (?, ?, ?, ?, ?)", work_out_current(connection).rows())
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(MIGRATIONS))
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: apsw.Connection) -> None:
    """Leave a transaction, if there is one. An error of the disk may have ended it, and is the one to be told of."""
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


MIGRATIONS = load_migrations("migrations")


def form_of(connection: apsw.Connection) -> int:
    """How far the file was brought: the number of the last migration that it has seen."""
    return int(connection.execute("PRAGMA user_version").get)


def check_version(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that a later version of lastword has brought further than this one can follow."""
    version = form_of(connection)
    if version > len(MIGRATIONS):
        raise of_a_later_version(version, len(MIGRATIONS), str(path), "file")


class SqliteKnownHead:
    """The head that is kept beside one file."""

    def __init__(self, path: Path) -> None:
        self._memory = path
        self._file = HeadFile(path.with_name(f"{path.name}-head"))

    @property
    def files(self) -> tuple[Path, ...]:
        return self._file.files

    def missing(self, connection: apsw.Connection) -> Behind | None:
        """What the file lacks of what was seen of it."""
        found, known = end_of(connection), self._file.known()
        # A file that is only to be looked at was not brought up to date, and has no marks.
        has_marks = known is None and form_of(connection) >= WITH_CURRENT
        if has_marks and connection.execute("SELECT 1 FROM marks WHERE name = ?", (_MARK,)).get is not None:
            return Behind("the file beside it that says how far it went is gone", found, None)
        return missing(known, found, _digest(connection, known.seq) if isinstance(known, Head) else None)

    def refusal(self, connection: apsw.Connection) -> StoreError | None:
        """Why nothing may be written now that cannot be taken back. Inside a transaction that writes: the file says
        that it has a head, once there is one beside it."""
        behind = self.missing(connection)
        if behind is not None:
            return start_refused(behind, str(self._memory))
        try:
            if self._file.read() is None:
                self._file.make(end_of(connection))
        except StoreError as problem:
            return problem
        connection.execute("INSERT OR IGNORE INTO marks VALUES (?)", (_MARK,))
        return None

    def accept(self, connection: apsw.Connection, head: Head) -> Applied | StoreError:
        """Let this head count, whatever was there before. Inside a transaction that writes."""
        if _digest(connection, head.seq) != head.digest:
            return not_held(head)
        try:
            self._file.make(head)
        except StoreError as problem:
            return problem
        connection.execute("INSERT OR IGNORE INTO marks VALUES (?)", (_MARK,))
        return APPLIED

    def keep(self, head: Head) -> None:
        """Keep a head that is durable in the file."""
        self._file.advance(head)


def end_of(connection: apsw.Connection) -> Head:
    """Where the records end. It takes 3 µs of the 200 that a commit takes."""
    row = connection.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").get
    return Head(*row) if row else Head(0, GENESIS)


def _digest(connection: apsw.Connection, seq: int) -> Any:
    """The digest of the record of this number; None when there is none."""
    return connection.execute("SELECT digest FROM records WHERE seq = ?", (seq,)).get if seq else GENESIS


def explain(problem: apsw.Error | OSError, path: Path) -> StoreError:
    """What went wrong with the file, and what to do about it."""
    if isinstance(problem, OSError):
        fact, hint = f"cannot be made: {problem.strerror or problem}", "check the folder's owner and mode"
    elif isinstance(problem, apsw.FullError):
        fact, hint = "the disk is full", "make room and try again"
    elif isinstance(problem, apsw.ReadOnlyError) or (isinstance(problem, apsw.IOError) and _unwritable(path)):
        fact = "the file, one beside it (-wal, -shm) or their folder cannot be written"
        hint = "check owner and mode, or name another file"
    elif isinstance(problem, apsw.BusyError | apsw.LockedError):
        fact = f"another process has been writing to it for more than {BUSY_SECONDS:g} seconds"
        hint = "end the other process, or wait for it and try again"
    elif isinstance(problem, apsw.CantOpenError):
        fact, hint = "cannot be opened", "check that it is a file, and its owner, mode and folder"
    elif isinstance(problem, apsw.NotADBError):
        fact, hint = "this is not a journal of lastword", "name another file; this one was left as it is"
    elif isinstance(problem, apsw.CorruptError):
        fact = f"the file is damaged ({problem})"
        hint = "keep it as it is and restore from a copy"
    elif isinstance(problem, apsw.IOError):
        fact, hint = f"the disk reported an error ({_code(problem)})", "check the disk and try again"
    else:
        fact, hint = f"SQLite refused: {problem}", "try again; if it stays, keep the file and restore from a copy"
    return StoreError(fact, place=str(path), hint=hint)


def not_text(problem: UnicodeDecodeError, path: Path) -> Tampered:
    """Only what was changed behind our back is not UTF-8."""
    return Tampered(
        f"a record holds text that is not UTF-8: {problem.object!r}",
        place=str(path),
        hint="it was changed after it was written; restore from a copy",
    )


def _unwritable(path: Path) -> bool:
    """Whether a mode is to blame: SQLite calls a log that it may not write an error of the disk."""
    beside = (path, Path(f"{path}-wal"), Path(f"{path}-shm"))
    return any(name.exists() and not _may_write(name) for name in beside)


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _code(problem: apsw.Error) -> str:
    # The attribute is there on every error that came from SQLite, though the package's type hints do not know it.
    code = getattr(problem, "extendedresult", 0)
    return str(apsw.mapping_extended_result_codes.get(code, code))


def examine(path: Path) -> None:
    """Raise Tampered where the file contradicts itself: an index that hides a record, a trigger that swallows one."""
    connection = connect_for_reading(path)
    pattern = apsw.Connection(":memory:")
    try:
        # A file that cannot be written stays in the form that it has.
        for step in MIGRATIONS[: form_of(connection)]:
            pattern.execute(step).fetchall()
        if _schema(connection) != _schema(pattern):
            raise Tampered("its tables, indexes or triggers were changed", place=str(path), hint=RESTORE)
        found = connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise Tampered(f"it contradicts itself: {found}", place=str(path), hint=RESTORE)
        if form_of(connection) >= WITH_CURRENT:
            _compare_current(connection, path)
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
    for digest, fact in connection.execute(WRONG_CONTENTS):
        raise Tampered(f"the content {digest} {fact}", place=str(path), hint=RESTORE)


def _schema(connection: apsw.Connection) -> list[tuple[object, ...]]:
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    return list(connection.execute(sql))


def _compare_current(connection: apsw.Connection, path: Path) -> None:
    """Raise Tampered when what is said to count is not what the records say."""
    kept = list(connection.execute("SELECT kind, stream, name, since, seq FROM standing"))
    # Of what was forgotten nobody knows the name any more, nor therefore which of the same kind it had replaced.
    unsure = set(connection.execute("SELECT DISTINCT kind, stream FROM records WHERE data IS NULL"))
    contradiction = contradicted(kept, work_out_current(connection).rows(), unsure)
    if contradiction is not None:
        raise Tampered(contradiction, place=str(path), hint=RESTORE)
