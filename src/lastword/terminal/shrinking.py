"""How small a window became while something stood on it: many terminals cut off what no longer fits, and for good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The signal of a new size does not always come: a prompt takes it for itself, and a terminal that is not this program's
# own sends none. No hand makes a window narrow and wide again in less.
LOOK_SECONDS = 0.05


class Smallest:
    """The smallest size of a window since it was last drawn upon."""

    def __init__(self, size: Callable[[], tuple[int, int]]) -> None:
        """`size` gives columns and rows, as they are now."""
        self._size = size
        self.columns, self.rows = size()

    def begin(self) -> None:
        """Something is drawn, for the size that the window has now."""
        self.columns, self.rows = self._size()

    def look(self) -> None:
        """See how large it is."""
        columns, rows = self._size()
        self.columns, self.rows = min(self.columns, columns), min(self.rows, rows)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look again and again, whatever else goes on meanwhile."""
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)
