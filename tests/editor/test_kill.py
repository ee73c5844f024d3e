"""A writer killed without warning leaves the old file or the new one, and a session what it takes to go back."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from killed_caller import NEW, OLD, change
from killed_writer import SIZE, write_once
from trees import tree

from lastword import Session, ToolRegistry, open_journal
from lastword.editor import ProjectEditor
from lastword.editor.project_folder import TEMPORARY
from lastword.journal import Journal
from requirements import requirement
from tries import often
from warm import WarmDialogue

KILLS = often(20)
MAX_ROUNDS = 500
# How long a writer may live, in rounds of its writes: long enough that some get through one.
LONGEST_ROUNDS = 3
MEASURED_ROUNDS = 10


HOLD_A_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Forker(WarmDialogue):
    """A script beside this file that forks a child for each line it is given, and says how each of them died."""

    def __init__(self, script: str, *arguments: Path) -> None:
        words = [str(Path(__file__).with_name(script)), *map(str, arguments)]
        super().__init__(words, Path("/"), os.environ, loads=["killed_caller", "lastword.store.sqlite"])

    def kill_one(self, line: str, after_seconds: float) -> None:
        """Have a child forked, and kill it when it has worked for so long."""
        self.say(line)
        child = int(self.hear())
        time.sleep(after_seconds)
        os.kill(child, signal.SIGKILL)
        assert int(self.hear()) == signal.SIGKILL


def temporary_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if TEMPORARY.fullmatch(path.name)]


def seconds_for_a_round(folder: Path) -> float:
    """What one round of writes takes here and now: a busy machine must not turn this test into another one."""
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    editor = ProjectEditor(folder)
    started = time.monotonic()
    for number in range(MEASURED_ROUNDS):
        asyncio.run(write_once(editor, 0, number))
    return (time.monotonic() - started) / MEASURED_ROUNDS


@requirement("EDIT-4")
def test_a_writer_killed_many_times_leaves_whole_files_and_the_next_start_leaves_no_litter(tmp_path: Path):
    """At a random moment of a write: the old file or the new one, never a mixture, and nothing else for long."""
    dice = random.Random(7)
    whole = [b"a" * SIZE, b"b" * SIZE]
    old = tmp_path / "old.txt"
    old.write_bytes(whole[0])
    longest_seconds = LONGEST_ROUNDS * seconds_for_a_round(tmp_path / "measured")
    interrupted = 0
    with closing(Forker("killed_writer.py", tmp_path)) as forker:
        for number in range(MAX_ROUNDS):
            created = list((tmp_path / "new").rglob("*.txt"))
            # Some must die in the middle of a write, and some must get through one, or nothing is tested.
            if number >= KILLS and min(interrupted, len(created)) > KILLS // 10:
                break
            forker.kill_one(str(number), dice.uniform(0, longest_seconds))
            interrupted += bool(temporary_files(tmp_path))

            assert old.read_bytes() in whole
            ProjectEditor(tmp_path)
            assert temporary_files(tmp_path) == []
    created = list((tmp_path / "new").rglob("*.txt"))
    assert [path for path in created if path.read_bytes() not in whole] == []
    assert min(interrupted, len(created)) > KILLS // 10


def test_a_living_writers_temporary_file_is_left_alone(tmp_path: Path):
    """Another process may be in the middle of a write when this one starts."""
    (tmp_path / "old.txt").write_text("old\n")
    abandoned = tmp_path / ".lastword-0123456789abcdef.tmp"
    abandoned.write_text("half")
    held = tmp_path / ".lastword-fedcba9876543210.tmp"
    command = [sys.executable, "-c", HOLD_A_LOCK, str(held)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        ProjectEditor(tmp_path)
        assert temporary_files(tmp_path) == [held]
    ProjectEditor(tmp_path)
    assert temporary_files(tmp_path) == []


def test_a_file_that_merely_looks_temporary_is_not_swept(tmp_path: Path):
    """Only names that the editor makes itself, and that no path may name, are its to remove."""
    for name in (".lastword-notes.tmp", "lastword-0123456789abcdef.tmp", ".lastword-0123456789abcdef.tmp.py"):
        (tmp_path / name).write_text("mine")
    ProjectEditor(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


# How many must die between their start and their end. Kills that fall before or after it are counted, and do not count.
KILLS_AT_WORK = often(5)
# When to kill, in parts of the moment aimed at. The aim follows what the last kill found: a busy machine is slower.
EARLIEST, LATEST = 0.7, 1.3
LATER, SOONER = 1.1, 0.9
MEASURED_CALLS = 5


def seconds_for_a_call(folder: Path) -> float:
    """What one call takes here and now, so that the kills fall into it whatever else the machine does."""
    took = []
    for number in range(MEASURED_CALLS):
        project = folder / f"{number}"
        project.mkdir(parents=True)
        (project / "old.txt").write_bytes(OLD.encode())
        began: list[float] = []
        assert asyncio.run(
            change(project, folder / "measured.db", f"{number}", lambda: began.append(time.monotonic()))  # noqa: B023
        ).success
        took.append(time.monotonic() - began[0])
    return sorted(took)[MEASURED_CALLS // 2]


async def look_and_undo(project: Path, journal: Journal, session_id: str) -> str:
    """How far the killed session had got, after taking back whatever it did."""
    calls = {record.subject for record in await journal.history(session_id) if record.kind == "asked"}
    if not calls:
        return "not asked"
    (call_id,) = calls
    life = await journal.life(call_id)
    if life.started is None:
        return "asked"
    written = sum(path.read_bytes() == NEW.encode() for path in project.rglob("*.txt"))
    changing = await journal.store.read(subject=call_id, kind="changing_file")
    assert written <= len(changing), "a file was written before that was on disk"
    how = "finished" if life.finished is not None else "in doubt"
    if life.in_doubt and not changing:
        # It died before it touched anything, and there is nothing to undo: a person gives it up.
        async with Session(ToolRegistry(), id=session_id, journal=journal) as session:
            await session.resolve(call_id, "abandon")
        return f"{how}, nothing begun"
    editor = ProjectEditor(project)
    async with Session(ToolRegistry(), id=session_id, journal=journal, editor=editor) as session:
        undone = await session.undo(call_id)
        assert await session.in_doubt() == []
    assert len(undone.paths) == written
    return f"{how}, {written} written"


@requirement("EDIT-7")
def test_a_session_killed_many_times_while_it_changes_files_is_always_taken_back(tmp_path: Path):
    """Each file is the old one or the new one, and the undo brings every byte, mode and folder back."""
    dice = random.Random(7)
    project, store = tmp_path / "project", tmp_path / "journal.db"
    project.mkdir()
    old = project / "old.txt"
    old.write_bytes(OLD.encode())
    old.chmod(0o640)
    before = tree(project)
    aim_seconds = seconds_for_a_call(tmp_path / "measured") * 0.75
    ends: Counter[str] = Counter()
    with closing(Forker("killed_caller.py", project, store)) as forker:
        for number in range(MAX_ROUNDS):
            if died_at_work(ends) >= KILLS_AT_WORK and saw_everything(ends):
                break
            forker.kill_one(f"round-{number}", dice.uniform(EARLIEST, LATEST) * aim_seconds)
            for path in project.rglob("*.txt"):
                assert path.read_bytes() in (OLD.encode(), NEW.encode())

            async def after_the_restart(session_id: str) -> str:
                journal = open_journal(f"sqlite:///{store}")
                try:
                    return await look_and_undo(project, journal, session_id)
                finally:
                    await journal.close()

            end = asyncio.run(after_the_restart(f"round-{number}"))
            ends[end] += 1
            if end in ("not asked", "asked", "in doubt, nothing begun"):
                aim_seconds *= LATER
            elif end.startswith("finished"):
                aim_seconds *= SOONER
            ProjectEditor(project)  # whose start removes what a killed writer left
            assert tree(project) == before, ends
    sys.stdout.write(f"{dict(ends)}\n")
    assert saw_everything(ends), ends
    assert died_at_work(ends) >= KILLS_AT_WORK, ends


def died_at_work(ends: Counter[str]) -> int:
    return sum(count for end, count in ends.items() if end.startswith("in doubt"))


def saw_everything(ends: Counter[str]) -> bool:
    """The old files, the new ones, and one of each were all found: the kills did not fall beside the writing."""
    both = ends["in doubt, 2 written"] or ends["finished, 2 written"]
    return bool(both and ends["in doubt, 0 written"] and ends["in doubt, 1 written"])
