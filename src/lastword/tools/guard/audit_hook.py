"""The phase that may look and must not touch.

While a card is drawn, and while a tool words its own cancellation, its code runs under a `Guard`. An audit hook refuses
file writes, sockets, processes, threads and ctypes, and writes each attempt down, so that swallowing the exception does
not help: the guard is asked afterwards. What Python does not announce is wrapped (patches.py); what lastword itself can
do is refused where it is done (`refuse_if_watched`). What is read is noted (observations.py): it is part of the
question.

It catches mistakes, not malice. A tool is trusted code; one that wants to defeat this hook can. docs/threat-model.md
lists what stays possible, and a test tries all of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from lastword.display import displayable
from lastword.errors import NotAllowedNow
from lastword.store import read_only_guard
from lastword.tools.guard import patches

if TYPE_CHECKING:
    from lastword.tools.guard.observations import Observations, Readable

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
    "os.fork": "start a process",
    "os.forkpty": "start a process",
    "os.kill": "signal a process",
    "os.killpg": "signal a process",
    "os.putenv": "change the environment",
    "os.unsetenv": "change the environment",
    "os.chdir": "change the current folder",
    "os.chflags": "change a file's flags",
    "os.lockf": "lock a file",
    "fcntl.flock": "lock a file",
    "fcntl.lockf": "lock a file",
    "fcntl.ioctl": "control a device",
    "signal.pthread_kill": "signal a thread",
    "resource.setrlimit": "change a limit of the process",
    "resource.prlimit": "change a limit of a process",
    "webbrowser.open": "open a browser",
    "builtins.input": "ask on the terminal",
    "subprocess.Popen": "run a program",
    "_thread.start_new_thread": "start a thread",
    "_thread.start_joinable_thread": "start a thread",
    "cpython.PyInterpreterState_New": "start an interpreter",
    "sys.setprofile": "follow the program's steps",
    "sys.settrace": "follow the program's steps",
    "sys.monitoring.register_callback": "follow the program's steps",
    "sys.addaudithook": "follow the program's steps",
    "sqlite3.enable_load_extension": "extend a database",
    "sqlite3.load_extension": "extend a database",
}
_REFUSED_FAMILIES = {
    "socket": "use the network",
    "ctypes": "reach outside Python",
    "shutil": "move or copy files",
    "tempfile": "make a temporary file",
    "http": "use the network",
    "syslog": "write to the system's log",
}
_LISTING = {"os.listdir", "os.scandir", "os.listxattr", "os.getxattr"}
# Looking up one's own name, or closing what was open before, changes nothing.
_HARMLESS = {"socket.gethostname", "ctypes.dlsym/handle"}


# An author needs the first few; a loop that tries for ever must not fill the memory.
MAX_VIOLATIONS = 100


class Guard:
    """What may not happen now, and what was tried all the same."""

    __slots__ = ("hears_glances", "observations", "phase", "violations")

    def __init__(self, phase: str, observations: Observations | None = None, *, hears_glances: bool = False) -> None:
        """`hears_glances`: whether to be told also of looks that leave no mark, for who may not look at all."""
        self.phase = phase
        self.observations = observations
        self.hears_glances = hears_glances
        self.violations: list[str] = []

    def refuse(self, what: str) -> NotAllowedNow:
        """Write the attempt down and give back the error to raise."""
        what = displayable(what)  # The name of a file may hold bytes that are no text, and the attempt is journaled.
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(what)
        return NotAllowedNow(
            f"{self.phase} tried to {what}",
            hint="do it in the execute function, after primary_confirmed",
        )

    def note_state(self, state: Readable, key: str | None) -> None:
        """A key of the state, or all of it, is about to be read."""
        if self.observations is not None:
            self.observations.add_state(state, key)

    def note_glance(self) -> None:
        """A folder is about to be listed, or facts of a file asked for beside what is in it."""
        if self.observations is not None:
            self.observations.has_glanced = True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse effects of the code inside, on this task or thread."""
        _install()
        if self.hears_glances:
            patches.wrap_glances(_active.get)
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)


