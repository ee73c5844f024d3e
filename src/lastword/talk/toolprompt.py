"""What a model is told of the tools and the state, in the three protocols.

The same tools, state and day always give the same text. With so many tools that the text would pass its budget, it says
less of each before it leaves any out, and says how many it left out. For native calling the tools travel beside
the messages, and the text holds the rest.

Why the instructions for requests read as they do, as tried with a model of 1.5 billion parameters:

* They say what a reply is, and never what it is not. A small model repeats a sentence like "no words around it" as its
  reply, words and all.
* The form is shown once, by a request that a tool here would take. Placeholders in capitals come back as arguments.
* What a result looks like is not said. A small model that has seen the form of results makes them up.
* Who uses the tools is said first. A small model otherwise explains to the person how to use them.
* When *not* to ask for a tool is said as plainly as when to: who knows only one way to reply uses it for thanks.
* Days have their dates beside them. A small model cannot count from today to Friday.
* The example of a script is one CALL, and stands at the beginning and at the end. What begins with LET comes back as
  "Let", and who is shown how a result is looked at looks at results that are not there. Whatever else the language has
  stands between, as something for when that is not enough: as a list to choose from, its SET was taken for lights and
  its GET for weather.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.runs import signatures
from lastword.script import prompt

if TYPE_CHECKING:
    from lastword.session import Session
    from lastword.talk.replies import Protocol
    from lastword.tools import Manifest, Parameter, Tool

# Of a tool's or an argument's description. A model that needs more than this to choose a tool has too similar tools.
MAX_DESCRIPTION = 200
# Of the values that an argument may have. A longer list is for the tool's own refusal to tell.
MAX_CHOICES = 40

NO_STATE = "No state information available."

_CHAT = """\
You talk with a person. When no tool is needed, or when you have what you need, answer them in plain words."""

_JSON = """\
You help a person. You have tools, and the person has not: only you can use them. Each of your replies is one of two
things.

A request for a tool, whenever one of the tools below does or finds out what the person wants. The whole reply is then
a JSON object, like this one:
{example}
What the tool gives comes to you as the next message, and you go on from there. Where a person is asked first, that
person may deny the call or change its arguments; a denial is final.

Or plain words, when no tool does what is wanted, when a result is there to be told, and when you have to ask for an
argument that you were not told."""

_WORDS = """\
What no tool is for gets a reply in plain words. To "Hello!" it is: Hello! What can I do for you? To "What is 2 plus 2?"
it is: 2 plus 2 is 4."""

_SCRIPT = """\
You help a person. You have tools, and the person has not: only you can use them. Each of your replies is one of two
things.

A script, whenever one of the tools below does or finds out what the person wants. The whole reply is then the script,
like this one:
{example}
It is run at once. What its calls gave and what it printed comes to you as the next message, and you go on from there.

Or plain words, when no tool does what is wanted, when a result is there to be told, and when you have to ask for an
argument that you were not told.

Where one CALL after the other is not enough, a script can hold more:"""

_LINES = """\
What a tool is for gets a script, with a CALL on a line of its own for each thing to do. {examples}"""

_NATIVE = """\
The result of a tool call is {"success": …, "message": …}. A person may deny a call, or change its arguments first; the
result says so. Do not repeat a denied call."""


def tool_prompt(session: Session, protocol: Protocol, persona: str | None = None, now: datetime | None = None) -> str:
    """The satellite's own prompt: who it is, how tools are called, which there are, what is known, and the day."""
    tools = session.registry.all(with_editor=session.editor is not None)
    now = now or datetime.now().astimezone()
    known = session.format_state_for_prompt()
    state = None if known == NO_STATE else known
    who = [persona.strip()] if persona else []
    end = [*_state(state), calendar(now)]
    if not tools:
        return "\n\n".join([*who, _CHAT, "There are no tools.", *end]) + "\n"
    if protocol == "script":
        return "\n\n".join([*who, _script(session, state, now), _WORDS]) + "\n"
    if protocol == "native":
        return "\n\n".join([*who, _CHAT, _NATIVE, *end]) + "\n"
    form = _JSON.format(example=example_request(tools, now))
    # Last, where a small model remembers it best.
    end = [*end, _WORDS]
    room = prompt.TOKEN_BUDGET * prompt.CHARACTERS_PER_TOKEN - sum(map(len, [*who, form, *end]))
    return "\n\n".join([*who, form, _listed(tools, room), *end]) + "\n"


