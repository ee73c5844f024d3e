"""Tasks that begin at once are tasks like any other, whichever Python makes them."""

import asyncio
import gc
from contextvars import ContextVar
from typing import Any

import pytest

from lastword.call.threads import start

mark: ContextVar[str] = ContextVar("mark", default="nobody's")


def begin(coroutine):
    return start(asyncio.get_running_loop(), coroutine)


def me() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_what_does_not_wait_is_over_at_once():
    """That is what they are for: no turn of the loop is spent on it."""
    done = []

    async def work():
        done.append(asyncio.current_task())
        return "result"

    starter = asyncio.current_task()
    task = begin(work())
    assert done == [task]
    assert task.done()
    assert task.result() == "result"
    assert await task == "result"
    assert asyncio.current_task() is starter


async def test_a_callback_that_the_task_gives_itself_is_called():
    """In its first step it can reach itself already."""
    called: list[asyncio.Task[Any]] = []

    async def work():
        me().add_done_callback(called.append)

    task = begin(work())
    await asyncio.sleep(0)
    assert called == [task]


async def test_a_failure_that_nobody_looks_at_is_complained_of():
    """As asyncio does of every task."""
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))

    async def work():
        raise ValueError("no")

    begin(work())
    gc.collect()
    asyncio.get_running_loop().set_exception_handler(None)
    [complaint] = complaints
    assert complaint.endswith("Task exception was never retrieved")


async def test_what_waits_goes_on_later():
    """And is found among all tasks until it is over."""
    first, second = asyncio.Event(), asyncio.Event()
    seen: list[Any] = []

    async def work():
        seen.append("begun")
        await first.wait()
        seen.append("between")
        await second.wait()
        seen.append(asyncio.current_task())
        return "result"

    task = begin(work())
    assert seen == ["begun"]
    assert task in asyncio.all_tasks()
    first.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert seen == ["begun", "between"]
    second.set()
    assert await task == "result"
    assert seen[-1] is task
    assert task not in asyncio.all_tasks()


async def test_a_plain_yield_gives_way_to_others():
    """`sleep(0)` waits for nothing, and is a turn of the loop all the same."""
    order = []

    async def work():
        order.append(1)
        await asyncio.sleep(0)
        order.append(3)

    task = begin(work())
    order.append(2)
    await task
    assert order == [1, 2, 3]


async def test_a_timeout_in_the_task_ends_the_task_and_not_who_started_it():
    """A timeout takes hold of the current task as it is entered, which is in the first step."""

    async def work():
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    task = begin(work())
    with pytest.raises(TimeoutError):
        await task
    assert me().cancelling() == 0


async def test_a_group_in_the_task_is_the_tasks_own():
    """One of the group fails: the task hears of it, and whoever started it goes on."""

    async def fail():
        raise ValueError("no")

    async def work():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.Event().wait()

    task = begin(work())
    with pytest.raises(ExceptionGroup):
        await task
    assert me().cancelling() == 0


async def test_it_can_be_cancelled_while_it_waits():
    """The coroutine hears of it where it waits, and may tidy up."""
    tidied = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append(True)

    task = begin(work())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tidied
    assert task.cancelled()


async def test_one_that_outlives_its_cancellation_goes_on():
    """Catching it is the coroutine's right."""
    go_on = asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go_on.wait()
        return "all the same"

    task = begin(work())
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert await task == "all the same"


@pytest.mark.parametrize("waits", [False, True])
async def test_a_failure_is_kept_for_whoever_awaits(waits):
    """In the first step or in a later one, and never raised at who started it."""

    async def work():
        if waits:
            await asyncio.sleep(0)
        raise ValueError("no")

    task = begin(work())
    with pytest.raises(ValueError, match="no"):
        await task
    assert isinstance(task.exception(), ValueError)


async def test_one_that_cancels_itself_in_its_first_step_is_cancelled():
    """It raised what a cancellation raises."""

    async def work():
        raise asyncio.CancelledError

    task = begin(work())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("how", ["a plain yield", "a future", "a future that is about to end"])
async def test_one_that_asks_for_its_own_cancellation_hears_of_it_where_it_waits(how):
    """It may tidy up, and tidying up may take time. A coroutine that is thrown away instead would leave all undone."""
    heard, tidied = [], []

    async def work():
        me().cancel()
        try:
            if how == "a plain yield":
                await asyncio.sleep(0)
            else:
                future = asyncio.get_running_loop().create_future()
                if how == "a future that is about to end":
                    asyncio.get_running_loop().call_soon(future.set_result, None)
                await future
        except asyncio.CancelledError:
            heard.append(True)
            raise
        finally:
            await asyncio.sleep(0)
            tidied.append(True)

    task = begin(work())
    await asyncio.wait({task}, timeout=30)
    assert task.cancelled()
    assert heard
    assert tidied


async def test_the_context_is_a_copy():
    """What the task sets is its own, in every step; what the starter had, it sees."""
    mark.set("the starter's")
    seen = []

    async def work():
        seen.append(mark.get())
        mark.set("the task's")
        await asyncio.sleep(0)
        seen.append(mark.get())

    await begin(work())
    assert seen == ["the starter's", "the task's"]
    assert mark.get() == "the starter's"


async def test_they_nest():
    """A task that starts one in its first step is the current one again afterwards."""
    seen = []

    async def inner():
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    async def outer():
        me = asyncio.current_task()
        task = begin(inner())
        assert asyncio.current_task() is me
        await task
        assert asyncio.current_task() is me
        return task

    task = begin(outer())
    inside = await task
    assert seen == [inside, inside]


async def test_they_gather_like_others():
    """Futures, callbacks and names are those of a task."""

    async def work(number):
        await asyncio.sleep(0)
        return number

    tasks = [begin(work(number)) for number in range(5)]
    called: list[asyncio.Task[Any]] = []
    tasks[0].add_done_callback(called.append)
    assert await asyncio.gather(*tasks) == [0, 1, 2, 3, 4]
    await asyncio.sleep(0)
    assert called == [tasks[0]]
    assert tasks[0].get_name()


async def test_one_that_is_thrown_away_closes_its_coroutine():
    """A coroutine that nobody will ever go on with must still leave its `finally` clauses."""
    closed = []

    async def work(event):
        try:
            await event.wait()
        finally:
            closed.append(True)

    loop = asyncio.get_running_loop()
    complaints = []
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    begin(work(asyncio.Event()))
    gc.collect()
    loop.set_exception_handler(None)
    assert closed
    assert complaints == ["Task was destroyed but it is pending!"]
