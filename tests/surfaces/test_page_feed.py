"""What windows are told while something happens: only what is new, within bytes, and the same picture for everybody."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.card import difference, put_in, views
from lastword.errors import LastWordError
from lastword.store import MemoryStore
from lastword.terminal.transcript import MAX_PENDING, Pending
from lastword.terminal.window import Replica, WindowEvent
from lastword.web import shared_items
from lastword.web.call_item import CallItemBuilder
from lastword.web.history import FIRST_ITEMS
from lastword.web.shared_items import EVENT_BYTES, MAX_KEPT_BYTES, Feed, SharedItems
from lastword.wire import EventReader
from requirements import requirement
from surfaces.windows import PATIENCE_SECONDS, House

VECTORS = Path(__file__).parents[2] / "src" / "lastword" / "web" / "ui" / "tests" / "pictures.json"

WORDS = st.text(st.sampled_from("ab \n\n аΑ1О\u202e\u0301😀‹\t"), max_size=30)
IDS = st.sampled_from(["c3", "r1", "r2", "c1", "c2"])
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), WORDS),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("run"), IDS, WORDS),
        st.tuples(st.just("print"), IDS, WORDS),
        st.tuples(st.just("over"), IDS, WORDS),
        st.tuples(st.just("start"), IDS),
        st.tuples(st.just("report"), IDS, st.none() | WORDS, WORDS),
        st.tuples(st.just("hide"), IDS),
        st.tuples(st.just("note"), WORDS),
    ),
    max_size=40,
)


class Windows:
    """What is shown, and the stream of its events as it travels."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.feed = Feed(max_kept_bytes)
        self.shown = SharedItems(self.feed, clock=lambda: 0.0)
        self.notes = 0

    def state(self) -> dict[str, Any]:
        """What a window that comes now is sent."""
        items = msgspec.to_builtins(list(self.shown.items.values()))
        return {"session": "s", "items": items, "busy": False, "settings": {}, "inbox": [], "token": "", "window": ""}

    def happen(self, what: Any) -> None:
        match what:
            case ("say", words):
                self.shown.write(words)
            case ("end", keep):
                self.shown.end_writing(keep=keep)
            case ("run", id, text):
                self.shown.show(views.ScriptItem(id=id, text=text))
            case ("print", id, line):
                self.shown.printed(id, line)
            case ("over", id, error):
                known = self.shown.items.get(id)
                if isinstance(known, views.ScriptItem):
                    self.shown.show(msgspec.structs.replace(known, status="failed", error=error))
            case ("start" | "report", id, *more):
                known = self.shown.items.get(id)
                builder = CallItemBuilder(known) if isinstance(known, views.CallItem) else CallItemBuilder.begin(id)
                if more:
                    builder.reported(more[0], more[1], 0.5)
                else:
                    builder.started("t", {"a": 1}, "", 1.0)
                self.shown.show(builder.item)
            case ("hide", id):
                self.shown.hide(id)
            case ("note", text):
                self.notes += 1
                self.shown.show(views.MessageItem(id=f"n{self.notes}", by="lastword", text=text))


class Follower:
    """A window: it reads the stream, and puts what it is told into its picture."""

    def __init__(self, windows: Windows) -> None:
        self._following = windows.feed.follow(None, windows.state)
        self._windows = windows
        self._reader = EventReader(100_000_000)
        self._last = ""
        self.picture = Replica()
        self.states = 0
        self.bytes_read = 0

    async def catch_up(self) -> None:
        while self._last != self._windows.feed.last_id:
            await self.read()

    async def read(self) -> None:
        piece = await anext(self._following)
        self.bytes_read += len(piece)
        for event in self._reader.feed(piece):
            self._last = event.id
            self.states += event.kind == "state"
            self.picture.take(WindowEvent(event.id, event.kind, json.loads(event.data)))

    def items(self) -> Any:
        return msgspec.to_builtins(list(self.picture.items.values()))


