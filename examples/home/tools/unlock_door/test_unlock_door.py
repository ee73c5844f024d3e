"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_a_no_leaves_it_locked() -> None:
    result = tool.test_execute({}, {"primary_confirmed": False, "secondary_confirmed": True})
    assert "The door stays locked." in result["message"]