def note_state(state: Readable, key: str | None) -> None:
    """Somebody is about to read state: note it, if that is a tool whose card is being drawn."""
    guard = _active.get()
    if guard is not None:
        guard.note_state(state, key)


# The variable lies where the store can see it, which is below us. Nobody but a guard is ever put into it.
_active = cast("ContextVar[Guard | None]", read_only_guard)
_installed = False


def _install() -> None:
    """Add the audit hook when the first card is drawn: it can never be removed again."""
    global _installed
    patches.wrap_what_is_loaded(_active.get)
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    guard = _active.get()
    if guard is None:
        return
    if event == "open":
        _judge_opening(guard, args)
    elif event in _LISTING:
        if not _reads_for_itself():
            guard.note_glance()
    elif event == "import":
        patches.wrap_when_imported(args[0], _active.get)
    elif event == "sqlite3.connect":
        if not patches.is_opening.get():
            raise guard.refuse(f"{patches.CAN_WRITE}, not by sqlite3.connect")
    elif event == "mmap.__new__":
        if _writes_to_memory(args):
            raise guard.refuse("map a file for writing")
    else:
        what = _REFUSED.get(event) or _REFUSED_FAMILIES.get(event.partition(".")[0])
        if what is not None and event not in _HARMLESS and not (event in _CACHING and _keeps_byte_code(event, args)):
            raise guard.refuse(what)


def _judge_opening(guard: Guard, args: tuple[Any, ...]) -> None:
    path, mode, flags = args
    if isinstance(path, int):
        return  # A descriptor was opened before, and judged then.
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    if writes:
        if path != os.devnull and not _keeps_byte_code("open", args):
            raise guard.refuse(f"write {os.fsdecode(path)}")
    elif guard.observations is not None and not _reads_for_itself():
        # To know what is in the file we have to open it, too, and nobody needs to watch us.
        token = _active.set(None)
        try:
            guard.observations.add_file(os.fsdecode(path))
        finally:
            _active.reset(token)


def _writes_to_memory(args: tuple[Any, ...]) -> bool:
    """Whether what is written into a map ends up in a file: not in memory of nobody's, nor in one that is read."""
    descriptor, _, access, *_ = args
    return descriptor != -1 and access not in (_ACCESS_READ, _ACCESS_COPY)


_ACCESS_READ, _ACCESS_COPY = 1, 3  # as in mmap, which few programs load

_IMPORT_SYSTEM = ("<frozen importlib._bootstrap_external>", "<frozen zipimport>")
# What the import system does to keep byte code, besides opening files, and what it calls them until they are complete.
_CACHING = {"os.mkdir", "os.rename", "os.remove"}
_BYTE_CODE = re.compile(r"\.pyc(\.\d+)?$")


def _keeps_byte_code(event: str, args: tuple[Any, ...]) -> bool:
    """Whether this is Python itself, keeping the byte code of a module that the tool imports. Nobody else may."""
    frame = _caller()
    if frame is None or frame.f_code.co_filename != _IMPORT_SYSTEM[0]:
        return False
    paths = [path for path in args[:2] if isinstance(path, str)]
    return event == "os.mkdir" or all(_BYTE_CODE.search(path) for path in paths if "/" in path)


def _reads_for_itself() -> bool:
    """Whether the import system reads a module, or our editor a file, of which it keeps its own account."""
    frame = _caller()
    return frame is not None and (
        frame.f_code.co_filename in _IMPORT_SYSTEM or str(frame.f_globals.get("__name__")).startswith(_OUR_EDITOR)
    )


def _caller() -> FrameType | None:
    """The Python code whose step was announced."""
    frame = sys._getframe().f_back
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    return frame


_OUR_EDITOR = "lastword.editor."

patches.wrap_what_is_loaded(_active.get)
