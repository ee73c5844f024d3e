"""JSON values: canonical bytes, digests, printing and deep equality; and names that nobody has used.

Two equal values have the same canonical bytes, and the bytes decode to an equal value: that is how sameness is told.
What travels, is shown and is sealed keeps the order of its keys, as whoever wrote it meant it. Everything here walks
with an explicit stack and a budget: no input, however deep, wide or self-containing, can exhaust the host's stack or
its memory.

What does not live here: schemas (tools/manifest.py) and anything that knows about tools.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from time import time
from typing import Any

import msgspec

from lastword.errors import NotJSON as NotJSON

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
    return encode(reduce(value)[0], _encode_sorted)


def written(value: object) -> bytes:
    """The bytes of a value with its keys in the order in which they were written: what travels, is shown and sealed."""
    return reduce(value)[1]


# What is the same in a copy. Floats are not: whole ones are written as integers.
_SIMPLE = frozenset((int, bool, type(None)))


def reduce(value: object) -> tuple[Any, bytes]:
    """A value as `plain` gives it, and as `written` does. A record of simple fields, as most are, takes one look."""
    if type(value) is dict:
        copy: dict[Any, Any] = value.copy()  # First of all: another thread may change the original meanwhile.
        size = 0
        for key, item in copy.items():
            if type(key) is not str:
                break
            kind = type(item)
            if kind is str:
                size += len(item)
            elif kind not in _SIMPLE:
                if kind is not float:
                    break
                copy[key] = _scalar(item)
        else:
            # The rest of its size shows in the bytes, of which there are always more.
            if size <= MAX_SIZE and len(data := encode(copy)) <= MAX_SIZE:
                return copy, data
        value = copy
    try:
        fresh = plain(value)
    except RuntimeError:  # A dict inside of it that grew, and Python noticed.
        raise NotJSON("the value was changed while it was read", hint="pass a copy that nobody changes") from None
    return fresh, encode(fresh)


def encode(value: Any, encode: Callable[[Any], bytes] = _encode) -> bytes:
    """The bytes of what `plain` gave, in its order."""
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


# Sixteenths of a second in four bytes: they come round again after eight years, which harms nobody.
_TICKS = 16
# The system's random bytes are fetched so many at a time: to ask for each name alone is most of what a name costs.
_PAGE = 4096
_random: dict[int, list[bytes]] = {}
if hasattr(os, "register_at_fork"):  # A forked child must not hand out the names that its parent will.
    os.register_at_fork(after_in_child=_random.clear)


def new_id(size: int = 9) -> str:
    """A name that nobody has used and nobody can guess: for calls, runs, sessions and the nonces of approvals.

    It has `size` bytes in hexadecimal and begins with the time; all but the first four bytes are random. What is
    written down often is looked up often: names that come one after the other lie side by side in an index, and a
    transaction of a hundred calls touches a few pages of it instead of some hundred.
    """
    try:
        rest = _random[size].pop()  # One step, so threads need no lock for it.
    except (KeyError, IndexError):
        page, count = os.urandom(_PAGE), size - 4
        _random[size] = cut = [page[start : start + count] for start in range(0, _PAGE - count + 1, count)]
        rest = cut.pop()
    return ((int(time() * _TICKS) & 0xFFFFFFFF).to_bytes(4, "big") + rest).hex()


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


def weigh(
    value: Any, *, max_depth: int = MAX_DEPTH, max_size: int = MAX_SIZE, max_elements: int = MAX_SIZE
) -> tuple[int, int]:
    """The size of a value in characters and elements, as `plain` counts them, and how many of that are elements, which
    are most of the work; refuses what is too large or too deep."""
    size = elements = depth = 0
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
                # Counted before they are looked at, since looking is what a limit is against.
                size += len(item) + 1
                elements += len(item) + 1
                if size > max_size or elements > max_elements:
                    break
                if kind is dict:
                    size += sum(map(len, item))
                    item = item.values()
                inner += item
        if size > max_size:
            raise NotJSON(f"larger than {max_size} characters and elements")
        if elements > max_elements:
            raise NotJSON(f"larger than {max_elements} elements")
        level = inner
    return size, elements


def _scalar(value: object) -> Any:
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise NotJSON(f"{value} is not a JSON number")
        if value.is_integer() and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return int(value)
        return value
    if type(value) is str:
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
    # Beyond that it writes an exponent, and one digit before the point.
    mantissa, _, exponent = repr(value).partition("e")
    power = int(exponent)
    if -7 < power < 21:
        sign = "-" if value < 0 else ""
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{sign}0.{'0' * (-power - 1)}{digits}" if power < 0 else sign + digits.ljust(power + 1, "0")
    return f"{mantissa}e{power:+d}"


# Finding the shortest digits of a float is the work of so many other elements more.
_DIGITS_OF_A_FLOAT = 2


def write(
    value: Any, *, max_depth: int = MAX_DEPTH, max_size: int = MAX_SIZE, max_elements: int = MAX_SIZE
) -> tuple[str, int]:
    """A value as a script prints it, strings bare, the rest as `[1, a]` and `{k: v}`; and how much work it was, in
    elements."""
    parts: list[str] = []
    size = elements = 0
    # What is left of each container that is open, and how it closes. A tuple, which no value is, is an object's entry.
    around: list[tuple[Iterator[Any], str]] = [(iter((value,)), "")]
    while around:
        left, closing = around[-1]
        for item in left:
            if type(item) is tuple:
                key, item = item
                parts += (key, ": ")
                size += len(key) + 2
            kind = type(item)
            if kind is list or kind is dict:
                if len(around) > max_depth:
                    raise NotJSON(f"nested deeper than {max_depth} levels")
                elements += len(item) + 1
                if size + len(item) > max_size:
                    raise NotJSON(f"larger than {max_size} characters and elements")
                if elements > max_elements:
                    raise NotJSON(f"larger than {max_elements} elements")
                if item:
                    parts.append("[" if kind is list else "{")
                    size += 1
                    around.append((iter(item), "]") if kind is list else (iter(item.items()), "}"))
                    break
                piece = "[]" if kind is list else "{}"
            else:
                piece = item if kind is str else scalar_text(item)
                if kind is float:
                    elements += _DIGITS_OF_A_FLOAT
                    if elements > max_elements:
                        raise NotJSON(f"larger than {max_elements} elements")
            parts += (piece, ", ")
            size += len(piece) + 2
            if size > max_size + 2:
                raise NotJSON(f"larger than {max_size} characters and elements")
        else:
            around.pop()
            # The comma behind the last element becomes the bracket; what is around it goes on behind that.
            parts[-1] = closing
            if around:
                parts.append(", ")
                size += 1
    if size - 2 > max_size:
        raise NotJSON(f"larger than {max_size} characters and elements")
    return "".join(parts), elements


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


# What native equality compares as JSON does; booleans it takes for numbers.
_LIKE_PYTHON = frozenset((int, float, type(None)))
# Comparing so many characters, or so many elements that Python compares for us, is as much work as one other element.
_CHARACTERS_AT_ONCE = 2_048
_ELEMENTS_AT_ONCE = 8


def compare(left: Any, right: Any, *, max_size: int = MAX_SIZE, max_elements: int = MAX_SIZE) -> tuple[bool, int]:
    """Deep equality, and how much work it was to know, in elements; refuses what is too large or too much work."""
    size, work = 0, 1
    waiting = [(left, right)]
    while waiting:
        a, b = waiting.pop()
        kind, other = type(a), type(b)
        if kind is list or kind is dict:
            if kind is not other or len(a) != len(b):
                return False, work
            size += len(a) + 1
            if size > max_size:
                raise NotJSON(f"larger than {max_size} characters and elements")
            # Counted before they are looked at, since looking is what a limit is against.
            work += 1 + len(a) // _ELEMENTS_AT_ONCE
            easy = kind is list and len(a) >= _ELEMENTS_AT_ONCE and work <= max_elements and _like_python(a, b)
            if not easy:
                work += len(a)
            if work > max_elements:
                raise NotJSON(f"larger than {max_elements} elements")
            if easy:
                if a != b:
                    return False, work
            elif kind is list:
                waiting.extend(zip(a, b, strict=True))
            else:
                work += sum(map(len, a)) // _CHARACTERS_AT_ONCE
                for key, item in a.items():
                    if key not in b:
                        return False, work
                    waiting.append((item, b[key]))
        elif kind is str and other is str:
            if a is not b:
                if len(a) != len(b):
                    return False, work
                work += len(a) // _CHARACTERS_AT_ONCE
                if work > max_elements:
                    raise NotJSON(f"larger than {max_elements} elements")
                if a != b:
                    return False, work
        elif kind is bool or other is bool:
            if a is not b:
                return False, work
        elif a != b:
            return False, work
    return True, work


def _like_python(a: list[Any], b: list[Any]) -> bool:
    return _LIKE_PYTHON.issuperset(map(type, a)) and _LIKE_PYTHON.issuperset(map(type, b))
