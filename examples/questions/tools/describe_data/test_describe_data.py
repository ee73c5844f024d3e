"""Run by `lastword test`, and by pytest."""

from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)


def test_it_names_every_table() -> None:
    tool.DATA = tool.Path(__file__).parents[2] / "shop.sql"
    assert [line.partition(":")[0] for line in tool.test_execute({})["message"].splitlines()] == ["customers", "orders"]
