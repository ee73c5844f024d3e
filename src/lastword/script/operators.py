"""What the operators do, exactly: types, ranges, and the error for everything else; and closures that do it fast.

Numbers are doubles. A whole number up to 2^53 is a Python integer here and anything else a float; both behave like the
double they stand for, since every result is rounded to one. An integer beyond 2^53 can only come from outside; it can
be passed on, compared and printed, and arithmetic refuses it rather than lose a digit.

Negative zero is a zero: no operator and no printing tells them apart.

The closures are fast for the operands that are nearly always met, and leave everything unusual to the functions above
them: other types, large numbers, zero divisors. Those of the binary operators are written once, as texts with gaps, for
every operator and every kind of operand: a variable that certainly has a value (`f[l]`), a constant (`r`), or any
expression (`l(f)`, `r(f)`). Only names of this module and operators from a fixed list enter the texts; nothing of a
script ever does. They take what they need as defaults: steps.py says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from operator import add, ge, gt, le, lt, mul, sub, truediv
from typing import Any

from lastword.script.hints import near_key, operand_hint
from lastword.script.runtime import Closure, equality
from lastword.script.tokens import (
    DivisionByZero,
    IndexOutOfBounds,
    MemberAccess,
    NumberRange,
    PlacedError,
    TypeMismatch,
)
from lastword.values import MAX_SAFE_INTEGER

_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
    list: "a list",
    dict: "an object",
}
# Python's own % has the sign of the divisor.
_OPERATIONS: dict[str, Callable[[Any, Any], int | float]] = {"+": add, "-": sub, "*": mul, "/": truediv, "%": math.fmod}
_COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge}


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
    return _rounded(_OPERATIONS[operator](left, right), at)


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
    answer: bool = _COMPARISONS[operator](left, right)
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


def _not_two_numbers(operator: str, left: Any, right: Any, at: int) -> TypeMismatch:
    side, wrong = ("left", left) if not is_number(left) else ("right", right)
    hint = operand_hint(operator, side, kind_of(wrong))
    return TypeMismatch(f"{operator} takes two numbers; the {side} side is {kind_of(wrong)}", at, hint=hint)


Make = Callable[[Any, Any, int], Closure]
Operand = tuple[str, Any]
"""("slot", the place of a variable that certainly has a value), ("constant", a value), or ("closure", a closure)."""

# Sums of two numbers below the first, and products of two below the second, are exact and below 2^53.
_SMALL_SUM = 2**52
_SMALL_FACTOR = 2**26
# Comparing shorter strings costs no more than comparing numbers.
SHORT_STRING = 1_000

_ARITHMETIC = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at):
        a = {left}
        b = {right}
        if type(a) is int:
            if -{small} < a < {small}:
                if type(b) is int:
                    if -{small} < b < {small}{guard}:
                        return {result}
                elif type(b) is float{guard}:
                    v = {result}
                    if -inf < v < inf:
                        return v
        elif type(a) is float:
            if (type(b) is float or type(b) is int and -{small} < b < {small}){guard}:
                v = {result}
                if -inf < v < inf:
                    return v
        return arithmetic({operator!r}, a, b, at)
    return operate
"""
_REMAINDER = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at):
        a = {left}
        b = {right}
        if type(a) is int and type(b) is int and 0 <= a <= {safe} and 0 < b <= {safe}:
            return a % b
        return arithmetic("%", a, b, at)
    return operate
"""
# With a constant on the right its half of the questions is answered before the script runs.
_WITH_CONSTANT = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at, small={bound}):
        a = {left}
        if type(a) is int:
            if -small < a < small:
                return a {operator} r
        elif type(a) is float:
            v = a {operator} r
            if -inf < v < inf:
                return v
        return arithmetic({operator!r}, a, r, at)
    return operate
"""
_REMAINDER_OF_CONSTANT = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at):
        a = {left}
        if type(a) is int and 0 <= a <= {safe}:
            return a % r
        return arithmetic("%", a, r, at)
    return operate
"""
_ORDER = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at):
        a = {left}
        b = {right}
        if (type(a) is int or type(a) is float) and (type(b) is int or type(b) is float):
            return a {operator} b
        return compare({operator!r}, a, b, at)
    return operate
"""
_EQUALITY = """
def make(l, r, at):
    def operate(f, l=l, r=r, at=at):
        a = {left}
        b = {right}
        t = type(a)
        if t is type(b) and (t is int or t is float or t is str and len(a) < {short}):
            return a {operator} b
        return equality(f, a, b, at) is {answer}
    return operate
"""

