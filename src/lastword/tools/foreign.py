"""Descriptions of tools as other programs have them: the manifest and the id that such a tool gets here.

A description is our own schema, a plain JSON Schema of the arguments, or the tool form of the OpenAI API, the Anthropic
API or MCP. The JSON Schema that went in is kept whole; our parameters are read off it for the card and for scripts. How
a tool of ours looks to others is told by its `Manifest`.

The owner of a foreign tool is an MCP server, or an agent whose hook asks here. No two pairs of owner and tool have one
id. A name that can be an id is kept whole: `files__read_file`. In such an id two underscores follow each other where
the first one stands, since the name of a server has none. Every other name is made readable and ends with a digest of
the pair; there a letter or digit follows the first underscore, so that neither form can pass for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from lastword import values
from lastword.errors import ManifestError, NotJSON, Problem, ToolLoadError
from lastword.tools.declaration import simple_type
from lastword.tools.json_schema import validator_for
from lastword.tools.manifest import MAX_ID_LENGTH, NAME, Effect, Manifest, Parameter, parse_schema


class ForeignForm(msgspec.Struct, frozen=True):
    """What a foreign form says of a tool."""

    name: str | None
    description: str
    schema: Any
    title: Any = None
    effect: Effect | None = None
    idempotent: bool = False


def manifest_from(name: str, schema: Any) -> Manifest:
    """The manifest of a tool that is registered under this name with any of the forms."""
    place = f"schema of {name}"
    if hasattr(schema, "model_dump"):  # An object of the MCP SDK, or of another library that is built like it.
        schema = schema.model_dump(by_alias=True, exclude_none=True, mode="json")
    if not isinstance(schema, Mapping):
        raise ManifestError("", [Problem(f"found a {type(schema).__name__}, expected a schema", place=place)])
    try:
        plain: dict[str, Any] = values.plain(dict(schema))
    except NotJSON as problem:
        raise ManifestError("", [Problem(problem.fact, place=place, hint=problem.hint)]) from None
    given = _foreign(plain)
    if given is None:
        manifest = parse_schema({"name": name, **plain})
        _refuse_other_name(name, manifest.id)
        return manifest
    if given.name is not None and NAME.match(given.name):
        _refuse_other_name(name, given.name)
    if problems := list(_wrong(name, given, place)):
        raise ManifestError("", problems)
    return Manifest(
        id=name,
        display_name=given.title or name.replace("_", " ").strip().capitalize(),
        description=given.description or given.title or name.replace("_", " "),
        parameters=tuple(_parameters(given.schema)),
        require_approval=False,
        additional_parameters=given.schema.get("additionalProperties", True) is not False,
        effect=given.effect,
        idempotent=given.idempotent,
        arguments=given.schema,
    )


def _foreign(schema: dict[str, Any]) -> ForeignForm | None:
    """What a form that is not ours says; None for ours."""
    inner = schema.get("function")
    if schema.get("type") == "function" and isinstance(inner, dict):
        return _described(inner, "parameters")
    if schema.get("type") == "function":
        return _described(schema, "parameters")
    if "input_schema" in schema:
        return _described(schema, "input_schema")
    if "inputSchema" in schema:
        hints = schema.get("annotations")
        given = _described(schema, "inputSchema")
        return given if not isinstance(hints, dict) else _hinted(given, hints)
    if schema.get("type") == "object" or "properties" in schema or "$schema" in schema or "$defs" in schema:
        return ForeignForm(None, str(schema.get("description", "")), schema, schema.get("title"))
    return None


def _described(form: dict[str, Any], key: str) -> ForeignForm:
    schema = form.get(key, {"type": "object", "properties": {}})
    name, title = form.get("name"), form.get("title")
    return ForeignForm(name, str(form.get("description") or ""), schema, title)


def _hinted(given: ForeignForm, hints: dict[str, Any]) -> ForeignForm:
    """What a server says of its own tool. A hint can make a card more careful, and never less."""
    effect: Effect | None = "irreversible" if hints.get("destructiveHint") is True else None
    return msgspec.structs.replace(given, effect=effect, title=given.title or hints.get("title"))


def _wrong(name: str, given: ForeignForm, place: str) -> Iterator[Problem]:
    if not NAME.match(name):
        yield Problem(
            f"the name {name[:60]!r} is no id of a tool",
            place=place,
            hint="letters, digits and underscores, not starting with a digit",
        )
    if given.title is not None and not isinstance(given.title, str):
        yield Problem("title is not a text", place=place)
    if not isinstance(given.schema, dict):
        found = type(given.schema).__name__
        yield Problem(f"the schema of the arguments is a {found}, expected an object", place=place)
        return
    if given.schema.get("type", "object") != "object":
        kind = given.schema["type"]
        yield Problem(f"the arguments are described as {kind}, expected an object of named arguments", place=place)
        return
    try:
        validator_for(given.schema)
    except ValueError as problem:
        yield Problem(f"the schema of the arguments is not a JSON Schema: {problem}", place=place)


def _refuse_other_name(registered: str, said: str) -> None:
    if registered != said:
        fact = f"registered as {registered}, but its schema says {said}"
        raise ToolLoadError(fact, place=registered, hint="use one name for it")


def _parameters(schema: dict[str, Any]) -> Iterator[Parameter]:
    """The arguments that a schema names at its top, for the card, the prompt and scripts."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    required = schema.get("required", ())
    for name, described in properties.items():
        own = described if isinstance(described, dict) else {}
        yield Parameter(
            name=name,
            type=simple_type({**own, "$defs": schema.get("$defs", {})}),
            description=str(own.get("description", "")),
            required=name in required,
            schema=own or None,
        )


# Enough that nobody finds a second name for somebody else's id; a registry holds each id once in any case.
DIGEST_DIGITS = 16

_PLAIN_SERVER = re.compile(r"[a-z][a-z0-9]*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_]+")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def tool_id(server: str, tool: str) -> str:
    """The id under which a tool of a server is registered."""
    plain = f"{server}__{tool}"
    if _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool) and len(plain) <= MAX_ID_LENGTH:
        return plain
    # The length stands before the server's name, so that no pair can be read as another one.
    pair = f"{len(server)}:{server}:{tool}".encode("utf-8", "surrogatepass")
    digest = sha256(pair).hexdigest()[:DIGEST_DIGITS]
    readable = _OTHER.sub("_", tool).strip("_") or "tool"
    head = f"{_letters(server)}_{readable}"[: MAX_ID_LENGTH - DIGEST_DIGITS - 1]
    return f"{head}_{digest}"


def _letters(server: str) -> str:
    """The name of a server without what no id may hold."""
    kept = server.replace("-", "")
    return kept if kept[:1].isalpha() else f"mcp{kept}"
