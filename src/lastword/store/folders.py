"""Folders and files that are only their owner's business: where they are, and how they are made and opened."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePath

# The memory in the data folder, where nobody names another.
DEFAULT_FILE = "lastword.db"


def data_folder(platform: str, environment: Mapping[str, str], home: PurePath) -> Path:
    """Where lastword keeps what it remembers for a person: `sys.platform`, `os.environ`, `Path.home()` decide."""
    if platform == "darwin":
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


def open_to_read(file: Path, flags: int = 0) -> int:
    """A descriptor of a plain file; an OSError for anything else.

    Opening a pipe would wait for whoever writes into it, and whoever put it there never does.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file", str(file))
    return descriptor
