"""JSON Schemas: a validator, and what does not fit, in words that whoever sent it can repair it from.

A validator is content to say that a value fits none of several shapes, or that a property is not allowed. A model that
reads this tries the next thing that comes to its mind. Here the shape that was probably meant is looked for, and what
is wrong with the value as one of these is said: which field, and what was expected there.

That something does not fit is found at once. To say why, a validator tries every shape of every choice, in every shape
of the choice around it: with a schema that leads back to itself, one wrong leaf of an expression of ten levels takes a
minute, and whoever sends arguments decides how many levels there are. So the ways are counted before they are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lastword import values
from lastword.errors import did_you_mean
from lastword.lazily import load_later

if TYPE_CHECKING:
    import jsonschema_rs
    from jsonschema_rs import ValidationError
else:
    # A tenth of the start-up time, for whoever has tools: reading a manifest, or a server, needs none of it.
    jsonschema_rs = load_later("jsonschema_rs")

# Beyond this a list of what is allowed is no help any more.
MAX_NAMED = 20
MAX_SHOWN = 60

# Inside of a choice inside of a choice, where they multiply. So many take a tenth of a second.
MAX_NESTED = 1_000
# All of them. Without choices there are as many as the arguments have parts.
MAX_STEPS = 100_000

# What a schema may make of a single value.
MAX_UNFOLDED = 10_000

_CHOICES = ("anyOf", "oneOf")
_ONE_HERE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Path = list[str | int]


def validator_for(schema: Mapping[str, Any]) -> Any:
    """A validator for a JSON Schema that is whole in itself; a ValueError says what is wrong with one that is not."""
    outside: list[str] = []

    def retrieve(uri: str) -> Any:
        # A description must not make whoever reads it fetch addresses or open files.
        outside.append(uri)
        raise ValueError

    try:
        validator = jsonschema_rs.validator_for(dict(schema), retriever=retrieve)
    except ValueError as problem:
        fact = f"{outside[0]} lies outside of the manifest" if outside else str(problem).partition("\n")[0]
        raise ValueError(fact) from None
    if unfolds_too_far(schema):
        raise ValueError("its references unfold to more shapes than can be tried")
    return validator


def misfits(problem: ValidationError, schema: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Each place that does not fit, with what was expected there. `schema` is the one that was validated against."""
    shapes = [shape for shape in getattr(problem.kind, "context", ()) if shape]
    if not shapes:
        yield list(problem.instance_path), _in_words(problem, schema)
        return
    here = list(problem.instance_path)
    if all(len(shape) == 1 and _is_other_type(shape[0], problem) for shape in shapes):
        types: dict[str, None] = dict.fromkeys(name for shape in shapes for name in _types(shape[0]))
        yield here, f"expected {' or '.join(types)}, found {_shown(problem.instance)}"
        return
    meant = [shape for shape in shapes if not any(_means_another(inner, problem) for inner in shape)]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from misfits(inner, schema)
        return
    said = dict.fromkeys(_shape(shape, problem, schema) for shape in meant or shapes)
    yield here, f"{_shown(problem.instance)} fits none of these: {'; or '.join(said)}"


def _means_another(problem: ValidationError, whole: ValidationError) -> bool:
    """Whether a value with this problem was not meant to have the shape at all: it is of another type, or has another
    word in the place where each shape has its own."""
    kind: Any = problem.kind
    is_other_word = kind.name == "const" or (kind.name == "enum" and len(kind.options) == 1)
    return is_other_word or _is_other_type(problem, whole)


def _is_other_type(problem: ValidationError, whole: ValidationError) -> bool:
    return problem.kind.name == "type" and problem.instance_path == whole.instance_path


def _types(problem: ValidationError) -> Sequence[str]:
    kind: Any = problem.kind
    types: Sequence[str] = kind.types
    return types


def _shape(shape: Sequence[ValidationError], whole: ValidationError, schema: Mapping[str, Any]) -> str:
    """What a value would need to have this shape."""
    start = len(whole.instance_path)
    said = []
    for problem in shape:
        for path, words in misfits(problem, schema):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[start:])
            said.append(f"{place.removeprefix('.')}: {words}" if place else words)
    return ", ".join(said)


