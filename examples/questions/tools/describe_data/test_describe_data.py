"""Run by `lastword test`, and by pytest."""

from lastword.author.tooltests import tool_beside

tool = tool_beside(__file__)


def test_it_names_every_table():
    tool.DATA = tool.Path(__file__).parents[2] / "shop.sql"
    assert [line.partition(":")[0] for line in tool.test_execute({})["message"].splitlines()] == ["customers", "orders"]
