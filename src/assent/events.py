"""What a session tells whoever listens, as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from assent.approval import ApprovalRequest, UserAction
from assent.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Asked:
    """A card waits for an answer."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class Answered:
    """A card was answered, here or elsewhere."""

    call_id: str
    action: UserAction
    by: str


@dataclass(frozen=True, slots=True)
class Started:
    """A tool began to run."""

    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A tool said how it goes. The same id replaces the earlier line."""

    call_id: str
    message: str
    id: str | None
    fraction: float | None


@dataclass(frozen=True, slots=True)
class Finished:
    """A call came to its end."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Printed:
    """A script wrote a line."""

    run_id: str
    line: str


Event = Asked | Answered | Started | Reported | Finished | Printed


# A listener that is this far behind is not reading any more.
MAX_WAITING = 10_000


class Audience:
    """Whoever listens to a session. False while nobody does, so that nothing is prepared for nobody."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def tell(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event from now on; returns what stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def events(self) -> AsyncIterator[Event]:
        """Every event from now on, as an async iterator."""
        queue: asyncio.Queue[Event] = asyncio.Queue(MAX_WAITING)
        stop = self.listen(queue.put_nowait)
        try:
            while True:
                yield await queue.get()
        finally:
            stop()
