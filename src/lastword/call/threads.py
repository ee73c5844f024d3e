"""Daemon threads for sync tools.

The standard executors wait for their threads when the interpreter ends, so one tool that hangs would keep the program
alive for ever. These do not: an abandoned thread is reported, forgotten, and dies with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Threads that are kept for the next call. As many run as there are sync tools running; what is left over then ends.
MAX_IDLE = 32

Job = Callable[[], None]


class _Worker:
    """One daemon thread that takes jobs until nobody needs it."""

    def __init__(self, pool: Threads) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._pool = pool
        threading.Thread(target=self._work, name="lastword-tool", daemon=True).start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job()
            del job  # What a job holds must not live until the next one comes.
            if not self._pool.take_back(self):
                return


class Threads:
    """A growing set of idle workers, shared by all sessions of the process."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()

    def run(
        self,
        function: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Call `function` in a thread with the caller's context, then `done(result, problem)` on the loop."""
        context = contextvars.copy_context()

        def job() -> None:
            result: Any = None
            problem: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as caught:
                problem = caught
            with contextlib.suppress(RuntimeError):  # The loop is closed: whoever waited is gone.
                loop.call_soon_threadsafe(done, result, problem)

        with self._lock:
            worker = self._idle.pop() if self._idle else None
        (worker or _Worker(self)).jobs.put(job)

    def start(self, function: Callable[[], T]) -> asyncio.Future[tuple[T, BaseException | None]]:
        """Call `function` in a thread, for whoever waits on the running loop: what it returned, and what it raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[T, BaseException | None]] = loop.create_future()

        def done(result: T, problem: BaseException | None) -> None:
            if not answer.done():
                answer.set_result((result, problem))

        self.run(function, done, loop)
        return answer

    async def result_of(self, function: Callable[[], T]) -> T:
        """Wait for a function that may take its time with the disk."""
        result, problem = await self.start(function)
        if problem is not None:
            raise problem
        return result

    def take_back(self, worker: _Worker) -> bool:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(worker)
                return True
        return False


THREADS = Threads()
