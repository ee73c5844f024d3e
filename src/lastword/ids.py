"""Names that nobody has used and nobody can guess: for calls, runs, sessions and the nonces of approvals."""

from __future__ import annotations

from os import urandom
from time import time

# Sixteenths of a second in four bytes: they come round again after eight years, which harms nobody.
_TICKS = 16
_MASK = 0xFFFFFFFF


def new(size: int = 9) -> str:
    """A name of `size` bytes in hexadecimal that begins with the time; all but the first four bytes are random.

    What is written down often is looked up often: names that come one after the other lie side by side in an index, and
    a transaction of a hundred calls touches a few pages of it instead of some hundred.
    """
    return ((int(time() * _TICKS) & _MASK).to_bytes(4, "big") + urandom(size - 4)).hex()
