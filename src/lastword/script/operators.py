"""What the operators do, exactly: types, ranges, and the error for everything else.

Numbers are doubles. A whole number up to 2^53 is a Python integer here and anything else a float; both behave like the
double they stand for, since every result is rounded to one. An integer beyond 2^53 can only come from outside; it can
be passed on, compared and printed, and arithmetic refuses it rather than lose a digit.

Negative zero is a zero: no operator and no printing tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from lastword.errors import did_you_mean
from lastword.script.errors import (
    DivisionByZero,
    IndexOutOfBounds,
    MemberAccess,
    NumberRange,
    PlacedError,
    TypeMismatch,
)
from lastword.values import MAX_SAFE_INTEGER

# Finding the nearest name compares it with every other, letter by letter.
MAX_NAMES_COMPARED = 200
MAX_NAME_COMPARED = 64

_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
    list: "a list",
    dict: "an object",
}


def kind_of(value: object) -> str:
    """The type of a value in the words of the language, with its article."""
    return _KINDS.get(type(value), "no JSON value")


def is_number(value: object) -> bool:
    """Whether this is a number; a boolean is none."""
    kind = type(value)
    return kind is int or kind is float


def arithmetic(operator: str, left: Any, right: Any, at: int) -> int | float:
    """`+ - * / %` on two numbers."""
    if not (is_number(left) and is_number(right)):
        raise _not_two_numbers(operator, left, right, at)
    for number in (left, right):
        if type(number) is int and not -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
            raise NumberRange(
                f"an integer beyond 2^53 is too large for {operator}, which would lose digits",
                at,
                hint="pass such a number on as it is, or ask the tool for a string",
            )
    if operator in "/%" and right == 0:
        raise DivisionByZero(f"{'division' if operator == '/' else 'modulo'} by zero", at)
    result: int | float
    if operator == "+":
        result = left + right
    elif operator == "-":
        result = left - right
    elif operator == "*":
        result = left * right
    elif operator == "/":
        result = left / right
    else:
        # Python's own % has the sign of the divisor.
        result = math.fmod(left, right)
    return _rounded(result, at)


def _rounded(result: int | float, at: int) -> int | float:
    if type(result) is int:
        return result if -MAX_SAFE_INTEGER <= result <= MAX_SAFE_INTEGER else float(result)
    if not math.isfinite(result):
        raise NumberRange("the result is too large for a double", at)
    return result


def compare(operator: str, left: Any, right: Any, at: int) -> bool:
    """`< <= > >=` on two numbers."""
    if not (is_number(left) and is_number(right)):
        raise _not_two_numbers(operator, left, right, at)
    answer: bool
    if operator == "<":
        answer = left < right
    elif operator == "<=":
        answer = left <= right
    elif operator == ">":
        answer = left > right
    else:
        answer = left >= right
    return answer


def sign(operator: str, value: Any, at: int) -> int | float:
    """Unary `-` and `+`."""
    if not is_number(value):
        raise TypeMismatch(f"{operator} takes a number, not {kind_of(value)}", at)
    return arithmetic("-", 0, value, at) if operator == "-" else arithmetic("+", 0, value, at)


def negate(value: Any, at: int) -> bool:
    """`NOT`."""
    if value is True:
        return False
    if value is False:
        return True
    raise TypeMismatch(f"NOT takes a boolean, not {kind_of(value)}", at, hint="compare first: NOT (a == b)")


def not_boolean(operator: str, side: str, value: Any, at: int) -> PlacedError:
    """The error for an operand of AND or OR that is no boolean."""
    return TypeMismatch(f"{operator} takes two booleans; the {side} side is {kind_of(value)}", at)


def member(target: Any, name: str, at: int) -> Any:
    """`target.name`."""
    if type(target) is dict:
        if name in target:
            return target[name]
        raise MemberAccess(f"the object has no key {name}", at, hint=near_key(name, target))
    if name == "length" and (type(target) is list or type(target) is str):
        return len(target)
    raise MemberAccess(f"{kind_of(target)} has no key {name}", at)


def element(target: Any, index: Any, at: int) -> Any:
    """`target[index]`."""
    if type(target) is list:
        if not is_number(index) or index != index // 1:
            what = f"not {index}" if is_number(index) else f"not {kind_of(index)}"
            raise TypeMismatch(f"an index is a whole number, {what}", at)
        if not 0 <= index < len(target):
            hint = "the first element is [0]" if target else "the list is empty"
            where = int(index) if abs(index) <= MAX_SAFE_INTEGER else "an index beyond 2^53"
            raise IndexOutOfBounds(f"the list has {len(target)} elements, and none at {where}", at, hint=hint)
        return target[int(index)]
    if type(target) is dict:
        if type(index) is not str:
            raise TypeMismatch(f"a key is a string, not {kind_of(index)}", at)
        if index not in target:
            raise MemberAccess(f"the object has no key {index}", at, hint=near_key(index, target))
        return target[index]
    raise TypeMismatch(f"{kind_of(target)} has no elements", at)


def near_key(name: str, target: dict[str, Any]) -> str | None:
    """A hint with the nearest key, or with all of them when they are few."""
    return nearest(name, target) or (f"it has {', '.join(target)}" if 0 < len(target) <= 8 else None)


def nearest(name: str, known: Collection[str]) -> str | None:
    """A hint with the nearest of some names, where looking for it is cheap."""
    if len(name) > MAX_NAME_COMPARED or len(known) > MAX_NAMES_COMPARED:
        return None
    return did_you_mean(name, (other for other in known if len(other) <= MAX_NAME_COMPARED))


def _not_two_numbers(operator: str, left: Any, right: Any, at: int) -> TypeMismatch:
    side, wrong = ("left", left) if not is_number(left) else ("right", right)
    hint = operand_hint(operator, side, kind_of(wrong))
    return TypeMismatch(f"{operator} takes two numbers; the {side} side is {kind_of(wrong)}", at, hint=hint)


def operand_hint(operator: str, side: str, kind: str) -> str | None:
    """What somebody probably meant who gave an operator this kind of operand."""
    if operator == "+" and kind == "a string":
        return 'join strings with FORMAT("{a}{b}", {a: …, b: …})'
    if operator == "+" and kind == "a list":
        return "APPEND(list, value) gives a longer list"
    if operator in ("<", "<=", ">", ">=") and side == "left" and kind == "a boolean":
        return f"compare twice: a {operator} b AND b {operator} c"
    return None
