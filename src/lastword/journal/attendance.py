"""Whether somebody could answer: a program that shows the questions of all others lives on the same memory.

Such a program takes one of a few seats and loses it by dying. Who would rather refuse than let a question wait for
nobody looks here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lastword.store import Store

# Nobody has more pages open on one memory. Whoever comes later is not counted, and the others are.
SEATS = 8


@contextmanager
def attending(store: Store) -> Iterator[None]:
    """Show the questions of others for as long as this lasts."""
    taken = (store.hold(_seat(number)) for number in range(SEATS))
    release = next((release for release in taken if release is not None), None)
    try:
        yield
    finally:
        if release is not None:
            release()


def is_attended(store: Store) -> bool:
    """Whether any program shows the questions of others now."""
    return any(store.is_held(_seat(number)) for number in range(SEATS))


def _seat(number: int) -> str:
    return f"queue:{number}"
