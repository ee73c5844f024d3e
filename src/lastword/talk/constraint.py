"""What a model's reply may be, for servers that hold a model to a form: plain words, or one request that is valid.

A grammar (GBNF, as llama.cpp and its relatives read it) leaves plain text open: a reply that does not begin like a
request and does not name the protocol's own key. So whatever it admits is a request or text, and never nearly a
request. A JSON Schema cannot leave text open; it says what the request itself may be, and that a text is a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lastword.consent import Preset
from lastword.runs import signatures
from lastword.script import script_grammar
from lastword.session import Session
from lastword.talk.replies import Protocol
from lastword.talk.schema_grammar import JSON_RULES, SchemaGrammar
from lastword.tools import Tool, ToolRegistry

KEY = "tool_request"

# A small model that may write blanks and empty lines without end does. Around a request there is little to be said with
# them; in a text they indent, and keep columns apart.
_BLANK = " \\t\\r\\n"
_AROUND = f"[{_BLANK}]{{0,4}}"
_MAX_PAUSE = 40


def tool_request_grammar(registry: ToolRegistry) -> str:
    """A GBNF grammar that admits a text, or one request for a registered tool with arguments that fit it."""
    return _request_grammar(registry.all())


def tool_request_schema(registry: ToolRegistry) -> dict[str, Any]:
    """A JSON Schema that admits a text as a string, or one request for a registered tool with arguments that fit it."""
    return _request_schema(registry.all())


def constraint(session: Session, protocol: Protocol) -> dict[str, Any] | None:
    """What a satellite sends for the server to hold the model to; None where there is nothing to be held to."""
    tools = session.registry.all(with_editor=session.editor is not None)
    if not tools or protocol == "native":
        return None
    if protocol == "script":
        return {"grammar": _script_grammar(session)}
    return {"grammar": _request_grammar(tools), "schema": _request_schema(tools)}


def _request_grammar(tools: Iterable[Tool]) -> str:
    tools = list(tools)
    rules = [
        f"root ::= {_AROUND} ({'request | ' if tools else ''}text)",
        *_text_rules(),
    ]
    if tools:
        head, name = _quoted(f'"{KEY}"'), _quoted('"name"')
        rules += [
            f'request ::= "{{" ws {head} ws ":" ws "{{" ws {name} ws ":" ws call ws "}}" ws "}}" {_AROUND}',
            f"call ::= {' | '.join(f'tool-{_letters(number)}' for number in range(len(tools)))}",
        ]
    for number, tool in enumerate(tools):
        schema = tool.manifest.arguments_schema()
        body = SchemaGrammar(schema.get("$defs")).object(schema)
        named, given = _quoted(json.dumps(tool.name)), _quoted('"arguments"')
        rules.append(f'tool-{_letters(number)} ::= {named} ws "," ws {given} ws ":" ws {body}')
    return "\n".join([*rules, "", JSON_RULES]) + "\n"


def _request_schema(tools: Iterable[Tool]) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    requests = []
    for tool in tools:
        arguments = _renamed(tool.manifest.arguments_schema(), tool.name, definitions)
        requests.append(
            {
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": arguments},
                "required": ["name", *(["arguments"] if arguments["required"] else [])],
                "additionalProperties": False,
            }
        )
    text = {"type": "string", "description": "An answer in plain words."}
    schema: dict[str, Any] = text
    if requests:
        request = {
            "type": "object",
            "properties": {KEY: {"anyOf": requests}},
            "required": [KEY],
            "additionalProperties": False,
        }
        schema = {"anyOf": [text, request]}
    return {**schema, "$defs": definitions} if definitions else schema


def _renamed(schema: dict[str, Any], tool: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema with its shared shapes moved out, under names that no other tool has."""
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{tool}.{name}"] = _point(definition, tool)
    return dict(_point(schema, tool))


def _point(schema: Any, tool: str) -> Any:
    if isinstance(schema, list):
        return [_point(item, tool) for item in schema]
    if not isinstance(schema, dict):
        return schema
    start = "#/$defs/"
    return {
        key: f"{start}{tool}.{value[len(start) :]}"
        if key == "$ref" and isinstance(value, str) and value.startswith(start)
        else _point(value, tool)
        for key, value in schema.items()
    }


def _script_grammar(session: Session) -> str:
    """A text or a script. What begins with two capitals, a comment or a fence is no text: a script begins like that.

    And a script begins with what can lead to a call. A small model that may begin with any statement takes SET for a
    switch and GET for a question: the first has no variable yet to change, and the second no value to look into.
    """
    offered = signatures(session.registry, session.preset or Preset(), with_editor=session.editor is not None)
    _, rest = script_grammar(offered).split("\n", 1)
    script = "script ::= notes first (gap statement)* gap?\nfirst ::= call | let | if | for"
    return "\n".join([f"root ::= {_AROUND} (script | text)", *_text_rules(scripts=True), script, rest])


def _text_rules(*, scripts: bool = False) -> list[str]:
    """Text that begins with no brace and no fence and never spells the protocol's key: a rule for each state.

    A grammar cannot say "but not". Each state is the part of the key that was just read; a letter either goes on with
    it, begins it again, or leaves it. White space leaves it as well, and something has to follow.
    """
    rules = []
    if scripts:
        # Nor does a text begin with "Let": that is a LET in small letters, or "Let me see" from a model that then does
        # nothing.
        rules += [
            'text ::= "t" key-t | [A-KM-Z] ([^A-Zt] key-z | "t" key-t)? | [^{A-Zlt/` \\t\\r\\n] key-z | text-l',
            'text-l ::= "L" ([^A-Zet] key-z | "t" key-t | text-le)? | "l" ([^et] key-z | "t" key-t | text-le)?',
            'text-le ::= "e" ([^t] key-z)?',
        ]
    else:
        rules.append('text ::= "t" key-t | [^{t` \\t\\r\\n] key-z')
    names = ["key-z", *(f"key-{KEY[: n + 1].replace('_', '-')}" for n in range(len(KEY) - 1))]
    for state, name in enumerate(names):
        expected = KEY[state]
        # Only the first letter can begin the key anew.
        choices = [] if state == len(names) - 1 else [f'"{expected}" {names[state + 1]}']
        if expected != KEY[0]:
            choices.append(f'"{KEY[0]}" {names[1]}')
        others = "".join(dict.fromkeys((expected, KEY[0])))
        rules.append(f"{name} ::= ({' | '.join([*choices, f'[^{others}{_BLANK}] key-z', 'pause'])})?")
    rules.append(f'pause ::= [{_BLANK}]{{1,{_MAX_PAUSE}}} ("{KEY[0]}" {names[1]} | [^{KEY[0]}{_BLANK}] key-z)?')
    return rules


def _letters(number: int) -> str:
    """A number in letters: not every reader of such grammars takes digits in the names of rules."""
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = chr(ord("a") + digit) + text
        if number == 0:
            return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
