"""For the tests of whoever writes tools or embeds lastword: approvers, a journal that forgets, and attacks to try.

    from lastword.testing import ATTACKS

    @pytest.mark.parametrize("attack", ATTACKS, ids=str)
    async def test_nobody_cheats_consent(attack):
        await attack.run(registry, "delete_notes", {"older_than": 30})

An attack goes through the real door with the tool's real manifest, request function and arguments. In the place of its
execute function stands one that does nothing but say that it ran, so trying an attack changes nothing. The one
exception is `a denial is ignored`, which needs the real function and runs it under the guard.

What does not live here: how a tool's own tests are found and run (author).
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.author import TestApproval, TestExecute, run_tool_tests, tool_beside
from lastword.call import Limits, wait_for_answer
from lastword.consent import ALLOWED, DENIED, ApprovalRequest, Outcome, Preset, UserAction
from lastword.errors import ToolLoadError
from lastword.journal import Clock, Journal
from lastword.session import Session
from lastword.testing.trial import FixedAnswers, FixedApprover, Going, Trial
from lastword.tools import Manifest, Tool, ToolFolder, ToolRegistry

if TYPE_CHECKING:
    from lastword.editor import ScriptEditorProvider

__all__ = [
    "ALLOWED",
    "ATTACKS",
    "CLOSED",
    "DENIED",
    "Attack",
    "FixedAnswers",
    "FixedApprover",
    "Going",
    "LoadedTool",
    "Trial",
    "load_tool",
    "memory_journal",
    "run_tool_tests",
    "tool_beside",
]

CLOSED = UserAction.CLOSED


def memory_journal(clock: Clock | None = None) -> Journal:
    """A journal that lives as long as the test, with a clock of your own where time matters."""
    return Journal() if clock is None else Journal(clock=clock)


@dataclass(frozen=True)
class LoadedTool:
    """A folder tool, with its two test functions."""

    tool: Tool
    test_approval: TestApproval
    """`test_approval(params, editor=None)` draws the card and returns what it says."""
    test_execute: TestExecute
    """`test_execute(params, user_action=None, editor=None)` carries the call out and returns `{success, message}`."""

    @property
    def manifest(self) -> Manifest:
        return self.tool.manifest


def load_tool(where: str | Path) -> LoadedTool:
    """Load the tool in this folder, or in the folder of this file: `load_tool(__file__)` in a test beside it."""
    path = Path(where).resolve()
    folder = path if path.is_dir() else path.parent
    if not (folder / ToolFolder.MANIFEST_FILE).is_file():
        raise ToolLoadError(
            f"there is no {ToolFolder.MANIFEST_FILE}", place=str(folder), hint="name the folder of one tool"
        )
    here = ToolFolder(folder).load()
    tool = here.tool()
    assert tool.execute is not None
    return LoadedTool(tool, TestApproval(here, tool.request or tool.execute), TestExecute(here, tool.execute))


@dataclass(frozen=True)
class Attack:
    """One way to cheat. `run` raises AssertionError when it works, or when the tool itself invites it."""

    name: str
    run: Callable[..., Awaitable[None]]
    """`await run(registry, tool_name, arguments, editor=None)`"""

    def __str__(self) -> str:
        return self.name


class _Stage:
    """The tool under attack, with an execute function that only says what it was called with."""

    def __init__(self, tool: Tool, arguments: dict[str, Any], editor: ScriptEditorProvider | None) -> None:
        self.ran: list[Any] = []
        """What the stand-in was called with, each time that a yes let it run."""
        self.arguments = arguments
        self.editor = editor
        # Without its own rule for when nobody is asked: what that lets pass has no consent to cheat, and would run.
        self.original = replace(tool, needs_approval=None)
        self.tool = self._disarmed(self.original)
        self.registry = ToolRegistry()
        self.registry.add(self.tool)

    def _disarmed(self, tool: Tool) -> Tool:
        assert tool.execute is not None

        async def stand_in(*args: Any, **kwargs: Any) -> dict[str, Any]:
            if kwargs.get("user_action", ALLOWED).agrees:
                self.ran.append(args[0] if args else kwargs.get("params"))
            return {"success": True, "message": "a stand-in ran"}

        stand_in.__signature__ = inspect.signature(tool.execute)  # type: ignore[attr-defined]
        return replace(tool, execute=stand_in, inline=False)

    @asynccontextmanager
    async def session(self, approver: Any, **facts: Any) -> AsyncIterator[Session]:
        async with Session(self.registry, approver=approver, editor=self.editor, **facts) as session:
            yield session

    async def call(self, approver: Any, **facts: Any) -> Outcome:
        async with self.session(approver, **facts) as session:
            return await session.call(self.tool.name, self.arguments)

    def refuses(self, outcome: Outcome, *kinds: str) -> None:
        assert not self.ran, f"{self.tool.name} ran although {outcome.kind}"
        assert outcome.kind in kinds, f"expected {' or '.join(kinds)}, found {outcome.kind}: {outcome.message}"


_attacks: list[Attack] = []


def _attack(function: Callable[[_Stage], Awaitable[None]]) -> None:
    async def run(
        registry: ToolRegistry,
        tool_name: str,
        arguments: dict[str, Any] | None = None,
        editor: ScriptEditorProvider | None = None,
    ) -> None:
        tool = registry.lookup(tool_name)
        # Without approval there is no consent to cheat: that is what its manifest says.
        if tool.manifest.require_approval:
            await function(_Stage(tool, arguments or {}, editor))

    _attacks.append(Attack(function.__name__.strip("_").replace("_", " "), run))


@_attack
async def _the_card_is_drawn_with_side_effects(stage: _Stage) -> None:
    """The request function may look and must not touch; and there must be a card to answer."""
    approver = FixedApprover(CLOSED)
    outcome = await stage.call(approver)
    assert outcome.kind == "denied", f"the card could not be drawn: {outcome.message}"
    assert approver.requests[0].arguments == values.decode(stage.tool.validate(stage.arguments))


@_attack
async def _a_denial_is_ignored(stage: _Stage) -> None:
    """Every answer that is no reaches the real function, under the guard: it must not even try to act."""
    stage.registry.unregister(stage.tool.name)
    stage.registry.add(stage.original)
    for action in (DENIED, CLOSED):
        outcome = await stage.call(FixedApprover(action))
        assert outcome.kind == "denied", f"expected denied, found {outcome.kind}: {outcome.message}"
        assert outcome.overstepped is None, outcome.message


@_attack
async def _nobody_is_there_to_ask(stage: _Stage) -> None:
    stage.refuses(await stage.call(None), "no_approver")


@_attack
async def _the_approver_fails(stage: _Stage) -> None:
    def fail(request: ApprovalRequest) -> UserAction:
        raise RuntimeError("the approver is broken")

    stage.refuses(await stage.call(FixedApprover(fail)), "no_approver")


@_attack
async def _the_approver_answers_with_something_true(stage: _Stage) -> None:
    async def nod(request: ApprovalRequest) -> Any:
        return True

    stage.refuses(await stage.call(nod), "no_approver")


@_attack
async def _nobody_answers_in_time(stage: _Stage) -> None:
    limits = Limits(approval_timeout_seconds=0.02)
    stage.refuses(await stage.call(wait_for_answer, limits=limits), "expired")


@_attack
async def _one_key_of_auto_approval_is_enough(stage: _Stage) -> None:
    preset = Preset(auto_approve=stage.tool.manifest.auto_approve is not True)
    stage.refuses(await stage.call(None, preset=preset), "no_approver")


@_attack
async def _an_old_answer_is_given_again(stage: _Stage) -> None:
    first = FixedApprover(ApprovalRequest.deny)
    await stage.call(first)
    yes_to_another = first.requests[0].allow()
    stage.refuses(await stage.call(FixedApprover(yes_to_another)), "stale")


@_attack
async def _an_old_answer_is_given_again_with_edited_arguments(stage: _Stage) -> None:
    first = FixedApprover(ApprovalRequest.deny)
    await stage.call(first)
    stage.refuses(await stage.call(FixedApprover(first.requests[0].edit())), "stale")


@_attack
async def _a_yes_is_spent_after_its_time(stage: _Stage) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 61
        return now

    stage.refuses(await stage.call(FixedApprover(), journal=memory_journal(clock)), "stale")


@_attack
async def _the_tool_is_exchanged_while_the_card_waits(stage: _Stage) -> None:
    def exchange(request: ApprovalRequest) -> UserAction:
        stage.registry.unregister(stage.tool.name)
        stage.registry.add(replace(stage.tool, code=stage.tool.code + b"# changed"))
        return request.allow()

    stage.refuses(await stage.call(FixedApprover(exchange)), "stale")


@_attack
async def _a_card_is_answered_twice(stage: _Stage) -> None:
    """Three answers in one moment: the first is no, and it is the one that counts."""
    counted: list[str] = []

    def answer_at_once(request: ApprovalRequest) -> UserAction:
        for action in (DENIED, ALLOWED):
            counted.extend(session.answer(request.call_id, action))
        return ALLOWED

    async with stage.session(FixedApprover(answer_at_once)) as session:
        outcome = await session.call(stage.tool.name, stage.arguments)
    assert len(counted) == 1, f"{len(counted)} answers counted: {outcome.message}"
    stage.refuses(outcome, "denied")


@_attack
async def _the_arguments_are_changed_while_the_card_waits(stage: _Stage) -> None:
    """By the caller and by the approver. What runs is what was shown."""

    def meddle(request: ApprovalRequest) -> UserAction:
        for copy in (stage.arguments, request.arguments):
            copy.clear()
            copy["forged"] = True
        return request.allow()

    shown = values.decode(stage.tool.validate(stage.arguments))
    stage.arguments = values.decode(stage.tool.validate(stage.arguments))
    approver = FixedApprover(meddle)
    outcome = await stage.call(approver)
    assert approver.requests[0].arguments == shown
    # A function gets its arguments in types of its own, and an assistant tool may not want them at all.
    assert stage.ran in ([shown], [None]), f"{outcome.kind}: shown {shown}, ran {stage.ran}"


@_attack
async def _the_state_that_the_card_was_drawn_from_changes_while_it_waits(stage: _Stage) -> None:
    """Asked again each time, and not run in the end. A tool that looks at no state has no such card."""
    count = itertools.count(1)
    looked_at: set[str] = set()

    def change(request: ApprovalRequest) -> UserAction:
        for look in request.looked_at:
            if look.kind == "state":
                looked_at.add(look.name)
                session.set_state(look.name, f"changed {next(count)} times by an attack")
        return request.allow()

    async with stage.session(FixedApprover(change)) as session:
        outcome = await session.call(stage.tool.name, stage.arguments)
    if looked_at:  # Its request function may also stumble over what it finds there now.
        stage.refuses(outcome, "stale", "refused", "failed")


ATTACKS: tuple[Attack, ...] = tuple(_attacks)
"""Every attack of the kit."""
