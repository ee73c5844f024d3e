"""What a window knows of its conversation, and what every event changes in it.

The picture is the server's, copied. `take` says what has changed, as pairs of before and after, whether one event told
it or a whole state after a time away: drawing the changes draws everything, once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lastword.card import (
    BusyState,
    CallItem,
    InboxChange,
    InboxEntry,
    InboxMissed,
    Item,
    ItemDelta,
    ItemGone,
    MessageItem,
    PageState,
    ScriptItem,
    Settings,
    TextPiece,
    first_units,
    put_in,
)
from lastword.terminal.window import WindowEvent, in_our_shape, understood

ItemChange = tuple[Item | None, Item | None]
"""An item before and after. None before: it is new. None after: it is gone."""

# Changes that wait to be drawn, while a card has the screen to itself. More than this are drawn item by item.
MAX_PENDING = 1_000


class Pending:
    """What has changed and was not drawn yet, in its order. It holds no more than the picture does."""

    def __init__(self) -> None:
        self._changes: deque[ItemChange | str] = deque()

    def __iter__(self) -> Iterator[ItemChange | str]:
        return iter(self._changes)

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, changes: Iterable[ItemChange | str]) -> None:
        """Something has happened. What goes on about the same item is one change of it."""
        for change in changes:
            last = self._changes[-1] if self._changes else None
            if isinstance(change, tuple) and isinstance(last, tuple) and _id(last) == _id(change):
                self._changes[-1] = (last[0], change[1])
            else:
                self._changes.append(change)
        if len(self._changes) > MAX_PENDING:
            self._gather()

    def take(self) -> ItemChange | str:
        """The oldest, which is drawn now."""
        return self._changes.popleft()

    def _gather(self) -> None:
        """One change for each item, where its first one was."""
        gathered: dict[str, ItemChange | str] = {}
        for place, change in enumerate(self._changes):
            if isinstance(change, str):
                gathered[f"line {place}"] = change
                continue
            known = gathered.get(id := f"item {_id(change)}", change)
            assert isinstance(known, tuple)
            gathered[id] = (known[0], change[1])
        self._changes = deque(change for change in gathered.values() if change != (None, None))


class Picture:
    """The copy."""

    def __init__(self) -> None:
        self.session = self.window = ""
        self.items: dict[str, Item] = {}
        self.inbox: dict[str, InboxEntry] = {}
        self.missed: tuple[InboxMissed, ...] = ()
        """What waits for an answer in all programs, by call."""
        self.busy = False
        self.settings = Settings()
        self._boot: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the first state has come."""
        return self._boot is not None

    def waiting(self) -> list[CallItem]:
        """The calls of this conversation whose card waits, oldest first."""
        return [call for call in self._calls() if call.card is not None]

    def waiting_elsewhere(self) -> list[InboxEntry]:
        """The cards of other programs, in short."""
        return [entry for entry in self.inbox.values() if entry.session is not None]

    def asking(self) -> list[CallItem]:
        """The calls of this conversation whose tool asks something while it runs."""
        return [call for call in self._calls() if call.question is not None and call.session is None]

    def running(self) -> list[CallItem]:
        """The calls of this conversation that run and were not told to stop."""
        return [call for call in self._calls() if call.status == "running" and not call.stopping and not call.session]

    def sign_of_life(self) -> tuple[str, int] | None:
        """Another one after each thing that happened, while the model is waited for; None while it is not."""
        at_work = (
            item.status in ("waiting", "running") and not (isinstance(item, CallItem) and item.session)
            for item in self.items.values()
            if isinstance(item, CallItem | ScriptItem)
        )
        if not self.busy or any(at_work):
            return None
        last = next(reversed(self.items.values()), None)
        return ("", 0) if last is None else (last.id, len(last.text) if isinstance(last, MessageItem) else 0)

    def undone(self) -> set[str]:
        """The calls that were taken back."""
        return {call.id for call in self._calls() if call.undone_by is not None}

    def take(self, event: WindowEvent) -> list[ItemChange]:
        """Put an event into the picture, and say what it changed."""
        match event.kind:
            case "state":
                return self._take_state(event.boot, understood(event.data, PageState))
            case "item":
                return [self._put(understood(event.data, Item))]
            case "delta":
                return self._change(understood(event.data, ItemDelta))
            case "piece":
                return self._add(understood(event.data, TextPiece))
            case "gone":
                left = self.items.pop(understood(event.data, ItemGone).id, None)
                return [] if left is None else [(left, None)]
            case "inbox":
                change = understood(event.data, InboxChange)
                for gone in change.gone:
                    self.inbox.pop(gone.id, None)
                self.inbox |= {entry.id: entry for entry in change.put}
                self.missed = self.missed if change.missed is None else change.missed
            case "busy":
                self.busy = understood(event.data, BusyState).busy
            case "settings":
                self.settings = understood(event.data, Settings)
        return []

    def _calls(self) -> list[CallItem]:
        return [item for item in self.items.values() if isinstance(item, CallItem)]

    def _put(self, item: Item) -> ItemChange:
        before = self.items.get(item.id)
        self.items[item.id] = item
        return before, item

    def _change(self, delta: ItemDelta) -> list[ItemChange]:
        before = self.items.get(delta.id)
        if before is None:
            return []
        with in_our_shape():
            return [self._put(put_in(before, delta))]

    def _add(self, piece: TextPiece) -> list[ItemChange]:
        before = self.items.get(piece.id)
        if not isinstance(before, MessageItem):
            return []
        text = first_units(before.text, piece.keep) + piece.text
        return [self._put(msgspec.structs.replace(before, text=text))]

    def _take_state(self, boot: str, state: PageState) -> list[ItemChange]:
        is_same = boot == self._boot
        known = self.items if is_same else _recognised(self.items, state.items)
        kept = {item.id for item in state.items if is_same or not isinstance(item, MessageItem)}
        # What is not among them any more was taken away, unless it is only too old for a state.
        changes: list[ItemChange] = [(i, None) for i in self.items.values() if i.id not in kept and _may_vanish(i)]
        changes += [(known.get(item.id), item) for item in state.items]
        self.session, self.window, self._boot = state.session, state.window, boot
        self.busy, self.settings = state.busy, state.settings
        self.items = {item.id: item for item in state.items}
        self.inbox = {entry.id: entry for entry in state.inbox}
        self.missed = state.missed
        return [(before, after) for before, after in changes if before != after]


def _id(change: ItemChange) -> str:
    item = change[1] or change[0]
    return "" if item is None else item.id


def _may_vanish(item: Item) -> bool:
    return (isinstance(item, CallItem) and item.card is not None) or (isinstance(item, MessageItem) and item.open)


def _recognised(known: dict[str, Item], items: Sequence[Item]) -> dict[str, Item]:
    """What is known of the items of a server that was started again, by their new ids.

    Calls and runs keep their ids. Messages are counted anew: one with the same words by the same person is the same.
    """
    said = Counter((item.by, item.text) for item in known.values() if isinstance(item, MessageItem))
    found: dict[str, Item] = {}
    for item in items:
        if isinstance(item, MessageItem):
            if said[item.by, item.text] > 0:
                said[item.by, item.text] -= 1
                found[item.id] = item
        elif isinstance(before := known.get(item.id), type(item)):
            if isinstance(before, CallItem) and isinstance(item, CallItem):
                # The journal counts fewer reports than there were.
                before = msgspec.structs.replace(before, reported_so_far=item.reported_so_far)
            found[item.id] = before
    return found
