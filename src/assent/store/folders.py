"""Making folders that are only their owner's business."""

from __future__ import annotations

import os
from pathlib import Path


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
