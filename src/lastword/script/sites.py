"""Where in a script each CALL stands, for cards and journals. Lines are worked out when somebody asks."""

from __future__ import annotations

import msgspec

from lastword.script.lexer import Places


class CallSite(msgspec.Struct, frozen=True, gc=False):
    """Where in a script a CALL stands. It does not know the program, which would be a cycle to collect."""

    places: Places
    at: int
    tool: str
    index: int
    tries: bool = False

    @property
    def line(self) -> int:
        return self.places.of(self.at)[0]

    @property
    def column(self) -> int:
        return self.places.of(self.at)[1]
