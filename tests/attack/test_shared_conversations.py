"""One conversation that two programs have open, and programs that would like to be taken for another one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lastword
from lastword.card import called
from lastword.web import programs_called
from surfaces.test_inbox_api import entries
from surfaces.test_page_conversations import Listening, said, talk
from surfaces.windows import Browserless, House

PUBLISH = {"name": "publish", "arguments": {"version": "1", "index": "x"}}


@pytest.fixture
def two(shared_address: str, tmp_path: Path) -> Iterator[tuple[House, House]]:
    """Two programs on one memory, the first with a model that asks for something."""
    store = shared_address
    first = House(tmp_path, lastword.open_journal(store).store, model=Listening("Hello.", PUBLISH, "Then not.")).open()
    second = House(tmp_path, lastword.open_journal(store).store, model=Listening("Other words.")).open()
    yield first, second
    for house in (first, second):
        house.close()
        asyncio.run(house.session.journal.close())


def window_of(house: House) -> Browserless:
    return house.window()


def session_of(window: Browserless) -> str:
    return str(window.get("/page/state")[1]["session"])


def answered(window: Browserless, request: Any) -> None:
    """Deny it, and wait until the assistant has said something about it."""
    talk(window, "/page/answer", {"call_id": request.call_id, "digest": request.digest, "action": "deny"})


def test_a_conversation_in_which_another_program_waits_is_not_opened(two):
    """Opening it hid the other program's card from the inbox, and tried to carry its call out a second time."""
    first, second = map(window_of, two)
    talk(first, "/page/say", {"text": "hello"})
    first.post("/page/say", {"text": "publish"})
    [request] = two[0].waiting()
    refused = second.post("/page/open", {"id": session_of(first)})
    assert refused[1]["error"]["code"] == "busy"
    assert [entry["id"] for entry in entries(second, 1)] == [request.call_id]
    answered(first, request)
    assert said(first)[-1] == "Then not."
    assert second.post("/page/open", {"id": session_of(first)})[0] == 200


@pytest.mark.parametrize(("path", "body"), [("/page/again", {"message": "p0"}), ("/page/say", {"text": "no, wait"})])
def test_a_turn_whose_card_waits_in_another_program_is_not_taken_back(two, path, body):
    """The card stayed answerable, its call ran, and the model that had asked was told that nobody had."""
    first, second = map(window_of, two)
    talk(first, "/page/say", {"text": "hello"})
    assert second.post("/page/open", {"id": session_of(first)})[0] == 200
    first.post("/page/say", {"text": "publish"})
    [request] = two[0].waiting()
    [entry] = entries(second, 1)
    assert entry["id"] == request.call_id, "whoever is refused because of a card has to find it"
    assert entry["session"] == session_of(first), "it is another program's, though of the same conversation"
    refused = second.post(path, body)
    assert refused[1]["error"]["code"] == "busy"
    answered(first, request)
    assert said(first)[-1] == "Then not."
    assert said(second)[:2] == ["hello", "Hello."]


@pytest.mark.parametrize(
    "pretender",
    [
        "clerk.py, process ٧",
        "clerk.py, process ７",
        "clerk.py, process 07",
        "clerk.py , process 7",
        " clerk.py, process 7",
    ],
)
def test_a_name_that_reads_like_another_one_is_quoted(pretender):
    """Digits of another alphabet and a blank too many made a second `clerk.py, process 7` that was not told apart."""
    assert called(pretender, "abcdef0123", "s12345678").startswith("a program that calls itself “")


def test_names_that_are_cut_to_the_same_are_told_apart():
    """What a person reads counts, and not what stood behind the place where it was cut."""
    asking = [
        {"program": f"{'x' * 60}{last}, process 7", "process": f"abc{last}11111", "session_id": last} for last in "ab"
    ]
    names = list(programs_called(asking).values())
    assert len(set(names)) == 2
    assert all("one of 2 of this name" in name for name in names)
