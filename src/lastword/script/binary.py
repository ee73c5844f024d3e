"""Closures for binary operators, fast for the operands that are nearly always met.

They do what operators.py does and leave everything unusual to it: other types, large numbers, zero divisors. They are
written once, as texts with gaps, for every operator and every kind of operand: a variable that certainly has a value
(`f[l]`), a constant (`r`), or any expression (`l(f)`, `r(f)`). Only names of this module and operators from a fixed
list enter the texts; nothing of a script ever does. They take what they need as defaults: steps.py says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from lastword.script.operators import arithmetic, compare
from lastword.script.runtime import Frame, equality
from lastword.values import MAX_SAFE_INTEGER

Closure = Callable[[Frame], Any]
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
    names: dict[str, Any] = {"arithmetic": arithmetic, "compare": compare, "equality": equality, "inf": math.inf}
    exec(_template(operator, right).format(**gaps), names)
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
    left_kind, a = left
    right_kind, b = right
    if left_kind == "constant":
        left_kind, a = "closure", _giving(a)
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
