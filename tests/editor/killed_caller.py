"""Run by test_kill.py: forks sessions, one for each line on stdin, and reports how each of them died.

A session makes one approved call that changes two files, with its journal on disk, and then waits to be killed. It says
its process id just before the call.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from lastword import Session, ToolRegistry, open_journal
from lastword.consent import Outcome
from lastword.editor import ProjectEditor, editor_tools
from lastword.testing import FixedApprover

# Small: then the time goes into the disk, which is where the kills shall fall.
OLD = "old line\r\n" * 100
NEW = "new line\r\n" * 100
EDITS = [
    {"action": "write_file", "path": "old.txt", "text": NEW},
    {"action": "write_file", "path": "made/new.txt", "text": NEW},
]


async def change(project: Path, store: Path, session_id: str, begin: Callable[[], None]) -> Outcome:
    """Make the one call; `begin` is called just before it, when everything is open."""
    registry = ToolRegistry()
    editor_tools(registry)
    journal = open_journal(f"sqlite:///{store}")
    editor = ProjectEditor(project)
    async with Session(registry, id=session_id, journal=journal, editor=editor, approver=FixedApprover()) as session:
        await journal.store.head()
        begin()
        outcome = await session.call("edit_files", {"edits": EDITS})
    await journal.close()
    return outcome


def say_who() -> None:
    os.write(sys.stdout.fileno(), f"{os.getpid()}\n".encode())


def main() -> None:
    project, store = Path(sys.argv[1]), Path(sys.argv[2])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(change(project, store, line.strip(), say_who))
            signal.pause()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
