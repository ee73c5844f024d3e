"""The temporary file beside the one that is to be written: made, filled, and removed when its writer is dead."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import suppress

# O_NONBLOCK: opening a pipe that took the place of a file must not wait for a writer.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_temporary(folder: int, mode: int) -> tuple[str, int]:
    """A new file beside the one to be written, locked as long as its writer lives."""
    while True:
        name = f".lastword-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(name, _NEW, mode, dir_fd=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A sweep may have come between the two lines and taken the file for an abandoned one.
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        os.close(descriptor)


def remove_if_there(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def remove_abandoned(folder: int, name: str) -> bool:
    """Remove a temporary file if its writer is dead: a living one holds its lock."""
    descriptor = os.open(name, FILE, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def dress(descriptor: int, old: os.stat_result | None, mode: int | None) -> None:
    """Give the new file the owner and the permission bits of the old one, before anything is in it."""
    if old is not None:
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            with suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        mode = stat.S_IMODE(old.st_mode) if mode is None else mode
    if mode is not None:
        os.fchmod(descriptor, mode)


def fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
