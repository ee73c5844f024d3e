"""Where code runs: tasks that begin at once, daemon threads for sync tools, and a loop for programs that have none."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, TypeVar

from lastword.errors import SessionError

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
    """A growing set of idle daemon threads, shared by all sessions of the process.

    The standard executors wait for their threads when the interpreter ends, so one tool that hangs would keep the
    program alive for ever. These do not: an abandoned thread is reported, forgotten, and dies with the process.
    """

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


class Home:
    """The event loop that a session lives on, as code in any thread reaches it; a background one for sync code."""

    loop: asyncio.AbstractEventLoop | None = None
    _background: threading.Thread | None = None

    def __init__(self, session_id: str, others: Callable[[], Iterator[asyncio.AbstractEventLoop]]) -> None:
        self._session_id = session_id
        self._others = others
        """The loops on which something of the session waits or runs."""
        self._beginning = threading.Lock()

    def reached(self) -> asyncio.AbstractEventLoop | None:
        """The loop now; None when there is none. After `asyncio.run` has closed one, another may have taken over."""
        if self.loop is not None and self.loop.is_closed():
            alive = next((loop for loop in self._others() if not loop.is_closed()), None)
            if alive is None:
                return None  # Nothing waits or runs that could be reached.
            self.loop = alive
        return self.loop

    def tell(self, function: Callable[..., Any], *given: Any) -> None:
        """Call a function on the loop, some time soon from another thread."""
        loop = self.reached()
        if loop is not None and _running_loop() is loop:
            function(*given)
        elif loop is not None:
            loop.call_soon_threadsafe(function, *given)

    def ask(self, function: Callable[[], T]) -> T | None:
        """What a function gives that is called on the loop, from whichever thread; None when there is none yet."""
        loop = self.reached()
        if loop is None:
            return None
        if _running_loop() is loop:
            return function()

        async def there() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(there(), loop).result()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for work in the background, for code without an event loop."""
        try:
            with self._beginning:  # Threads that come first at once share one loop.
                if self._background is None:
                    self._begin()
            self._refuse_own_thread()
        except SessionError:
            coroutine.close()
            raise
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End the background loop, if there is one, with this as its last work."""
        if self._background is None or self.loop is None:
            return
        self._refuse_own_thread()
        for work in (last(), _end_tasks()):
            asyncio.run_coroutine_threadsafe(work, self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._background.join()
        self.loop.close()
        self._background = None

    def _begin(self) -> None:
        if self.loop is not None:
            raise SessionError(
                "this session already lives on an event loop",
                place=self._session_id,
                hint="await session.call(…) there",
            )
        self.loop = asyncio.new_event_loop()
        self._background = threading.Thread(target=self.loop.run_forever, name="lastword-session", daemon=True)
        self._background.start()

    def _refuse_own_thread(self) -> None:
        """Whatever runs on this loop, an inline tool or a listener, must not wait for it: it would wait for ever."""
        if _running_loop() is self.loop:
            raise SessionError(
                "this is the session's own event loop, which cannot wait for itself",
                place=self._session_id,
                hint="make the tool async and await session.call(…), or let it run in a thread",
            )


async def _end_tasks() -> None:
    """Tell whatever still waits on this loop, such as an abandoned approver, that nobody will come."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# Tasks that begin at once: what needs no waiting is over before whoever started it goes on. Python 3.12 has them. For
# 3.11 they are made here, out of the task that asyncio keeps in Python: its first step is taken now instead of at the
# loop's next turn. That Python gets security fixes only, so its asyncio stays as it is.
if sys.version_info >= (3, 12):

    def start(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that has begun, and perhaps ended. To be called on its loop."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:
    from asyncio import futures, tasks

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
            self._context = context = contextvars.copy_context()
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
