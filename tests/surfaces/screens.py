"""A real terminal for tests: a pseudo-terminal, with an emulator on its near end that knows what a person would see.

`Terminal` lives in the test's own process, with the approver on its far end. `Program` is a terminal in which a command
runs. Both wait for what is on the screen, never for time to pass.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect
import pyte

from warm import run_warm, warm_command

# A machine with two busy cores needs seconds to start Python; a screen that is not right by then will never be.
PATIENCE_SECONDS = 60.0
# The last line of a chat that waits for its person, drawn and plain.
PROMPT = re.compile(r"(asks|AUTO-APPROVES) ▸$|^You \(.*\):$")
# Longer than terminal/keyboard.py takes for the time of a paste.
FINGERS_SECONDS = 0.3


class Emulator:
    """What a person would see, and every byte that made it."""

    def __init__(self, columns: int, lines: int) -> None:
        self.raw = b""
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)

    def feed(self, data: bytes) -> None:
        self.raw += data
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """The lines that are not empty. `screen.display` has them too, from a look at every place of every line."""
        rows = [self.screen.buffer[number] for number in sorted(self.screen.buffer) if number < self.screen.lines]
        lines = ("".join([row[column].data for column in range(max(row) + 1)]) for row in rows if row)
        return [line.rstrip() for line in lines if line.strip()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Terminal(Emulator):
    """A terminal in this process. `stdin` and `screen` are its far end; `press` and `until` are the person."""

    def __init__(self, columns: int = 100, lines: int = 60) -> None:
        super().__init__(columns, lines)
        self._near, far = os.openpty()
        self._far = far
        self.resize(columns, lines)
        self.stdin = os.fdopen(far, "r", encoding="utf-8")
        self.screen_file = os.fdopen(os.dup(far), "w", encoding="utf-8")
        self._changed = asyncio.Event()
        self._never = asyncio.Event()

    @contextmanager
    def attached(self) -> Iterator[Terminal]:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._near, self._read)
        try:
            yield self
        finally:
            self.hang_up()
            self.stdin.close()
            self.screen_file.close()

    def hang_up(self) -> None:
        """Close the window."""
        if self._near >= 0:
            asyncio.get_running_loop().remove_reader(self._near)
            os.close(self._near)
            self._near = -1

    def resize(self, columns: int, lines: int | None = None) -> None:
        """Make the window another size. It cuts off what no longer fits, as many do."""
        self.screen.resize(lines or self.screen.lines, columns)
        size = struct.pack("HHHH", self.screen.lines, columns, 0, 0)
        fcntl.ioctl(self._far, termios.TIOCSWINSZ, size)

    def press(self, keys: str) -> None:
        os.write(self._near, keys.encode())

    async def press_until(self, key: str, words: str, times: int = 1) -> None:
        """Press a key until it shows: one that comes too soon after another counts for nothing."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.text.count(words) < times:
                self.press(key)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._never.wait(), 0.9)

    async def until(self, words: str, times: int = 1) -> None:
        """Wait until the words are on the screen."""
        await self._until(lambda: self.text.count(words) >= times, repr(words))

    async def press_at(self, words: str, keys: str, times: int = 1, *, then: str = "") -> None:
        """Press keys once the words are on the screen, and wait for what shows then."""
        await self.until(words, times)
        await self.press_for(keys, then)

    async def press_for(self, keys: str, words: str, times: int = 1) -> None:
        """Press keys, and wait until the words are on the screen."""
        self.press(keys)
        await self.until(words, times)

    async def until_menu(self, times: int = 1) -> None:
        """Wait until a card takes keys, for the so-manieth time."""
        await self._until(
            lambda: self.text.count("[Esc] close") >= times and self.lines[-1].startswith("╰▸"), f"{times} menus"
        )

    async def until_listening(self, times: int = 1) -> None:
        """Wait until a card takes keys again, after some that answered nothing, for the so-manieth time."""
        await self.until_sent(b"Listening again", times)

    async def until_sent(self, data: bytes, times: int) -> None:
        """Wait until these bytes have come so many times, whether or not they are still on the screen."""
        await self._until(lambda: self.raw.count(data) >= times, repr(data))

    async def _until(self, is_there: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not is_there():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what} did not appear. On the screen:\n{self.text}") from None

    def _read(self) -> None:
        self.feed(os.read(self._near, 65536))
        self._changed.set()


