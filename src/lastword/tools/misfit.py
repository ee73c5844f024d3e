"""What does not fit a schema, in words that whoever sent it can repair it from.

A validator is content to say that a value fits none of several shapes, or that a property is not allowed. A model that
reads this tries the next thing that comes to its mind. Here the shape that was probably meant is looked for, and what
is wrong with the value as one of these is said: which field, and what was expected there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.errors import did_you_mean

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

# Beyond this a list of what is allowed is no help any more.
MAX_NAMED = 20
MAX_SHOWN = 60

Path = list[str | int]


def misfits(problem: ValidationError, schema: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Each place that does not fit, with what was expected there. `schema` is the one that was validated against."""
    shapes = [shape for shape in getattr(problem.kind, "context", ()) if shape]
    if not shapes:
        yield list(problem.instance_path), _words(problem, schema)
        return
    here = list(problem.instance_path)
    if all(len(shape) == 1 and _is_other_type(shape[0], problem) for shape in shapes):
        types: dict[str, None] = dict.fromkeys(name for shape in shapes for name in _types(shape[0]))
        yield here, f"expected {' or '.join(types)}, found {_found(problem.instance)}"
        return
    meant = [shape for shape in shapes if not any(_means_another(inner, problem) for inner in shape)]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from misfits(inner, schema)
        return
    said = dict.fromkeys(_shape(shape, problem, schema) for shape in meant or shapes)
    yield here, f"{_found(problem.instance)} fits none of these: {'; or '.join(said)}"


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


def _words(problem: ValidationError, schema: Mapping[str, Any]) -> str:
    kind: Any = problem.kind
    if kind.name == "required":
        return f"the field {kind.property} is missing"
    if kind.name == "additionalProperties":
        known = list(_at(schema, problem.schema_path[:-1]).get("properties", {}))
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
        return f"{_found(problem.instance)} is not one of {listed}" + (f" ({hint})" if hint else "")
    if kind.name == "type":
        return f"expected {' or '.join(_types(problem))}, found {_found(problem.instance)}"
    return problem.message


def _at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any]:
    """The part of a schema that a path leads to."""
    here: Any = schema
    for part in path:
        here = here[part]
    return here if isinstance(here, Mapping) else {}


def _found(value: Any) -> str:
    shown = values.canonical(value).decode()
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
