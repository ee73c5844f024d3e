"""Who may not write now: code that is watched because it may only look, such as a tool's while its card is drawn.

The guard that watches (tools/guard.py) stands above this room and puts itself into the variable below. So a store
refuses whoever is watched, by whichever way they came to hold it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

WRITE = "write into the journal"


class Refusing(Protocol):
    """Whoever watches, as far as writing is concerned."""

    def refuse(self, what: str) -> Exception: ...


watching: ContextVar[Refusing | None] = ContextVar("lastword_guard", default=None)
"""Who watches this task or thread; None when it may do what it likes."""


def refuse_if_watched(what: str, name: str = "") -> None:
    """For effects of our own: refuse them while somebody watches this task or thread."""
    guard = watching.get()
    if guard is not None:
        raise guard.refuse(what + name)
