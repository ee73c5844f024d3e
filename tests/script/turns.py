"""How long a script keeps everybody else from their turn."""

import asyncio
from collections.abc import Awaitable
from time import thread_time
from typing import TypeVar

T = TypeVar("T")


async def longest_turn(work: Awaitable[T]) -> tuple[T, float]:
    """What some work gives, and the most processor time that it took between two turns of another task.

    The time of this thread, and not of the clock on the wall: a busy machine is nobody's fault.
    """
    done = False
    longest = 0.0

    async def wait_for_turns() -> None:
        nonlocal longest
        last = thread_time()
        while not done:
            await asyncio.sleep(0)
            now = thread_time()
            longest = max(longest, now - last)
            last = now

    watching = asyncio.create_task(wait_for_turns())
    await asyncio.sleep(0)
    try:
        result = await work
    finally:
        done = True
        await watching
    return result, longest
