"""Whether anybody still waits for an answer: the client may go, and the server may be told to stop.

Either way the work for the answer is cancelled where it stands, and with it the request to the model's server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive

from assent.errors import AssentError
from assent.server.refusal import Refusal


class ClientGone(AssentError):
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

    @property
    def running(self) -> int:
        """How many turns are under way."""
        return len(self._told)

    def register(self, end: Callable[[], None]) -> Callable[[], None]:
        """Remember how to break off a turn; gives back how to forget it."""
        self._told.add(end)
        return lambda: self._told.discard(end)


def stopping() -> Refusal:
    """What whoever still waits is told."""
    return Refusal(
        503, "server_stopping", "the server is stopping; nothing of this turn was stored", headers={"Retry-After": "5"}
    )


@asynccontextmanager
async def attended(receive: Receive, server: Stopping) -> AsyncIterator[None]:
    """Do what is inside while the client is there and the server runs; else ClientGone, or a refusal."""
    if server.begun:
        raise stopping()
    task = asyncio.current_task()
    assert task is not None
    ended: list[AssentError] = []

    def end(why: AssentError) -> None:
        if not ended:
            ended.append(why)
            task.cancel()

    forget = server.register(lambda: end(stopping()))
    watcher = asyncio.ensure_future(_until_gone(receive))
    watcher.add_done_callback(lambda done: None if done.cancelled() else end(ClientGone("the client has gone")))
    try:
        yield
    except asyncio.CancelledError:
        if not ended:
            raise
        task.uncancel()
        raise ended[0] from None
    finally:
        # Whatever happens from here on, this task is not to be cancelled by a watcher that was a moment late.
        ended.append(ClientGone("the answer is complete"))
        forget()
        watcher.cancel()


async def _until_gone(receive: Receive) -> None:
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return
