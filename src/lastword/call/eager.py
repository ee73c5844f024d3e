"""Tasks that begin at once: what needs no waiting is over before whoever started it goes on.

Python 3.12 has them. For 3.11 they are made here, out of the task that asyncio keeps in Python: its first step is taken
now instead of at the loop's next turn. That Python gets security fixes only, so its asyncio stays as it is.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that has begun, and perhaps ended. To be called on its loop."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:
    from asyncio import futures, tasks
    from contextvars import copy_context

    # Private names, which typing stubs leave out on purpose.
    _PyTask: Any = vars(tasks)["_PyTask"]
    _step = vars(_PyTask)["_Task__step"]
    _set_result = vars(futures)["_PyFuture"].set_result
    _current: dict[asyncio.AbstractEventLoop, Any] = vars(tasks)["_current_tasks"]
    _register = vars(tasks)["_register_task"]
    _FINISHED = vars(futures)["_FINISHED"]

    class _EagerTask(_PyTask):  # type: ignore[misc]
        """What the constructor of a task does, except that the first step is taken and not planned."""

        # How every task begins, said once.
        _name = "lastword"
        _num_cancels_requested = 0
        _must_cancel = False
        _fut_waiter: Any = None

        def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
            self._loop = loop
            self._callbacks: list[Any] = []
            self._coro: Any = coroutine
            self._context = context = copy_context()
            # While the coroutine runs it is the current task: a timeout in it must cancel it, and not who started it.
            starter = _current.get(loop)
            _current[loop] = self
            try:
                try:
                    awaited = context.run(coroutine.send, None)
                except StopIteration as end:
                    if self._callbacks:
                        _set_result(self, end.value)
                    else:  # The same, with nobody to tell.
                        self._result, self._state = end.value, _FINISHED
                    return
                except BaseException as problem:
                    self._coro = _raise(problem)
                else:
                    self._coro = _go_on(coroutine, awaited)
                # It waits, or it failed: from here on it is a task like any other.
                del _current[loop]
                _register(self)
                # One that cancelled itself is not told before it waits: told now, its coroutine would never hear of it.
                cancels, self._must_cancel = self._must_cancel, False
                context.run(_step, self)
                if cancels and not self.done() and not (self._fut_waiter and self._fut_waiter.cancel()):
                    self._must_cancel = True
            finally:
                if starter is not None:
                    _current[loop] = starter
                else:
                    _current.pop(loop, None)

        def __del__(self) -> None:
            if self._state != _FINISHED or self._exception is not None:
                super().__del__()  # It complains of what was forgotten; most have nothing to complain of.

    def _go_on(coroutine: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
        """The rest of a coroutine that waits for something after its first step."""
        while True:
            try:
                try:
                    value = yield awaited
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as problem:
                    awaited = coroutine.throw(problem)
                else:
                    awaited = coroutine.send(value)
            except StopIteration as end:
                return end.value

    async def _raise(problem: BaseException) -> None:
        """A coroutine that failed in its first step."""
        raise problem

    def start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that has begun, and perhaps ended. To be called on its loop."""
        return _EagerTask(loop, coroutine)
