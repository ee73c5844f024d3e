"""From the text of a script to its tree: the statements, with a stack of the blocks that are open.

Expressions are expression_parser.py's, and the words for what went wrong are in hints.py.
"""

from __future__ import annotations

import msgspec

from lastword.script.builtins import BUILTINS
from lastword.script.expression_parser import MAX_NESTING, MAX_TOKENS, ExpressionParser
from lastword.script.hints import CHAINED_ELSE, improve
from lastword.script.nodes import (
    MAX_CLOSURE_DEPTH,
    Break,
    Calc,
    CallNode,
    Do,
    ElseIf,
    Expression,
    For,
    Function,
    If,
    Let,
    Name,
    Script,
    Set,
    Statement,
    Stop,
    inside,
)
from lastword.script.tokens import END, KEYWORDS, NAME_START, LimitExceeded, ParseError, PlacedError, cut, find_token

# A model writes some kilobytes. A megabyte of text is a mistake or an attack, unless nearly all of it is data.
MAX_SOURCE = 1_000_000

# What any other token begins is an expression.
_FIRST_WORDS = frozenset(["LET", "SET", "IF", "FOR", "END", "ELSE", "ELSEIF", "BREAK", "STOP", END])

# The last tokens of a text that is still arriving may be prefixes of longer ones: `1.` of `1.5`, `TH` of THEN.
_UNFINISHED_TOKENS = 3
# No text of the language holds this character outside a string or comment, so the parser stops at it at the latest.
_STOPPER = "\n;"


def parse(source: str, *, name: str | None = None) -> Script:
    """Read a script. Raises the first error of the text, with its place."""
    if len(source) > MAX_SOURCE:
        # Not one token of it is read, so the place is the beginning.
        problem = LimitExceeded(f"the script is longer than {MAX_SOURCE} characters")
        raise problem.locate(source[:MAX_SOURCE], name, "parse")
    try:
        return _Parser(source, name).script()
    except PlacedError as error:
        raise improve(error.locate(source, name, "parse"), source.split("\n")) from None


def does_something(text: str) -> bool:
    """Whether an entire text is a script that does something. "Paris" parses too, and is a word."""
    try:
        return any(map(_does_something, parse(text).body))
    except PlacedError:
        return False


def _does_something(statement: Statement) -> bool:
    match statement:
        case Stop(value=Name()):
            return False  # "STOP talking" is a request, and no script.
        case Do() | Stop():
            return any(map(_acts, inside(statement.value)))
    return True


def _acts(node: Expression) -> bool:
    return node.name in BUILTINS if isinstance(node, Function) else isinstance(node, CallNode | Calc)


def can_go_on(beginning: str) -> bool:
    """Whether some continuation can make a script of a text that is still arriving."""
    try:
        _Parser(beginning + _STOPPER, None).script()
    except PlacedError as error:
        tokens = cut(beginning)
        if error.at < len(tokens) and tokens[error.at] == '"':
            # A quotation mark without its partner: the string may go on, unless its line has ended.
            return "\n" not in beginning[find_token(beginning, error.at)[0] :]
        return error.at >= len(tokens) - 1 - _UNFINISHED_TOKENS
    return True


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


class _Parser(ExpressionParser):
    __slots__ = ("name", "source")

    def __init__(self, source: str, name: str | None) -> None:
        super().__init__(source, MAX_NESTING, MAX_TOKENS)
        self.source = source
        self.name = name

    def script(self) -> Script:
        tokens = self.tokens
        body: list[Statement] = []
        blocks: list[OpenBlock] = []
        loops = 0
        while True:
            at = self.i
            token = tokens[at]
            if token not in _FIRST_WORDS:
                if blocks and token[0] in "eE" and token.upper() in CHAINED_ELSE:
                    raise self.unexpected(at, "a statement")
                # A CALL that is a statement ends at its }: what follows, on whatever line, is another.
                value = self.expression("a statement", ends=token == "CALL" or token == "TRY")
                body.append(Do(at, value, self.suspends))
            elif token == "LET" or token == "SET":
                at += 1
                name = tokens[at]
                if name in KEYWORDS or name[0] not in NAME_START:
                    raise self.unexpected(at, f"a variable name after {token}")
                if tokens[at + 1] != "=":
                    raise self.unexpected(at + 1, f"= after {token} {name}")
                self.i = at + 2
                value = self.expression("a value")
                node = Let if token == "LET" else Set
                body.append(node(at, name, value, self.suspends))
            elif token == "IF" or token == "FOR":
                blocks.append(self.open_block(token, body))
                loops += token == "FOR"
                body = []
            elif token == "END" and blocks:
                self.i = at + 1
                self.depth -= 1
                block = blocks.pop()
                loops -= block.kind == "FOR"
                statement = block.close(tuple(body), at)
                body = block.outer
                body.append(statement)
            elif token == "ELSE" and blocks and blocks[-1].kind == "IF" and not blocks[-1].else_at:
                blocks[-1].turn(tuple(body))
                blocks[-1].else_at = at
                self.i = at + 1
                body = []
            elif token == "ELSEIF" and blocks and blocks[-1].kind == "IF" and not blocks[-1].else_at:
                blocks[-1].turn(tuple(body))
                self.i = at + 1
                condition = self.expression("a condition")
                self.expect("THEN", "THEN after the condition of ELSEIF")
                blocks[-1].other = (at, condition, self.suspends)
                body = []
            elif token == "BREAK":
                if not loops:
                    raise ParseError("BREAK stands outside every FOR", at, hint="STOP value ends the whole script")
                self.i = at + 1
                body.append(Break(at))
            elif token == "STOP":
                self.i = at + 1
                value = self.expression("a value after STOP")
                body.append(Stop(at, value, self.suspends))
            elif token == END:
                if blocks:
                    raise _never_closed(tokens, blocks[-1])
                return Script(self.source, self.name, tuple(body), self.deepest > MAX_CLOSURE_DEPTH, self.sites)
            else:
                raise self.unexpected(at, "a statement")

    def open_block(self, keyword: str, outer: list[Statement]) -> OpenBlock:
        at = self.i
        self.i += 1
        name, name_at = "", self.i
        if keyword == "FOR":
            name = self.tokens[name_at]
            if name in KEYWORDS or name[0] not in NAME_START:
                raise self.unexpected(name_at, "a variable name after FOR")
            self.i += 1
            self.expect("IN", f"IN after FOR {name}")
        head = self.expression("a condition" if keyword == "IF" else "a list")
        if keyword == "IF":
            self.expect("THEN", "THEN after the condition of IF")
        else:
            self.expect("DO", "DO after the list of FOR")
        self.deeper(at)
        return OpenBlock(keyword, at, head, self.suspends, outer, name, name_at)


def _never_closed(tokens: list[str], block: OpenBlock) -> ParseError:
    """The error for an IF or FOR without an END."""
    hint = f"write END after the last statement of the {block.kind}"
    if block.else_at and tokens[block.else_at + 1] == "IF":
        hint = "ELSE IF begins a second IF, which has an END of its own; write ELSEIF to need one END only"
    return ParseError(f"this {block.kind} is never closed", block.at, hint=hint)
