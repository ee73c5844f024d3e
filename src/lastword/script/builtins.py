"""The built-in functions: how they do it, what they ask of their arguments, and what a model is told about them.

All but PRINT and NOW are pure; NOW is the machine's, since the host must be asked. A function gets the run, for its
budgets, the evaluated arguments and the token to blame. It pays for what it makes before it makes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from functools import partial, reduce
from operator import add
from typing import Any

import msgspec

from lastword.script.hints import missing_key
from lastword.script.operators import arithmetic, is_number, kind_of
from lastword.script.runtime import RunState, equality
from lastword.script.tokens import IndexOutOfBounds, LimitExceeded, NumberRange, TypeMismatch
from lastword.values import MAX_SAFE_INTEGER

Body = Callable[[RunState, list[Any], int], Any]

# No function takes so many arguments that counting them matters.
MANY = 1_000_000
# A double has 17 significant digits; more places than this change nothing that prints.
MAX_ROUND_DIGITS = 15

# What a list and an object take, in words, before their elements, and each entry of an object.
LIST_WORDS = 8
OBJECT_WORDS = 24
ENTRY_WORDS = 8
# The words that a character of JSON can turn into at most: "[]," is a list and its place in another.
_WORDS_IN_JSON = 3
# What a run of a pattern, or a search, takes for a character: a sixteenth of a step.
CHARACTERS = 16
# A character that is not ASCII has its other case looked up in a table: a quarter of a step.
_LOOKED_UP = 4
# Steps for a list, an object, or an entry of one that is read from JSON: it is made, put in its place, and looked at by
# every garbage collection until then.
_READING_A_PART = 5
# Steps for rounding a number: through a decimal number and back.
_ROUNDING = 15
# The same for an operation with every question asked, and for a number with a point that is written as text.
_ASKING = 5
_SHOWING = 12

PLACEHOLDER = re.compile(r"(\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_]*\})")
"""What FORMAT replaces: names in braces, and braces that are written twice. Every other brace stays as it is."""
DOUBLED = frozenset(["{{", "}}"])
# A template with more gaps is cut when it is used, where that is paid for.
MAX_GAPS = 200
# Possessive, as in tokens.py: no text makes the pattern try twice.
_NUMBER = re.compile(r"\s*+[-+]?[0-9]++(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?\s*+")
_NUMBERS = frozenset([int, float])
_STRINGS = frozenset([str])
_SCALARS = frozenset([str, int, float, bool, type(None)])
_decode = msgspec.json.Decoder().decode


class Builtin(msgspec.Struct, frozen=True):
    """A function, how many arguments it takes, and what a model is told about it."""

    name: str
    least: int
    most: int
    usage: str
    summary: str
    takes: tuple[str, ...]
    """The types of the arguments, for the checker: several are joined by |, and * is any."""
    gives: str
    body: Body


BUILTINS: dict[str, Builtin] = {}
"""The functions by name, in the order in which a model is told of them."""


def _builtin(
    usage: str, summary: str, takes: str, gives: str, *, least: int | None = None, most: int | None = None
) -> Callable[[Body], Body]:
    """Enter a function into the table. It takes all of its arguments, where nothing else is said."""
    name, kinds = usage.partition("(")[0], tuple(takes.split())
    fewest, highest = len(kinds) if least is None else least, len(kinds) if most is None else most

    def enter(body: Body) -> Body:
        BUILTINS[name] = Builtin(name, fewest, highest, usage, summary, kinds, gives, body)
        return body

    return enter


def _want(function: str, wanted: str, value: Any, kinds: tuple[type, ...], at: int) -> Any:
    """A value of one of these kinds."""
    if type(value) not in kinds:
        raise TypeMismatch(f"{function} takes {wanted}, not {kind_of(value)}", at)
    return value


def _number(function: str, value: Any, at: int) -> Any:
    if not is_number(value):
        raise TypeMismatch(f"{function} takes numbers, not {kind_of(value)}", at)
    return value


def _whole(function: str, value: Any, at: int) -> int:
    """A whole number that a double holds exactly."""
    if _number(function, value, at) != value // 1:
        raise TypeMismatch(f"{function} takes whole numbers, not {value}", at)
    if abs(value) > MAX_SAFE_INTEGER:
        raise NumberRange(f"{function} takes numbers up to 2^53", at)
    return int(value)


@_builtin("PRINT(value)", "write one line of output", "*", "null")
def _print(run: RunState, arguments: list[Any], at: int) -> None:
    run.print(arguments[0], at)


@_builtin('FORMAT("{a}: {b}", {a: 1, b: x})', "text with values in it", "string object", "string")
def _format(run: RunState, arguments: list[Any], at: int) -> str:
    template, values = arguments
    _want("FORMAT", "a template that is a string", template, (str,), at)
    _want("FORMAT", "an object of values", values, (dict,), at)
    # Every brace may be cut at, and cutting is dear; the text between them is passed over.
    run.work(2 * (template.count("{") + template.count("}")) + len(template) // CHARACTERS, 0, at)
    pieces = PLACEHOLDER.split(template)
    run.work(_SHOWING * (len(pieces) // 2), 0, at)
    for number in range(1, len(pieces), 2):
        hole = pieces[number]
        if hole in DOUBLED:
            pieces[number] = hole[0]
        elif hole[1:-1] in values:
            pieces[number] = run.show(values[hole[1:-1]], at)
        else:
            raise missing_key(hole[1:-1], values, at)
    # The pieces are references to strings that exist, so only joining them takes memory.
    run.string(sum(map(len, pieces)), at)
    return "".join(pieces)


@_builtin("LENGTH(x)", "of a list, string or object", "list|string|object", "number")
def _length(run: RunState, arguments: list[Any], at: int) -> int:
    return len(_want("LENGTH", "a list, a string or an object", arguments[0], (list, str, dict), at))


@_builtin("KEYS(object)", "its keys, in order", "object", "list")
def _keys(run: RunState, arguments: list[Any], at: int) -> list[str]:
    value = _want("KEYS", "an object", arguments[0], (dict,), at)
    run.list(len(value), len(value) // 4, at)
    return list(value)


@_builtin("CONTAINS(whole, part)", "an element, a key or a piece of text is there", "list|string|object *", "boolean")
def _contains(run: RunState, arguments: list[Any], at: int) -> bool:
    whole, part = arguments
    _want("CONTAINS", "a list, a string or an object", whole, (list, str, dict), at)
    if type(whole) is list:
        return _has_element(run, whole, part, at)
    _want("CONTAINS", f"a string to look for in {kind_of(whole)}", part, (str,), at)
    run.work(len(whole if type(whole) is str else part) // CHARACTERS, 0, at)
    return part in whole


def _has_element(run: RunState, items: list[Any], part: Any, at: int) -> bool:
    run.work(1 + len(items), 0, at)
    kind = type(part)
    if kind not in _SCALARS:
        run.work(_ASKING * len(items), 0, at)
        return any(equality([run], item, part, at) for item in items)
    same = _NUMBERS if kind in _NUMBERS else frozenset([kind])
    alike = [item for item in items if type(item) in same]
    if kind is str and len(part) >= CHARACTERS:
        # Only strings of one length are compared by their characters.
        alike = [item for item in alike if len(item) == len(part)]
        run.work(len(alike) * (len(part) // 512), 0, at)
    return part in alike


@_builtin("APPEND(list, value)", "a longer list", "list *", "list")
def _append(run: RunState, arguments: list[Any], at: int) -> list[Any]:
    items, item = arguments
    _want("APPEND", "a list", items, (list,), at)
    # Copying is fast: eight elements a step.
    run.work(1 + len(items) // 8, 9 + len(items), at)
    if len(items) >= run.limits.list_length:
        run.list(len(items) + 1, 0, at)
    return [*items, item]


@_builtin(
    "RANGE(n), RANGE(from, to), RANGE(from, to, step)",
    "whole numbers, the end left out",
    "number number number",
    "list",
    least=1,
)
def _range(run: RunState, arguments: list[Any], at: int) -> list[int]:
    numbers = [_whole("RANGE", number, at) for number in arguments]
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if step == 0:
        raise NumberRange("a RANGE with steps of 0 never ends", at)
    result = range(start, stop, step)
    # A range of more than 2^63 numbers has no length that Python could give.
    length = max(0, -((start - stop) // step))
    run.list(min(length, run.limits.list_length + 1), length // 4, at)
    run.work(0, 4 * length, at)
    return list(result)


@_builtin("ROUND(x), ROUND(x, digits)", "halves away from zero", "number number", "number", least=1)
def _round(run: RunState, arguments: list[Any], at: int) -> Any:
    value = _number("ROUND", arguments[0], at)
    digits = _whole("ROUND", arguments[1], at) if len(arguments) == 2 else 0
    if not 0 <= digits <= MAX_ROUND_DIGITS:
        raise NumberRange(f"ROUND takes 0 to {MAX_ROUND_DIGITS} digits", at)
    if type(value) is int or abs(value) >= MAX_SAFE_INTEGER:
        return value
    run.work(_ROUNDING, 0, at)
    # What is rounded is the number as it prints, so that 2.675 becomes 2.68 as a person expects.
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return int(rounded) if digits == 0 else float(rounded)


@_builtin("SUM(list)", "of numbers", "list", "number")
def _sum(run: RunState, arguments: list[Any], at: int) -> int | float:
    numbers = _numbers(run, "SUM", arguments[0], at)
    run.work(len(numbers), 0, at)
    if numbers and len(numbers) * max(abs(min(numbers)), abs(max(numbers))) <= MAX_SAFE_INTEGER:
        # No partial sum needs a question. Python's own `sum` rounds in another way.
        return reduce(add, numbers)
    run.work(_ASKING * len(numbers), 0, at)
    total: int | float = 0
    for number in numbers:
        total = arithmetic("+", total, number, at)
    return total


def _extreme(
    function: str, choose: Callable[..., int | float], run: RunState, arguments: list[Any], at: int
) -> int | float:
    numbers = _numbers(run, function, arguments[0] if len(arguments) == 1 else arguments, at)
    if not numbers:
        raise TypeMismatch(f"{function} of an empty list has no value", at, hint="ask for LENGTH first")
    return choose(numbers)


for _name, _summary, _choose in (("MIN", "the smallest number", min), ("MAX", "the largest number", max)):
    _enter = _builtin(f"{_name}(list), {_name}(a, b)", _summary, "list|number number", "number", least=1, most=MANY)
    _enter(partial(_extreme, _name, _choose))


@_builtin('SORT(list), SORT(list, "key")', "numbers or strings, or objects by a key", "list string", "list", least=1)
def _sort(run: RunState, arguments: list[Any], at: int) -> list[Any]:
    items = _want("SORT", "a list", arguments[0], (list,), at)
    count = len(items)
    run.list(count, count, at)
    keys = items
    if len(arguments) == 2:
        key = _want("SORT", "a key that is a string", arguments[1], (str,), at)
        for item in items:
            if type(item) is not dict or key not in item:
                raise TypeMismatch(f"SORT by {key} needs a list of objects that all have {key}", at)
        keys = [item[key] for item in items]
    kinds = set(map(type, keys))
    if not (kinds <= _NUMBERS or kinds <= _STRINGS):
        raise TypeMismatch("SORT takes all numbers or all strings", at)
    # Sorting takes n log n comparisons. A step is one of an integer with a float, two of strings, or three of numbers
    # of one kind.
    run.work(count * count.bit_length() // (1 if len(kinds) > 1 else 2 if str in kinds else 3), 0, at)
    if kinds == _STRINGS:
        run.work(sum(map(len, keys)) // 512 * count.bit_length(), 0, at)
    order = sorted(range(count), key=keys.__getitem__)
    return [items[index] for index in order]


@_builtin('JOIN(list, ", ")', "one string", "list string", "string")
def _join(run: RunState, arguments: list[Any], at: int) -> str:
    items = _want("JOIN", "a list", arguments[0], (list,), at)
    separator: str = _want("JOIN", "a separator that is a string", arguments[1], (str,), at)
    run.work(len(items), len(items), at)
    kinds = set(map(type, items))
    pieces = items
    if not kinds <= _STRINGS:
        run.work((_SHOWING if float in kinds else _ASKING) * len(items), 0, at)
        pieces = [run.show(item, at) for item in items]
    run.string(len(separator) * max(0, len(items) - 1) + sum(map(len, pieces)), at)
    return separator.join(pieces)


@_builtin('SPLIT(string, ",")', "a list of strings", "string string", "list")
def _split(run: RunState, arguments: list[Any], at: int) -> list[str]:
    whole = _want("SPLIT", "a string", arguments[0], (str,), at)
    separator = _want("SPLIT", "a separator that is a string", arguments[1], (str,), at)
    # Counting reads the text as much as cutting it does.
    run.work(len(whole) // CHARACTERS, 0, at)
    length = whole.count(separator) + 1 if separator else len(whole)
    run.list(length, length // 2 + len(whole) // CHARACTERS, at)
    run.work(0, 8 * length + len(whole) // 2, at)
    return whole.split(separator) if separator else list(whole)


@_builtin('NUMBER("12.5")', "a number from text", "string|number", "number")
def _to_number(run: RunState, arguments: list[Any], at: int) -> Any:
    value = arguments[0]
    if is_number(value):
        return value
    _want("NUMBER", "a string or a number", value, (str,), at)
    run.work(1 + len(value) // CHARACTERS, 0, at)
    if not _NUMBER.fullmatch(value):
        raise TypeMismatch("the string is not a number", at, hint='a number looks like "12", "-3.5" or "1e6"')
    parsed = float(value)
    if abs(parsed) == float("inf"):
        raise NumberRange("the number is too large for a double", at)
    return int(parsed) if abs(parsed) <= MAX_SAFE_INTEGER and parsed.is_integer() else parsed


@_builtin("STRING(value)", "as PRINT would write it", "*", "string")
def _to_string(run: RunState, arguments: list[Any], at: int) -> str:
    return run.show(arguments[0], at)


def _numbers(run: RunState, function: str, value: Any, at: int) -> list[int | float]:
    items: list[Any] = _want(function, "a list of numbers", value, (list,), at)
    run.work(1 + len(items) // 2, 0, at)
    if not _NUMBERS.issuperset(map(type, items)):
        wrong = next(item for item in items if not is_number(item))
        raise TypeMismatch(f"{function} takes a list of numbers, and one element is {kind_of(wrong)}", at)
    return items


@_builtin("PUT(object, key, value)", "a new object with that key", "object string *", "object")
def _put(run: RunState, arguments: list[Any], at: int) -> dict[str, Any]:
    value = _want("PUT", "an object", arguments[0], (dict,), at)
    key = _want("PUT", "a key that is a string", arguments[1], (str,), at)
    count = len(value)
    run.work(2 + count // 4, OBJECT_WORDS + ENTRY_WORDS * (count + 1), at)
    return {**value, key: arguments[2]}


@_builtin(
    "GET(value, key, default)",
    "a key of an object or an index of a list, or the default",
    "object|list|null string|number *",
    "any",
)
def _get(run: RunState, arguments: list[Any], at: int) -> Any:
    value, key, default = arguments
    _want("GET", "an object, a list or null", value, (dict, list, type(None)), at)
    if type(value) is dict:
        return value.get(_want("GET", "a key that is a string", key, (str,), at), default)
    if value is None:
        return default
    index = _whole("GET", key, at)
    return value[index] if 0 <= index < len(value) else default


def _in_case(function: str, change: Callable[[str], str], run: RunState, arguments: list[Any], at: int) -> str:
    text = _want(function, "a string", arguments[0], (str,), at)
    run.string(len(text), at)
    if not text.isascii():
        run.work(len(text) // _LOOKED_UP, 0, at)
    made = change(text)
    if len(made) > len(text):
        # Some letters are two or three in the other case.
        run.string(len(made), at)
    return made


for _name, _summary, _change in (("UPPER", "in capitals", str.upper), ("LOWER", "in small letters", str.lower)):
    _builtin(f"{_name}(text)", _summary, "string", "string")(partial(_in_case, _name, _change))


@_builtin("TRIM(text)", "without blanks at its ends", "string", "string")
def _trim(run: RunState, arguments: list[Any], at: int) -> str:
    text: str = _want("TRIM", "a string", arguments[0], (str,), at)
    run.string(len(text), at)
    return text.strip()


@_builtin("REPLACE(text, old, new)", "in every place", "string string string", "string")
def _replace(run: RunState, arguments: list[Any], at: int) -> Any:
    text = _want("REPLACE", "a string", arguments[0], (str,), at)
    old = _want("REPLACE", "a string to look for", arguments[1], (str,), at)
    new = _want("REPLACE", "a string to put there", arguments[2], (str,), at)
    if not old:
        raise TypeMismatch("REPLACE takes a string to look for that is not empty", at)
    # Counting reads the text as much as replacing does.
    run.work(1 + len(text) // CHARACTERS, 0, at)
    found = text.count(old)
    run.work(found // 2, 0, at)
    run.string(len(text) + found * (len(new) - len(old)), at)
    return text.replace(old, new)


@_builtin(
    "SLICE(x, from), SLICE(x, from, to)",
    "part of a text or list, from 0, the end left out",
    "string|list number number",
    "any",
    least=2,
)
def _slice(run: RunState, arguments: list[Any], at: int) -> Any:
    value = _want("SLICE", "a string or a list", arguments[0], (str, list), at)
    start = _whole("SLICE", arguments[1], at)
    end = _whole("SLICE", arguments[2], at) if len(arguments) == 3 else len(value)
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


@_builtin("PARSE_JSON(text)", "the value that it holds", "string", "any")
def _parse_json(run: RunState, arguments: list[Any], at: int) -> Any:
    text = _want("PARSE_JSON", "a string", arguments[0], (str,), at)
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


@_builtin("NOW()", "milliseconds since 1970", "", "number")
def _now(run: RunState, arguments: list[Any], at: int) -> Any:
    """The machine asks the host; see compiler.py. An awaitable is waited for there."""
    run.at = at
    return run.host.now()
