"""What a window knows of its conversation, and what every event changes in it.

The picture is the server's, copied. `take` says what has changed, as pairs of before and after, whether one event told
it or a whole state after a time away: so whoever draws the changes has drawn everything, once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec

from lastword.consent.outcome import Kind
from lastword.terminal.window import WindowEvent


class Card(msgspec.Struct, frozen=True):
    """That a question waits, and which."""

    digest: str


class Reply(msgspec.Struct, frozen=True):
    """What was answered, by whom."""

    how: Literal["allowed", "edited", "denied", "closed", "auto"]
    by: str
    reason: str = ""


class End(msgspec.Struct, frozen=True):
    """How a call ended."""

    kind: Kind
    message: str
    success: bool


class Report(msgspec.Struct, frozen=True):
    """A line of progress."""

    id: str | None
    text: str
    fraction: float | None
    number: int


class Call(msgspec.Struct, frozen=True, tag_field="kind", tag="call"):
    """A call of a tool."""

    id: str
    status: Literal["waiting", "running", "ended", "doubt", "left"]
    tool: str = ""
    name: str = ""
    session: str | None = None
    """Of a call that another program made."""
    card: Card | None = None
    reply: Reply | None = None
    reports: tuple[Report, ...] = ()
    reported_so_far: int = 0
    stopping: bool = False
    end: End | None = None
    changed: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True, tag_field="kind", tag="run"):
    """A script."""

    id: str
    name: str = ""
    lines: tuple[str, ...] = ()
    printed: int = 0


class Message(msgspec.Struct, frozen=True, tag_field="kind", tag="message"):
    """Words."""

    id: str
    by: Literal["you", "assistant", "lastword"]
    text: str = ""
    open: bool = False
    window: str = ""
    problem: bool = False


Item = Call | Run | Message
Change = tuple[Item | None, Item | None]
"""An item before and after. None before: it is new. None after: it is gone."""


class Tool(msgspec.Struct, frozen=True):
    """A tool that the model may ask for."""

    tool: str
    about: str
    asks: bool
    parameters: tuple[str, ...]
    required: tuple[str, ...]


class Way(msgspec.Struct, frozen=True):
    """A preset to work under."""

    name: str
    auto_approve: bool
    protocol: str
    model: str

    def mark(self) -> str:
        """Whether it auto-approves, in two words: before every line of the person, where it stays while a turn runs."""
        return f"{self.name}, {'AUTO-APPROVES' if self.auto_approve else 'asks'}"

    def status(self) -> str:
        """The same, longer."""
        keys = "AUTO-APPROVES what tools allow" if self.auto_approve else "asks before what needs approval"
        return f"preset {self.name}: {keys}"


class Settings(msgspec.Struct, frozen=True):
    """How the assistant works now."""

    model: str = ""
    rehearsal: bool = False
    preset: str = ""
    presets: tuple[Way, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def way(self) -> Way:
        """The preset that is worked under."""
        return next((way for way in self.presets if way.name == self.preset), Way(self.preset, False, "", ""))


class State(msgspec.Struct, frozen=True):
    """Everything, as a window gets it that has just come."""

    session: str
    items: tuple[Item, ...]
    busy: bool
    settings: Settings
    window: str


class Picture:
    """The copy."""

    def __init__(self) -> None:
        self.session = self.window = ""
        self.items: dict[str, Item] = {}
        self.busy = False
        self.settings = Settings()
        self._boot: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the first state has come."""
        return self._boot is not None

    def waiting(self) -> list[Call]:
        """The calls of this conversation whose card waits, oldest first."""
        return [call for call in self._calls() if call.card is not None and call.session is None]

    def waiting_elsewhere(self) -> list[Call]:
        """Those of other programs."""
        return [call for call in self._calls() if call.card is not None and call.session is not None]

    def running(self) -> list[Call]:
        """The calls of this conversation that run and were not told to stop."""
        return [call for call in self._calls() if call.status == "running" and not call.stopping and not call.session]

    def take(self, event: WindowEvent) -> list[Change]:
        """Put an event into the picture, and say what it changed."""
        match event.kind:
            case "state":
                return self._take_state(event.boot, msgspec.convert(event.data, State))
            case "item":
                return [self._put(msgspec.convert(event.data, Item))]
            case "piece":
                return self._piece(event.data)
            case "gone":
                gone = self.items.pop(event.data["id"], None)
                return [] if gone is None else [(gone, None)]
            case "busy":
                self.busy = bool(event.data["busy"])
            case "settings":
                self.settings = msgspec.convert(event.data, Settings)
        return []

    def _calls(self) -> list[Call]:
        return [item for item in self.items.values() if isinstance(item, Call)]

    def _put(self, item: Item) -> Change:
        before = self.items.get(item.id)
        self.items[item.id] = item
        return before, item

    def _piece(self, data: dict[str, Any]) -> list[Change]:
        before = self.items.get(data["id"])
        if not isinstance(before, Message):
            return []
        # Counted as browsers count, in units of sixteen bits.
        kept = before.text.encode("utf-16-le", "surrogatepass")[: 2 * data["keep"]].decode("utf-16-le", "surrogatepass")
        return [self._put(msgspec.structs.replace(before, text=kept + data["text"]))]

    def _take_state(self, boot: str, state: State) -> list[Change]:
        is_same = boot == self._boot
        known = self.items if is_same else _recognised(self.items, state.items)
        kept = {item.id for item in state.items if is_same or not isinstance(item, Message)}
        # What is not among them any more was taken away, unless it is only too old for a state.
        changes: list[Change] = [(i, None) for i in self.items.values() if i.id not in kept and _may_vanish(i)]
        changes += [(known.get(item.id), item) for item in state.items]
        self.session, self.window, self._boot = state.session, state.window, boot
        self.busy, self.settings = state.busy, state.settings
        self.items = {item.id: item for item in state.items}
        return [(before, after) for before, after in changes if before != after]


def _may_vanish(item: Item) -> bool:
    return (isinstance(item, Call) and item.card is not None) or (isinstance(item, Message) and item.open)


def _recognised(known: dict[str, Item], items: tuple[Item, ...]) -> dict[str, Item]:
    """What is known of the items of a server that was started again, by their new ids.

    Calls and runs keep their ids. Messages are counted anew: one with the same words by the same person is the same.
    """
    said = Counter((item.by, item.text) for item in known.values() if isinstance(item, Message))
    found: dict[str, Item] = {}
    for item in items:
        if isinstance(item, Message):
            if said[item.by, item.text] > 0:
                said[item.by, item.text] -= 1
                found[item.id] = item
        elif isinstance(before := known.get(item.id), type(item)):
            if isinstance(before, Call) and isinstance(item, Call):
                # The journal counts fewer reports than there were.
                before = msgspec.structs.replace(before, reported_so_far=item.reported_so_far)
            found[item.id] = before
    return found