def calendar(now: datetime) -> str:
    """Today and the six days after it, with the time zone they are meant in. The hour would make every prompt new."""
    days = [now + timedelta(days=number) for number in range(7)]
    later = ", ".join(f"{day:%A} {day:%Y-%m-%d}" for day in days[2:])
    zone = now.tzname() or "local time"
    today, tomorrow = (f"{day:%A} {day:%Y-%m-%d}" for day in days[:2])
    return f"Today is {today} ({zone}). Tomorrow is {tomorrow}. Then: {later}."


def _script(session: Session, state: str | None, now: datetime) -> str:
    """The instructions for scripts. The form is shown first and last: between them is a language to get lost in."""
    offered = signatures(session.registry, session.preset, with_editor=session.editor is not None)
    calls = prompt.example_calls(offered)
    more = f"{_SCRIPT.format(example=calls[0][1])}\n{prompt.script_reference(offered, state)}"
    lines = "\n".join(f"With {tool} it is:\n{call}" for tool, call in calls)
    return "\n\n".join([more, calendar(now), _LINES.format(examples=lines)])


def example_request(tools: Iterable[Tool], now: datetime) -> str:
    """A request that one of the tools would take: with arguments, and as few of them invented as possible."""
    tools = list(tools)
    found = [(tool.name, example) for tool in tools if (example := _example(tool.manifest, now)) is not None]
    # A tool without arguments shows less of the form than any other; one that cannot be guessed shows nothing.
    name, (arguments, _) = (
        min(found, key=lambda entry: (not entry[1][0], entry[1][1])) if found else (tools[0].name, ({}, 0))
    )
    request = {"tool_request": {"name": name, "arguments": arguments}}
    return json.dumps(request, ensure_ascii=False)


def _example(manifest: Manifest, now: datetime) -> tuple[dict[str, Any], int] | None:
    """Arguments that fit, and how many of them nobody named; None where no guess fits."""
    arguments: dict[str, Any] = {}
    invented = 0
    for parameter in manifest.parameters:
        if not parameter.required:
            continue
        schema = parameter.schema or {}
        fits = parameter.validator()
        told = [*schema.get("enum", ()), *schema.get("examples", ())]
        told += [schema[key] for key in ("const", "default", "minimum", "maximum") if key in schema]
        told += [True] if parameter.type == "boolean" else []
        guesses = [1, f"{now:%Y-%m-%d}" if "pattern" in schema else "something", parameter.name, [], {}, None]
        chosen = next((guess for guess in [*told, *guesses] if fits.is_valid(guess)), _NONE)
        if chosen is _NONE:
            return None
        arguments[parameter.name] = chosen
        invented += chosen not in told
    return arguments, invented


_NONE = object()
"""No guess fits."""


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
    head = f"- {tool.name} with ({', '.join(arguments)})" if arguments and detail < 2 else f"- {tool.name}"
    if detail == 0:
        return [head]
    head += f": {_described(tool, MAX_DESCRIPTION)}"
    if detail == 1:
        return [head]
    if not manifest.parameters and not manifest.additional_parameters:
        return [head, "    no arguments"]
    more = ["    and others"] * manifest.additional_parameters
    return [head, *(f"    {argument_line(p)}" for p in manifest.parameters), *more]


def argument_line(parameter: Parameter) -> str:
    """An argument in one line: its type, whether it has to be there, and what else is known of it."""
    facts = argument_facts(parameter)
    kind = f"{parameter.name} ({parameter.type}, {'required' if parameter.required else 'optional'})"
    return f"{kind}: {facts}" if facts else kind


def argument_facts(parameter: Parameter) -> str:
    """What is known of an argument besides its type: what it means, what it may be, what it is when it is left out."""
    schema = parameter.schema or {}
    said = [_one_line(parameter.description)] if parameter.description else []
    if choices := schema.get("enum"):
        shown = ", ".join(values.canonical(choice).decode() for choice in choices[:MAX_CHOICES])
        said.append(f"One of {shown}{', …' if len(choices) > MAX_CHOICES else ''}.")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        said.append(f"{least} to {most}.")
    elif least is not None or most is not None:
        said.append(f"At least {least}." if most is None else f"At most {most}.")
    if "default" in schema:
        said.append(f"Without it: {values.canonical(schema['default']).decode()}.")
    return " ".join(said)


def _described(tool: Tool, limit: int) -> str:
    asked = " (a person is asked first)" if tool.manifest.require_approval else ""
    return f"{_one_line(tool.manifest.description, limit)}{asked}"


def _state(state: str | None) -> list[str]:
    return [f"State:\n{_cut(state, prompt.MAX_STATE)}"] if state else []


def _one_line(text: str, limit: int = MAX_DESCRIPTION) -> str:
    return _cut(" ".join(text.split()), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"
