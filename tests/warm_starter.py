"""The program that others are forks of (warm.py): it has loaded what they need, and waits to be asked for one."""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

# Rooms that are loaded whole at once, and those that the first command of its kind has loaded for all after it.
ROOMS = ("__main__", "cli", "session", "call", "card", "consent", "hook", "journal", "rules", "runs", "script", "tools")
KINDS = {
    "chat": ("talk", "terminal"),
    "edit": ("talk", "terminal", "editor"),
    "call": ("terminal",),
    "up": ("talk", "terminal", "web", "server"),
    "serve": ("talk", "server", "store"),
    "mcp": ("terminal", "mcp", "server"),
}
MOST = 1 << 20


class Forks:
    """The far end: forks itself for whoever asks, and tells them how their program ended. One that nobody waits for any
    more is ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._lines: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        self._listening = listening
        self._looking = selectors.DefaultSelector()
        for each in (listening, self._woken, 0):
            self._looking.register(each, selectors.EVENT_READ)
        for end in (self._woken, self._wakes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())

    def until_forked(self) -> tuple[dict[str, Any], list[int]] | None:
        """In a fork, what it has to be and its descriptors; None once nobody asks any more."""
        while True:
            ready = {key.fileobj for key, _ in self._looking.select()}
            left = [pid for pid, line in self._lines.items() if line in ready or 0 in ready]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                self._looking.unregister(self._lines[pid])
            if 0 in ready:
                return None
            if self._woken in ready:
                self._woken.recv(4096)
                self._tell()
            if self._listening in ready and (asked := self._fork()) is not None:
                return asked

    def _tell(self) -> None:
        while self._lines:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._lines.pop(pid) as line, suppress(OSError, KeyError):  # Nobody may wait for it any more.
                self._looking.unregister(line)
                line.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, "big", signed=True))

    def _fork(self) -> tuple[dict[str, Any], list[int]] | None:
        line, _ = self._listening.accept()
        data, fds, _, _ = socket.recv_fds(line, MOST, 3)
        while len(data) < 8 + int.from_bytes(data[:8], "big"):
            data += line.recv(MOST)
        asked = json.loads(data[8:])
        load_for(asked)
        gc.freeze()
        if pid := os.fork():
            self._lines[pid] = line
            self._looking.register(line, selectors.EVENT_READ)
            for fd in fds:
                os.close(fd)
            line.sendall(pid.to_bytes(8, "big", signed=True))
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._looking.close()
        for each in (self._listening, line, self._woken, self._wakes, *self._lines.values()):
            each.close()
        return asked, fds


def load(rooms: Iterable[str]) -> None:
    """Everything in these rooms: their doors alone are lazy."""
    for room in rooms:
        found = import_module(f"lastword.{room}")
        for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{found.__name__}."):
            import_module(module.name)


def load_for(asked: dict[str, Any]) -> None:
    """What a command loads before it does anything, or what a program in Python is to begin with."""
    if "loads" in asked:
        sys.path[:] = asked.get("path", sys.path)
        for name in asked["loads"]:
            import_module(name)
        return
    words = asked["words"]
    commands = sys.modules["lastword.cli"].COMMANDS
    load(f"commands.{commands[word][0].partition(':')[0]}" for word in words[:1] if word in commands)
    load(KINDS.get(words[0], ()) if words else ())


def _become(asked: dict[str, Any], fds: list[int]) -> None:
    """In the fork: what `python -P -m lastword WORDS` would be."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
    )
    sys.argv = ["lastword", *asked["words"]]


def _play(words: list[str]) -> None:
    """In the fork: what `python WORDS` would be."""
    if words[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        words = words[2:]
    if words[0] == "-m":
        sys.argv, sys.path[:0] = words[1:], [""]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv, sys.path[:0] = ["-c", *words[2:]], [""]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv, sys.path[:0] = words, [str(Path(words[0]).resolve().parent)]
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    load(ROOMS)
    asked = Forks(socket.socket(fileno=int(sys.argv[1]))).until_forked()
    if asked is None:
        return
    _become(*asked)
    code: Any = 1
    try:
        if "loads" in asked[0]:
            _play(asked[0]["words"])
            code = 0
        else:
            sys.modules["lastword.__main__"].main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # To take apart all that was loaded would take longer than all the rest.
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
