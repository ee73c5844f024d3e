"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_the_card_says_when() -> None:
    card = tool.test_approval({"day": "2026-07-01", "hour": 9, "title": "Dentist"})
    assert card["message"] == "Add “Dentist” on 2026-07-01 at 9:00?"


def test_a_yes_adds_it() -> None:
    assert tool.test_execute({"day": "2026-07-01", "hour": 9, "title": "Dentist"})["success"]