@requirement("TEAM-9")
@given(happenings=HAPPENINGS, looks=st.sets(st.integers(0, 40)), tight=st.booleans())
@settings(max_examples=200)
def test_what_is_told_adds_up_to_what_is_there(happenings, looks, tight):
    """Deltas save memory, and may save nothing of the truth: also for a window that fell behind in between."""

    async def live() -> None:
        windows = Windows(max_kept_bytes=600 if tight else MAX_KEPT_BYTES)
        quick, slow = Follower(windows), Follower(windows)
        for number, happening in enumerate(happenings):
            windows.happen(happening)
            await quick.catch_up()
            assert quick.items() == windows.state()["items"]
            if number in looks:
                await slow.catch_up()
                assert slow.items() == windows.state()["items"]
        await slow.catch_up()
        assert slow.items() == windows.state()["items"]
        assert tight or quick.states <= 1

    with pytest.MonkeyPatch.context() as patch:
        # Small bounds, so that few events go over each of them.
        patch.setattr(shared_items, "MAX_ITEMS", 5)
        patch.setattr(shared_items, "MAX_BYTES", 8_000)
        patch.setattr(shared_items, "MAX_LINES", 3)
        patch.setattr(shared_items, "MAX_PRINTED", 40)
        patch.setattr(shared_items, "MAX_LINE", 20)
        patch.setattr(shared_items, "MAX_MESSAGE", 60)
        patch.setattr(shared_items, "MAX_OPEN_LINE", 10)
        asyncio.run(live())


LISTS = st.lists(st.integers(0, 3).map(str), max_size=6).map(tuple)


@given(before=LISTS, after=LISTS, same=st.booleans())
def test_a_delta_turns_one_item_into_the_other(before, after, same):
    """Whatever happened to a list between two looks: cut, filled, shifted, changed in the middle, emptied."""
    old = views.ScriptItem(id="r", lines=before, printed=3)
    new = views.ScriptItem(id="r", lines=(*before[1:], *after) if same else after, status="done")
    delta = difference(old, new)
    assert delta is not None
    sent = msgspec.json.decode(msgspec.json.encode(delta), type=views.ItemDelta)
    assert put_in(old, sent) == new


def test_another_kind_of_item_is_told_whole():
    """There is nothing to be new about."""
    assert difference(views.ScriptItem(id="a"), views.MessageItem(id="a", by="you")) is None


@pytest.mark.parametrize(
    "delta",
    [
        views.ItemDelta("r", {"lines": 1}),
        views.ItemDelta("r", {"nonsense": 1}),
        views.ItemDelta("r", {"id": "another"}),
        views.ItemDelta("r", {}, (views.Splice("text", 0, 0, ("a",)),)),
        views.ItemDelta("r", {}, (views.Splice("lines", 0, 0, (1,)),)),
        views.ItemDelta("r", {}, (views.Splice("nonsense", 0, 0, ()),)),
    ],
)
def test_a_delta_that_does_not_fit_is_refused_in_words(delta):
    """A server of another version does not get to make an item that this one could not have made."""
    shown = Replica()
    shown.items["r"] = views.ScriptItem(id="r")
    with pytest.raises(LastWordError, match="does not understand"):
        shown.take(WindowEvent("b-1", "delta", msgspec.to_builtins(delta)))
    assert shown.items == {"r": views.ScriptItem(id="r")}


def streamed(windows: Windows, megabytes: int) -> None:
    """Ten scripts' worth of lines for each megabyte of the model's words."""
    for number in range(megabytes):
        windows.happen(("run", f"r{number}", "PRINT"))
        for line in range(1000):
            windows.happen(("print", f"r{number}", f"{line:0500}"))
        windows.happen(("over", f"r{number}", ""))
        for _ in range(5000):
            windows.happen(("say", "a word and another one " * 5))
        windows.happen(("end", True))


