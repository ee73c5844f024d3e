"""An event loop in a thread of its own, for code that has none and uses a session all the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from lastword.errors import SessionError

T = TypeVar("T")


class Background:
    """An event loop in a daemon thread, for sessions used from sync code."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="lastword-session", daemon=True)
        self._thread.start()

    def refuse_own_thread(self, session_id: str) -> None:
        """Whatever runs on this loop, an inline tool or a listener, must not wait for it: it would wait for ever."""
        if running_loop() is self.loop:
            raise SessionError(
                "this is the session's own event loop, which cannot wait for itself",
                place=session_id,
                hint="make the tool async and await session.call(…), or let it run in a thread",
            )

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _end_tasks(self) -> None:
        """Tell whatever still waits on this loop, such as an abandoned approver, that nobody will come."""
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
