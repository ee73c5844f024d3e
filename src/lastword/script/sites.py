"""Where in a script each CALL stands, for cards and journals. Lines are worked out when somebody asks."""

from __future__ import annotations

from functools import cached_property

import msgspec

from lastword.script.lexer import token_places


class Places(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The lines and columns of a script's tokens, worked out when somebody asks for the first."""

    source: str

    @cached_property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in token_places(self.source)]

    def of(self, at: int) -> tuple[int, int]:
        offset = self.offsets[at]
        return self.source.count("\n", 0, offset) + 1, offset - self.source.rfind("\n", 0, offset)


class CallSite(msgspec.Struct, frozen=True, gc=False):
    """Where in a script a CALL stands. It does not know the program, which would be a cycle to collect."""

    places: Places
    at: int
    tool: str
    index: int

    @property
    def line(self) -> int:
        return self.places.of(self.at)[0]

    @property
    def column(self) -> int:
        return self.places.of(self.at)[1]
