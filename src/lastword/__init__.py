"""lastword gives an AI assistant real tools and leaves the last word with a person."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastword.author.authoring import AssistantTool
    from lastword.call.changes import Undone
    from lastword.call.desk import wait_for_answer
    from lastword.call.events import (
        Answered,
        Asked,
        DeniedByRule,
        Finished,
        Printed,
        QuestionAnswered,
        QuestionAsked,
        Reported,
        RunFinished,
        RunStarted,
        Started,
    )
    from lastword.call.setting import Limits
    from lastword.consent.answerer import Answerer
    from lastword.consent.approval import ApprovalRequest, Approver, Preset, UserAction
    from lastword.consent.kept import Kept
    from lastword.consent.outcome import Outcome
    from lastword.editor import Preview, ScriptEditorProvider
    from lastword.editor.project import ProjectEditor
    from lastword.editor.tools import editor_tools
    from lastword.errors import Detached, LastWordError, OutcomeUnknown, ToolError
    from lastword.journal import Journal
    from lastword.journal.opening import open_journal
    from lastword.rules.policy import Policy
    from lastword.runs import Run, check, plan, script_grammar, script_prompt
    from lastword.session import Session
    from lastword.talk.constraint import tool_request_grammar, tool_request_schema
    from lastword.tools.content import Audio, File, Image, Text, ToolResult
    from lastword.tools.context import ToolContext
    from lastword.tools.manifest import Manifest, Parameter
    from lastword.tools.questions import Closed, Declined, Given, ToolQuestion
    from lastword.tools.registry import ToolChanged, ToolRegistry, tool
    from lastword.tools.state import StateMetadata
    from lastword.tools.tool import Tool
    from lastword.wire.protocol import NotARequest, ToolRequest, parse_tool_request

__version__ = "0.1.0"

# Loaded on first use, so that `import lastword` costs nothing that a program does not need.
_ROOMS = {
    "Answered": "call.events",
    "Answerer": "consent.answerer",
    "ApprovalRequest": "consent.approval",
    "Approver": "consent.approval",
    "Asked": "call.events",
    "AssistantTool": "author.authoring",
    "Audio": "tools.content",
    "Closed": "tools.questions",
    "Declined": "tools.questions",
    "DeniedByRule": "call.events",
    "Detached": "errors",
    "File": "tools.content",
    "Finished": "call.events",
    "Given": "tools.questions",
    "Image": "tools.content",
    "Journal": "journal",
    "Kept": "consent.kept",
    "LastWordError": "errors",
    "Limits": "call.setting",
    "Manifest": "tools.manifest",
    "NotARequest": "wire.protocol",
    "Outcome": "consent.outcome",
    "OutcomeUnknown": "errors",
    "Parameter": "tools.manifest",
    "Policy": "rules.policy",
    "Preset": "consent.approval",
    "Preview": "editor",
    "Printed": "call.events",
    "ProjectEditor": "editor.project",
    "QuestionAnswered": "call.events",
    "QuestionAsked": "call.events",
    "Reported": "call.events",
    "Run": "runs",
    "RunFinished": "call.events",
    "RunStarted": "call.events",
    "ScriptEditorProvider": "editor",
    "Session": "session",
    "Started": "call.events",
    "StateMetadata": "tools.state",
    "Text": "tools.content",
    "Tool": "tools.tool",
    "ToolChanged": "tools.registry",
    "ToolContext": "tools.context",
    "ToolError": "errors",
    "ToolQuestion": "tools.questions",
    "ToolRegistry": "tools.registry",
    "ToolRequest": "wire.protocol",
    "ToolResult": "tools.content",
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
    "tool_request_grammar": "talk.constraint",
    "tool_request_schema": "talk.constraint",
    "wait_for_answer": "call.desk",
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
