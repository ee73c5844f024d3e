"""The inbox without a browser: what a window is told of other programs' cards, and which answers are refused."""

import asyncio
import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import lastword
from lastword import Session
from lastword.call import Limits, wait_for_answer
from lastword.card import called, entry_of, views
from lastword.consent import Outcome, People
from lastword.journal import Journal
from lastword.journal.programs import program_name
from lastword.terminal.chat_commands import groups
from lastword.web.conversation import Inbox
from lastword.web.shared_items import Feed
from requirements import requirement
from surfaces.askers import tools_of_an_asker, until_pending
from surfaces.test_terminal_inbox import entry as an_entry
from surfaces.windows import PATIENCE_SECONDS, Browserless, House


class Neighbour:
    """Another session on the journal of a house."""

    def __init__(self, house: House, done: Path, journal: Journal | None = None, **facts: Any) -> None:
        self.house = house
        shared = journal or house.session.journal
        self.session = Session(tools_of_an_asker(done), approver=wait_for_answer, journal=shared, **facts)

    def ask(self, tool: str, **arguments: Any) -> "Future[Outcome]":
        before = len(self.session.pending())
        call = asyncio.run_coroutine_threadsafe(self.session.call(tool, arguments), self.house.loop)
        self.house.do(until_pending(self.session, before + 1))
        return call


@pytest.fixture
def neighbour(house: House, tmp_path: Path) -> Neighbour:
    return Neighbour(house, tmp_path / "done")


def entries(window: Browserless, count: int) -> list[dict[str, Any]]:
    """What waits, once there are so many."""
    with window.events() as following:
        _, _, state = following()
        known = {entry["id"]: entry for entry in state["inbox"]}
        while len(known) != count:
            _, kind, data = following()
            if kind == "inbox":
                known |= {entry["id"]: entry for entry in data["put"]}
                for gone in data["gone"]:
                    known.pop(gone["id"], None)
    return list(known.values())


def look(window: Browserless, entry: dict[str, Any]) -> Any:
    status, call = window.get(f"/page/card?call_id={entry['id']}&digest={entry['digest']}")
    assert status == 200
    return call


def seen(entry: dict[str, Any]) -> dict[str, str]:
    return {"call_id": entry["id"], "digest": entry["digest"]}


def test_a_card_of_another_program_is_in_the_inbox_and_not_in_the_conversation(house, window, neighbour):
    """It must not take the place of what the person and their own assistant are at."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    assert entry["name"] == "Add note"
    assert entry["summary"] == "page: a, text: hello"
    assert entry["session"] == neighbour.session.id
    assert entry["asker"] == "waits"
    assert window.get("/page/state")[1]["items"] == []
    assert window.post("/page/answer", {**seen(entry), "action": "deny"})[0] == 200
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("TOOL-55")
def test_a_yes_from_a_window_that_has_not_looked_is_refused(house, window, neighbour, tmp_path):
    """Consent is to what was seen, and this window was never sent what the card says."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    for path, body in (
        ("/page/answer", {**seen(entry), "action": "allow"}),
        ("/page/answers", {"cards": [seen(entry)], "action": "allow"}),
    ):
        status, told = window.post(path, body)
        code = told["error"]["code"] if status != 200 else told["results"][0]["code"]
        assert code == "not_seen"
    # That another window has looked is nothing to this one.
    look(house.window(), entry)
    assert window.post("/page/answer", {**seen(entry), "action": "allow"})[1]["error"]["code"] == "not_seen"
    assert not call.done()
    look(window, entry)
    assert window.post("/page/answer", {**seen(entry), "action": "allow"})[0] == 200
    assert call.result(PATIENCE_SECONDS).success


