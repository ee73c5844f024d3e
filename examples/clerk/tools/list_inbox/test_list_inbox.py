"""Run by `lastword test`, and by pytest."""

from lastword.author.tooltests import tool_beside

tool = tool_beside(__file__)


def test_no_inbox_is_an_empty_one():
    tool.INBOX = tool.Path("no such folder")
    assert tool.test_execute({})["message"] == "The inbox is empty."
