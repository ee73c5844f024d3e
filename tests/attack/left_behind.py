"""A process dies here as a disk sees it: its file, the log and the head beside it are copied while it lives, and that
copy is all that there is afterwards."""

import shutil
from pathlib import Path

from lastword.journal import Journal


async def left_behind(journal: Journal, path: Path, name: str) -> Path:
    """What would be there of this journal, whose file it is, if its process died now."""
    await journal.store.commit()
    for file in path.parent.glob(f"{path.name}*"):
        if not file.is_dir() and not file.name.endswith("-shm"):
            shutil.copy(file, path.parent / file.name.replace(path.stem, name))
    return path.parent / f"{name}.db"
