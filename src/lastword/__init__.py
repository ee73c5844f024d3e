"""lastword gives an AI assistant real tools and leaves the last word with a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastword.author import AssistantTool
    from lastword.call import (
        Answered,
        Asked,
        DeniedByRule,
        Finished,
        Limits,
        Printed,
        QuestionAnswered,
        QuestionAsked,
        Reported,
        RunFinished,
        RunStarted,
        Started,
        Undone,
        wait_for_answer,
    )
    from lastword.consent import Answerer, ApprovalRequest, Approver, Kept, Outcome, Preset, UserAction
    from lastword.editor import Preview, ProjectEditor, ScriptEditorProvider, editor_tools
    from lastword.errors import Detached, LastWordError, OutcomeUnknown, ToolError
    from lastword.journal import Journal, open_journal
    from lastword.rules import Policy
    from lastword.runs import Run, check, plan, script_grammar, script_prompt
    from lastword.session import Session
    from lastword.talk import tool_request_grammar, tool_request_schema
    from lastword.tools import Manifest, Parameter, Tool, ToolContext, ToolRegistry
    from lastword.tools.content import Audio, File, Image, Text, ToolResult
    from lastword.tools.context import StateMetadata
    from lastword.tools.questions import Closed, Declined, Given, ToolQuestion
    from lastword.tools.registry import ToolChanged, tool
    from lastword.wire import NotARequest, ToolRequest, parse_tool_request

__version__ = "0.4.0.dev0"

# Loaded on first use, so that `import lastword` costs nothing that a program does not need.
_ROOMS = {
    "Answered": "call",
    "Answerer": "consent",
    "ApprovalRequest": "consent",
    "Approver": "consent",
    "Asked": "call",
    "AssistantTool": "author",
    "Audio": "tools.content",
    "Closed": "tools.questions",
    "Declined": "tools.questions",
    "DeniedByRule": "call",
    "Detached": "errors",
    "File": "tools.content",
    "Finished": "call",
    "Given": "tools.questions",
    "Image": "tools.content",
    "Journal": "journal",
    "Kept": "consent",
    "LastWordError": "errors",
    "Limits": "call",
    "Manifest": "tools",
    "NotARequest": "wire",
    "Outcome": "consent",
    "OutcomeUnknown": "errors",
    "Parameter": "tools",
    "Policy": "rules",
    "Preset": "consent",
    "Preview": "editor",
    "Printed": "call",
    "ProjectEditor": "editor",
    "QuestionAnswered": "call",
    "QuestionAsked": "call",
    "Reported": "call",
    "Run": "runs",
    "RunFinished": "call",
    "RunStarted": "call",
    "ScriptEditorProvider": "editor",
    "Session": "session",
    "Started": "call",
    "StateMetadata": "tools.context",
    "Text": "tools.content",
    "Tool": "tools",
    "ToolChanged": "tools.registry",
    "ToolContext": "tools",
    "ToolError": "errors",
    "ToolQuestion": "tools.questions",
    "ToolRegistry": "tools",
    "ToolRequest": "wire",
    "ToolResult": "tools.content",
    "Undone": "call",
    "UserAction": "consent",
    "check": "runs",
    "editor_tools": "editor",
    "open_journal": "journal",
    "parse_tool_request": "wire",
    "plan": "runs",
    "script_grammar": "runs",
    "script_prompt": "runs",
    "tool": "tools.registry",
    "tool_request_grammar": "talk",
    "tool_request_schema": "talk",
    "wait_for_answer": "call",
}

__all__ = [
    "Answered",
    "Answerer",
    "ApprovalRequest",
    "Approver",
    "Asked",
    "AssistantTool",
    "Audio",
    "Closed",
    "Declined",
    "DeniedByRule",
    "Detached",
    "File",
    "Finished",
    "Given",
    "Image",
    "Journal",
    "Kept",
    "LastWordError",
    "Limits",
    "Manifest",
    "NotARequest",
    "Outcome",
    "OutcomeUnknown",
    "Parameter",
    "Policy",
    "Preset",
    "Preview",
    "Printed",
    "ProjectEditor",
    "QuestionAnswered",
    "QuestionAsked",
    "Reported",
    "Run",
    "RunFinished",
    "RunStarted",
    "ScriptEditorProvider",
    "Session",
    "Started",
    "StateMetadata",
    "Text",
    "Tool",
    "ToolChanged",
    "ToolContext",
    "ToolError",
    "ToolQuestion",
    "ToolRegistry",
    "ToolRequest",
    "ToolResult",
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
    "tool_request_grammar",
    "tool_request_schema",
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
