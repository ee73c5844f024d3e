"""A writer killed without warning leaves the old file or the new one."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from killed_writer import SIZE, write_once

from lastword.editor.paths import TEMPORARY
from lastword.editor.project import ProjectEditor
from requirements import requirement

KILLS = 200
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
def test_a_writer_killed_200_times_leaves_whole_files_and_the_next_start_leaves_no_litter(tmp_path: Path):
    """At a random moment of a write: the old file or the new one, never a mixture, and nothing else for long."""
    dice = random.Random(7)
    whole = [b"a" * SIZE, b"b" * SIZE]
    old = tmp_path / "old.txt"
    old.write_bytes(whole[0])
    longest_seconds = LONGEST_ROUNDS * seconds_for_a_round(tmp_path / "measured")
    script = Path(__file__).with_name("killed_writer.py")
    interrupted = 0
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as forker:
        assert forker.stdin is not None
        assert forker.stdout is not None
        for number in range(KILLS):
            forker.stdin.write(f"{number}\n")
            forker.stdin.flush()
            writer = int(forker.stdout.readline())
            time.sleep(dice.uniform(0, longest_seconds))
            os.kill(writer, signal.SIGKILL)
            assert int(forker.stdout.readline()) == signal.SIGKILL
            interrupted += bool(temporary_files(tmp_path))

            assert old.read_bytes() in whole
            ProjectEditor(tmp_path)
            assert temporary_files(tmp_path) == []
    created = list((tmp_path / "new").rglob("*.txt"))
    assert [path for path in created if path.read_bytes() not in whole] == []
    # Some must have died in the middle of a write, and some must have got through one, or nothing was tested.
    assert interrupted > KILLS // 10
    assert len(created) > KILLS // 10


def test_a_living_writers_temporary_file_is_left_alone(tmp_path: Path):
    """Another process may be in the middle of a write when this one starts."""
    (tmp_path / "old.txt").write_text("old\n")
    abandoned = tmp_path / ".lastword-0123456789abcdef.tmp"
    abandoned.write_text("half")
    held = tmp_path / ".lastword-fedcba9876543210.tmp"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLD_A_LOCK,
            str(held),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
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
