"""Run by `lastword test`, and by pytest: what a person sees, what a no leaves alone, and that nothing is paid twice."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lastword import UserAction
from lastword.testing import ALLOWED, DENIED, FixedAnswers, Trial

HERE = Path(__file__).parent
RENT = {"payee": "Ada", "amount": 900, "reference": "rent"}
HOUSE = {"payee": "Ada", "amount": 1200, "reference": "house"}


@contextmanager
def desk(*answers: UserAction, code: dict[str, str] | None = None, signed_in: bool = True) -> Iterator[Trial]:
    """The tool in a folder of its own, with these answers to its cards."""
    here = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            on_question = None if code is None else FixedAnswers(code)
            with Trial(HERE, answer=list(answers), state={"signed_in": signed_in}, on_question=on_question) as trial:
                yield trial
        finally:
            os.chdir(here)


def test_a_yes_pays_and_a_no_does_not() -> None:
    with desk(ALLOWED, DENIED) as trial:
        assert trial.call("pay", RENT).message == "Paid 900.00 to Ada."
        assert trial.call("pay", RENT).kind == "denied"
        assert [card.message for card in trial.cards] == [
            "900.00 goes to Ada for “rent”. 1600.00 is left.",
            "900.00 goes to Ada for “rent”. 700.00 is left.",
        ]


def test_nobody_is_asked_about_what_cannot_be_done() -> None:
    with desk() as trial:
        assert "more than the 2500.00" in trial.call("pay", RENT | {"amount": 9000}).message
    with desk(signed_in=False) as trial:
        assert "sign_in comes first" in trial.call("pay", RENT).message


def test_a_large_sum_takes_a_code() -> None:
    with desk(ALLOWED, code={"code": "4711"}) as trial:
        assert trial.call("pay", HOUSE).success
    with desk(ALLOWED) as trial:  # nobody answers the question
        assert trial.call("pay", HOUSE).message == "No code was given, so nothing was paid."


def test_after_a_crash_it_is_not_paid_twice() -> None:
    with desk(ALLOWED) as trial:
        trial.crash("pay", RENT, call_id="rent")
        assert trial.call("pay", RENT, call_id="rent").success
        assert Path("ledger.json").read_text().count("Ada") == 1


def test_a_silent_bank_leaves_a_doubt_that_the_same_id_settles() -> None:
    with desk(ALLOWED) as trial:
        os.environ["BANK"] = "silent"
        try:
            assert trial.call("pay", RENT, call_id="rent").kind == "outcome_unknown"
            assert trial.in_doubt() == ["rent"]
            assert trial.call("pay", RENT, call_id="rent").success
        finally:
            del os.environ["BANK"]
        assert Path("ledger.json").read_text().count("Ada") == 1
