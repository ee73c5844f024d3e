"""From a tree back to text: an expression in one line, and a whole script well laid out.

What is printed parses to the same tree. Parentheses stand where the tree needs them and nowhere else; an expression is
broken at its brackets where one line is too long.

A script is printed from its tree, and every comment of the text is put back: one at the end of a line stays there, one
on a line of its own stays above what follows it, and one in the middle of an expression moves above its statement.
Single blank lines between statements stay. Formatting what was formatted changes nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import msgspec

from lastword.script import nodes
from lastword.script.parser import parse
from lastword.script.tokens import KEYWORDS, is_name, tokens_and_comments

# Two spaces a level, as in the examples of the language.
INDENT = "  "
# Deeper text stays at this margin: five hundred levels would be mostly blanks.
MAX_INDENT = 30

_ATOM_LEVEL = nodes.UNARY_LEVEL + 1


def one_line(node: nodes.Expression) -> str:
    """An expression in one line."""
    writer = _Writer(None)
    nodes.drive(writer.write(node, 0))
    return "".join(writer.pieces)


def laid_out(node: nodes.Expression, indent: int, used: int, width: int) -> str:
    """An expression after `used` characters of a line, broken at its brackets where it would pass the width."""
    writer = _Writer(width)
    writer.column = used
    nodes.drive(writer.write(node, indent))
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

    def write(self, node: nodes.Expression, indent: int) -> nodes.Work:
        match node:
            case nodes.Literal():
                self.put(_literal(node.value))
            case nodes.Name():
                self.put(node.name)
            case nodes.ListOf():
                yield self.bracket(node, "[", "]", None, node.items, indent)
            case nodes.ObjectOf():
                yield self.bracket(node, "{", "}", node.keys, node.values, indent)
            case nodes.Function():
                yield self.bracket(node, f"{node.name}(", ")", None, node.arguments, indent)
            case nodes.CallNode():
                opening = f"{'TRY ' if node.tries else ''}CALL {node.tool} {{"
                yield self.bracket(node, opening, "}", node.keys, node.values, indent)
            case nodes.Unary():
                self.put("NOT " if node.operator == "NOT" else node.operator)
                yield self.operand(node.operand, nodes.UNARY_LEVEL, indent)
            case nodes.Chain():
                yield self.operand(node.operands[0], nodes.LEVELS[node.operators[0]] + 1, indent)
                for operator, operand in zip(node.operators, node.operands[1:], strict=True):
                    self.put(f" {operator} ")
                    yield self.operand(operand, nodes.LEVELS[operator] + 1, indent)
            case nodes.Access():
                yield self.operand(node.target, _ATOM_LEVEL, indent)
                for step in node.steps:
                    if isinstance(step, nodes.Index):
                        self.put("[")
                        yield self.write(step.index, indent)
                        self.put("]")
                    else:
                        self.put(f".{step.name}")
            case nodes.Calc():
                self.put(f"CALC {{ formula: {_literal(node.text)}, vars: ")
                yield self.write(node.variables, indent)
                self.put(" }")

    def operand(self, node: nodes.Expression, least: int, indent: int) -> nodes.Work:
        """A part that must bind at least this tightly, or stand in parentheses."""
        if _level(node) >= least:
            yield self.write(node, indent)
        else:
            self.put("(")
            yield self.write(node, indent)
            self.put(")")

    def bracket(
        self,
        node: nodes.Expression,
        opening: str,
        closing: str,
        keys: Sequence[str] | None,
        items: Sequence[nodes.Expression],
        indent: int,
    ) -> nodes.Work:
        self.put(opening)
        apart = items and not self.fits(node, opening)
        padded = items and not apart and isinstance(node, nodes.CallNode)
        if padded:
            self.put(" ")
        for number, item in enumerate(items):
            if apart:
                self.break_line(indent + 1)
            if keys is not None:
                # The arguments of a CALL are always names.
                bare = isinstance(node, nodes.CallNode) or is_plain_key(keys[number])
                self.put(f"{keys[number] if bare else _literal(keys[number])}: ")
            yield self.write(item, indent + 1 if apart else indent)
            if number < len(items) - 1:
                self.put("," if apart else ", ")
        if apart:
            self.break_line(indent)
        if padded:
            self.put(" ")
        self.put(closing)

    def fits(self, node: nodes.Expression, opening: str) -> bool:
        if self.width is None:
            return True
        writer = _Writer(None, self.width - self.column + len(opening))
        try:
            nodes.drive(writer.write(node, 0))
        except _TooLong:
            return False
        return True


def is_plain_key(key: str) -> bool:
    """Whether a key can stand without quotes; a keyword can, and reads better with them."""
    return key != "" and is_name(key) and key not in KEYWORDS and key.isascii() and key.replace("_", "a").isalnum()


def _level(node: nodes.Expression) -> int:
    if isinstance(node, nodes.Chain):
        return nodes.LEVELS[node.operators[0]]
    return nodes.UNARY_LEVEL if isinstance(node, nodes.Unary) else _ATOM_LEVEL


def _literal(value: str | int | float | bool | None) -> str:
    if type(value) is float:
        # The language has no exponents, so every digit is written.
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return json.dumps(value, ensure_ascii=False)


# Wide enough for a CALL with a few arguments, narrow enough to stand beside its plan.
WIDTH = 100

_LAST_NAME = re.compile(r"(?<![.\w])([A-Za-z_][A-Za-z0-9_]*)$")


def format_script(text: str) -> str:
    """The text of a script, laid out. Raises its error if it does not parse."""
    writer = _Layout()
    nodes.drive(writer.block(parse(text).body, 0))
    _keep_apart(writer.lines)
    return _with_comments(writer.lines, text)


class _Line(msgspec.Struct):
    """What is printed for the tokens from `first` to the next line's; several lines where a statement is long."""

    first: int
    indent: int
    start: str
    text: str = ""
    opens: bool = False
    """After it a block begins: IF, FOR, ELSEIF, ELSE."""
    closes: bool = False
    """Before it a block ends: ELSEIF, ELSE, END. Comments above it belong to that block."""
    ends: bool = False
    """Whether it is a CALL, which nothing that follows can be part of."""
    comment: str = ""
    above: list[tuple[str, bool]] = []
    """Comments above it, and whether a blank line stands before each."""
    apart: bool = False
    """Whether a blank line stands before it."""


