"""Events with numbers, for windows that come, go and come back.

A window names the last event it has seen and gets exactly those after it. When they are not all here any more, or the
program was started again since, it gets the whole state instead and nothing in between can be missed. What is kept is
bounded by its bytes and shared by all windows: one that is slow costs no more than one that is quick.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from lastword import ids
from lastword.wire import write_comment, write_event, write_retry

# Enough for a laptop that was closed during a long answer. A window that was away longer gets the state.
MAX_KEPT_BYTES = 2_000_000
# What an event takes besides its own bytes.
EVENT_BYTES = 150
# A connection that says nothing for longer may be taken for dead by whatever stands between.
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = write_comment("still here")
# What the browser waits before it comes back.
RETRY_MILLISECONDS = 500

_encode = msgspec.json.Encoder().encode


class Feed:
    """What happened since the program began, as far as it is kept."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._boot = ids.new(8)
        """Numbers of another run of the program mean nothing here."""
        self._kept: deque[bytes] = deque()
        """The newest events, without a gap: the last of them has the number `_last`."""
        self._bytes = 0
        self._max_bytes = max_kept_bytes
        self._last = 0
        self._more = asyncio.Event()
        self._closed = False

    def tell(self, kind: str, data: Any) -> None:
        """Let every window know."""
        self._last += 1
        event = self._event(self._last, kind, data)
        self._kept.append(event)
        self._bytes += len(event) + EVENT_BYTES
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.popleft()) + EVENT_BYTES
        self._wake()

    def begin_anew(self) -> None:
        """Everything is another: every window gets the state, and nothing of what was told before."""
        self._last += 1
        self._kept.clear()
        self._bytes = 0
        self._wake()

    @property
    def bytes_kept(self) -> int:
        """What is held for windows that are behind."""
        return self._bytes

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
            if place is None or place < self._last - len(self._kept):
                # Taken and numbered in one breath: what happens from now on comes after it.
                place = self._last
                yield self._event(place, "state", state())
            elif place < self._last:
                # One at a time: while it is sent, others may come, and this window may fall behind.
                event = self._kept[place - self._last]
                place += 1
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
        return place if self._last - len(self._kept) <= place <= self._last else None

    def _event(self, number: int, kind: str, data: Any) -> bytes:
        return write_event(_encode(data), kind=kind, id=f"{self._boot}-{number}")

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()
