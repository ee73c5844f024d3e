"""kill -9, at every moment: what was done is told once, what was not known is said to be unknown."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from requirements import requirement

HERE = Path(__file__).parent
# The moments of a conversation at which a process can die, counted in halves of its commits; see killed_satellite.py.
BEFORE_EXECUTION = range(7)
DURING_EXECUTION = (7, 8)
BETWEEN = (9, 10, 11, 12)
"""The outcome is written down, and the server has not taken it."""
AFTER_DELIVERY = (13, 14, 15)
# Every moment, and those that the promise is about more often; in the long test so often that it is a hundred in all.
ELSEWHERE = (*BEFORE_EXECUTION, *DURING_EXECUTION, *AFTER_DELIVERY)
ROUNDS = [*ELSEWHERE, *BETWEEN, *BETWEEN]
HUNDRED = [*ELSEWHERE, *ELSEWHERE, *BETWEEN * 19]


# What a killed process has written stays written, so a disk in memory will do; power cuts are tried in tests/store.
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module", params=[ROUNDS, pytest.param(HUNDRED, marks=pytest.mark.long)], ids=len)
def rounds(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        done = subprocess.run(
            [sys.executable, str(HERE / "killed_satellite.py"), folder, ",".join(map(str, request.param))],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["when"] for each in found] == request.param
    return found


@requirement("API-42")
def test_killed_satellites_deliver_each_result_once(rounds: list[dict[str, Any]]):
    """Killed between execution and delivery or anywhere else, the conversation holds one result and ends in words."""
    assert all(found["killed"] for found in rounds)
    for found in rounds:
        roles = [role for role, _ in found["said"]]
        assert roles == ["user", "assistant", "tool_result", "assistant"], found
        assert found["pending"] == 0, found
        assert found["kinds"].count("started") == 1, found


@requirement("API-42")
def test_what_was_done_before_the_kill_is_told_and_not_done_again(rounds: list[dict[str, Any]]):
    """The recorded outcome goes to the model; the payment stands once."""
    between = [found for found in rounds if found["when"] in BETWEEN]
    for found in between:
        assert (found["paid_when_killed"], found["paid"]) == (1, 1), found
        assert found["outcomes"] == ["succeeded"], found
        assert "Paid Ann." in found["said"][2][1], found
        assert found["kinds"].count("delivered") == 1, found


@requirement("API-42")
def test_what_had_not_begun_is_asked_and_done_once(rounds: list[dict[str, Any]]):
    """A question that died with its process is put again, and its yes spent once."""
    for found in rounds:
        if found["when"] in BEFORE_EXECUTION:
            assert (found["paid_when_killed"], found["paid"], found["outcomes"]) == (0, 1, ["succeeded"]), found


@requirement("API-42")
def test_what_died_while_it_ran_is_unknown_and_stays_for_a_person(rounds: list[dict[str, Any]]):
    """It may have been paid or not. Nothing pays again, and the model is not told that it was."""
    during = [found for found in rounds if found["when"] in DURING_EXECUTION]
    assert {found["paid"] for found in during} == {0, 1}
    for found in during:
        assert found["paid"] == found["paid_when_killed"], found
        assert found["in_doubt"] == 1, found
        assert "It is not known whether pay was carried out" in found["said"][2][1], found
