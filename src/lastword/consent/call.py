"""A call, whose yes it needs, and what is known of calls and runs while they live. Data only; `decide` (rules/) says
whose yes.

Two keys stay two keys. The tool's says whether a standing yes may be enough for it at all; the other one is the
preset's, or a rule's or a grant's in its place.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from lastword.errors import LastWordError

if TYPE_CHECKING:
    import asyncio


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool with arguments, asked for by somebody."""

    id: str
    tool: str
    arguments: bytes
    """The only form in which arguments travel: one JSON object, its keys in the order in which they were written."""
    origin: str = ""


class Preset(msgspec.Struct, frozen=True):
    """The user's side of the two keys. `auto_approve` alone approves nothing: the tool must permit it too."""

    auto_approve: bool = False
    name: str = "default"
    standing: Literal["preset", "client"] = "preset"
    """Whose key it is: the user's preset, or the dialogue of a client that stands for it, under the client's name."""

    def __post_init__(self) -> None:
        if type(self.auto_approve) is not bool:
            # A setting read as the text "false" is true to Python, and this key must not turn by mistake.
            raise LastWordError(
                f"auto_approve is a {type(self.auto_approve).__name__}, not true or false", hint="Preset(True)"
            )


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


class Phase(Enum):
    """How far a living call has come. It never goes back, except from STARTING to ASKING when its start was refused."""

    ASKING = "asking"
    """Its card is drawn, waits, or was answered a moment ago."""
    STARTING = "starting"
    """Its start is on its way to the disk: it may have started."""
    RUNNING = "running"
    """The tool's code runs."""
    STOPPED = "stopped"
    """The code is done, and how it ended is not on its way to the disk yet."""
    ENDING = "ending"
    """Its end is on its way to the disk. A second end would contradict it."""


ACTING = (Phase.STARTING, Phase.RUNNING)
# Who cancels a call, as long as nothing else is known: for a sentence.
PERSON = "the person"


class Stoppable(Protocol):
    """The implementation that a call is carried out by."""

    cancelling: bool
    is_over: bool
    loop: asyncio.AbstractEventLoop

    @property
    def is_working(self) -> bool: ...

    def cancel(self) -> None: ...


class LiveCall(msgspec.Struct, weakref=True, eq=False):
    """One call that is asked about or carried out in this process."""

    phase: Phase = Phase.ASKING
    is_cancelled: bool = False
    """Whether a person wants it stopped. Whatever step comes next finds out."""
    cancelled_by: str = PERSON
    """Whose wish that is, where it is one."""
    put_to: Person | None = None
    """Set once a person was to be asked about it. From then on no rule answers."""
    execution: Stoppable | None = None
    contents: tuple[bytes, ...] = ()
    """The bytes that its code returned, until its end is written down together with them."""
    stops: int | None = None
    """How often everything had been stopped when it was asked for; None for a call that asks nobody."""
    not_asked: str = ""
    """Why nobody was asked, where a rule or a grant stood for a person."""

    @property
    def has_begun(self) -> bool:
        """Whether it may have started, so that it needs an end."""
        return self.phase is not Phase.ASKING


class LiveRun(msgspec.Struct, eq=False):
    """One script that is carried out in this process."""

    stops: int
    """How often everything had been stopped when it began here."""
    is_stopped: bool = False
    """Whether everything was stopped since. It makes no further call."""
