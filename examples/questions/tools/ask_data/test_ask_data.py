"""Run by `lastword test`, and by pytest."""

from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)

tool.DATA = tool.Path(__file__).parents[2] / "shop.sql"


def test_it_answers() -> None:
    result = tool.test_execute({"sql": "SELECT count(*) AS n FROM orders"})
    assert result["message"].splitlines()[0] == "n"


def test_it_cannot_change_anything_or_reach_another_file() -> None:
    for sql in ("DELETE FROM orders", "DROP TABLE orders", "ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'"):
        assert not tool.test_execute({"sql": sql})["success"], sql


def test_an_endless_question_ends() -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT count(*) FROM n"
    tool.MAX_STEPS = 100_000
    assert "interrupted" in tool.test_execute({"sql": endless})["message"]
