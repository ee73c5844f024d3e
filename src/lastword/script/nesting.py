"""What is open while a script is read: signs and chains that wait for an operand, brackets, and blocks.

How tightly the operators bind is here too, since that decides what waits for what.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lastword.script.nodes import Chain, ElseIf, Expression, For, If, Index, Member, Statement, Unary

# A script promises that 500 levels work. Some room above it, and equal to the depth of the values it can build.
MAX_NESTING = 600

# What binds tighter has the higher level. Whatever is no operator ends every chain; unary operators bind tightest but
# for the way into a value.
UNARY_LEVEL = 7
ACCESS_LEVEL = 8
LEVELS = {
    "OR": 1,
    "AND": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    ".": ACCESS_LEVEL,
    "[": ACCESS_LEVEL,
}


class Sign(msgspec.Struct, gc=False):
    """A unary operator that waits for its operand."""

    at: int
    operator: str
    outer: Sign | Joined | None
    """What waits for this one."""
    level: int = UNARY_LEVEL

    def fold(self, operand: Expression) -> Expression:
        return Unary(self.at, self.operator, operand)


class Joined(msgspec.Struct, gc=False):
    """Operands and operators of one level, waiting for the last operand."""

    links: list[Any]
    """By threes: an operand, the operator behind it, and the operator's token."""
    level: int
    outer: Sign | Joined | None
    """What waits for this one."""

    def fold(self, operand: Expression) -> Expression:
        links = self.links
        if len(links) == 3:
            first, operator, at = links
            return Chain(first.at, (first, operand), (operator,), (at,))
        return Chain(links[0].at, (*links[::3], operand), tuple(links[1::3]), tuple(links[2::3]))


class Bracket(msgspec.Struct, gc=False):
    """A bracket that is open, with what is inside it so far."""

    kind: str
    """function, call, calc, index, or the bracket itself."""
    closing: str
    at: int
    around: Bracket | None
    """The bracket around it."""
    waiting: Sign | Joined | None
    """The operator before it, which waits for it."""
    items: list[Expression] | None
    """None where there is one item, and no comma after it."""
    keys: dict[str, int] | None = None
    """Keys, in order, with the tokens they stand at; None where the items have no keys."""
    site: int = 0
    """For a CALL, its number in the text."""
    way: tuple[Expression, list[Member | Index]] | None = None
    """For an index, what it leads into and the steps so far."""
    tries: bool = False
    """For a CALL, whether TRY stands before it."""


class OpenBlock(msgspec.Struct, gc=False):
    """An IF or FOR whose END has not come yet."""

    kind: str
    at: int
    head: Expression
    suspends: int
    outer: list[Statement]
    name: str
    name_at: int
    then: tuple[Statement, ...] | None = None
    else_at: int = 0
    """The token ELSE, once it has come."""
    other: tuple[int, Expression, int] | None = None
    """The ELSEIF whose block is being read: its token, its condition, and how often that waits."""
    others: list[ElseIf] = []

    def turn(self, body: tuple[Statement, ...]) -> None:
        """The block after THEN is over, and another part of the IF begins, or its END has come."""
        if self.other is None:
            self.then = body
        else:
            at, condition, suspends = self.other
            self.others.append(ElseIf(at, condition, body, suspends))

    def close(self, body: tuple[Statement, ...], end: int) -> If | For:
        """The statement that it was, once its END has come."""
        at, head, suspends = self.at, self.head, self.suspends
        if self.kind == "FOR":
            return For(at, self.name_at, self.name, head, body, suspends, end)
        if self.then is None:
            return If(at, head, body, None, suspends, end, end)
        if self.else_at:
            return If(at, head, self.then, body, suspends, self.else_at, end, tuple(self.others))
        self.turn(body)
        return If(at, head, self.then, None, suspends, end, end, tuple(self.others))
