"""Which variable a name means, decided once, before the script runs.

Every LET in a block gets a place in the frame. IF bodies share the scope around them; each FOR has a scope of its own,
fresh in every iteration. Reading the text from top to bottom, a name is *sure* in a scope once a LET there has
certainly happened, and *possible* when the LET stands in a branch. A name means the innermost scope where it is sure,
unless a scope further inside, where it is possible, turns out to have it: only then is there a question at run time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lastword.script.runtime import FIRST_SLOT


class Scope(msgspec.Struct, eq=False):
    """The names of the top of a script, or of one iteration of a FOR."""

    slots: dict[str, int] = {}
    sure: dict[str, int] = {}
    """Those that are sure, in the order in which they became so: a branch can be taken back from the end."""
    asked: set[int] = set()
    """Places that somebody looks into without knowing: a FOR empties these before each iteration."""

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
        self.stack.pop()
        self.innermost = self.stack[-1]

    def define(self, name: str) -> int:
        """A LET: the name has a value in the innermost scope from here on."""
        scope = self.innermost
        slot = scope.slots.get(name)
        if slot is None:
            slot = scope.slots[name] = self.size
            self.size = slot + 1
        scope.sure[name] = slot
        return slot

    def sure_slot(self, name: str) -> int | None:
        """The place of a variable that certainly has a value in the only scope it can be of."""
        slot = self.innermost.sure.get(name)
        if slot is not None:
            return slot
        places, sure = self.find(name)
        return places[0] if sure and len(places) == 1 else None

    def find(self, name: str) -> tuple[tuple[int, ...], bool]:
        """The places where the variable may be, innermost first, and whether the last of them surely has it."""
        places = []
        for scope in reversed(self.stack):
            slot = scope.slots.get(name)
            if slot is not None:
                places.append(slot)
                if name in scope.sure:
                    return tuple(places), True
                scope.asked.add(slot)
        return tuple(places), False

    def known(self) -> set[str]:
        """Every name that has a place here, for hints."""
        return {name for scope in self.stack for name in scope.slots}
