"""Looking: code of a tool that may not touch anything, run under the guard, in a thread of its own, for a limited time.

Async code gets an event loop of its own in that thread. It could block, and on the session's loop it would then hold up
everybody, the clock that limits its own time among them. What it leaves on its loop ends with the phase.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from lastword.call.threads import THREADS
from lastword.errors import LastWordError
from lastword.tools import ToolContext
from lastword.tools.guard import Guard

T = TypeVar("T")

# Tasks that the code left behind are told to stop, and have this long to do so.
CLOSING_SECONDS = 0.1

Finish = Callable[[Any], Any]
"""What a function returned as what it stands for: an awaitable is awaited."""


async def look(work: Callable[[Finish], T], guard: Guard, context: ToolContext[Any], timeout_seconds: float) -> T:
    """Do some work that may only look. Work that is not over in time is left behind, still watched."""
    own = _OwnLoop()
    took = 0.0

    def watched() -> T:
        nonlocal took
        began = time.monotonic()
        ToolContext.current.set(context)
        try:
            with guard.watching():
                try:
                    return work(own.finish)
                finally:
                    own.close()
        finally:
            took = time.monotonic() - began

    answer = THREADS.start(watched)
    try:
        await asyncio.wait({answer}, timeout=timeout_seconds)
    finally:
        if not answer.done():
            context._cancelled = True
            own.abandon()
    # A loop that is busy hears of both the result and the end of the time too late; how long it took is known.
    if not answer.done() or took > timeout_seconds:
        raise LastWordError(f"it did not finish within {timeout_seconds:g} seconds")
    result, problem = answer.result()
    if isinstance(problem, asyncio.CancelledError):
        raise LastWordError("it was cancelled from within")
    if problem is not None:
        raise problem
    return result


def at_home() -> Callable[[Coroutine[Any, Any, T]], Awaitable[T]]:
    """A way to await, from the loop of a phase, what belongs to this one: an editor of the host's may live here."""
    home, context = asyncio.get_running_loop(), contextvars.copy_context()

    async def there(coroutine: Coroutine[Any, Any, T]) -> T:
        # In the host's context: it is the host's code that reads, and not the tool's.
        return await asyncio.wrap_future(context.run(asyncio.run_coroutine_threadsafe, coroutine, home))

    return there


class _OwnLoop:
    """The event loop of one phase, made when something is to be awaited."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_abandoned = False

    def finish(self, result: Any) -> Any:
        if inspect.isawaitable(result) and not self._is_abandoned:
            if self._loop is None:
                # Outside of the guard, which would take the pipe that wakes the loop for a use of the network.
                self._loop = contextvars.Context().run(asyncio.SelectorEventLoop)
            result = self._loop.run_until_complete(self._hold(result))
        if self._is_abandoned:  # It came back late, and whatever would be next does not begin.
            raise LastWordError("its time is up")
        return result

    async def _hold(self, result: Awaitable[T]) -> T:
        self._task = asyncio.current_task()
        return await result

    def abandon(self) -> None:
        """Stop waiting, from another thread. Code that awaits is told; code that blocks finds out when it is back."""
        self._is_abandoned = True
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # It is closed: the code came back in this very moment.
                loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """End what was left on the loop, while the guard still watches."""
        loop = self._loop
        if loop is None:
            return
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=CLOSING_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