def _in_words(problem: ValidationError, schema: Mapping[str, Any]) -> str:
    kind: Any = problem.kind
    if kind.name == "required":
        return f"the field {kind.property} is missing"
    if kind.name == "additionalProperties":
        known = list(_part_at(schema, problem.schema_path[:-1]).get("properties", {}))
        unknown = [
            f"unknown field {name}" + (f" ({hint})" if (hint := did_you_mean(name, known)) else "")
            for name in kind.unexpected[:MAX_NAMED]
        ]
        return "; ".join(unknown) + (f"; the fields are {', '.join(known[:MAX_NAMED])}" if known else "")
    if kind.name == "enum":
        options = [option if isinstance(option, str) else values.canonical(option).decode() for option in kind.options]
        hint = did_you_mean(problem.instance, options) if isinstance(problem.instance, str) else None
        more = f" and {len(options) - MAX_NAMED} others" if len(options) > MAX_NAMED else ""
        listed = f"{', '.join(options[:MAX_NAMED])}{more}"
        return f"{_shown(problem.instance)} is not one of {listed}" + (f" ({hint})" if hint else "")
    if kind.name == "type":
        return f"expected {' or '.join(_types(problem))}, found {_shown(problem.instance)}"
    return problem.message


def _part_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any]:
    """The part of a schema that a path leads to."""
    here: Any = schema
    for part in path:
        here = here[part]
    return here if isinstance(here, Mapping) else {}


def _shown(value: Any) -> str:
    shown = values.canonical(value).decode()
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


class Unfollowed(Exception):
    """A reference that leads where we cannot follow."""


def can_be_told(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether there are few enough ways to try this value."""
    left: list[tuple[Any, Any, int]] = [(schema, value, 0)]
    steps = nested = 0
    while left:
        here, at, depth = left.pop()
        steps += 1
        nested += depth > 1
        if steps > MAX_STEPS or nested > MAX_NESTED:
            return False
        if not isinstance(here, Mapping):
            continue
        try:
            left += [(part, at, depth) for part in _same_place(schema, here)]
        except Unfollowed:
            if depth:
                return False
        left += [(part, at, depth + 1) for key in _CHOICES for part in here.get(key, ())]
        left += [(part, inner, depth) for part, inner in _below(here, at)]
    return True


def _same_place(root: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[Any]:
    """What else the same value has to be."""
    yield from here.get("allOf", ())
    yield from (here[key] for key in _ONE_HERE if key in here)
    yield from here.get("dependentSchemas", {}).values()
    yield from (_followed(root, here[key]) for key in _REFERENCES if key in here)


def _below(here: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """What the parts of a value have to be."""
    if isinstance(value, dict):
        named = here.get("properties", {})
        patterns = [*here.get("patternProperties", {}).values(), here.get("additionalProperties")]
        for name, inner in value.items():
            if name in named:
                yield named[name], inner
            yield from ((pattern, inner) for pattern in patterns if isinstance(pattern, Mapping))
    elif isinstance(value, list):
        first = here.get("prefixItems") or here.get("items")
        if isinstance(first, list):
            yield from zip(first, value, strict=False)
        every = [here.get(key) for key in ("items", "additionalItems", "contains")]
        yield from ((each, inner) for each in every if isinstance(each, Mapping) for inner in value)


def _followed(root: Mapping[str, Any], reference: Any) -> Any:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise Unfollowed
    here: Any = root
    try:
        for part in unquote(reference).split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            here = here[int(part)] if isinstance(here, list) else here[part]
    except (KeyError, IndexError, ValueError, TypeError):
        raise Unfollowed from None
    return here


def unfolds_too_far(schema: Mapping[str, Any]) -> bool:
    """Whether one value would have to be tried more often than anybody waits for, however small it is.

    Forty definitions, each a choice between the next one and itself, are a short text and a million million tries.
    """
    sizes: dict[int, int] = {}

    def size(here: Any) -> int:
        if not isinstance(here, Mapping):
            return 1
        if id(here) not in sizes:
            sizes[id(here)] = 0  # What leads back to itself is tried once, and does not multiply here.
            parts = [part for key in _CHOICES for part in here.get(key, ())]
            with suppress(Unfollowed):
                parts += _same_place(schema, here)
            sizes[id(here)] = 1 + sum(size(part) for part in parts)
        return sizes[id(here)]

    try:
        return any(size(part) > MAX_UNFOLDED for part in _parts(schema))
    except RecursionError:
        return True


def _parts(schema: Any) -> Iterator[Any]:
    """Every object in a schema. Some are none that a value is tried against; they count for little."""
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, Mapping):
            yield here
            left += here.values()
        elif isinstance(here, list):
            left += here
