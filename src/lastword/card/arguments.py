"""`name=value` in the type the tool wants: for `lastword call` and for editing a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lastword import values
from lastword.errors import ArgumentsError, NotJSON, Problem, did_you_mean
from lastword.tools import Manifest

_EXAMPLES = {
    "number": "3",
    "boolean": "true",
    "null": "null",
    "array": '["a", "b"]',
    "object": '{"a": 1}',
}


def read_arguments(manifest: Manifest, pairs: Iterable[str], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The arguments of a call: those given as JSON, then `name=value` pairs. Every problem at once."""
    read = dict(given or {})
    problems: list[Problem] = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            hint = f"write {name}=VALUE" if _type_of(manifest, name) else "an argument is NAME=VALUE"
            problems.append(Problem(f"{pair[:60]} is not an argument", hint=hint))
            continue
        try:
            read[name] = read_value(manifest, name, text)
        except Problem as problem:
            problems.append(problem)
    if problems:
        raise ArgumentsError(f"the arguments of {manifest.id} could not be read:", problems)
    return read


def read_value(manifest: Manifest, name: str, text: str) -> Any:
    """One value: a string is taken as it stands, everything else is JSON."""
    kind = _type_of(manifest, name)
    if kind is None:
        if not manifest.additional_parameters:
            known = [p.name for p in manifest.parameters]
            listed = f"the arguments are: {', '.join(known)}" if known else f"{manifest.id} takes no arguments"
            raise Problem(f"unknown argument {name[:60]}", hint=did_you_mean(name, known) or listed)
        kind = "any"
    if kind == "string":
        return text
    try:
        return values.parse(text)
    except NotJSON as problem:
        if kind == "any":
            return text  # what is not JSON can only be meant as text
        example, article = _EXAMPLES[kind], "an" if kind[0] in "ao" else "a"
        raise Problem(
            f"the argument {name} must be {article} {kind}, found {text[:60]} ({problem.fact})",
            hint=f"write it as JSON, for instance {name}={example if kind == 'number' else repr(example)}",
        ) from None


def _type_of(manifest: Manifest, name: str) -> str | None:
    return next((p.type for p in manifest.parameters if p.name == name), None)
