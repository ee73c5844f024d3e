"""Walking a tree of any depth without the host's stack.

A piece of work is a generator. Where a recursive function would call itself, the generator yields the inner piece,
which is done before it goes on. Results travel in what the pieces share.

Statements have a walk of their own, since most of them hold no others and need no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from assent.script.nodes import For, If, Statement

Work = Generator["Work", None, None]
Block = tuple[Statement, ...]


def carry_out(work: Work) -> None:
    """Do a piece of work and all that it asks for."""
    waiting = [work]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)


def walk(body: Block, take: Callable[[Block, int], int], enter: Callable[[If | For], Iterator[Block]]) -> None:
    """Go through the statements of a script in the order of the text.

    `take` deals with the statements of a block from a number on and gives the number of the first IF or FOR, or of the
    end. `enter` deals with that one, and yields the blocks inside it where it wants them gone through.
    """
    waiting: list[tuple[Iterator[Block], Block, int]] = []
    block, number = body, 0
    while True:
        number = take(block, number)
        if number < len(block):
            statement = block[number]
            assert type(statement) is If or type(statement) is For
            waiting.append((enter(statement), block, number + 1))
        elif not waiting:
            return
        inner = next(waiting[-1][0], None)
        if inner is None:
            _, block, number = waiting.pop()
        else:
            block, number = inner, 0
