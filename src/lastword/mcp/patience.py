"""What a client hears while it waits for a call: that a person is asked, and what the running tool reports."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from lastword.call import Event, Reported
from lastword.display import visible
from lastword.session import Session

PROGRESS_SECONDS = 5.0
# Of a tool that reports faster than a client reads, the last lines are passed on.
MAX_BEHIND = 100


class Waiting(AbstractContextManager["Waiting"]):
    """A client that waits for one call. What the call reports from here on is passed on to it."""

    def __init__(self, context: Any, session: Session, call_id: str, name: str) -> None:
        self._context = context
        self._session = session
        self._call_id = call_id
        self._words = f"Waiting for a person to answer for {name} in lastword"
        self._reports: deque[str] = deque(maxlen=MAX_BEHIND)
        self._came = asyncio.Event()
        self._told = 0.0

    def __enter__(self) -> Self:
        self._stop_listening = self._session.listen(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stop_listening()

    def _hear(self, event: Event) -> None:
        # Calls of a script have its id, and a number.
        if isinstance(event, Reported) and (event.call_id + ".").startswith(self._call_id + "."):
            self._reports.append(event.message)
            self._came.set()

    async def until(self, task: asyncio.Task[Any], seconds: float | None) -> bool:
        """Whether the task ended within so many seconds, in which the client was kept patient."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        next_word = began + PROGRESS_SECONDS
        while not task.done():
            left = None if seconds is None else seconds - (loop.time() - began)
            if left is not None and left <= 0:
                return False
            pause = next_word - loop.time() if left is None else min(next_word - loop.time(), left)
            coming = asyncio.ensure_future(self._came.wait())
            try:
                await asyncio.wait({task, coming}, timeout=max(pause, 0), return_when=asyncio.FIRST_COMPLETED)
            finally:
                coming.cancel()
            await self._pass_on(loop.time() - began)
            if not task.done() and loop.time() >= next_word:
                next_word = loop.time() + PROGRESS_SECONDS
                await self._tell(loop.time() - began, self._words)
        await self._pass_on(loop.time() - began)
        return True

    async def _pass_on(self, elapsed: float) -> None:
        self._came.clear()
        while self._reports:
            await self._tell(elapsed, visible(self._reports.popleft()))

    async def _tell(self, elapsed: float, words: str) -> None:
        # How much there is to do nobody knows: what a person needs is a part of it. It only has to grow.
        self._told = max(elapsed, self._told + 0.001)
        await self._context.session.report_progress(self._told, None, words)