@requirement("TOOL-55")
def test_a_yes_right_after_looking_is_refused(house, window, neighbour, unhurried):
    """Nobody reads a card in no time: neither alone nor among several."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    look(window, entry)
    body = {"cards": [seen(entry)], "action": "allow"}
    assert window.post("/page/answers", body)[1]["results"][0]["code"] == "too_soon"
    assert window.post("/page/answer", {**seen(entry), "action": "allow"})[1]["error"]["code"] == "too_soon"
    assert not call.done()
    window.post("/page/answer", {**seen(entry), "action": "deny"})
    call.result(PATIENCE_SECONDS)


def test_several_are_answered_at_once_and_one_that_is_refused_holds_up_no_other(house, window, neighbour):
    """Each as if it had been answered alone; what became of each is said."""
    calls = [neighbour.ask("add_note", page=str(n), text="hello") for n in range(3)]
    letter = neighbour.ask("send_letter", to="Ann", text="Dear Ann")
    odd = neighbour.ask("odd_one", text="x")
    found = entries(window, 5)
    for entry in found:
        look(window, entry)
    late = found[0]
    window.post("/page/answer", {**seen(late), "action": "deny"})
    done = window.post("/page/answers", {"cards": [seen(entry) for entry in found], "action": "allow"})[1]
    codes = {result["call_id"]: result["code"] for result in done["results"]}
    assert [codes[entry["id"]] for entry in found] == ["not_waiting", None, None, "alone", "alone"]
    assert [call.result(PATIENCE_SECONDS).kind for call in calls] == ["denied", "succeeded", "succeeded"]
    assert not letter.done()
    assert not odd.done(), "what nobody said can be undone is allowed by itself only"
    left = [seen(entry) for entry in found[3:]]
    done = window.post("/page/answers", {"cards": left, "action": "deny", "reason": "not today"})[1]
    assert [result["code"] for result in done["results"]] == [None, None]
    assert "not today" in letter.result(PATIENCE_SECONDS).message
    assert odd.result(PATIENCE_SECONDS).kind == "denied"


@requirement("TOOL-55")
@pytest.mark.parametrize("surface", ["page", "terminal"])
def test_a_yes_to_several_is_refused_for_one_of_which_a_part_stayed_folded(house, neighbour, surface):
    """Our page holds the press back; a request that goes past it allowed what nobody could have read to its end."""
    long = neighbour.ask("add_note", page="long", text="remember the milk " * 100 + "and forget the rest")
    short = neighbour.ask("add_note", page="short", text="remember the milk")
    window = Browserless(house.address).enter(house.key() + ("&as=terminal" if surface == "terminal" else ""))
    found = {entry["summary"].split(",")[0]: entry for entry in entries(window, 2)}
    cards = [found["page: long"], found["page: short"]]
    assert [look(window, entry)["card"]["folded"] for entry in cards] == [["argument text"], []]
    for opened in ([], ["argument page"], ["message", "preview 0"]):
        given = [seen(cards[0]) | {"opened": opened}]
        [result] = window.post("/page/answers", {"cards": given, "action": "allow"})[1]["results"]
        assert result["code"] == "not_opened"
        assert "argument text" in result["message"]
    assert not long.done()
    given = [seen(cards[0]) | {"opened": ["argument text"]}, {**seen(cards[1])}]
    done = window.post("/page/answers", {"cards": given, "action": "allow"})[1]
    assert [result["code"] for result in done["results"]] == [None, None]
    assert [call.result(PATIENCE_SECONDS).kind for call in (long, short)] == ["succeeded"] * 2


def test_several_can_be_denied_without_opening_anything(window, neighbour):
    """A no needs no reading."""
    call = neighbour.ask("add_note", page="long", text="remember the milk " * 100)
    cards = [seen(entry) for entry in entries(window, 1)]
    assert window.post("/page/answers", {"cards": cards, "action": "deny"})[1]["results"][0]["code"] is None
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@pytest.mark.parametrize(
    ("cards", "code"),
    [
        ([], "no_cards"),
        ([{"call_id": str(n), "digest": "d"} for n in range(51)], "too_many"),
        ([{"call_id": "a", "digest": "d"}, {"call_id": "a", "digest": "e"}], "named_twice"),
        ([{"call_id": "a", "digest": "d"}, {"call_id": "a", "digest": "d", "opened": ["message"]}], "named_twice"),
    ],
)
def test_a_list_that_nobody_can_have_read_is_refused_whole(window, cards, code):
    """Nothing of it is answered."""
    status, told = window.post("/page/answers", {"cards": cards, "action": "allow"})
    assert status == 400
    assert told["error"]["code"] == code


def test_a_question_that_changed_since_it_was_seen_is_not_answered_among_others(house, window, neighbour):
    """The digest is that of what was on the screen."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    look(window, entry)
    body = {"cards": [{"call_id": entry["id"], "digest": "0" * 64}], "action": "allow"}
    assert window.post("/page/answers", body)[1]["results"][0]["code"] == "changed"
    assert window.get(f"/page/card?call_id={entry['id']}&digest=0")[1]["error"]["code"] == "changed"
    assert not call.done()
    window.post("/page/answer", {**seen(entry), "action": "deny"})
    call.result(PATIENCE_SECONDS)


