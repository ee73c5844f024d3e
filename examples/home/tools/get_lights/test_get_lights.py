"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_a_new_house_is_dark() -> None:
    assert tool.test_execute({})["message"].splitlines() == [f"{room}: off" for room in tool.ROOMS]
