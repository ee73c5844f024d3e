"""Names that nobody has used and nobody can guess: for calls, runs, sessions and the nonces of approvals.

The system's random bytes are fetched a page at a time: asking for each name alone costs a system call, and a thread
switch on top of it while a store is writing.
"""

from __future__ import annotations

import os
import threading
import time

_PAGE = 4096
# Sixteenths of a second, in seven digits: they come round again after half a year, which harms nobody.
_TICKS = 16
_TICK_MASK = 0xFFFFFFF
_lock = threading.Lock()
_page = ""
_place = 0


def name(size: int = 8) -> str:
    """`size` random bytes in hexadecimal."""
    global _page, _place
    with _lock:
        start, end = _place, _place + 2 * size
        if end > len(_page):
            _page = os.urandom(_PAGE).hex()
            start, end = 0, 2 * size
        _place = end
        return _page[start:end]


def ordered(size: int = 9) -> str:
    """A name that begins with the time, of `size` bytes in hexadecimal; all but the first seven digits are random.

    For what is written down often: names that come one after the other lie side by side in an index, and a transaction
    of a hundred calls touches a few pages of it instead of some hundred.
    """
    return f"{int(time.time() * _TICKS) & _TICK_MASK:07x}{name(size)[7:]}"


def _forget() -> None:
    """A forked child must not hand out the names that its parent will."""
    global _page, _lock
    _page = ""
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)