def test_windows_are_told_who_answered_a_card_that_is_gone(house, window, neighbour):
    """A row that vanishes without a word leaves a person wondering whether it ran."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    with window.events() as following:
        following()
        window.post("/page/answer", {**seen(entry), "action": "deny", "reason": "no"})
        kind, data = "", {}
        while kind != "inbox":
            _, kind, data = following()
    assert data["put"] == []
    [gone] = data["gone"]
    assert gone["id"] == entry["id"]
    assert gone["reply"] == {"how": "denied", "by": "the page", "reason": "no", "surface": "page"}
    call.result(PATIENCE_SECONDS)


def test_windows_are_told_what_an_allowed_call_of_another_program_did(house, window, neighbour):
    """Somebody who said yes wants to know what came of it, also where another program carries it out."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [entry] = entries(window, 1)
    look(window, entry)
    with window.events() as following:
        following()
        assert window.post("/page/answer", {**seen(entry), "action": "allow"})[0] == 200
        end = None
        while end is None:
            _, kind, data = following()
            if kind == "inbox":
                [gone] = data["gone"]
                assert gone["reply"]["how"] == "allowed"
                end = gone["end"]
    assert (end["kind"], end["message"]) == ("succeeded", "Done.")
    assert call.result(PATIENCE_SECONDS).success


def test_many_cards_of_others_push_nothing_out_of_the_conversation(house, window, neighbour):
    """What a window keeps is bounded, and cards that wait stay: they must not do so at the cost of the chat."""
    house.call("count", to=1).result(PATIENCE_SECONDS)
    before = window.get("/page/state")[1]["items"]
    calls = [neighbour.ask("look_up", word=str(n)) for n in range(420)]
    assert len(entries(window, 420)) == 420
    assert window.get("/page/state")[1]["items"] == before
    neighbour.house.do(neighbour.session.close())
    for call in calls:
        call.cancel()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/usr/bin/lastword", "run", "--var", "token=secret"], "lastword run, process 7"),
        (["/x/lastword/__main__.py", "call", "pay", "password=secret"], "lastword call, process 7"),
        (["/x/lastword", "--store", "sqlite:///secret"], "lastword, process 7"),
        (["/home/ann/agent.py", "secret"], "agent.py, process 7"),
        (["-c"], "a program, process 7"),
        ([""], "a program, process 7"),
        ([], "a program, process 7"),
    ],
)
def test_a_program_is_named_by_nothing_that_could_be_a_secret(command, said):
    """The name goes into the journal and onto every screen; the rest of a command line stays where it is."""
    assert program_name(command, 7) == said


def test_cards_are_alike_when_one_tool_of_one_program_asks(house, neighbour):
    """A program that calls itself by another's name is not grouped with it."""
    call = neighbour.ask("add_note", page="a", text="hello")
    [request] = neighbour.session.pending()
    one = entry_of(request, 1.0, session="s", program="p")
    assert entry_of(request, 2.0, session="s", program="p").alike == one.alike
    assert entry_of(request, 2.0, session="t", program="p").alike != one.alike
    many: list[views.InboxEntry] = [one, one, one, entry_of(request, 2.0, session="t", program="p"), one]
    assert [len(members) for members in groups(many)] == [4, 1]
    assert [len(members) for members in groups(many[:4])] == [1, 1, 1, 1]
    neighbour.session.cancel(request.call_id)
    call.result(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("clerk.py, process 7", "clerk.py, process 7"),
        ("", "a program, session s1234567"),
        ("This conversation", "a program that calls itself “This conversation”"),
        ("this\u00a0conversation\n", "a program that calls itself “this‹U+00A0›conversation⏎”"),
        ("x" * 200 + ", process 7", "x" * 60 + "… (140 more characters), process 7"),
    ],
)
def test_a_program_passes_for_nothing_that_it_is_not(name, words):
    """It chooses its name, and the words for the person's own assistant are not for it to take."""
    assert called(name, "abcdef0123", "s12345678") == words


def test_programs_of_the_same_name_are_told_apart(tmp_path, houses):
    """Two that call themselves the same are two in the list and in its filter, and it is said that there are two."""
    store = f"sqlite:///{tmp_path}/journal.db"
    house = houses(store=lastword.open_journal(store).store)
    first, second = (Neighbour(house, tmp_path / "done", lastword.open_journal(store)) for _ in range(2))
    calls = [first.ask("look_up", word="one")]
    window = house.window()
    [alone] = entries(window, 1)
    assert "of this name" not in alone["program"]
    calls += [second.ask("look_up", word="two"), second.ask("look_up", word="three")]
    found = entries(window, 3)
    programs = {entry["summary"]: entry["program"] for entry in found}
    assert programs["word: two"] == programs["word: three"] != programs["word: one"]
    assert all(f"{alone['program']} (one of 2 of this name: " in program for program in programs.values())
    for entry in found:
        window.post("/page/answer", {**seen(entry), "action": "deny"})
    assert {call.result(PATIENCE_SECONDS).kind for call in calls} == {"denied"}
    for neighbour in (first, second):
        house.do(neighbour.session.close())
        house.do(neighbour.session.journal.close())


