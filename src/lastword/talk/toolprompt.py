"""What a model is told of the tools and the state, in the three protocols.

The same tools and state always give the same text. With so many tools that the text would pass its budget, it says less
of each before it leaves any out, and says how many it left out. For native calling the tools travel beside
the messages, and the text holds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lastword.runs import signatures
from lastword.script import script_prompt
from lastword.script.prompt import CHARACTERS_PER_TOKEN, MAX_STATE, TOKEN_BUDGET
from lastword.session import Session
from lastword.talk.replies import Protocol
from lastword.tools.tool import Tool

# Of a tool's or an argument's description. A model that needs more than this to choose a tool has too similar tools.
MAX_DESCRIPTION = 200

NO_STATE = "No state information available."

_CHAT = """\
You talk with a person. When no tool is needed, or when you have what you need, answer them in plain words."""

_JSON = """\
To call a tool, answer with this JSON object alone: no words around it, no markdown fence, one call at a time.
{"tool_request": {"name": "TOOL", "arguments": {"NAME": VALUE}}}
The result comes back in the next message, as {"success": …, "message": …}. A person may deny a call, or change its
arguments first; the result says so. Do not repeat a denied call."""

_SCRIPT = """\
To use tools, answer with a script as described below. Its result comes back in the next message, with what it printed
and what became of each call. A person may deny a call, or change its arguments first; the result says so."""

_NATIVE = """\
The result of a tool call is {"success": …, "message": …}. A person may deny a call, or change its arguments first; the
result says so. Do not repeat a denied call."""


def tool_prompt(session: Session, protocol: Protocol, persona: str | None = None) -> str:
    """The satellite's own prompt: who it is, how tools are called, which there are, what is known."""
    tools = session.registry.all(with_editor=session.editor is not None)
    known = session.format_state_for_prompt()
    state = None if known == NO_STATE else known
    head = [persona.strip(), _CHAT] if persona else [_CHAT]
    if not tools:
        return "\n\n".join([*head, "There are no tools.", *_state(state)]) + "\n"
    if protocol == "script":
        offered = signatures(session.registry, session.preset, with_editor=session.editor is not None)
        return "\n\n".join([*head, _SCRIPT, script_prompt(offered, state)])
    if protocol == "native":
        return "\n\n".join([*head, _NATIVE, *_state(state)]) + "\n"
    room = TOKEN_BUDGET * CHARACTERS_PER_TOKEN - sum(map(len, [*head, _JSON, *_state(state)]))
    return "\n\n".join([*head, _JSON, _listed(tools, room), *_state(state)]) + "\n"


def native_tools(session: Session) -> list[dict[str, Any]]:
    """The tools as OpenAI's `tools`."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": _described(tool, MAX_DESCRIPTION),
                "parameters": _schema(tool),
            },
        }
        for tool in session.registry.all(with_editor=session.editor is not None)
    ]


def _schema(tool: Tool) -> dict[str, Any]:
    schema = tool.manifest.arguments_schema()
    for parameter in tool.manifest.parameters:
        if parameter.description:
            schema["properties"][parameter.name].setdefault("description", _one_line(parameter.description))
    return schema


def _listed(tools: Iterable[Tool], room: int) -> str:
    tools = list(tools)
    for detail in (2, 1, 0):
        lines = [line for tool in tools for line in _tool(tool, detail)]
        if sum(map(len, lines)) + len(lines) <= room:
            return "\n".join(["Tools:", *lines])
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(["Tools:", *kept, f"and {len(lines) - len(kept)} more that this text has no room for"])


def _tool(tool: Tool, detail: int) -> list[str]:
    """A tool in one line, with a line for each argument that has something to say."""
    manifest = tool.manifest
    arguments = [f"{p.name}{'' if p.required else '?'}: {p.type}" for p in manifest.parameters]
    arguments += ["…"] * manifest.additional_parameters
    head = f"{tool.name} {{{', '.join(arguments)}}}"
    if detail == 0:
        return [head]
    head += f": {_described(tool, MAX_DESCRIPTION)}"
    if detail == 1:
        return [head]
    return [head, *(f"  {p.name}: {_one_line(p.description)}" for p in manifest.parameters if p.description)]


def _described(tool: Tool, limit: int) -> str:
    asked = " (a person is asked first)" if tool.manifest.require_approval else ""
    return f"{_one_line(tool.manifest.description, limit)}{asked}"


def _state(state: str | None) -> list[str]:
    return [f"State:\n{_cut(state, MAX_STATE)}"] if state else []


def _one_line(text: str, limit: int = MAX_DESCRIPTION) -> str:
    return _cut(" ".join(text.split()), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"
