"""The forms in which people have descriptions of tools, and in which other programs want them.

In: our own schema, a plain JSON Schema of the arguments, and the tool forms of the OpenAI API, the Anthropic API and
MCP. Out: the last three. The JSON Schema that went in is kept whole and comes out equal; our parameters are read off it
for the card and for scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lastword import values
from lastword.errors import ManifestError, NotJSON, Problem, ToolLoadError
from lastword.tools.manifest import NAME, Effect, Manifest, Parameter, parse_schema, validator_for
from lastword.tools.signature import simple_type


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


def openai_form(manifest: Manifest) -> dict[str, Any]:
    """A tool as `tools` of the chat completions API takes it."""
    return {
        "type": "function",
        "function": {
            "name": manifest.id,
            "description": manifest.description,
            "parameters": manifest.arguments_schema(),
        },
    }


def anthropic_form(manifest: Manifest) -> dict[str, Any]:
    """A tool as `tools` of the messages API takes it."""
    return {"name": manifest.id, "description": manifest.description, "input_schema": manifest.arguments_schema()}


def mcp_form(manifest: Manifest) -> dict[str, Any]:
    """A tool as `tools/list` of MCP lists it. What its author did not say is left out, and not made up."""
    hints: dict[str, Any] = {}
    if manifest.effect is not None:
        hints["readOnlyHint"] = manifest.effect == "none"
        if manifest.effect != "none":
            hints["destructiveHint"] = manifest.effect == "irreversible"
    if manifest.idempotent:
        hints["idempotentHint"] = True
    form: dict[str, Any] = {
        "name": manifest.id,
        "title": manifest.display_name,
        "description": manifest.description,
        "inputSchema": manifest.arguments_schema(),
    }
    return form | ({"annotations": hints} if hints else {})


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