def test_a_card_that_nobody_answered_in_time_is_told_from_one_that_was_given_up(house, window, tmp_path):
    """Somebody who comes back to a struck row wants to know whether they were late."""
    late = Neighbour(house, tmp_path / "done", limits=Limits(approval_timeout_seconds=3))
    gave_up = Neighbour(house, tmp_path / "done")
    calls = [late.ask("look_up", word="late"), gave_up.ask("look_up", word="given up")]
    [request] = gave_up.session.pending()
    with window.events() as following:
        known = {entry["id"]: entry for entry in following()[2]["inbox"]}
        gone: dict[str, Any] = {}
        while len(gone) < 2:
            _, kind, data = following()
            if kind == "inbox":
                known |= {entry["id"]: entry for entry in data["put"]}
                gone |= {known[end["id"]]["summary"]: end for end in data["gone"]}
            if len(known) == 2:
                gave_up.house.loop.call_soon_threadsafe(gave_up.session.cancel, request.call_id)
    assert (gone["word: late"]["reply"], gone["word: late"]["end"]["kind"]) == (None, "expired")
    assert gone["word: given up"]["reply"]["how"] == "closed"
    assert [call.result(PATIENCE_SECONDS).kind for call in calls] == ["expired", "denied"]


def missed(window: Browserless, count: int) -> list[dict[str, Any]]:
    """What nobody answered in time, once there are so many."""
    with window.events() as following:
        found = following()[2]["missed"]
        while len(found) != count:
            _, kind, data = following()
            if kind in ("inbox", "state") and data["missed"] is not None:
                found = data["missed"]
    return list(found)


def test_what_nobody_answered_in_time_is_kept_apart_from_what_waits(house, window, tmp_path):
    """A card that expired overnight was gone without a trace for whoever came in the morning. It is not counted."""
    call = Neighbour(house, tmp_path / "done", limits=Limits(approval_timeout_seconds=3)).ask("look_up", word="late")
    [late] = missed(window, 1)
    assert call.result(PATIENCE_SECONDS).kind == "expired"
    assert late["entry"]["summary"] == "word: late"
    assert late["at"] >= late["entry"]["asked_at"]
    assert window.get("/page/state")[1]["inbox"] == []
    status, told = window.post("/page/answer", {**seen(late["entry"]), "action": "allow"})
    assert (status, told["error"]["code"]) == (409, "not_waiting")
    [result] = window.post("/page/answers", {"cards": [seen(late["entry"])], "action": "allow"})[1]["results"]
    assert result["code"] == "not_waiting"


def test_cards_whose_time_is_up_at_once_stand_in_the_order_in_which_it_was(house, window, tmp_path):
    """Found by one look, they stood in any order, and in another one after a restart: rows moved under the pointer."""
    neighbour = Neighbour(house, tmp_path / "done", limits=Limits(approval_timeout_seconds=3))
    calls = [neighbour.session.call("look_up", {"word": str(n)}) for n in range(12)]
    ended = [asyncio.run_coroutine_threadsafe(call, house.loop) for call in calls]
    entries(window, 12)
    assert {call.result(PATIENCE_SECONDS).kind for call in ended} == {"expired"}
    records = house.do(house.store.read(kind="finished"))
    assert [(each["entry"]["id"], each["at"]) for each in missed(window, 12)] == [
        (record.subject, record.at / 1e6) for record in sorted(records, key=lambda record: (record.at, record.subject))
    ]


