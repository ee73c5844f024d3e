"""Which press was meant for the card: told from when keys come, and from nothing else.

A card listens after a quiet moment. A key that means nothing here, or keys that come together, end the listening until
it is quiet again: somebody is typing, a text is pasted, or the terminal answers a program that asked it something. A
press counts when nothing else came soon after it, so the first letter of a word is never taken for an answer.

No terminal and no clock live here: keys.py brings both.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

# No person reads a question, understands it and presses a key within this time; keys that arrive sooner were meant for
# something else. Each of them starts the time again, so that neither a typist nor a held key can answer.
ARMING_SECONDS = 0.5
# Whoever types a word presses its second letter within this time, and the rest of a paste or of a terminal's reply
# comes much sooner. Longer, a deliberate press would seem to be ignored.
ALONE_SECONDS = 0.25

CLOSE = "close"
"""What Esc, Ctrl+C and Ctrl+D mean to a card."""
ENTER = "enter"

INTERRUPT = b"\x03"
_NAMES = {b"\x1b": CLOSE, b"\x04": CLOSE, b"\r": ENTER, b"\n": ENTER}


class Arming:
    """Whether the card listens now, and which press counts."""

    def __init__(self, wanted: Set[str], now: float, *, is_armed: bool = False) -> None:
        """`wanted`: the keys that mean something, by their character or name."""
        self._wanted = wanted
        self._since = now
        self._state: Literal["unquiet", "armed", "held"] = "armed" if is_armed else "unquiet"
        self._held = ""

    @property
    def is_armed(self) -> bool:
        """Whether a press would be considered now."""
        return self._state == "armed"

    @property
    def is_unquiet(self) -> bool:
        """Whether keys are thrown away until none have come for a while."""
        return self._state == "unquiet"

    @property
    def due(self) -> float | None:
        """When to `look`, if nothing comes before; None when only a key can change anything."""
        if self._state == "armed":
            return None
        return self._since + (ALONE_SECONDS if self._state == "held" else ARMING_SECONDS)

    def hear(self, data: bytes, now: float) -> None:
        """Something came: bytes as they were read, which are one key at most if a person presses keys one by one."""
        key = _NAMES.get(data) or (data.decode("ascii", "replace") if len(data) == 1 else "")
        is_first = self._state == "armed"
        self._state = "held" if is_first and key in self._wanted else "unquiet"
        self._held, self._since = key, now

    def look(self, now: float) -> str | None:
        """Nothing is there to be read. Gives the press that counts, if that makes it one."""
        if self.due is None or now < self.due:
            return None
        is_press = self._state == "held"
        # After a press the card changes or is gone: whatever comes next has to be meant for what is there then.
        self._state = "unquiet" if is_press else "armed"
        return self._held if is_press else None
