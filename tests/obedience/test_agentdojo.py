"""AgentDojo itself, in an environment of its own: the bench runs on it as it is today."""

import json
import os
import subprocess

import pytest
from small_world import AGENTDOJO, BENCH, ROOT

from requirements import requirement


@pytest.mark.long
@requirement("DOJO-1")
def test_no_injected_effect_of_agentdojo_runs_unseen_with_grants(tmp_path):
    """A few tasks of every suite; the committed result is of all of them. What whole tools let through stands beside,
    or a bench in which no order arrives would pass."""
    kept = tmp_path / "dojo.json"
    done = subprocess.run(
        [AGENTDOJO / "bin" / "python", BENCH / "dojo.py", "--tasks", "4", "--json", kept],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    table = json.loads(kept.read_text())["parts"][0]
    unseen = {row[0]: int(row[table["columns"].index("ran unseen")]) for row in table["rows"]}
    assert unseen.pop("whole tools, as peers do") > 0
    del unseen["such bounds, free text open (not to be had)"]
    assert set(unseen.values()) == {0}
    assert len(unseen) == 4
