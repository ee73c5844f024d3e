"""Walking a tree of any depth without the host's stack.

A piece of work is a generator. Where a recursive function would call itself, the generator yields the inner piece,
which is done before it goes on. Results travel in what the pieces share.

Statements have a walk of their own, since most of them hold no others and need no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from lastword.script.nodes import Statement

Work = Generator["Work", None, None]
Block = tuple[Statement, ...]
Take = Callable[[Iterator[Statement], Block], Iterator[Block] | None]


def drive(work: Work) -> None:
    """Do a piece of work and all that it asks for."""
    waiting = [work]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)


def walk(body: Block, take: Take) -> None:
    """Go through the statements of a script in the order of the text.

    `take` deals with the statements of a block up to the end, or to an IF or FOR. What it gives back there deals with
    that one, and yields the blocks inside it where it wants them gone through.
    """
    block, statements = body, iter(body)
    around: list[tuple[Block, Iterator[Statement], Iterator[Block]]] = []
    while True:
        blocks = take(statements, block)
        if blocks is None:
            if not around:
                return
            block, statements, blocks = around.pop()
        inner = next(blocks, None)
        if inner is not None:
            around.append((block, statements, blocks))
            block, statements = inner, iter(inner)
