"""A session killed without warning in the middle of a change: the journal and the files know how to go back."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from killed_caller import NEW, OLD, change
from trees import tree

from lastword import Session, ToolRegistry, open_journal
from lastword.editor.project import ProjectEditor
from lastword.journal import Journal
from requirements import requirement

# How many must die between their start and their end. Kills that fall before or after it are counted, and do not count.
KILLS = 50
MAX_ROUNDS = 500
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
def test_a_session_killed_50_times_while_it_changes_files_is_always_taken_back(tmp_path: Path):
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
    script = Path(__file__).with_name("killed_caller.py")
    with subprocess.Popen(
        [sys.executable, str(script), str(project), str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forker:
        assert forker.stdin is not None
        assert forker.stdout is not None
        for number in range(MAX_ROUNDS):
            if died_at_work(ends) >= KILLS and saw_everything(ends):
                break
            forker.stdin.write(f"round-{number}\n")
            forker.stdin.flush()
            caller = int(forker.stdout.readline())
            time.sleep(dice.uniform(EARLIEST, LATEST) * aim_seconds)
            os.kill(caller, signal.SIGKILL)
            assert int(forker.stdout.readline()) == signal.SIGKILL
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
    assert died_at_work(ends) >= KILLS, ends


def died_at_work(ends: Counter[str]) -> int:
    return sum(count for end, count in ends.items() if end.startswith("in doubt"))


def saw_everything(ends: Counter[str]) -> bool:
    """The old files, the new ones, and one of each were all found: the kills did not fall beside the writing."""
    both = ends["in doubt, 2 written"] or ends["finished, 2 written"]
    return bool(both and ends["in doubt, 0 written"] and ends["in doubt, 1 written"])
