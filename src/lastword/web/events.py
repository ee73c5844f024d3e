"""Events with numbers, for windows that come, go and come back.

A window names the last event it has seen and gets exactly those after it. When they are not all here any more, or the
program was started again since, it gets the whole state instead and nothing in between can be missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from lastword import ids
from lastword.wire.sse import write_comment, write_event, write_retry

# Enough for a laptop that was closed during a long answer. A window that was away longer gets the state.
MAX_KEPT = 2_000
# A connection that says nothing for longer may be taken for dead by whatever stands between.
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = write_comment("still here")
# What the browser waits before it comes back.
RETRY_MILLISECONDS = 500

_encode = msgspec.json.Encoder().encode


class Feed:
    """What happened since the program began, as far as it is kept."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._boot = ids.new(8)
        """Numbers of another run of the program mean nothing here."""
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=max_kept)
        self._last = 0
        self._more = asyncio.Event()
        self._closed = False

    def tell(self, kind: str, data: Any) -> None:
        """Let every window know."""
        self._last += 1
        self._kept.append((self._last, self._event(self._last, kind, data)))
        self._wake()

    @property
    def last_id(self) -> str:
        """The id of the newest event. A window that has seen it has seen everything until now."""
        return f"{self._boot}-{self._last}"

    def close(self) -> None:
        """End every stream: the program is about to stop."""
        self._closed = True
        self._wake()

    async def follow(
        self, last_seen: str | None, state: Callable[[], Any], heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> AsyncGenerator[bytes]:
        """Everything after the event that was seen last, as it comes; the state first where there is a gap."""
        yield write_retry(RETRY_MILLISECONDS)
        place = self._place(last_seen)
        while not self._closed:
            if place is None or (self._kept and place < self._kept[0][0] - 1):
                # Taken and numbered in one breath: what happens from now on comes after it.
                place = self._last
                yield self._event(place, "state", state())
            elif coming := [kept for kept in self._kept if kept[0] > place]:
                # What is dropped while these are sent was taken before; what comes meanwhile is looked for afterwards.
                for number, event in coming:
                    place = number
                    yield event
            else:
                more = self._more
                try:
                    async with asyncio.timeout(heartbeat_seconds):
                        await more.wait()
                except TimeoutError:
                    yield HEARTBEAT

    def _place(self, last_seen: str | None) -> int | None:
        boot, _, number = (last_seen or "").partition("-")
        if boot != self._boot or not (number.isascii() and number.isdigit()):
            return None
        place = int(number)
        oldest = self._kept[0][0] if self._kept else self._last + 1
        return place if oldest - 1 <= place <= self._last else None

    def _event(self, number: int, kind: str, data: Any) -> bytes:
        return write_event(_encode(data), kind=kind, id=f"{self._boot}-{number}")

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()
