"""The model's words on a screen, as they come.

Every line of them begins with a bar of ours, so that nothing the model writes can pass for a card, a prompt or a word
of the program. A word is written when it is complete: only then can be said whether it is what it looks like. What
cannot be seen has been marked before (display.py), and marks can still change while a word is not complete.
"""

from __future__ import annotations

import re
from typing import TextIO

from rich.cells import cell_len, chop_cells

from lastword.terminal.screen import size_of

BAR = "┃ "
FLAT_BAR = "  "
FLAT_NAME = "The assistant says:"
# No word is as long as this; what is, is written in pieces.
MAX_HELD = 2_000
# Below this the bar would leave no room for the text.
MIN_WIDTH = 20

_PARTS = re.compile(r"\n| +|[^ \n]+")


class Speech:
    """Where the model's words are written."""

    def __init__(self, screen: TextIO, *, plain: bool) -> None:
        self._screen = screen
        self._plain = plain
        self._bar = FLAT_BAR if plain else BAR
        self._id = ""
        self._text = ""
        self._written = 0
        """Of the text, how much is on the screen."""
        self._column = 0
        self._spaces = ""
        self._speaking = False

    def say(self, id: str, text: str, *, is_whole: bool = False) -> None:
        """Write what is new in a message, given its text so far. The last word waits for its end."""
        if id != self._id:
            self.finish()
            self._id, self._text, self._written = id, "", 0
        self._take(text)
        end = len(text.rstrip()) if is_whole else _complete(text)
        self._write(text[self._written : end])
        self._written = max(self._written, end)
        if is_whole:
            self._end_line()

    def finish(self) -> None:
        """Something else is about to be written: write what was held back, and end the line."""
        self._write(self._text[self._written :].rstrip())
        self._written = len(self._text)
        self._end_line()

    def _end_line(self) -> None:
        if self._column:
            self._screen.write("\n")
        self._screen.flush()
        self._column, self._spaces, self._speaking = 0, "", False

    def _take(self, text: str) -> None:
        """Have a new text so far. Where it contradicts what is written already, its line is written once more."""
        if not text.startswith(self._text[: self._written]):
            pairs = enumerate(zip(text, self._text, strict=False))
            same = next((place for place, (new, old) in pairs if new != old), len(text))
            self._written = text.rfind("\n", 0, same) + 1
            if self._column:
                self._screen.write("\n")
            self._column, self._spaces = 0, ""
        self._text = text

    def _write(self, text: str) -> None:
        if not text:
            return
        if not self._speaking:
            self._speaking = True
            if self._plain:
                self._screen.write(f"{FLAT_NAME}\n")
        room = max(MIN_WIDTH, size_of(self._screen)[0] - 1) - len(self._bar)
        for part in _PARTS.findall(text):
            if part == "\n":
                self._begin_line()
                self._screen.write("\n")
                self._column, self._spaces = 0, ""
            elif part[0] == " ":
                self._spaces += part
            else:
                self._word(part, room)
        self._screen.flush()

    def _word(self, word: str, room: int) -> None:
        used = self._column - len(self._bar) if self._column else 0
        if not self._plain and used and used + len(self._spaces) + cell_len(word) > room:
            self._screen.write("\n")
            self._column, self._spaces = 0, ""
        self._begin_line()
        # A screen reader wraps by itself; elsewhere a wrapped line needs its bar too.
        for number, chunk in enumerate([word] if self._plain else chop_cells(word, room)):
            if number:
                self._screen.write("\n")
                self._column = 0
                self._begin_line()
            self._screen.write(self._spaces + chunk)
            self._column += len(self._spaces) + cell_len(chunk)
            self._spaces = ""

    def _begin_line(self) -> None:
        if not self._column:
            self._screen.write(self._bar)
            self._column = len(self._bar)


def _complete(text: str) -> int:
    """Where the last word, or the white space at the end, begins."""
    kept = text.rstrip()
    if len(kept) == len(text):
        before = text.rsplit(None, 1)
        kept = before[0] if len(before) == 2 else ""
    return len(text) if len(text) - len(kept) > MAX_HELD else len(kept)