def test_what_was_missed_is_there_after_a_restart_and_for_a_day(tmp_path):
    """The program that shows it may be the one that was away."""
    clock = Clock()
    first = House(tmp_path, id="trip", clock=clock, limits=Limits(approval_timeout_seconds=3)).open()
    window = first.window()
    own = first.call("sign_in", user="ann", password="secret-of-ann")
    neighbour = Neighbour(first, tmp_path / "done", limits=Limits(approval_timeout_seconds=3))
    theirs = neighbour.ask("look_up", word="late")
    before = missed(window, 2)
    assert [call.result(PATIENCE_SECONDS).kind for call in (own, theirs)] == ["expired", "expired"]
    assert {entry["entry"]["session"] for entry in before} == {None, neighbour.session.id}
    first.close()
    second = House(tmp_path, store=first.store, id="trip", clock=clock).open()
    window = second.window()
    again = missed(window, 2)
    assert {entry["entry"]["id"]: entry["entry"]["session"] for entry in again} == {
        entry["entry"]["id"]: entry["entry"]["session"] for entry in before
    }
    assert "secret-of-ann" not in json.dumps(again)
    # In another conversation it is not this one's any more, and coming back makes it so again.
    window.post("/page/new")
    sessions = {entry["entry"]["session"]: entry["entry"]["program"] for entry in missed(window, 2)}
    assert sessions["trip"] == "another conversation of yours"
    window.post("/page/open", {"id": "trip"})
    assert None in {entry["entry"]["session"] for entry in missed(window, 2)}
    second.close()
    clock.now += 25 * 3600
    third = House(tmp_path, store=first.store, id="trip", clock=clock).open()
    later = Neighbour(third, tmp_path / "done")
    waiting = later.ask("look_up", word="new")
    window = third.window()
    assert len(entries(window, 1)) == 1
    assert window.get("/page/state")[1]["missed"] == []
    waiting.cancel()
    third.close()


class Clock:
    """Stands still, unless somebody moves it."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


def test_no_more_is_kept_of_what_was_missed_than_somebody_looks_through():
    """A program that asks all night must not fill every window with what is over."""
    feed, clock = Feed(), Clock()
    inbox = Inbox(feed, clock)
    for n in range(120):
        clock.now += 60
        inbox.change([an_entry(str(n))])
        inbox.drop(
            views.InboxGone(str(n), None, views.CallEnd(kind="expired", words="", message="", hidden=0, success=False))
        )
    assert [missed.entry.id for missed in inbox.missed] == [str(n) for n in range(70, 120)]
    assert inbox.entries == ()


@requirement("TEAM-3")
def test_a_page_neither_shows_nor_answers_what_is_another_persons(tmp_path, houses):
    """Two people share a memory. What a request claims about whose a card is counts for nothing: the record does."""
    house = houses(people=People("bob"))
    window = house.window()
    hers = Neighbour(house, tmp_path / "done", Journal(house.store, people=People("ann")), id="hers")
    everybodys = Neighbour(house, tmp_path / "done", Journal(house.store))
    call = hers.ask("add_note", page="diary", text="private")
    everybodys.ask("look_up", word="milk")
    [shown] = entries(window, 1)
    assert shown["tool"] == "look_up", "what has no name is everybody's, as before"
    [facts] = [one for one in house.do(house.session.journal.waiting()) if one.get("principal") == "ann"]
    card = {"call_id": facts["call_id"], "digest": facts["digest"]}
    query = f"call_id={facts['call_id']}&digest={facts['digest']}"
    assert window.get(f"/page/card?{query}")[0] == 409
    assert window.get(f"/page/question?{query}")[0] == 409
    for body in ({"action": "allow"}, {"action": "deny"}):
        assert window.post("/page/answer", card | body)[1]["error"]["code"] == "not_waiting"
        answered = window.post("/page/answers", {"cards": [card]} | body)[1]["results"]
        assert [result["code"] for result in answered] == ["not_waiting"]
    for claim in ({"principal": "ann"}, {"by": {"kind": "person", "principal": "ann"}}):
        assert window.post("/page/answer", card | {"action": "allow"} | claim)[0] in (400, 409)
    for path in ("/page/timeline?session=hers", "/page/export?session=hers"):
        assert window.get(path)[1]["error"]["code"] == "unknown_session"
    assert window.post("/page/open", {"id": "hers"})[0] == 404
    assert house.do(house.store.read(kind="answered")) == []
    assert not call.done()


@requirement("TEAM-3")
def test_a_page_answers_for_its_person(tmp_path, houses):
    """Of another program of hers, and of one for whom she was named."""
    house = houses(people=People("ann", {"ann": ("cid",)}))
    window = house.window()
    for who in ("ann", "cid"):
        theirs = Neighbour(house, tmp_path / "done", Journal(house.store, people=People(who, {"ann": ("cid",)})))
        call = theirs.ask("add_note", page=who, text="for the team")
        [shown] = entries(window, 1)
        look(window, shown)
        assert window.post("/page/answer", {**seen(shown), "action": "allow"})[0] == 200
        assert call.result(PATIENCE_SECONDS).success
