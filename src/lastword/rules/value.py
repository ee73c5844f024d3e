"""Values of arguments as rules have them: compared by validators, exactly, and told in sentences of ours.

A validator is compiled once, quick for every call, and exact for numbers of any size. In sentences whatever others
wrote is marked: one to which somebody agrees must not go on in words that stood in a value, nor end before the value
does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.display import visible
from lastword.lazily import load_later

if TYPE_CHECKING:
    import jsonschema_rs
else:
    # A tenth of the start-up time, and nobody without rules needs it for them.
    jsonschema_rs = load_later("jsonschema_rs")

# So much memory may a pattern take when it is compiled: `(a{1000}){1000}` asks for more, and is refused in words.
MAX_PATTERN_BYTES = 1_000_000
# One that takes less is compiled in less than a tenth of a millisecond.
SMALL_PATTERN_BYTES = 30_000
# The usual 28 digits would round the smallest amounts away, and a sum to which nothing seems to come never ends. Two
# numbers of a computer are never further apart than this.
EXACT = Context(prec=700)
# How much of a value is repeated to whoever asks why it does not fit.
MAX_SHOWN = 60
# How much of one is told to whoever agrees to it. Two commands, or two folders, are often alike for longer than a line.
MAX_AGREED = 400
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_IN_QUOTES = str.maketrans({"“": "‹U+201C›", "”": "‹U+201D›", "\n": "⏎", "⏎": "‹U+23CE›"})


def validator(schema: Any) -> Any:
    """A validator whose patterns take time by the length of the text alone, and whose numbers are compared exactly."""
    found = _compiled(schema, MAX_PATTERN_BYTES)
    return _ExactNumbers(found) if _holds_large(schema) else found


def whole_pattern(text: str) -> str:
    """A pattern over all of a text."""
    return f"^(?:{text})$"


def fits(whole: str, text: str) -> bool:
    """Whether a text is what a pattern over all of it says."""
    return bool(_matcher(whole).is_valid(text))


@lru_cache(maxsize=1_000)
def _matcher(whole: str) -> Any:
    return validator({"type": "string", "pattern": whole})


def is_large_pattern(text: str) -> bool:
    """Whether a pattern grows when it is compiled; so does one that is none at all."""
    try:
        _compiled({"pattern": whole_pattern(text)}, SMALL_PATTERN_BYTES)
    except ValueError:
        return True
    return False


def _compiled(schema: Any, most: int) -> Any:
    return jsonschema_rs.validator_for(
        schema, pattern_options=jsonschema_rs.RegexOptions(size_limit=most), offline=True
    )


class _ExactNumbers:
    """A validator for bounds with numbers beyond 2**53.

    JSON Schema takes 1e30 for the digits that are written, and Python for the nearest number that a computer has, which
    is another one. Every float of that size is a whole number, and whole numbers are compared alike by both. Against
    smaller bounds they agree anyway.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def is_valid(self, value: Any) -> bool:
        return bool(self._found.is_valid(whole_numbers(value)))


def _whole_number(text: str) -> int | float:
    number = float(text)
    return int(number) if abs(number) > values.MAX_SAFE_INTEGER else number


_decode_whole = msgspec.json.Decoder(float_hook=_whole_number).decode


def whole_numbers(value: Any) -> Any:
    """A value with every float beyond 2**53 as the whole number that it is."""
    return _decode_whole(values.encode(value))


def _holds_large(schema: Any) -> bool:
    """Whether a number beyond 2**53 stands in a schema."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            stack += part.values()
        elif type(part) is list:
            stack += part
        elif type(part) in (int, float) and abs(part) > values.MAX_SAFE_INTEGER:
            return True
    return False


def shown(value: Any, most: int = MAX_SHOWN) -> str:
    """A value in a sentence of ours; of a long one its beginning, and how much more of it there is."""
    if isinstance(value, str):
        return _begun(value, most, quoted)
    if type(value) is int:
        return _begun(str(value), most, str)
    try:
        plain = values.plain(value)
    except values.NotJSON:
        return f"a {type(value).__name__}"
    # With quotes around every text inside: without them a list goes on as if it were our words, or a longer list.
    text = json.dumps(plain, ensure_ascii=False) if isinstance(plain, (list, dict)) else values.scalar_text(plain)
    return _begun(text, most, _unquoting)


def _begun(text: str, most: int, drawn: Callable[[str], str]) -> str:
    more = len(text) - most
    return drawn(text) if more <= 0 else f"{drawn(text[:most])}… ({more:,} more characters)"


def quoted(text: str) -> str:
    """A text in a sentence of ours, all of it."""
    if text.isascii() and text.isprintable():
        return f"“{text}”"
    return f"“{_unquoting(text)}”"


def _unquoting(text: str) -> str:
    """A text as it may be seen. One that closes our quotes, or begins a line, could go on as if it were our words."""
    return visible(text).translate(_IN_QUOTES)


def shown_name(name: str) -> str:
    """The name of an argument in a sentence of ours. One that a model made up may be a sentence itself."""
    return name if _NAME.fullmatch(name) else quoted(brief(name))


def call_words(tool: str, arguments: bytes) -> str:
    """A call with canonical arguments in a sentence of ours, with the beginning of what is long."""
    given = values.decode(arguments).items()
    return ", ".join([visible(tool), *(f"{shown_name(name)} {shown(value)}" for name, value in given)])


def brief(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def listed(known: list[Any], most: int = MAX_SHOWN) -> str:
    said = ", ".join(shown(value, most) for value in known[:5])
    return f"{said} and {len(known) - 5} more" if len(known) > 5 else said


def amount_of(value: Any) -> Decimal:
    """A number as it is written, exactly. Whatever is none, or negative, is more than any sum."""
    if type(value) not in (int, float) or value < 0:
        return Decimal("Infinity")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return Decimal("Infinity")


def amount_words(amount: Decimal) -> str:
    """A sum for people, all of it: 100, 38.50, 0.125."""
    if amount == amount.to_integral_value():
        return f"{amount:.0f}"
    exponent = amount.as_tuple().exponent
    return f"{amount:.2f}" if isinstance(exponent, int) and exponent >= -2 else f"{amount.normalize(EXACT):f}"
