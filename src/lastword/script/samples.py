"""What can be said of an argument beyond its type, and a script made of the tools at hand, to be copied.

Schemas come from the authors of tools. Whatever is taken from one is written as JSON, on one line, and short.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lastword.script.format import format_script
from lastword.script.printer import is_plain_key
from lastword.script.signatures import Signature, SignatureParameter, Signatures

# So many values of an enum are shown, and so much of each: enough to choose from.
MAX_CHOICES = 8
MAX_SHOWN = 60
# A tool with more arguments makes no good example.
MAX_ARGUMENTS = 5


def limits_of(parameter: SignatureParameter) -> str:
    """A type with its choices, its range and its default: `"w" | "a" = "w"`, `number 1..30`."""
    schema = parameter.schema or {}
    choices = schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    if isinstance(choices, list) and choices:
        more = " | …" if len(choices) > MAX_CHOICES else ""
        text = " | ".join(map(_written, choices[:MAX_CHOICES])) + more
    else:
        text = f"{parameter.type}{_range(schema)}"
    if "default" in schema:
        text += f" = {_written(schema['default'])}"
    return text


def _range(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    words = []
    if _is_number(low) and _is_number(high):
        words.append(f"{_written(low)}..{_written(high)}")
    elif _is_number(low):
        words.append(f">= {_written(low)}")
    elif _is_number(high):
        words.append(f"<= {_written(high)}")
    if _is_number(above):
        words.append(f"> {_written(above)}")
    if _is_number(below):
        words.append(f"< {_written(below)}")
    most = schema.get("maxLength")
    if _is_number(most):
        words.append(f"of at most {_written(most)} characters")
    return f" {' '.join(words)}" if words else ""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _written(value: Any) -> str:
    """A value of a schema on one line, and not longer than a glance."""
    text = json.dumps(value, ensure_ascii=False)
    # What JSON leaves as it is may still end a line.
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def example(signatures: Signatures) -> str:
    """A script that uses one tool that asks nobody and one that asks, as far as there are such; "" without either."""
    usable = [one for one in signatures.values() if len([p for p in one.parameters if p.required]) <= MAX_ARGUMENTS]
    # One with arguments shows more.
    usable.sort(key=lambda one: not any(p.required for p in one.parameters))
    free = next((one for one in usable if not one.needs_person and not one.reports), None)
    asks = next((one for one in usable if one.needs_person), None)
    lines: list[str] = []
    if free is not None:
        lines += [f"LET found = {_call(free)}", 'PRINT(FORMAT("found: {found}", {found: found}))']
    if asks is not None:
        lines += [
            f"LET done = {'' if asks.reports else 'TRY '}{_call(asks)}",
            'IF done.success THEN PRINT("done")',
            "ELSE STOP done.message END",
        ]
    if not lines and usable:
        lines = [f"LET done = TRY {_call(usable[0])}", "PRINT(done.message)"]
    return format_script("\n".join(lines))


def example_calls(signatures: Signatures) -> list[tuple[str, str]]:
    """One of the tools and a CALL of it, with arguments, and as few of them invented as possible; and the same of the
    best that is unlike it, since one asks a person first and the other does not, as far as there are such.
    """

    def worth(one: Signature) -> tuple[bool, bool, int]:
        given = [p for p in one.parameters if p.required]
        invented = [p for p in given if p.type != "boolean" and not _TOLD & set(p.schema or ())]
        return len(given) > MAX_ARGUMENTS, not given, len(invented)

    first = min(signatures.values(), key=worth)
    unlike = [one for one in signatures.values() if one.needs_person is not first.needs_person]
    chosen = [first, *([min(unlike, key=worth)] if unlike else [])]
    return [(one.name, format_script(_call(one)).rstrip("\n")) for one in chosen]


# Where a schema says what a value may be.
_TOLD = {"examples", "enum", "const", "default", "minimum"}


def _call(signature: Signature) -> str:
    given = [f"{p.name}: {_sample(p)}" for p in signature.parameters if p.required]
    return f"CALL {signature.name} {{ {', '.join(given)} }}" if given else f"CALL {signature.name} {{}}"


def _sample(parameter: SignatureParameter) -> str:
    """A value that the argument could have."""
    schema = parameter.schema or {}
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key] and (text := _literal(schema[key][0])):
            return text
    for key in ("const", "default"):
        if key in schema and (text := _literal(schema[key])):
            return text
    least = schema.get("minimum")
    kinds = {
        "string": json.dumps(parameter.name.replace("_", " ")),
        "number": _literal(least) or "1",
        "integer": _literal(least) or "1",
        "boolean": "true",
        "null": "null",
        "array": "[]",
        "object": "{}",
    }
    return kinds.get(parameter.type, kinds["string"])


def _literal(value: Any) -> str:
    """A value as a script writes it, where that is short and plain; "" elsewhere."""
    if type(value) is str:
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= MAX_SHOWN and value.isprintable() else ""
    if type(value) is int:
        return str(value) if abs(value) < 10**9 else ""
    if type(value) is float:
        text = repr(value)
        return text if "e" not in text and "n" not in text else ""
    if value is None or type(value) is bool:
        return json.dumps(value)
    if type(value) is list and len(value) <= 3:
        items = [_literal(item) for item in value]
        return f"[{', '.join(items)}]" if all(items) else ""
    if type(value) is dict and len(value) <= 3 and all(is_plain_key(key) for key in value):
        items = [f"{key}: {text}" for key, item in value.items() if (text := _literal(item))]
        return f"{{{', '.join(items)}}}" if len(items) == len(value) else ""
    return ""
