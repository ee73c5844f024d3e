"""Whether it can be said in bearable time what does not fit a schema.

That something does not fit is found at once. To say why, a validator tries every shape of every choice, in every shape
of the choice around it: with a schema that leads back to itself, one wrong leaf of an expression of ten levels takes a
minute, and whoever sends arguments decides how many levels there are. So the ways are counted before they are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

# Inside of a choice inside of a choice, where they multiply. So many take a tenth of a second.
MAX_NESTED = 1_000
# All of them. Without choices there are as many as the arguments have parts.
MAX_STEPS = 100_000

# What a schema may make of a single value.
MAX_UNFOLDED = 10_000

_CHOICES = ("anyOf", "oneOf")
_ONE_HERE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


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
