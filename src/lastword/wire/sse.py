"""Server-sent events: the one writer and the one reader of all streams, from the model's server to the page.

As the HTML standard has them, but for what nobody here sends: a line ends with LF or CRLF, never with a lone CR; an
event without data is none, and an id is that of the event it stands in; and whoever writes sends data without line
breaks, which encoded JSON is. A stream may be cut into pieces anywhere, also inside a character.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

import msgspec

from lastword.errors import LastWordError

MEDIA = b"text/event-stream"

# As numbers: looking for a byte is many times faster than looking for bytes of length one.
LF, CR = b"\n\r"


class EventTooLarge(LastWordError):
    """An event does not end within the size that its reader accepts."""


class SentEvent(msgspec.Struct, frozen=True):
    """An event that carries data."""

    data: bytes
    kind: str = ""
    id: str = ""


def write_event(data: bytes, *, kind: str = "", id: str = "") -> bytes:
    """An event as it travels."""
    assert LF not in data, "encoded JSON has no line breaks"
    assert CR not in data, "encoded JSON has no line breaks"
    if not kind and not id:
        return b"data: %b\n\n" % data
    if not id:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), kind.encode(), data)


def write_comment(words: str) -> bytes:
    """Something for whatever stands between the two ends; a reader skips it."""
    return b": %b\n\n" % words.encode()


def write_retry(milliseconds: int) -> bytes:
    """What a browser is to wait before it connects again."""
    return b"retry: %d\n\n" % milliseconds


class EventReader:
    """Puts events together from the pieces of a stream."""

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._rest: list[bytes] = []
        """The beginning of a line whose end has not come, in pieces: put together each time, a long line that comes
        byte by byte would be copied once for every byte."""
        self._data: list[bytes] = []
        self._kind = self._id = ""
        self._size = 0
        """Of the lines with data so far, and of the one that has begun: those with nothing in them take memory too."""

    def feed(self, piece: bytes) -> list[SentEvent]:
        """Take the next piece; gives back the events that end in it."""
        found: list[SentEvent] = []
        if LF not in piece:
            self._rest.append(piece)
            self._size += len(piece)
            self._check_size()
            return found
        lines = piece.split(b"\n")
        if self._rest:
            self._size -= sum(map(len, self._rest))
            lines[0] = b"".join([*self._rest, lines[0]])
        rest = lines.pop()
        for line in lines:
            if line.startswith(b"data: "):
                self._data.append(line.removesuffix(b"\r")[6:])
                self._size += len(line)
            elif line and line != b"\r":
                self._take_field(line.removesuffix(b"\r"))
            else:
                if data := b"\n".join(self._data):
                    found.append(SentEvent(data, self._kind, self._id))
                self._data.clear()
                self._kind = self._id = ""
                self._size = 0
        self._rest = [rest] if rest else []
        self._size += len(rest)
        self._check_size()
        return found

    def end(self) -> list[SentEvent]:
        """The event that the end of the stream cut short, as far as it came. The standard drops it."""
        return self.feed(b"\n\n")

    def _check_size(self) -> None:
        if self._size > self._max_event_bytes:
            raise EventTooLarge(f"an event of more than {self._max_event_bytes} bytes")

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(line)
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")


async def read_events(pieces: AsyncIterable[bytes], max_event_bytes: int) -> AsyncGenerator[SentEvent]:
    """The events of a stream as they come, without one that its end cut short."""
    reader = EventReader(max_event_bytes)
    async for piece in pieces:
        for event in reader.feed(piece):
            yield event
