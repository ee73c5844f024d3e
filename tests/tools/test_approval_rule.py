"""Approval that depends on the arguments: a tool's own rule can make a question unnecessary, and nothing else."""

import asyncio
import contextlib
import logging
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastword import Limits, Preset, Session, ToolRegistry, plan, tool
from lastword.consent import DENIED
from lastword.errors import ManifestError, ToolLoadError
from lastword.journal import Journal
from lastword.script import plan_text
from lastword.store import MemoryStore
from lastword.testing import FixedApprover
from requirements import requirement

Rule = Callable[..., Any]


def paying(registry: ToolRegistry, effects: list[Any], rule: Rule, **facts: Any) -> None:
    @registry.tool(require_approval=rule, **facts)
    def pay(amount: float, to: str = "Ada") -> str:
        """Pay somebody.

        Args:
            amount: how much
            to: whom
        """
        effects.append((amount, to))
        return f"paid {amount}"


@requirement("TOOL-62")
async def test_only_what_the_rule_lets_pass_runs_without_a_card(registry: ToolRegistry, effects):
    """Small sums need nobody. The outcome says whose word it was."""
    paying(registry, effects, lambda amount: amount > 100)
    approver = FixedApprover(DENIED)
    session = Session(registry, approver=approver)
    small, large = await session.call("pay", {"amount": 100}), await session.call("pay", {"amount": 100.01})
    assert (small.kind, small.approval) == ("succeeded", "waived")
    assert (large.kind, len(approver.requests)) == ("denied", 1)
    assert effects == [(100, "Ada")]


def _is_large(params: dict[str, Any]) -> bool:
    return params["amount"] > 100


@requirement("TOOL-62")
@pytest.mark.parametrize("way", ["register", "folder"])
async def test_every_way_of_writing_a_tool_can_have_a_rule(registry: ToolRegistry, effects, tmp_path: Path, way: str):
    """A registered tool and one in a folder ask for large sums alone, like a typed function."""
    if way == "register":
        schema = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
        registry.register(
            "pay", schema, lambda args, context: 1, require_approval=lambda params: params["amount"] > 100
        )
    else:
        (tmp_path / "assistant_tool.json").write_text(
            '{"displayName": "Pay", "id": "pay", "description": "Pays.", "requireApproval": true,'
            ' "parameters": [{"name": "amount", "type": "number", "description": "how much"}]}'
        )
        (tmp_path / "assistant_tool.py").write_text(
            "from lastword import AssistantTool\n"
            "AssistantTool.register_needs_approval(lambda amount: amount > 100)\n"
            "@AssistantTool.register_execute_tool_with_approval\n"
            "def pay(params):\n"
            "    return {'success': True, 'message': 'paid'}\n"
        )
        registry.load(tmp_path)
    session = Session(registry, approver=FixedApprover(DENIED))
    small, large = await session.call("pay", {"amount": 1}), await session.call("pay", {"amount": 101})
    assert (small.approval, large.kind) == ("waived", "denied")


def _forever(amount: float) -> bool:
    while True:
        time.sleep(0.01)


async def _sleeping(amount: float) -> bool:
    await asyncio.sleep(3600)
    return False


def _writes(amount: float) -> bool:
    Path("waived.txt").write_text("x")
    return False


def _writes_in_secret(amount: float) -> bool:
    with contextlib.suppress(BaseException):
        subprocess.run(["true"], check=False)
    return False


def _reads(amount: float) -> bool:
    return not Path(__file__).read_text()


def _raises(amount: float) -> bool:
    raise ZeroDivisionError


def _exits(amount: float) -> bool:
    raise SystemExit(0)


class Falsy:
    def __bool__(self) -> bool:
        return False


BROKEN: dict[str, Rule] = {
    "it raises": _raises,
    "it ends the program": _exits,
    "it hangs": _forever,
    "it waits for ever": _sleeping,
    "it writes": _writes,
    "it acts and swallows the refusal": _writes_in_secret,
    "it looks at a file": _reads,
    "it returns nothing": lambda amount: None,
    "it returns zero": lambda amount: 0,
    "it returns a text": lambda amount: "",
    "it returns something false": lambda amount: Falsy(),
}


@requirement("TOOL-62")
@pytest.mark.parametrize("rule", BROKEN.values(), ids=BROKEN)
async def test_a_rule_that_does_not_say_false_asks(registry: ToolRegistry, effects, rule: Rule, tmp_path, monkeypatch):
    """Whatever goes wrong with a rule, a person is asked: it could only have made the question unnecessary."""
    monkeypatch.chdir(tmp_path)
    paying(registry, effects, rule)
    approver = FixedApprover(DENIED)
    session = Session(registry, approver=approver, limits=Limits(draw_timeout_seconds=0.3))
    assert (await session.call("pay", {"amount": 1})).kind == "denied"
    assert len(approver.requests) == 1
    assert effects == []
    assert list(tmp_path.iterdir()) == []


