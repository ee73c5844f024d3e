"""What a model's reply may be, for servers that hold a model to a form: plain words, or one request that is valid.

A grammar (GBNF, as llama.cpp and its relatives read it) leaves plain text open: a reply that does not begin like a
request and does not name the protocol's own key. So whatever it admits is a request or text, and never nearly a
request. A JSON Schema cannot leave text open; it says what the request itself may be, and that a text is a string.

The schemas of arguments become rules of the grammar. What they admit is JSON of the right type. Enums, constants,
required and optional keys, items, lengths, small ranges and plain patterns are followed exactly; whatever else a schema
says is left to the check that every argument goes through anyway, so the rules are never narrower than the schema but
in two things: keys come in the order in which they were declared, and there is little white space.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.runs import signatures
from lastword.script import script_grammar

if TYPE_CHECKING:
    from lastword.session import Session
    from lastword.talk.replies import Protocol
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
    offered = signatures(session.registry, session.preset, with_editor=session.editor is not None)
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


# Each is an alternative of its own. A longer range is checked afterwards.
MAX_ENUMERATED = 256
# A schema that goes deeper, perhaps into itself, is any JSON from there on.
MAX_DEPTH = 12

JSON_RULES = r"""
json-any ::= json-object | json-array | json-string | json-number | "true" | "false" | "null"
json-object ::= "{" ws (json-string ws ":" ws json-any (ws "," ws json-string ws ":" ws json-any)*)? ws "}"
json-array ::= "[" ws (json-any (ws "," ws json-any)*)? ws "]"
json-string ::= "\"" json-char* "\""
json-char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" json-unicode)
json-unicode ::= [0-9a-cA-CefEF] json-hex json-hex json-hex | [dD] [0-7] json-hex json-hex
json-hex ::= [0-9a-fA-F]
json-integer ::= "-"? json-natural
json-natural ::= "0" | [1-9] [0-9]{0,14}
json-number ::= json-integer ("." [0-9]{1,15})?
json-positive ::= json-natural ("." [0-9]{1,15})?
ws ::= ([ ] | "\n" [ ]{0,20})?
""".strip()
"""The rules that those of a schema stand on. Half of a pair of surrogates is no text, so none is admitted."""

_PLAIN: Mapping[str, str] = {
    "string": "json-string",
    "number": "json-number",
    "boolean": '("true" | "false")',
    "null": '"null"',
    "array": "json-array",
    "object": "json-object",
}


class SchemaGrammar:
    """Writes expressions for schemas, with shared definitions looked up where they are used."""

    def __init__(self, definitions: Mapping[str, Any] | None = None) -> None:
        self._definitions = definitions or {}

    def value(self, schema: Any, depth: int = 0) -> str:
        """An expression that admits the values of a schema."""
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return "json-any"
        if "const" in schema:
            return _literal(schema["const"])
        if choices := schema.get("enum"):
            return _either([_literal(choice) for choice in choices])
        if isinstance(ref := schema.get("$ref"), str):
            return self.value(self._definitions.get(ref.rpartition("/")[2]), depth + 1)
        if kinds := schema.get("anyOf") or schema.get("oneOf"):
            return _either([self.value(kind, depth + 1) for kind in kinds])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _either([self.value({**schema, "type": one}, depth + 1) for one in kind])
        if kind == "integer":
            return _integer(schema)
        if kind == "number":
            return _number(schema)
        if kind == "string":
            return _string(schema)
        if kind == "array" and "items" in schema:
            return self._array(schema, depth)
        if kind == "object" and schema.get("properties"):
            return self.object(schema, depth)
        return _PLAIN.get(kind, "json-any") if isinstance(kind, str) else "json-any"

    def object(self, schema: Mapping[str, Any], depth: int = 0) -> str:
        """An object with its keys in order: what is required is there, what is optional may be."""
        properties: Mapping[str, Any] = schema.get("properties", {})
        required = schema.get("required", ())
        extra = 'json-string ws ":" ws json-any'
        more = schema.get("additionalProperties", True) is not False
        # What may follow, with and without a key before it; built from the last key to the first.
        first = f'({extra} (ws "," ws {extra})*)?' if more else ""
        rest = f'(ws "," ws {extra})*' if more else ""
        for name in reversed(list(properties)):
            entry = f'{_literal(name)} ws ":" ws {self.value(properties[name], depth + 1)}'
            after = f" {rest}" if rest else ""
            if name in required:
                first, rest = f"{entry}{after}", f'ws "," ws {entry}{after}'
            else:
                first = f"({entry}{after} | {first})" if first else f"({entry}{after})?"
                rest = f'(ws "," ws {entry})?{after}'
        return f'"{{" ws {first} ws "}}"' if first else '"{" ws "}"'

    def _array(self, schema: Mapping[str, Any], depth: int) -> str:
        item = f"({self.value(schema['items'], depth + 1)})"
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        others = f'(ws "," ws {item})'
        inside = f"{item} {_times(others, max(least - 1, 0), None if most is None else most - 1)}"
        return f'"[" ws {inside if least else f"({inside})?"} ws "]"' if most != 0 else '"[" ws "]"'


def _number(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if type(least) is int and type(most) is int and least >= 0 and 0 < most - least < MAX_ENUMERATED:
        below = _either([f'"{number}"' for number in range(least, most)])
        return f'({below} ("." [0-9]{{1,15}})? | "{most}")'
    return "json-positive" if least is not None and least >= 0 else "json-number"


def _integer(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if type(least) is int and type(most) is int and 0 <= most - least < MAX_ENUMERATED:
        return _either([f'"{number}"' for number in range(least, most + 1)])
    return "json-natural" if least is not None and least >= 0 else "json-integer"


def _string(schema: Mapping[str, Any]) -> str:
    if isinstance(pattern := schema.get("pattern"), str) and (plain := plain_pattern(pattern)) is not None:
        return f'"\\"" {plain} "\\""'
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if least or most is not None:
        return f'"\\"" {_times("json-char", least, most)} "\\""'
    return "json-string"


_CLASS = re.compile(r"\[((?:[A-Za-z0-9 _.,:;@/+=#-]|\\[dw.-])+)\]")
_ATOM = re.compile(r"\\d|\\w|\\[.\-/+]|[A-Za-z0-9 _,:;@/=#-]")
_TIMES = re.compile(r"[*+?]|\{\d{1,3}(?:,\d{0,3})?\}")


def plain_pattern(pattern: str) -> str | None:
    """A pattern as an expression; None for one that is not anchored on both sides, or is not plain."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    rest, parts = pattern[1:-1], []
    while rest:
        if found := _CLASS.match(rest):
            parts.append("[" + found[1].replace("\\d", "0-9").replace("\\w", "A-Za-z0-9_").replace("\\.", ".") + "]")
        elif found := _ATOM.match(rest):
            parts.append({"\\d": "[0-9]", "\\w": "[A-Za-z0-9_]"}.get(found[0]) or f'"{found[0][-1]}"')
        else:
            return None
        rest = rest[found.end() :]
        if times := _TIMES.match(rest):
            parts[-1] = _repeated(parts[-1], times[0])
            rest = rest[times.end() :]
    return " ".join(parts) or None


def _repeated(part: str, times: str) -> str:
    """A part as often as a pattern says."""
    if times in ("*", "?"):
        return part + times
    if times == "+":
        return _times(part, 1, None)
    least, comma, most = times[1:-1].partition(",")
    return _times(part, int(least), int(most) if most else None if comma else int(least))


def _times(part: str, least: int, most: int | None) -> str:
    """A part so many times. Not every reader of such grammars knows a repetition that is open at its end."""
    if most is not None:
        return f"{part}{{{least},{most}}}"
    return f"{part}{{{least},{least}}} {part}*" if least else f"{part}*"


def _either(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"({' | '.join(choices)})"


def _literal(value: Any) -> str:
    """A JSON value as the characters that spell it."""
    written = values.canonical(value).decode()
    return json.dumps(written, ensure_ascii=False)
