"""What an author states of a tool in Python: facts beside a function, and the function's own signature.

`@tool(…)` and `register` take the facts, and check them when they are given: a secret that names no parameter would be
shown on the card, and a time limit that is no number would fail after the yes. A typed function becomes a manifest,
with a converter for each argument that turns JSON into the type that the function asks for.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, TypedDict, Unpack

import msgspec

from lastword import values
from lastword.errors import ManifestError, NotJSON, Problem, did_you_mean
from lastword.tools.content import json_values
from lastword.tools.manifest import EFFECTS, MAX_ID_LENGTH, NAME, Effect, Manifest, Parameter, ToolKey, expected_words


class SharedFacts(TypedDict, total=False):
    """What may be said of a tool however it is written in Python."""

    display_name: str
    icon: str
    color: str
    require_approval: bool | Callable[..., Any]
    """A function of the arguments asks only for some of them: what it gives `False` for passes without a card."""
    auto_approve: ToolKey
    """Whether a standing yes may be enough: never, only for `"exact"` arguments, or within bounds too."""
    script_editor_only: bool
    secondary_acts: bool
    """Whether the second button is a consent of its own; the tool then looks at `user_action.secondary_confirmed`."""
    effect: Effect
    idempotent: bool
    timeout_seconds: float
    content_parameter: str
    secret: Collection[str]


class Facts(SharedFacts, total=False):
    """The same of a typed function, beside its signature."""

    id: str
    description: str


class RegisterFacts(SharedFacts, total=False):
    """The same beside a schema, and what draws the card and how the code is run."""

    request: Callable[..., Any]
    inline: bool


class ToolFacts(Facts, total=False):
    """The same of a typed function, and what draws the card and how the code is run."""

    request: Callable[..., Any]
    inline: bool


# What a person is told to write: as in the file of a folder tool.
_EXPECTED = expected_words() | {"secret": 'the names of parameters, as in ("api_key",)'}
_TEXTS = ("id", "display_name", "description", "icon", "color", "effect", "content_parameter")
# Said by leaving them out as well, which `None` has always meant.
_OPTIONAL = (*_TEXTS, "timeout_seconds", "request")
_OF_MANIFEST = frozenset(SharedFacts.__annotations__) - {"secret", "require_approval"}


def manifest_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a manifest holds as they were said."""
    return {name: value for name, value in facts.items() if name in _OF_MANIFEST and value is not None}


def refuse_wrong_facts(
    facts: Mapping[str, Any], known: Iterable[str], parameters: Collection[str] | None, place: str
) -> None:
    """Raise a ManifestError that says everything that is wrong with some facts; see `_wrong_facts`."""
    if wrong := [_at(place, problem) for problem in _wrong_facts(facts, known, parameters)]:
        raise ManifestError("", wrong)


def _at(place: str, problem: Problem) -> Problem:
    return Problem(problem.fact, place=place, hint=problem.hint)


def _wrong_facts(
    facts: Mapping[str, Any], known: Iterable[str], parameters: Collection[str] | None
) -> Iterator[Problem]:
    """Everything that is wrong with some facts; `parameters` are those of the tool, where they are known by then."""
    known = tuple(known)
    for name, value in facts.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"what can be said is {', '.join(known)}"
            yield Problem(f"unknown fact {name}", hint=hint)
        elif value is None and name in _OPTIONAL:
            continue
        elif name in _TEXTS:
            yield from _wrong_text(name, value, parameters)
        elif name == "timeout_seconds":
            if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
                yield Problem(f"timeout_seconds is {value!r}, expected {_EXPECTED[name]}")
        elif name == "secret":
            yield from _wrong_secrets(value, parameters)
        elif name == "request":
            if not callable(value):
                yield Problem(f"request is {value!r}, expected a function that returns what the card says")
        elif (name == "require_approval" and callable(value)) or (
            name == "auto_approve" and type(value) is str and value == "exact"
        ):
            continue
        elif type(value) is not bool:
            # None is false to Python, and a tool must not lose its approval by a variable that was never set.
            more = {"require_approval": " or a function of the arguments", "auto_approve": ' or "exact"'}.get(name, "")
            yield Problem(f"{name} is {value!r}, expected True or False{more}")


