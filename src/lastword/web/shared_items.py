"""What all windows show: the items in their order, bounded, and every change of them told once, as a numbered event.

A window that puts what it is told into the state that it began with has, at every moment, exactly the items that are
here: also an item that has become too old is told to be gone. It names the last event it has seen and gets exactly
those after it. When they are not all here any more, or the program was started again since, it gets the whole state
instead. What is kept is bounded by its bytes and shared by all windows: one that is slow costs no more than one that is
quick.

What does not live here: what the items mean (conversation.py), and the stream on which events are sent (endpoints.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import takewhile
from secrets import token_hex
from sys import getsizeof
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from lastword.card import difference, one_line, shortened, views, visible
from lastword.display import left_out, units
from lastword.log import trouble
from lastword.wire import write_comment, write_event, write_retry

# Enough for a laptop that was closed during a long answer. A window that was away longer gets the state.
MAX_KEPT_BYTES = 2_000_000
# What an event takes besides its own bytes.
EVENT_BYTES = 150
# A connection that says nothing for longer may be taken for dead by whatever stands between.
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = write_comment("still here")
# What the browser waits before it comes back.
RETRY_MILLISECONDS = 500

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
# What a window shows of one message. The server's conversation has all of it.
MAX_MESSAGE = 100_000
# Marks can change for as long as a word or a line is not complete; a line longer than this counts as complete.
MAX_OPEN_LINE = 2_000

_encode = msgspec.json.Encoder().encode


class Feed:
    """What happened since the program began, as far as it is kept."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._boot = token_hex(8)
        """Numbers of another run of the program mean nothing here."""
        self._kept: deque[bytes] = deque()
        """The newest events, without a gap: the last of them has the number `_last`."""
        self.bytes_kept = 0
        """What is held for windows that are behind."""
        self._max_bytes = max_kept_bytes
        self._last = 0
        self._more = asyncio.Event()
        self._closed = False

    def tell(self, kind: str, data: Any) -> None:
        """Let every window know."""
        self._last += 1
        event = self._event(self._last, kind, data)
        self._kept.append(event)
        self.bytes_kept += len(event) + EVENT_BYTES
        while self.bytes_kept > self._max_bytes:
            self.bytes_kept -= len(self._kept.popleft()) + EVENT_BYTES
        self._wake()

    def begin_anew(self) -> None:
        """Everything is another: every window gets the state, and nothing of what was told before."""
        self._last += 1
        self._kept.clear()
        self.bytes_kept = 0
        self._wake()

    @property
    def last_id(self) -> str:
        """The id of the newest event. A window that has seen it has seen everything until now."""
        return f"{self._boot}-{self._last}"

    def close(self) -> None:
        """End every stream: the program is about to stop."""
        self._closed = True
        self._wake()

    async def follow(
        self, last_seen: str | None, state: Callable[[], Any], heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> AsyncGenerator[bytes]:
        """Everything after the event that was seen last, as it comes; the state first where there is a gap."""
        yield write_retry(RETRY_MILLISECONDS)
        place = self._place(last_seen)
        while not self._closed:
            if place is None or place < self._last - len(self._kept):
                # Taken and numbered in one breath: what happens from now on comes after it.
                place = self._last
                yield self._event(place, "state", state())
            elif place < self._last:
                # One at a time: while it is sent, others may come, and this window may fall behind.
                event = self._kept[place - self._last]
                place += 1
                yield event
            else:
                more = self._more
                try:
                    async with asyncio.timeout(heartbeat_seconds):
                        await more.wait()
                except TimeoutError:
                    yield HEARTBEAT

    def _place(self, last_seen: str | None) -> int | None:
        boot, _, number = (last_seen or "").partition("-")
        if boot != self._boot or not (number.isascii() and number.isdigit()):
            return None
        place = int(number)
        return place if self._last - len(self._kept) <= place <= self._last else None

    def _event(self, number: int, kind: str, data: Any) -> bytes:
        return write_event(_encode(data), kind=kind, id=f"{self._boot}-{number}")

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


class SharedItems:
    """The items, and the feed that tells of them."""

    def __init__(self, feed: Feed, clock: Callable[[], float] = time.time) -> None:
        self.feed = feed
        self._clock = clock
        self._messages = 0
        self._items: dict[str, views.Item] = {}
        self._sizes: dict[str, int] = {}
        self.bytes_kept = 0
        """What the texts of the items take, about."""
        self._open: OpenMessage | None = None

    @property
    def items(self) -> dict[str, views.Item]:
        """As they are now, in their order."""
        if self._open is not None:
            self._keep(self._open.item)
        return self._items

    def calls(self) -> list[views.CallItem]:
        """Those that are calls."""
        return [item for item in self._items.values() if isinstance(item, views.CallItem)]

    def call(self, call_id: str) -> views.CallItem | None:
        """The call of this id; None where no such call is shown."""
        item = self._items.get(call_id)
        return item if isinstance(item, views.CallItem) else None

    def begin(self, items: list[views.Item]) -> None:
        """Start with these, before there is a window."""
        for item in items:
            self._keep(item)
        self._evict()

    def begin_anew(self, items: list[views.Item]) -> None:
        """Start with these in place of what was shown. Questions of other programs stay."""
        self._open = None
        others = [call for call in self.calls() if call.session is not None]
        self._items, self._sizes, self.bytes_kept = {}, {}, 0
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
        self.bytes_kept -= self._sizes.pop(id, 0)
        if self._items.pop(id, None) is not None:
            self.feed.tell("gone", views.ItemGone(id))

    def printed(self, run_id: str, line: str) -> None:
        """A script wrote a line."""
        script = self._items.get(run_id)
        if not isinstance(script, views.ScriptItem):
            return
        lines = _newest((*script.lines, shortened(line, MAX_LINE)))
        self.show(replace(script, lines=lines, printed=script.printed + 1))

    # Messages.

    def note(self, text: str, *, problem: bool = False) -> None:
        """A line of our own in the conversation."""
        self.end_writing()
        self.say("lastword", text, problem=problem)

    def tell_trouble(self, what: str, problem: Exception) -> None:
        """A line about something that broke. The log has the rest."""
        self.note(trouble(what, problem), problem=True)

    def say(self, by: Literal["you", "lastword"], text: str, **more: Any) -> str:
        """A message that is complete; gives back its id."""
        self._messages += 1
        message = views.MessageItem(id=f"m{self._messages}", by=by, text=text, at=self._clock(), **more)
        self.show(message)
        return message.id

    def write(self, words: str) -> None:
        """More words of the assistant's, in the message that is being written or in a new one."""
        if self._open is None:
            self._messages += 1
            begun = views.MessageItem(id=f"m{self._messages}", by="assistant", at=self._clock(), open=True)
            self.show(begun)
            self._open = OpenMessage(begun)
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
        self.bytes_kept += size - self._sizes.get(item.id, 0)
        self._sizes[item.id] = size
        self._items[item.id] = item

    def _evict(self) -> None:
        """Take out what is oldest, until the rest is within bounds. What goes on stays, and so does the newest."""
        if len(self._items) <= MAX_ITEMS and self.bytes_kept <= MAX_BYTES:
            return
        newest = next(reversed(self._items))
        for id, item in list(self._items.items()):
            if len(self._items) <= MAX_ITEMS and self.bytes_kept <= MAX_BYTES:
                return
            if id != newest and not goes_on(item):
                self.hide(id)


def script_begun(id: str, name: str | None, text: str, at: float) -> views.ScriptItem:
    """A script that is being carried out."""
    shown_name = one_line(name) if name else None
    return views.ScriptItem(id=id, name=shown_name, text=shortened(text, MAX_SCRIPT), at=at)


def script_ended(script: views.ScriptItem, status: views.ScriptStatus, error: str | None) -> views.ScriptItem:
    """The same when it is over."""
    return replace(script, status=status, error=shortened(error or "", MAX_ERROR))


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


class OpenMessage:
    """A message that is being written. Its last line is marked anew with every piece, and sent as far as it changed."""

    def __init__(self, item: views.MessageItem) -> None:
        self._item = item
        self._raw: list[str] = []
        """What is shown of the message, as it came."""
        self._length = 0
        """Of the whole message."""
        self._line = self._tail = ""
        """The unfinished last line, without and with its marks."""
        self._head: list[str] = []
        """The lines before it, with their marks."""
        self._head_units = 0

    @property
    def item(self) -> views.MessageItem:
        """The message so far."""
        return replace(self._item, text="".join(self._head) + self._tail)

    @property
    def id(self) -> str:
        """That of the message."""
        return self._item.id

    def add(self, piece: str) -> views.TextPiece | None:
        """Take the next words; gives back what changes by them, which is nothing once enough is shown."""
        room = MAX_MESSAGE - self._length
        self._length += len(piece)
        if room <= 0:
            return None
        piece = piece[:room]
        self._raw.append(piece)
        before, start = self._tail, self._head_units
        self._line += piece
        done = self._complete()
        self._tail = visible(self._line)
        after = done + self._tail
        # Nearly always all of it, so that only the new words travel.
        same = before if after.startswith(before) else _common_start(before, after)
        return views.TextPiece(self.id, start + units(same), after[len(same) :])

    def whole(self) -> views.MessageItem:
        """The message, now that all of it is here."""
        text, hidden = "".join(self._raw), self._length - MAX_MESSAGE
        shown = visible(text.strip("\n")) if hidden <= 0 else visible(text.lstrip("\n")) + left_out(hidden)
        return replace(self._item, open=False, text=shown)

    def _complete(self) -> str:
        """Move what is complete of the last line to the lines before it; gives back what was moved, with marks."""
        done, newline, rest = self._line.rpartition("\n")
        cut = len(done) + len(newline)
        if len(rest) > MAX_OPEN_LINE:
            # Between two words if there are any. What is one long word is cut, or it would be marked for ever.
            cut += rest.rfind(" ", 1) if rest.rfind(" ", 1) > 0 else len(rest)
        if not cut:
            return ""
        complete, self._line = self._line[:cut], self._line[cut:]
        marked = visible(complete)
        self._head.append(marked)
        self._head_units += units(marked)
        return marked


def _common_start(one: str, other: str) -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return one[: sum(1 for _ in pairs)]
