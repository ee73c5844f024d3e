"""Large work beside the event loop, in a thread, so that nobody else waits for it.

Reading, checking and writing out a script, and copying its values, know nothing of the loop and change nothing that
others see. Python hands the processor from thread to thread every few milliseconds, so the loop has its turns.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable
from typing import ParamSpec, TypeVar

# Reading, checking and writing out a text of so many characters takes some milliseconds, whatever it says. Most are
# far shorter, and a thread would cost them more than it gives.
LARGE_TEXT = 8_000

P = ParamSpec("P")
T = TypeVar("T")


async def aside(text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on a text: at once, or in a thread where the text is large."""
    if len(text) <= LARGE_TEXT:
        return work(*args, **kwargs)
    return await to_thread(work, *args, **kwargs)
