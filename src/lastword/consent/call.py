"""A call, the user's key, and what is known of calls and runs while they live. Data only."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import msgspec

from lastword.errors import LastWordError

if TYPE_CHECKING:
    import asyncio

    from lastword.consent.deciders import Person


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


# Who cancels a call, as long as nothing else is known: for a sentence.
PERSON = "the person"


class LiveCall(msgspec.Struct, weakref=True, eq=False):
    """One call that is asked about or carried out in this process."""

    class Stoppable(Protocol):
        """The implementation that a call is carried out by."""

        cancelling: bool
        is_over: bool
        loop: asyncio.AbstractEventLoop

        @property
        def is_working(self) -> bool: ...

        def cancel(self) -> None: ...

    ACTING: ClassVar = (Phase.STARTING, Phase.RUNNING)
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
