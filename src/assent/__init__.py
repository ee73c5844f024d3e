"""assent gives an AI assistant real tools and leaves the last word with a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assent.approval import ApprovalRequest, Approver, Preset, UserAction
    from assent.authoring import AssistantTool
    from assent.calls import Limits
    from assent.changes import Undone
    from assent.editor.project import ProjectEditor
    from assent.editor.tools import editor_tools
    from assent.errors import AssentError, ToolError
    from assent.journal import Journal
    from assent.opening import open_journal
    from assent.outcome import Outcome
    from assent.protocol import NotARequest, ToolRequest, parse_tool_request
    from assent.registry import ToolRegistry, tool
    from assent.runs import Run, check, plan, script_grammar, script_prompt
    from assent.session import Session, wait_for_answer
    from assent.state import StateMetadata

__version__ = "0.1.0"

# Loaded on first use, so that `import assent` costs nothing that a program does not need.
_ROOMS = {
    "ApprovalRequest": "approval",
    "Approver": "approval",
    "AssentError": "errors",
    "AssistantTool": "authoring",
    "Journal": "journal",
    "Limits": "calls",
    "NotARequest": "protocol",
    "Outcome": "outcome",
    "Preset": "approval",
    "ProjectEditor": "editor.project",
    "Run": "runs",
    "Session": "session",
    "StateMetadata": "state",
    "ToolError": "errors",
    "ToolRegistry": "registry",
    "ToolRequest": "protocol",
    "Undone": "changes",
    "UserAction": "approval",
    "check": "runs",
    "editor_tools": "editor.tools",
    "open_journal": "opening",
    "parse_tool_request": "protocol",
    "plan": "runs",
    "script_grammar": "runs",
    "script_prompt": "runs",
    "tool": "registry",
    "wait_for_answer": "session",
}

__all__ = [
    "ApprovalRequest",
    "Approver",
    "AssentError",
    "AssistantTool",
    "Journal",
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
        raise AttributeError(f"module 'assent' has no attribute {name!r}")
    value = getattr(import_module(f"assent.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
