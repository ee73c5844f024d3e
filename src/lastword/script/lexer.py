"""From text to tokens, and from a token's index back to its place.

One regular expression cuts the text. A token is its own text and nothing more: its kind shows in its first character,
and its place is worked out again from its index when an error needs it. That makes the common case, a script without
errors, twice as fast as building an object for every token.

What no pattern matches becomes a token of one character, which the parser refuses when it reaches it.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

import msgspec

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
