"""Progress of a running call: coalesced for the eye, bounded for the journal, in order."""

from __future__ import annotations

import asyncio

from lastword.call.events import Audience, Reported
from lastword.display import displayable
from lastword.journal import Journal

# A line that changes more often than this cannot be read.
INTERVAL_SECONDS = 0.05
# Enough to see afterwards how a call went; the screen sees all of them.
MAX_JOURNALED = 100


class Reports:
    """The reports of one call. `add` may be called from the tool's thread; everything else happens on the loop."""

    def __init__(
        self, session_id: str, call_id: str, journal: Journal, audience: Audience, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._session_id = session_id
        self._call_id = call_id
        self._journal = journal
        self._audience = audience
        self._held: dict[str, Reported] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._journaled = 0
        self._closed = False
        self._loop = loop

    def add(self, message: str, id: str | None, fraction: float | None) -> None:
        """Take a report from the tool, whichever thread it runs in."""
        message, id = displayable(message), None if id is None else displayable(str(id))
        report = Reported(self._call_id, message, id, None if fraction is None else min(1.0, max(0.0, fraction)))
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._take(report)
        else:
            self._loop.call_soon_threadsafe(self._take, report)

    def close(self) -> None:
        """Show what is still held back. What an abandoned thread reports later is dropped."""
        for id in list(self._held):
            self._release(id)
        for timer in self._timers.values():
            timer.cancel()
        self._closed = True

    def _take(self, report: Reported) -> None:
        if self._closed:
            return
        if report.id is None:
            # A line of its own comes after everything that was said before it.
            for id in list(self._held):
                self._release(id)
            self._show(report)
        elif report.id in self._timers:
            self._held[report.id] = report
        else:
            self._show(report)
            self._timers[report.id] = self._loop.call_later(INTERVAL_SECONDS, self._release, report.id)

    def _release(self, id: str) -> None:
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()
        if report := self._held.pop(id, None):
            self._show(report)

    def _show(self, report: Reported) -> None:
        if self._journaled < MAX_JOURNALED:
            self._journaled += 1
            data = {"message": report.message, "id": report.id, "fraction": report.fraction}
            self._journal.note(self._session_id, "reported", self._call_id, data)
        if self._audience.listeners:
            self._audience.tell(report)
