"""What ships for users' own tests: approvers, attacks, and a tool tried in plain sync code in a few lines each."""

import asyncio
import time
from pathlib import Path

import pytest

from lastword import ApprovalRequest, Session, ToolContext, ToolRegistry, UserAction, tool
from lastword.consent import ALLOWED, DENIED
from lastword.errors import SessionError
from lastword.testing import ATTACKS, FixedApprover, Trial, memory_journal, run_tool_tests
from requirements import requirement
from sending import CALL

pytest_plugins = ["pytester"]

paid: list[str] = []


@pytest.fixture(autouse=True)
def nothing_paid():
    paid.clear()


@tool(effect="irreversible")
def pay(amount: float, context: ToolContext[None]) -> str:
    """Pay."""
    paid.append(context.call_id)
    return f"paid {amount:g}"


@tool(idempotent=True)
def pay_once(amount: float, context: ToolContext[None]) -> str:
    """Pay, with the call's id as the key by which the bank knows it."""
    if context.call_id not in paid:
        paid.append(context.call_id)
    return f"paid {amount:g}"


@tool(require_approval=False)
def count(context: ToolContext[None]) -> str:
    """Count until somebody says stop."""
    context.on_cancel = lambda: "some of it"
    context.report("half of it", fraction=0.5)
    while not context.is_cancelled:
        time.sleep(0.01)
    return "all of it"


def test_a_card_and_its_answer():
    """What was shown, and what came of it."""
    with Trial(pay, answer=[ALLOWED, DENIED]) as trial:
        assert trial.call("pay", {"amount": 5}).value == "paid 5"
        assert trial.call("pay", {"amount": 6}).kind == "denied"
        assert [card.arguments["amount"] for card in trial.cards] == [5, 6]


def test_a_cancelled_call_keeps_what_it_has():
    """Cancelled at a moment that the test chooses, without a sleep."""
    with Trial(count) as trial:
        outcome = trial.start("count").until_reported("half").cancel().outcome()
        assert outcome.kind == "cancelled"
        assert "some of it" in outcome.message
        assert trial.reports == ["half of it"]


def test_after_a_crash_a_call_is_in_doubt_and_decided_by_a_person():
    """It was paid, the end was never written, and nothing pays again by itself."""
    with Trial(pay) as trial:
        trial.crash("pay", {"amount": 5})
        assert trial.in_doubt() == ["crashed"]
        assert trial.call("pay", {"amount": 5}, call_id="crashed").kind == "outcome_unknown"
        assert paid == ["crashed"]
        assert trial.resolve("crashed", "done").success
        assert trial.in_doubt() == []
        assert paid == ["crashed"]


def test_after_a_crash_an_idempotent_tool_is_asked_for_again_with_the_same_id():
    """That is what it promises, and the same card is not shown twice."""
    with Trial(pay_once) as trial:
        trial.crash("pay_once", {"amount": 5})
        assert trial.call("pay_once", {"amount": 5}, call_id="crashed").value == "paid 5"
        assert paid == ["crashed"]
        assert len(trial.cards) == 1


def test_a_crash_that_could_leave_nothing_in_doubt_says_so(monkeypatch):
    """A test of a crash that never came to pass would prove nothing."""
    monkeypatch.setattr("lastword.testing.trial.PATIENCE_SECONDS", 0.5)

    @tool(require_approval=False)
    def look() -> str:
        """Look."""
        return "x"

    with Trial(look) as trial, pytest.raises(AssertionError, match="nothing is in doubt"):
        trial.crash("look")


def test_folders_and_registries_are_tools_too(tmp_path: Path):
    """Whatever a registry takes."""
    (tmp_path / "assistant_tool.json").write_text(
        '{"displayName": "Hi", "id": "hi", "description": "Says hi.", "requireApproval": false, "parameters": []}'
    )
    (tmp_path / "assistant_tool.py").write_text(
        "from lastword import AssistantTool\n"
        "AssistantTool.register_execute_tool(lambda: {'success': True, 'message': 'hi'})\n"
    )
    with Trial(tmp_path, pay) as trial:
        assert trial.call("hi").message == "hi"
        with Trial(trial.registry) as other:
            assert other.call("pay", {"amount": 1}).success


@requirement("TOOL-50")
def test_pytest_finds_the_fixture_by_itself(pytester: pytest.Pytester):
    """Ten lines, nothing to import but the tool."""
    pytester.makepyfile(
        """
        from lastword import tool

        @tool
        def pay(amount: float) -> str:
            "Pay."
            return f"paid {amount:g}"

        def test_pay(lastword_session):
            session = lastword_session(pay)
            assert session.call("pay", {"amount": 5}).value == "paid 5"
            assert session.cards[0].title == "Pay"
        """
    )
    pytester.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=1)


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


def test_a_trial_takes_no_state_before_its_session_is_open():
    """It may be one that goes on, and has a state that is not read yet: as with any session that has an id."""

    def look(x: int) -> int:
        """Looks."""
        return x

    with Trial(look) as trial:
        with pytest.raises(SessionError, match="before the session is open"):
            trial.session.set_state("a", 1)
        assert trial.call("look", {"x": 1}).success
        trial.session.set_state("a", 1)
