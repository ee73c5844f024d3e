"""The tree of a script, how tightly its operators bind, and the ways through it.

`a + b - c` is one Chain and `a.b[0].c` is one Access, however long, so the height of a tree is bounded by the nesting
of its text. Nodes are frozen; `at` is the index of the token to blame: see tokens.py. Parentheses leave no node.

A tree of any depth is gone through without the host's stack. A piece of work is a generator: where a recursive function
would call itself, it yields the inner piece, which is done before it goes on. Results travel in what the pieces share.
Statements have a walk of their own, since most of them hold no others and need no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

import msgspec

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


class Literal(msgspec.Struct, frozen=True, gc=False):
    """A number, string, boolean or null."""

    at: int
    value: str | int | float | bool | None
    kind: str
    """string, number, boolean or null."""


class Name(msgspec.Struct, frozen=True, gc=False):
    """A variable that is read."""

    at: int
    name: str


class ListOf(msgspec.Struct, frozen=True, gc=False):
    """`[a, b]`."""

    at: int
    items: tuple[Expression, ...]


class ObjectOf(msgspec.Struct, frozen=True, gc=False):
    """`{key: a}`. The keys are distinct."""

    at: int
    keys: tuple[str, ...]
    key_ats: tuple[int, ...]
    values: tuple[Expression, ...]


class Unary(msgspec.Struct, frozen=True, gc=False):
    """`NOT a`, `-a`, `+a`."""

    at: int
    operator: str
    operand: Expression


class Chain(msgspec.Struct, frozen=True, gc=False):
    """Operands joined from left to right by operators of one level; `at` is where the first operand begins."""

    at: int
    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    operator_ats: tuple[int, ...]


class Member(msgspec.Struct, frozen=True, gc=False):
    """`.name`, a step of an Access."""

    at: int
    name: str


class Index(msgspec.Struct, frozen=True, gc=False):
    """`[a]`, a step of an Access; `at` is where the index begins."""

    at: int
    index: Expression


class Access(msgspec.Struct, frozen=True, gc=False):
    """A value and the way into it."""

    at: int
    target: Expression
    steps: tuple[Member | Index, ...]


class Function(msgspec.Struct, frozen=True, gc=False):
    """`NAME(a, b)`, a built-in function."""

    at: int
    name: str
    arguments: tuple[Expression, ...]


class CallNode(msgspec.Struct, frozen=True, gc=False):
    """`CALL tool { name: a }`; `at` is the tool's name and `site` the number of the CALL in the text."""

    at: int
    tool: str
    site: int
    keys: tuple[str, ...]
    key_ats: tuple[int, ...]
    values: tuple[Expression, ...]
    tries: bool = False
    """Whether TRY stands before it: what becomes of it is then a value."""


class Calc(msgspec.Struct, frozen=True, gc=False):
    """`CALC { formula: "…", vars: {…} }`. The places inside the formula are those of its own text."""

    at: int
    formula_at: int
    text: str
    formula: Expression
    variables: ObjectOf


Expression: TypeAlias = Literal | Name | ListOf | ObjectOf | Unary | Chain | Access | Function | CallNode | Calc


class Let(msgspec.Struct, frozen=True, gc=False):
    """`LET name = a`; `at` is the name. `suspends` says how many CALLs and NOWs are inside."""

    at: int
    name: str
    value: Expression
    suspends: int


class Set(msgspec.Struct, frozen=True, gc=False):
    """`SET name = a`; `at` is the name."""

    at: int
    name: str
    value: Expression
    suspends: int


class Do(msgspec.Struct, frozen=True, gc=False):
    """An expression as a statement."""

    at: int
    value: Expression
    suspends: int


class ElseIf(msgspec.Struct, frozen=True, gc=False):
    """`ELSEIF a THEN …`, a part of an If; `at` is ELSEIF."""

    at: int
    condition: Expression
    then: tuple[Statement, ...]
    suspends: int


class If(msgspec.Struct, frozen=True, gc=False):
    """`IF a THEN … ELSEIF b THEN … ELSE … END`; `at` is IF, and `otherwise` is None without an ELSE."""

    at: int
    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] | None
    suspends: int
    """Of the condition; the blocks say so for themselves."""
    else_at: int
    """The token ELSE, or END where there is none."""
    end_at: int
    others: tuple[ElseIf, ...] = ()
    """Beside each other, and not one inside the other: a chain of them is as flat as its text."""

    @property
    def parts(self) -> tuple[If | ElseIf, ...]:
        """What has a condition and a block: itself and its ELSEIFs."""
        return (self, *self.others)

    @property
    def blocks(self) -> tuple[tuple[Statement, ...], ...]:
        """What may run, in the order of the text."""
        return (self.then, *(other.then for other in self.others), self.otherwise or ())


class For(msgspec.Struct, frozen=True, gc=False):
    """`FOR name IN a DO … END`; `at` is FOR."""

    at: int
    name_at: int
    name: str
    items: Expression
    body: tuple[Statement, ...]
    suspends: int
    """Of the list; the body says so for itself."""
    end_at: int


class Break(msgspec.Struct, frozen=True, gc=False):
    """`BREAK`; the parser takes it in a FOR only."""

    at: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """`STOP a`; `at` is STOP."""

    at: int
    value: Expression
    suspends: int


Statement: TypeAlias = Let | Set | Do | If | For | Break | Stop


def comes_to_an_end(block: tuple[Statement, ...]) -> bool:
    """Whether nothing that follows a block is reached from it, as far as the block itself says so."""
    return any(type(statement) is Stop or type(statement) is Break for statement in block)


# Up to here closures call each other; what nests deeper runs step by step. Few scripts reach five.
MAX_CLOSURE_DEPTH = 12


class Script(msgspec.Struct, frozen=True):
    """A text that parses, and its tree."""

    source: str
    name: str | None
    body: tuple[Statement, ...]
    is_deep: bool
    """Whether it nests deeper than the host's stack should carry: brackets, unary operators and blocks."""
    sites: int
    """How many CALLs stand in the text."""


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one, in the order in which they are evaluated."""
    match node:
        case ListOf():
            return node.items
        case ObjectOf() | CallNode():
            return node.values
        case Unary():
            return (node.operand,)
        case Chain():
            return node.operands
        case Access():
            return (node.target, *(step.index for step in node.steps if isinstance(step, Index)))
        case Function():
            return node.arguments
        case Calc():
            return (node.variables,)
        case _:
            return ()


def inside(node: Expression) -> Iterator[Expression]:
    """An expression and everything inside it, in the order of the text, without recursion."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


MISSING = object()
"""In place of a value that only the run knows."""


def constant(node: Expression) -> Any:
    """The value of an expression made of literals alone, or MISSING. Children first, without recursion."""
    order = [node]
    for part in order:
        order.extend(children(part))
    values: dict[int, Any] = {}
    for part in reversed(order):
        inner = [values[id(child)] for child in children(part)]
        value: Any = MISSING
        if isinstance(part, Literal):
            value = part.value
        elif MISSING in inner:
            pass
        elif isinstance(part, ListOf):
            value = inner
        elif isinstance(part, ObjectOf):
            value = dict(zip(part.keys, inner, strict=True))
        elif isinstance(part, Unary) and part.operator == "-" and type(inner[0]) in (int, float):
            value = -inner[0]
        values[id(part)] = value
    return values[id(node)]


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
