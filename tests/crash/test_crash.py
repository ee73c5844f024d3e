"""Nothing is done twice and nothing is lost, whenever the process is killed."""

import random
import subprocess
import sys
from pathlib import Path

from requirements import requirement

KILLS = 200


@requirement("NUWA-62", "TOOL-22", "TOOL-45", "TOOL-48")
def test_nothing_is_done_twice_and_nothing_is_lost_in_two_hundred_deaths(tmp_path):
    """kill -9 at every boundary of the journal, in the middle of a tool, and at random instants. Seeded."""
    seed = random.SystemRandom().randrange(2**32)
    harness = Path(__file__).with_name("harness.py")
    done = subprocess.run(
        [sys.executable, harness, str(KILLS), str(seed), tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert f"{KILLS} kills" in done.stdout
