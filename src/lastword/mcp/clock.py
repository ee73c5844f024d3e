"""The time that a server has for a call. It stands still while a person is asked something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class PausableClock:
    """Runs out once, after so many seconds in which it was not paused."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.run_out = asyncio.Event()
        self._left = seconds
        self._pauses = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._go_on()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still for as long as somebody thinks."""
        self._pauses += 1
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self.stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._go_on()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        if not self._pauses and not self.run_out.is_set():
            self._timer = self._loop.call_later(self._left, self.run_out.set)
