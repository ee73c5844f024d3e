"""From text to tokens, back to their places, and the errors that point at them.

One regular expression cuts the text. A token is its own text and nothing more: its kind shows in its first character,
and its place is worked out again from its index when an error needs it. That makes the common case, a script without
errors, twice as fast as building an object for every token. What no pattern matches becomes a token of one character,
which the parser refuses when it reaches it.

An error is raised with the index of its token. Lines and columns are worked out once, when the error leaves this room.
`type(error).__name__` is the class that the language documents.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import msgspec

from lastword.errors import ScriptError, caret_excerpt
from lastword.values import MAX_SAFE_INTEGER

KEYWORDS = frozenset(
    ["LET", "SET", "CALL", "TRY", "CALC", "IF", "THEN", "ELSEIF", "ELSE", "END", "FOR", "IN", "DO", "BREAK", "STOP"]
) | {"AND", "OR", "NOT", "true", "false", "null"}
NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
DIGITS = frozenset("0123456789")
SYMBOLS = frozenset("+-*/%()[]{}:,.=<>") | {"==", "!=", "<=", ">="}

# Possessive (++, *+): what was taken is never given back, so no text makes the pattern try twice.
_COMMENT = r"//[^\n]*+"
_TOKEN = (
    r"[A-Za-z_][A-Za-z0-9_]*+"
    r"|[-+*/%()\[\]{}:,.]"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|[0-9]++(?:\.[0-9]++)?"
    r"|[=<>!]=|[=<>]"
)
# The last alternative but one is any other character; the last is the end of the text, an empty token. Comments are cut
# out like tokens and left out afterwards: most scripts have none, and to look for them before each token is dear.
_CUT = re.compile(rf"[ \t\r\n]*+({_COMMENT}|{_TOKEN}|[\s\S]|\Z)")
_COMMENT_OR_TOKEN = re.compile(rf"({_COMMENT})|({_TOKEN})")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LINE_END = re.compile("\n")
_CONTROL = re.compile(r"[\x00-\x1f]")


# Cut in one go, which takes a millisecond or two and lets no other thread have its turn.
SHORT_TEXT = 20_000
# Reading, checking and writing out a text of so many characters takes some milliseconds, whatever it says. Most are
# far shorter, and a thread would cost them more than it gives.
LARGE_TEXT = 8_000

END = " "
"""The last of all tokens. No other is a blank, and each has a first character."""
CUT_SHORT = "  "
"""The last of those that are read, where the text has more."""


def cut(source: str, most: int = sys.maxsize) -> list[str]:
    """The tokens of a text and END; or, where there are more tokens and comments than `most`, those and CUT_SHORT."""
    tokens: list[str]
    if len(source) <= SHORT_TEXT:
        tokens = _CUT.findall(source)
    else:
        # The same one by one: a long text must neither hold up other threads nor be cut further than it may go.
        tokens = [match[1] for match in islice(_CUT.finditer(source), min(most, len(source)) + 2)]
    too_many = len(tokens) > most
    if too_many:
        del tokens[most:]
    if "//" in source:
        tokens = [token for token in tokens if not token.startswith("//")]
    if too_many:
        tokens.append(CUT_SHORT)
        return tokens
    # A text that ends in blanks matches the end twice.
    if len(tokens) > 1 and not tokens[-2]:
        tokens.pop()
    tokens[-1] = END
    return tokens


def find_token(source: str, index: int) -> tuple[int, int]:
    """The offset and the length of a token, from its index."""
    for number, place in enumerate(_places(source)):
        if number == index:
            return place
    return len(source), 0


class Places(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The lines and columns of a text's tokens, worked out when somebody asks for the first."""

    source: str

    @cached_property
    def tokens(self) -> list[tuple[int, int]]:
        """The offset and the length of every token."""
        return list(_places(self.source))

    @cached_property
    def lines(self) -> list[int]:
        """The offset of every line."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.source))]

    def of(self, at: int) -> tuple[int, int]:
        """The line and the column of a token."""
        offset = self.tokens[at][0]
        line = bisect_right(self.lines, offset)
        return line, offset - self.lines[line - 1] + 1


class Site(msgspec.Struct, frozen=True, gc=False):
    """Where in a script a CALL stands. It does not know the program, which would be a cycle to collect."""

    places: Places
    """The lines of the script, worked out when somebody asks."""
    at: int
    tool: str
    index: int
    """The number of this CALL in the text, from 0."""
    tries: bool = False
    """Whether it is a TRY CALL, which wants to know what became of it."""

    @property
    def line(self) -> int:
        return self.places.of(self.at)[0]

    @property
    def column(self) -> int:
        return self.places.of(self.at)[1]


def _places(source: str) -> Iterator[tuple[int, int]]:
    for match in _CUT.finditer(source):
        token = match[1]
        if token == "":
            # The end is shown behind the last thing that was written, and not on an empty line below it.
            yield len(source.rstrip()), 0
        elif not token.startswith("//"):
            yield match.start(1), len(token)


def tokens_and_comments(source: str) -> Iterator[tuple[int, str, bool]]:
    """Every token and comment of a text that parses, as (offset, text, is a comment), for the formatter."""
    for match in _COMMENT_OR_TOKEN.finditer(source):
        yield match.start(), match[0], match[1] is not None


def is_name(token: str) -> bool:
    """A word, keywords included."""
    return token[0] in NAME_START


def is_string(token: str) -> bool:
    """A whole string literal; a quotation mark alone is one that never ends."""
    return len(token) > 1 and token[0] == '"'


def read_string(token: str) -> str:
    """The value of a string literal. Raises ValueError, with words for a person, when it is not a good one."""
    if "\\" not in token and token.isprintable():
        return token[1:-1]
    if control := _CONTROL.search(token):
        raise ValueError(f"a string holds the control character U+{ord(control[0]):04X}; write it as an escape")
    try:
        value: str = json.loads(token)
    except ValueError:
        raise ValueError("a string holds an escape that JSON does not know") from None
    # json.loads joins a pair of surrogates into one character, so whatever is left of them stands alone.
    if _ESCAPED_SURROGATE.search(token) or not token.isprintable():
        for char in value:
            if "\ud800" <= char <= "\udfff":
                raise ValueError(f"a string holds the lone surrogate U+{ord(char):04X}")
    return value


def read_number(token: str) -> int | float:
    """The double that a literal stands for. Whole numbers that a double holds exactly are integers here."""
    value = float(token)
    if value <= MAX_SAFE_INTEGER and value.is_integer():
        return int(value)
    return value


Phase = Literal["parse", "check", "run"]
Severity = Literal["error", "warning"]

# A line longer than this is shown around the caret only: a minified script must not flood a terminal or a model.
MAX_EXCERPT = 160


class PlacedError(ScriptError):
    """An error at a token of a script."""

    def __init__(self, fact: str, at: int = 0, *, hint: str | None = None, severity: Severity = "error") -> None:
        super().__init__(fact, hint=hint)
        self.at = at
        self.line = 0
        self.column = 0
        self.phase: Phase = "run"
        self.severity = severity

    def locate(self, source: str, name: str | None, phase: Phase) -> PlacedError:
        """Turn the token's index into a line, a column and an excerpt."""
        return self.locate_at(*find_token(source, self.at), source, name, phase)

    def locate_at(self, offset: int, width: int, source: str, name: str | None, phase: Phase) -> PlacedError:
        """The same for a token whose place in the text is known."""
        start = source.rfind("\n", 0, offset) + 1
        end = source.find("\n", offset)
        line = source[start : len(source) if end < 0 else end].rstrip("\r")
        self.line = source.count("\n", 0, offset) + 1
        self.column = offset - start + 1
        self.phase = phase
        self.place = f"{name}:{self.line}:{self.column}" if name else f"{self.line}:{self.column}"
        self.excerpt = _excerpt(line, self.column, width)
        return self

    def as_dict(self) -> dict[str, Any]:
        """For programs: what `--json` prints."""
        return {
            "class": type(self).__name__,
            "severity": self.severity,
            "phase": self.phase,
            "message": self.fact,
            "line": self.line,
            "column": self.column,
            "excerpt": self.excerpt,
            "hint": self.hint,
        }


