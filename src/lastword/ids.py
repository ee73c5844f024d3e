"""Names that nobody has used and nobody can guess: for calls, runs, sessions and the nonces of approvals.

The system's random bytes are fetched a page at a time: asking for each name alone costs a system call, and a thread
switch on top of it while a store is writing.
"""

from __future__ import annotations

import os
import time

_PAGE = 4096
# Sixteenths of a second, in seven digits: they come round again after half a year, which harms nobody.
_TICKS = 16
_TICK_MASK = 0xFFFFFFF
_now = (0, "")
"""The last tick, and how it is written."""
# Digits cut from the last page, by their number. Taking one off a list is a single step: threads need no lock for it.
_cut: dict[int, list[str]] = {}


def name(size: int = 8) -> str:
    """`size` random bytes in hexadecimal."""
    return _take(2 * size)


def ordered(size: int = 9) -> str:
    """A name that begins with the time, of `size` bytes in hexadecimal; all but the first seven digits are random.

    For what is written down often: names that come one after the other lie side by side in an index, and a transaction
    of a hundred calls touches a few pages of it instead of some hundred.
    """
    global _now
    tick, digits = _now
    if (now := int(time.time() * _TICKS)) != tick:
        digits = f"{now & _TICK_MASK:07x}"
        _now = now, digits
    return digits + _take(2 * size - 7)


def _take(digits: int) -> str:
    try:
        return _cut[digits].pop()
    except (KeyError, IndexError):
        page = os.urandom(_PAGE).hex()
        names = [page[start : start + digits] for start in range(0, len(page) - digits + 1, digits)]
        found = names.pop()
        _cut[digits] = names
        return found


def _forget() -> None:
    """A forked child must not hand out the names that its parent will."""
    _cut.clear()


os.register_at_fork(after_in_child=_forget)
