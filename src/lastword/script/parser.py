"""From tokens to a tree, without recursion.

Statements keep a stack of the blocks that are open; an expression keeps a stack of what waits for the operand being
read: unary operators, chains of binary operators, and brackets. When an operand is complete, everything on the stack
that binds tighter than the next token is folded into it. No text, however deep, can reach the host's stack: nesting is
counted, and stops at a named limit.

The words for what went wrong are in mistakes.py.
"""

from __future__ import annotations

import math

from lastword.script.errors import DuplicateKey, LexError, LimitExceeded, NumberRange, ParseError, PlacedError
from lastword.script.habits import improve
from lastword.script.lexer import CUT_SHORT, DIGITS, END, KEYWORDS, NAME_START, cut, is_string, read_number, read_string
from lastword.script.mistakes import CHAINED_ELSE, never_closed, outside_a_loop, unexpected
from lastword.script.nesting import ACCESS_LEVEL, LEVELS, MAX_NESTING, UNARY_LEVEL, Bracket, Joined, OpenBlock, Sign
from lastword.script.nodes import (
    Access,
    Break,
    Calc,
    CallNode,
    Chain,
    Do,
    Expression,
    Function,
    Index,
    Let,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Script,
    Set,
    Statement,
    Stop,
    Unary,
    inside,
)

# A formula is one line of arithmetic; it is evaluated by recursion, so its depth stays far below the host's.
MAX_FORMULA_NESTING = 30
# A model writes some kilobytes. A megabyte of text is a mistake or an attack, unless nearly all of it is data.
MAX_SOURCE = 1_000_000
# Words, signs and comments in a text, those of its formulas included. Each costs a few microseconds and some hundred
# bytes until it runs, so what is read can hold up nobody for long.
MAX_TOKENS = 200_000

# What most literals but strings are.
_SMALL_NUMBERS = {str(number): number for number in range(101)}
_WORDS = {"true": True, "false": False, "null": None}
_SIGNS = frozenset(["-", "+", "NOT"])


def parse(source: str, *, name: str | None = None) -> Script:
    """Read a script. Raises the first error of the text, with its place."""
    if len(source) > MAX_SOURCE:
        # Not one token of it is read, so the place is the beginning.
        problem = LimitExceeded(f"the script is longer than {MAX_SOURCE} characters")
        raise problem.locate(source[:MAX_SOURCE], name, "parse")
    try:
        return _Parser(source, name, MAX_NESTING, MAX_TOKENS).script()
    except PlacedError as error:
        raise improve(error.locate(source, name, "parse"), source.split("\n")) from None


