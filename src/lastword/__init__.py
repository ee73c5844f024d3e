"""lastword gives an AI assistant real tools and leaves the last word with a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastword.author.authoring import AssistantTool
    from lastword.call.changes import Undone
    from lastword.call.setting import Limits
    from lastword.consent.answerer import Answerer
    from lastword.consent.approval import ApprovalRequest, Approver, Preset, UserAction
    from lastword.consent.outcome import Outcome
    from lastword.editor.project import ProjectEditor
    from lastword.editor.tools import editor_tools
    from lastword.errors import LastWordError, ToolError
    from lastword.journal import Journal
    from lastword.journal.opening import open_journal
    from lastword.runs import Run, check, plan, script_grammar, script_prompt
    from lastword.session import Session, wait_for_answer
    from lastword.tools.registry import ToolRegistry, tool
    from lastword.tools.state import StateMetadata
    from lastword.wire.protocol import NotARequest, ToolRequest, parse_tool_request

__version__ = "0.1.0"

# Loaded on first use, so that `import lastword` costs nothing that a program does not need.
_ROOMS = {
    "Answerer": "consent.answerer",
    "ApprovalRequest": "consent.approval",
    "Approver": "consent.approval",
    "LastWordError": "errors",
    "AssistantTool": "author.authoring",
    "Journal": "journal",
    "Limits": "call.setting",
    "NotARequest": "wire.protocol",
    "Outcome": "consent.outcome",
    "Preset": "consent.approval",
    "ProjectEditor": "editor.project",
    "Run": "runs",
    "Session": "session",
    "StateMetadata": "tools.state",
    "ToolError": "errors",
    "ToolRegistry": "tools.registry",
    "ToolRequest": "wire.protocol",
    "Undone": "call.changes",
    "UserAction": "consent.approval",
    "check": "runs",
    "editor_tools": "editor.tools",
    "open_journal": "journal.opening",
    "parse_tool_request": "wire.protocol",
    "plan": "runs",
    "script_grammar": "runs",
    "script_prompt": "runs",
    "tool": "tools.registry",
    "wait_for_answer": "session",
}

__all__ = [
    "Answerer",
    "ApprovalRequest",
    "Approver",
    "AssistantTool",
    "Journal",
    "LastWordError",
    "Limits",
    "NotARequest",
    "Outcome",
    "Preset",
    "ProjectEditor",
    "Run",
    "Session",
    "StateMetadata",
    "ToolError",
    "ToolRegistry",
    "ToolRequest",
    "Undone",
    "UserAction",
    "check",
    "editor_tools",
    "open_journal",
    "parse_tool_request",
    "plan",
    "script_grammar",
    "script_prompt",
    "tool",
    "wait_for_answer",
]


def __getattr__(name: str) -> Any:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module 'lastword' has no attribute {name!r}")
    value = getattr(import_module(f"lastword.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
