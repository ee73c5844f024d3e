"""Walking a tree of any depth without the host's stack.

A piece of work is a generator. Where a recursive function would call itself, the generator yields the inner piece,
which is done before it goes on. Results travel in what the pieces share.
"""

from __future__ import annotations

from collections.abc import Generator

Work = Generator["Work", None, None]


def carry_out(work: Work) -> None:
    """Do a piece of work and all that it asks for."""
    waiting = [work]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)
