"""A call: a tool with arguments, asked for by somebody. And what is known of calls and runs while they live."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Protocol

import msgspec

from lastword.consent.decider import Person


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool with arguments, asked for by somebody."""

    id: str
    tool: str
    arguments: bytes
    """The only form in which arguments travel: one JSON object, its keys in the order in which they were written."""
    origin: str = ""


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


class LiveCall:
    """One call that is asked about or carried out in this process."""

    __slots__ = (
        "__weakref__",
        "cancelled_by",
        "contents",
        "execution",
        "is_cancelled",
        "not_asked",
        "phase",
        "put_to",
        "stops",
    )

    def __init__(self, phase: Phase = Phase.ASKING) -> None:
        self.phase = phase
        self.is_cancelled = False
        """Whether a person wants it stopped. Whatever step comes next finds out."""
        self.cancelled_by = PERSON
        """Whose wish that is, where it is one."""
        self.put_to: Person | None = None
        """Set once a person was to be asked about it. From then on no rule answers."""
        self.execution: Stoppable | None = None
        self.contents: tuple[bytes, ...] = ()
        """The bytes that its code returned, until its end is written down together with them."""
        self.stops: int | None = None
        """How often everything had been stopped when it was asked for; None for a call that asks nobody."""
        self.not_asked = ""
        """Why nobody was asked, where a rule or a grant stood for a person."""

    @property
    def has_begun(self) -> bool:
        """Whether it may have started, so that it needs an end."""
        return self.phase is not Phase.ASKING


class LiveRun:
    """One script that is carried out in this process."""

    __slots__ = ("is_stopped", "stops")

    def __init__(self, stops: int) -> None:
        self.stops = stops
        """How often everything had been stopped when it began here."""
        self.is_stopped = False
        """Whether everything was stopped since. It makes no further call."""
