"""Heavy work runs beside the event loop: while it does, everybody else's timers go on."""

import asyncio
import hashlib
import os
import random
import stat
import threading
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from workbench import Workbench

from lastword import Session
from lastword.call import Limits
from lastword.card import Face, card_of
from lastword.editor import FileDiff, ProjectEditor
from lastword.editor.atomic_change import Deleting, Writing
from lastword.editor.lint import Sources
from lastword.editor.provider import Findings, LintError
from lastword.testing import FixedApprover
from requirements import requirement
from sending import until

T = TypeVar("T")

# A machine that has much else to do may need longer for a card than a person would wait.
UNHURRIED = Limits(draw_timeout_seconds=120)

# What the loop may be busy with in one go, in seconds of its own processor time. It is less than a tenth on a machine
# that has nothing else to do, which bench/editor.py measures; what is heavy here takes several times as much.
MOST_AT_ONCE = 0.4
# How long a thread waits for the loop to answer before it says that it was dead. Never waited for when all is well.
PATIENCE = 20.0


async def busiest(work: Awaitable[T]) -> tuple[T, float]:
    """What came of the work, and the most processor time that the loop's thread took between two ticks of a timer."""
    most = 0.0
    task = asyncio.ensure_future(work)
    before = time.thread_time()
    while not task.done():
        await asyncio.sleep(0.005)
        now = time.thread_time()
        most, before = max(most, now - before), now
    return await task, most


class Alive:
    """Asks from a thread whether the event loop still answers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.answers: list[bool] = []

    def ask(self) -> None:
        ticked = threading.Event()
        self._loop.call_soon_threadsafe(ticked.set)
        self.answers.append(threading.current_thread() is not threading.main_thread() and ticked.wait(PATIENCE))


@pytest.fixture
def bench(folder: Path) -> Workbench:
    return Workbench(folder, limits=UNHURRIED)


def scattered(seed: int, count: int) -> str:
    """Short lines in no order: as much work for a comparison as a text can be."""
    return "\n".join(random.Random(seed).choices("abcdefgh", k=count))


@requirement("EDIT-13")
async def test_a_very_long_line_does_not_hold_the_loop(bench: Workbench):
    """Two hundred thousand characters, of which one changes; also on the card."""
    (bench.folder / "long.txt").write_text("x" * 100_000 + "y" + "x" * 100_000 + "\n")
    rows: list[str] = []

    def draw(request: Any) -> Any:
        rows.extend(row.text for row in Face.of(request, fold=False).diff)
        return request.allow()

    bench.answers(draw)
    outcome, most = await busiest(bench.call("replace_text", path="long.txt", old="y", new="z"))
    assert outcome.success, outcome.message
    assert most < MOST_AT_ONCE
    assert len(rows) < 10
    assert max(map(len, rows)) < 500


@requirement("EDIT-13")
async def test_lint_runs_beside_the_loop(folder: Path):
    """Also where a card is drawn from it, under the guard that lets a tool start no threads."""
    alive = Alive()

    def slow(sources: Sources) -> Findings:
        alive.ask()
        return {sources.files[0]: [LintError(line=1, message="odd")]}

    editor = ProjectEditor(folder, linters={".txt": slow})
    async with Session(Workbench.tools(), editor=editor, approver=FixedApprover()) as session:
        found = await session.call("lint_files")
        assert [finding["message"] for finding in found.value["findings"]] == ["odd"]
        assert "nothing that can be fixed" in (await session.call("fix_lint")).message
    assert alive.answers == [True, True]


class Fixing(ProjectEditor):
    """An editor whose fixes take as long as the loop needs to answer."""

    alive: Alive

    def get_fixed_content(self, path: str) -> str | None:
        self.alive.ask()
        return super().get_fixed_content(path)


@requirement("EDIT-13")
async def test_fixes_are_worked_out_beside_the_loop(folder: Path):
    """A process for each file: ninety of them took eight seconds of everybody's time."""
    for number in range(12):
        (folder / f"{number}.py").write_text("import os\n\nprint(1)\n")
    editor = Fixing(folder)
    editor.alive = Alive()
    async with Session(Workbench.tools(), editor=editor, approver=FixedApprover()) as session:
        outcome, most = await busiest(session.call("fix_lint"))
    assert outcome.success, outcome.message
    assert outcome.message.startswith("Changed 12 files")
    assert editor.alive.answers == [True] * 24  # once for the card, once for the writing
    assert most < MOST_AT_ONCE