class _Layout:
    def __init__(self) -> None:
        self.lines: list[_Line] = []

    def block(self, statements: tuple[nodes.Statement, ...], indent: int) -> nodes.Work:
        for statement in statements:
            if isinstance(statement, nodes.If):
                text = laid_out(statement.condition, indent, len(margin(indent)) + 3, WIDTH)
                self.lines.append(_Line(statement.at, indent, "IF ", f"{text} THEN", opens=True))
                yield self.block(statement.then, indent + 1)
                for other in statement.others:
                    text = laid_out(other.condition, indent, len(margin(indent)) + 7, WIDTH)
                    self.lines.append(_Line(other.at, indent, "ELSEIF ", f"{text} THEN", opens=True, closes=True))
                    yield self.block(other.then, indent + 1)
                if statement.otherwise is not None:
                    self.lines.append(_Line(statement.else_at, indent, "ELSE", opens=True, closes=True))
                    yield self.block(statement.otherwise, indent + 1)
                self.lines.append(_Line(statement.end_at, indent, "END", closes=True))
            elif isinstance(statement, nodes.For):
                start = f"FOR {statement.name} IN "
                text = laid_out(statement.items, indent, len(margin(indent)) + len(start), WIDTH)
                self.lines.append(_Line(statement.at, indent, start, f"{text} DO", opens=True))
                yield self.block(statement.body, indent + 1)
                self.lines.append(_Line(statement.end_at, indent, "END", closes=True))
            elif isinstance(statement, nodes.Break):
                self.lines.append(_Line(statement.at, indent, "BREAK"))
            else:
                self.simple(statement, indent)

    def simple(self, node: nodes.Let | nodes.Set | nodes.Do | nodes.Stop, indent: int) -> None:
        first, start = node.at, ""
        if isinstance(node, nodes.Stop):
            start = "STOP "
        elif not isinstance(node, nodes.Do):
            first, start = node.at - 1, f"{type(node).__name__.upper()} {node.name} = "
        text = laid_out(node.value, indent, len(margin(indent)) + len(start), WIDTH)
        ends = isinstance(node, nodes.Do) and isinstance(node.value, nodes.CallNode)
        if isinstance(node, nodes.Do) and text.startswith(("CALL ", "TRY CALL ")) and not ends:
            # Bare, the statement would end at the first }.
            text = f"({text})"
        self.lines.append(_Line(first, indent, start, text, ends=ends))


def _keep_apart(lines: list[_Line]) -> None:
    """Keep two statements from reading as one, where only parentheses that the tree does not show kept them apart.

    After an expression, a bracket would be an index and a sign an operator; after a name, a parenthesis would make it
    a function.
    """
    for line, following in pairwise(lines):
        if line.text and not line.opens and not line.ends and following.start == "":
            if following.text.startswith(("[", "-", "+")):
                following.text = f"({following.text})"
            name = _LAST_NAME.search(line.text)
            if following.text.startswith("(") and name is not None and name[1] not in KEYWORDS:
                line.text = f"({line.text})"


def _with_comments(lines: list[_Line], source: str) -> str:
    pieces = list(tokens_and_comments(source))
    tokens = sum(not is_comment for _, _, is_comment in pieces)
    firsts = [line.first for line in lines]
    # A last line without text takes the comments after the last token.
    lines = [*lines, _Line(tokens, 0, "")]
    firsts.append(tokens)
    token = end = 0
    for offset, text, is_comment in pieces:
        gap = source[end:offset]
        end = offset + len(text)
        # The line that the next token belongs to.
        line = lines[bisect_right(firsts, token) - 1]
        if not is_comment:
            if line.first == token:
                line.apart = gap.count("\n") > 1
            token += 1
        elif "\n" not in gap and token > 0 and line.first == token:
            lines[bisect_right(firsts, token - 1) - 1].comment = text.rstrip()
        else:
            line.above.append((text.rstrip(), gap.count("\n") > 1))
    return _joined(lines)


def _joined(lines: list[_Line]) -> str:
    printed: list[str] = []
    # No blank line at the top, nor directly inside a block.
    may_break = False
    for line in lines:
        body = margin(line.indent + line.closes)
        for comment, apart in line.above:
            if apart and may_break:
                printed.append("")
            printed.append(body + comment)
            may_break = True
        if not (line.start or line.text):
            break
        if line.apart and may_break and not line.closes:
            printed.append("")
        text = margin(line.indent) + line.start + line.text
        printed.append(f"{text}  {line.comment}" if line.comment else text)
        may_break = not line.opens
    return "".join(f"{line}\n" for line in printed)
