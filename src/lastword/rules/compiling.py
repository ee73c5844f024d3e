"""Bounds as a validator has them: compiled once, quick for every call, and exact for numbers of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
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


def validator(schema: Any) -> Any:
    """A validator whose patterns take time by the length of the text alone, and whose numbers are compared exactly."""
    found = _compiled(schema, MAX_PATTERN_BYTES)
    return _ExactNumbers(found) if _holds_large(schema) else found


def whole_pattern(text: str) -> str:
    """A pattern over all of a text."""
    return f"^(?:{text})$"


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
