"""The facts that an author states of a tool in Python: what `@tool(…)` and `register` take, checked when it is given.

A secret that names no parameter would be shown on the card, and a time limit that is no number would fail after the
yes. So nothing here waits for the first call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypedDict

from lastword.errors import Problem, did_you_mean
from lastword.tools.manifest import EFFECTS, MAX_ID_LENGTH, NAME, Effect, ToolKey


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


_EXPECTED = {
    "id": "letters, digits and underscores, not starting with a digit, at most 64 of them",
    "display_name": "a short name for people",
    "description": "what the tool does, for the model and the person",
    "icon": "a symbol name",
    "color": "a colour name",
    "effect": "one of " + " ".join(EFFECTS),
    "content_parameter": "the name of one of the parameters",
    "timeout_seconds": "a number of seconds above 0",
    "secret": 'the names of parameters, as in ("api_key",)',
}
_TEXTS = ("id", "display_name", "description", "icon", "color", "effect", "content_parameter")
# Said by leaving them out as well, which `None` has always meant.
_OPTIONAL = (
    "id",
    "display_name",
    "description",
    "icon",
    "color",
    "effect",
    "content_parameter",
    "timeout_seconds",
    "request",
)


def wrong_facts(
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
