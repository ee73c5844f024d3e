"""JSON values: canonical bytes, digests, printing and deep equality.

Two equal values have the same canonical bytes, and the bytes decode to an equal value: that is how sameness is told.
What travels, is shown and is sealed keeps the order of its keys, as whoever wrote it meant it. Everything here walks
with an explicit stack and a budget: no input, however deep, wide or self-containing, can exhaust the host's stack or
its memory.

What does not live here: schemas (manifest.py) and anything that knows about tools.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from lastword.errors import NotJSON

type_name = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}

# Deep enough for any document a person would read (scripts promise 500), shallow enough for every C encoder.
MAX_DEPTH = 600
# Characters plus nodes. A value larger than this belongs in a file, with its path as the argument.
MAX_SIZE = 16_000_000
# Whole floats up to here are exact integers, and are written as such.
MAX_SAFE_INTEGER = 2**53

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
decode = msgspec.json.Decoder().decode
"""Bytes back to a fresh value. Only for those that came from here: see `parse` for the rest."""


def canonical(value: object) -> bytes:
    """The one byte string that stands for this value, whatever the order of its keys: VAL-1."""
    return _encoded(reduce(value)[0], _encode_sorted)


def written(value: object) -> bytes:
    """The bytes of a value with its keys in the order in which they were written: what travels, is shown and sealed."""
    return reduce(value)[1]


# What is the same in a copy. Floats are not: whole ones are written as integers.
_SIMPLE = frozenset((int, bool, type(None)))


def reduce(value: object) -> tuple[Any, bytes]:
    """A value as `plain` gives it, and as `written` does. A record of simple fields, as most are, takes one look."""
    if type(value) is dict:
        copy: dict[Any, Any] = value.copy()  # First of all: another thread may change the original meanwhile.
        size = len(copy) + 1
        for key, item in copy.items():
            if type(key) is not str:
                break
            size += len(key)
            kind = type(item)
            if kind is str:
                size += len(item)
            elif kind is float:
                copy[key] = _scalar(item)
            elif kind not in _SIMPLE:
                break
        else:
            if size <= MAX_SIZE:
                return copy, encode(copy)
        value = copy
    try:
        fresh = plain(value)
    except RuntimeError:  # A dict inside of it that grew, and Python noticed.
        raise NotJSON("the value was changed while it was read", hint="pass a copy that nobody changes") from None
    return fresh, encode(fresh)


def encode(value: Any) -> bytes:
    """The bytes of what `plain` gave, in its order."""
    return _encoded(value, _encode)


def _encoded(value: Any, encode: Callable[[Any], bytes]) -> bytes:
    try:
        return encode(value)
    except UnicodeEncodeError as problem:
        raise NotJSON(
            f"a string holds the lone surrogate U+{ord(problem.object[problem.start]):04X}",
            hint="a surrogate is half a character; send the whole one",
        ) from None
    except ValueError:  # Python's own limit, which keeps a long number from costing a long time
        raise NotJSON(
            f"an integer has more than {sys.get_int_max_str_digits()} digits", hint="send it as a string"
        ) from None


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def plain(value: object, *, max_depth: int = MAX_DEPTH, max_size: int = MAX_SIZE) -> Any:
    """A fresh copy with whole floats as integers; refuses what JSON cannot hold.

    The copy shares nothing that can change. A value that contains itself, or that doubles at every level, meets one
    of the two limits before it meets the memory's.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return _scalar(value)

    size = 0
    result: Any = {} if kind is dict else []
    waiting: list[tuple[Any, Any, int]] = []
    source: Any = value
    copy, depth = result, 1
    while True:
        if depth > max_depth:
            raise NotJSON(f"nested deeper than {max_depth} levels")
        size += len(source) + 1
        if size > max_size:
            raise NotJSON(f"larger than {max_size} characters and elements")
        if type(source) is dict:
            for key, item in source.items():
                if type(key) is not str:
                    raise NotJSON(f"the key {key!r} is not a string", hint="JSON objects have string keys")
                size += len(key)
                kind = type(item)
                if kind is str:
                    size += len(item)
                    copy[key] = item
                elif kind is int or kind is bool or item is None:
                    copy[key] = item
                elif kind is dict or kind is list:
                    child: Any = {} if kind is dict else []
                    copy[key] = child
                    waiting.append((item, child, depth + 1))
                else:
                    copy[key] = _scalar(item)
        else:
            for item in source:
                kind = type(item)
                if kind is str:
                    size += len(item)
                    copy.append(item)
                elif kind is int or kind is bool or item is None:
                    copy.append(item)
                elif kind is dict or kind is list:
                    child = {} if kind is dict else []
                    copy.append(child)
                    waiting.append((item, child, depth + 1))
                else:
                    copy.append(_scalar(item))
        if not waiting:
            break
        source, copy, depth = waiting.pop()
    if size > max_size:
        raise NotJSON(f"larger than {max_size} characters and elements")
    return result


def measure(value: Any, *, max_depth: int = MAX_DEPTH, max_size: int = MAX_SIZE) -> int:
    """The size of a value in characters and elements, as `plain` counts them; refuses what is too large or too deep."""
    size = depth = 0
    level = [value]
    while level:
        depth += 1
        inner: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                size += len(item)
            elif kind is list or kind is dict:
                if depth > max_depth:
                    raise NotJSON(f"nested deeper than {max_depth} levels")
                size += len(item) + 1
                if kind is dict:
                    size += sum(map(len, item))
                    item = item.values()
                if size > max_size:
                    break
                inner += item
        if size > max_size:
            raise NotJSON(f"larger than {max_size} characters and elements")
        level = inner
    return size


