"""`AssistantTool`: the object that speaks for the tool being loaded or run.

In `assistant_tool.py` it registers functions; each registration returns a test function, which runs the real code path
without a model, a person or a lasting journal. While a tool runs it reports progress and knows of cancellation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastword.consent import ALLOWED, ApprovalRequest, UserAction
from lastword.errors import ToolError, ToolLoadError, did_you_mean
from lastword.session import Session
from lastword.tools import Loading, QuestionAnswer, Tool, ToolContext, ToolFolder, ToolRegistry

if TYPE_CHECKING:
    from lastword.editor import ScriptEditorProvider


class TestFunction:
    """What a registration returns: call it with parameters, and read what a card or a result would say."""

    __test__ = False  # not a test of pytest's, although its name begins like one

    def __init__(self, here: Loading, function: Callable[..., Any]) -> None:
        self._here = here
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def _session(
        self, action: UserAction, editor: ScriptEditorProvider | None
    ) -> tuple[Session, list[ApprovalRequest]]:
        return try_out(self._here.tool(), action, editor)


class TestApproval(TestFunction):
    """Draws the card for these parameters."""

    def __call__(
        self, params: dict[str, Any] | None = None, *, editor: ScriptEditorProvider | None = None
    ) -> dict[str, Any]:
        session, seen = self._session(UserAction.CLOSED, editor)
        try:
            outcome = session.call_sync(self._here.manifest.id, params or {})
        finally:
            session.close_sync()
        if not seen:
            raise ToolError(outcome.message)
        return seen[0].facts()


class TestExecute(TestFunction):
    """Carries the call out, with this answer to its card."""

    def __call__(
        self,
        params: dict[str, Any] | None = None,
        user_action: UserAction | dict[str, Any] | None = None,
        *,
        editor: ScriptEditorProvider | None = None,
    ) -> dict[str, Any]:
        session, _ = self._session(action_from(user_action), editor)
        try:
            outcome = session.call_sync(self._here.manifest.id, params or {})
        finally:
            session.close_sync()
        return outcome.after_no or outcome.result()


_ACTION = {
    "primary_confirmed": "primary_confirmed",
    "primaryConfirmed": "primary_confirmed",
    "secondary_confirmed": "secondary_confirmed",
    "secondaryConfirmed": "secondary_confirmed",
    "acts": "acts",
    "reason": "reason",
    "arguments": "arguments",
}


def action_from(given: UserAction | dict[str, Any] | None) -> UserAction:
    """What a test says that the person did: nothing said is Allow, and what a dict leaves out was not pressed."""
    if given is None:
        return ALLOWED
    if isinstance(given, UserAction):
        return given
    if not isinstance(given, dict):
        raise ToolError(
            f"the action is a {type(given).__name__}, not a dict",
            hint='{"primaryConfirmed": True} is Allow, {"secondaryConfirmed": True} is Deny, {} is a closed card',
        )
    fields: dict[str, Any] = {"primary_confirmed": False, "secondary_confirmed": False}
    for key, value in given.items():
        if key not in _ACTION:
            hint = did_you_mean(str(key), _ACTION) or f"an action has {', '.join(list(_ACTION)[1::2])}"
            raise ToolError(f"an action has no {key}", hint=hint)
        fields[_ACTION[key]] = value
    return UserAction(**fields)


def try_out(
    tool: Tool, action: UserAction, editor: ScriptEditorProvider | None = None
) -> tuple[Session, list[ApprovalRequest]]:
    """A session that forgets, with this one tool and an approver that always does the same; and the cards it saw.

    Without the tool's own rule for when nobody is asked: whoever gives an answer to a card means that there is one, and
    a card that is only drawn, or denied, must not run what the rule would let pass.
    """
    seen: list[ApprovalRequest] = []

    async def test_function(request: ApprovalRequest) -> UserAction:
        seen.append(request)
        return action if action.acts is None else request.allow_second()

    registry = ToolRegistry()
    registry.add(replace(tool, needs_approval=None))
    return Session(registry, approver=test_function, editor=editor), seen


class _AssistantTool:
    """See the module. There is one, called `AssistantTool`."""

    def register_approval_request(self, function: Callable[..., Any]) -> TestApproval:
        """The function that describes what is about to happen. It may look and must not touch."""
        here = _here("register_approval_request")
        if here.request is not None:
            raise ToolLoadError("an approval request is registered already", place=str(here.folder))
        here.request = function
        return TestApproval(here, function)

    def register_needs_approval(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The tool's own rule: given the arguments, `False` when nobody need be asked. Anything else asks."""
        here = _here("register_needs_approval")
        if here.needs_approval is not None:
            raise ToolLoadError("an approval rule is registered already", place=str(here.folder))
        here.needs_approval = function
        return function

    def register_execute_tool(self, function: Callable[..., Any]) -> TestExecute:
        """The function that does the work, for tools that need no approval."""
        return _register(function, "register_execute_tool", with_approval=False)

    def register_execute_tool_with_approval(self, function: Callable[..., Any]) -> TestExecute:
        """The function that does the work once `user_action.primary_confirmed` is true."""
        return _register(function, "register_execute_tool_with_approval", with_approval=True)

    def report(self, message: str, id: str | None = None, *, fraction: float | None = None) -> None:
        """Say how it goes. The same id updates the earlier line in place."""
        _running("report").report(message, id, fraction=fraction)

    async def ask(self, message: str, schema: Mapping[str, Any]) -> QuestionAnswer:
        """Ask the person something while the tool runs: `Given`, `Declined` or `Closed`. It approves nothing."""
        return await _running("ask").ask(message, schema)

    def ask_sync(self, message: str, schema: Mapping[str, Any]) -> QuestionAnswer:
        """`ask` for a tool whose function is not async."""
        return _running("ask_sync").ask_sync(message, schema)

    @property
    def is_cancelled(self) -> bool:
        """True once a person cancelled the running call."""
        return _running("is_cancelled").is_cancelled

    @property
    def on_cancel(self) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Assign or pass a function that is called once on cancellation and may return a partial result."""
        return _running("on_cancel").on_cancel

    @on_cancel.setter
    def on_cancel(self, function: Callable[[], Any] | None) -> None:
        _running("on_cancel")._on_cancel = function


AssistantTool = _AssistantTool()

_plain: dict[Path, Loading] = {}
"""Tools whose Python file was run directly, by folder."""


def _register(function: Callable[..., Any], name: str, *, with_approval: bool) -> TestExecute:
    here = _here(name)
    if here.execute is not None:
        raise ToolLoadError("an execute function is registered already", place=str(here.folder))
    here.execute, here.with_approval = function, with_approval
    return TestExecute(here, function)


def _here(name: str) -> Loading:
    """The tool that is being loaded; when its file is run directly, the one whose manifest lies beside it."""
    here = Loading.current.get()
    if here is not None:
        return here
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__") == __name__:
        depth += 1
    file = sys._getframe(depth).f_globals.get("__file__")
    folder = Path(file).resolve().parent if file else None
    if folder is None or not (folder / ToolFolder.MANIFEST_FILE).is_file():
        raise ToolLoadError(
            f"AssistantTool.{name} was called outside of a tool",
            hint=f"call it in assistant_tool.py, with {ToolFolder.MANIFEST_FILE} beside it",
        )
    if folder not in _plain:
        _plain[folder] = ToolFolder(folder).read()
    return _plain[folder]


def _running(name: str) -> ToolContext[Any]:
    context = ToolContext.current.get()
    if context is None:
        raise ToolError(f"AssistantTool.{name} was used while no tool runs", hint="use it inside the execute function")
    return context