_MEMBER = """
def make(l, r, at):
    def reach(f, l=l, r=r, at=at):
        target = {left}
        if type(target) is dict:
            try:
                return target[r]
            except KeyError:
                pass
        return member(target, r, at)
    return reach
"""
_ELEMENT_AT = """
def make(l, r, at):
    def reach(f, l=l, r=r, at=at):
        target = {left}
        if type(target) is list and r < len(target):
            return target[r]
        return element(target, r, at)
    return reach
"""
_ELEMENT = """
def make(l, r, at):
    def reach(f, l=l, r=r, at=at):
        return element({left}, {right}, at)
    return reach
"""

_LEFT = {"slot": "f[l]", "closure": "l(f)"}
_RIGHT = {"slot": "f[r]", "closure": "r(f)", "constant": "r"}


@cache
def _maker(operator: str, left: str, right: str) -> Make:
    """Fill a template; only for what scripts use, since filling all of them would take a tenth of the start-up."""
    gaps = {
        "left": _LEFT[left],
        "right": _RIGHT[right],
        "operator": operator,
        "safe": MAX_SAFE_INTEGER,
        "small": _SMALL_FACTOR if operator == "*" else _SMALL_SUM,
        "guard": " and b" if operator == "/" else "",
        "result": f"a {operator} b",
        "answer": operator == "==",
        "short": SHORT_STRING,
        "bound": f"{MAX_SAFE_INTEGER} // (abs(r) or 1)" if operator == "*" else _SMALL_SUM,
    }
    return _filled(_template(operator, right), **gaps)


def _filled(template: str, **gaps: Any) -> Make:
    names: dict[str, Any] = {"arithmetic": arithmetic, "compare": compare, "equality": equality, "inf": math.inf}
    names |= {"member": member, "element": element}
    exec(template.format(**gaps), names)
    make: Make = names["make"]
    return make


def _template(operator: str, right: str) -> str:
    if operator in ("==", "!="):
        return _EQUALITY
    if operator in ("<", "<=", ">", ">="):
        return _ORDER
    if operator == "%":
        return _REMAINDER_OF_CONSTANT if right == "constant" else _REMAINDER
    return _WITH_CONSTANT if right == "constant" else _ARITHMETIC


def binary(operator: str, left: Operand, right: Operand, at: int) -> Closure:
    """A closure for `left operator right`."""
    left_kind, a = _read(left)
    right_kind, b = right
    if right_kind == "constant" and not ((type(b) is int and 0 < b < _SMALL_FACTOR) or _fits(operator, b)):
        right_kind, b = "closure", _giving(b)
    return _maker(operator, left_kind, right_kind)(a, b, at)


def _giving(constant: Any) -> Closure:
    return lambda f: constant


def _fits(operator: str, constant: Any) -> bool:
    """Whether a constant needs no further questions beside this operator."""
    if type(constant) is int:
        return -_SMALL_FACTOR < constant < _SMALL_FACTOR and (constant > 0 or operator not in ("/", "%"))
    if type(constant) is float:
        return 1e-6 < constant < _SMALL_FACTOR and operator != "%"
    return type(constant) is str and operator in ("==", "!=")


def member_of(target: Operand, name: str, at: int) -> Closure:
    """A closure for `target.name`."""
    kind, a = _read(target)
    return _way_maker(_MEMBER, kind, "")(a, name, at)


def element_of(target: Operand, index: Operand, at: int) -> Closure:
    """A closure for `target[index]`."""
    kind, a = _read(target)
    if index[0] == "constant" and type(index[1]) is int:
        return _way_maker(_ELEMENT_AT, kind, "constant")(a, index[1], at)
    index_kind, b = _read(index)
    return _way_maker(_ELEMENT, kind, index_kind)(a, b, at)


@cache
def _way_maker(template: str, left: str, right: str) -> Make:
    return _filled(template, left=_LEFT[left], right=_RIGHT.get(right))


def _read(operand: Operand) -> Operand:
    """An operand whose value is only asked for at run time."""
    return ("closure", _giving(operand[1])) if operand[0] == "constant" else operand
