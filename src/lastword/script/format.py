"""From a script to the same script, well laid out.

The tree is printed, and every comment of the text is put back: one at the end of a line stays there, one on a line of
its own stays above what follows it, and one in the middle of an expression moves above its statement. Single blank
lines between statements stay. Formatting what was formatted changes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

import msgspec

from lastword.script.lexer import KEYWORDS, tokens_and_comments
from lastword.script.nodes import Break, CallNode, Do, For, If, Let, Set, Statement, Stop
from lastword.script.parser import parse
from lastword.script.printer import laid_out, margin
from lastword.script.work import Work, drive

# Wide enough for a CALL with a few arguments, narrow enough to stand beside its plan.
WIDTH = 100

_LAST_NAME = re.compile(r"(?<![.\w])([A-Za-z_][A-Za-z0-9_]*)$")


def format_script(text: str) -> str:
    """The text of a script, laid out. Raises its error if it does not parse."""
    writer = _Writer()
    drive(writer.block(parse(text).body, 0))
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


class _Writer:
    def __init__(self) -> None:
        self.lines: list[_Line] = []

    def block(self, statements: tuple[Statement, ...], indent: int) -> Work:
        for statement in statements:
            if isinstance(statement, If):
                text = laid_out(statement.condition, indent, len(margin(indent)) + 3, WIDTH)
                self.add(statement.at, indent, "IF ", f"{text} THEN", opens=True)
                yield self.block(statement.then, indent + 1)
                for other in statement.others:
                    text = laid_out(other.condition, indent, len(margin(indent)) + 7, WIDTH)
                    self.add(other.at, indent, "ELSEIF ", f"{text} THEN", opens=True, closes=True)
                    yield self.block(other.then, indent + 1)
                if statement.otherwise is not None:
                    self.add(statement.else_at, indent, "ELSE", opens=True, closes=True)
                    yield self.block(statement.otherwise, indent + 1)
                self.add(statement.end_at, indent, "END", closes=True)
            elif isinstance(statement, For):
                start = f"FOR {statement.name} IN "
                text = laid_out(statement.items, indent, len(margin(indent)) + len(start), WIDTH)
                self.add(statement.at, indent, start, f"{text} DO", opens=True)
                yield self.block(statement.body, indent + 1)
                self.add(statement.end_at, indent, "END", closes=True)
            elif isinstance(statement, Break):
                self.add(statement.at, indent, "BREAK")
            else:
                self.simple(statement, indent)

    def simple(self, node: Let | Set | Do | Stop, indent: int) -> None:
        first, start = node.at, ""
        if isinstance(node, Stop):
            start = "STOP "
        elif not isinstance(node, Do):
            first, start = node.at - 1, f"{type(node).__name__.upper()} {node.name} = "
        text = laid_out(node.value, indent, len(margin(indent)) + len(start), WIDTH)
        ends = isinstance(node, Do) and isinstance(node.value, CallNode)
        if isinstance(node, Do) and text.startswith(("CALL ", "TRY CALL ")) and not ends:
            # Bare, the statement would end at the first }.
            text = f"({text})"
        self.add(first, indent, start, text, ends=ends)

    def add(
        self,
        first: int,
        indent: int,
        start: str,
        text: str = "",
        *,
        opens: bool = False,
        closes: bool = False,
        ends: bool = False,
    ) -> None:
        self.lines.append(_Line(first, indent, start, text, opens, closes, ends))


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
