"""lastword gives an AI assistant real tools and leaves the last word with a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.author import AssistantTool
    from lastword.call import Limits, Undone, wait_for_answer
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
else:  # Loaded on first use, so that `import lastword` costs nothing that a program does not need.
    __getattr__ = open_door(__name__)

__version__ = "0.4.0.dev0"

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


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
