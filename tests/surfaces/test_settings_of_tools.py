"""What the settings say of a tool: whether it asks, and what else may answer."""

from typing import Any

import pytest

from lastword import Session, ToolRegistry
from lastword.web.assistant import tool_entries
from requirements import requirement


@requirement("RULE-9")
@pytest.mark.parametrize(("key", "said"), [(False, (False, False)), ("exact", (False, True)), (True, (True, True))])
def test_a_tool_is_not_said_to_ask_always_where_a_grant_may_answer(key: Any, said: tuple[bool, bool]):
    """By a preset, by a grant or a rule: a page that knows one key only would promise questions that do not come."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=key)
    def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    (entry,) = tool_entries(Session(registry))
    assert (entry.auto_approve, entry.grantable) == said
