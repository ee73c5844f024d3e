"""Effects of which Python tells nobody. They are wrapped, once, so that the guard hears of them.

An audit event is better: it is raised whatever name a function is called by. What is wrapped here has none, and is
something that the author of a tool could do without thinking of it as an effect. A function is wrapped in its module,
so who took it out by name before (`from os import mkfifo`) calls the original; a method is wrapped for everybody.
Modules that are not loaded are left alone until they are: nobody pays for what they do not use.

SQLite opens its files itself, so no audit event announces what a statement does. A connection that is opened under the
guard must be read-only, and gets an authorizer, which SQLite asks before it carries a statement out: `ATTACH` and
`VACUUM INTO` would write to another file. A connection that was open before is out of reach: see docs/threat-model.md.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lastword.store import ReadOnlyGuard

Watching = Callable[[], "ReadOnlyGuard | None"]
"""The guard that watches this task or thread, if one does."""

_NETWORK = "use the network"

_SYSTEM = {
    "mkfifo": "make a pipe",
    "mknod": "make a special file",
    "umask": "change the mode of files to come",
    "_exit": "end the program",
    "abort": "end the program",
}

_FUNCTIONS: dict[str, dict[str, str]] = {
    "os": _SYSTEM,
    "posix": _SYSTEM,  # where `os` has them from
    "readline": {"write_history_file": "write", "append_history_file": "write"},
    "signal": {
        "signal": "handle a signal",
        "raise_signal": "signal a process",
        "pidfd_send_signal": "signal a process",
        "alarm": "set an alarm",
        "setitimer": "set an alarm",
    },
    "atexit": {
        "register": "leave something for the end of the program",
        "unregister": "change what happens at the end of the program",
    },
    "_posixsubprocess": {"fork_exec": "start a process"},
    "_posixshmem": {"shm_open": "share memory", "shm_unlink": "share memory"},
    "socket": {"socket.send": _NETWORK, "socket.sendall": _NETWORK, "socket.sendfile": _NETWORK},
    "ssl": {"SSLSocket.send": _NETWORK, "SSLSocket.write": _NETWORK},
    "concurrent.futures.thread": {"ThreadPoolExecutor.submit": "give work to a thread"},
    "concurrent.futures.process": {"ProcessPoolExecutor.submit": "give work to a process"},
}
if sys.version_info < (3, 12):  # From then on Python announces threads, which begin with an empty context.
    _FUNCTIONS["_thread"] = {"start_new_thread": "start a thread", "start_new": "start a thread"}
    _FUNCTIONS["threading"] = {"_start_new_thread": "start a thread"}


# Facts of files that can be asked for without opening one. Only who may not look at all is kept from asking unheard.
_GLANCES = ("stat", "lstat", "access", "readlink", "statvfs")
_heard: set[Callable[..., Any]] = set()


class Noting(Protocol):
    """Whoever wants to hear of every look."""

    def note_glance(self) -> None: ...


def wrap_glances(watching: Callable[[], Noting | None]) -> None:
    """Hear of looks at a file from outside of it. Every program asks for such facts all the time, so this is not done
    before somebody has to know.
    """
    for name in _GLANCES:
        original = getattr(os, name, None)
        if original is not None and original not in _heard:
            wrapped = _noted(original, watching)
            _heard.add(wrapped)
            setattr(os, name, wrapped)
            _keep_abilities(original, wrapped)


def _noted(original: Callable[..., Any], watching: Callable[[], Noting | None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def noted_while_watched(*args: Any, **kwargs: Any) -> Any:
        guard = watching()
        if guard is not None:
            guard.note_glance()
        return original(*args, **kwargs)

    return noted_while_watched


def wrap_what_is_loaded(watching: Watching) -> None:
    """Wrap what was loaded since this was last called."""
    for name in [name for name in _unwrapped if name in sys.modules]:
        module = sys.modules[name]
        if not getattr(module.__spec__, "_initializing", False) and (wrap := _unwrapped.pop(name, None)):
            wrap(module, watching)


def wrap_when_imported(name: str, watching: Watching) -> None:
    """Load and wrap a module that the watched code is about to import, before that code can have it."""
    wrap = _unwrapped.pop(name, None)
    if wrap is not None:
        try:
            module = importlib.import_module(name)
        except BaseException:
            _unwrapped[name] = wrap
            raise
        wrap(module, watching)


def _wrap(module: ModuleType, watching: Watching, names: dict[str, str]) -> None:
    for name, what in names.items():
        owner: Any = module
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        original = getattr(owner, last, None)
        if original is not None:  # Not every system has every function.
            wrapped = _wrapped(original, what, watching, _ALLOWED_FROM.get(name))
            setattr(owner, last, wrapped)
            if module is os:
                _keep_abilities(original, wrapped)


def _wrapped(
    original: Callable[..., Any], what: str, watching: Watching, is_allowed_from: Callable[[FrameType], bool] | None
) -> Callable[..., Any]:
    @functools.wraps(original)
    def refused_while_watched(*args: Any, **kwargs: Any) -> Any:
        guard = watching()
        if guard is not None and not (is_allowed_from is not None and is_allowed_from(sys._getframe(1))):
            raise guard.refuse(what)
        return original(*args, **kwargs)

    return refused_while_watched


def _from_a_waking_loop(frame: FrameType) -> bool:
    """An event loop is woken from another thread by a byte on a socket of its own. What it then does is watched."""
    return frame.f_code.co_name == "_write_to_self"


def _from_a_module_being_loaded(frame: FrameType) -> bool:
    """Importing is looking, and many a module of the library has something to do at the end."""
    is_loading = getattr(frame.f_globals.get("__spec__"), "_initializing", False)
    return frame.f_code.co_name == "<module>" and bool(is_loading)


_ALLOWED_FROM = {"socket.send": _from_a_waking_loop, "register": _from_a_module_being_loaded}


def _keep_abilities(original: Callable[..., Any], wrapped: Callable[..., Any]) -> None:
    """`os.mkfifo in os.supports_dir_fd` is how programs ask what they may pass."""
    for ability in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in ability:
            ability.add(wrapped)


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


def _authorizer(module: ModuleType, guard: ReadOnlyGuard) -> Callable[..., int]:
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


_unwrapped: dict[str, Callable[[ModuleType, Watching], None]] = {
    **{name: functools.partial(_wrap, names=names) for name, names in _FUNCTIONS.items()},
    "sqlite3": watch_sqlite3,
    "apsw": watch_apsw,
}

# A finalizer registers itself for the end of the program when the first one is made. That one is made here, or else the
# guard would refuse the first that a tool makes, and let all others pass.
weakref.finalize(_wrap, int).detach()
