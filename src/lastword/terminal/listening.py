"""Hearing the person below a card: it waits until the keys are quiet, says so, and takes one key, a line or a word.

Which press counts is decided in arming.py. What does not live here: what a key means (dialogue.py, granting.py).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from typing import Protocol

from lastword.terminal import card
from lastword.terminal.sheet import Sheet

# Short enough for forty columns beside the prompt.
UNQUIET = "Waiting until the keys are quiet."
LISTENING = "Listening again: press one key."


class Keys(Protocol):
    """Where a card's keys come from: the person's keyboard, or a script that shows how it is done."""

    def taken(self) -> AbstractContextManager[None]:
        """Hold the keyboard for this card."""

    async def wait_until_quiet(self, disturbed: Callable[[], None]) -> bool:
        """Throw away what was typed for something else. False when the person wants to get out meanwhile."""

    async def key(self, wanted: Set[str]) -> str | None:
        """The next key that counts; None when others came, and it has to be quiet again."""

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text."""

    async def word(self, words: str) -> str | None:
        """A line that was typed by hand."""


class Listener:
    """The keys of one card, and what is said beside its prompt about them. `EOFError`: the person wants to get out."""

    def __init__(self, keys: Keys, sheet: Sheet) -> None:
        self._keys = keys
        self._sheet = sheet

    async def key(self, wanted: Set[str]) -> str:
        """The next key that counts."""
        while (key := await self._keys.key(wanted)) is None:
            await self.again()
        return key

    async def again(self, words: str = UNQUIET) -> None:
        """Keys came that answer nothing, and the menu is still there."""
        self._sheet.hint(words)
        was_disturbed = await self.quiet()
        if was_disturbed or words == UNQUIET:
            self._sheet.hint(LISTENING)

    async def quiet(self) -> bool:
        """Wait until keys count, and say whether others came meanwhile."""
        disturbances: list[None] = []

        def disturbed() -> None:
            disturbances.append(None)
            self._sheet.hint(UNQUIET)

        if not await self._keys.wait_until_quiet(disturbed):
            raise EOFError
        return bool(disturbances)

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text below the card; None when the person changed their mind."""
        self._sheet.clear_prompt()
        return await self._keys.line(card.PROMPT + words, text, secret=secret)

    async def is_word(self, word: str, words: str) -> bool:
        """Whether the person types this word, alone and by hand."""
        await self.quiet()
        self._sheet.clear_prompt()
        typed = await self._keys.word(card.PROMPT + words)
        return typed is not None and typed.strip().casefold() == word
