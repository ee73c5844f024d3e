"""Where a card is printed, line by line; only the last line, the prompt, is ever written over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from lastword.card import Face
from lastword.terminal import card
from lastword.terminal.screen import size_of


class Sheet:
    """The paper for one card."""

    def __init__(self, shown: Face, screen: TextIO) -> None:
        self._face = shown
        # Nothing in a text is ever read as markup.
        self._console = Console(file=screen, highlight=False, markup=False, emoji=False)
        # A pipe and a dumb terminal cannot write over a line: there the prompt appears with its answer.
        self._can_rewrite = self._console.is_terminal and not self._console.is_dumb_terminal
        self.is_at_prompt = False
        self.printed = 0
        """How many lines stand above the prompt."""

    @property
    def width(self) -> int:
        """Of the screen, as it is now."""
        return self.size()[0]

    def size(self) -> tuple[int, int]:
        """Columns and rows of the screen, as they are now."""
        return size_of(self._console.file)

    def card(self, shown: Face, waiting: int = 0, last: str = "") -> None:
        self._print(card.draw(shown, self.width, waiting, last))

    def preview(self, shown: Face) -> None:
        self._print(card.barred(self._face, line) for line in card.diff(shown, self.width - len(card.BAR) - 1))

    def menu(self, items: list[tuple[str, str]], hint: str) -> None:
        self._print(card.menu(self._face, self.width, items))
        self.hint(hint)

    def say(self, words: str) -> None:
        room = self.width - len(card.BAR) - 1
        self._print(
            card.barred(self._face, Text(piece))
            for line in words.split("\n")
            for piece in card.wrap(line, max(card.MIN_WIDTH, room))
        )

    def rows(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Lines with what stands before each, and their style. What is broken goes on below its beginning."""
        room = max(card.MIN_WIDTH, self.width) - len(card.BAR) - 1
        for lead, text, style in rows:
            for number, piece in enumerate(card.wrap(text.replace("\n", "⏎"), room - len(lead))):
                line = card.led(" " * len(lead) if number else lead, "bold").append_text(card.marked(piece, style))
                self._print([card.barred(self._face, line if line.plain.strip() else Text())])

    def hint(self, words: str) -> None:
        """Beside the prompt, in place of the last hint: Enter pressed ten times must not scroll the card away."""
        self._prompt(Text(words, "italic"))

    def answer(self, words: str) -> None:
        self._prompt(Text(words, "bold"), ends=True)

    def clear_prompt(self) -> None:
        if self.is_at_prompt:
            self._write("\r\x1b[K")
            self.is_at_prompt = False

    def _prompt(self, words: Text, *, ends: bool = False) -> None:
        self.clear_prompt()
        line = card.prompt(self._face).append_text(words)
        if ends:
            self._console.print(line, soft_wrap=True)
        elif self._can_rewrite:
            line.truncate(self.width - 1, overflow="ellipsis")
            self._console.print(line, end="", soft_wrap=True)
            self.is_at_prompt = True

    def _print(self, lines: Iterable[Text]) -> None:
        self.clear_prompt()
        for line in lines:
            self._console.print(line, no_wrap=True, overflow="ignore", crop=False)
            self.printed += 1

    def _write(self, codes: str) -> None:
        self._console.file.write(codes)
        self._console.file.flush()
