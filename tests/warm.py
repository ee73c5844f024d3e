"""Programs that start warm: each is a fork of one that has loaded lastword already.

Such a program is as real as one that was started: a process with descriptors, an environment, a folder, signals and an
end of its own. What it spares is the start of the interpreter and the loading, which is nearly all that a short command
or a hook takes. Tests of exactly these (what a program loads, and from where) start `python -m lastword`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from warm_relay import ask, told

PATIENCE_SECONDS = 120.0
HERE = Path(__file__).parent


class WarmProgram:
    """`lastword WORDS`, already running. It is given bytes, and what it says goes into files; whoever talks with it
    gives descriptors in their place.

    With `loads` it is `python WORDS`, a file, `-c` and a text or `-m` and a module, and has these modules already.
    """

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        given: bytes | int = b"",
        loads: Sequence[str] | None = None,
        printed: int | None = None,
        complaint: int | None = None,
    ) -> None:
        self.returncode: int | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name, name) for name in ("given", "printed", "complaint")]
        if isinstance(given, bytes):
            self._files[0].write_bytes(given)
        fds = [os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND) for file in self._files]
        for fd, wanted in zip(fds, (given, printed, complaint), strict=True):
            if isinstance(wanted, int):
                os.dup2(wanted, fd)
        asked = {"words": list(words), "cwd": str(cwd), "env": dict(env)}
        if loads is not None:
            asked |= {"loads": list(loads), "path": sys.path}
        self._line = ask(_starter().address, asked, fds)
        for fd in fds:
            os.close(fd)
        self.pid = told(self._line)

    def wait(self) -> int:
        """Its exit code, or the number of the signal that ended it, below zero."""
        if self.returncode is None:
            self._line.settimeout(PATIENCE_SECONDS)
            self.returncode = told(self._line)
            self._line.close()
        return self.returncode

    def said(self) -> tuple[bytes, bytes]:
        """What it wrote to its two streams, once it is over."""
        self.wait()
        return self._files[1].read_bytes(), self._files[2].read_bytes()

    async def heard(self) -> tuple[bytes, bytes]:
        """The same, while the loop goes on."""
        return await asyncio.to_thread(self.said)

    def printed(self) -> str:
        """What it has written so far."""
        return self._files[1].read_text()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        """End it, if it still runs."""
        if self.returncode is None:
            with suppress(ProcessLookupError):  # It has ended by itself, and nobody has asked yet.
                self.send_signal(signal.SIGKILL)
            self.wait()
        self._folder.cleanup()


class WarmDialogue(WarmProgram):
    """One that somebody talks with, a line at a time."""

    def __init__(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], loads: Sequence[str] | None = None
    ) -> None:
        (given, near), (answers, printed) = os.pipe(), os.pipe()
        super().__init__(words, cwd, env, given, loads, printed)
        for far in (given, printed):
            os.close(far)
        self._near, self._answers = os.fdopen(near, "w"), os.fdopen(answers)

    def say(self, line: str) -> None:
        self._near.write(f"{line}\n")
        self._near.flush()

    def hear(self) -> str:
        return self._answers.readline()

    def hang_up(self) -> None:
        """Say nothing more, and hear nothing: whoever reads its lines to their end is over then."""
        self._near.close()
        self._answers.close()

    def close(self) -> None:
        super().close()
        self.hang_up()


def run_warm(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], given: str = "", loads: Sequence[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Start it, and wait for its end."""
    program = WarmProgram(words, cwd, env, given.encode(), loads)
    try:
        out, err = program.said()
    finally:
        program.close()
    return subprocess.CompletedProcess(words, program.wait(), out.decode(), err.decode())


def run_python(
    *words: str, cwd: Path, env: Mapping[str, str] = os.environ, loads: Sequence[str] = ("lastword.session",)
) -> subprocess.CompletedProcess[str]:
    """Start a program in Python, and wait for its end."""
    return run_warm(words, cwd, env, loads=loads)


def warm_command(*words: str) -> list[str]:
    """A command line that is `lastword WORDS`, for whoever starts programs themselves and talks with them.

    With `--loads=MODULES` before the words it is `python WORDS`, and has these modules already.
    """
    return [sys.executable, "-I", "-S", str(HERE / "warm_relay.py"), _starter().address, *words]


class _Starter:
    """The program that all others are forks of; it ends with the one that runs the tests."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.address = f"{self._folder.name}/warm"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(self.address)
            listening.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "warm_starter.py"), str(listening.fileno())],
                pass_fds=[listening.fileno()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=_plain(), cwd="/",
            )  # fmt: skip
        atexit.register(self._end)

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


@cache
def _starter() -> _Starter:
    return _Starter()


def _plain() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
