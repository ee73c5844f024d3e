"""One winner, whoever else wanted the same at the same moment."""

import random

import pytest
from races import main
from worlds import SERVER

from requirements import requirement
from tries import often

ROUNDS = 30
ROUNDS_ON_A_SERVER = 5


@requirement("TOOL-45", "NUWA-62")
def test_one_process_wins_every_race_for_an_answer_a_run_and_a_call_in_doubt(tmp_path, capsys):
    """Two processes act on what only one of them may do. A thousand rounds of each: python tests/crash/races.py."""
    race(tmp_path, capsys, often(ROUNDS))


@requirement("TEAM-4")
def test_one_process_wins_every_race_on_a_server(tmp_path, capsys, postgres, monkeypatch):
    """The same races between processes that share nothing but the server."""
    monkeypatch.setenv(SERVER, postgres.new_database())
    postgres.settle()
    race(tmp_path, capsys, ROUNDS_ON_A_SERVER)


@pytest.mark.long
def test_one_process_wins_every_one_of_many_races_on_a_server(tmp_path, capsys, postgres, monkeypatch):
    """And often enough that every order of two steps came up."""
    monkeypatch.setenv(SERVER, postgres.new_database())
    postgres.settle()
    race(tmp_path, capsys, 15 * ROUNDS)


def race(tmp_path, capsys, rounds):
    seed = random.SystemRandom().randrange(2**32)
    try:
        main(rounds, seed, tmp_path)
    except AssertionError as problem:
        pytest.fail(f"seed {seed}: {problem}")
    assert capsys.readouterr().out.count(f"{rounds} races") == 3
