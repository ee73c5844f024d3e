"""What is known of the terminal itself: whether there is one, how large it is, what it can do."""

from __future__ import annotations

import os
import sys
from typing import IO

from lastword.tools.guard import is_below

# What a pipe or a terminal that does not know its size is taken for.
COLUMNS, ROWS = 80, 24


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