@requirement("TEAM-9")
async def test_what_is_kept_for_windows_is_bounded_by_its_bytes():
    """Ten megabytes of output, and a window that reads nothing of it: it gets a fresh picture, and nothing piles up."""
    windows = Windows()
    asleep = Follower(windows)
    await asleep.read()
    await asleep.read()
    assert asleep.states == 1
    streamed(windows, 10)
    assert windows.feed.bytes_kept <= MAX_KEPT_BYTES
    assert windows.shown.bytes_kept <= shared_items.MAX_BYTES
    assert len(msgspec.json.encode(windows.state())) <= 2 * shared_items.MAX_BYTES
    await asleep.catch_up()
    assert asleep.states == 2
    assert asleep.items() == windows.state()["items"]


@requirement("TEAM-9")
async def test_a_line_or_a_word_more_costs_what_it_is_long():
    """Not what came before it: the run for every line, the paragraph for every word."""
    windows = Windows()
    awake = Follower(windows)
    windows.happen(("run", "r1", "x" * 50_000))
    await awake.catch_up()
    for _ in range(600):
        windows.happen(("print", "r1", "y" * 100))
    await awake.catch_up()
    told = awake.bytes_read
    for _ in range(100):
        windows.happen(("print", "r1", "y" * 100))
    await awake.catch_up()
    assert (awake.bytes_read - told) / 100 < 100 + 300
    for _ in range(1000):
        windows.happen(("say", "é" * 60))
        await awake.catch_up()
    told = awake.bytes_read
    for _ in range(100):
        windows.happen(("say", " naïve"))
    await awake.catch_up()
    assert (awake.bytes_read - told) / 100 < 200
    assert awake.items() == windows.state()["items"]


def test_a_word_changes_no_marks_far_before_it():
    """A line of a hundred thousand characters would be marked from its beginning with every word, for half a minute."""
    message = shared_items.OpenMessage(views.MessageItem(id="m", by="assistant", open=True))
    assert message.add("ас") == views.TextPiece("m", 0, "а‹U+0430›с‹U+0441›")  # Two letters that pass for Latin ones.
    for _ in range(shared_items.MAX_OPEN_LINE):
        message.add(" word")
    # Now its script is spoken, and the word would be an ordinary one.
    piece = message.add(" привет")
    assert piece is not None
    assert piece.text == " привет"
    assert message.whole().text.startswith("ас word")


async def test_an_event_larger_than_everything_that_is_kept_comes_as_a_state():
    """It is not kept, and not lost either."""
    windows = Windows(max_kept_bytes=EVENT_BYTES + 200)
    follower = Follower(windows)
    await follower.read()
    await follower.read()
    windows.happen(("note", "x" * 10_000))
    assert windows.feed.bytes_kept == 0
    await follower.catch_up()
    assert follower.states == 2
    assert follower.items() == windows.state()["items"]


async def test_what_waits_is_never_taken_out_of_the_picture():
    """Old is not over: a card, a call that runs or is in doubt, and a script that goes on stay until they are."""
    windows = Windows()
    windows.shown.show(views.ScriptItem(id="goes on"))
    for status in ("waiting", "running", "doubt"):
        windows.shown.show(views.CallItem(id=status, status=status))
    for _ in range(3 * shared_items.MAX_ITEMS):
        windows.happen(("note", "x"))
    assert list(windows.shown.items)[:4] == ["goes on", "waiting", "running", "doubt"]
    assert len(windows.shown.items) == shared_items.MAX_ITEMS


def test_what_is_left_out_of_a_long_text_is_counted():
    """A message, a line and a report that nobody could read to their ends say so, and cannot be forged."""
    windows = Windows()
    for _ in range(3):
        windows.happen(("say", "a" * shared_items.MAX_MESSAGE))
    windows.happen(("end", True))
    windows.happen(("run", "r1", ""))
    windows.happen(("print", "r1", "b" * 200_000))
    windows.happen(("report", "c1", None, "c" * 5_000))
    said, script, call = windows.shown.items.values()
    assert isinstance(said, views.MessageItem)
    assert said.text.endswith("a ‹200,000 more characters›")
    assert isinstance(script, views.ScriptItem)
    assert script.lines[0].endswith("b ‹190,000 more characters›")
    assert isinstance(call, views.CallItem)
    assert call.reports[0].text.endswith("c ‹3,000 more characters›")


