"""Run by `lastword test`, and by pytest."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)

CALL = {"name": "a.txt", "folder": "letters"}


def test_it_moves_and_overwrites_nothing() -> None:
    with TemporaryDirectory() as folder:
        tool.INBOX, tool.ARCHIVE = Path(folder, "inbox"), Path(folder, "archive")
        tool.INBOX.mkdir()
        (tool.INBOX / "a.txt").write_text("first")
        assert tool.test_execute(CALL)["message"] == "Filed a.txt in archive/letters."
        (tool.INBOX / "a.txt").write_text("second")
        assert not tool.test_execute(CALL)["success"]
        assert (tool.ARCHIVE / "letters" / "a.txt").read_text() == "first"


def test_a_folder_outside_is_refused() -> None:
    assert not tool.test_execute({"name": "a.txt", "folder": ".."})["success"]
