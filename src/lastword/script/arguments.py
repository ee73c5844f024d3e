"""What a built-in function is, and what it asks of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lastword.script.errors import NumberRange, TypeMismatch
from lastword.script.operators import is_number, kind_of
from lastword.script.runtime import RunState
from lastword.values import MAX_SAFE_INTEGER

Body = Callable[[RunState, list[Any], int], Any]

# What a run of a pattern, or a search, takes for a character: a sixteenth of a step.
CHARACTERS = 16


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


def want(function: str, wanted: str, value: Any, kinds: tuple[type, ...], at: int) -> Any:
    """A value of one of these kinds."""
    if type(value) not in kinds:
        raise TypeMismatch(f"{function} takes {wanted}, not {kind_of(value)}", at)
    return value


def number(function: str, value: Any, at: int) -> int | float:
    """A number."""
    if not is_number(value):
        raise TypeMismatch(f"{function} takes numbers, not {kind_of(value)}", at)
    found: int | float = value
    return found


def whole(function: str, value: Any, at: int) -> int:
    """A whole number that a double holds exactly."""
    found = number(function, value, at)
    if found != found // 1:
        raise TypeMismatch(f"{function} takes whole numbers, not {found}", at)
    if abs(found) > MAX_SAFE_INTEGER:
        raise NumberRange(f"{function} takes numbers up to 2^53", at)
    return int(found)
