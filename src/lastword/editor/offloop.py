"""Work that takes its time, beside the event loop: everybody else's timers, keys and cards live on the loop.

What runs here is ours and only looks: comparing texts, walking folders, waiting for a linter. It runs in an empty
context, so that the guard, which forbids a tool's request function to start threads and processes, does not mistake our
threads for the tool's.

Of a write, what waits for the disk runs here as well. Its last look and its rename do not: what could be interrupted
between the two would be neither done nor undone, so they are one step on the loop, and a short one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

# Processes that are waited for at the same time. Each of them keeps a core busy.
AT_ONCE = 4


async def off_loop(function: Callable[..., Made], *arguments: object) -> Made:
    """Call a function in a thread, and wait for it."""
    loop = asyncio.get_running_loop()
    return await Context().run(loop.run_in_executor, None, function, *arguments)


def each(function: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """Call a function that waits for a process once for each, several at a time. Not on the loop."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(function, given))
