"""From tokens to the tree of one expression, without recursion.

An expression keeps a stack of what waits for the operand being read: unary operators, chains of binary operators, and
brackets. When an operand is complete, everything on the stack that binds tighter than the next token is folded into it.
No text, however deep, can reach the host's stack: nesting is counted, and stops at a named limit.
"""

from __future__ import annotations

import math
from typing import Any, final

import msgspec

from lastword.script.hints import unexpected
from lastword.script.nodes import (
    ACCESS_LEVEL,
    LEVELS,
    UNARY_LEVEL,
    Access,
    Calc,
    CallNode,
    Chain,
    Expression,
    Function,
    Index,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Unary,
    inside,
)
from lastword.script.tokens import (
    CUT_SHORT,
    DIGITS,
    END,
    KEYWORDS,
    NAME_START,
    DuplicateKey,
    LexError,
    LimitExceeded,
    NumberRange,
    ParseError,
    PlacedError,
    cut,
    is_string,
    read_number,
    read_string,
)

# A script promises that 500 levels work. Some room above it, and equal to the depth of the values it can build.
MAX_NESTING = 600
# A formula is one line of arithmetic; it is evaluated by recursion, so its depth stays far below the host's.
MAX_FORMULA_NESTING = 30
# Words, signs and comments in a text, those of its formulas included. Each costs a few microseconds and some hundred
# bytes until it runs, so what is read can hold up nobody for long.
MAX_TOKENS = 200_000

# What most literals but strings are.
_SMALL_NUMBERS = {str(number): number for number in range(101)}
_WORDS = {"true": True, "false": False, "null": None}
_SIGNS = frozenset(["-", "+", "NOT"])
_STEPS = frozenset([".", "["])
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_VALUES = frozenset([*_WORDS, "NOT"])
# What brackets begin with, and the words before them.
_OPENING = NAME_START | set(_CLOSING)


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

    first: Expression
    operator: str
    at: int
    level: int
    outer: Sign | Joined | None
    """What waits for this one."""
    more: list[Any] | None = None
    """Behind the first operator, by threes: an operand, the operator behind it, and the operator's token."""

    def go_on(self, operand: Expression, operator: str, at: int) -> None:
        """Another operator of this level follows."""
        if self.more is None:
            self.more = []
        self.more += (operand, operator, at)

    def fold(self, operand: Expression) -> Expression:
        first, more = self.first, self.more
        if more is None:
            return Chain(first.at, (first, operand), (self.operator,), (self.at,))
        operators, ats = (self.operator, *more[1::3]), (self.at, *more[2::3])
        return Chain(first.at, (first, *more[::3], operand), operators, ats)


@final
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