class _Parser:
    __slots__ = ("deepest", "depth", "i", "max_nesting", "name", "room", "sites", "source", "suspends", "tokens")

    def __init__(self, source: str, name: str | None, max_nesting: int, room: int) -> None:
        self.source = source
        self.name = name
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

    # Statements.

    def script(self) -> Script:
        tokens = self.tokens
        body: list[Statement] = []
        blocks: list[OpenBlock] = []
        loops = 0
        while True:
            at = self.i
            token = tokens[at]
            if token == "LET" or token == "SET":
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
                    raise outside_a_loop(at)
                self.i = at + 1
                body.append(Break(at))
            elif token == "STOP":
                self.i = at + 1
                value = self.expression("a value after STOP")
                body.append(Stop(at, value, self.suspends))
            elif token == END:
                if blocks:
                    raise never_closed(tokens, blocks[-1])
                return Script(self.source, self.name, tuple(body), self.deepest, self.sites)
            else:
                if blocks and token.upper() in CHAINED_ELSE:
                    raise self.unexpected(at, "a statement")
                # A CALL that is a statement ends at its }: what follows, on whatever line, is another.
                value = self.expression("a statement", ends=token == "CALL" or token == "TRY")
                body.append(Do(at, value, self.suspends))

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
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
            if self.depth > self.max_nesting:
                raise self.too_deep(at)
        return OpenBlock(keyword, at, head, self.suspends, outer, name, name_at)

    def expect(self, token: str, wanted: str) -> None:
        if self.tokens[self.i] != token:
            raise self.unexpected(self.i, wanted)
        self.i += 1

    def too_deep(self, at: int) -> LimitExceeded:
        return LimitExceeded(
            f"nested deeper than {self.max_nesting} levels", at, hint="give the inner parts names with LET"
        )

    def unexpected(self, at: int, wanted: str) -> PlacedError:
        if self.tokens[at] == CUT_SHORT:
            words = f"the script has more than {MAX_TOKENS} words, signs and comments"
            return LimitExceeded(words, at, hint="give it long lists as variables")
        return unexpected(self.tokens, at, wanted)

    # Expressions.

    def expression(self, wanted: str, *, ends: bool = False) -> Expression:
        """Read one expression from here on; `wanted` is what the text owes us at its beginning, for the error.

        With `ends` it ends with the first bracket that closes, whatever follows.

        Nearly all the time of reading a script is spent here, so this is one loop over local names.
        """
        tokens = self.tokens
        i = start = self.i
        depth, deepest, limit = self.depth, self.deepest, self.max_nesting
        self.suspends = 0
        # The innermost bracket that is open, and the last operator inside it, which waits for an operand.
        around: Bracket | None = None
        waiting: Sign | Joined | None = None
        # The keys of that bracket, where another is due before the operand.
        keys: dict[str, int] | None = None
        # The way into the operand so far, while it goes on.
        steps: list[Member | Index] | None = None
        operand: Expression
        while True:
            # An operand is due at i.
            token = tokens[i]
            if keys is not None:
                if token[0] in NAME_START and tokens[i + 1] == ":" and token not in keys:
                    keys[token] = i
                else:
                    self.unusual_key(i, around, keys)
                keys = None
                i += 2
                token = tokens[i]
            at = i
            i += 1
            first = token[0]
            if first in NAME_START and token not in KEYWORDS:
                if tokens[i] == "(":
                    if token == "NOW":
                        self.suspends += 1
                    i += 1
                    depth += 1
                    if depth > deepest:
                        deepest = depth
                        if depth > limit:
                            raise self.too_deep(at)
                    if tokens[i] != ")":
                        around, waiting = Bracket("function", ")", at, around, waiting, []), None
                        continue
                    depth -= 1
                    operand = Function(at, token, ())
                    i += 1
                else:
                    operand = Name(at, token)
            elif token in _SMALL_NUMBERS:
                operand = Literal(at, _SMALL_NUMBERS[token], "number")
            elif first == '"' and len(token) > 1:
                value = token[1:-1] if "\\" not in token and token.isprintable() else self.string(at)
                operand = Literal(at, value, "string")
            elif first in DIGITS:
                operand = Literal(at, self.number(at), "number")
            elif token in _WORDS:
                operand = Literal(at, _WORDS[token], "null" if token == "null" else "boolean")
            elif token in _SIGNS:
                depth += 1
                if depth > deepest:
                    deepest = depth
                    if depth > limit:
                        raise self.too_deep(at)
                waiting = Sign(at, token, waiting)
                continue
            else:
                bracket = self.open(at, around, waiting)
                if bracket is None:
                    raise self.unexpected(at, wanted if at == start else f"a value after {tokens[at - 1]}")
                i = self.i
                depth += 1
                if depth > deepest:
                    deepest = depth
                    if depth > limit:
                        raise self.too_deep(bracket.at)
                if tokens[i] != bracket.closing or bracket.items is None:
                    around, waiting, keys = bracket, None, bracket.keys
                    continue
                depth -= 1
                operand = self.close(bracket, i)
                i = self.i
                if ends and around is None:
                    self.deepest = deepest
                    return operand

            # What stands after an operand says what becomes of it.
            while True:
                token = tokens[i]
                if token in LEVELS:
                    level = LEVELS[token]
                    if level == ACCESS_LEVEL:
                        if steps is None:
                            steps = []
                            if type(operand) is Access:
                                # `(a.b).c` is the same as `a.b.c`.
                                steps.extend(operand.steps)
                                operand = operand.target
                        i += 1
                        if token == "[":
                            depth += 1
                            if depth > deepest:
                                deepest = depth
                                if depth > limit:
                                    raise self.too_deep(i)
                            around = Bracket("index", "]", i, around, waiting, None, way=(operand, steps))
                            waiting, steps = None, None
                            break
                        token = tokens[i]
                        if token[0] not in NAME_START:
                            raise self.unexpected(i, "a name after .")
                        steps.append(Member(i, token))
                        i += 1
                        if LEVELS.get(tokens[i]) != ACCESS_LEVEL:
                            operand = Access(operand.at, operand, tuple(steps))
                            steps = None
                        continue

                    while waiting is not None and waiting.level > level:
                        operand = waiting.fold(operand)
                        if waiting.level == UNARY_LEVEL:
                            depth -= 1
                        waiting = waiting.outer
                    if waiting is not None and waiting.level == level:
                        assert type(waiting) is Joined
                        waiting.links.extend((operand, token, i))
                    else:
                        waiting = Joined([operand, token, i], level, waiting)
                    i += 1
                    break

                # No operator follows: the innermost bracket goes on or closes, or the expression is over.
                while waiting is not None:
                    operand = waiting.fold(operand)
                    if waiting.level == UNARY_LEVEL:
                        depth -= 1
                    waiting = waiting.outer
                if around is None:
                    self.i, self.deepest = i, deepest
                    return operand
                if around.items is not None:
                    around.items.append(operand)
                    if token == ",":
                        i += 1
                        if tokens[i] != around.closing:
                            keys = around.keys
                            break
                    elif token != around.closing:
                        raise self.unexpected(i, f"an operator, a comma or {around.closing}")
                    if around.kind == "function":
                        operand = Function(around.at, tokens[around.at], tuple(around.items))
                        i += 1
                    else:
                        operand = self.close(around, i)
                        i = self.i
                else:
                    if token != around.closing:
                        raise self.unexpected(i, f"an operator or {around.closing}")
                    i += 1
                    if around.way is not None:
                        index = Index(around.at, operand)
                        operand, steps = around.way
                        steps.append(index)
                        if LEVELS.get(tokens[i]) != ACCESS_LEVEL:
                            operand = Access(operand.at, operand, tuple(steps))
                            steps = None
                depth -= 1
                waiting = around.waiting
                around = around.around
                if ends and around is None:
                    self.i, self.deepest = i, deepest
                    return operand

    def open(self, at: int, around: Bracket | None, waiting: Sign | Joined | None) -> Bracket | None:
        """Open the bracket that begins here, or behind a keyword, and go on to what is inside it."""
        token = self.tokens[at]
        self.i = at + 1
        if token == "{":
            return Bracket("{", "}", at, around, waiting, [], {})
        if token == "CALL":
            return self.open_call(at + 1, around, waiting)
        if token == "TRY":
            self.expect("CALL", "CALL after TRY")
            bracket = self.open_call(at + 2, around, waiting)
            bracket.tries = True
            return bracket
        if token == "[":
            return Bracket("[", "]", at, around, waiting, [])
        if token == "(":
            return Bracket("(", ")", at, around, waiting, None)
        if token == "CALC":
            self.begin_calc()
            return Bracket("calc", "}", at, around, waiting, [], {})
        return None

    def close(self, bracket: Bracket, end: int) -> Expression:
        """What a bracket was, once it closes at `end`; goes on behind it."""
        self.i = end + 1
        kind, at, items, keys = bracket.kind, bracket.at, tuple(bracket.items or ()), bracket.keys
        if keys is None:
            return ListOf(at, items)
        if kind == "call":
            ats = tuple(keys.values())
            return CallNode(at, self.tokens[at], bracket.site, tuple(keys), ats, items, bracket.tries)
        variables = ObjectOf(at, tuple(keys), tuple(keys.values()), items)
        return variables if kind == "{" else self.close_calc(at, variables)

    def unusual_key(self, at: int, bracket: Bracket | None, keys: dict[str, int]) -> None:
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
        keys[key] = at
        if self.tokens[at + 1] != ":":
            raise self.unexpected(at + 1, f": after {key}")

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
            parser = _Parser(text, None, MAX_FORMULA_NESTING, self.room)
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

    def number(self, at: int) -> int | float:
        value = read_number(self.tokens[at])
        if value == math.inf:
            raise NumberRange("the number is too large for a double", at)
        return value

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
