"""Run by test_kill.py: forks writers, one for each line on stdin, and reports how each of them died.

A writer says its process id when it begins, and writes until it is killed. Forking from here, where everything is
imported and no thread runs, makes a round cost milliseconds instead of an interpreter's start.
"""

import asyncio
import itertools
import os
import sys

from lastword.editor import ProjectEditor

SIZE = 200_000


async def write_for_ever(folder: str, round_number: int) -> None:
    editor = ProjectEditor(folder)
    os.write(sys.stdout.fileno(), f"{os.getpid()}\n".encode())
    for number in itertools.count():
        await write_once(editor, round_number, number)


async def write_once(editor: ProjectEditor, round_number: int, number: int) -> None:
    letter = "ab"[number % 2]
    await editor.get_file_content("old.txt")
    await editor.update_file_content("old.txt", letter * SIZE)
    await editor.write_to_file(f"new/{round_number}/{number}.txt", letter * SIZE)


def main() -> None:
    folder = sys.argv[1]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(write_for_ever(folder, int(line)))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