def _wrong_text(name: str, value: Any, parameters: Collection[str] | None) -> Iterator[Problem]:
    if type(value) is not str or not value:
        yield Problem(f"{name} is {value!r}, expected {_EXPECTED[name]}")
    elif name == "effect" and value not in EFFECTS:
        yield Problem(f"effect is {value!r}, expected {_EXPECTED[name]}", hint=did_you_mean(value, EFFECTS))
    elif name == "id" and (not NAME.match(value) or len(value) > MAX_ID_LENGTH):
        yield Problem(f"id is {value[: 2 * MAX_ID_LENGTH]!r}, expected {_EXPECTED[name]}")
    elif name == "content_parameter" and parameters is not None and value not in parameters:
        hint = did_you_mean(value, parameters)
        yield Problem(f"content_parameter names {value}, which is not a parameter", hint=hint)


def _wrong_secrets(value: Any, parameters: Collection[str] | None) -> Iterator[Problem]:
    if type(value) not in (tuple, list, set, frozenset) or not all(type(name) is str for name in value):
        yield Problem(f"secret is {value!r}, expected {_EXPECTED['secret']}")
        return
    if parameters is None:
        return
    for name in sorted(set(value) - set(parameters)):
        hint = did_you_mean(name, parameters) or f"the parameters are {', '.join(parameters) or 'none'}"
        yield Problem(f"secret names {name}, which is not a parameter", hint=hint)


RESERVED = ("params", "user_action", "editor", "context")
"""Names that a tool's function may declare to receive what is not an argument."""

Convert = Callable[[Any], Any]


def manifest_of(function: Callable[..., Any], **facts: Unpack[Facts]) -> tuple[Manifest, dict[str, Convert]]:
    """Derive the manifest of a function, with a converter for each argument that is not a plain JSON type."""
    name = str(facts.get("id") or getattr(function, "__name__", ""))
    if not name:
        fact = f"a {type(function).__name__} has no name that a tool could have"
        hint = 'give it one, as in @tool(id="pay"), or write a function around it'
        raise ManifestError("", [Problem(fact, hint=hint)])
    place = f"{name} ({_file_of(function)})"
    documented, described = _docstring(inspect.getdoc(function) or "")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise ManifestError("", [Problem(f"a type hint cannot be resolved: {problem}", place=place)]) from None
    parameters: list[Parameter] = []
    converters: dict[str, Convert] = {}
    problems: list[Problem] = []
    secret = facts.get("secret") or ()
    for argument in inspect.signature(function).parameters.values():
        if argument.name in RESERVED:
            continue
        try:
            parameter, convert = _parameter_of(argument, hints.get(argument.name, Any))
        except Problem as problem:
            problems.append(_at(place, problem))
            continue
        if convert is not None:
            converters[argument.name] = convert
        words = parameter.description or described.get(argument.name, "")
        is_secret = argument.name in secret
        parameters.append(msgspec.structs.replace(parameter, description=words, secret=is_secret))
    wrong = _wrong_facts(facts, Facts.__annotations__, [parameter.name for parameter in parameters])
    problems += [_at(place, problem) for problem in wrong]
    if problems:
        raise ManifestError("", problems)
    words = name.replace("_", " ")
    said = {"display_name": words.strip().capitalize(), **manifest_facts(facts)}
    manifest = Manifest(
        id=name,
        description=facts.get("description") or documented or words,
        parameters=tuple(parameters),
        returns=_returns(hints.get("return", Any)),
        require_approval=facts.get("require_approval", True) is not False,
        **said,
    )
    return manifest, converters


