"""Run by `lastword test`, and by pytest."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lastword import UserAction
from lastword.testing import ALLOWED, DENIED, Trial

HERE = Path(__file__).parent
SALES = {"file": "sales.csv", "column": "sales"}


@contextmanager
def clerk(*answers: UserAction) -> Iterator[Trial]:
    here = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("sales.csv").write_text("month,sales\nJan,3\nFeb,7\n")
        try:
            with Trial(HERE, answer=list(answers)) as trial:
                yield trial
        finally:
            os.chdir(here)


def test_a_picture_is_shown_and_nobody_is_asked() -> None:
    with clerk() as trial:
        outcome = trial.call("draw_chart", SALES)
        assert outcome.message.startswith("sales: 2 bars, the highest is Feb with 7.")
        picture, data = outcome.content
        assert (picture.kind, picture.media_type, data.name) == ("image", "image/png", "sales.csv")
        assert trial.cards == []


def test_writing_it_asks() -> None:
    with clerk(DENIED, ALLOWED) as trial:
        assert trial.call("draw_chart", SALES | {"save_as": "a.png"}).kind == "denied"
        assert not Path("a.png").exists()
        assert trial.call("draw_chart", SALES | {"save_as": "a.png"}).success
        assert Path("a.png").read_bytes().startswith(b"\x89PNG")
        assert "exists already" in trial.call("draw_chart", SALES | {"save_as": "a.png"}).message


def test_what_cannot_be_drawn_is_said() -> None:
    with clerk() as trial:
        assert "the columns are month, sales" in trial.call("draw_chart", SALES | {"column": "profit"}).message
        assert "not made of numbers" in trial.call("draw_chart", SALES | {"column": "month"}).message


def test_any_numbers_can_be_drawn() -> None:
    for numbers in ("0", "-3\nB,-1", "0.00001", "1e12", "5\n" + "\n".join(f"L{n},{n}" for n in range(40))):
        with clerk() as trial:
            Path("sales.csv").write_text(f"month,sales\nA,{numbers}\n")
            outcome = trial.call("draw_chart", SALES)
            assert outcome.content[0].kind == "image", outcome.message


def test_a_table_without_rows_is_said() -> None:
    with clerk() as trial:
        Path("sales.csv").write_text("month,sales\n")
        assert "has no column sales" in trial.call("draw_chart", SALES).message
