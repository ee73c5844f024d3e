"""The terminal's way to the page's API: what it is refused, and that it catches up exactly."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.card import Draft, views
from lastword.journal import data_of
from lastword.talk import ApiError, ConnectionLost, HttpWire
from lastword.talk.apiclient import Response
from lastword.terminal import Window
from lastword.terminal.chat import TerminalChat
from lastword.terminal.composer import Left
from lastword.terminal.model_words import ModelWords
from lastword.terminal.window import Cut, Replica, WindowEvent
from lastword.web import JoinFile, find_joinable
from requirements import requirement
from surfaces.conftest import Houses
from surfaces.screens import Terminal
from surfaces.windows import PATIENCE_SECONDS, House, Scripted


@pytest.fixture
def house(houses: Houses) -> House:
    # A model of its own: the tour would begin by itself.
    return houses(model=Scripted())


class Bent(HttpWire):
    """A wire whose requests are tampered with, and which remembers them."""

    def __init__(self, url: str, **headers: str) -> None:
        super().__init__(url)
        self.headers = headers
        self.sent: list[tuple[str, str, bytes | None, dict[str, str]]] = []

    def exchange(  # type: ignore[override]
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Any]:
        given = {**(headers or {}), **self.headers}
        self.sent.append((method, path, body, given))
        return super().exchange(method, path, body, given)


Open = Any


@pytest.fixture
async def windows(house: House) -> AsyncIterator[Open]:
    """Opens windows that have seen the first state."""
    wires: list[HttpWire] = []

    async def open_window(wire: HttpWire | None = None) -> Window:
        wire = wire or HttpWire(house.address)
        wires.append(wire)
        window = await Window.enter(wire, house.key().partition("key=")[2])
        async with aclosing(window.events()) as events:
            first: Any = await anext(events)
            assert first.kind == "state"
        return window

    yield open_window
    for wire in wires:
        await wire.close()


async def asked(house: House, window: Window, **arguments: Any) -> tuple[Any, Any]:
    """A call that waits, and its request as a window sees it."""
    call = house.call("publish", **({"version": "1", "index": "x"} | arguments))
    waiting = await asyncio.to_thread(house.waiting)
    request, _ = await window.question(waiting[0].call_id, waiting[0].digest)
    return call, request


async def ended(call: Any) -> Any:
    return await asyncio.wait_for(asyncio.wrap_future(call), PATIENCE_SECONDS)


@requirement("TOOL-46")
async def test_the_answer_of_a_terminal_is_that_of_the_card_it_saw(house: House, windows: Open):
    """Exactly the digest that was shown; and the journal says where it was answered."""
    window = await windows()
    call, request = await asked(house, window)
    assert request.digest == house.session.pending()[0].digest
    await window.answer(request, request.allow(), {})
    outcome = await ended(call)
    assert outcome.success
    records = await asyncio.to_thread(house.do, house.session.journal.store.read(subject=request.call_id))
    [answer] = [data_of(r)["approver"] for r in records if r.kind == "answered"]
    assert answer == {"kind": "person", "name": "", "where": "terminal"}


@requirement("TOOL-46")
async def test_a_stale_card_is_refused_and_nothing_runs(house: House, windows: Open):
    """The same call asks something else by now. A yes to what it asked before is a yes to nothing."""
    window = await windows()
    path = house.folder / "a.txt"
    path.write_text("before\n")
    call = house.call("write_file", path="a.txt", text="after\n")
    [waiting] = await asyncio.to_thread(house.waiting)
    seen, _ = await window.question(waiting.call_id, waiting.digest)
    path.write_text("somebody else was here\n")
    await window.answer(seen, seen.allow(), {})

    async def asks_again() -> Any:
        while True:
            following: Any = house.session.events()
            async with aclosing(following) as events:
                found = [r for r in house.session.pending() if r.digest != seen.digest]
                if found:
                    return found[0]
                async for _ in events:
                    break

    again = await asyncio.to_thread(house.do, asks_again())
    with pytest.raises(ApiError) as refused:
        await window.answer(seen, seen.allow(), {})
    assert (refused.value.status, refused.value.code) == (409, "changed")
    with pytest.raises(ApiError) as refused:
        await window.question(seen.call_id, seen.digest)
    assert refused.value.code == "changed"
    assert path.read_text() == "somebody else was here\n"
    asked_again, _ = await window.question(again.call_id, again.digest)
    await window.answer(asked_again, asked_again.deny(), {})
    assert (await ended(call)).kind == "denied"


@requirement("TOOL-46")
async def test_a_replayed_answer_is_refused(house: House, windows: Open):
    """The very same bytes a second time, after the call, and for another call."""
    wire = Bent(house.address)
    window = await windows(wire)
    call, request = await asked(house, window)
    await window.answer(request, request.allow(), {})
    await ended(call)
    method, path, body, headers = wire.sent[-1]
    again, _ = await asked(house, window)
    async with HttpWire.exchange(wire, method, path, body, headers) as response:
        assert response.status == 409
    assert house.effects == [("publish", "1", "x")]
    assert not again.done()
    house.session.cancel(house.session.pending()[0].call_id)
    await ended(again)


async def test_of_two_windows_that_answer_at_once_one_wins_and_the_other_is_told(house: House, windows: Open):
    """One says yes and the other says no, in the same breath."""
    first, second = await windows(), await windows()
    allowed = 0
    for _ in range(10):
        call, request = await asked(house, first)
        said = await asyncio.gather(
            first.answer(request, request.allow(), {}),
            second.answer(request, request.deny("no"), {}),
            return_exceptions=True,
        )
        outcome = await ended(call)
        losers = [answer for answer in said if isinstance(answer, ApiError)]
        assert [loser.code for loser in losers] == ["not_waiting"]
        assert outcome.success == (said[1] is losers[0])
        allowed += outcome.success
    assert len(house.effects) == allowed


class Beaten(HttpWire):
    """A wire on which somebody else is always a little quicker."""

    quicker: Window
    is_beaten = False

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        if path == "/page/answer" and body is not None:
            asked = json.loads(body)
            request, _ = await self.quicker.question(asked["call_id"], asked["digest"])
            await self.quicker.answer(request, request.deny("not so fast"), {})
            self.is_beaten = True
        async with super().exchange(method, path, body, headers) as response:
            yield response


class Silent:
    """Somebody at the prompt who says nothing, until they leave."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()

    async def read(self, mark: str) -> str:
        await self.leaves.wait()
        raise Left

    def put_aside(self) -> None:
        pass

    def keep(self, text: str) -> bool:
        return False


