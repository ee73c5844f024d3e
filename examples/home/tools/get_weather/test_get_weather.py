"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_the_same_day_has_the_same_weather() -> None:
    first, second = (tool.test_execute({"city": "Lisbon", "day": "2026-07-01"})["message"] for _ in range(2))
    assert first == second
    assert first.startswith("Lisbon, 2026-07-01: ")


def test_a_day_that_does_not_exist_is_refused() -> None:
    assert not tool.test_execute({"city": "Lisbon", "day": "2026-02-30"})["success"]
