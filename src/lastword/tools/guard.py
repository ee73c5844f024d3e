"""The phase that may look and must not touch.

While a card is drawn, and while a tool words its own cancellation, its code runs under a `Guard`. An audit hook refuses
file writes, sockets, processes, threads and ctypes, and writes each attempt down, so that swallowing the exception
does not help: the guard is asked afterwards.

It catches mistakes, not malice. A tool is trusted code; one that wants to defeat this hook can.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lastword.display import displayable
from lastword.errors import NotAllowedNow

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_REFUSED = {
    "os.remove": "delete a file",
    "os.rename": "rename a file",
    "os.mkdir": "make a folder",
    "os.rmdir": "remove a folder",
    "os.link": "link a file",
    "os.symlink": "link a file",
    "os.truncate": "cut a file",
    "os.chmod": "change a file's mode",
    "os.chown": "change a file's owner",
    "os.utime": "change a file's times",
    "os.setxattr": "change a file's attributes",
    "os.removexattr": "change a file's attributes",
    "os.system": "run a command",
    "os.exec": "run a program",
    "os.posix_spawn": "run a program",
    "os.spawn": "run a program",
    "os.fork": "start a process",
    "os.forkpty": "start a process",
    "os.startfile": "open a file in another program",
    "os.kill": "signal a process",
    "os.killpg": "signal a process",
    "os.putenv": "change the environment",
    "os.unsetenv": "change the environment",
    "os.chdir": "change the current folder",
    "signal.pthread_kill": "signal a thread",
    "resource.setrlimit": "change a limit of the process",
    "resource.prlimit": "change a limit of a process",
    "pty.spawn": "run a program",
    "webbrowser.open": "open a browser",
    "builtins.input": "ask on the terminal",
    "subprocess.Popen": "run a program",
    "_thread.start_new_thread": "start a thread",
    "_thread.start_joinable_thread": "start a thread",
}
_REFUSED_FAMILIES = {
    "socket": "use the network",
    "ctypes": "reach outside Python",
    "shutil": "move or copy files",
    "tempfile": "make a temporary file",
    "ftplib": "use the network",
    "imaplib": "use the network",
    "poplib": "use the network",
    "smtplib": "use the network",
    "nntplib": "use the network",
    "telnetlib": "use the network",
    "urllib": "use the network",
    "syslog": "write to the system's log",
    "winreg": "change the registry",
}
# Looking up one's own name, or closing what was open before, changes nothing.
_HARMLESS = {"socket.gethostname", "ctypes.dlsym/handle"}


class Guard:
    """What may not happen now, and what was tried all the same."""

    __slots__ = ("phase", "violations")

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.violations: list[str] = []

    def refuse(self, what: str) -> NotAllowedNow:
        """Write the attempt down and give back the error to raise."""
        what = displayable(what)  # The name of a file may hold bytes that are no text, and the attempt is journaled.
        self.violations.append(what)
        return NotAllowedNow(
            f"{self.phase} tried to {what}",
            hint="do it in the execute function, after primary_confirmed",
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse effects of the code inside, on this task or thread."""
        _install()
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)


def refuse_if_watched(what: str, name: str = "") -> None:
    """For effects that no audit event announces: refuse them while a guard watches this task or thread."""
    guard = _active.get()
    if guard is not None:
        raise guard.refuse(what + name)


_active: ContextVar[Guard | None] = ContextVar("lastword_guard", default=None)
_installed = False


def _install() -> None:
    """Add the audit hook when the first card is drawn: it can never be removed again."""
    global _installed
    if not _installed:
        _installed = True
        if sys.version_info < (3, 12):
            _announce_threads()
        sys.addaudithook(_hook)


def _announce_threads() -> None:
    """Raise the audit event that Python 3.12 raises when a thread starts, and 3.11 does not.

    A thread begins with an empty context, so one that started unseen would run unwatched.
    """
    start = _thread.start_new_thread

    def start_new_thread(function: Any, args: Any, kwargs: Any = None, /) -> int:
        sys.audit("_thread.start_new_thread", function, args, kwargs)
        return start(function, args, kwargs or {})

    for module, name in ((_thread, "start_new_thread"), (threading, "_start_new_thread")):
        setattr(module, name, start_new_thread)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    guard = _active.get()
    if guard is None:
        return
    if event == "open":
        if what := _write(args):
            raise guard.refuse(what)
        return
    if event == "sqlite3.connect":
        if "mode=ro" not in str(args[0]):
            raise guard.refuse("open a database that is not mode=ro")
        return
    what = _REFUSED.get(event) or _REFUSED_FAMILIES.get(event.partition(".")[0])
    if what is None or event in _HARMLESS or (event in _CACHING and _is_cache(args)):
        return
    raise guard.refuse(what)


def _write(args: tuple[Any, ...]) -> str | None:
    path, mode, flags = args
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    # A descriptor was opened before, and judged then.
    if not writes or isinstance(path, int) or path == os.devnull or _is_cache(args):
        return None
    return f"write {os.fsdecode(path)}"


# What the import system does to keep byte code, besides opening files.
_CACHING = {"os.mkdir", "os.rename", "os.remove"}


def _is_cache(args: tuple[Any, ...]) -> bool:
    """Python may write its byte code when the tool imports a module: every path that is touched lies in a cache."""
    paths = [arg for arg in args[:2] if isinstance(arg, str) and ("/" in arg or os.sep in arg)]
    return bool(paths) and all("__pycache__" in path.split(os.sep) for path in paths)
