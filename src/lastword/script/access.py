"""Closures for one step on the way into a value: a key of an object, an element of a list.

Written out for what is nearly always met: an object that has the key, a list that is long enough. Everything else is
left to operators.py, which knows the errors. They take what they need as defaults: steps.py says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lastword.script.operators import element, member
from lastword.script.runtime import Frame

Closure = Callable[[Frame], Any]


def member_of_slot(slot: int, name: str, at: int) -> Closure:
    def reach(f: Frame, slot: int = slot, name: str = name, at: int = at) -> Any:
        target = f[slot]
        if type(target) is dict:
            try:
                return target[name]
            except KeyError:
                pass
        return member(target, name, at)

    return reach


def member_of(target_of: Closure, name: str, at: int) -> Closure:
    def reach(f: Frame, target_of: Closure = target_of, name: str = name, at: int = at) -> Any:
        target = target_of(f)
        if type(target) is dict:
            try:
                return target[name]
            except KeyError:
                pass
        return member(target, name, at)

    return reach


def element_of(target_of: Closure, index_of: Closure, at: int) -> Closure:
    return lambda f: element(target_of(f), index_of(f), at)


def element_at(target_of: Closure, index: int, at: int) -> Closure:
    def reach(f: Frame, target_of: Closure = target_of, index: int = index, at: int = at) -> Any:
        target = target_of(f)
        if type(target) is list and index < len(target):
            return target[index]
        return element(target, index, at)

    return reach
