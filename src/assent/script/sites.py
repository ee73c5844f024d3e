"""Where in a script each CALL stands, for cards and journals. Lines are worked out when somebody asks."""

from __future__ import annotations

from functools import cached_property

from assent.script.lexer import token_places
from assent.script.nodes import Call


class Places:
    """The lines and columns of a script's tokens, worked out when somebody asks for the first."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in token_places(self.source)]

    def of(self, at: int) -> tuple[int, int]:
        offset = self.offsets[at]
        return self.source.count("\n", 0, offset) + 1, offset - self.source.rfind("\n", 0, offset)


class CallSite:
    """Where in a script a CALL stands. It does not know the program, which would be a cycle to collect."""

    __slots__ = ("_at", "_places", "index", "tool")

    def __init__(self, places: Places, node: Call) -> None:
        self._places = places
        self._at = node.at
        self.tool = node.tool
        self.index = node.site

    @property
    def line(self) -> int:
        return self._places.of(self._at)[0]

    @property
    def column(self) -> int:
        return self._places.of(self._at)[1]
