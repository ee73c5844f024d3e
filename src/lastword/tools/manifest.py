"""What a tool says about itself: `assistant_tool.json`, a registry schema, or a typed function.

All three become one frozen `Manifest`. Reading is strict and reports every problem of a file in one pass, with its
line. What does not live here: the tool's code (tool.py) and how names find tools (registry.py).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec

from lastword import values
from lastword.errors import ManifestError, NotJSON, Problem, did_you_mean
from lastword.tools.json_schema import validator_for

TYPES = ("string", "number", "boolean", "null", "array", "object", "any")
EFFECTS = ("none", "reversible", "irreversible")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# The keywords of scripts, which no CALL could name. A copy, since the language takes long to load; a test compares.
RESERVED = frozenset(
    ["LET", "SET", "CALL", "TRY", "CALC", "IF", "THEN", "ELSEIF", "ELSE", "END", "FOR", "IN", "DO", "BREAK", "STOP"]
) | {"AND", "OR", "NOT", "true", "false", "null"}
# Long enough for any phrase, short enough for every model API.
MAX_ID_LENGTH = 64

Effect = Literal["none", "reversible", "irreversible"]
ToolKey = bool | Literal["exact", "bounds"]
"""The tool's key of auto-approval: never, only where every argument is given exactly, or within bounds too.

A key that a person turned for the tools of another program is `bounds` and not True: they were told of rules and
grants, and of no preset, which has no bounds at all. No manifest says so by itself.
"""


class Parameter(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One argument of a tool."""

    name: str
    type: str
    description: str = ""
    required: bool = True
    schema: dict[str, Any] | None = None
    secret: bool = False

    @property
    def names_path(self) -> bool:
        """Whether a path may stand anywhere in its value: also where it may be left out, or is one of several."""
        return self.schema is not None and _names_path(self.schema)

    def validator(self) -> Any:
        """What says of a value whether it can be this argument: `is_valid(value)`."""
        kind = {} if self.type == "any" else {"type": self.type}
        return validator_for({**kind, **(self.schema or {})})


