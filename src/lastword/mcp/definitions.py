"""A tool as its server defines it: the bytes that trust is pinned to, and what becomes of them here.

The model and the person are given the pinned text alone. What cannot be seen in it is marked as on cards. The schema
stays as it is, but for the words in it that only describe.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from lastword import values
from lastword.display import visible
from lastword.errors import NotJSON, Problem
from lastword.mcp.launch import Launch
from lastword.mcp.names import tool_id
from lastword.tools import Manifest, ToolKey, manifest_from

# What one server may say of its tools. The largest in use have a tenth of it.
MAX_TOOLS = 500
MAX_DEFINITION_BYTES = 256 * 1024
MAX_TOOL_NAME = 256

# Of a JSON Schema: words that describe, and values that are data whatever they are called.
_WORDS = frozenset({"description", "title", "$comment"})
_DATA = frozenset({"enum", "const", "default", "examples"})
# A card marks again what it shows; these pass for marks, and are none of a card's.
_AS_QUOTED = str.maketrans({"‹": "⟨", "›": "⟩"})


class Definition(msgspec.Struct, frozen=True):
    """Everything that a server says of one tool, as canonical JSON."""

    name: str
    text: str

    def fields(self) -> dict[str, Any]:
        found = values.decode(self.text.encode())
        assert isinstance(found, dict)
        return found


def definition_of(tool: dict[str, Any]) -> Definition:
    """A definition as it came, in its canonical form. A Problem says why there is none."""
    name = tool.get("name")
    if not isinstance(name, str) or not name or len(name) > MAX_TOOL_NAME:
        raise Problem(f"a tool without a name of 1 to {MAX_TOOL_NAME} characters")
    try:
        text = values.canonical(tool)
    except NotJSON as problem:
        raise Problem(f"{visible(name)}: {problem.fact}") from None
    if len(text) > MAX_DEFINITION_BYTES:
        raise Problem(f"{visible(name)}: its definition has {len(text):,} bytes, at most {MAX_DEFINITION_BYTES:,}")
    return Definition(name, text.decode())


def digest_of(definitions: Iterable[Definition]) -> str:
    """One digest for all tools of a server, in whichever order it lists them."""
    listed = sorted((definition.name, definition.text) for definition in definitions)
    return values.digest(values.canonical([list(pair) for pair in listed]))


def manifest_for(launch: Launch, definition: Definition, standing: ToolKey = False) -> Manifest:
    """What is known here of a server's tool. What the server hints can only make its card louder.

    It always asks, unless the person has turned its key (`standing`) and a rule or a grant of theirs turns the other.
    """
    server, fields = launch.name, definition.fields()
    id = tool_id(server, definition.name)
    description = fields.get("description")
    said = marked(description) if isinstance(description, str) and description.strip() else ""
    form = {
        "name": id,
        "inputSchema": _marked_schema(fields.get("inputSchema")),
        "annotations": fields.get("annotations") or {},
    }
    manifest = manifest_from(id, form)
    return msgspec.structs.replace(
        manifest,
        display_name=f"{marked(definition.name)} of the MCP server {server}",
        description=f"The MCP server {server} says of it: “{said}”"
        if said
        else f"The MCP server {server} says nothing.",
        require_approval=True,
        auto_approve=standing,
        idempotent=False,
        icon="network",
    )


def marked(text: str) -> str:
    """A server's words with a mark for everything in them that could not be seen."""
    return visible(text).translate(_AS_QUOTED)


def _marked_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_marked_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: marked(item) if key in _WORDS and isinstance(item, str) else item if key in _DATA else _marked_schema(item)
        for key, item in schema.items()
    }


def difference(before: Definition | None, after: Definition | None) -> list[str]:
    """What changed between two definitions, as marked lines of a diff."""
    old, new = (_lines(definition) for definition in (before, after))
    rows = difflib.unified_diff(old, new, "trusted", "now", lineterm="", n=2)
    return [marked(row) for row in rows]


def _lines(definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    return json.dumps(definition.fields(), ensure_ascii=False, indent=1, sort_keys=True).split("\n")
