"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_the_card_says_which_light_and_how_bright() -> None:
    card = tool.test_approval({"room": "hall", "on": True, "brightness": 40})
    assert card["message"] == "Turn the light in the hall on, at 40 %?"


def test_a_yes_turns_it_on() -> None:
    assert tool.test_execute({"room": "hall", "on": True})["message"] == "The light in the hall is on."
