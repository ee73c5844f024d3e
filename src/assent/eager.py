"""Tasks that begin at once: what needs no waiting is over before whoever started it goes on.

Python 3.12 has them. For 3.11 they are made here, out of the task that asyncio keeps in Python: it is told to take its
first step now instead of at the loop's next turn. That Python gets security fixes only, so its asyncio stays as it is.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

if sys.version_info >= (3, 12):

    def start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that has begun, and perhaps ended. To be called on its loop."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:
    from asyncio import tasks
    from contextvars import copy_context

    # Private names, which typing stubs leave out on purpose.
    _PyTask: Any = vars(tasks)["_PyTask"]
    _first_step = vars(_PyTask)["_Task__step"]
    _enter, _leave, _register = (vars(tasks)[name] for name in ("_enter_task", "_leave_task", "_register_task"))

    class _EagerTask(_PyTask):  # type: ignore[misc]
        """What the constructor of a task does, except that the first step is taken and not planned."""

        def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> None:
            self._loop = loop
            self._callbacks: list[Any] = []
            self._name = "assent"
            self._num_cancels_requested = 0
            self._must_cancel = False
            self._fut_waiter = None
            self._coro = coroutine
            self._context = copy_context()
            # While the coroutine runs it is the current task: a timeout in it must cancel it, and not who started it.
            starter = asyncio.current_task(loop)
            if starter is not None:
                _leave(loop, starter)
            try:
                self._context.run(_first_step, self)
            finally:
                if starter is not None:
                    _enter(loop, starter)
            if not self.done():
                _register(self)  # Who looks for all tasks finds those that go on.

    def start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that has begun, and perhaps ended. To be called on its loop."""
        return _EagerTask(loop, coroutine)
