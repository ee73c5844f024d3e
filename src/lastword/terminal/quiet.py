"""A terminal while nothing reads its keys: what is typed meanwhile answers nothing, and stays off the screen."""

from __future__ import annotations

import os
import select
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from lastword.terminal import arming

# More than this at once is a paste; the rest of it comes with the next read.
MAX_READ = 4096


def settle(stdin: TextIO) -> None:
    """Throw away what is typed, until nothing comes any more: before a question that is asked without an event loop."""
    forget_typed(stdin.fileno())
    with unlined(stdin):
        while stdin.isatty() and select.select([stdin], [], [], arming.ARMING_SECONDS)[0]:
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