def locate_all(errors: Iterable[PlacedError], source: str, name: str | None, phase: Phase) -> None:
    """Locate several errors in one pass over the text."""
    places = Places(source)
    for error in errors:
        error.locate_at(*places.tokens[error.at], source, name, phase)


def _excerpt(line: str, column: int, width: int) -> str:
    start = 0
    if len(line) > MAX_EXCERPT:
        start = max(0, min(column - MAX_EXCERPT // 2, len(line) - MAX_EXCERPT))
        line = line[start : start + MAX_EXCERPT]
    # Control characters would move the caret, or the terminal's cursor.
    line = "".join(char if char == "\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    column -= start
    return caret_excerpt(line, column, max(1, min(width, len(line) - column + 1)))


class LexError(PlacedError):
    """A character or literal that is not of the language."""


class ParseError(PlacedError):
    """Tokens in an order the grammar does not know."""


class DuplicateKey(PlacedError):
    """A key twice in one object or argument list."""


class UndefinedVariable(PlacedError):
    """A name without a value."""


class TypeMismatch(PlacedError):
    """An operator or function got a value of the wrong type."""


class InvalidCondition(PlacedError):
    """IF got something else than a boolean."""


class InvalidIterable(PlacedError):
    """FOR got something else than a list."""


class IndexOutOfBounds(PlacedError):
    """No such element."""


class MemberAccess(PlacedError):
    """No such key."""


class DivisionByZero(PlacedError):
    """/ or % by zero."""


class NumberRange(PlacedError):
    """A result that is not finite, or arithmetic on an integer beyond 2^53."""


class FormatKey(PlacedError):
    """FORMAT names a key that the object has not."""


class UnknownFunction(PlacedError):
    """No built-in of that name."""


class WrongArity(PlacedError):
    """Too few or too many arguments."""


class ToolNotFound(PlacedError):
    """No tool of that name."""


class ToolArgument(PlacedError):
    """Arguments that do not fit the tool."""


class ToolExecution(PlacedError):
    """The tool failed."""


class LimitExceeded(PlacedError):
    """A named limit was reached."""


class Cancelled(PlacedError):
    """Somebody stopped the run."""


class ReplayDivergence(PlacedError):
    """A resumed run asked for something else than it did before."""


class ScriptWarning(PlacedError):
    """Allowed, and probably not meant. Only ever found by the checker, and never stops a run."""

    def __init__(self, fact: str, at: int = 0, *, hint: str | None = None) -> None:
        super().__init__(fact, at, hint=hint, severity="warning")


CALL_CLASSES: dict[str, type[PlacedError]] = {
    kind.__name__: kind
    for kind in (ToolNotFound, ToolArgument, ToolExecution, LimitExceeded, Cancelled, ReplayDivergence)
}


class CallFailed(Exception):
    """How a host says that a CALL stops the script: one of `CALL_CLASSES` and the words for it.

    The host knows nothing of lines and columns; the machine adds them.
    """

    def __init__(self, error_class: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message
        self.hint = hint

    def at(self, token: int) -> PlacedError:
        """The error of the language that this failure is."""
        return CALL_CLASSES[self.error_class](self.message, token, hint=self.hint)
