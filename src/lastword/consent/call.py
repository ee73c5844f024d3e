"""A call: a tool with arguments, asked for by somebody. And while it lives, the phase that it is in."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Protocol

import msgspec


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


class Stoppable(Protocol):
    """The implementation that a call is carried out by."""

    cancelling: bool
    is_over: bool
    loop: asyncio.AbstractEventLoop

    def cancel(self) -> None: ...


class LiveCall:
    """One call that is asked about or carried out in this process."""

    __slots__ = ("__weakref__", "execution", "is_cancelled", "phase")

    def __init__(self, phase: Phase = Phase.ASKING) -> None:
        self.phase = phase
        self.is_cancelled = False
        """Whether a person wants it stopped. Whatever step comes next finds out."""
        self.execution: Stoppable | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it may have started, so that it needs an end."""
        return self.phase is not Phase.ASKING
