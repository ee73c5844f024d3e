"""What is known before a script runs: what tools take and give, and of what kind values and variables are.

A registry hands signatures out; nothing here can call anything. What the checker makes of a kind is its own business.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

KINDS = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "array": "list",
    "object": "object",
}
"""The types of signatures in the words of the language; any other type says nothing."""


class SignatureParameter(msgspec.Struct, frozen=True):
    """One argument of a tool."""

    name: str
    type: str = "any"
    description: str = ""
    required: bool = True
    secret: bool = False
    schema: Mapping[str, Any] | None = None


class Signature(msgspec.Struct, frozen=True, dict=True):
    """One tool, as a script can see it."""

    name: str
    description: str = ""
    parameters: tuple[SignatureParameter, ...] = ()
    returns: str = "any"
    needs_person: bool = False
    """Whether somebody will be asked before it runs."""
    may_pass: bool = False
    """Whether a rule of its own, or a rule or grant of the person, may say that nobody need be asked."""
    additional: bool = False
    """Whether it takes arguments that are not listed."""
    effect: str | None = None
    """What it does to the world, in a word, where its author said so."""
    display_name: str | None = None
    reports: bool = False
    """Whether a CALL of it gives `{success, message}`, also when it was denied or failed."""

    @cached_property
    def by_name(self) -> dict[str, SignatureParameter]:
        """Its arguments by their names, worked out when a script first calls it."""
        return {parameter.name: parameter for parameter in self.parameters}

    @property
    def takes(self) -> str:
        """What it takes, for whoever gave it something else."""
        names = [parameter.name + ("" if parameter.required else "?") for parameter in self.parameters]
        return f"it takes {{ {', '.join(names)} }}" if names else "it takes no arguments: {}"

    @property
    def title(self) -> str:
        """What to call it before a person."""
        return self.display_name or self.name


Signatures = Mapping[str, Signature]


ANY = "any"


class Shape(msgspec.Struct, frozen=True, eq=False):
    """An object whose keys are all known."""

    fields: dict[str, Kind]


Kind = str | Shape
"""string, number, boolean, null, list, object, a Shape, or any."""

OPERATORS = {
    **dict.fromkeys(["AND", "OR"], ("boolean", "boolean")),
    **dict.fromkeys(["==", "!="], (None, "boolean")),
    **dict.fromkeys(["<", "<=", ">", ">="], ("number", "boolean")),
    **dict.fromkeys("+-*/%", ("number", "number")),
}
"""What the operators take and give; None is anything."""


def plain_kind(kind: Kind) -> str:
    """A kind in one word."""
    return kind if isinstance(kind, str) else "object"


def in_words(kind: Kind) -> str:
    """A kind with its article."""
    word = plain_kind(kind)
    return word if word == "null" else f"an {word}" if word == "object" else f"a {word}"
