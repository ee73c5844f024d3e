"""What a window knows of its conversation, and what every event changes in it.

It is the server's, copied. `take` says what has changed, as pairs of before and after, whether one event told
it or a whole state after a time away: drawing the changes draws everything, once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lastword.card import put_in, views
from lastword.display import first_units
from lastword.terminal.window import WindowEvent, in_our_shape, understood

ItemChange = tuple[views.Item | None, views.Item | None]
"""An item before and after. None before: it is new. None after: it is gone."""

# Changes that wait to be drawn, while a card has the screen to itself. More than this are drawn item by item.
MAX_PENDING = 1_000


class Pending:
    """What has changed and was not drawn yet, in its order. It holds no more than the replica does."""

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


class Replica:
    """The copy."""

    def __init__(self) -> None:
        self.session = self.window = ""
        self.items: dict[str, views.Item] = {}
        self.inbox: dict[str, views.InboxEntry] = {}
        self.missed: tuple[views.InboxMissed, ...] = ()
        """What waits for an answer in all programs, by call."""
        self.busy = False
        self.settings = views.Settings()
        self._boot: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the first state has come."""
        return self._boot is not None

    def waiting(self) -> list[views.CallItem]:
        """The calls of this conversation whose card waits, oldest first."""
        return [call for call in self._calls() if call.card is not None]

    def waiting_elsewhere(self) -> list[views.InboxEntry]:
        """The cards of other programs, in short."""
        return [entry for entry in self.inbox.values() if entry.session is not None]

    def asking(self) -> list[views.CallItem]:
        """The calls of this conversation whose tool asks something while it runs."""
        return [call for call in self._calls() if call.question is not None and call.session is None]

    def running(self) -> list[views.CallItem]:
        """The calls of this conversation that run and were not told to stop."""
        return [call for call in self._calls() if call.status == "running" and not call.stopping and not call.session]

    def sign_of_life(self) -> tuple[str, int] | None:
        """Another one after each thing that happened, while the model is waited for; None while it is not."""
        at_work = (
            item.status in ("waiting", "running") and not (isinstance(item, views.CallItem) and item.session)
            for item in self.items.values()
            if isinstance(item, views.CallItem | views.ScriptItem)
        )
        if not self.busy or any(at_work):
            return None
        last = next(reversed(self.items.values()), None)
        return ("", 0) if last is None else (last.id, len(last.text) if isinstance(last, views.MessageItem) else 0)

    def undone(self) -> set[str]:
        """The calls that were taken back."""
        return {call.id for call in self._calls() if call.undone_by is not None}

    def take(self, event: WindowEvent) -> list[ItemChange]:
        """Put an event into the replica, and say what it changed."""
        match event.kind:
            case "state":
                return self._take_state(event.boot, understood(event.data, views.PageState))
            case "item":
                return [self._put(understood(event.data, views.Item))]
            case "delta":
                return self._change(understood(event.data, views.ItemDelta))
            case "piece":
                return self._add(understood(event.data, views.TextPiece))
            case "gone":
                left = self.items.pop(understood(event.data, views.ItemGone).id, None)
                return [] if left is None else [(left, None)]
            case "inbox":
                change = understood(event.data, views.InboxChange)
                for gone in change.gone:
                    self.inbox.pop(gone.id, None)
                self.inbox |= {entry.id: entry for entry in change.put}
                self.missed = self.missed if change.missed is None else change.missed
            case "busy":
                self.busy = understood(event.data, views.BusyState).busy
            case "settings":
                self.settings = understood(event.data, views.Settings)
        return []

    def _calls(self) -> list[views.CallItem]:
        return [item for item in self.items.values() if isinstance(item, views.CallItem)]

    def _put(self, item: views.Item) -> ItemChange:
        before = self.items.get(item.id)
        self.items[item.id] = item
        return before, item

    def _change(self, delta: views.ItemDelta) -> list[ItemChange]:
        before = self.items.get(delta.id)
        if before is None:
            return []
        with in_our_shape():
            return [self._put(put_in(before, delta))]

    def _add(self, piece: views.TextPiece) -> list[ItemChange]:
        before = self.items.get(piece.id)
        if not isinstance(before, views.MessageItem):
            return []
        text = first_units(before.text, piece.keep) + piece.text
        return [self._put(msgspec.structs.replace(before, text=text))]

    def _take_state(self, boot: str, state: views.PageState) -> list[ItemChange]:
        is_same = boot == self._boot
        known = self.items if is_same else _recognised(self.items, state.items)
        kept = {item.id for item in state.items if is_same or not isinstance(item, views.MessageItem)}
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


def _may_vanish(item: views.Item) -> bool:
    return (isinstance(item, views.CallItem) and item.card is not None) or (
        isinstance(item, views.MessageItem) and item.open
    )


def _recognised(known: dict[str, views.Item], items: Sequence[views.Item]) -> dict[str, views.Item]:
    """What is known of the items of a server that was started again, by their new ids.

    Calls and runs keep their ids. Messages are counted anew: one with the same words by the same person is the same.
    """
    said = Counter((item.by, item.text) for item in known.values() if isinstance(item, views.MessageItem))
    found: dict[str, views.Item] = {}
    for item in items:
        if isinstance(item, views.MessageItem):
            if said[item.by, item.text] > 0:
                said[item.by, item.text] -= 1
                found[item.id] = item
        elif isinstance(before := known.get(item.id), type(item)):
            if isinstance(before, views.CallItem) and isinstance(item, views.CallItem):
                # The journal counts fewer reports than there were.
                before = msgspec.structs.replace(before, reported_so_far=item.reported_so_far)
            found[item.id] = before
    return found
