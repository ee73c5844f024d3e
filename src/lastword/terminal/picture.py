"""What a window knows of its conversation, and what every event changes in it.

The picture is the server's, copied. `take` says what has changed, as pairs of before and after, whether one event told
it or a whole state after a time away: drawing the changes draws everything, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from lastword.card.items import BusyState, CallItem, Item, ItemGone, MessageItem, PageState, Settings, TextPiece
from lastword.card.units import first_units
from lastword.terminal.window import WindowEvent, understood

ItemChange = tuple[Item | None, Item | None]
"""An item before and after. None before: it is new. None after: it is gone."""


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

    def waiting(self) -> list[CallItem]:
        """The calls of this conversation whose card waits, oldest first."""
        return [call for call in self._calls() if call.card is not None and call.session is None]

    def waiting_elsewhere(self) -> list[CallItem]:
        """Those of other programs."""
        return [call for call in self._calls() if call.card is not None and call.session is not None]

    def running(self) -> list[CallItem]:
        """The calls of this conversation that run and were not told to stop."""
        return [call for call in self._calls() if call.status == "running" and not call.stopping and not call.session]

    def take(self, event: WindowEvent) -> list[ItemChange]:
        """Put an event into the picture, and say what it changed."""
        match event.kind:
            case "state":
                return self._take_state(event.boot, understood(event.data, PageState))
            case "item":
                return [self._put(understood(event.data, Item))]
            case "piece":
                return self._add(understood(event.data, TextPiece))
            case "gone":
                gone = self.items.pop(understood(event.data, ItemGone).id, None)
                return [] if gone is None else [(gone, None)]
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
        return [(before, after) for before, after in changes if before != after]


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
