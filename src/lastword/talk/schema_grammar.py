"""JSON Schema as rules of a GBNF grammar: the shape of a value, as a model is made to write it.

What the rules admit is JSON of the right type. Enums, constants, required and optional keys, items, lengths, small
ranges and plain patterns are followed exactly; whatever else a schema says is left to the check that every
argument goes through anyway, so the rules are never narrower than the schema but in two things: keys come in the order
in which they were declared, and there is little white space.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lastword import values

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
