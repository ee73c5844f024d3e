"""The built-in functions. All but PRINT and NOW are pure; NOW is the machine's, since the host must be asked.

A function gets the run, for its budgets, the evaluated arguments and the token to blame. It pays for what it makes
before it makes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from lastword.script.errors import FormatKey, NumberRange, TypeMismatch
from lastword.script.operators import arithmetic, is_number, kind_of, nearest
from lastword.script.runtime import Run, equality
from lastword.values import MAX_SAFE_INTEGER

Body = Callable[[Run, list[Any], int], Any]

# A double has 17 significant digits; more places than this change nothing that prints.
MAX_ROUND_DIGITS = 15

PLACEHOLDER = re.compile(r"(\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_]*\})")
"""What FORMAT replaces: names in braces, and braces that are written twice. Every other brace stays as it is."""
DOUBLED = frozenset(["{{", "}}"])
_NUMBER = re.compile(r"\s*[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\s*")


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


def _print(run: Run, arguments: list[Any], at: int) -> None:
    run.print(arguments[0], at)


def _format(run: Run, arguments: list[Any], at: int) -> str:
    template, values = arguments
    _want("FORMAT", "a template that is a string", template, (str,), at)
    _want("FORMAT", "an object of values", values, (dict,), at)
    pieces = PLACEHOLDER.split(template)
    length = 0
    for number in range(1, len(pieces), 2):
        hole = pieces[number]
        if hole in DOUBLED:
            pieces[number] = hole[0]
        elif hole[1:-1] in values:
            pieces[number] = run.show(values[hole[1:-1]], at)
            length += len(pieces[number])
        else:
            raise missing_key(hole[1:-1], values, at)
    # The pieces are references to strings that exist, so only joining them takes memory.
    run.string(len(template) + length, at)
    return "".join(pieces)


def missing_key(key: str, known: Collection[str], at: int) -> FormatKey:
    """The error for a template that names a key the object has not."""
    return FormatKey(
        f"the template names {key}, and the object has no such key",
        at,
        hint=nearest(key, known) or f"add {key} to the object, or write {{{{{key}}}}} for plain braces",
    )


def _length(run: Run, arguments: list[Any], at: int) -> int:
    return len(_want("LENGTH", "a list, a string or an object", arguments[0], (list, str, dict), at))


def _keys(run: Run, arguments: list[Any], at: int) -> list[str]:
    value = _want("KEYS", "an object", arguments[0], (dict,), at)
    run.list(len(value), at)
    return list(value)


def _contains(run: Run, arguments: list[Any], at: int) -> bool:
    whole, part = arguments
    _want("CONTAINS", "a list, a string or an object", whole, (list, str, dict), at)
    if type(whole) is list:
        run.work(len(whole), 0, at)
        return any(equality([run], item, part, at) for item in whole)
    _want("CONTAINS", f"a string to look for in {kind_of(whole)}", part, (str,), at)
    if type(whole) is str:
        run.work(len(whole) // 8, 0, at)
    return part in whole


def _append(run: Run, arguments: list[Any], at: int) -> list[Any]:
    items, item = arguments
    _want("APPEND", "a list", items, (list,), at)
    # Copying is fast: eight elements a step.
    run.work(1 + len(items) // 8, 9 + len(items), at)
    if len(items) >= run.limits.list_length:
        run.list(len(items) + 1, at)
    return [*items, item]


def _range(run: Run, arguments: list[Any], at: int) -> list[int]:
    numbers = [_whole("RANGE", number, at) for number in arguments]
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if step == 0:
        raise NumberRange("a RANGE with steps of 0 never ends", at)
    result = range(start, stop, step)
    # A range of more than 2^63 numbers has no length that Python could give.
    length = max(0, -((start - stop) // step))
    run.list(min(length, run.limits.list_length + 1), at)
    run.work(0, 4 * length, at)
    return list(result)


def _round(run: Run, arguments: list[Any], at: int) -> int | float:
    value = _number("ROUND", arguments[0], at)
    digits = _whole("ROUND", arguments[1], at) if len(arguments) == 2 else 0
    if not 0 <= digits <= MAX_ROUND_DIGITS:
        raise NumberRange(f"ROUND takes 0 to {MAX_ROUND_DIGITS} digits", at)
    if type(value) is int or abs(value) >= MAX_SAFE_INTEGER:
        return value
    # What is rounded is the number as it prints, so that 2.675 becomes 2.68 as a person expects.
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return int(rounded) if digits == 0 else float(rounded)


def _sum(run: Run, arguments: list[Any], at: int) -> int | float:
    total: int | float = 0
    for number in _numbers(run, "SUM", arguments[0], at):
        total = arithmetic("+", total, number, at)
    return total


def _min(run: Run, arguments: list[Any], at: int) -> int | float:
    return min(_some_numbers(run, "MIN", arguments, at))


def _max(run: Run, arguments: list[Any], at: int) -> int | float:
    return max(_some_numbers(run, "MAX", arguments, at))


def _sort(run: Run, arguments: list[Any], at: int) -> list[Any]:
    items = _want("SORT", "a list", arguments[0], (list,), at)
    # Sorting n elements takes n log n comparisons.
    run.list(len(items), at)
    run.work(len(items) * len(items).bit_length(), 0, at)
    keys = items
    if len(arguments) == 2:
        key = _want("SORT", "a key that is a string", arguments[1], (str,), at)
        for item in items:
            if type(item) is not dict or key not in item:
                raise TypeMismatch(f"SORT by {key} needs a list of objects that all have {key}", at)
        keys = [item[key] for item in items]
    if not (all(map(is_number, keys)) or all(type(item) is str for item in keys)):
        raise TypeMismatch("SORT takes all numbers or all strings", at)
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[index] for index in order]


def _join(run: Run, arguments: list[Any], at: int) -> str:
    items = _want("JOIN", "a list", arguments[0], (list,), at)
    separator: str = _want("JOIN", "a separator that is a string", arguments[1], (str,), at)
    run.work(len(items), len(items), at)
    pieces = [run.show(item, at) for item in items]
    run.string(len(separator) * max(0, len(items) - 1) + sum(map(len, pieces)), at)
    return separator.join(pieces)


def _split(run: Run, arguments: list[Any], at: int) -> list[str]:
    whole = _want("SPLIT", "a string", arguments[0], (str,), at)
    separator = _want("SPLIT", "a separator that is a string", arguments[1], (str,), at)
    length = whole.count(separator) + 1 if separator else len(whole)
    run.list(length, at)
    run.work(len(whole) // 8, 9 * length + len(whole) // 2, at)
    return whole.split(separator) if separator else list(whole)


def _to_number(run: Run, arguments: list[Any], at: int) -> int | float:
    value = arguments[0]
    if is_number(value):
        number: int | float = value
        return number
    _want("NUMBER", "a string or a number", value, (str,), at)
    if not _NUMBER.fullmatch(value):
        raise TypeMismatch("the string is not a number", at, hint='a number looks like "12", "-3.5" or "1e6"')
    parsed = float(value)
    if abs(parsed) == float("inf"):
        raise NumberRange("the number is too large for a double", at)
    return int(parsed) if abs(parsed) <= MAX_SAFE_INTEGER and parsed.is_integer() else parsed


def _to_string(run: Run, arguments: list[Any], at: int) -> str:
    return run.show(arguments[0], at)


def _want(function: str, wanted: str, value: Any, kinds: tuple[type, ...], at: int) -> Any:
    if type(value) not in kinds:
        raise TypeMismatch(f"{function} takes {wanted}, not {kind_of(value)}", at)
    return value


def _number(function: str, value: Any, at: int) -> int | float:
    if not is_number(value):
        raise TypeMismatch(f"{function} takes numbers, not {kind_of(value)}", at)
    number: int | float = value
    return number


def _whole(function: str, value: Any, at: int) -> int:
    number = _number(function, value, at)
    if number != number // 1:
        raise TypeMismatch(f"{function} takes whole numbers, not {number}", at)
    if abs(number) > MAX_SAFE_INTEGER:
        raise NumberRange(f"{function} takes numbers up to 2^53", at)
    return int(number)


def _numbers(run: Run, function: str, value: Any, at: int) -> list[int | float]:
    items: list[Any] = _want(function, "a list of numbers", value, (list,), at)
    run.work(len(items), 0, at)
    for item in items:
        if not is_number(item):
            raise TypeMismatch(f"{function} takes a list of numbers, and one element is {kind_of(item)}", at)
    return items


def _some_numbers(run: Run, function: str, arguments: list[Any], at: int) -> list[int | float]:
    numbers = _numbers(run, function, arguments[0] if len(arguments) == 1 else arguments, at)
    if not numbers:
        raise TypeMismatch(f"{function} of an empty list has no value", at, hint="ask for LENGTH first")
    return numbers


# No function takes so many arguments that counting them matters.
MANY = 1_000_000

BUILTINS: dict[str, Builtin] = {
    builtin.name: builtin
    for builtin in (
        Builtin("PRINT", 1, 1, "PRINT(value)", "write one line of output", ("*",), "null", _print),
        Builtin(
            "FORMAT",
            2,
            2,
            'FORMAT("{a}: {b}", {a: 1, b: x})',
            "text with values in it",
            ("string", "object"),
            "string",
            _format,
        ),
        Builtin("LENGTH", 1, 1, "LENGTH(x)", "of a list, string or object", ("list|string|object",), "number", _length),
        Builtin("KEYS", 1, 1, "KEYS(object)", "its keys, in order", ("object",), "list", _keys),
        Builtin(
            "CONTAINS",
            2,
            2,
            "CONTAINS(whole, part)",
            "an element, a key or a piece of text is there",
            ("list|string|object", "*"),
            "boolean",
            _contains,
        ),
        Builtin("APPEND", 2, 2, "APPEND(list, value)", "a longer list", ("list", "*"), "list", _append),
        Builtin(
            "RANGE",
            1,
            3,
            "RANGE(n), RANGE(from, to), RANGE(from, to, step)",
            "whole numbers, the end left out",
            ("number", "number", "number"),
            "list",
            _range,
        ),
        Builtin(
            "ROUND",
            1,
            2,
            "ROUND(x), ROUND(x, digits)",
            "halves away from zero",
            ("number", "number"),
            "number",
            _round,
        ),
        Builtin("SUM", 1, 1, "SUM(list)", "of numbers", ("list",), "number", _sum),
        Builtin(
            "MIN",
            1,
            MANY,
            "MIN(list), MIN(a, b)",
            "the smallest number",
            ("list|number", "number"),
            "number",
            _min,
        ),
        Builtin(
            "MAX",
            1,
            MANY,
            "MAX(list), MAX(a, b)",
            "the largest number",
            ("list|number", "number"),
            "number",
            _max,
        ),
        Builtin(
            "SORT",
            1,
            2,
            'SORT(list), SORT(list, "key")',
            "numbers or strings, or objects by a key",
            ("list", "string"),
            "list",
            _sort,
        ),
        Builtin("JOIN", 2, 2, 'JOIN(list, ", ")', "one string", ("list", "string"), "string", _join),
        Builtin("SPLIT", 2, 2, 'SPLIT(string, ",")', "a list of strings", ("string", "string"), "list", _split),
        Builtin("NUMBER", 1, 1, 'NUMBER("12.5")', "a number from text", ("string|number",), "number", _to_number),
        Builtin("STRING", 1, 1, "STRING(value)", "as PRINT would write it", ("*",), "string", _to_string),
    )
}


def _now(run: Run, arguments: list[Any], at: int) -> Any:
    """The machine asks the host; see program.py. An awaitable is waited for there."""
    run.at = at
    return run.host.now()


NOW = Builtin("NOW", 0, 0, "NOW()", "milliseconds since 1970", (), "number", _now)
BUILTINS["NOW"] = NOW
