"""Databases while a tool may only look: opened for reading, and kept from writing elsewhere.

SQLite opens its files itself, so no audit event announces what a statement does. A connection that is opened under the
guard must be read-only, and gets an authorizer, which SQLite asks before it carries a statement out: `ATTACH` and
`VACUUM INTO` would write to another file. A connection that was open before is out of reach: see docs/threat-model.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from lastword.store import Refusing

CAN_WRITE = "open a database that it could write to"
_ALLOWED_ACTIONS = (
    "SQLITE_READ",
    "SQLITE_SELECT",
    "SQLITE_FUNCTION",
    "SQLITE_RECURSIVE",
    "SQLITE_TRANSACTION",
    "SQLITE_SAVEPOINT",
    "SQLITE_PRAGMA",  # On a read-only connection none of them writes.
)

is_opening: ContextVar[bool] = ContextVar("lastword_opening_a_database", default=False)
"""Whether a connection is being opened for reading, by the function below. Any other way to open one is refused."""


Watching = Callable[[], Refusing | None]
"""The guard that watches this task or thread, if one does."""


def watch_sqlite3(sqlite3: ModuleType, watching: Watching) -> None:
    """Let `sqlite3.connect` open only what is read-only, while somebody watches."""
    connect = sqlite3.connect

    @functools.wraps(connect)
    def connect_for_reading(database: Any, *args: Any, **kwargs: Any) -> Any:
        guard = watching()
        if guard is None:
            return connect(database, *args, **kwargs)
        if not (args[6] if len(args) > 6 else kwargs.get("uri")) or not _is_read_only(database):
            raise guard.refuse(f"{CAN_WRITE}, without mode=ro and uri=True")
        token = is_opening.set(True)
        try:
            connection = connect(database, *args, **kwargs)
        finally:
            is_opening.reset(token)
        connection.set_authorizer(_authorizer(sqlite3, guard))
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        setattr(module, connect.__name__, connect_for_reading)


def watch_apsw(apsw: ModuleType, watching: Watching) -> None:
    """Let `apsw.Connection` open only what is read-only, while somebody watches."""

    class Connection(apsw.Connection):  # type: ignore[misc, name-defined]
        """apsw's own, which asks first: once it is open, a new file is there."""

        def __init__(self, filename: Any, *args: Any, **kwargs: Any) -> None:
            guard = watching()
            flags = args[0] if args else kwargs.get("flags", apsw.SQLITE_OPEN_READWRITE)
            if guard is not None and not flags & apsw.SQLITE_OPEN_READONLY:
                raise guard.refuse(f"{CAN_WRITE}, without SQLITE_OPEN_READONLY")
            super().__init__(filename, *args, **kwargs)
            if guard is not None:
                self.authorizer = _authorizer(apsw, guard)

    Connection.__qualname__ = "Connection"
    Connection.__module__ = "apsw"
    apsw.Connection = Connection  # type: ignore[attr-defined]


def _is_read_only(database: Any) -> bool:
    """Whether SQLite, which reads a URI's query up to its fragment, will open this one for reading only."""
    uri, _, query = str(database).partition("#")[0].partition("?")
    return uri.startswith("file:") and "mode=ro" in query.split("&")


def _authorizer(module: ModuleType, guard: Refusing) -> Callable[..., int]:
    allowed = {getattr(module, name) for name in _ALLOWED_ACTIONS}
    ok: int = module.SQLITE_OK
    deny: int = module.SQLITE_DENY

    def authorize(action: int, *details: Any) -> int:
        if action in allowed:
            return ok
        # SQLite has an error of its own for it; what counts is that the attempt is written down.
        guard.refuse("attach another database" if action == module.SQLITE_ATTACH else "change a database")
        return deny

    return authorize