async def test_a_terminal_that_answers_too_late_says_so_and_who_it_was(house: House, windows: Open, terminal: Terminal):
    """The key was pressed, and the other window's answer was there a moment earlier. Theirs counts."""
    wire = Beaten(house.address)
    wire.quicker = await windows()
    chat = TerminalChat(
        await windows(wire),
        farewell=lambda id: "Left.",
        can_answer=True,
        stdin=terminal.stdin,
        screen=terminal.screen_file,
        cards=terminal.screen_file,
        plain=False,
    )
    composer = Silent()
    talking = asyncio.ensure_future(chat.talk(composer))
    await terminal.until("This is preset default")
    call = house.call("publish", version="1", index="x")
    await terminal.until_menu()
    await terminal.press_until("a", "Type allow and press Enter")
    await terminal.press_for("allow\r", "Your answer came too late, and does not count.")
    await terminal.until("Publish release: answered by the terminal: denied, because: not so fast")
    await terminal.until("✗ publish (not allowed)")
    assert wire.is_beaten
    assert (await ended(call)).kind == "denied"
    assert house.effects == []
    composer.leaves.set()
    await talking


@requirement("API-52")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Lastword-Token": "0" * 64}, 403),
        ({"X-Lastword-Token": ""}, 403),
        ({"Cookie": "lastword_1=x"}, 401),
        ({"Cookie": ""}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
async def test_a_terminal_has_no_easier_way_in_than_a_page(
    house: House, windows: Open, headers: dict[str, str], status: int
):
    """Token, cookie, Host, Origin, site and type are asked of it as of any window."""
    wire = Bent(house.address)
    window = await windows(wire)
    call, request = await asked(house, window)
    wire.headers = headers
    with pytest.raises(ApiError) as refused:
        await window.answer(request, request.allow(), {})
    assert refused.value.status == status
    assert house.effects == []
    wire.headers = {}
    await window.answer(request, request.deny(), {})
    assert (await ended(call)).kind == "denied"


@requirement("API-52")
async def test_a_key_lets_one_terminal_in(house: House):
    """Used, invented or missing: no window, and words."""
    wire = HttpWire(house.address)
    key = house.key().partition("key=")[2]
    await Window.enter(wire, key)
    for wrong in (key, "x" * 32, ""):
        with pytest.raises(ApiError, match="the key was used before, or never was one"):
            await Window.enter(wire, wrong)
    async with wire.exchange("GET", "/enter?key=x&as=admin", None) as response:
        assert response.status == 400
    await wire.close()


@requirement("API-52")
async def test_closing_the_page_for_every_window_closes_it_for_terminals(house: House, windows: Open):
    """A terminal that has joined is a window like any other."""
    wire = Bent(house.address)
    window = await windows(wire)
    async with wire.exchange("POST", "/page/lock", b"{}", wire.sent[-1][3] | await _token(window, wire)) as response:
        assert response.status == 200
    with pytest.raises(ApiError) as refused:
        await window.say("Hello?")
    assert refused.value.code == "no_key"
    with pytest.raises(ApiError):
        async with aclosing(window.events()) as events:
            await anext(events)


async def _token(window: Window, wire: Bent) -> dict[str, str]:
    with pytest.raises(ApiError):
        await window.cancel("nothing")  # refused, and shows which token this window sends
    return {"X-Lastword-Token": wire.sent[-1][3]["X-Lastword-Token"]}


async def test_edits_are_read_by_the_server_in_the_type_of_the_argument(house: House, windows: Open):
    """What the terminal sends is what was typed; a wrong one is refused by name, and the card still waits."""
    window = await windows()
    call = house.call("add_up", numbers=[1, 2], factor=3, rounded=True)
    [waiting] = await asyncio.to_thread(house.waiting)
    request, _ = await window.question(waiting.call_id, waiting.digest)
    with pytest.raises(ApiError, match="factor must be") as refused:
        await window.answer(request, request.allow(), {"factor": "a lot"})
    assert refused.value.code == "edit_refused"
    await window.answer(request, request.allow(), {"factor": "10", "numbers": "[4, 5]"})
    assert (await ended(call)).success
    assert house.effects == [("add_up", [4.0, 5.0], 10, True)]


async def test_a_secret_goes_to_no_window_and_survives_one_that_edits_beside_it(house: House, windows: Open):
    """The terminal has its digest and no more; what it changes is something else, and the secret stays."""
    wire = Bent(house.address)
    window = await windows(wire)
    call = house.call("sign_in", user="ann", password="hunter2")
    [waiting] = await asyncio.to_thread(house.waiting)
    request, _ = await window.question(waiting.call_id, waiting.digest)
    assert "hunter2" not in repr(request)
    draft = Draft(request)
    draft.change("user", "ben")
    await window.answer(request, draft.allow(), draft.edits)
    assert (await ended(call)).success
    assert house.effects == [("sign_in", "ben", "hunter2")]


class Breaking(HttpWire):
    """A wire whose streams break off after a few events."""

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        async with super().exchange(method, path, body, headers) as response:
            yield _cut(response) if path == "/page/events" else response


def _cut(response: Response) -> Response:
    async def cut() -> AsyncGenerator[bytes]:
        left, rest = 3, b""
        async with aclosing(response.pieces()) as pieces:
            async for piece in pieces:
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    # In the middle of an event, as a real cut would be.
                    yield event + b"\n\n" if left else event[: len(event) // 2]
                    if not left:
                        raise ConnectionLost("cut")
                    left -= 1

    return Response(response.status, response.headers, cut)


async def test_a_window_that_is_cut_off_again_and_again_misses_nothing_and_hears_nothing_twice(
    house: House, windows: Open, monkeypatch: pytest.MonkeyPatch
):
    """It names the last event it has seen and gets those after it: the same as a window that was never cut off."""
    monkeypatch.setattr("lastword.terminal.window.RETRY_SECONDS", 0.0)
    whole, cut = await windows(), await windows(Breaking(house.address))
    both = asyncio.Barrier(3)

    async def follow(window: Window) -> tuple[Replica, list[int], int]:
        picture, heard, cuts = Replica(), list[int](), 0
        async with aclosing(window.events()) as events:
            async for event in events:
                if isinstance(event, Cut):
                    cuts += 1
                    continue
                # The whole state comes first, and never again: that would mean that something had been missed.
                assert (event.kind == "state") == (not picture.is_known)
                is_first = not picture.is_known
                changes = picture.take(event)
                if is_first:
                    await both.wait()
                for before, after in changes:
                    if isinstance(after, views.CallItem):
                        seen = before.reported_so_far if isinstance(before, views.CallItem) else 0
                        heard += [report.number for report in after.reports if report.number > seen]
                        if after.end is not None:
                            return picture, heard, cuts
        raise AssertionError("the stream ended")

    async with asyncio.timeout(PATIENCE_SECONDS):
        following = asyncio.gather(follow(whole), follow(cut))
        await both.wait()
        call = house.call("count", to=25)
        (first, heard, no_cuts), (second, heard_too, cuts) = await following
    await ended(call)
    assert no_cuts == 0
    assert cuts >= 3
    assert first.items == second.items
    assert len(heard) == len(set(heard))
    assert heard_too == heard


def told(kind: str, data: Any, number: int, boot: str = "a") -> WindowEvent:
    return WindowEvent(f"{boot}-{number}", kind, data)


def state(*items: dict[str, Any], busy: bool = False) -> dict[str, Any]:
    return {"session": "s", "items": list(items), "busy": busy, "settings": {}, "window": "w", "token": "t"}


def waiting(id: str, digest: str) -> dict[str, Any]:
    """A call whose card says nothing, but which question it is."""
    texts = [field.name for field in msgspec.structs.fields(views.CardView) if field.type is str]
    card: dict[str, Any] = dict.fromkeys(texts, "") | {"digest": digest, "effect": None}
    card |= {"edited": False, "editable": False, "arguments": [], "left_out": [], "previews": []}
    card |= {"message_fold": None, "word": None, "folded": [], "must_open": [], "offers_rest": False, "second": None}
    return {"kind": "call", "id": id, "status": "waiting", "card": card}


def words(id: str, by: str, text: str) -> dict[str, Any]:
    return {"kind": "message", "id": id, "by": by, "text": text}


def test_messages_are_recognised_by_a_window_whose_server_was_started_again():
    """They have other ids then. Nothing is said twice, and what is said twice in truth is not swallowed."""
    picture = Replica()
    picture.take(told("state", state(), 0))
    for number, text in enumerate(["yes", "yes", "and now?"], 1):
        picture.take(told("item", words(f"m{number}", "you", text), number))
    picture.take(told("item", waiting("c", "old"), 4))
    anew = state(
        words("p0", "you", "yes"),
        words("p1", "you", "yes"),
        words("p2", "you", "and now?"),
        words("p3", "you", "yes"),
        waiting("c", "new"),
        words("m1", "lastword", "Going on with what was interrupted."),
    )
    changes = picture.take(told("state", anew, 0, boot="b"))
    new = [after.text for before, after in changes if isinstance(after, views.MessageItem)]
    assert new == ["yes", "Going on with what was interrupted."]
    [(before, after)] = [(b, a) for b, a in changes if isinstance(a, views.CallItem)]
    assert isinstance(before, views.CallItem)
    assert before.card != after.card
    assert picture.take(told("state", anew, 0, boot="b")) == []


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=40))
def test_whenever_a_window_was_away_it_shows_every_report_once(steps: list[tuple[str, bool, bool]]):
    """Live, or from a whole state after a time away, of the same server: the same lines in the same order."""
    calls: dict[str, list[int]] = {}
    picture, shown = Replica(), dict[str, list[int]]()

    def item(id: str) -> dict[str, Any]:
        reports = [{"id": None, "text": "", "fraction": None, "number": number} for number in calls[id]]
        facts = {"kind": "call", "id": id, "status": "running"}
        return {**facts, "reports": reports, "reported_so_far": len(reports)}

    def hear(event: WindowEvent) -> None:
        for before, after in picture.take(event):
            assert isinstance(after, views.CallItem)
            seen = before.reported_so_far if isinstance(before, views.CallItem) else 0
            shown.setdefault(after.id, []).extend(r.number for r in after.reports if r.number > seen)

    hear(told("state", state(), 0))
    was_away = False
    for number, (id, reports, is_away) in enumerate(steps, 1):
        calls.setdefault(id, [])
        if reports:
            calls[id].append(len(calls[id]) + 1)
        if not is_away:
            hear(told("state", state(*map(item, calls)), number) if was_away else told("item", item(id), number))
        was_away = is_away
    hear(told("state", state(*map(item, calls)), len(steps) + 1))
    assert {id: numbers for id, numbers in shown.items() if numbers} == {i: n for i, n in calls.items() if n}
    assert list(picture.items) == list(calls)


