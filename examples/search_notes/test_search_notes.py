"""Run by `lastword test`, and by pytest."""

from pathlib import Path
from tempfile import TemporaryDirectory

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_it_finds_lines_in_notes_and_nowhere_else() -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "a.md").write_text("nothing\nAda called\n")
        Path(folder, "b.txt").write_text("write to ADA\n")
        Path(folder, "c.py").write_text("# Ada\n")
        message = tool.test_execute({"word": "ada", "folder": folder})["message"]
    assert message.splitlines()[0] == "“ada” was found 2 times; 2 notes searched."
    assert message.splitlines()[1].endswith("a.md:2: Ada called")


def test_the_card_says_how_many_notes_would_be_read() -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "a.md").write_text("one\n")
        assert tool.test_approval({"word": "x", "folder": folder})["title"] == "Search 1 note?"


def test_a_long_list_is_cut_and_says_so() -> None:
    assert tool.words("x", ["line"] * 51, "all").splitlines()[-1] == "… and 1 more"
