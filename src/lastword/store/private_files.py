"""Folders and files that are only their owner's business: where they are, and how they are made and locked.

A name is held while a process lives: at most one holder, and the system lets go for whoever dies. There is a file for
each name that is held, with a lock on it. It is removed before it is let go, so nothing is left behind; who locked a
file that was removed in the meantime holds nothing, and tries again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath

# The memory in the data folder, where nobody names another.
DEFAULT_FILE = "lastword.db"


def data_folder(
    environment: Mapping[str, str] | None = None, *, platform: str | None = None, home: PurePath | None = None
) -> Path:
    """Where lastword keeps what it remembers for a person: the system, the environment and their home decide."""
    environment, home = os.environ if environment is None else environment, home or Path.home()
    if (platform or sys.platform) == "darwin":
        return Path(home / "Library" / "Application Support" / "lastword")
    # The XDG rules say that a relative path is to be ignored.
    named = PurePath(environment.get("XDG_DATA_HOME", ""))
    return Path((named if named.is_absolute() else home / ".local" / "share") / "lastword")


def make_private(folder: Path) -> None:
    """Make a folder and the missing ones above it, so that only the owner can look in and a crash does not undo it.

    `mkdir(parents=True)` would give the ones above the mode that the umask leaves, which is usually everybody's.
    """
    for missing in reversed([above for above in (folder, *folder.parents) if not above.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        sync_names(missing.parent)


def sync_names(folder: Path) -> None:
    """Make the names in a folder durable: a file whose name is lost is lost."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(file: Path, data: bytes, mode: int | None = 0o600, *, keeps: bool = False) -> None:
    """Write a file, whole or not at all, in place of what is there; or, if it `keeps` that, where there is nothing.

    Without a mode it gets that of a file which the person makes.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644 if mode is None else mode)
    with os.fdopen(descriptor, "wb") as out:
        if mode is not None:
            os.fchmod(descriptor, mode)
        out.write(data)
        out.flush()
        os.fsync(descriptor)
    if keeps:
        try:
            with suppress(FileExistsError):  # Of two that make one at once, the first one's is everybody's.
                os.link(part, file)
        finally:
            part.unlink()
    else:
        os.replace(part, file)
    sync_names(file.parent)


Release = Callable[[], None]


def hold(memory: Path, name: str) -> Release | None:
    """Hold a name in the memory in this file until the returned function is called, or this process ends.

    None when somebody else holds it.
    """
    folder = holds_folder(memory)
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
    """Whether somebody holds a name in the memory in this data folder. Nothing is made or opened for that.

    What cannot be looked at is held by nobody.
    """
    try:
        descriptor = os.open(_file(holds_folder(folder / DEFAULT_FILE), name), os.O_RDWR | os.O_CLOEXEC)
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
