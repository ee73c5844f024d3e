"""How long the editor takes to list, search, lint, diff, write and undo a repository, beside the tools people know, and
how late a timer on the event loop is while it does something heavy.

    python bench/editor.py [--json FILE] [FOLDER]

Without a folder it looks at this repository. Every figure of the first part is the best of several rounds; the ratios
compare it with the usual program, its start included, where that is installed. In the second part a timer of ten
milliseconds runs beside each call; how late it was at worst is what everybody else on the loop had to wait. The last
column is the most processor time that the loop's own thread took between two ticks: what is late beyond that is the
machine's other work.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Result, arguments
from ruff import find_ruff_bin

from lastword import ApprovalRequest, Session, ToolRegistry, UserAction, editor_tools, open_journal
from lastword.call import Limits
from lastword.card import Face
from lastword.editor import Change, FileDiff, Preview, ProjectEditor, SealedEditor
from lastword.editor.search import search

ROUNDS = 5
LITERAL = "def "
PATTERN = r"def \w+\(self"
TICK = 0.01


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
    rounds = itertools.count()  # A diff is kept, and the next one must be another.
    seconds = best(lambda: FileDiff.of(Preview(f"{next(rounds)}.txt", None, text, edited)))
    result.row("diff one line of 2000", seconds * 1000)
    with tempfile.TemporaryDirectory() as name:
        editor = ProjectEditor(name)
        asyncio.run(editor.write_to_file("a.txt", text))

        async def write_and_undo() -> None:
            sealed = SealedEditor(editor)
            await sealed.update_file_content("a.txt", edited)
            await Change.take_back(editor, sealed.changes)

        result.row("write it and undo it, on this disk", best(lambda: asyncio.run(write_and_undo())) * 1000)


async def late(result: Result, name: str, session: Session, tool: str, **arguments: Any) -> None:
    """Call a tool while a timer ticks."""
    worst = busy = 0.0
    start = last = time.perf_counter()
    used = time.thread_time()
    call = asyncio.ensure_future(session.call(tool, arguments))
    while not call.done():
        await asyncio.sleep(TICK)
        now, using = time.perf_counter(), time.thread_time()
        worst, busy = max(worst, now - last - TICK), max(busy, using - used)
        last, used = now, using
    outcome = await call
    assert outcome.success, outcome.message
    seconds = last - start
    result.row(name, seconds * 1000, worst * 1000, busy * 1000)


def heavy_project(folder: Path) -> None:
    """Files that take their time."""
    (folder / "few").mkdir(parents=True)
    for number in range(90):
        (folder / "few" / f"{number}.py").write_text("import os\n\nprint(1)\n")
    for number in range(5_000):
        (folder / f"{number % 50}").mkdir(exist_ok=True)
        (folder / f"{number % 50}" / f"{number}.py").write_text("import os\nundefined\nx=1\n" * 5)
    (folder / "big.txt").write_text("".join(f"line {n} of a long file with some words\n" for n in range(75_000)))
    (folder / "long.txt").write_text("x" * 100_000 + "y" + "x" * 100_000)


async def beside_the_loop(folder: Path, store: str, result: Result) -> None:
    """What is heavy, with the card drawn as a terminal draws it."""

    async def approve(request: ApprovalRequest) -> UserAction:
        Face.of(request)
        return request.allow()

    registry = ToolRegistry()
    editor_tools(registry)
    journal = open_journal(store)
    every = {"path": "big.txt", "old": "words", "new": "swords", "all": True}
    one = {"path": "big.txt", "old": "line 9 ", "new": "line 8 "}
    editor, unhurried = ProjectEditor(folder), Limits(draw_timeout_seconds=600)
    async with Session(registry, approver=approve, editor=editor, journal=journal, limits=unhurried) as session:
        await late(result, "lint 5,000 files", session, "lint_files")
        await late(result, "search 5,000 files", session, "search_files", query="undefined")
        await late(result, "list 5,000 files", session, "list_files", pattern="*/1*.py")
        await late(result, "fix 90 files", session, "fix_lint", path="few")
        await late(result, "change every line of 3 MB", session, "replace_text", **every)
        await late(result, "change one line of 3 MB", session, "replace_text", **one)
        await late(
            result, "change a line of 200,000 characters", session, "replace_text", path="long.txt", old="y", new="z"
        )
    await journal.close()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent)
    wanted = parser.parse_args()
    result = Result(__doc__, peers=("ruff",))
    look(wanted.folder.resolve(), result)
    change(result)
    result.table("beside the event loop", "ms", "a timer late by, ms", "busy for, ms")
    with tempfile.TemporaryDirectory() as name:
        heavy_project(Path(name, "project"))
        asyncio.run(beside_the_loop(Path(name, "project"), f"sqlite:///{name}/journal.db", result))
    result.keep(wanted.json)


if __name__ == "__main__":
    main()
