"""What the language knows of a tool: its name, what it takes and gives, and whether a person will be asked.

A registry hands these out; nothing here can call anything.
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
    def title(self) -> str:
        """What to call it before a person."""
        return self.display_name or self.name


Signatures = Mapping[str, Signature]
