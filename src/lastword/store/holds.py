"""Holding a name while a process lives: at most one holder, and the system lets go for whoever dies.

A file for each name that is held, with a lock on it. It is removed before it is let go, so nothing is left behind; who
locked a file that was removed in the meantime holds nothing, and tries again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from lastword.store.folders import make_private

Release = Callable[[], None]


def hold(folder: Path, name: str) -> Release | None:
    """Hold a name until the returned function is called, or this process ends. None when somebody else holds it."""
    make_private(folder)
    file = folder / hashlib.sha256(name.encode()).hexdigest()[:32]
    while True:
        descriptor = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_still(file, descriptor):
            return lambda: _release(file, descriptor)
        os.close(descriptor)


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(file: Path, descriptor: int) -> None:
    os.unlink(file)
    os.close(descriptor)
