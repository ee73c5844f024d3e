"""What ships for users' own tests."""

import asyncio

import pytest

from lastword import ApprovalRequest, Session, ToolRegistry, UserAction
from lastword.consent import ALLOWED, DENIED
from lastword.testing import ATTACKS, FixedApprover, memory_journal, run_tool_tests
from requirements import requirement
from sending import CALL


@requirement("TOOL-50")
@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (ALLOWED, ["succeeded", "succeeded"]),
        (DENIED, ["denied", "denied"]),
        ([ALLOWED, DENIED], ["succeeded", "denied"]),
        (lambda request: request.deny("no"), ["denied", "denied"]),
        ([lambda request: request.allow(), DENIED], ["succeeded", "denied"]),
    ],
    ids=["yes", "no", "list", "function", "list of functions"],
)
async def test_a_fixed_approver_answers_as_it_was_told(registry: ToolRegistry, send, answer, kinds):
    """One action, a list, or a function; and it keeps what it was shown."""
    approver = FixedApprover(answer)
    session = Session(registry, approver=approver)
    assert [(await session.call("send", CALL)).kind for _ in range(2)] == kinds
    assert [request.arguments for request in approver.requests] == [CALL, CALL]


async def test_a_fixed_approver_may_think(registry: ToolRegistry, send):
    """An async function is awaited."""

    async def think(request: ApprovalRequest) -> UserAction:
        await asyncio.sleep(0)
        return request.allow()

    assert (await Session(registry, approver=FixedApprover(think)).call("send", CALL)).kind == "succeeded"


def test_a_memory_journal_takes_a_clock():
    """Time is an argument where a test is about time."""
    assert memory_journal(lambda: 5.0).clock() == 5.0
    assert memory_journal().store is not memory_journal().store


def test_attacks_have_names_of_their_own():
    """They are the ids of a parametrised test."""
    names = [str(attack) for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 12
    assert callable(run_tool_tests)
