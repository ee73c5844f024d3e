"""The long versions of tests that draw lots: other seeds every time, and many more of them.

Each is a program of its own, for whoever wants more still; the seed that it prints makes the same run again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from warm import run_python

HERE = Path(__file__).parent

# Some minutes each on two cores. The program says how many there are when nobody says otherwise.
SOAKS = {
    "attack/typing_soak.py": ["200"],
    "crash/soak.py": ["1000"],
    "store/power_soak.py": ["--cuts", "1000"],
    "script/soak.py": ["--twin", "5000", "--mutated", "20000", "--escapes", "1000"],
    "rules/where_soak.py": ["1000000"],
    "wire/protocol_soak.py": ["500000"],
}


@pytest.mark.long
@pytest.mark.parametrize("program", SOAKS)
def test_a_soak_finds_nothing(program):
    """What fifty lives do not show, a thousand may."""
    done = subprocess.run(
        [sys.executable, HERE / program, *SOAKS[program]], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-4000:]}"


def test_every_soak_is_among_them():
    """One that nothing runs is broken by the next change of what it imports."""
    assert set(SOAKS) == {str(path.relative_to(HERE)) for path in HERE.rglob("*soak.py")}


@pytest.mark.parametrize(
    ("program", "little"),
    [
        ("attack/typing_soak.py", ["1", "7"]),
        ("crash/soak.py", ["1", "7"]),
        ("store/power_soak.py", ["--cuts", "1", "--seed", "7"]),
        ("script/soak.py", ["--twin", "5", "--mutated", "20", "--escapes", "2", "--seed", "7"]),
        ("rules/where_soak.py", ["500", "7"]),
        ("wire/protocol_soak.py", ["500", "7"]),
    ],
)
def test_a_soak_can_be_started_with_a_seed(tmp_path, program, little):
    """The shortest run of each, so that the long one does not fail at its imports; and a failure can be repeated."""
    done = run_python(str(HERE / program), *little, cwd=tmp_path)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "7" in done.stdout.split("\n")[0]