def test_a_piece_counts_as_browsers_count():
    """What is kept of a message is told in units of sixteen bits; an emoji has two."""
    picture = Replica()
    picture.take(told("state", state(words("m1", "assistant", "a😀b")), 0))
    picture.take(told("piece", {"id": "m1", "keep": 3, "text": "c"}, 1))
    [message] = picture.items.values()
    assert isinstance(message, views.MessageItem)
    assert message.text == "a😀c"


class Told(HttpWire):
    """A server that says what it likes."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__("http://127.0.0.1:9")
        self._data = data

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        yield Response(200, {}, self.pieces)

    async def pieces(self) -> AsyncGenerator[bytes]:
        yield b"id: a-0\nevent: state\ndata: " + json.dumps(self._data).encode() + b"\n\n"


async def test_no_server_can_steer_the_terminal():
    """It marks what cannot be seen. If it does not, the controls are gone all the same."""
    wire = Told(state(words("m1", "assistant", "\x1b[2J\x9b2J\ttext\r\nnext")))
    async with aclosing(Window(wire, "c").events()) as events:
        event = await anext(events)
    assert isinstance(event, WindowEvent)
    assert event.data["items"][0]["text"] == "\ufffd[2J\ufffd2J\ufffdtext\ufffd\nnext"


@requirement("API-52")
async def test_the_key_for_ones_own_programs_is_ones_own_and_opens_once(house: House, tmp_path: Path):
    """A file of mode 0600, a new key after each use, and no file when the server is gone."""
    join_folder = tmp_path / "open"

    async def hang() -> Any:
        hung = JoinFile(join_folder, house.address, house.gate, tmp_path).published()
        hung.__enter__()
        return hung

    hung = await asyncio.to_thread(house.do, hang())
    [found] = find_joinable(join_folder)
    assert (found.address, found.folder) == (house.address, str(tmp_path))
    [file] = join_folder.iterdir()
    assert (file.stat().st_mode & 0o777, join_folder.stat().st_mode & 0o777) == (0o600, 0o700)
    for _ in range(25):
        house.key()  # more than are remembered; this one is not crowded out
    wire = HttpWire(house.address)
    await Window.enter(wire, found.key)
    [again] = find_joinable(join_folder)
    assert again.key != found.key
    with pytest.raises(ApiError):
        await Window.enter(wire, found.key)
    await Window.enter(wire, again.key)
    await wire.close()
    file.chmod(0o640)
    assert find_joinable(join_folder) == []
    file.chmod(0o600)
    (join_folder / "9.json").symlink_to(file)
    assert len(find_joinable(join_folder)) == 1
    hung.__exit__(None, None, None)
    assert find_joinable(join_folder) == []
    assert [left.name for left in join_folder.iterdir()] == ["9.json"]


@requirement("API-52")
def test_the_file_of_a_dead_server_leads_nowhere(tmp_path: Path):
    """Somebody else may listen at its port by now. The lock went with the process, whatever ended it."""
    file = tmp_path / "8811.json"
    file.write_text(json.dumps({"address": "http://127.0.0.1:8811", "key": "k", "folder": "f"}))
    file.chmod(0o600)
    assert find_joinable(tmp_path) == []
    assert find_joinable(tmp_path / "nothing") == []
    assert os.listdir(tmp_path) == ["8811.json"]


def speech(columns: int = 40) -> tuple[ModelWords, StringIO]:
    screen = StringIO()
    return ModelWords(screen, plain=False), screen


def test_a_message_that_goes_on_after_an_interruption_is_not_said_again():
    """The stream was cut, or a line of ours came in between: what follows goes on below."""
    said, screen = speech()
    said.say("m1", "One two ")
    said.finish()
    screen.write("The server is back.\n")
    said.say("m1", "One two three ")
    said.say("m1", "One two three four.", is_whole=True)
    said.say("m2", "Next.", is_whole=True)
    assert screen.getvalue() == "┃ One two\nThe server is back.\n┃ three four.\n┃ Next.\n"


def test_a_line_whose_marks_have_changed_is_written_once_more():
    """A word that passed for an ordinary one is not what it seemed: a person sees the line as it is now."""
    said, screen = speech()
    said.say("m1", "first line\nсор arrives ")
    said.say("m1", "first line\nс‹U+0441›ор arrives now", is_whole=True)
    assert screen.getvalue() == "┃ first line\n┃ сор arrives\n┃ с‹U+0441›ор arrives now\n"
