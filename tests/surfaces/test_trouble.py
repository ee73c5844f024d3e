"""When something breaks inside: the page and the terminal say so in a sentence, and the log says where.

The sentence has an id; the log has a traceback under the same one.
"""

import asyncio
import json
import logging
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from playwright.sync_api import expect

from lastword import Session, ToolRegistry
from lastword.call import wait_for_answer
from lastword.call.events import Reported, Started
from lastword.errors import Tampered
from lastword.log import trouble
from lastword.store import Entry, MemoryStore, Record
from lastword.talk import Api, HttpWire
from lastword.talk.apiclient import Response
from lastword.talk.turn import Repairing
from lastword.terminal import Window, attend
from lastword.terminal.chat import TerminalChat
from lastword.terminal.composer import Left
from lastword.web import JoinFile, find_joinable
from surfaces.conftest import Houses
from surfaces.screens import Terminal
from surfaces.windows import PATIENCE_SECONDS, House, told

FAILURE = json.dumps({"error": {"message": "something went wrong, request 0123-4", "code": "internal_error"}})
IN_THE_LOG = re.compile(r"\((\w{8}) in the log\)")


class Watched(MemoryStore):
    """A memory that knows how often somebody looked for questions."""

    def __init__(self) -> None:
        super().__init__()
        self._looked = threading.Semaphore(0)

    async def current(self, kind: str | Sequence[str], *, stream: str | None = None) -> Sequence[Record]:
        self._looked.release()
        return await super().current(kind, stream=stream)

    def wait_for_a_look(self, after: Callable[[], object]) -> None:
        while self._looked.acquire(blocking=False):
            pass
        after()
        assert self._looked.acquire(timeout=PATIENCE_SECONDS)


@pytest.fixture
def store() -> Watched:
    return Watched()


@pytest.fixture
def house(houses: Houses, store) -> House:
    return houses(store=store)


def logged(caplog: pytest.LogCaptureFixture, words: str) -> BaseException:
    """The problem that the log has under the id that is in these words."""
    found = IN_THE_LOG.search(words)
    assert found, words
    [record] = [record for record in caplog.records if found[1] in record.getMessage()]
    assert (record.name, record.levelno) == ("lastword", logging.ERROR)
    assert record.exc_info is not None
    problem = record.exc_info[1]
    assert problem is not None
    assert problem.__traceback__ is not None
    return problem


def problems(event: tuple[str, str, Any]) -> list[str]:
    _, kind, data = event
    items = data["items"] if kind == "state" else [data] if kind == "item" else []
    return [item["text"] for item in items if item.get("problem")]


def next_problem(following) -> str:
    while not (found := problems(following())):
        pass
    return found[-1]


def test_a_tampered_question_of_another_program_is_told_once_and_logged(house, window, store, caplog):
    """It cannot be shown, and a page that says nothing looks like one on which nothing waits."""
    with window.events() as following:
        assert following()[1] == "state"
        house.do(store.commit(Entry("another", "asked", "c1", 1, b"not what was written")))
        words = next_problem(following)
        assert words.startswith("A question that waits cannot be shown (")
        assert "(asked) was changed after it was written" in words
        assert isinstance(logged(caplog, words), Tampered)
        for _ in range(3):  # Each look meets it again.
            store.wait_for_a_look(lambda: house.do(store.commit(Entry("another", "note", "", 1, b"{}"))))
    assert len(problems(("", "state", window.get("/page/state")[1]))) == 1
    assert len([record for record in caplog.records if "cannot be shown" in record.getMessage()]) == 1


def test_an_unreadable_question_of_another_program_does_not_end_the_watch(house, window, store, caplog):
    """Whole JSON, and no question: written by another version, or by nobody of ours. The next one is shown."""
    with window.events() as following:
        assert following()[1] == "state"
        facts = {"session_id": "another", "call_id": "c1", "nonce": "n", "digest": "d"}
        house.do(store.commit(Entry("another", "asked", "c1", 1, json.dumps(facts).encode())))
        assert isinstance(logged(caplog, next_problem(following)), Tampered)
        other = Session(house.session.registry, approver=wait_for_answer, journal=house.session.journal)
        asking = asyncio.run_coroutine_threadsafe(other.call("publish", {"version": "1", "index": "x"}), house.loop)
        shown: list[str] = []
        while not shown:
            _, kind, data = following()
            shown = [e["id"] for e in data["put"] if e["session"] == other.id] if kind == "inbox" else []
        house.loop.call_soon_threadsafe(other.cancel, shown[0])
        assert asking.result(PATIENCE_SECONDS).kind == "denied"


