"""What each agent says to its hook, and what it wants to hear. Pure: bytes and values in, values and text out.

What is not understood is refused. An agent takes text that is no answer, and every exit code but 2, as no objection.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from lastword import values
from lastword.errors import LastWordError, NotJSON
from lastword.hook.agents import Agent

# A tool's input is what a model wrote in one turn. What is larger would be read by nobody.
MAX_INPUT_BYTES = 16_000_000
MAX_NAME = 200
# As long as Linux takes a path.
MAX_FOLDER = 4_096
MAX_ID = 500


class ContractError(LastWordError):
    """What came on standard input is not what this agent's hook is told."""


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """One event of an agent, about one call of a tool."""

    agent: Agent
    event: str
    session: str
    tool: str
    arguments: dict[str, Any]
    cwd: str = ""
    tool_use: str | None = None
    """What the agent calls this call; None where it gives it no name."""
    is_its_own: bool = True
    """Whether the event looks as if this agent sent it, and no other program that goes by its settings."""
    is_foreign: bool = False
    """Whether the agent says that the tool is a server's, whatever its name. A server may take any that is free."""
    response: Any = None
    """Afterwards: what the tool gave."""
    error: str | None = None

    @property
    def is_before(self) -> bool:
        return self.event in (self.agent.before, self.agent.permission)

    @property
    def own_tool(self) -> str:
        """The tool, if it may be one of the agent's own; empty for a server's, which is in no list of them."""
        return "" if self.is_foreign else self.tool


class Allowed(msgspec.Struct, frozen=True):
    """It may, with these arguments."""

    arguments: dict[str, Any]
    not_asked: str = ""
    """Why nobody was asked, where a rule or a grant stood for the person."""


class Refused(msgspec.Struct, frozen=True):
    """It may not, and why, for the model and for whoever reads along."""

    why: str


NO_OBJECTION = None
"""Nothing to say: the agent's own rules decide."""

Verdict = Allowed | Refused | None


def read_input(agent: Agent, data: bytes) -> HookInput:
    """What the agent says. Raises ContractError when it is not that."""
    if len(data) > MAX_INPUT_BYTES:
        raise ContractError(f"more than {MAX_INPUT_BYTES:,} bytes came on standard input, and nobody would read that")
    try:
        given = values.parse(data)
    except NotJSON as problem:
        raise ContractError(f"what came on standard input is not JSON: {problem.fact}") from None
    if not isinstance(given, dict):
        raise ContractError("what came on standard input is no JSON object")
    event = _text(given, "hook_event_name", MAX_NAME)
    if event not in (agent.before, agent.permission, *agent.after):
        known = ", ".join(name for name in (agent.before, agent.permission, *agent.after) if name)
        raise ContractError(f"this hook answers {known} of {agent.name}, and not {event[:60]!r}")
    arguments = given.get("tool_input")
    if not isinstance(arguments, dict):
        raise ContractError("tool_input is missing, or no object")
    tool_use = given.get("tool_use_id")
    if tool_use is not None and (not isinstance(tool_use, str) or not 0 < len(tool_use) <= MAX_ID):
        raise ContractError("tool_use_id is no text of bearable length")
    error, cwd = given.get("error"), given.get("cwd")
    if isinstance(cwd, str) and ("\0" in cwd or len(cwd) > MAX_FOLDER):
        raise ContractError("cwd names no folder")
    return HookInput(
        agent=agent,
        event=event,
        session=_text(given, "session_id", MAX_ID),
        tool=_text(given, "tool_name", MAX_NAME),
        arguments=arguments,
        cwd=cwd if isinstance(cwd, str) else "",
        tool_use=tool_use,
        is_its_own=agent.tells <= given.keys() and agent.others_tell.isdisjoint(given),
        is_foreign=given.get("mcp_context") is not None,
        response=given.get("tool_response"),
        error=error if isinstance(error, str) else None,
    )


def _text(given: dict[str, Any], name: str, longest: int) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value or len(value) > longest:
        raise ContractError(f"{name} is missing, or no text of at most {longest} characters")
    return value


def answer(said: HookInput, verdict: Verdict) -> str:
    """What to print for the agent; empty where silence is the answer."""
    if verdict is NO_OBJECTION or not said.is_before:
        return ""
    if isinstance(verdict, Allowed) and (problem := _cannot_be_told(said, verdict)):
        verdict = Refused(problem)
    if said.agent.key == "gemini":
        return _print(_for_gemini(said, verdict))
    if said.event == said.agent.permission:
        return _print({"hookSpecificOutput": {"hookEventName": said.event, "decision": _decision(said, verdict)}})
    if isinstance(verdict, Refused):
        decided: dict[str, Any] = {"permissionDecision": "deny", "permissionDecisionReason": _reason(verdict)}
    elif _is_changed(said, verdict):
        decided = {"permissionDecision": "allow", "updatedInput": verdict.arguments}
    elif said.agent.key == "codex":
        return ""  # It takes a yes that changes nothing for a mistake; silence lets the call go on.
    else:
        decided = {"permissionDecision": "allow"} | _said_why("permissionDecisionReason", verdict)
    return _print({"hookSpecificOutput": {"hookEventName": said.event, **decided}})


def _for_gemini(said: HookInput, verdict: Allowed | Refused) -> dict[str, Any]:
    if isinstance(verdict, Refused):
        return {"decision": "deny", "reason": _reason(verdict)}
    if _is_changed(said, verdict):
        changed = {"hookEventName": said.event, "tool_input": verdict.arguments}
        return {"decision": "allow", "hookSpecificOutput": changed}
    return {"decision": "allow"} | _said_why("systemMessage", verdict)


def _decision(said: HookInput, verdict: Allowed | Refused) -> dict[str, Any]:
    if isinstance(verdict, Refused):
        return {"behavior": "deny", "message": _reason(verdict)}
    return {"behavior": "allow"} | ({"updatedInput": verdict.arguments} if _is_changed(said, verdict) else {})


def _cannot_be_told(said: HookInput, verdict: Allowed) -> str | None:
    """Why this agent cannot be told of a yes to other arguments than it asked about, where that is so."""
    if not _is_changed(said, verdict):
        return None
    name = said.agent.name
    if said.agent.key == "codex" and said.event == said.agent.permission:
        return f"The person changed the arguments, and {name} does not take changed ones here. Nothing was allowed."
    if not said.agent.can_drop and (gone := sorted(said.arguments.keys() - verdict.arguments.keys())):
        return f"The person took {', '.join(gone)} out, and {name} would put it back. Nothing was allowed."
    return None


def _is_changed(said: HookInput, verdict: Allowed) -> bool:
    return not values.equal(said.arguments, verdict.arguments)


def _reason(verdict: Refused) -> str:
    # A no without a reason is no no for some of them.
    return verdict.why.strip() or "It was denied."


def _said_why(field: str, verdict: Allowed) -> dict[str, str]:
    """For whoever watches the agent: that nobody was asked, and by whose word. A person who was asked knows."""
    return {field: f"Not asked: {verdict.not_asked}."} if verdict.not_asked else {}


def _print(told: dict[str, Any]) -> str:
    return json.dumps(told)
