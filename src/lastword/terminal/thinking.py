"""That the model is being waited for: a line that comes after a moment, counts the seconds, and goes without a trace.

It has no line end, so it never becomes a part of what was said, and whoever writes next takes it away first. Where
nothing can be written over, one plain sentence is said after a longer while, and no second one: a screen reader reads
every line aloud. For a program or a file nothing is written at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TextIO

from lastword.terminal.progress import fit
from lastword.terminal.screen import size_of

# Most answers begin sooner, and a line that flashes by is only in the way.
SHOW_AFTER_SECONDS = 2.0
SAY_AFTER_SECONDS = 10.0

HOW_TO_STOP = "Ctrl+C stops the turn."


class Thinking:
    """The line."""

    def __init__(
        self, screen: TextIO, *, in_place: bool, is_seen: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`is_seen`: a person looks at this screen."""
        self._screen = screen
        self._in_place = in_place
        self._is_seen = is_seen
        self._clock = clock
        self._sign: Hashable = None
        self._since = 0.0
        self._is_drawn = self._is_said = False

    def look(self, sign: Hashable) -> float | None:
        """Draw what there is to say now; returns after how many seconds to look again, None when there is no need.

        `sign` is another one after each sign of life, and None while nobody waits for the model.
        """
        if sign is None or not self._is_seen:
            self.clear()
            self._sign = None
            return None
        now = self._clock()
        if sign != self._sign:
            self._sign, self._since, self._is_said = sign, now, False
        waited = now - self._since
        if not self._in_place:
            return self._say(waited)
        if waited < SHOW_AFTER_SECONDS:
            return SHOW_AFTER_SECONDS - waited
        words = fit(f"· Waiting for the model: {in_words(int(waited))}. {HOW_TO_STOP}", size_of(self._screen)[0] - 1)
        self._screen.write(f"\r\x1b[2K{words}")
        self._screen.flush()
        self._is_drawn = True
        return 1.0 - waited % 1.0

    def clear(self) -> None:
        """Take the line away: something else is about to be written."""
        if self._is_drawn:
            self._is_drawn = False
            self._screen.write("\r\x1b[2K")
            self._screen.flush()

    def _say(self, waited: float) -> float | None:
        if self._is_said:
            return None
        if waited < SAY_AFTER_SECONDS:
            return SAY_AFTER_SECONDS - waited
        self._is_said = True
        self._screen.write(f"Waiting for the model, for {in_words(int(waited))} so far. {HOW_TO_STOP}\n")
        self._screen.flush()
        return None


def in_words(seconds: int) -> str:
    """A time as a person reads it."""
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02} s"
