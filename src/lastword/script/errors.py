"""Everything that can be wrong with a script, each with its place.

    ScriptError                       (lastword.errors)
    └── PlacedError                   class, message, line, column, the source line with a caret, hint
        ├── LexError                  a character or literal that is not of the language
        ├── ParseError                tokens in an order the grammar does not know
        ├── DuplicateKey              a key twice in one object or argument list
        ├── UndefinedVariable         a name without a value
        ├── TypeMismatch              an operator or function got a value of the wrong type
        ├── InvalidCondition          IF got something else than a boolean
        ├── InvalidIterable           FOR got something else than a list
        ├── IndexOutOfBounds          no such element
        ├── MemberAccess              no such key
        ├── DivisionByZero            / or % by zero
        ├── NumberRange               a result that is not finite, or arithmetic beyond 2^53
        ├── FormatKey                 FORMAT names a key that the object has not
        ├── UnknownFunction           no built-in of that name
        ├── WrongArity                too few or too many arguments
        ├── ToolNotFound              no tool of that name
        ├── ToolArgument              arguments that do not fit the tool
        ├── ToolExecution             the tool failed
        ├── LimitExceeded             a named limit was reached
        ├── Cancelled                 somebody stopped the run
        ├── ReplayDivergence          a resumed run asked for something else than it did before
        └── ScriptWarning             allowed, and probably not meant

An error is raised with the index of its token. Lines and columns are worked out once, when the error leaves this room,
so that a script without errors never pays for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from lastword.errors import ScriptError, caret_excerpt
from lastword.script.lexer import Places, find_token

Phase = Literal["parse", "check", "run"]
Severity = Literal["error", "warning"]

# A line longer than this is shown around the caret only: a minified script must not flood a terminal or a model.
MAX_EXCERPT = 160


class PlacedError(ScriptError):
    """An error at a token of a script. `type(error).__name__` is the class that the language documents."""

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