@requirement("EDIT-13")
async def test_more_files_than_can_be_fixed_at_once_are_refused_before_the_first_is_worked_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Five thousand processes later the card would be too late for anybody."""
    monkeypatch.setattr("lastword.editor.edit_plan.MAX_FILES", 2)
    for number in range(3):
        (folder / "src" / f"{number}.py").write_text("import os\n\nprint(1)\n")
    editor = Fixing(folder)
    editor.alive = Alive()
    async with Session(Workbench.tools(), editor=editor, approver=FixedApprover()) as session:
        outcome = await session.call("fix_lint", {"path": "./src"})
        assert "3 files can be fixed; at most 2 at once" in outcome.message
        assert "name a file or a folder, by path" in outcome.message
        assert editor.alive.answers == []
        assert (await session.call("fix_lint", {"path": "src/1.py"})).success


class Walking(ProjectEditor):
    """An editor that needs a moment to say which files there are."""

    alive: Alive

    def listing(self) -> Any:
        self.alive.ask()
        return super().listing()


@requirement("EDIT-13")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_files", {}),
        ("search_files", {"query": "one"}),
        ("lint_files", {}),
        ("read_file", {"path": "nots.txt"}),
        ("delete_file", {"path": "nots.txt"}),
        ("replace_text", {"path": "nots.txt", "old": "a", "new": "b"}),
    ],
)
async def test_the_project_is_walked_beside_the_loop(folder: Path, tool: str, arguments: dict[str, Any]):
    """Also to find the name that was probably meant."""
    editor = Walking(folder)
    editor.alive = Alive()
    async with Session(Workbench.tools(), editor=editor, approver=FixedApprover()) as session:
        outcome = await session.call(tool, arguments)
    assert outcome.success or "did you mean notes.txt?" in outcome.message
    assert editor.alive.answers
    assert all(editor.alive.answers)


class Counting(ProjectEditor):
    """An editor that notes how often the loop went round before each write."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rounds = 0
        self.seen: list[int] = []

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.rounds += 1

    async def write_to_file(self, path: str, content: str) -> bool:
        self.seen.append(self.rounds)
        return await super().write_to_file(path, content)


@requirement("EDIT-13")
async def test_others_get_their_turn_between_two_writes(folder: Path):
    """Each write is whole, and a hundred of them in a row need not be."""
    editor = Counting(folder)
    counting = asyncio.create_task(editor.count())
    edits = [{"action": "write_file", "path": f"{number}.txt", "text": "x"} for number in range(20)]
    async with Session(Workbench.tools(), editor=editor, approver=FixedApprover()) as session:
        assert (await session.call("edit_files", {"edits": edits})).success
    counting.cancel()
    assert len(set(editor.seen)) == 20


async def test_a_loop_that_is_held_is_noticed():
    """The measure itself: what computes on the loop is seen, what computes in a thread is not."""
    held = 0.1

    def compute(texts: Sequence[str]) -> None:
        until = time.thread_time() + 1.5 * held
        while time.thread_time() < until:
            "".join(texts)

    async def on_the_loop() -> None:
        compute(["a"])

    assert (await busiest(on_the_loop()))[1] > held
    assert (await busiest(asyncio.to_thread(compute, ["a"])))[1] < held


@requirement("EDIT-13")
async def test_a_write_waits_for_the_disk_beside_the_loop(bench: Workbench, monkeypatch: pytest.MonkeyPatch):
    """A disk that others use takes half a second to confirm a file, and every other card would wait for it."""
    alive, fsync = Alive(), os.fsync

    def slow(descriptor: int) -> None:
        alive.ask()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    assert (await bench.call("write_file", path="made.txt", text="x")).success
    assert (await bench.call("replace_text", path="made.txt", old="x", new="y")).success
    assert len(alive.answers) == 4  # The file and its folder, each time.
    assert all(alive.answers)


@requirement("EDIT-13")
async def test_deleting_renaming_and_undoing_wait_for_the_disk_beside_the_loop(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
):
    """They change names in folders, and a folder is confirmed as slowly as a file."""
    alive, fsync = Alive(), os.fsync

    def slow(descriptor: int) -> None:
        alive.ask()
        fsync(descriptor)

    (bench.folder / "old.txt").write_text("x")
    (bench.folder / "gone.txt").write_text("y")
    monkeypatch.setattr(os, "fsync", slow)
    renamed = await bench.call("rename_file", path="old.txt", new_path="deep/new.txt")
    assert renamed.success, renamed.message
    assert len(alive.answers) == 3  # The project for its new folder, then both folders for the name.
    deleted = await bench.call("delete_file", path="gone.txt")
    assert deleted.success, deleted.message
    assert len(alive.answers) == 4
    await bench.session.undo(deleted.call_id)
    assert len(alive.answers) == 6  # The file and its folder.
    await bench.session.undo(renamed.call_id)
    assert len(alive.answers) == 9  # The file that is back and its folder, and the folder that it left.
    assert all(alive.answers)
    assert ((bench.folder / "old.txt").read_text(), (bench.folder / "gone.txt").read_text()) == ("x", "y")
    assert not (bench.folder / "deep").exists()