def test_what_waits_to_be_drawn_in_a_terminal_is_one_change_an_item():
    """While a card has the screen, a script may print for ever. The first and the last look are what counts."""
    pending = Pending()
    looks = [views.ScriptItem(id=f"r{number % 2}", printed=number) for number in range(5 * MAX_PENDING)]
    for number, look in enumerate(looks):
        pending.add([(looks[number - 2] if number > 1 else None, look)])
    assert len(list(pending)) <= MAX_PENDING
    found: dict[str, tuple[views.Item | None, views.Item | None]] = {}
    while pending:
        change = pending.take()
        assert isinstance(change, tuple)
        assert change[1] is not None
        known = found.setdefault(change[1].id, change)
        found[change[1].id] = (known[0], change[1])
    assert found == {"r0": (None, looks[-2]), "r1": (None, looks[-1])}


VECTOR_HAPPENINGS: list[list[Any]] = [
    [("run", "r1", "PRINT"), *[("print", "r1", f"line {n}") for n in range(5)], ("over", "r1", "it broke")],
    [("say", "one 😀 "), ("say", "tw"), ("say", "о "), ("say", "\nthree\n\n"), ("end", True)],
    [("say", "does not count"), ("end", False), ("note", "Trying again.")],
    [("start", "c1"), ("report", "c1", "a", "1 of 2"), ("report", "c1", None, "x"), ("report", "c1", "a", "2 of 2")],
    [("run", "r1", ""), ("print", "r1", "b" * 12_000), ("start", "c1"), ("hide", "r1"), ("note", "n"), ("hide", "c1")],
]


async def test_the_page_is_tested_with_what_is_really_sent():
    """The page's own tests put these events together and compare: made here, so that both sides mean the same."""
    found = []
    for happenings in VECTOR_HAPPENINGS:
        windows = Windows()
        following = windows.feed.follow(None, windows.state)
        reader = EventReader(10_000_000)
        await anext(following)
        events = reader.feed(await anext(following))
        for happening in happenings:
            windows.happen(happening)
        while events[-1].id != windows.feed.last_id:
            events += reader.feed(await anext(following))
        sent = [{"kind": event.kind, "data": json.loads(event.data)} for event in events]
        found.append({"events": sent, "items": windows.state()["items"]})
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        VECTORS.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    assert json.loads(VECTORS.read_text()) == json.loads(json.dumps(found)), "LASTWORD_WRITE_GOLDEN=1 writes it again"


@requirement("TEAM-8")
def test_a_long_conversation_begins_with_its_end_and_has_the_rest_for_whoever_asks(tmp_path, houses):
    """A window is there at once, however much was said. The rest comes when asked for, and nothing comes twice."""
    store = MemoryStore()
    house = House(tmp_path, store, id="kept").open()
    try:
        made = [house.call("count", to=0).result(PATIENCE_SECONDS).call_id for _ in range(3 * FIRST_ITEMS)]
    finally:
        house.close()
    again = houses(store=store, id="kept")
    window = again.window()
    state = window.get("/page/state")[1]
    assert state["has_earlier"]
    assert [item["id"] for item in state["items"]] == made[-FIRST_ITEMS:]
    older = window.get("/page/earlier")[1]["items"]
    assert [item["id"] for item in older] == made[:-FIRST_ITEMS]


def test_a_short_conversation_has_nothing_earlier(houses):
    """No button that shows nothing, and a request without a reason gets an empty answer."""
    house = houses()
    assert house.call("count", to=0).result(PATIENCE_SECONDS).success
    window = house.window()
    assert not window.get("/page/state")[1]["has_earlier"]
    assert window.get("/page/earlier") == (200, {"items": []})
