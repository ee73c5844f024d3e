"""What all windows show: the items in their order, bounded, and every change of them told once.

A window that puts what it is told into the state that it began with has, at every moment, exactly the items that are
here: also an item that has become too old is told to be gone. What does not live here: what the items mean
(conversation.py), and which windows there are (events.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof

from msgspec.structs import replace

from lastword.card import difference, views
from lastword.display import shortened
from lastword.web.events import Feed
from lastword.web.open_message import OpenMessage

# What a window shows. What is older is in the timeline and in the journal.
MAX_ITEMS = 400
# Of all texts together: what a window keeps, and what one that comes later is sent.
MAX_BYTES = 4_000_000
# Of one script: lines, their length together, and the length of one. The journal has all of them.
MAX_LINES = 500
MAX_PRINTED = 100_000
MAX_LINE = 10_000
# Of one script: its own text, and why it failed.
MAX_SCRIPT = 100_000
MAX_ERROR = 10_000
# Around the texts of an item: its struct, its names, its numbers.
ITEM_BYTES = 1_000


class SharedPicture:
    """The items, and the feed that tells of them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._items: dict[str, views.Item] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._open: OpenMessage | None = None

    @property
    def items(self) -> dict[str, views.Item]:
        """As they are now, in their order."""
        if self._open is not None:
            self._keep(self._open.item)
        return self._items

    @property
    def bytes_kept(self) -> int:
        """What the texts of the items take, about."""
        return self._bytes

    def begin(self, items: list[views.Item]) -> None:
        """Start with these, before there is a window."""
        for item in items:
            self._keep(item)
        self._evict()

    def begin_anew(self, items: list[views.Item]) -> None:
        """Start with these in place of what was shown. Questions of other programs stay."""
        self._open = None
        others = [
            item for item in self._items.values() if isinstance(item, views.CallItem) and item.session is not None
        ]
        self._items, self._sizes, self._bytes = {}, {}, 0
        self.begin([*items, *others])
        self.feed.begin_anew()

    def show(self, item: views.Item) -> None:
        """Put an item into the picture, or its new look."""
        before = self._items.get(item.id)
        delta = None if before is None else difference(before, item)
        self._keep(item)
        if delta is None:
            self.feed.tell("item", item)
        elif delta.fields or delta.splices:
            self.feed.tell("delta", delta)
        self._evict()

    def hide(self, id: str) -> None:
        """Take an item out of the picture."""
        if self._forget(id):
            self.feed.tell("gone", views.ItemGone(id))

    def printed(self, run_id: str, line: str) -> None:
        """A script wrote a line."""
        script = self._items.get(run_id)
        if not isinstance(script, views.ScriptItem):
            return
        lines = _newest((*script.lines, shortened(line, MAX_LINE)))
        self.show(replace(script, lines=lines, printed=script.printed + 1))

    # The message that is being written.

    def write(self, message: views.MessageItem) -> None:
        """Begin a message whose words come in pieces."""
        self.show(message)
        self._open = OpenMessage(message)

    @property
    def is_writing(self) -> bool:
        """Whether a message is being written."""
        return self._open is not None

    def add(self, words: str) -> None:
        """More words of the message that is being written."""
        assert self._open is not None, "a message was begun"
        piece = self._open.add(words)
        if piece is not None:
            self.feed.tell("piece", piece)

    def end_writing(self, *, keep: bool = True, used: str = "", tokens: int | None = None, reasoning: str = "") -> None:
        """The message that is being written ends. An empty one is not kept, nor one that does not count.

        An answer says which tools and how many tokens were used for it, and has beside it what the model thought first.
        """
        if self._open is None:
            return
        message, self._open = self._open, None
        whole = message.whole()
        if keep and whole.text:
            self._keep(message.item)  # As the windows have it, so that they are told what differs.
            self.show(replace(whole, used=used, tokens=tokens, reasoning=reasoning))
        else:
            self.hide(message.id)

    # Inside.

    def _keep(self, item: views.Item) -> None:
        size = _size(item)
        self._bytes += size - self._sizes.get(item.id, 0)
        self._sizes[item.id] = size
        self._items[item.id] = item

    def _forget(self, id: str) -> bool:
        self._bytes -= self._sizes.pop(id, 0)
        return self._items.pop(id, None) is not None

    def _evict(self) -> None:
        """Take out what is oldest, until the rest is within bounds. What goes on stays, and so does the newest."""
        if len(self._items) <= MAX_ITEMS and self._bytes <= MAX_BYTES:
            return
        newest = next(reversed(self._items))
        for id, item in list(self._items.items()):
            if len(self._items) <= MAX_ITEMS and self._bytes <= MAX_BYTES:
                return
            if id != newest and not goes_on(item):
                self.hide(id)


def printed_lines(output: Sequence[str]) -> tuple[str, ...]:
    """What is shown of everything that a script wrote."""
    return _newest(tuple(shortened(line, MAX_LINE) for line in output[-MAX_LINES:]))


def _newest(lines: tuple[str, ...]) -> tuple[str, ...]:
    lines = lines[-MAX_LINES:]
    too_long, first = sum(map(len, lines)) - MAX_PRINTED, 0
    while too_long > 0 and first < len(lines) - 1:
        too_long -= len(lines[first])
        first += 1
    return lines[first:]


def goes_on(item: views.Item) -> bool:
    """Whether it is not over: it waits, runs, or has to be decided about."""
    match item:
        case views.CallItem():
            return item.status in ("waiting", "running", "doubt")
        case views.ScriptItem():
            return item.status in ("running", "waiting")
    return item.open


def _size(item: views.Item) -> int:
    """What its texts take. A card is not counted: it waits, so it stays whatever its size is."""
    match item:
        case views.MessageItem():
            texts: tuple[str, ...] = (item.text,)
        case views.ScriptItem():
            texts = (item.text, item.error, *item.lines)
        case views.CallItem():
            said = [text for pair in item.arguments for text in pair]
            end = () if item.end is None else (item.end.message, item.end.own_words)
            texts = (*said, *(report.text for report in item.reports), *end)
    return ITEM_BYTES + sum(map(getsizeof, texts))
