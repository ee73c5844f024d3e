"""What each agent says to its hook, what of it acts, and what the agent wants to hear.

What is not understood is refused. An agent takes text that is no answer, and every exit code but 2, as no objection.

What acts are the arguments that rules look at and a person agrees to, and the folder among them. The folder is none of
the agent's arguments, and decides what a command does as much as they do: `git status` runs what the configuration of
that folder names. So it is shown and bounded like one, under the name `cwd`, with links followed, and taken out again
before the agent is answered. A remark says what a command is for, in other words each time, and nothing acts on it: it
is shown as the agent's words, and is no part of the call.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import rules, values
from lastword.errors import LastWordError, NotJSON

if TYPE_CHECKING:
    from lastword.hook.agents import Agent
    from lastword.tools import ToolKey  # A call that only looks needs no tools, and an agent waits.

FOLDER = "cwd"
# What agents call the file that a tool of theirs changes.
_FILES = ("file_path", "notebook_path")

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
    def is_probe(self) -> bool:
        """Whether the doctor asks, who wants to hear a no."""
        return self.tool == self.agent.PROBE

    @property
    def own_tool(self) -> str:
        """The tool, if it may be one of the agent's own; empty for a server's, which is in no list of them."""
        return "" if self.is_foreign else self.tool

    @property
    def _is_shell(self) -> bool:
        return self.own_tool in self.agent.shells

    @property
    def folder(self) -> Path | None:
        """The folder that the call would be carried out in, links followed; None when it is not said."""
        if not os.path.isabs(self.cwd) or "\0" in self.cwd:
            return None
        named = self.agent.shell_folder
        other = self.arguments.get(named) if named and self._is_shell else None
        other = other if isinstance(other, str) and "\0" not in other else ""
        return Path(os.path.realpath(os.path.join(self.cwd, other)))

    @property
    def has_folder(self) -> bool:
        """Whether the folder is among what is shown and bounded: it is said, and no argument has that name."""
        return self.folder is not None and FOLDER not in self.arguments

    @property
    def _remark(self) -> str | None:
        """The argument that is a remark, where one is."""
        name = self.agent.remark if self._is_shell else None
        return name if name in self.arguments else None

    @property
    def remark(self) -> str:
        """What the agent says that a command is for; empty when it says nothing."""
        text = self.arguments[self._remark] if self._remark else None
        return text.strip() if isinstance(text, str) else ""

    @property
    def our_session(self) -> str:
        """The session of ours that the calls of the agent's session are remembered in."""
        return f"{self.agent.key}-{_digest(self.agent.key, self.session)}"

    def our_call(self) -> str:
        """The id of the call: the same for the same agent, session and tool use. One without a name gets a new one."""
        if self.tool_use is None:
            return f"{self.agent.key}-{values.new_id()}"
        what = "asked" if self.event == self.agent.permission else "called"
        return f"{self.agent.key}-{_digest(self.agent.key, self.session, self.tool_use, what)}"

    @property
    def origin(self) -> str:
        where = self.cwd or "a folder that it does not say"
        return f"{self.agent.name}, session {self.session[:8]}, in {where}"

    @property
    def result(self) -> str:
        """Afterwards: what came of it, as a text."""
        if self.error or self.response is None:
            return self.error or ""
        return self.response if isinstance(self.response, str) else values.written(self.response).decode()

    @property
    def went_well(self) -> bool:
        return self.event != "PostToolUseFailure" and self.error is None

    def is_of(self, allowed: dict[str, Any]) -> bool:
        """Whether its arguments are those that were allowed. The folder is not compared: a command may have left it."""
        return values.equal(self.as_given(allowed), self.arguments)

    def why_unclear(self) -> str | None:
        """Why nobody can say what a call means, or None: a tool that takes no folder was given one under our name, or
        a file is named in a way that leads the agent elsewhere than the card."""
        agent = self.agent
        if FOLDER in self.arguments and self.own_tool in agent.own_tools | agent.looks:
            return f"{self.tool} takes no argument {FOLDER}, so nobody knows what it would do. Leave it out."
        for path in (self.arguments.get(name) for name in _FILES if self.own_tool in agent.own_tools):
            if not isinstance(path, str):
                continue
            if path.startswith("~"):
                where = f"Whether {path[:200]} is in a home or in a folder called ~"
                return f"{where}, nobody knows here. Give the whole path."
            if "\0" not in path and rules.reads_two_ways(path, Path(self.cwd or "/")):
                where = f"Which file {path[:200]} is depends on who reads it"
                return f"{where}. Give the whole path, without .. behind a link."
        return None

    def acting(self) -> dict[str, Any]:
        """What a person is asked about, and what rules look at."""
        found = {name: value for name, value in self.arguments.items() if name != self._remark}
        return found | {FOLDER: str(self.folder)} if self.has_folder else found

    def as_given(self, allowed: dict[str, Any]) -> dict[str, Any]:
        """Arguments that were allowed, as the agent knows them: without the folder, and with its remark."""
        found = {self._remark: self.arguments[self._remark]} if self._remark else {}
        is_ours = FOLDER not in self.arguments and (self.has_folder or not self.is_before)
        return found | {name: value for name, value in allowed.items() if name != FOLDER or not is_ours}

    def key_for(self, turned: ToolKey) -> ToolKey:
        """The key of an agent's tool, for this very call: as the person turned it, or less.

        Nothing stands for them where it is not certain what would run, and where: a folder that is not said or not
        there (an agent whose folder is gone may go on in another), a file behind a link, a tool that may be any
        server's, a question that the agent's own rules ask, another program that starts this agent's hooks. A shell
        that is given more than we know of takes a yes to exact arguments at most.
        """
        agent = self.agent
        if self.event != agent.before or not self.is_its_own or not agent.says_folder or not self.has_folder:
            return False
        if self.own_tool not in agent.own_tools or not os.path.isdir(str(self.folder)):
            return False
        if not self._is_where_it_says():
            return False
        if self._is_shell and not self.arguments.keys() <= agent.shell_arguments:
            return turned and "exact"
        return turned

    def _is_where_it_says(self) -> bool:
        """Whether the file that would be changed is the one that is named. A link may lead to another one tomorrow."""
        named = {name: self.arguments[name] for name in _FILES if name in self.arguments}
        if self.own_tool in self.agent.files and "file_path" not in named:
            return False
        for path in named.values():
            if not isinstance(path, str) or not path or "\0" in path:
                return False
            whole = os.path.join(self.cwd, path)
            if os.path.realpath(whole) != os.path.abspath(whole):
                return False
        return True

    def places(self) -> rules.PolicyPlaces:
        """Where the policies lie that hold for it: of its folder, all above it, and where the agent was started. A
        command that names another folder to run in is in that one, too."""
        started = [Path(folder) for folder in rules.AgentSettings.projects_started_in()]
        named = () if (runs_in := self.folder) is None else (runs_in, *runs_in.parents)
        return rules.PolicyPlaces.around_folder(Path(self.cwd or "."), [*named, *started])

    def policy(self) -> rules.Policy | None:
        """The rules that hold. A ConfigError says what is wrong with a file: then nothing is allowed."""
        places = self.places()
        return None if places.are_empty() else rules.Policy.load(places)


def _digest(*parts: str) -> str:
    return sha256(values.canonical(list(parts))).hexdigest()[:20]


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
        return json.dumps(_for_gemini(said, verdict))
    if said.event == said.agent.permission:
        return json.dumps({"hookSpecificOutput": {"hookEventName": said.event, "decision": _decision(said, verdict)}})
    if isinstance(verdict, Refused):
        decided: dict[str, Any] = {"permissionDecision": "deny", "permissionDecisionReason": _reason(verdict)}
    elif _is_changed(said, verdict):
        decided = {"permissionDecision": "allow", "updatedInput": verdict.arguments}
    elif said.agent.key == "codex":
        return ""  # It takes a yes that changes nothing for a mistake; silence lets the call go on.
    else:
        decided = {"permissionDecision": "allow"} | _said_why("permissionDecisionReason", verdict)
    return json.dumps({"hookSpecificOutput": {"hookEventName": said.event, **decided}})


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