def _scalar(value: object) -> Any:
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        assert isinstance(value, float)
        if not math.isfinite(value):
            raise NotJSON(f"{value} is not a JSON number")
        if value.is_integer() and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return int(value)
        return value
    if kind is str:
        assert isinstance(value, str)
        if len(value) > MAX_SIZE:
            raise NotJSON(f"larger than {MAX_SIZE} characters and elements")
        return value
    hint = "use a list" if isinstance(value, (tuple, set, frozenset)) else "use JSON values only"
    raise NotJSON(f"a {kind.__name__} is not a JSON value", hint=hint)


def parse(text: str | bytes) -> Any:
    """Read JSON from outside, strictly: duplicate keys, NaN, lone surrogates and endless nesting are refused."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as problem:
            raise NotJSON(f"not UTF-8 at byte {problem.start}") from None
    if (depth := nesting(text)) > MAX_DEPTH:
        raise NotJSON(f"nested deeper than {MAX_DEPTH} levels ({depth})")
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except json.JSONDecodeError as problem:
        raise NotJSON(f"not JSON: {problem.msg}", place=f"{problem.lineno}:{problem.colno}") from None
    except ValueError as problem:  # an integer of more digits than Python converts
        raise NotJSON(f"not JSON: {problem}") from None
    canonical(value)
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJSON(f"the key {json.dumps(key)} appears twice in one object")
            seen.add(key)
    return result


def _no_constants(name: str) -> Any:
    raise NotJSON(f"{name} is not a JSON number")


# A whole string (or one that never ends, up to the end of the text), or one bracket. Nothing here can match the same
# character twice, so a scan is linear whatever the text.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def nesting(text: str) -> int:
    """How deep the brackets of a JSON text go, in one pass and without recursion. Brackets in strings do not count."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        char = text[match.start()]
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def number_text(value: int | float) -> str:
    """A number as ECMAScript prints it; integers beyond 2^53 keep every digit."""
    if type(value) is int:
        return str(value)
    if 1e-4 <= value < 1e16 or -1e16 < value <= -1e-4:
        # Here Python writes what ECMAScript does, but for a whole number's ".0".
        shown = repr(value)
        return shown[:-2] if shown.endswith(".0") else shown
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.d1d2d3… × 10^point, with d1 the first digit that is not zero.
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def text(value: Any, *, max_depth: int = MAX_DEPTH, max_size: int = MAX_SIZE) -> str:
    """A value as a script prints it: strings bare, the rest as `[1, a]` and `{k: v}`."""
    if type(value) is str:
        if len(value) > max_size:
            raise NotJSON(f"larger than {max_size} characters and elements")
        return value
    parts: list[str] = []
    size = 0
    # Strings on the stack are punctuation still to be written; a pair is a value and its depth.
    waiting: list[tuple[Any, int] | str] = [(value, 1)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            piece = entry
        else:
            item, depth = entry
            kind = type(item)
            if kind is list or kind is dict:
                if depth > max_depth:
                    raise NotJSON(f"nested deeper than {max_depth} levels")
                if size + len(item) > max_size:
                    raise NotJSON(f"larger than {max_size} characters and elements")
                waiting.append("]" if kind is list else "}")
                inner: list[tuple[Any, int] | str] = []
                if kind is list:
                    for element in item:
                        inner += [", ", (element, depth + 1)]
                else:
                    for key, element in item.items():
                        inner += [f", {key}: ", (element, depth + 1)]
                if inner:
                    first = inner[0]
                    assert isinstance(first, str)
                    inner[0] = first[2:]
                waiting.extend(reversed(inner))
                piece = "[" if kind is list else "{"
            else:
                piece = scalar_text(item)
        size += len(piece)
        if size > max_size:
            raise NotJSON(f"larger than {max_size} characters and elements")
        parts.append(piece)
    return "".join(parts)


def scalar_text(value: Any) -> str:
    """A string, number, boolean or null as a script prints it."""
    if type(value) is str:
        return value
    if type(value) is int or type(value) is float:
        return number_text(value)
    if value is None:
        return "null"
    return "true" if value else "false"


def equal(left: Any, right: Any, *, max_size: int = MAX_SIZE) -> bool:
    """Deep equality of JSON values. Booleans are not numbers; the order of keys means nothing."""
    return compare(left, right, max_size=max_size)[0]


def compare(left: Any, right: Any, *, max_size: int = MAX_SIZE) -> tuple[bool, int]:
    """Deep equality, and how many elements had to be looked at to know."""
    budget = max_size
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        budget -= 1
        kind, other = type(a), type(b)
        if kind is list or kind is dict:
            if kind is not other or len(a) != len(b):
                return False, max_size - budget
            budget -= len(a)
            if budget < 0:
                raise NotJSON(f"larger than {max_size} characters and elements")
            if kind is list:
                waiting.extend(zip(a, b, strict=True))
            else:
                for key, item in a.items():
                    if key not in b:
                        return False, max_size - budget
                    waiting.append((item, b[key]))
        elif kind is bool or other is bool:
            if a is not b:
                return False, max_size - budget
        elif a != b:
            return False, max_size - budget
    return True, max_size - budget
