"""Conversations of the page: new ones, old ones, their titles, going back in one, and what a restart comes back to."""

import json
from functools import partial
from typing import Any

import msgspec
import pytest

from lastword.card import views
from lastword.server import Completion, Refusal
from lastword.store import MemoryStore
from lastword.web import open_last
from surfaces.conftest import Houses
from surfaces.windows import Browserless, Scripted

CALL = {"name": "add_up", "arguments": {"numbers": [1], "factor": 1, "rounded": False}}


class Listening(Scripted):
    """Remembers what it was sent, and fails where its script says so."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(*replies)
        self.heard: list[list[Any]] = []

    async def complete(self, body: dict[str, Any]) -> Completion:
        self.heard.append(json.loads(msgspec.json.encode(body["messages"])))
        following: Any = self._replies[0] if self._replies else ""
        if following is None:
            self._replies.pop(0)
            raise Refusal(400, "model_refused", "the model has no room left")
        return await super().complete(body)


@pytest.fixture
def houses(houses: Houses) -> Houses:
    """Their models remember what they were sent."""
    return partial(houses, scripted=Listening)


def said(window: Browserless) -> list[str]:
    return [item["text"] for item in window.get("/page/state")[1]["items"] if item["kind"] == "message"]


def talk(window: Browserless, path: str, body: Any) -> None:
    """Do something that the model answers, and wait until it has."""
    with window.events() as following:
        status, told = window.post(path, body)
        assert status == 200, told
        while True:
            _, kind, data = following()
            if kind == "busy" and not data["busy"]:
                return


def listed(window: Browserless, words: str = "") -> list[tuple[str, bool]]:
    found = window.get(f"/page/conversations?words={words}")[1]["conversations"]
    return [(entry["title"], entry["is_open"]) for entry in found]


def test_a_new_conversation_begins_empty_and_the_old_one_comes_back_with_its_words(houses):
    """There was no new chat: everything that was ever said went on in one."""
    house = houses("Hello Ann.", "Hello Bob.")
    window = house.window()
    talk(window, "/page/say", {"text": "I am Ann"})
    first = window.get("/page/state")[1]["session"]
    assert window.post("/page/new")[0] == 200
    assert said(window) == []
    talk(window, "/page/say", {"text": "I am Bob"})
    assert "Ann" not in json.dumps(house.model.heard[-1])  # type: ignore[attr-defined]
    assert listed(window) == [("I am Bob", True), ("I am Ann", False)]
    assert window.post("/page/open", {"id": first})[0] == 200
    assert said(window) == ["I am Ann", "Hello Ann."]
    assert listed(window) == [("I am Ann", True), ("I am Bob", False)]


def test_every_window_is_told_of_the_other_conversation(houses):
    """Two windows on two conversations would let a person answer in the wrong one."""
    house = houses("Hello.")
    one, other = (house.window() for _ in range(2))
    talk(one, "/page/say", {"text": "Hi"})
    with other.events() as following:
        assert following()[1] == "state"
        one.post("/page/new")
        _, kind, state = following()
        assert kind == "state"
        assert state["items"] == []


def test_words_are_found_in_titles_and_in_what_was_said(houses):
    """The title is what was said first; what one remembers is often what came later."""
    window = houses("The harbour is closed.", "Nothing.").window()
    talk(window, "/page/say", {"text": "Plan a trip"})
    window.post("/page/new")
    talk(window, "/page/say", {"text": "Something else"})
    assert [title for title, _ in listed(window, "HARBOUR")] == ["Plan a trip"]
    assert [title for title, _ in listed(window, "trip")] == ["Plan a trip"]
    assert listed(window, "mountain") == []


def test_thousands_of_conversations_are_searched_without_using_up_what_the_server_allows(houses):
    """Each was asked of the server with each letter typed: past its limit the search broke, and the chat with it."""
    house = houses("The harbour is closed.", "Heard.")
    window = house.window()
    talk(window, "/page/say", {"text": "Plan a trip"})
    conversations = house.front.page._conversations

    async def many() -> None:
        for n in range(2_500):
            conversations.opened(f"old{n}")
            conversations.entitle(f"old{n}", f"Letter {n}")
        conversations.opened(house.session.id)

    house.do(many())
    for words in ("harbour", "harbou", "harbo", "harb", "har", "ha", "nothing of the kind", "harbour"):
        told = window.get(f"/page/conversations?words={words.replace(' ', '%20')}")[1]
        assert [entry["title"] for entry in told["conversations"]] == ([] if " " in words else ["Plan a trip"])
        assert told["unsearched"] > 1_000
    assert len(window.get("/page/conversations?words=letter%2024")[1]["conversations"]) == 100
    assert len(window.get("/page/conversations")[1]["conversations"]) == 100
    talk(window, "/page/say", {"text": "And now?"})
    assert said(window)[-1] == "Heard."


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "Pay the bill of the plumber in March and tell me what is left over for the holidays, instead of paying",
            None,
        ),
        ("short and whole", "short and whole"),
        ("x" * 200, "x" * 79 + "…"),
    ],
)
def test_a_title_ends_with_a_whole_word_and_says_that_there_was_more(houses, text, title):
    """A title that ends in "instead of p" looks like a fault, and reads like another word."""
    window = Browserless((house := houses("Yes.")).address).enter(house.key())
    talk(window, "/page/say", {"text": text})
    assert listed(window) == [
        (title or "Pay the bill of the plumber in March and tell me what is left over for the…", True)
    ]


def test_a_title_can_be_changed_and_hostile_ones_are_marked(houses):
    """A title is shown wherever conversations are; it must not reorder the line that it stands in."""
    window = houses("Yes.").window()
    talk(window, "/page/say", {"text": "first"})
    id = window.get("/page/state")[1]["session"]
    assert window.post("/page/rename", {"id": id, "title": " The \n trip\u202e "})[0] == 200
    assert listed(window) == [("The trip‹U+202E›", True)]
    assert window.post("/page/rename", {"id": id, "title": "  "})[0] == 400
    assert window.post("/page/rename", {"id": "other", "title": "x"})[0] == 404


def test_a_deleted_conversation_is_forgotten_to_the_last_word(houses):
    """Who deletes means it: neither the list nor the store has the words any more."""
    store = MemoryStore()
    house = houses("Noted: the code is heron.", store=store)
    window = house.window()
    talk(window, "/page/say", {"text": "Remember heron"})
    id = window.get("/page/state")[1]["session"]
    assert window.post("/page/delete", {"id": id})[0] == 200
    assert said(window) == []
    assert all(title != "Remember heron" for title, _ in listed(window))
    assert window.post("/page/open", {"id": id})[0] == 404
    records = house.do(store.read())
    assert not any(b"heron" in (record.data or b"") for record in records)


def test_a_conversation_with_a_card_is_neither_left_nor_deleted(houses):
    """A question that nobody sees any more would wait for ever."""
    house = houses({"name": "publish", "arguments": {"version": "1", "index": "x"}}, "Then not.")
    window = house.window()
    window.post("/page/say", {"text": "publish"})
    [request] = house.waiting()
    id = window.get("/page/state")[1]["session"]
    assert window.post("/page/new")[1]["error"]["code"] == "busy"
    assert window.post("/page/delete", {"id": id})[1]["error"]["code"] == "unfinished"
    assert window.post("/page/again", {"message": "m1"})[1]["error"]["code"] == "busy"
    body = {"call_id": request.call_id, "digest": request.digest, "action": "deny"}
    assert window.post("/page/answer", body)[0] == 200


def test_an_edited_message_goes_on_from_there_and_what_was_called_stays_done(houses):
    """The words after it do not count any more; effects cannot be unsaid, so the model is told of them."""
    house = houses("Fine.", CALL, "Sum is 1.", "Other sum.")
    house.session.preset = house.presets[1]
    window = house.window()
    window.post("/page/preset", {"name": "trusting"})
    talk(window, "/page/say", {"text": "Hello"})
    talk(window, "/page/say", {"text": "Add it wrong"})
    message = next(i for i in window.get("/page/state")[1]["items"] if i.get("text") == "Add it wrong")
    talk(window, "/page/again", {"message": message["id"], "text": "Add it right"})
    assert len(house.effects) == 1
    words = said(window)
    assert "Add it wrong" not in words
    assert "Sum is 1." not in words
    assert words[-2:] == ["Add it right", "Other sum."]
    assert any("stays done: 1 call" in text for text in words)
    heard = json.dumps(house.model.heard[-1])  # type: ignore[attr-defined]
    assert "Hello" in heard
    assert "Add it wrong" not in heard
    assert "add_up (succeeded)" in heard
    assert [i["tool"] for i in window.get("/page/state")[1]["items"] if i["kind"] == "call"] == ["add_up"]


def test_going_back_tells_the_model_of_a_call_in_doubt(houses):
    """It may have been done. A model that is not told of it asks for the same once more."""
    house = houses("Fine.", "Then I look first.")
    window = house.window()
    talk(window, "/page/say", {"text": "Pay the bill"})

    async def die_while_it_runs() -> None:
        house.front.page.view.show(views.CallItem(id="c1", tool="pay", status="doubt"))

    house.do(die_while_it_runs())
    message = next(i for i in window.get("/page/state")[1]["items"] if i.get("text") == "Pay the bill")
    talk(window, "/page/again", {"message": message["id"], "text": "Pay the other bill"})
    assert "pay (nobody knows how it ended)" in json.dumps(house.model.heard[-1])
    assert any("1 call" in text for text in said(window))


def test_a_message_that_the_model_failed_on_can_be_sent_again(houses):
    """The words are there already; nobody should have to type them twice."""
    house = houses(None, "Now it works.")
    window = house.window()
    talk(window, "/page/say", {"text": "a\u200bb"})
    items = window.get("/page/state")[1]["items"]
    assert items[-1]["problem"]
    assert "no room left" in items[-1]["text"]
    talk(window, "/page/again", {"message": items[0]["id"]})
    assert said(window) == ["a‹U+200B›b", "Now it works."]
    assert house.model.heard[-1][-1]["content"] == "a\u200bb"  # type: ignore[attr-defined]


def test_going_back_survives_a_restart(houses):
    """What does not count any more must not come back with the next start."""
    store = MemoryStore()
    window = houses("One.", "Two.", "Three.", store=store, id="trip").window()
    talk(window, "/page/say", {"text": "first"})
    talk(window, "/page/say", {"text": "second"})
    message = next(i for i in window.get("/page/state")[1]["items"] if i.get("text") == "first")
    talk(window, "/page/again", {"message": message["id"], "text": "only"})
    again = houses(store=store, id="trip")
    assert said(again.window()) == ["only", "Three."]


def counts(window: Browserless) -> list[int | None]:
    """The tokens under the answers that are shown."""
    items = window.get("/page/state")[1]["items"]
    return [item["tokens"] for item in items if item["kind"] == "message" and item["by"] == "assistant"]


def test_what_the_answers_took_survives_a_restart(houses):
    """The sum of a conversation began anew with every start, and nothing stood under the answers of yesterday."""
    store = MemoryStore()
    house = houses("One.", CALL, "Two.", store=store, id="trip")
    house.session.preset = house.presets[1]
    window = house.window()
    window.post("/page/preset", {"name": "trusting"})
    talk(window, "/page/say", {"text": "first"})
    talk(window, "/page/say", {"text": "second"})
    before = window.get("/page/tokens")[1]
    assert (before["tokens"], before["answers"], before["uncounted"], before["taken_back"]) == (6, 2, 0, 0)
    assert before["words"] == "4 tokens for the last answer that was counted, 6 for all 2 answers."
    again = houses("Three.", store=store, id="trip")
    window = again.window()
    assert counts(window) == [2, 4]
    assert window.get("/page/tokens")[1] == before
    talk(window, "/page/say", {"text": "third"})
    assert window.get("/page/tokens")[1]["tokens"] == 8
    window.post("/page/new")
    assert window.get("/page/tokens")[1]["words"] == "The model's server has counted no tokens here."


def test_tokens_of_what_was_taken_back_were_spent_and_stand_under_no_other_answer(houses):
    """Turns are numbered anew after a message is edited: an old count must not pass for that of a new one."""
    store = MemoryStore()
    house = houses("One.", CALL, "Two.", "Three.", None, store=store, id="trip")
    house.session.preset = house.presets[1]
    window = house.window()
    window.post("/page/preset", {"name": "trusting"})
    talk(window, "/page/say", {"text": "first"})
    talk(window, "/page/say", {"text": "second"})
    message = next(i for i in window.get("/page/state")[1]["items"] if i.get("text") == "second")
    talk(window, "/page/again", {"message": message["id"], "text": "other"})
    total = window.get("/page/tokens")[1]
    assert (total["tokens"], total["answers"], total["taken_back"]) == (8, 3, 1)
    assert total["words"].endswith("In the sum are 4 for 1 that you took back: they were spent all the same.")
    assert counts(window) == [2, 2]
    # Back to the beginning, and the model fails: nothing stands, and what was spent is spent.
    message = next(i for i in window.get("/page/state")[1]["items"] if i.get("text") == "first")
    talk(window, "/page/again", {"message": message["id"], "text": "anew"})
    again = houses("Late.", store=store, id="trip")
    window = again.window()
    assert counts(window) == []
    assert [window.get("/page/tokens")[1][name] for name in ("tokens", "taken_back")] == [8, 3]
    talk(window, "/page/say", {"text": "last"})
    third = houses(store=store, id="trip")
    assert counts(third.window()) == [2]


def test_a_restart_comes_back_to_the_conversation_that_was_open(houses, tmp_path):
    """Not to an empty one, and not to one of another folder or one that was deleted."""
    store = MemoryStore()
    house = houses("One.", store=store)
    window = house.window()
    talk(window, "/page/say", {"text": "first"})
    window.post("/page/new")
    open_now = window.get("/page/state")[1]["session"]
    assert house.do(open_last(store, str(tmp_path))) == open_now
    assert house.do(open_last(store, "/elsewhere")) is None
    first = next(e["id"] for e in window.get("/page/conversations")[1]["conversations"] if not e["is_open"])
    window.post("/page/open", {"id": first})
    assert house.do(open_last(store, str(tmp_path))) == first
    window.post("/page/delete", {"id": first})
    assert house.do(open_last(store, str(tmp_path))) not in (first, None)
