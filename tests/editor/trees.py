"""What a folder holds, as a value that two moments can be compared by."""

import stat
from pathlib import Path

Tree = dict[str, tuple[bytes, int] | None]


def tree(folder: Path) -> Tree:
    """Every file with its bytes and mode; a folder is None."""
    return {str(path.relative_to(folder)): _entry(path) for path in sorted(folder.rglob("*"))}


def _entry(path: Path) -> tuple[bytes, int] | None:
    return (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) if path.is_file() else None
