"""Whether a model's message is a script, whole or so far. It is read here, and never run."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.errors import ScriptError
from lastword.script import (
    BUILTINS,
    Calc,
    CallNode,
    Do,
    Function,
    Name,
    PlacedError,
    Statement,
    Stop,
    cut,
    find_token,
    inside,
    parse,
)

# A script that a person is to read has some hundred lines. Beyond this a message is text, without a look at it.
MAX_SCRIPT = 200_000

# A stream is looked at again whenever it has grown by this part, so that all looks together cost a few parses.
GROWTH = 1.25
FIRST_LOOK = 16

# The last tokens of a text that is still arriving may be prefixes of longer ones: `1.` of `1.5`, `TH` of THEN.
UNFINISHED_TOKENS = 3
# No text of the language holds this character outside a string or comment, so the parser stops at it at the latest.
STOPPER = "\n;"


def is_script(text: str) -> bool:
    """Whether the entire message is a script that does something. "Paris" parses too, and is a word."""
    if len(text) > MAX_SCRIPT:
        return False
    try:
        return _does_something(parse(text).body)
    except ScriptError:
        return False


def _does_something(body: Iterable[Statement]) -> bool:
    return any(
        # "STOP talking" is a request, and no script.
        not isinstance(statement, Do | Stop)
        or (isinstance(statement, Stop) and not isinstance(statement.value, Name))
        or any(
            isinstance(node, CallNode | Calc) or (isinstance(node, Function) and node.name in BUILTINS)
            for node in inside(statement.value)
        )
        for statement in body
    )


class ScriptOpening:
    """Watches a message arrive and says whether it could still turn out to be a script."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._next_look: float = FIRST_LOOK
        self._possible = True

    def feed(self, piece: str) -> bool:
        """Take the next piece. True while the message so far may be the beginning of a script."""
        if self._possible:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > MAX_SCRIPT:
                self._possible = False
            elif self._size >= self._next_look:
                self._next_look = self._size * GROWTH
                self._pieces = ["".join(self._pieces)]
                self._possible = not _cannot_be_a_script(self._pieces[0])
        return self._possible


def _cannot_be_a_script(beginning: str) -> bool:
    """Whether no continuation can make a script of this."""
    try:
        parse(beginning + STOPPER)
    except PlacedError as error:
        tokens = cut(beginning)
        if error.at < len(tokens) and tokens[error.at] == '"':
            # A quotation mark without its partner: the string may go on, unless its line has ended.
            offset, _ = find_token(beginning, error.at)
            return "\n" in beginning[offset:]
        return error.at < len(tokens) - 1 - UNFINISHED_TOKENS
    return False