def _parameter_of(argument: inspect.Parameter, hint: Any) -> tuple[Parameter, Convert | None]:
    """What an argument is to a model, and what turns JSON into it. Raises a Problem where that cannot be said."""
    if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
        fact = f"the argument {argument} cannot be described to a model"
        raise Problem(fact, hint="give every argument a name and a type")
    words = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, str)), None)
    try:
        schema, convert = _schema_of(hint)
    except TypeError as problem:
        first = str(problem).splitlines()[0].rstrip(":")
        fact = f"the type of {argument.name} cannot be described to a model: {first}"
        raise Problem(fact, hint="use a dataclass, a TypedDict, a pydantic model or a type of JSON") from None
    optional = argument.default is not argument.empty
    if optional and argument.default is not None:
        schema = _with_default(schema, argument.default)
    kind = simple_type(schema)
    parameter = Parameter(
        name=argument.name,
        type=kind,
        description=words or schema.get("description") or "",
        required=not optional,
        schema=None if schema in ({}, {"type": kind}) else schema,
    )
    return parameter, convert


def _schema_of(hint: Any) -> tuple[dict[str, Any], Convert | None]:
    """The JSON Schema of a type hint, and what turns JSON into it (None when JSON is what it wants)."""
    bare = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    if bare is Any or bare is inspect.Parameter.empty:
        return {}, None
    if hasattr(bare, "model_json_schema"):  # a pydantic model, without importing pydantic
        return bare.model_json_schema(), bare.model_validate
    # An Annotated hint may carry msgspec's own constraints, and what only others read.
    is_known = all(isinstance(m, msgspec.Meta) for m in getattr(hint, "__metadata__", ()))
    schema = msgspec.json.schema(hint if is_known else bare, schema_hook=_path_schema)
    if bare in (str, int, float, bool, type(None), list, dict):
        return schema, None
    if bare is Decimal:  # Models write amounts as numbers, and 12.5 means 12.5.
        return {"type": ["string", "number"], "format": "decimal"}, _decimal
    return schema, lambda value: msgspec.convert(value, bare, dec_hook=_path)


def _path_schema(kind: type) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


def _path(kind: type, value: Any) -> Any:
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise NotImplementedError


def _decimal(value: Any) -> Decimal:
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        raise ValueError(f"{value!r} is no number") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is no number")
    return number


def _file_of(function: Any) -> str:
    try:
        return inspect.getsourcefile(inspect.unwrap(function)) or "unknown file"
    except TypeError:  # An object that can be called, or a function of C.
        return "unknown file"


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    try:
        return {**schema, "default": values.plain(msgspec.to_builtins(default, enc_hook=json_values))}
    except (TypeError, NotJSON):
        return schema  # A default that JSON cannot hold stays Python's own business.


def simple_type(schema: dict[str, Any]) -> str:
    target = schema
    if "$ref" in schema:
        target = schema.get("$defs", {}).get(schema["$ref"].rsplit("/", 1)[-1], {})
    kind = target.get("type")
    if kind is None and "enum" in target:
        kinds = {values.type_name.get(type(choice)) for choice in target["enum"]}
        kind = kinds.pop() if len(kinds) == 1 else None
    if not isinstance(kind, str):
        return "any"
    return "number" if kind == "integer" else kind


def _returns(hint: Any) -> str:
    if hint is Any or hint is None or hint is type(None):
        return "any"
    try:
        return simple_type(_schema_of(hint)[0])
    except TypeError:
        return "any"


_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_ARGUMENT = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_FIELD = re.compile(r"^:param\s+(?:\S+\s+)?(\w+):\s*(.+)$")


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and what is said of each argument (`Args:` sections and `:param x:` fields)."""
    first, _, _ = text.partition("\n\n")
    described: dict[str, str] = {}
    in_section = False
    for line in text.splitlines():
        if _SECTION.match(line):
            in_section = True
        elif match := _FIELD.match(line):
            described[match[1]] = match[2].strip()
        elif in_section and line and not line[0].isspace():
            in_section = False
        elif in_section and (match := _ARGUMENT.match(line)):
            described[match[1]] = match[2].strip()
    if _SECTION.match(first.splitlines()[0] if first else "") or first.startswith(":param"):
        first = ""
    return " ".join(first.split()), described
