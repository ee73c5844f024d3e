"""From an expression back to text: in one line, or over several where one is too long.

What is printed parses to the same tree. Parentheses stand where the tree needs them and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

from lastword.script.lexer import KEYWORDS, is_name
from lastword.script.nesting import LEVELS, UNARY_LEVEL
from lastword.script.nodes import (
    Access,
    Calc,
    CallNode,
    Chain,
    Expression,
    Function,
    Index,
    ListOf,
    Literal,
    Name,
    ObjectOf,
    Unary,
)
from lastword.script.work import Work, drive

# Two spaces a level, as in the examples of the language.
INDENT = "  "
# Deeper text stays at this margin: five hundred levels would be mostly blanks.
MAX_INDENT = 30

_ATOM_LEVEL = UNARY_LEVEL + 1


def one_line(node: Expression) -> str:
    """An expression in one line."""
    writer = _Writer(None)
    drive(writer.write(node, 0))
    return "".join(writer.pieces)


def laid_out(node: Expression, indent: int, used: int, width: int) -> str:
    """An expression after `used` characters of a line, broken at its brackets where it would pass the width."""
    writer = _Writer(width)
    writer.column = used
    drive(writer.write(node, indent))
    return "".join(writer.pieces)


def margin(indent: int) -> str:
    """The blanks at the beginning of a line."""
    return INDENT * min(indent, MAX_INDENT)


class _TooLong(Exception):
    """One line is not enough; said as soon as it shows, so that asking costs no more than a line."""


class _Writer:
    def __init__(self, width: int | None, longest: int | None = None) -> None:
        self.width = width
        self.longest = longest
        self.column = 0
        self.pieces: list[str] = []

    def put(self, text: str) -> None:
        self.pieces.append(text)
        self.column += len(text)
        if self.longest is not None and self.column > self.longest:
            raise _TooLong

    def break_line(self, indent: int) -> None:
        self.pieces.append("\n" + margin(indent))
        self.column = len(margin(indent))

    def write(self, node: Expression, indent: int) -> Work:
        match node:
            case Literal():
                self.put(_literal(node.value))
            case Name():
                self.put(node.name)
            case ListOf():
                yield self.bracket(node, "[", "]", None, node.items, indent)
            case ObjectOf():
                yield self.bracket(node, "{", "}", node.keys, node.values, indent)
            case Function():
                yield self.bracket(node, f"{node.name}(", ")", None, node.arguments, indent)
            case CallNode():
                opening = f"{'TRY ' if node.tries else ''}CALL {node.tool} {{"
                yield self.bracket(node, opening, "}", node.keys, node.values, indent)
            case Unary():
                self.put("NOT " if node.operator == "NOT" else node.operator)
                yield self.operand(node.operand, UNARY_LEVEL, indent)
            case Chain():
                yield self.operand(node.operands[0], LEVELS[node.operators[0]] + 1, indent)
                for operator, operand in zip(node.operators, node.operands[1:], strict=True):
                    self.put(f" {operator} ")
                    yield self.operand(operand, LEVELS[operator] + 1, indent)
            case Access():
                yield self.operand(node.target, _ATOM_LEVEL, indent)
                for step in node.steps:
                    if isinstance(step, Index):
                        self.put("[")
                        yield self.write(step.index, indent)
                        self.put("]")
                    else:
                        self.put(f".{step.name}")
            case Calc():
                self.put(f"CALC {{ formula: {_literal(node.text)}, vars: ")
                yield self.write(node.variables, indent)
                self.put(" }")

    def operand(self, node: Expression, least: int, indent: int) -> Work:
        """A part that must bind at least this tightly, or stand in parentheses."""
        if _level(node) >= least:
            yield self.write(node, indent)
        else:
            self.put("(")
            yield self.write(node, indent)
            self.put(")")

    def bracket(
        self,
        node: Expression,
        opening: str,
        closing: str,
        keys: Sequence[str] | None,
        items: Sequence[Expression],
        indent: int,
    ) -> Work:
        self.put(opening)
        apart = items and not self.fits(node, opening)
        padded = items and not apart and isinstance(node, CallNode)
        if padded:
            self.put(" ")
        for number, item in enumerate(items):
            if apart:
                self.break_line(indent + 1)
            if keys is not None:
                # The arguments of a CALL are always names.
                bare = isinstance(node, CallNode) or is_plain_key(keys[number])
                self.put(f"{keys[number] if bare else _literal(keys[number])}: ")
            yield self.write(item, indent + 1 if apart else indent)
            if number < len(items) - 1:
                self.put("," if apart else ", ")
        if apart:
            self.break_line(indent)
        if padded:
            self.put(" ")
        self.put(closing)

    def fits(self, node: Expression, opening: str) -> bool:
        if self.width is None:
            return True
        writer = _Writer(None, self.width - self.column + len(opening))
        try:
            drive(writer.write(node, 0))
        except _TooLong:
            return False
        return True


def is_plain_key(key: str) -> bool:
    """Whether a key can stand without quotes; a keyword can, and reads better with them."""
    return key != "" and is_name(key) and key not in KEYWORDS and key.isascii() and key.replace("_", "a").isalnum()


def _level(node: Expression) -> int:
    if isinstance(node, Chain):
        return LEVELS[node.operators[0]]
    return UNARY_LEVEL if isinstance(node, Unary) else _ATOM_LEVEL


def _literal(value: str | int | float | bool | None) -> str:
    if type(value) is float:
        # The language has no exponents, so every digit is written.
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return json.dumps(value, ensure_ascii=False)
