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
    file = _file(folder, name)
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


def holds_folder(memory: Path) -> Path:
    """Where the names lie that are held in a memory in this file."""
    return memory.with_name(memory.name + ".holds")


def is_held(folder: Path, name: str) -> bool:
    """Whether somebody holds a name. Nothing is made for that, and what cannot be looked at is held by nobody."""
    try:
        descriptor = os.open(_file(folder, name), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _file(folder: Path, name: str) -> Path:
    return folder / hashlib.sha256(name.encode()).hexdigest()[:32]


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(file: Path, descriptor: int) -> None:
    os.unlink(file)
    os.close(descriptor)
