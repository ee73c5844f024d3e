"""What a running tool reports: one line each, and the same id changes its line in place.

Each report is cut to one line of the screen, so that it is known how far up an earlier line stands. A line that has
scrolled out of the window is said again at the bottom. Where nothing can be written over, an id speaks at most once in
a while, and its last word is always said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

import msgspec
from rich.cells import cell_len, set_cell_size

from lastword.call import Event, Reported
from lastword.display import displayable, visible
from lastword.terminal.screen import size_of

BAR_WIDTH = 20
# A log or a screen reader needs to know that it moves, and not how smoothly.
SPEAK_EVERY_SECONDS = 1.0
# Of a report, what a line shows.
MAX_LINE = 200

ReportLine = tuple[str, str]
"""A call and a report's id."""


class Progress:
    """The lines of the calls that run. Hand `show` to `session.listen`."""

    def __init__(
        self,
        screen: TextIO,
        *,
        in_place: bool,
        is_marked: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_marked`: what cannot be seen in the reports has been marked by the server."""
        self._screen = screen
        self._is_marked = is_marked
        self._in_place = in_place
        self._clock = clock
        self._rows: dict[ReportLine, int] = {}
        self._printed = 0
        self._spoke: dict[ReportLine, float] = {}
        self._unsaid: dict[ReportLine, Reported] = {}
        self._is_held = False
        self._held: list[Reported] = []

    def show(self, event: Event) -> None:
        """Draw the event if it is a report."""
        if not isinstance(event, Reported):
            return
        if not self._is_marked:
            event = msgspec.structs.replace(event, message=visible(displayable(event.message)))
        if self._is_held:
            self._held.append(event)
        else:
            self._tell(event)

    def say(self, words: str) -> None:
        """A line of our own between the reports."""
        self._print(words)

    def hold(self) -> None:
        """Draw nothing until `release`: a card has the screen."""
        self._is_held = True

    def release(self) -> None:
        """Draw what was held back, below whatever was drawn meanwhile, and say every last word."""
        if self._is_held:
            self._is_held = False
            self._rows.clear()
            held, self._held = self._held, []
            for report in held:
                self._tell(report)
        for report in self._unsaid.values():
            self._print(words(report))
        self._unsaid.clear()

    def _tell(self, report: Reported) -> None:
        if self._in_place:
            self._draw(report)
        else:
            self._speak(report)

    def _draw(self, report: Reported) -> None:
        columns, height = size_of(self._screen)
        line = fit(drawn(report), columns - 1)
        row = None if report.id is None else self._rows.get((report.call_id, report.id))
        up = 0 if row is None else self._printed - row
        if 0 < up < height:
            self._screen.write(f"\x1b[{up}A\r\x1b[2K{line}\x1b[{up}B\r")
            self._screen.flush()
            return
        if report.id is not None:
            self._rows[report.call_id, report.id] = self._printed
        self._print(line)

    def _speak(self, report: Reported) -> None:
        if report.id is None:
            self._print(words(report))
            return
        line = (report.call_id, report.id)
        now = self._clock()
        if now - self._spoke.get(line, float("-inf")) >= SPEAK_EVERY_SECONDS:
            self._spoke[line] = now
            self._unsaid.pop(line, None)
            self._print(words(report))
        else:
            self._unsaid[line] = report

    def _print(self, line: str) -> None:
        self._screen.write(line + "\n")
        self._screen.flush()
        self._printed += 1


def drawn(report: Reported) -> str:
    """A report as one line for the eye, with a bar when it says how far it is."""
    if report.fraction is None:
        return f"· {_message(report)}"
    full = round(report.fraction * BAR_WIDTH)
    return f"{'█' * full}{'░' * (BAR_WIDTH - full)} {report.fraction:4.0%} {_message(report)}"


def words(report: Reported) -> str:
    """A report as one line for the ear and for a log."""
    return _message(report) if report.fraction is None else f"{report.fraction:.0%}: {_message(report)}"


def _message(report: Reported) -> str:
    first = report.message.replace("\n", "⏎")
    return first if len(first) <= MAX_LINE else f"{first[:MAX_LINE]}… ({len(first) - MAX_LINE} more characters)"


def fit(line: str, width: int) -> str:
    """A line that fills at most one row."""
    return line if cell_len(line) <= width else set_cell_size(line, max(1, width - 1)) + "…"
