"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_a_new_calendar_is_empty() -> None:
    assert tool.test_execute({"day": "2026-07-01"})["message"] == "Nothing on that day."
