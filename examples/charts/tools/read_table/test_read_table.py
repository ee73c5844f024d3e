"""Run by `lastword test`, and by pytest."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_it_counts_and_shows() -> None:
    here = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("a.csv").write_text("month,sales\nJan,3\n")
            assert tool.test_execute({"file": "a.csv"})["message"] == "1 rows of month, sales\nJan, 3"
            assert tool.test_execute({"file": "b.csv"}) == {"success": False, "message": "There is no b.csv."}
        finally:
            os.chdir(here)


def test_it_stays_in_its_folder() -> None:
    assert not tool.test_execute({"file": "../a.csv"})["success"]
