"""Server-sent events: what one end writes the other reads, however the network cuts it."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.wire.sse import (
    EventReader,
    EventTooLarge,
    SentEvent,
    read_events,
    write_comment,
    write_event,
    write_retry,
)
from tries import tries

PLENTY = 1_000_000

names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8).filter(
    lambda name: not name.startswith(" ")
)
payloads = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
)
events = st.builds(SentEvent, payloads, names, names)


def read(*pieces: bytes, max_event_bytes: int = PLENTY) -> list[SentEvent]:
    reader = EventReader(max_event_bytes)
    return [event for piece in pieces for event in reader.feed(piece)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(ends)]


@tries()
@given(st.lists(events, max_size=5), st.lists(st.integers(0, 10_000), max_size=12), st.booleans())
def test_what_was_written_is_read_wherever_it_is_cut(sent, places, with_noise):
    """Writer and reader are twins: a stream that the network cuts inside a name, a character or a line end is whole."""
    noise = write_comment("still here") + write_retry(500) if with_noise else b""
    stream = b"".join(noise + write_event(event.data, kind=event.kind, id=event.id) for event in sent)
    assert read(*cut(stream, places)) == sent


@tries()
@given(st.lists(events, max_size=4), st.lists(st.integers(0, 10_000), max_size=12))
def test_lines_may_end_as_other_servers_end_them(sent, places):
    """A model's server on another system ends its lines with CRLF; a piece may end between the two."""
    written = b"".join(write_event(event.data, kind=event.kind, id=event.id) for event in sent)
    assert read(*cut(written.replace(b"\n", b"\r\n"), places)) == sent


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data:1\n\n", [b"1"]),
        (b"data: 1\ndata: 2\n\n", [b"1\n2"]),
        (b"data\n\n", []),
        (b"data:\n\ndata: 1\n\n", [b"1"]),
        (b": data: 1\n\n", []),
        (b"datum: 1\n\n", []),
        (b"event: kind\nid: 7\n\ndata: 1\n\n", [b"1"]),
        (b"data: 1\n", []),
    ],
    ids=["no space", "two lines", "no colon", "empty", "comment", "other field", "event without data", "unfinished"],
)
def test_forms_that_others_write_are_read_as_the_standard_says(stream, data):
    """Our writer uses one form of many; the model's server is somebody else's."""
    assert [event.data for event in read(stream)] == data


def test_a_kind_and_an_id_end_with_their_event():
    """A window that came back would otherwise take a later event for one it has seen."""
    assert read(b"id: 1\nevent: a\ndata: 1\n\ndata: 2\n\n") == [SentEvent(b"1", "a", "1"), SentEvent(b"2")]
    assert read(b"id: 1\nevent: a\n\ndata: 2\n\n") == [SentEvent(b"2")]


def test_one_space_before_a_value_belongs_to_the_form_and_all_others_to_the_value():
    """The standard says so, and a value that changes on the way is another value."""
    assert read(b"id:  1 \nevent:a \ndata:  {} \n\n") == [SentEvent(b" {} ", "a ", " 1 ")]


def test_an_event_that_the_end_cut_short_is_there_for_whoever_wants_it():
    """Some servers leave out the last blank line, or even the last line break, behind a complete answer."""
    for rest in (b"data: [DONE]", b"data: [DONE]\n"):
        reader = EventReader(PLENTY)
        assert reader.feed(b"data: 1\n\n" + rest) == [SentEvent(b"1")]
        assert reader.end() == [SentEvent(b"[DONE]")]
    assert EventReader(PLENTY).end() == []


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: 123456789\n", b"data:\n" * 10], ids=["line", "lines", "nothing"])
def test_an_event_that_never_ends_is_refused(piece):
    """Whoever writes decides when an event ends. One that only grows must not take all the memory of its reader."""
    with pytest.raises(EventTooLarge, match="an event of more than 1000 bytes"):
        read(*[piece] * 1000, max_event_bytes=1000)


def test_a_long_line_may_come_byte_by_byte():
    """Put together anew with every byte, half a megabyte is copied for a minute, and nobody is served."""
    line = b"data: " + b"x" * 500_000 + b"\n\n"
    reader = EventReader(PLENTY)
    found = [event for byte in line for event in reader.feed(bytes([byte]))]
    assert [len(event.data) for event in found] == [500_000]


def test_the_limit_is_on_one_event_and_not_on_the_stream():
    """A page that is open for a week reads more than any event may hold."""
    assert len(read(*[b"data: " + b"x" * 90 + b"\n\n"] * 1000, max_event_bytes=100)) == 1000


async def test_a_stream_is_read_as_it_comes():
    """An event is there with the piece that ends it, before the next one arrives."""
    seen: list[SentEvent] = []

    async def pieces():
        yield b"data: 1\n\ndata:"
        assert seen == [SentEvent(b"1")]
        yield b" 2\n\ndata: 3"
        assert seen == [SentEvent(b"1"), SentEvent(b"2")]

    async for event in read_events(pieces(), PLENTY):
        seen.append(event)
    assert seen == [SentEvent(b"1"), SentEvent(b"2")], "what the end cut short is no event"


@pytest.mark.parametrize("data", [b"1\n2", b"1\r2"])
def test_data_with_a_line_break_is_not_written(data):
    """It would end the line, and what follows would be a field of the sender's choice."""
    with pytest.raises(AssertionError):
        write_event(data)