class Program(Emulator):
    """A command in a terminal of its own."""

    def __init__(self, *command: str, cwd: Path, columns: int = 100, lines: int = 60, **environment: str) -> None:
        super().__init__(columns, lines)
        if command[:3] == tuple(lastword_command()):
            command = tuple(warm_command(*command[3:]))
        self._child = pexpect.spawn(
            command[0], list(command[1:]), cwd=str(cwd), env=clean_environment(cwd, **environment),
            dimensions=(lines, columns), timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    def press(self, keys: str) -> None:
        self._child.send(keys)

    def say(self, words: str, *expected: str) -> None:
        """Write a line to the assistant, once its prompt is there: what is typed while a turn runs is thrown away.

        Wait then until each of what is expected is on the screen.
        """
        self._until_prompt()
        self.press(f"{words}\r")
        for each in expected:
            self.until(each)

    def leave(self) -> int:
        """Press Ctrl+D at the prompt, and wait for the end; gives the exit code."""
        self._until_prompt()
        self.press("\x04")
        return self.finish()

    def _until_prompt(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (self.lines and PROMPT.search(self.lines[-1])):
            if not self._read(deadline):
                raise AssertionError(f"no prompt came. On the screen:\n{self.text}")

    def type_by_hand(self, word: str, after: str) -> None:
        """A word and Enter, at the speed of fingers: what is there at once is a paste, and is not taken."""
        self.until(after.rstrip())
        for length in range(1, len(word) + 1):
            self.press(word[length - 1])
            self.until(after + word[:length])
            if length == 1:
                time.sleep(FINGERS_SECONDS)
        self.press("\r")

    def until(self, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.text.count(words) < times:
            if not self._read(deadline):
                raise AssertionError(f"{words!r} did not appear. On the screen:\n{self.text}")

    def press_at(self, words: str, keys: str, times: int = 1, *, then: str = "") -> None:
        """Press keys once the words are on the screen, and wait for what shows then."""
        self.until(words, times)
        self.press_for(keys, then)

    def press_for(self, keys: str, words: str, times: int = 1) -> None:
        """Press keys, and wait until the words are on the screen."""
        self.press(keys)
        self.until(words, times)

    def until_changing(self, pattern: str, times: int = 3) -> None:
        """Wait until so many different matches were on the screen, one after the other; which, nobody can know."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        seen: set[str] = set()
        while len(seen) < times:
            if not self._read(deadline):
                raise AssertionError(f"{pattern!r} was only seen as {seen}. On the screen:\n{self.text}")
            seen.update(re.findall(pattern, self.text))

    def finish(self) -> int:
        """Wait for the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read(deadline):
            pass
        self._child.close()
        assert self._child.exitstatus is not None, f"ended by signal {self._child.signalstatus}:\n{self.text}"
        return int(self._child.exitstatus)

    def close(self) -> None:
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()  # Else it is given a tenth of a second, which is little on a busy machine.
        self._child.close(force=True)

    def _read(self, deadline: float) -> bool:
        try:
            self.feed(self._child.read_nonblocking(65536, timeout=max(0.0, deadline - time.monotonic())))
        except (pexpect.EOF, pexpect.TIMEOUT):
            return False
        return True


def lastword_command() -> list[str]:
    """`lastword`, from the environment that runs the tests."""
    return [sys.executable, "-m", "lastword"]


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing of this machine's user shows."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "VIRTUAL_ENV") if key in os.environ}
    return kept | {
        "HOME": str(home), "XDG_DATA_HOME": str(home / ".data"), "TERM": "xterm-256color",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8",
    } | more  # fmt: skip


def piped(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run lastword without a terminal."""
    return run_warm(arguments, cwd, clean_environment(cwd, **environment))


def started(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same from the start of the interpreter on: what /proc says of its environment is true."""
    return subprocess.run(
        [*lastword_command(), *arguments],
        cwd=cwd,
        env=clean_environment(cwd, **environment),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
