"""Taking back what one call changed: byte for byte, all of it or none.

The changes of a call fold into one step for each file, from what it was before the first to what the last left. Every
file is looked at before the first is touched: if somebody has worked on one since, nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

from lastword.editor.provider import Change, ProjectProvider
from lastword.errors import Conflict, EditError


async def undo(editor: ProjectProvider, changes: Sequence[Change]) -> list[str]:
    """Restore every file that these changes touched; returns the paths, in the order in which they were restored."""
    steps = [step for step in reversed(fold(changes)) if not _is_restored(editor, step)]
    touched = [step.path for step in steps if editor.read_bytes(step.path) != step.after]
    if touched:
        raise Conflict(
            f"changed since: {', '.join(touched)}; nothing was taken back",
            hint="undo the later changes first, or restore the file by hand",
        )
    done: list[str] = []
    for step in steps:
        try:
            await editor.restore(step)
        except EditError as problem:
            if not done:
                raise
            raise EditError(
                f"{step.path} could not be restored ({problem.fact}); {', '.join(done)} already was",
                hint="remove what stands in the way and undo again: what is restored stays restored",
            ) from problem
        if _differs(step):
            done.append(step.path)
    return done


def fold(changes: Sequence[Change]) -> list[Change]:
    """One change for each path: from what it was first to what it was left as. What came to nothing is dropped."""
    steps: dict[str, Change] = {}
    for change in changes:
        first = steps.get(change.path, change)
        steps[change.path] = Change(
            change.path, first.before, change.after, first.mode, change.left_mode, first.made_folders
        )
    return [step for step in steps.values() if _differs(step) or step.made_folders]


def _differs(step: Change) -> bool:
    return step.before != step.after or step.mode != step.left_mode


def _is_restored(editor: ProjectProvider, step: Change) -> bool:
    """Whether an undo that stopped halfway has been here. Mode and folders tell only where the bytes do not."""
    if step.before != step.after:
        return editor.read_bytes(step.path) == step.before
    return not step.made_folders and editor.file_mode(step.path) == step.mode
