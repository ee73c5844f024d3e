"""The built-in functions that take texts apart, and lists and objects by their places.

All are pure and pay by length, before they make what they give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lastword.script.arguments import CHARACTERS, Builtin, want, whole
from lastword.script.errors import IndexOutOfBounds, LimitExceeded, NumberRange, TypeMismatch
from lastword.script.runtime import RunState

# What an object takes, in words, before its entries and for each of them.
_OBJECT_WORDS = 24
_ENTRY_WORDS = 8
# A character that is not ASCII has its other case looked up in a table: a quarter of a step.
_LOOKED_UP = 4
# The words that a character of JSON can turn into at most: "[]," is a list and its place in another.
_WORDS_IN_JSON = 3
# Steps for a list, an object, or an entry of one that is read from JSON: it is made, put in its place, and looked at by
# every garbage collection until then.
_READING_A_PART = 5

_decode = msgspec.json.Decoder().decode


def _put(run: RunState, arguments: list[Any], at: int) -> dict[str, Any]:
    whole_object = want("PUT", "an object", arguments[0], (dict,), at)
    key = want("PUT", "a key that is a string", arguments[1], (str,), at)
    count = len(whole_object)
    run.work(2 + count // 4, _OBJECT_WORDS + _ENTRY_WORDS * (count + 1), at)
    made: dict[str, Any] = whole_object.copy()
    made[key] = arguments[2]
    return made


def _get(run: RunState, arguments: list[Any], at: int) -> Any:
    value, key, default = arguments
    want("GET", "an object, a list or null", value, (dict, list, type(None)), at)
    if type(value) is dict:
        return value.get(want("GET", "a key that is a string", key, (str,), at), default)
    if value is None:
        return default
    index = whole("GET", key, at)
    return value[index] if 0 <= index < len(value) else default


def _upper(run: RunState, arguments: list[Any], at: int) -> str:
    return _in_case(run, "UPPER", arguments[0], str.upper, at)


def _lower(run: RunState, arguments: list[Any], at: int) -> str:
    return _in_case(run, "LOWER", arguments[0], str.lower, at)


def _in_case(run: RunState, function: str, text: Any, change: Callable[[str], str], at: int) -> str:
    want(function, "a string", text, (str,), at)
    run.string(len(text), at)
    if not text.isascii():
        run.work(len(text) // _LOOKED_UP, 0, at)
    made = change(text)
    if len(made) > len(text):
        # Some letters are two or three in the other case.
        run.string(len(made), at)
    return made


def _trim(run: RunState, arguments: list[Any], at: int) -> str:
    text: str = want("TRIM", "a string", arguments[0], (str,), at)
    run.string(len(text), at)
    return text.strip()


def _replace(run: RunState, arguments: list[Any], at: int) -> str:
    text = want("REPLACE", "a string", arguments[0], (str,), at)
    old = want("REPLACE", "a string to look for", arguments[1], (str,), at)
    new = want("REPLACE", "a string to put there", arguments[2], (str,), at)
    if not old:
        raise TypeMismatch("REPLACE takes a string to look for that is not empty", at)
    # Counting reads the text as much as replacing does.
    run.work(1 + len(text) // CHARACTERS, 0, at)
    found = text.count(old)
    run.work(found // 2, 0, at)
    run.string(len(text) + found * (len(new) - len(old)), at)
    replaced: str = text.replace(old, new)
    return replaced


def _slice(run: RunState, arguments: list[Any], at: int) -> Any:
    value = want("SLICE", "a string or a list", arguments[0], (str, list), at)
    start = whole("SLICE", arguments[1], at)
    end = whole("SLICE", arguments[2], at) if len(arguments) == 3 else len(value)
    if start < 0 or end < 0:
        raise IndexOutOfBounds(
            "SLICE counts from 0, and nothing is before that", at, hint="from the end: LENGTH(x) - 3"
        )
    length = max(0, min(end, len(value)) - start)
    if type(value) is str:
        run.string(length, at)
    else:
        run.list(length, length // 8, at)
    return value[start:end]


def _parse_json(run: RunState, arguments: list[Any], at: int) -> Any:
    text = want("PARSE_JSON", "a string", arguments[0], (str,), at)
    length = len(text)
    run.string(length, at)
    # What it will hold shows in its signs, without reading it.
    steps = text.count(",") + _READING_A_PART * (text.count("[") + text.count("{") + text.count(":"))
    run.work(1 + length // CHARACTERS + steps, _WORDS_IN_JSON * length, at)
    try:
        value = _decode(text)
    except RecursionError:
        raise LimitExceeded(f"the value is nested deeper than {run.limits.value_depth} levels", at) from None
    except msgspec.ValidationError:
        raise NumberRange("the text holds a number that is too large", at) from None
    except ValueError as problem:
        # JSON, or characters that no JSON can hold.
        why = str(problem).rpartition("malformed: ")[2] if isinstance(problem, msgspec.DecodeError) else "a character"
        hint = 'JSON has double quotes around names and texts: {"a": [1, "two", null]}'
        raise TypeMismatch(f"the text is not JSON: {why}", at, hint=hint) from None
    # How deep it nests is asked where it leaves the script, as of every value.
    return value


BUILTINS = (
    Builtin(
        "PUT",
        3,
        3,
        "PUT(object, key, value)",
        "a new object with that key",
        ("object", "string", "*"),
        "object",
        _put,
    ),
    Builtin(
        "GET",
        3,
        3,
        "GET(value, key, default)",
        "a key of an object or an index of a list, or the default",
        ("object|list|null", "string|number", "*"),
        "any",
        _get,
    ),
    Builtin("UPPER", 1, 1, "UPPER(text)", "in capitals", ("string",), "string", _upper),
    Builtin("LOWER", 1, 1, "LOWER(text)", "in small letters", ("string",), "string", _lower),
    Builtin("TRIM", 1, 1, "TRIM(text)", "without blanks at its ends", ("string",), "string", _trim),
    Builtin(
        "REPLACE",
        3,
        3,
        "REPLACE(text, old, new)",
        "in every place",
        ("string", "string", "string"),
        "string",
        _replace,
    ),
    Builtin(
        "SLICE",
        2,
        3,
        "SLICE(x, from), SLICE(x, from, to)",
        "part of a text or list, from 0, the end left out",
        ("string|list", "number", "number"),
        "any",
        _slice,
    ),
    Builtin("PARSE_JSON", 1, 1, "PARSE_JSON(text)", "the value that it holds", ("string",), "any", _parse_json),
)