@requirement("TOOL-62")
async def test_a_rule_may_not_go_by_the_state(registry: ToolRegistry, effects, caplog):
    """State can be another when the call starts. The log tells the author."""
    session = Session(registry, approver=FixedApprover(DENIED), state={"limit": 100})
    paying(registry, effects, lambda amount: amount > session.get_state_value("limit"))
    with caplog.at_level(logging.ERROR, "lastword"):
        assert (await session.call("pay", {"amount": 1})).kind == "denied"
    assert "by the arguments alone" in caplog.text


@requirement("TOOL-62")
async def test_a_waived_call_is_as_durable_as_an_approved_one(registry: ToolRegistry, effects):
    """It is asked, answered by the rule, burned and started in the journal, and takes the key of its start."""
    paying(registry, effects, lambda amount: False)
    store = MemoryStore()
    journal = Journal(store)
    outcome = await Session(registry, journal=journal).call("pay", {"amount": 1})
    kinds = [record.kind for record in await store.read(subject=outcome.call_id)]
    assert kinds == ["asked", "answered", "burned", "started", "finished"]
    life = await journal.life(outcome.call_id)
    assert life.started is not None
    assert life.started["approval"] == "waived"
    assert life.answered is not None
    assert life.answered["approver"]["kind"] == "waiver"
    assert await store.taken(f"start:{outcome.call_id}:0") is not None


@requirement("TOOL-62")
async def test_arguments_that_a_person_changed_are_judged_as_theirs(registry: ToolRegistry, effects):
    """Whoever was asked and makes the sum smaller has consented; the outcome does not call that waived."""
    paying(registry, effects, lambda amount: amount > 100)
    session = Session(registry, approver=FixedApprover(lambda request: request.edit(amount=5)))
    outcome = await session.call("pay", {"amount": 500})
    assert (outcome.approval, effects) == ("person", [(5, "Ada")])


@requirement("TOOL-62")
async def test_a_yes_of_the_rule_does_not_outlive_the_rule(registry: ToolRegistry, effects):
    """The tool was replaced between drawing and starting: the new rule is asked, and then a person."""
    session: Session

    def request(amount: float) -> dict[str, str]:
        return {"message": f"pay {amount}"}

    def old(amount: float) -> bool:
        return False

    paying(registry, effects, old, request=request)
    approver = FixedApprover(DENIED)
    journal = Journal()
    session = Session(registry, approver=approver, journal=journal)
    write_down = journal.asked

    def asked(*args: Any) -> Any:
        if registry.lookup("pay").needs_approval is old:
            registry.unregister("pay")
            paying(registry, effects, lambda amount: True)
        return write_down(*args)

    journal.asked = asked  # type: ignore[method-assign, assignment]
    assert (await session.call("pay", {"amount": 1})).kind == "denied"
    assert len(approver.requests) == 1
    assert effects == []


@requirement("TOOL-62")
async def test_with_both_keys_the_rule_is_not_needed(registry: ToolRegistry, effects):
    """Auto-approval is the user's word and the tool's; it is called by its own name."""
    paying(registry, effects, lambda amount: False, auto_approve=True)
    outcome = await Session(registry, preset=Preset(True)).call("pay", {"amount": 1})
    assert outcome.approval == "auto"


@requirement("TOOL-62")
def test_a_rule_that_nobody_could_call_is_refused_when_it_is_given(registry: ToolRegistry):
    """A misspelled argument would raise in each call, and ask each time without a word of why."""
    with pytest.raises(ToolLoadError, match="its approval rule declares amout") as refusal:
        paying(registry, [], lambda amout: False)
    assert refusal.value.hint == "did you mean amount?"
    with pytest.raises(ManifestError, match="require_approval is 'no', expected True or False or a function"):
        tool(require_approval="no")(lambda: 1)  # type: ignore[call-overload]


@requirement("TOOL-62")
def test_a_plan_does_not_promise_a_question_that_a_rule_may_spare(registry, effects):
    """Whoever reads a plan goes by it: what may pass without them must not be said to wait for them."""

    @registry.tool(require_approval=lambda amount: amount > 100)
    def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    @registry.tool
    def send(to: str) -> str:
        """Send."""
        return "sent"

    text = plan_text(plan('CALL pay { amount: 5 }\nCALL send { to: "Ann" }\n', registry))
    assert text.count("You are asked first, unless a rule or a grant lets it pass.") == 1
    assert text.count("You are asked first.") == 1
    assert "You are asked before each of them runs, unless a rule or a grant lets it pass." in text


@requirement("RULE-7")
def test_a_plan_says_that_a_standing_yes_may_answer():
    """Whoever reads the plan of a script counts on the questions that it names."""
    registry = ToolRegistry()

    @registry.tool(auto_approve="exact")
    def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    text = plan_text(plan("CALL pay { amount: 5 }\n", registry))
    assert "You are asked first, unless a rule or a grant lets it pass." in text
