"""What a session tells whoever listens, as it happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Literal

import msgspec

from lastword.consent import Answerer, ApprovalRequest, Outcome, UserAction
from lastword.errors import SessionError
from lastword.tools import ToolQuestion

log = logging.getLogger("lastword")


class Asked(msgspec.Struct, frozen=True):
    """A card waits for an answer."""

    request: ApprovalRequest


class Answered(msgspec.Struct, frozen=True):
    """A card was answered, here or elsewhere."""

    call_id: str
    action: UserAction
    by: Answerer


class QuestionAsked(msgspec.Struct, frozen=True):
    """A running tool asks the person something. It approves nothing."""

    question: ToolQuestion


class QuestionAnswered(msgspec.Struct, frozen=True):
    """A question of a running tool waits no longer."""

    call_id: str
    question_id: str
    how: Literal["given", "declined", "closed"]
    """What was given is the tool's to know: it may be a secret."""
    by: Answerer


class Started(msgspec.Struct, frozen=True):
    """A tool began to run."""

    call_id: str
    tool: str
    arguments: bytes = b"{}"
    """One JSON object, with secrets masked."""
    origin: str = ""
    not_asked: str = ""
    """Why nobody was asked, where a rule or a grant stood for a person: `your grant of 15 November, 3 of 10 calls`."""


class DeniedByRule(msgspec.Struct, frozen=True):
    """A rule denied a call, and nobody was asked. Its end follows."""

    call_id: str
    tool: str
    arguments: bytes
    """One JSON object, with secrets masked."""
    origin: str
    rule: str
    """Its name, with its file and line."""


class Reported(msgspec.Struct, frozen=True):
    """A tool said how it goes. The same id replaces the earlier line."""

    call_id: str
    message: str
    id: str | None
    fraction: float | None


class Finished(msgspec.Struct, frozen=True):
    """A call came to its end."""

    outcome: Outcome


class RunStarted(msgspec.Struct, frozen=True):
    """A script is being carried out."""

    run_id: str
    name: str | None
    text: str


class RunFinished(msgspec.Struct, frozen=True):
    """A script came to its end, or waits for a decision about a call in doubt."""

    run_id: str
    status: str
    error: str | None


class Printed(msgspec.Struct, frozen=True):
    """A script wrote a line."""

    run_id: str
    line: str


Event = (
    Asked
    | Answered
    | QuestionAsked
    | QuestionAnswered
    | Started
    | DeniedByRule
    | Reported
    | Finished
    | RunStarted
    | RunFinished
    | Printed
)


# A listener that is this far behind is not reading any more.
MAX_WAITING = 10_000


class Audience:
    """Whoever listens to a session."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: list[Callable[[Event], None]] = []
        """Empty while nobody listens, so that nothing is prepared for nobody."""

    def tell(self, event: Event) -> None:
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except BaseException as problem:
                if isinstance(problem, (KeyboardInterrupt, SystemExit)):
                    raise
                # Whoever watches a call must not be able to break it, also not by a cancelled future that it looked at:
                # the call would take that for its own cancellation. One that failed would fail again.
                log.error("a listener failed and hears nothing more", exc_info=problem)
                self._forget(listener)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event from now on; returns what stops it."""
        self.listeners.append(listener)
        return lambda: self._forget(listener)

    def _forget(self, listener: Callable[[Event], None]) -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)

    async def events(self) -> AsyncIterator[Event]:
        """Every event from now on, as an async iterator. Who falls too far behind gets what is there, and an error."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def put(event: Event) -> None:
            if queue.qsize() >= MAX_WAITING:
                stop()
                log.warning("a listener does not read: after %d events it hears nothing more", MAX_WAITING)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

        stop = self.listen(put)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            stop()
        raise SessionError(
            f"more than {MAX_WAITING} events waited to be read, so the later ones were not kept",
            hint="read faster, or listen again; the journal has everything that happened",
        )