class ExpressionParser:
    """Reads the expressions of one text, one after the other."""

    __slots__ = ("deepest", "depth", "i", "max_nesting", "room", "sites", "suspends", "tokens")

    def __init__(self, source: str, max_nesting: int, room: int) -> None:
        self.tokens = cut(source, room)
        self.room = max(0, room - len(self.tokens))
        """How many tokens its formulas may have."""
        self.i = 0
        self.max_nesting = max_nesting
        self.depth = 0
        self.deepest = 0
        self.sites = 0
        self.suspends = 0
        """CALLs and NOWs in the expression read last."""

    def expect(self, token: str, wanted: str) -> None:
        if self.tokens[self.i] != token:
            raise self.unexpected(self.i, wanted)
        self.i += 1

    def deeper(self, at: int) -> None:
        """Count one more level, which begins here."""
        self.depth += 1
        if self.depth > self.deepest:
            self.note_depth(at)

    def note_depth(self, at: int) -> None:
        """Remember that nothing before was so deep."""
        self.deepest = self.depth
        if self.depth > self.max_nesting:
            words = f"nested deeper than {self.max_nesting} levels"
            raise LimitExceeded(words, at, hint="give the inner parts names with LET")

    def unexpected(self, at: int, wanted: str) -> PlacedError:
        if self.tokens[at] == CUT_SHORT:
            words = f"the script has more than {MAX_TOKENS} words, signs and comments"
            return LimitExceeded(words, at, hint="give it long lists as variables")
        return unexpected(self.tokens, at, wanted)

    def expression(self, wanted: str, *, ends: bool = False) -> Expression:
        """Read one expression from here on, up to the end of its first bracket where that `ends` it; `wanted` is what
        the text owes us at its beginning, for the error. Nearly all the time of reading goes into this loop."""
        tokens = self.tokens
        i = start = self.i
        self.suspends = 0
        # The innermost bracket that is open, and the last operator inside it, which waits for an operand.
        around: Bracket | None = None
        waiting: Sign | Joined | None = None
        # What an index leads into that has just been read, and its steps. The keys of the bracket, where one is due.
        way: tuple[Expression, list[Member | Index]] | None = None
        keys: dict[str, int] | None = None
        while True:
            if keys is not None:
                key = tokens[i]
                if key[0] not in NAME_START or key in keys or tokens[i + 1] != ":":
                    key = self.unusual_key(i, around, keys)
                keys[key] = i
                i, keys = i + 2, None
            at, token, i = i, tokens[i], i + 1
            first = token[0]
            if first in NAME_START and token not in KEYWORDS and tokens[i] != "(":
                operand: Expression = Name(at, token)
            elif first in _OPENING and token not in _VALUES:
                opened = self.open(at, around, waiting, wanted if at == start else "")
                i = self.i
                if type(opened) is Bracket:
                    around, waiting, keys = opened, None, opened.keys
                    continue
                operand = opened
            elif token in _SMALL_NUMBERS:
                operand = Literal(at, _SMALL_NUMBERS[token], "number")
            elif first == '"' and len(token) > 1 and "\\" not in token and token.isprintable():
                operand = Literal(at, token[1:-1], "string")
            elif token in _SIGNS:
                self.deeper(at)
                waiting = Sign(at, token, waiting)
                continue
            else:
                operand = self.literal(at, token, wanted if at == start else "")
            # What stands after an operand says what becomes of it.
            while True:
                token = tokens[i]
                level = LEVELS[token] if token in LEVELS and not (ends and around is None) else 0
                if level == ACCESS_LEVEL or way is not None:
                    into = self.go_into(i, operand, way, around, waiting)
                    i, way = self.i, None
                    if type(into) is Bracket:
                        around, waiting = into, None
                        break
                    operand = into
                    continue
                while waiting is not None and waiting.level > level:
                    operand = waiting.fold(operand)
                    if waiting.level == UNARY_LEVEL:
                        self.depth -= 1
                    waiting = waiting.outer
                if level:
                    if type(waiting) is Joined and waiting.level == level:
                        waiting.go_on(operand, token, i)
                    else:
                        waiting = Joined(operand, token, i, level, waiting)
                    i += 1
                    break
                # No operator follows: the innermost bracket goes on or closes, or the expression is over.
                if around is None:
                    self.i = i
                    return operand
                if token == "," and around.items is not None and tokens[i + 1] != around.closing:
                    around.items.append(operand)
                    keys = around.keys
                    i += 1
                    break
                if token == ")" and around.kind == "function" and around.items is not None:
                    around.items.append(operand)
                    operand, i = Function(around.at, tokens[around.at], tuple(around.items)), i + 1
                    self.depth -= 1
                else:
                    operand, i = self.close(around, operand, i), self.i
                waiting, way, around = around.waiting, around.way, around.around

    def go_into(
        self,
        at: int,
        operand: Expression,
        way: tuple[Expression, list[Member | Index]] | None,
        around: Bracket | None,
        waiting: Sign | Joined | None,
    ) -> Expression | Bracket:
        """Read the steps into a value that begin here, or go on behind an index; gives the bracket where one opens."""
        tokens = self.tokens
        if way is None:
            if (
                tokens[at] == "."
                and tokens[at + 1][0] in NAME_START
                and tokens[at + 2] not in _STEPS
                and (type(operand) is not Access)
            ):  # The common one, without a list of steps.
                self.i = at + 2
                return Access(operand.at, operand, (Member(at + 1, tokens[at + 1]),))
            # `(a.b).c` is the same as `a.b.c`.
            way = (operand.target, list(operand.steps)) if type(operand) is Access else (operand, [])
        target, steps = way
        while tokens[at] == ".":
            at += 1
            if tokens[at][0] not in NAME_START:
                raise self.unexpected(at, "a name after .")
            steps.append(Member(at, tokens[at]))
            at += 1
        self.i = at
        if tokens[at] != "[":
            return Access(target.at, target, tuple(steps))
        self.i = at + 1
        self.deeper(at + 1)
        return Bracket("index", "]", at + 1, around, waiting, None, way=way)

    def literal(self, at: int, token: str, wanted: str) -> Literal:
        """A number, a string, or a word that is a value; refuses whatever else there is."""
        if token in _WORDS:
            return Literal(at, _WORDS[token], "null" if token == "null" else "boolean")
        if is_string(token):
            return Literal(at, self.string(at), "string")
        if token[0] not in DIGITS:
            raise self.unexpected(at, wanted or f"a value after {self.tokens[at - 1]}")
        number = read_number(token)
        if number == math.inf:
            raise NumberRange("the number is too large for a double", at)
        return Literal(at, number, "number")

    def open(self, at: int, around: Bracket | None, waiting: Sign | Joined | None, wanted: str) -> Bracket | Expression:
        """Open the bracket that begins here, or behind a keyword, and go on to what is inside it; or behind it, where
        that is nothing, with what it was."""
        token = self.tokens[at]
        self.i = at + 1
        if token in _CLOSING:
            items: list[Expression] | None = None if token == "(" else []
            bracket = Bracket(token, _CLOSING[token], at, around, waiting, items, {} if token == "{" else None)
        elif token[0] in NAME_START and token not in KEYWORDS:
            # A parenthesis follows.
            self.i = at + 2
            if token == "NOW":
                self.suspends += 1
            bracket = Bracket("function", ")", at, around, waiting, [])
        elif token == "CALL":
            bracket = self.open_call(at + 1, around, waiting)
        elif token == "TRY":
            self.expect("CALL", "CALL after TRY")
            bracket = self.open_call(at + 2, around, waiting)
            bracket.tries = True
        elif token == "CALC":
            self.begin_calc()
            bracket = Bracket("calc", "}", at, around, waiting, [], {})
        else:
            raise self.unexpected(at, wanted or f"a value after {self.tokens[at - 1]}")
        self.depth += 1
        if self.depth > self.deepest:
            self.note_depth(bracket.at)
        if self.tokens[self.i] == bracket.closing and bracket.items is not None:
            return self.close(bracket, None, self.i)
        return bracket

    def close(self, bracket: Bracket, last: Expression | None, end: int) -> Expression:
        """What a bracket was that closes at `end`, or behind a comma there, with the last that is in it, if anything
        is; goes on behind it."""
        at, items, token = bracket.at, bracket.items, self.tokens[end]
        self.depth -= 1
        if token != bracket.closing:
            if token != "," or items is None:
                comma = "" if items is None else ", a comma"
                raise self.unexpected(end, f"an operator{comma} or {bracket.closing}")
            end += 1
        self.i = end + 1
        if items is None:
            assert last is not None
            if bracket.way is not None:
                bracket.way[1].append(Index(at, last))
            return last
        if last is not None:
            items.append(last)
        kind, keys, parts = bracket.kind, bracket.keys, tuple(items)
        if kind == "function":
            return Function(at, self.tokens[at], parts)
        if keys is None:
            return ListOf(at, parts)
        ats = tuple(keys.values())
        if kind == "call":
            return CallNode(at, self.tokens[at], bracket.site, tuple(keys), ats, parts, bracket.tries)
        variables = ObjectOf(at, tuple(keys), ats, parts)
        return variables if kind == "{" else self.close_calc(at, variables)

    def unusual_key(self, at: int, bracket: Bracket | None, keys: dict[str, int]) -> str:
        """Read a key that is a string, or refuse one that is none or is there already."""
        key = self.tokens[at]
        if key[0] not in NAME_START:
            if bracket is not None and bracket.kind == "call":
                raise self.unexpected(at, "an argument's name or }")
            if not is_string(key):
                raise self.unexpected(at, "a key or }")
            key = self.string(at)
        if key in keys:
            raise DuplicateKey(f"{key} is given twice", at, hint="keep one of the two")
        if self.tokens[at + 1] != ":":
            raise self.unexpected(at + 1, f": after {key}")
        return key

    def open_call(self, at: int, around: Bracket | None, waiting: Sign | Joined | None) -> Bracket:
        """Open the bracket of a CALL whose tool's name stands here."""
        name = self.tokens[at]
        if name in KEYWORDS or name[0] not in NAME_START:
            raise self.unexpected(at, "a tool's name after CALL")
        if self.tokens[at + 1] != "{":
            raise self.unexpected(at + 1, f"{{ after CALL {name}")
        self.i = at + 2
        self.suspends += 1
        site = self.sites
        self.sites = site + 1
        return Bracket("call", "}", at, around, waiting, [], {}, site)

    def begin_calc(self) -> None:
        """Read a CALC from behind its keyword up to the bracket of its variables."""
        wanted = 'CALC { formula: "…", vars: {…} }'
        for token in ("{", "formula", ":"):
            self.expect(token, wanted)
        if not is_string(self.tokens[self.i]):
            raise self.unexpected(self.i, wanted)
        self.i += 1
        for token in (",", "vars", ":", "{"):
            self.expect(token, wanted)

    def close_calc(self, at: int, variables: ObjectOf) -> Calc:
        if self.tokens[self.i] == ",":
            self.i += 1
        self.expect("}", "} at the end of CALC")
        formula_at = at + 4
        text = self.string(formula_at)
        return Calc(at, formula_at, text, self.formula(text, formula_at), variables)

    def formula(self, text: str, at: int) -> Expression:
        """Read the formula of a CALC: numbers, names, and arithmetic between them."""
        try:
            parser = ExpressionParser(text, MAX_FORMULA_NESTING, self.room)
            formula = parser.expression("a formula")
            if parser.tokens[parser.i] != END:
                raise parser.unexpected(parser.i, "an operator or the end of the formula")
        except PlacedError as error:
            error.fact = f"in the formula: {error.fact}"
            error.at = at
            raise
        self.room = parser.room
        if not all(map(_is_arithmetic, inside(formula))):
            raise ParseError(
                "a formula holds numbers, names, parentheses and + - * / % only",
                at,
                hint="write anything else as an ordinary expression, outside CALC",
            )
        return formula

    def string(self, at: int) -> str:
        try:
            return read_string(self.tokens[at])
        except ValueError as problem:
            raise LexError(str(problem), at) from None


def _is_arithmetic(node: Expression) -> bool:
    return (
        (type(node) is Literal and type(node.value) in (int, float))
        or type(node) is Name
        or (type(node) is Unary and node.operator != "NOT")
        or (type(node) is Chain and LEVELS[node.operators[0]] >= LEVELS["+"])
    )
