"""What is known of the terminal itself: whether there is one, how large it is, what it can do."""

from __future__ import annotations

import os
import sys
from typing import IO

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
    """Whether there is a person to ask: keys come from a terminal, and what is drawn can be seen on one."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


def is_dumb() -> bool:
    """Whether the terminal can only print."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")