def test_a_listener_that_raises_says_so_and_goes_on_listening(house, window, caplog):
    """An event that the page cannot show: the call goes on, and so does the page."""
    with window.events() as following:
        assert following()[1] == "state"
        audience = house.session._door.setting.audience
        house.loop.call_soon_threadsafe(audience.tell, Started("c1", "count", b"not JSON", ""))
        words = next_problem(following)
        assert words.startswith("Something happened that cannot be shown (")
        logged(caplog, words)
        assert house.call("count", to=1).result(PATIENCE_SECONDS).success
        data: dict[str, Any] = {}
        while told(data).get("status") != "ended":
            data = following()[2]
        [ended] = [item for item in window.get("/page/state")[1]["items"] if item["id"] == data["id"]]
        assert ended["tool"] == "count"


class Broken(Api):
    """A client with a bug."""

    async def conversation(self, id: str) -> dict[str, Any] | None:
        raise RuntimeError("the password is hunter22")


def test_a_bug_in_a_turn_is_told_without_its_text_and_the_page_is_free_again(caplog, houses):
    """When the page is opened, and when somebody writes: nobody is left waiting for a turn that is over."""
    window = houses(api=Broken).window()
    with window.events() as following:
        first = next_problem(following)
        assert window.post("/page/say", {"text": "Hello."})[0] == 200
        second = next_problem(following)
        kind, data = "", dict[str, Any]()
        while not (kind == "busy" and data["busy"] is False):
            _, kind, data = following()
    for words in (first, second):
        assert words.startswith("Something broke, and the assistant stopped (")
        assert "hunter22" not in words
        assert isinstance(logged(caplog, words), RuntimeError)
    assert first != second


def test_an_undo_that_meets_a_tampered_record_is_refused_with_the_id_of_the_log(house, window, store, caplog):
    """The refusal is what the person sees; where the record is broken is for the log."""
    house.do(store.commit(Entry(house.session.id, "changing_file", "c1", 1, b"not what was written")))
    status, body = window.post("/page/undo", {"call_id": "c1"})
    assert (status, body["error"]["code"]) == (409, "refused")
    assert body["error"]["message"].startswith("This could not be done (")
    assert isinstance(logged(caplog, body["error"]["message"]), Tampered)


def test_a_file_for_other_programs_that_cannot_be_written_is_a_line_in_the_log(house, tmp_path, caplog):
    """The page works without it; `lastword chat --attach` finds nothing, and somebody will wonder why."""
    folder = tmp_path / "open"
    folder.write_text("in the way")

    async def publish() -> None:
        with JoinFile(folder, house.address, house.gate, tmp_path).published():
            assert find_joinable(folder) == []

    house.do(publish())
    [line] = [record.getMessage() for record in caplog.records if record.name == "lastword"]
    assert line.startswith("`lastword chat --attach` will not find this server: ")


async def test_an_event_that_a_terminal_cannot_show_is_told_and_stops_nothing(monkeypatch, capsys, caplog):
    """`lastword call` and `lastword run` listen to their session as well."""
    registry = ToolRegistry()

    @registry.tool(require_approval=False)
    def work() -> str:
        """Works."""
        unshowable: Any = None
        session._door.setting.audience.tell(Reported("c1", unshowable, None, None))
        session._door.setting.audience.tell(Reported("c1", "still here", None, None))
        return "done"

    async with Session(registry) as session:
        outcome = await attend(session, session.call("work"), approver=None, plain=True)
    assert outcome.success
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("Something happened that cannot be shown (")
    logged(caplog, first)
    assert second == "still here"


class Failing(HttpWire):
    """A server that answers, and only that it failed."""

    status = 500

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        yield Response(self.status, {}, self.pieces)

    async def pieces(self) -> AsyncGenerator[bytes]:
        yield FAILURE.encode()


class Silent:
    """Somebody at the prompt who says nothing."""

    async def read(self, mark: str) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    def put_aside(self) -> None:
        pass

    def keep(self, text: str) -> bool:
        return False


