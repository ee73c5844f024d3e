"""Which variable a name means, decided once, before the script runs.

Every LET in a block gets a place in the frame. IF bodies share the scope around them; each FOR has a scope of its own,
fresh in every iteration. Reading the text from top to bottom, a name is *sure* in a scope once a LET there has
certainly happened, and *possible* when the LET stands in a branch. A name means the innermost scope where it is sure,
unless a scope further inside, where it is possible, turns out to have it: only then is there a question at run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lastword.script.builtins import BUILTINS
from lastword.script.hints import hint_for_word, nearest
from lastword.script.runtime import FIRST_SLOT, UNSET, Closure, Frame, Step
from lastword.script.tokens import UndefinedVariable


class Place(msgspec.Struct, frozen=True, eq=False):
    """Where a variable may be: a place in the frame, and where to look if that is empty.

    A chain of these and not a list for every name that is read: a script can have very many of both.
    """

    slot: int
    outer: Place | None
    count: int
    """How many places there are from here on."""
    top: int | None
    """The one among them that belongs to the top of the script."""
    asked: set[int] | None
    """The places of its scope that are asked for; None where it surely has a value."""


class Scope(msgspec.Struct, eq=False):
    """The names of the top of a script, or of one iteration of a FOR."""

    slots: dict[str, int] = {}
    sure: dict[str, int] = {}
    """Those that are sure, in the order in which they became so: a branch can be taken back from the end."""
    asked: set[int] = set()
    """Places that somebody looks into without knowing: a FOR empties these before each iteration."""
    around: dict[str, Place] = {}
    """Where its names may be in the scopes around it, in which nothing changes while this one is open."""

    def take_back(self, since: int) -> list[str]:
        """Forget what became sure since then, and say what that was: the branch may not have run."""
        names = []
        while len(self.sure) > since:
            names.append(self.sure.popitem()[0])
        return names


class Scopes(msgspec.Struct, eq=False):
    """The scopes around the place being compiled, the innermost last."""

    innermost: Scope
    stack: list[Scope]
    holders: dict[str, list[Scope]] = {}
    """For every name the scopes that have a place for it, the innermost last."""
    size: int = FIRST_SLOT

    @classmethod
    def of(cls, given: Iterable[str]) -> Scopes:
        """The top of a script that is given these variables."""
        top = Scope()
        scopes = cls(top, [top])
        for name in given:
            scopes.define(name)
        return scopes

    def enter(self) -> Scope:
        """Go into a FOR."""
        self.innermost = Scope()
        self.stack.append(self.innermost)
        return self.innermost

    def leave(self) -> None:
        """Come out of a FOR."""
        for name in self.stack.pop().slots:
            self.holders[name].pop()
        self.innermost = self.stack[-1]

    def define(self, name: str) -> int:
        """A LET: the name has a value in the innermost scope from here on."""
        scope = self.innermost
        slot = scope.slots.get(name)
        if slot is None:
            slot = scope.slots[name] = self.size
            self.size = slot + 1
            holders = self.holders.setdefault(name, [])
            if holders:
                scope.around[name] = self._place(name, holders[-1])
            holders.append(scope)
        scope.sure[name] = slot
        return slot

    def sure_slot(self, name: str) -> int | None:
        """The place of a variable that certainly has a value in the only scope it can be of."""
        slot = self.innermost.sure.get(name)
        if slot is not None:
            return slot
        holders = self.holders.get(name)
        return holders[-1].sure.get(name) if holders else None

    def find(self, name: str) -> Place | None:
        """Where the variable may be, innermost first. Whoever looks there must find it empty in a new iteration."""
        holders = self.holders.get(name)
        if not holders:
            return None
        found = self._place(name, holders[-1])
        place: Place | None = found
        # Where one was asked for before, so were those around it.
        while place is not None and place.asked is not None and place.slot not in place.asked:
            place.asked.add(place.slot)
            place = place.outer
        return found

    def _place(self, name: str, scope: Scope) -> Place:
        slot = scope.slots[name]
        top = slot if scope is self.stack[0] else None
        if name in scope.sure:
            return Place(slot, None, 1, top, None)
        outer = scope.around.get(name)
        if outer is None:
            return Place(slot, None, 1, top, scope.asked)
        return Place(slot, outer, 1 + outer.count, outer.top, scope.asked)

    def read_first(self, place: Place | None, name: str, at: int) -> Closure:
        """A variable of which only the run knows in which of several scopes it is, if it is in any."""

        def read(f: Frame) -> Any:
            there = place
            while there is not None:
                value = f[there.slot]
                if value is not UNSET:
                    return value
                there = there.outer
            raise self._undefined(name, at)

        return read

    def store_in_first(self, place: Place | None, value: Closure, name: str, at: int) -> Step:
        """SET where only the run knows which of several scopes has the variable."""

        def step(f: Frame) -> None:
            result = value(f)
            there = place
            while there is not None:
                if f[there.slot] is not UNSET:
                    f[there.slot] = result
                    return
                there = there.outer
            raise self._undefined(name, at)

        return step

    def _undefined(self, name: str, at: int) -> UndefinedVariable:
        """The error for a name without a value. Every name that has a place here may have been meant."""
        if name in BUILTINS:
            hint: str | None = f"{name} is a function: {BUILTINS[name].usage}"
        else:
            known = {other for scope in self.stack for other in scope.slots}
            hint = hint_for_word(name) or nearest(name, known) or f"give it a value first: LET {name} = …"
        return UndefinedVariable(f"{name} has no value", at, hint=hint)
