"""One winner, whoever else wanted the same at the same moment."""

import random

import pytest
from races import main

from requirements import requirement

ROUNDS = 100


@requirement("TOOL-45", "NUWA-62")
def test_one_process_wins_every_race_for_an_answer_a_run_and_a_call_in_doubt(tmp_path, capsys):
    """Two processes act on what only one of them may do. A thousand rounds of each: python tests/crash/races.py."""
    seed = random.SystemRandom().randrange(2**32)
    try:
        main(ROUNDS, seed, tmp_path)
    except AssertionError as problem:
        pytest.fail(f"seed {seed}: {problem}")
    assert capsys.readouterr().out.count(f"{ROUNDS} races") == 3
