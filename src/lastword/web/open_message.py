"""The model's words as they come: each piece marked, and sent so that a window can put it behind what it has."""

from __future__ import annotations

from itertools import takewhile

from msgspec.structs import replace

from lastword.card import units, views
from lastword.display import left_out, visible

# What a window shows of one message. The server's conversation has all of it.
MAX_TEXT = 100_000
# Marks can change for as long as a word or a line is not complete; a line longer than this counts as complete.
MAX_LINE = 2_000


class OpenMessage:
    """A message that is being written. Its last line is marked anew with every piece, and sent as far as it changed."""

    def __init__(self, item: views.MessageItem) -> None:
        self._item = item
        self._raw: list[str] = []
        """What is shown of the message, as it came."""
        self._length = 0
        """Of the whole message."""
        self._line = self._tail = ""
        """The unfinished last line, without and with its marks."""
        self._head: list[str] = []
        """The lines before it, with their marks."""
        self._head_units = 0

    @property
    def item(self) -> views.MessageItem:
        """The message so far."""
        return replace(self._item, text="".join(self._head) + self._tail)

    @property
    def id(self) -> str:
        """That of the message."""
        return self._item.id

    def add(self, piece: str) -> views.TextPiece | None:
        """Take the next words; gives back what changes by them, which is nothing once enough is shown."""
        room = MAX_TEXT - self._length
        self._length += len(piece)
        if room <= 0:
            return None
        piece = piece[:room]
        self._raw.append(piece)
        before, start = self._tail, self._head_units
        self._line += piece
        done = self._complete()
        self._tail = visible(self._line)
        after = done + self._tail
        # Nearly always all of it, so that only the new words travel.
        same = before if after.startswith(before) else _common(before, after)
        return views.TextPiece(self.id, start + units(same), after[len(same) :])

    def whole(self) -> views.MessageItem:
        """The message, now that all of it is here."""
        text, hidden = "".join(self._raw), self._length - MAX_TEXT
        shown = visible(text.strip("\n")) if hidden <= 0 else visible(text.lstrip("\n")) + left_out(hidden)
        return replace(self._item, open=False, text=shown)

    def _complete(self) -> str:
        """Move what is complete of the last line to the lines before it; gives back what was moved, with marks."""
        done, newline, rest = self._line.rpartition("\n")
        cut = len(done) + len(newline)
        if len(rest) > MAX_LINE:
            # Between two words if there are any. What is one long word is cut, or it would be marked for ever.
            cut += rest.rfind(" ", 1) if rest.rfind(" ", 1) > 0 else len(rest)
        if not cut:
            return ""
        complete, self._line = self._line[:cut], self._line[cut:]
        marked = visible(complete)
        self._head.append(marked)
        self._head_units += units(marked)
        return marked


def _common(one: str, other: str) -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return one[: sum(1 for _ in pairs)]
