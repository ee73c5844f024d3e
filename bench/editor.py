"""How long the editor takes to list, search, lint, diff, write and undo a repository, beside the tools people know.

    python bench/editor.py [--json FILE] [FOLDER]

Without a folder it looks at this repository. Every figure is the best of several rounds; the ratios compare it with the
usual program, its start included, where that is installed.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import Result, arguments
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


def beside(peer: str, seconds: float | None, ours: float) -> tuple[str, float | None, float | None]:
    """The cells for the usual program: its name, its milliseconds, ours as a multiple of them."""
    if seconds is None:
        return f"{peer} is not installed", None, None
    return peer, seconds * 1000, ours / seconds


def look(folder: Path, result: Result) -> None:
    editor = ProjectEditor(folder)
    files = editor.get_all_files()
    megabytes = sum((folder / path).stat().st_size for path in files) / 1e6
    result.note(f"A project of {len(files)} files, {megabytes:.1f} MB.")
    result.table("", "ms", "beside", "its ms", "× it")
    result.row("open the project, sweeping it", best(lambda: ProjectEditor(folder)) * 1000)
    listed = program(folder, "git", "ls-files", "--others", "--cached", "--exclude-standard")
    seconds = best(editor.get_all_files)
    result.row("list", seconds * 1000, *beside("git ls-files", listed, seconds))
    nothing = "a text that no file holds, " + "but this one in two parts"
    seconds = best(lambda: search(editor.get_all_files(), editor.read_bytes, nothing))
    result.row("list and read every file", seconds * 1000)
    for name, query, regex, flags in (("literal", LITERAL, False, ["-F"]), ("pattern", PATTERN, True, [])):

        def find(query: str = query, regex: bool = regex) -> object:
            return search(editor.get_all_files(), editor.read_bytes, query, regex=regex, max_matches=1_000_000)

        seconds = best(find)
        peer = program(folder, "rg", "--hidden", "-n", *flags, query)
        result.row(f"list and search, {name}", seconds * 1000, *beside("rg", peer, seconds))
    bare = program(folder, find_ruff_bin(), "check", "--no-cache", "--exit-zero", "--quiet", ".")
    seconds = best(editor.get_lint_errors)
    result.row("lint", seconds * 1000, *beside("ruff check", bare, seconds))


def change(result: Result) -> None:
    text = "".join(f"line {number} of a file\n" for number in range(2_000))
    edited = text.replace("line 1000 ", "line one thousand ")
    result.row("diff one line of 2000", best(lambda: diff_of(Preview("a.txt", None, text, edited))) * 1000)
    with tempfile.TemporaryDirectory() as name:
        editor = ProjectEditor(name)
        asyncio.run(editor.write_to_file("a.txt", text))

        async def write_and_undo() -> None:
            sealed = SealedEditor(editor)
            await sealed.update_file_content("a.txt", edited)
            await undo(editor, sealed.changes)

        result.row("write it and undo it, on this disk", best(lambda: asyncio.run(write_and_undo())) * 1000)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent)
    wanted = parser.parse_args()
    result = Result(__doc__, peers=("ruff",))
    look(wanted.folder.resolve(), result)
    change(result)
    result.keep(wanted.json)


if __name__ == "__main__":
    main()