def chat_at(terminal: Terminal, wire: HttpWire, cookie: str = "cookie") -> TerminalChat:
    return TerminalChat(
        Window(wire, cookie),
        farewell=lambda id: "Left.",
        can_answer=True,
        stdin=terminal.stdin,
        screen=terminal.screen_file,
        cards=terminal.screen_file,
        plain=False,
    )


async def test_a_terminal_says_what_a_failing_server_says_of_itself(terminal: Terminal):
    """Its answer has the id under which its log has the rest. That it does not answer would not be true."""
    chat = chat_at(terminal, Failing())
    talking = asyncio.ensure_future(chat.talk(Silent()))
    await terminal.until("The server answers with a failure: something went wrong, request 0123-4. Trying again")
    chat.leave()
    await talking


class Unstoppable(HttpWire):
    """A wire with a bug, which only shows when something is to be stopped."""

    def exchange(  # type: ignore[override]
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Any]:
        if path in ("/page/cancel", "/page/stop"):
            raise RuntimeError("a bug")
        return super().exchange(method, path, body, headers)


async def test_a_bug_on_the_way_to_stop_something_is_told(house, terminal: Terminal, caplog):
    """Ctrl+C is sent beside everything else. If it gets lost, whoever pressed it must not think that it did not."""
    wire = Unstoppable(house.address)
    window = await Window.enter(wire, house.key().partition("key=")[2])
    chat = chat_at(terminal, wire, window._cookie)
    talking = asyncio.ensure_future(chat.talk(Silent()))
    await terminal.until("This is preset default")
    await chat.window.say("/count to=100000")
    await terminal.until("counting, ")
    chat._interrupt()
    await terminal.until("What runs could not be told to stop (")
    await terminal.until(" in the log).")
    assert isinstance(logged(caplog, terminal.text), RuntimeError)
    chat.leave()
    await talking
    await wire.close()


class Ending(Failing):
    """A stream of events that breaks when it is told to."""

    status = 200

    def __init__(self) -> None:
        super().__init__()
        self.breaks = asyncio.Event()

    async def pieces(self) -> AsyncGenerator[bytes]:
        state = {"session": "s", "items": [], "busy": False, "settings": {}, "token": "t", "window": "w"}
        yield b"id: a-0\nevent: state\ndata: " + json.dumps(state).encode() + b"\n\n"
        await self.breaks.wait()
        raise RuntimeError("a bug")


async def test_a_stream_that_breaks_while_the_person_leaves_is_told(terminal: Terminal, caplog):
    """They do not wait for it any more. What it was is in the log all the same."""
    wire = Ending()

    class Leaving(Silent):
        async def read(self, mark: str) -> str:
            wire.breaks.set()
            raise Left

    await chat_at(terminal, wire).talk(Leaving())
    await terminal.until("The conversation could not be followed to its end (")
    await terminal.until(" in the log).")
    assert isinstance(logged(caplog, terminal.text), RuntimeError)


def test_the_sentence_is_one_line_and_holds_no_text_of_strangers():
    """An error that is not ours may hold a key; ours are made for people, and marked like everything else."""
    assert "hunter22" not in trouble("It broke", ValueError("hunter22"))
    words = trouble("It broke", Tampered("record 3 \u202e was changed", hint="look"))
    assert re.fullmatch(r"It broke \(\w{8} in the log\): record 3 ‹U\+202E› was changed hint: look", words)


def test_a_page_whose_server_fails_says_what_the_server_says(house, browser):
    """Not only that it is reconnecting: the sentence of the server, with the id of the request."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    page.goto(house.key())
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.route("**/page/*", lambda route: route.fulfill(status=500, body=FAILURE, content_type="application/json"))
    page.get_by_label("Message to the assistant").fill("Hello?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_have_text("something went wrong, request 0123-4")
    page.reload()
    expect(page.locator(".trouble")).to_have_text("something went wrong, request 0123-4")
    page.get_by_role("link", name="Timeline").click()
    expect(page.locator("main")).to_contain_text("something went wrong, request 0123-4")
    page.close()


def test_what_the_model_is_told_of_its_mistake_is_one_sentence_for_the_person():
    """The excerpt with its caret is for whoever writes it again; in one line it was a muddle of signs."""
    mistake = Repairing("2:6: pay needs the argument to\n  CALL pay { }\n       ^^^\nhint: it takes { to }")
    assert mistake.words == "The model is told what was wrong with its message: 2:6: pay needs the argument to"
