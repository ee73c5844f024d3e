"""The model's words as they come: each piece marked, and sent so that a window can put it behind what it has."""

from __future__ import annotations

from msgspec.structs import replace

from lastword.card.items import MessageItem, TextPiece
from lastword.card.units import units
from lastword.display import visible


class OpenMessage:
    """A message that is being written. Marks can change while a line is not complete, so its last line is sent anew."""

    def __init__(self, item: MessageItem) -> None:
        self.item = item
        self._raw = ""
        self._line = ""
        """The unfinished last line."""
        self._head = ""
        """The lines before it, with their marks."""

    def add(self, piece: str) -> TextPiece:
        """Take the next words; gives back what changes by them."""
        kept = self._head
        self._raw += piece
        done, newline, self._line = (self._line + piece).rpartition("\n")
        if newline:
            self._head += f"{visible(done)}\n"
        self.item = replace(self.item, text=self._head + visible(self._line))
        return TextPiece(self.item.id, units(kept), self.item.text[len(kept) :])

    def whole(self) -> MessageItem:
        """The message, now that all of it is here."""
        return replace(self.item, open=False, text=visible(self._raw.strip("\n")))
