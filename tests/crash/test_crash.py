"""Nothing is done twice and nothing is lost, whenever the process is killed."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import SERVER

from requirements import requirement
from tries import often

KILLS = 50
KILLS_ON_A_SERVER = 8


@requirement("NUWA-62", "TOOL-22", "TOOL-45", "TOOL-48")
def test_nothing_is_done_twice_and_nothing_is_lost_whenever_the_process_dies(tmp_path):
    """kill -9 at every boundary of the journal, in the middle of a tool, and at random instants. Seeded."""
    die_often(tmp_path, often(KILLS))


@requirement("TEAM-1", "TEAM-4")
def test_nothing_is_done_twice_and_nothing_is_lost_where_the_journal_is_on_a_server(tmp_path, postgres):
    """The same deaths; the locks of the dead are the server's to let go of."""
    postgres.settle()
    die_often(tmp_path, KILLS_ON_A_SERVER, {SERVER: postgres.new_database()})


@pytest.mark.long
def test_nothing_is_done_twice_in_many_deaths_where_the_journal_is_on_a_server(tmp_path, postgres):
    """However death and the network meet."""
    postgres.settle()
    die_often(tmp_path, 4 * KILLS, {SERVER: postgres.new_database()})


def die_often(tmp_path, kills, environment=None):
    seed = random.SystemRandom().randrange(2**32)
    harness = Path(__file__).with_name("harness.py")
    done = subprocess.run(
        [sys.executable, harness, str(kills), str(seed), tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
    )
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert f"{kills} kills" in done.stdout