class Manifest(msgspec.Struct, frozen=True, rename="camel", kw_only=True, dict=True):
    """Everything that is known of a tool before its code is loaded."""

    # What an id may be, and which words no tool is called by.
    ID: ClassVar = NAME
    MAX_ID_LENGTH: ClassVar = MAX_ID_LENGTH
    RESERVED: ClassVar = RESERVED
    # What tools call an argument that is a command line. In any other text words are words.
    COMMAND_NAMES: ClassVar = frozenset(["command", "cmd"])

    id: str
    display_name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    icon: str | None = None
    color: str | None = None
    returns: str = "any"
    require_approval: bool = True
    auto_approve: ToolKey = False
    script_editor_only: bool = False
    additional_parameters: bool = False
    effect: Effect | None = None
    idempotent: bool = False
    timeout_seconds: float | None = None
    content_parameter: str | None = None
    secondary_acts: bool = False
    """Whether the second button is a consent of its own, and Deny a third one."""
    arguments: dict[str, Any] | None = None
    """The JSON Schema of the arguments as it was given, for a tool that was registered with one."""

    def canonical(self) -> bytes:
        """The bytes that the tool's digest covers. What came later is left out where it says nothing, so that a tool
        which did not change keeps its digest."""
        facts = msgspec.json.decode(msgspec.json.encode(self))
        if self.arguments is None:
            del facts["arguments"]
        if not self.secondary_acts:
            del facts["secondaryActs"]
        return values.canonical(facts)

    @property
    def counts_as_irreversible(self) -> bool:
        """Whether a yes to it has to be one that can never be taken back. What nobody said is taken to be so."""
        return self.effect in (None, "irreversible")

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The arguments that no surface shows and no journal keeps."""
        return frozenset(p.name for p in self.parameters if p.secret)

    def is_path(self, name: str) -> bool:
        """Whether the tool says that an argument is a path, or a list of them."""
        for parameter in self.parameters:
            if parameter.name == name:
                schema = parameter.schema or {}
                items = schema.get("items")
                return "path" in (schema.get("format"), items.get("format") if isinstance(items, dict) else None)
        return False

    def arguments_schema(self) -> dict[str, Any]:
        """A JSON Schema for the whole argument object: as it was given, or made of the parameters."""
        if self.arguments is not None:
            return copy.deepcopy(self.arguments)
        properties: dict[str, Any] = {}
        shared: dict[str, Any] = {}
        for parameter in self.parameters:
            schema = dict(parameter.schema or {})
            for name, definition in schema.pop("$defs", {}).items():
                if shared.setdefault(name, definition) != definition:
                    raise ManifestError(
                        f"{self.id}: two different shapes are both called {name}", [], hint="rename one of the types"
                    )
            if parameter.type != "any" and "type" not in schema and "$ref" not in schema and "anyOf" not in schema:
                schema["type"] = parameter.type
            if parameter.description:
                schema.setdefault("description", parameter.description)
            properties[parameter.name] = schema
        result: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": [p.name for p in self.parameters if p.required],
            "additionalProperties": self.additional_parameters,
        }
        if shared:
            result["$defs"] = shared
        return result

    def openai_form(self) -> dict[str, Any]:
        """A tool as `tools` of the chat completions API takes it."""
        return {
            "type": "function",
            "function": {
                "name": self.id,
                "description": self.description,
                "parameters": self.arguments_schema(),
            },
        }

    def anthropic_form(self) -> dict[str, Any]:
        """A tool as `tools` of the messages API takes it."""
        return {"name": self.id, "description": self.description, "input_schema": self.arguments_schema()}

    def mcp_form(self) -> dict[str, Any]:
        """A tool as `tools/list` of MCP lists it. What its author did not say is left out, and not made up."""
        hints: dict[str, Any] = {}
        if self.effect is not None:
            hints["readOnlyHint"] = self.effect == "none"
            if self.effect != "none":
                hints["destructiveHint"] = self.effect == "irreversible"
        if self.idempotent:
            hints["idempotentHint"] = True
        form: dict[str, Any] = {
            "name": self.id,
            "title": self.display_name,
            "description": self.description,
            "inputSchema": self.arguments_schema(),
        }
        return form | ({"annotations": hints} if hints else {})


def _names_path(schema: Any) -> bool:
    if isinstance(schema, dict):
        return schema.get("format") == "path" or any(map(_names_path, schema.values()))
    return isinstance(schema, list) and any(map(_names_path, schema))


def parse_manifest(text: str | bytes, file: str = "assistant_tool.json") -> Manifest:
    """Read the text of an `assistant_tool.json`."""
    try:
        value = values.parse(text)
    except NotJSON as problem:
        place = f"{file}:{problem.place}" if problem.place else file
        raise ManifestError("", [Problem(problem.fact, place=place, hint=problem.hint)]) from None
    source = text.decode("utf-8") if isinstance(text, bytes) else text
    return _Reader(file, source).manifest(value, _MANIFEST_FIELDS)


def parse_schema(schema: Mapping[str, Any], *, require_approval: bool = False) -> Manifest:
    """Read a registry schema: `{name, description, parameters, returns}`, and our own fields where wanted."""
    value = values.plain(dict(schema))
    value.setdefault("displayName", value.get("name"))
    manifest = _Reader(f"schema of {value.get('name', 'a tool')}", None).manifest(
        value, {"name": _MANIFEST_FIELDS["id"], **{k: v for k, v in _MANIFEST_FIELDS.items() if k != "id"}}
    )
    # A schema that asks for approval gets it, whatever the caller forgot to say.
    wanted = require_approval or value.get("requireApproval", False)
    return msgspec.structs.replace(manifest, require_approval=wanted)


# field → (JSON type, whether it must be there, what a person is told to write)
_Field = tuple[str, bool, str]
_MANIFEST_FIELDS: dict[str, _Field] = {
    "displayName": ("string", True, "a short name for people"),
    "id": ("string", True, "letters, digits and underscores, not starting with a digit, at most 64 of them"),
    "description": ("string", True, "what the tool does, for the model and the person"),
    "icon": ("string", False, "a symbol name"),
    "color": ("string", False, "a colour name"),
    "parameters": ("array", True, "a list of parameters; [] when there are none"),
    "returns": ("string", False, "one of " + " ".join(TYPES)),
    "requireApproval": ("boolean", False, "true or false"),
    "autoApprove": ("boolean", False, 'true, false or "exact"'),
    "scriptEditorOnly": ("boolean", False, "true or false"),
    "additionalParameters": ("boolean", False, "true or false"),
    "effect": ("string", False, "one of " + " ".join(EFFECTS)),
    "idempotent": ("boolean", False, "true or false"),
    "timeoutSeconds": ("number", False, "a number of seconds above 0"),
    "contentParameter": ("string", False, "the name of one of the parameters"),
    "secondaryActs": ("boolean", False, "true or false"),
}


def expected_words() -> dict[str, str]:
    """What a person is told to write, by the name of the fact in Python."""
    return {_snake(field): words for field, (_, _, words) in _MANIFEST_FIELDS.items()}


# What is said elsewhere, and often looked for here.
_ELSEWHERE = {
    "secret": 'say it of the parameter: {"name": "token", "type": "string", "secret": true}',
    "request": "the code says it: AssistantTool.register_approval_request(function)",
    "required": 'say it of the parameter: {"name": "token", "type": "string", "required": false}',
}
_PARAMETER_FIELDS: dict[str, _Field] = {
    "name": ("string", True, "letters, digits and underscores, not starting with a digit"),
    "type": ("string", True, "one of " + " ".join(TYPES)),
    "description": ("string", False, "what the argument means"),
    "required": ("boolean", False, "true or false"),
    "schema": ("object", False, "a JSON Schema"),
    "secret": ("boolean", False, "true or false"),
}


class _Reader:
    """Reads one manifest and collects what is wrong with it."""

    def __init__(self, file: str, source: str | None) -> None:
        self.file = file
        self.lines = dict(_lines_of(source)) if source is not None else {}
        self.problems: list[tuple[int, Problem]] = []

    def manifest(self, value: Any, fields: Mapping[str, _Field]) -> Manifest:
        name_field = "id" if "id" in fields else "name"
        if type(value) is not dict:
            self.wrong((), f"found {_found(value)}, expected a JSON object")
        else:
            self.fields(value, (), fields)
            name = value.get(name_field)
            if isinstance(name, str):
                if not NAME.match(name):
                    self.wrong((name_field,), f"{name_field} is {_found(name)}, expected {fields[name_field][2]}")
                elif len(name) > MAX_ID_LENGTH:
                    self.wrong(
                        (name_field,), f"{name_field} has {len(name)} characters, expected at most {MAX_ID_LENGTH}"
                    )
            self.one_of(value, (), "returns", TYPES)
            self.one_of(value, (), "effect", EFFECTS)
            seconds = value.get("timeoutSeconds")
            if isinstance(seconds, (int, float)) and seconds <= 0:
                self.wrong(("timeoutSeconds",), f"timeoutSeconds is {seconds}, expected a number of seconds above 0")
            self.parameters(value)
        if self.problems:
            self.problems.sort(key=lambda numbered: numbered[0])
            raise ManifestError("", [problem for _, problem in self.problems])
        parameters = tuple(Parameter(**parameter) for parameter in value.get("parameters", ()))
        given = {_snake(key): item for key, item in value.items() if key not in ("parameters", "name", "id")}
        return Manifest(id=value[name_field], parameters=parameters, **given)

    def parameters(self, value: dict[str, Any]) -> None:
        parameters = value.get("parameters")
        if type(parameters) is not list:
            return
        seen: set[str] = set()
        for index, parameter in enumerate(parameters):
            path = ("parameters", index)
            if type(parameter) is not dict:
                self.wrong(path, f"parameters[{index}] is {_found(parameter)}, expected an object")
                continue
            self.fields(parameter, path, _PARAMETER_FIELDS)
            self.one_of(parameter, path, "type", TYPES)
            name = parameter.get("name")
            if isinstance(name, str):
                if not NAME.match(name):
                    expected = _PARAMETER_FIELDS["name"][2]
                    self.wrong((*path, "name"), f"{_at(path)}name is {_found(name)}, expected {expected}")
                if name in seen:
                    self.wrong((*path, "name"), f"the parameter {name} is declared twice")
                seen.add(name)
            if type(parameter.get("schema")) is dict:
                self.schema(parameter, path)
        content = value.get("contentParameter")
        if isinstance(content, str) and content not in seen:
            self.wrong(
                ("contentParameter",),
                f"contentParameter names {content}, which is not a parameter",
                hint=did_you_mean(content, seen),
            )

    def schema(self, parameter: dict[str, Any], path: tuple[Any, ...]) -> None:
        schema, kind = parameter["schema"], parameter.get("type")
        try:
            validator = validator_for(schema)
        except ValueError as problem:
            self.wrong((*path, "schema"), f"{_at(path)}schema is not a JSON Schema: {problem}")
            return
        own = schema.get("type")
        if isinstance(own, str) and kind in TYPES and kind not in ("any", "number" if own == "integer" else own):
            self.wrong((*path, "schema", "type"), f"{_at(path)}type is {kind}, but its schema says {own}")
        elif "default" in schema and (
            not validator.is_valid(schema["default"])
            or (kind in TYPES and kind not in ("any", values.type_name[type(schema["default"])]))
        ):
            found = _found(schema["default"])
            self.wrong((*path, "schema", "default"), f"{_at(path)}default is {found}, which does not fit the parameter")

    def fields(self, value: dict[str, Any], path: tuple[Any, ...], fields: Mapping[str, _Field]) -> None:
        for key, item in value.items():
            if key not in fields:
                hint = None if path else _ELSEWHERE.get(key)
                hint = hint or did_you_mean(key, fields) or f"the fields are {', '.join(fields)}"
                self.wrong((*path, key), f"unknown field {_at(path)}{key}", hint=hint)
            elif values.type_name.get(type(item)) != fields[key][0] and not (key == "autoApprove" and item == "exact"):
                self.wrong((*path, key), f"{_at(path)}{key} is {_found(item)}, expected {fields[key][2]}")
        for key, (_, required, expected) in fields.items():
            if required and key not in value:
                self.wrong(path, f"{_at(path)}{key} is missing, expected {expected}")

    def one_of(self, value: dict[str, Any], path: tuple[Any, ...], key: str, allowed: tuple[str, ...]) -> None:
        item = value.get(key)
        if isinstance(item, str) and item not in allowed:
            self.wrong(
                (*path, key),
                f"{_at(path)}{key} is {_found(item)}, expected one of {', '.join(allowed)}",
                hint=did_you_mean(item, allowed),
            )

    def wrong(self, path: tuple[Any, ...], fact: str, *, hint: str | None = None) -> None:
        line = self.lines.get(path)
        place = f"{self.file}:{line}" if line else self.file
        self.problems.append((line or 0, Problem(fact, place=place, hint=hint)))


def _found(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {json.dumps(value[:60], ensure_ascii=False)}"
    name = values.type_name.get(type(value), type(value).__name__)
    if name in ("array", "object"):
        return f"an {name}"
    return name if name == "null" else f"the {name} {values.scalar_text(value)}"


def _at(path: tuple[Any, ...]) -> str:
    return f"parameters[{path[1]}]." if path else ""


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter.group().lower(), name)


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _lines_of(source: str) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The path of every key and element of a JSON text that parses, with its line."""
    yield (), 1
    path: list[Any] = []
    kinds: list[str] = []
    expects_key = False
    for token in _JSON_TOKEN.finditer(source):
        mark = token.group()
        line = source.count("\n", 0, token.start()) + 1
        if mark in "{[":
            if kinds and kinds[-1] == "[":
                yield tuple(path), line
            kinds.append(mark)
            path.append(0 if mark == "[" else None)
            expects_key = mark == "{"
        elif mark in "}]":
            kinds.pop()
            path.pop()
        elif mark == ",":
            if kinds[-1] == "[":
                path[-1] += 1
            else:
                expects_key = True
        elif mark == ":":
            expects_key = False
        elif expects_key:
            path[-1] = msgspec.json.decode(mark)
            yield tuple(path), line
        elif kinds and kinds[-1] == "[":
            yield tuple(path), line
