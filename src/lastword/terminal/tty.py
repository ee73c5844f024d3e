"""The terminal itself: whether a person is at it, how large it is, its modes, and lines broken to its width.

While nothing reads its keys, what is typed answers nothing and stays off the screen. What does not live here: reading
keys (keyboard.py), and everything that is written.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TextIO

from rich.cells import cell_len, chop_cells, set_cell_size

from lastword.tools.guard import is_below

# What a pipe or a terminal that does not know its size is taken for.
COLUMNS, ROWS = 80, 24
# Below this a frame would leave no room for the text.
MIN_WIDTH = 24
# No person reads a question, understands it and presses a key within this time; keys that arrive sooner were meant for
# something else. Each of them starts the time again, so that neither a typist nor a held key can answer.
ARMING_SECONDS = 0.5
# More than this at once is a paste; the rest of it comes with the next read.
MAX_READ = 4096
# The signal of a new size does not always come: a prompt takes it for itself, and a terminal that is not this program's
# own sends none. No hand makes a window narrow and wide again in less.
LOOK_SECONDS = 0.05

_WORDS = re.compile(r"\S+|\s+")


def size_of(screen: IO[str]) -> tuple[int, int]:
    """Columns and rows, now: a window may have been resized."""
    try:
        columns, rows = os.get_terminal_size(screen.fileno())
    except (OSError, ValueError):
        return COLUMNS, ROWS
    return columns or COLUMNS, rows or ROWS


def is_interactive() -> bool:
    """Whether there is a person to ask: keys come from a terminal, and what is drawn can be seen on one.

    The terminal of a command that a tool has started is no person's, whoever made it.
    """
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        return False
    return not is_below()


def is_dumb() -> bool:
    """Whether the terminal can only print."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def fitted(text: str, screen: TextIO) -> str:
    """Lines of ours as a screen shows them: broken between words. For a program they stay as they are."""
    if not screen.isatty():
        return text
    width = size_of(screen)[0] - 1
    return "\n".join(line for part in text.split("\n") for line in wrap(part, width))


def wrap(text: str, width: int) -> Iterator[str]:
    """Break a line between words, and words that are too long anywhere."""
    line, used = "", 0
    for piece in _WORDS.findall(text):
        length = cell_len(piece)
        if used + length > width and line.strip():
            yield line.rstrip()
            line, used = "", 0
            if piece.isspace():
                continue
        while length > width:
            first, *_ = chop_cells(piece, width)
            yield first
            piece = piece[len(first) :]
            length = cell_len(piece)
        line += piece
        used += length
    yield line.rstrip()


def fit(line: str, width: int) -> str:
    """A line that fills at most one row."""
    return line if cell_len(line) <= width else set_cell_size(line, max(1, width - 1)) + "…"


def settle(stdin: TextIO) -> None:
    """Throw away what is typed, until nothing comes any more: before a question that is asked without an event loop."""
    forget_typed(stdin.fileno())
    with unlined(stdin):
        while stdin.isatty() and select.select([stdin], [], [], ARMING_SECONDS)[0]:
            if not os.read(stdin.fileno(), MAX_READ):
                return  # the terminal is gone, and the question finds out


def forget_typed(fd: int) -> None:
    """Throw away what was typed and not read yet."""
    with suppress(termios.error):  # not a terminal: nothing is held
        termios.tcflush(fd, termios.TCIFLUSH)


@contextmanager
def no_echo(stdin: TextIO) -> Iterator[None]:
    """Keep what is typed meanwhile off the screen, where it would tear the progress lines. Ctrl+C still works."""
    with _changed(stdin, ~termios.ECHO):
        try:
            yield
        finally:
            if stdin.isatty():
                forget_typed(stdin.fileno())


@contextmanager
def unlined(stdin: TextIO) -> Iterator[None]:
    """See keys as they come, and keep them off the screen."""
    with _changed(stdin, ~(termios.ICANON | termios.ECHO)):
        yield


@contextmanager
def _changed(stdin: TextIO, kept: int) -> Iterator[None]:
    """Have the terminal do without some of its local modes for a while."""
    if not stdin.isatty():
        yield
        return
    fd = stdin.fileno()
    before = termios.tcgetattr(fd)
    changed = termios.tcgetattr(fd)
    changed[3] &= kept
    termios.tcsetattr(fd, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone, and has no modes any more
            termios.tcsetattr(fd, termios.TCSANOW, before)


class SmallestSize:
    """The smallest size of a window since it was last drawn upon: many terminals cut off what no longer fits."""

    def __init__(self, size: Callable[[], tuple[int, int]]) -> None:
        """`size` gives columns and rows, as they are now."""
        self._size = size
        self.columns, self.rows = size()

    def begin(self) -> None:
        """Something is drawn, for the size that the window has now."""
        self.columns, self.rows = self._size()

    def look(self) -> None:
        """See how large it is."""
        columns, rows = self._size()
        self.columns, self.rows = min(self.columns, columns), min(self.rows, rows)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look again and again, whatever else goes on meanwhile."""
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)
