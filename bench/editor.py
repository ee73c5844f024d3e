"""How long the editor takes to list, search, lint, diff, write and undo a repository, beside the tools people know.

    python bench/editor.py [FOLDER]

Without a folder it looks at this repository. Every figure is the best of several rounds; the ratios compare it with the
usual program, its start included, where that is installed.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ruff import find_ruff_bin

from lastword.editor import Preview
from lastword.editor.diff import diff_of
from lastword.editor.project import ProjectEditor
from lastword.editor.recording import SealedEditor
from lastword.editor.search import search
from lastword.editor.undo import undo

ROUNDS = 5
LITERAL = "def "
PATTERN = r"def \w+\(self"


def best(action: Callable[[], object]) -> float:
    """The quickest of several rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def program(folder: Path, *command: str) -> float | None:
    """How long a program takes, or None when it is not installed."""
    if shutil.which(command[0]) is None:
        return None
    return best(lambda: subprocess.run(command, cwd=folder, capture_output=True, check=False))


def row(name: str, seconds: float, peer: str = "", peer_seconds: float | None = None) -> None:
    if peer_seconds:
        peer = f"{seconds / peer_seconds:.1f} × {peer} ({peer_seconds * 1000:.1f} ms)"
    print(f"{name:40}{seconds * 1000:10.1f} ms   {peer}")


def look(folder: Path) -> None:
    editor = ProjectEditor(folder)
    files = editor.get_all_files()
    megabytes = sum((folder / path).stat().st_size for path in files) / 1e6
    print(f"{folder.name}: {len(files)} files, {megabytes:.1f} MB\n")
    row("open the project, sweeping it", best(lambda: ProjectEditor(folder)))
    listed = program(folder, "git", "ls-files", "--others", "--cached", "--exclude-standard")
    row("list", best(editor.get_all_files), "git ls-files", listed)
    nothing = "a text that no file holds, " + "but this one in two parts"
    row("list and read every file", best(lambda: search(editor.get_all_files(), editor.read_bytes, nothing)))
    for name, query, regex, flags in (("literal", LITERAL, False, ["-F"]), ("pattern", PATTERN, True, [])):
        seconds = best(
            lambda query=query, regex=regex: search(
                editor.get_all_files(), editor.read_bytes, query, regex=regex, max_matches=1_000_000
            )
        )
        peer = program(folder, "rg", "--hidden", "-n", *flags, query)
        row(f"list and search, {name}", seconds, "rg" if peer else "rg is not installed", peer)
    bare = program(folder, find_ruff_bin(), "check", "--no-cache", "--exit-zero", "--quiet", ".")
    row("lint", best(editor.get_lint_errors), "ruff check", bare)


def change() -> None:
    text = "".join(f"line {number} of a file\n" for number in range(2_000))
    edited = text.replace("line 1000 ", "line one thousand ")
    row("diff one line of 2000", best(lambda: diff_of(Preview("a.txt", None, text, edited))))
    with tempfile.TemporaryDirectory() as name:
        editor = ProjectEditor(name)
        asyncio.run(editor.write_to_file("a.txt", text))

        async def write_and_undo() -> None:
            sealed = SealedEditor(editor)
            await sealed.update_file_content("a.txt", edited)
            await undo(editor, sealed.changes)

        row("write it and undo it, on this disk", best(lambda: asyncio.run(write_and_undo())))


if __name__ == "__main__":
    look(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    change()
