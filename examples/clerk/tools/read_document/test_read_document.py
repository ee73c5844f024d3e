"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_a_path_is_not_a_name() -> None:
    result = tool.test_execute({"name": "../secrets.txt"})
    assert not result["success"]
    assert "name" in result["message"]


def test_what_is_not_there_is_said() -> None:
    assert tool.test_execute({"name": "nothing.txt"})["message"] == "There is no document nothing.txt in the inbox."
