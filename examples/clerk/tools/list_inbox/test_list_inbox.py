"""Run by `lastword test`, and by pytest."""

from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)


def test_no_inbox_is_an_empty_one() -> None:
    tool.INBOX = tool.Path("no such folder")
    assert tool.test_execute({})["message"] == "The inbox is empty."
