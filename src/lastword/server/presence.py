"""Whether anybody still waits for an answer: the client may go, and the server may be told to stop.

Either way the work for the answer is cancelled where it stands, and with it the request to the model's server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import Receive

from lastword.errors import LastWordError
from lastword.server.refusal import Refusal

# A client that leaves sooner than this after its request is noticed this late.
WATCH_AFTER_SECONDS = 0.05


class ClientGone(LastWordError):
    """Nobody is left to answer to."""


class Stopping:
    """The end of the server: first no new turns, then running ones are told."""

    def __init__(self) -> None:
        self.begun = False
        self._told: set[Callable[[], None]] = set()

    def begin(self) -> None:
        """Take no new turns."""
        self.begun = True

    def tell(self) -> None:
        """Break off the turns that still run."""
        for end in list(self._told):
            end()

    def register(self, end: Callable[[], None]) -> None:
        """Remember how to break off a turn."""
        self._told.add(end)

    def forget(self, end: Callable[[], None]) -> None:
        """The turn is over."""
        self._told.discard(end)


def stopping() -> Refusal:
    """What whoever still waits is told."""
    return Refusal(
        503, "server_stopping", "the server is stopping; nothing of this turn was stored", headers={"Retry-After": "5"}
    )


class Attended:
    """Does what is inside while the client is there and the server runs; else ClientGone, or a refusal."""

    def __init__(self, receive: Receive, server: Stopping) -> None:
        self._receive = receive
        self._server = server
        self._why: LastWordError | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._server.begun:
            raise stopping()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._server.register(self._stop)
        # Most refusals, and the answers of a fast model, are over before it is worth a task to see whether anybody
        # left.
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self._watch)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._server.forget(self._stop)
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._why is not None and isinstance(error, asyncio.CancelledError):
            self._task.uncancel()
            raise self._why from None
        # A watcher that was a moment late must not cancel what comes after.
        self._why = ClientGone("the answer is complete")

    def _watch(self) -> None:
        self._watcher = asyncio.ensure_future(_until_gone(self._receive))
        self._watcher.add_done_callback(self._gone)

    def _gone(self, watcher: asyncio.Task[None]) -> None:
        if not watcher.cancelled():
            self._end(ClientGone("the client has gone"))

    def _stop(self) -> None:
        self._end(stopping())

    def _end(self, why: LastWordError) -> None:
        if self._why is None:
            self._why = why
            self._task.cancel()


async def _until_gone(receive: Receive) -> None:
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return
