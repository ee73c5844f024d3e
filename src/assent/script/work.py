"""Walking a tree of any depth without the host's stack.

A piece of work is a generator. Where a recursive function would call itself, the generator yields the inner piece,
which is done before it goes on. Results travel in what the pieces share.

Statements have a walk of their own, since most of them hold no others and need no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from assent.script.nodes import Statement

Work = Generator["Work", None, None]
Block = tuple[Statement, ...]
Take = Callable[[Iterator[tuple[int, Statement]], Block], Statement | None]
Enter = Callable[[Statement], Iterator[Block]]


def carry_out(work: Work) -> None:
    """Do a piece of work and all that it asks for."""
    waiting = [work]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)


def walk(body: Block, take: Take, enter: Enter, *, deep: bool) -> None:
    """Go through the statements of a script in the order of the text.

    `take` deals with the numbered statements of a block up to an IF or FOR, which it gives back, or to the end. `enter`
    deals with that one, and yields the blocks inside it where it wants them gone through. A script that is not deep can
    have the host's stack, which is quicker.
    """
    if deep:
        carry_out(_walk_without_recursion(body, take, enter))
    else:
        _walk(body, take, enter)


def _walk(block: Block, take: Take, enter: Enter) -> None:
    statements = enumerate(block)
    while (statement := take(statements, block)) is not None:
        for inner in enter(statement):
            _walk(inner, take, enter)


def _walk_without_recursion(block: Block, take: Take, enter: Enter) -> Work:
    statements = enumerate(block)
    while (statement := take(statements, block)) is not None:
        for inner in enter(statement):
            yield _walk_without_recursion(inner, take, enter)
