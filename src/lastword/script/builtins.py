"""The built-in functions. All but PRINT and NOW are pure; NOW is the machine's, since the host must be asked. Those for
texts, and for single places of lists and objects, are in texts.py.

A function gets the run, for its budgets, the evaluated arguments and the token to blame. It pays for what it makes
before it makes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import add
from typing import Any

from lastword.script import texts
from lastword.script.arguments import CHARACTERS, Builtin
from lastword.script.arguments import number as _number
from lastword.script.arguments import want as _want
from lastword.script.arguments import whole as _whole
from lastword.script.errors import FormatKey, NumberRange, TypeMismatch
from lastword.script.operators import arithmetic, is_number, kind_of, nearest
from lastword.script.runtime import RunState, equality
from lastword.values import MAX_SAFE_INTEGER

# A double has 17 significant digits; more places than this change nothing that prints.
MAX_ROUND_DIGITS = 15
# What one takes, in steps: through a decimal number and back.
_ROUNDING = 15
# The same for an operation with every question asked, and for a number with a point that is written as text.
_ASKING = 5
_SHOWING = 12

PLACEHOLDER = re.compile(r"(\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_]*\})")
"""What FORMAT replaces: names in braces, and braces that are written twice. Every other brace stays as it is."""
DOUBLED = frozenset(["{{", "}}"])
# Possessive, as in the lexer: no text makes the pattern try twice.
_NUMBER = re.compile(r"\s*+[-+]?[0-9]++(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?\s*+")
_NUMBERS = frozenset([int, float])
_STRINGS = frozenset([str])
_SCALARS = frozenset([str, int, float, bool, type(None)])


def _print(run: RunState, arguments: list[Any], at: int) -> None:
    run.print(arguments[0], at)


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


def missing_key(key: str, known: Collection[str], at: int) -> FormatKey:
    """The error for a template that names a key the object has not."""
    return FormatKey(
        f"the template names {key}, and the object has no such key",
        at,
        hint=nearest(key, known) or f"add {key} to the object, or write {{{{{key}}}}} for plain braces",
    )


def _length(run: RunState, arguments: list[Any], at: int) -> int:
    return len(_want("LENGTH", "a list, a string or an object", arguments[0], (list, str, dict), at))


def _keys(run: RunState, arguments: list[Any], at: int) -> list[str]:
    value = _want("KEYS", "an object", arguments[0], (dict,), at)
    run.list(len(value), len(value) // 4, at)
    return list(value)


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


def _append(run: RunState, arguments: list[Any], at: int) -> list[Any]:
    items, item = arguments
    _want("APPEND", "a list", items, (list,), at)
    # Copying is fast: eight elements a step.
    run.work(1 + len(items) // 8, 9 + len(items), at)
    if len(items) >= run.limits.list_length:
        run.list(len(items) + 1, 0, at)
    return [*items, item]


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


def _round(run: RunState, arguments: list[Any], at: int) -> int | float:
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


def _min(run: RunState, arguments: list[Any], at: int) -> int | float:
    return min(_some_numbers(run, "MIN", arguments, at))


def _max(run: RunState, arguments: list[Any], at: int) -> int | float:
    return max(_some_numbers(run, "MAX", arguments, at))


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


def _split(run: RunState, arguments: list[Any], at: int) -> list[str]:
    whole = _want("SPLIT", "a string", arguments[0], (str,), at)
    separator = _want("SPLIT", "a separator that is a string", arguments[1], (str,), at)
    # Counting reads the text as much as cutting it does.
    run.work(len(whole) // CHARACTERS, 0, at)
    length = whole.count(separator) + 1 if separator else len(whole)
    run.list(length, length // 2 + len(whole) // CHARACTERS, at)
    run.work(0, 8 * length + len(whole) // 2, at)
    return whole.split(separator) if separator else list(whole)


def _to_number(run: RunState, arguments: list[Any], at: int) -> int | float:
    value = arguments[0]
    if is_number(value):
        number: int | float = value
        return number
    _want("NUMBER", "a string or a number", value, (str,), at)
    run.work(1 + len(value) // CHARACTERS, 0, at)
    if not _NUMBER.fullmatch(value):
        raise TypeMismatch("the string is not a number", at, hint='a number looks like "12", "-3.5" or "1e6"')
    parsed = float(value)
    if abs(parsed) == float("inf"):
        raise NumberRange("the number is too large for a double", at)
    return int(parsed) if abs(parsed) <= MAX_SAFE_INTEGER and parsed.is_integer() else parsed


def _to_string(run: RunState, arguments: list[Any], at: int) -> str:
    return run.show(arguments[0], at)


def _numbers(run: RunState, function: str, value: Any, at: int) -> list[int | float]:
    items: list[Any] = _want(function, "a list of numbers", value, (list,), at)
    run.work(1 + len(items) // 2, 0, at)
    if not _NUMBERS.issuperset(map(type, items)):
        wrong = next(item for item in items if not is_number(item))
        raise TypeMismatch(f"{function} takes a list of numbers, and one element is {kind_of(wrong)}", at)
    return items


def _some_numbers(run: RunState, function: str, arguments: list[Any], at: int) -> list[int | float]:
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
        *texts.BUILTINS,
    )
}


def _now(run: RunState, arguments: list[Any], at: int) -> Any:
    """The machine asks the host; see program.py. An awaitable is waited for there."""
    run.at = at
    return run.host.now()


NOW = Builtin("NOW", 0, 0, "NOW()", "milliseconds since 1970", (), "number", _now)
BUILTINS["NOW"] = NOW
