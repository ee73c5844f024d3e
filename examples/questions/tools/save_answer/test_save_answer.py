"""Run by `lastword test`, and by pytest."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)


def test_it_writes_once() -> None:
    with TemporaryDirectory() as folder:
        tool.ANSWERS = Path(folder, "answers")
        assert tool.test_execute({"name": "a.md", "text": "42"})["success"]
        assert not tool.test_execute({"name": "a.md", "text": "43"})["success"]
        assert (tool.ANSWERS / "a.md").read_text() == "42\n"


def test_the_card_shows_the_text() -> None:
    assert "42" in tool.test_approval({"name": "a.md", "text": "42"})["message"]
