"""Whose yes a call needs. Data only; `decide` (rules/) says which of these it is.

Two keys stay two keys. The tool's says whether a standing yes may be enough for it at all; the other one is the
preset's, or a rule's or a grant's in its place.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec


class Nobody(msgspec.Struct, frozen=True):
    """The tool needs no approval."""


class Auto(msgspec.Struct, frozen=True):
    """Both keys are there."""


class Waived(msgspec.Struct, frozen=True):
    """The tool's own rule says of these arguments that nobody need be asked."""


class Ruled(msgspec.Struct, frozen=True):
    """A rule of a policy file allows it, in the place of the preset's key."""

    rule: str
    """Its name and its place, for people."""
    key: str
    """By which the rule is known, whatever it is called."""
    calls: int | None = None
    sums: dict[str, Decimal] = {}
    per: Literal["day"] | None = None
    """Of a rule with limits: how much of it there is, and for how long."""
    others: tuple[Ruled, ...] = ()
    """Further rules with limits that allow the same: each counts where those before it have nothing left."""

    @property
    def is_limited(self) -> bool:
        return self.calls is not None or bool(self.sums)


class Granted(msgspec.Struct, frozen=True):
    """A grant of a person allows it, in the place of the preset's key."""

    id: str
    words: str
    calls: int | None = None
    sums: dict[str, Decimal] = {}


class Forbidden(msgspec.Struct, frozen=True):
    """A rule denies it. Nobody is asked."""

    rule: str


class Person(msgspec.Struct, frozen=True):
    """Somebody must be asked; `missing` says which of the two keys are not there."""

    missing: tuple[Literal["preset", "tool"], ...]
    line: str = ""
    """What the rules say of it, in one line for the card."""
    is_ruled: bool = False
    """Whether a rule wants them asked, whatever the tool's own rule says."""
    why: str = ""
    """The rule that wants them asked, or why what would have stood for them does not: for whoever asks what decides."""


NOBODY = Nobody()
AUTO = Auto()
WAIVED = Waived()

Decider = Auto | Waived | Ruled | Granted | Person
"""Whose yes a call needs that needs one."""
