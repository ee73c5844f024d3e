"""Daemon threads for sync tools: used again, bounded when idle, and never in anybody's way."""

import asyncio
import contextvars
import threading

from lastword.call.threads import MAX_IDLE, Threads
from requirements import requirement
from sending import until

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


async def run(threads: Threads, function):
    """Run a function in a thread and give (result, problem)."""
    answer = asyncio.get_running_loop().create_future()
    threads.run(function, lambda *found: answer.set_result(found), asyncio.get_running_loop())
    return await answer


@requirement("TOOL-15")
async def test_a_thread_is_used_again_and_does_not_keep_the_program():
    """One after another needs one thread, and it is a daemon."""
    threads = Threads()
    seen = set()
    for _ in range(5):
        thread, problem = await run(threads, threading.current_thread)
        assert problem is None
        seen.add(thread)
        await until(lambda: threads._idle)
    assert len(seen) == 1
    assert next(iter(seen)).daemon


async def test_what_a_job_raises_is_handed_over_whatever_it_is():
    """Also what is meant to end a program; the thread lives on."""
    threads = Threads()

    def leave():
        raise SystemExit(3)

    result, problem = await run(threads, leave)
    assert result is None
    assert isinstance(problem, SystemExit)
    assert (await run(threads, lambda: 5))[0] == 5


async def test_a_job_sees_the_context_of_its_caller_and_changes_only_its_own():
    """The guard and the running tool's context travel this way."""
    threads = Threads()
    WHO.set("caller")

    def look():
        found = WHO.get()
        WHO.set("job")
        return found

    assert (await run(threads, look))[0] == "caller"
    assert WHO.get() == "caller"


async def test_more_idle_threads_than_the_limit_end():
    """A burst leaves no crowd behind."""
    threads = Threads()
    barrier = threading.Barrier(MAX_IDLE + 8, timeout=10)
    before = set(threading.enumerate())
    await asyncio.gather(*(run(threads, barrier.wait) for _ in range(MAX_IDLE + 8)))
    await until(lambda: len(threads._idle) == MAX_IDLE)
    await until(lambda: len(set(threading.enumerate()) - before) <= MAX_IDLE)


def test_an_answer_for_a_loop_that_is_gone_is_dropped():
    """The tool was abandoned together with whoever waited for it."""
    threads = Threads()
    loop = asyncio.new_event_loop()
    release, done = threading.Event(), threading.Event()

    def job():
        release.wait(5)
        done.set()

    threads.run(job, lambda *found: None, loop)
    loop.close()
    release.set()
    assert done.wait(5)