@requirement("EDIT-13")
async def test_a_deletion_that_is_cancelled_before_it_happened_deletes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nobody waits for it any longer, and nothing of it may happen later in a thread."""
    (folder / "kept.txt").write_text("x")
    editor = ProjectEditor(folder)
    loop, reached, go_on, over = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), threading.Event()
    prepare = Deleting.prepare

    def stuck(deleting: Deleting) -> None:
        loop.call_soon_threadsafe(reached.set)
        assert go_on.wait(PATIENCE)
        try:
            prepare(deleting)
        finally:
            over.set()

    monkeypatch.setattr(Deleting, "prepare", stuck)
    work = asyncio.ensure_future(editor.delete_file("kept.txt"))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    go_on.set()
    assert await asyncio.to_thread(over.wait, PATIENCE)
    assert (folder / "kept.txt").read_text() == "x"


@requirement("EDIT-13")
async def test_a_write_that_is_cancelled_before_its_file_is_on_the_disk_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The thread that fills the file goes on alone, and clears up after itself: no folder, no temporary file."""
    editor, fsync = ProjectEditor(folder), os.fsync
    before = sorted(folder.rglob("*"))
    loop, reached, go_on, over = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), threading.Event()

    def stuck(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(PATIENCE)
        fsync(descriptor)

    prepare = Writing.prepare

    def told(writing: Writing) -> None:
        try:
            prepare(writing)
        finally:
            over.set()

    monkeypatch.setattr(os, "fsync", stuck)
    monkeypatch.setattr(Writing, "prepare", told)
    writing = asyncio.ensure_future(editor.write_to_file("new/file.txt", "x"))
    await reached.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    assert await asyncio.to_thread(over.wait, PATIENCE)
    assert sorted(folder.rglob("*")) == before


@requirement("EDIT-13")
async def test_a_write_that_is_cancelled_after_its_rename_is_noted_as_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The file has changed by then, and an editor that did not know would take its own write for somebody else's."""
    editor, fsync = ProjectEditor(folder), os.fsync
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def stuck(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(PATIENCE)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", stuck)
    assert await editor.get_file_content("file.txt") is None
    writing = asyncio.ensure_future(editor.write_to_file("file.txt", "x"))
    await reached.wait()
    writing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert (folder / "file.txt").read_text() == "x"
    assert await editor.write_to_file("file.txt", "y")
    # Nobody waits any longer for the thread of the first write, which removes its temporary file at its end.
    await until(lambda: not list(folder.glob(".lastword*")))


@requirement("EDIT-13")
async def test_a_change_of_three_megabytes_is_planned_compared_and_written_beside_the_loop(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
):
    """The comparison alone takes seconds that others have use for. What is sealed is reduced to bytes and hashed, and
    each row is looked at for marks: megabytes of it, once. A surface draws on the loop: it gets the diff that the tool
    had, and does not work it out again."""
    on_loop: list[str] = []
    took: list[float] = []
    hashed, drawn = hashlib.sha256, FileDiff.rows

    def hashing(data: bytes = b"") -> Any:
        if len(data) > 3_000_000 and threading.current_thread() is threading.main_thread():
            on_loop.append(f"a digest of {len(data)} bytes")
        return hashed(data)

    def drawing(*given: Any, **named: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            on_loop.append("rows")
        return drawn(*given, **named)

    monkeypatch.setattr(hashlib, "sha256", hashing)
    monkeypatch.setattr(FileDiff, "rows", drawing)

    def draw(request: Any) -> Any:
        start = time.thread_time()
        assert Face.of(request).diff_hidden > 1_000
        took.append(time.thread_time() - start)
        assert len(card_of(request, "").previews[0].lines or ()) > 1_000
        return request.allow()

    bench.answers(draw)
    old, new = scattered(5, 800_000), scattered(6, 800_000)
    (bench.folder / "big.txt").write_text(old)
    start = time.process_time()
    outcome, most = await busiest(bench.call("write_file", path="big.txt", text=new))
    assert outcome.success, outcome.message
    assert time.process_time() - start > 2 * MOST_AT_ONCE  # Or there was nothing heavy to put aside.
    assert on_loop == []
    assert took[0] < MOST_AT_ONCE
    assert most < MOST_AT_ONCE
