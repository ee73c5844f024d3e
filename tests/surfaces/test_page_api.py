"""The page's API by raw requests: who gets in, what is refused, and what can be answered by whom."""

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lastword import Session
from lastword.call import wait_for_answer
from lastword.consent import Answerer, Call, LiveCall
from lastword.journal import Journal
from lastword.store import Entry, MemoryStore
from lastword.web.page_gate import HEADERS
from lastword.web.shared_items import Feed
from requirements import requirement
from surfaces.windows import PATIENCE_SECONDS, WELCOME, Browserless, House, tools_of_every_kind
from surfaces.windows import told as fields_told


def card_in(window):
    """The first card that waits, as a window sees it."""
    return next(item for item in window.get("/page/state")[1]["items"] if item["kind"] == "call" and item["card"])


def asked(house, window, tool, **arguments):
    """A call that waits for its card, and the card."""
    call = house.call(tool, **arguments)
    house.waiting()
    return call, card_in(window)


def answer(window, item, action="allow", **more):
    """What a window sends that does everything right; `more` is what this one does otherwise."""
    card = item["card"]
    body = {"call_id": item["id"], "digest": card["digest"], "action": action}
    if action == "allow":
        body |= {"word": card["word"], "opened": card["must_open"]}
    return window.post("/page/answer", body | more)


@requirement("API-52")
@pytest.mark.parametrize(
    "path", ["/page/state", "/page/events", "/page/timeline", "/page/export", "/page/question", "/page/shared"]
)
def test_without_the_cookie_nothing_can_be_read(house, path):
    """A program on the same machine may know the port. It does not know the key."""
    status, _, body = Browserless(house.address).raw("GET", path)
    assert status == 401
    assert b"lastword up" in body


@requirement("API-52")
@pytest.mark.parametrize(
    "path", ["answer", "say", "stop", "stop_everything", "cancel", "resolve", "undo", "preset", "model", "key", "lock"]
)
def test_nothing_can_be_changed_without_the_token(house, window, path):
    """The cookie alone is what a forged form would carry."""
    call, item = asked(house, window, "publish", version="1", index="test")
    body = {"call_id": item["id"], "digest": item["card"]["digest"], "action": "allow"}
    window.token = ""
    assert window.post(f"/page/{path}", body)[0] == 403
    window.token = "0" * 64
    assert window.post(f"/page/{path}", body)[0] == 403
    assert house.effects == []
    assert not call.done()
    house.session.cancel(item["id"])


@requirement("API-52")
def test_a_token_of_one_window_does_not_fit_another(house, window):
    """Tokens belong to their cookie."""
    other = house.window()
    other.token = window.token
    assert other.post("/page/stop")[0] == 403


@requirement("API-52")
def test_a_key_opens_the_page_once(house):
    """An address that was printed, logged or left in a history opens nothing twice."""
    key = house.key()
    Browserless(house.address).enter(key)
    status, _, body = Browserless(house.address).raw("GET", key.removeprefix(house.address))
    assert status == 403
    assert b"used before" in body
    # One that never was a key was not used before, and whoever has it is told so.
    for path in ("/enter", "/enter?key=", "/enter?key=nonsense"):
        status, _, body = Browserless(house.address).raw("GET", path)
        assert status == 403
        assert b"This key opens nothing" in body
        assert b"used before" not in body


@requirement("API-52")
def test_the_cookie_cannot_be_read_by_scripts_nor_sent_by_other_sites(house):
    """HttpOnly and SameSite=Strict, for the whole page and no other host."""
    _, headers, _ = Browserless(house.address).raw("GET", house.key().removeprefix(house.address))
    parts = {part.strip() for part in headers["set-cookie"].split(";")[1:]}
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= parts
    assert not any(part.startswith("Domain") for part in parts)


@requirement("API-52")
@pytest.mark.parametrize(
    ("host", "is_secure"),
    [("desk.example", True), ("desk.example:8443", True), ("localhost", False), ("127.0.0.1:8811", False)],
)
def test_a_cookie_that_came_through_a_proxy_goes_by_tls_alone(host, is_secure, houses):
    """Found by trying it: through nginx the cookie came without Secure, and a plain link would have sent it bare."""
    house = houses(hosts=("desk.example",))
    path = house.key().removeprefix(house.address)
    status, headers, _ = Browserless(house.address).raw("GET", path, headers={"Host": host})
    assert status == 303
    assert ("Secure" in headers["set-cookie"].split("; ")) is is_secure


@requirement("API-52")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_another_host_name_is_refused(house, window, host):
    """DNS rebinding: the name is theirs, the address is ours, and the cookie would not even be needed to read files."""
    for path in ("/", "/enter", "/page/state", "/assets/x.js"):
        assert window.raw("GET", path, headers={"Host": host, "Cookie": window.cookie})[0] == 421
    given = {
        "Host": host,
        "Cookie": window.cookie,
        "X-Lastword-Token": window.token,
        "Content-Type": "application/json",
    }
    assert window.raw("POST", "/page/stop", {}, given)[0] == 421


@requirement("API-52")
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "https://127.0.0.1:1"]
)
def test_another_origin_is_refused(window, origin):
    """A page of another site, a file, another port of this machine."""
    assert window.post("/page/stop", Origin=origin)[0] == 403
    assert window.raw("GET", "/page/state", headers={"Cookie": window.cookie, "Origin": origin})[0] == 403


@requirement("API-52")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_the_request_is_anothers_is_believed(window, site):
    """A link, an image or a form of another page carries no Origin on a GET, but browsers say where it came from."""
    assert window.raw("GET", "/page/state", headers={"Cookie": window.cookie, "Sec-Fetch-Site": site})[0] == 403
    assert window.post("/page/stop", **{"Sec-Fetch-Site": site})[0] == 403


@requirement("API-52")
def test_every_answer_says_that_it_is_framed_by_nobody_and_runs_no_inline_script(house, window):
    """The policy is on the page, its files, its data and its refusals in words."""
    index = window.raw("GET", "/", headers={"Cookie": window.cookie})
    files = re.findall(rb'(?:src|href)="(/assets/[^"]+)"', index[2])
    assert files
    answers = [index, window.raw("GET", "/"), window.raw("GET", "/enter?key=no")]
    answers += [window.raw("GET", path.decode()) for path in files]
    answers += [window.raw("GET", "/page/state", headers={"Cookie": window.cookie})]
    for _, headers, _ in answers:
        for name, value in HEADERS.items():
            assert headers[name.lower()] == value
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert "*" not in HEADERS["Content-Security-Policy"]
    assert "http" not in HEADERS["Content-Security-Policy"]


@requirement("API-52")
def test_the_page_has_no_inline_code_and_names_no_other_host(window):
    """What the policy forbids must not be there either: a page that breaks its own policy is half a page."""
    _, _, index = window.raw("GET", "/", headers={"Cookie": window.cookie})
    text = index.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    assert not re.search(r"(?:src|href)=\"(?!/assets/)", text)


@pytest.mark.parametrize(
    "path",
    ["/assets/..%2f..%2fpage.py", "/assets/../page.py", "/assets/.hidden", "/assets/", "/page/", "/page/nothing"],
)
def test_only_built_files_are_served(window, path):
    """The folder beside the page is Python."""
    status, _, body = window.raw("GET", path, headers={"Cookie": window.cookie})
    assert status in (404, 421)
    assert b"import" not in body


@requirement("API-54")
def test_neither_keys_nor_cookies_are_in_the_store(houses):
    """A stolen copy of the memory opens no window."""
    store = MemoryStore()
    house = houses(store=store)
    key = house.key()
    window = Browserless(house.address).enter(key)
    kept = b"".join(record.data or b"" for record in house.do(store.read()))
    kept += b"".join(record.subject.encode() for record in house.do(store.read()))
    assert key.partition("=")[2].encode() not in kept
    assert window.cookie.partition("=")[2].encode() not in kept
    assert window.token.encode() not in kept


def test_a_window_outlives_the_program_until_the_page_is_closed(tmp_path):
    """The cookie counts in the next run as well; closing the page takes it back in every run that follows."""
    store = MemoryStore()
    window = Browserless("")
    for run, (before, after) in enumerate([(303, 200), (200, 401), (401, 401)]):
        house = House(tmp_path, store).open()
        try:
            port = house.address.rpartition(":")[2]
            if run == 0:
                window = house.window()
            # The cookie's name has the port in it, and these runs have a port each.
            window.address, window.cookie = house.address, f"lastword_{port}={window.cookie.partition('=')[2]}"
            status = 303 if run == 0 else window.get("/page/state")[0]
            assert status == before
            if run == 1:
                window.token = window.get("/page/state")[1]["token"]
                assert window.post("/page/lock")[0] == 200
            assert window.get("/page/state")[0] == after
        finally:
            house.close()


def test_closing_the_page_closes_it_for_every_window(house, window):
    """A cookie on a borrowed machine is taken back."""
    other = house.window()
    assert window.post("/page/lock")[0] == 200
    assert window.get("/page/state")[0] == 401
    assert other.get("/page/state")[0] == 401
    assert house.window().get("/page/state")[0] == 200


def test_closing_the_page_ends_the_streams_that_are_open(house, window):
    """A cookie that counts no more must not go on hearing what is said, nor see the cards that come."""
    other = house.window()
    with window.events() as mine, other.events() as theirs:
        assert (mine()[1], theirs()[1]) == ("state", "state")
        assert window.post("/page/lock")[0] == 200
        late = house.window()
        with late.events() as following:
            assert following()[1] == "state"
            call = house.call("publish", version="told to nobody else", index="x")
            item = next_item(following)
            assert "told to nobody else" in json.dumps(item)
        for stream in (mine, theirs):
            assert "told to nobody else" not in json.dumps(rest_of(stream))
    assert answer(late, item, "deny")[0] == 200
    assert call.result(PATIENCE_SECONDS).kind == "denied"


def rest_of(following):
    """Every event that still comes, until the stream is over."""
    told = []
    with suppress(EOFError):
        while True:
            told.append(following())
    return told


def next_item(following):
    """The next item of a stream, whatever else comes before it."""
    while True:
        _, kind, data = following()
        if kind == "item":
            return data


@requirement("TOOL-55")
@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({"word": None}, "not_confirmed", "word"),
        ({"word": ""}, "not_confirmed", "word"),
        ({"word": "yes"}, "not_confirmed", "word"),
        ({"word": "allowallow"}, "not_confirmed", "word"),
        ({"opened": []}, "not_opened", "opened"),
        ({"opened": ["argument version", "message"]}, "not_opened", "opened"),
    ],
)
def test_an_irreversible_call_is_not_allowed_without_the_second_act(house, window, given, code, param):
    """Our page would not send it, so it is not our page, or it is broken."""
    call, item = asked(house, window, "publish", version="1.4.0", index="x" * 60_000)
    assert item["card"]["must_open"] == ["argument index"]
    status, body = answer(window, item, **given)
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, code, param)
    assert not call.done()
    assert house.effects == []
    assert answer(window, item)[0] == 200
    assert call.result(PATIENCE_SECONDS).success


@requirement("TOOL-6", "TOOL-55")
def test_a_call_that_does_not_say_whether_it_can_be_undone_takes_the_second_act_too(house, window):
    """Unsaid counts as irreversible: otherwise an author who forgets a word makes a payment one press."""
    call, item = asked(house, window, "post_letter", to="x" * 60_000)
    assert (item["card"]["effect"], item["card"]["word"], item["card"]["must_open"]) == (None, "allow", ["argument to"])
    for given, code in (({"word": None}, "not_confirmed"), ({"opened": []}, "not_opened")):
        status, body = answer(window, item, **given)
        assert (status, body["error"]["code"]) == (400, code)
        assert body["error"]["message"].startswith("its tool does not say whether this can be undone")
    assert house.effects == []
    assert answer(window, item)[0] == 200
    assert call.result(PATIENCE_SECONDS).success


@requirement("TOOL-55")
def test_an_answer_before_anybody_can_have_read_the_question_is_refused(house, window, monkeypatch):
    """No window sends one, and no person could. A denial harms nobody and counts at once."""
    monkeypatch.setattr("lastword.web.conversation.UNREAD_SECONDS", 3600)
    for action in ("deny", "allow"):
        call = house.call("add_up", numbers=[1], factor=1, rounded=True)
        house.waiting()
        status, body = answer(window, card_in(window))
        assert (status, body["error"]["code"]) == (409, "too_soon")
        assert not call.done()
        if action == "allow":
            monkeypatch.setattr("lastword.web.conversation.UNREAD_SECONDS", 0)
        assert answer(window, card_in(window), action)[0] == 200
        assert call.result(PATIENCE_SECONDS).success == (action == "allow")
    assert len(house.effects) == 1


@requirement("API-54", "TOOL-44")
def test_a_secret_never_reaches_the_page(house, window):
    """Not in the card, the state, the events, the timeline nor the export; the tool still gets it."""
    with window.events() as following:
        assert following()[1] == "state"
        call = house.call("sign_in", user="ada", password="hunter22")
        house.waiting()
        told = [following()]
        while told[-1][1] != "item":
            told.append(following())
        item = card_in(window)
        assert answer(window, item)[0] == 200
        assert call.result(PATIENCE_SECONDS).success
        while fields_told(told[-1][2]).get("status") != "ended":
            told.append(following())
    seen = json.dumps([told, window.get("/page/state"), window.get("/page/timeline")], ensure_ascii=False)
    seen += window.raw("GET", "/page/export", headers={"Cookie": window.cookie})[2].decode()
    assert "hunter22" not in seen
    assert "••••••" in seen
    assert house.effects == [("sign_in", "ada", "hunter22")]


def test_a_card_that_was_closed_is_called_closed(house, window):
    """Whoever closes it has not said no, and a row that says so would put words into their mouth."""
    call = house.call("add_up", numbers=[1], factor=1, rounded=True)
    house.waiting()
    assert answer(window, card_in(window), "close")[0] == 200
    assert call.result(PATIENCE_SECONDS).kind == "denied"
    [item] = window.get("/page/state")[1]["items"]
    assert (item["reply"]["how"], item["end"]["words"]) == ("closed", "closed")


def test_a_change_that_is_too_large_to_edit_is_folded_and_not_cut(house, window):
    """Every row comes along; which are seen at first is said."""
    call, item = asked(house, window, "write_file", path="large.txt", text="a line of it, one of very many\n" * 18_000)
    [preview] = item["card"]["previews"]
    assert len(preview["lines"]) >= 18_000
    assert 0 < preview["fold"] < 100
    assert answer(window, item, "deny")[0] == 200
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("TOOL-47")
def test_an_answer_counts_for_the_question_that_was_seen(house, window):
    """A window that was asleep shows yesterday's question. Its answer is not one to today's."""
    call, item = asked(house, window, "publish", version="1.4.0", index="test")
    item["card"]["digest"] = "0" * 64
    status, body = answer(window, item)
    assert (status, body["error"]["code"]) == (409, "changed")
    assert not call.done()
    assert house.effects == []
    assert answer(window, card_in(window))[0] == 200
    assert call.result(PATIENCE_SECONDS).success


def test_the_second_answer_is_told_that_it_came_too_late(house, window):
    """Two windows, two people: the first one counts and the other one hears of it."""
    other = house.window()
    call = house.call("publish", version="1.4.0", index="test")
    house.waiting()
    item = card_in(other)
    assert answer(window, item, "deny", reason="wrong index")[0] == 200
    status, body = answer(other, item)
    assert (status, body["error"]["code"]) == (409, "not_waiting")
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.kind == "denied"
    assert "wrong index" in outcome.message
    assert house.effects == []


@requirement("TOOL-47")
def test_edited_arguments_keep_their_types(house, window):
    """What is typed is text; what runs is a number, a list, a truth value. Large numbers stay exact."""
    call = house.call("add_up", numbers=[1, 2.5], factor=3, rounded=True)
    house.waiting()
    edits = {"numbers": "[4, 5]", "factor": "9007199254740993", "rounded": "false"}
    assert answer(window, card_in(window), edits=edits)[0] == 200
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.success, outcome.message
    assert house.effects == [("add_up", [4.0, 5.0], 9007199254740993, False)]
    assert "changed the arguments" in outcome.message


@requirement("TOOL-47")
@pytest.mark.parametrize(
    ("edits", "param"),
    [
        ({"factor": "many"}, "factor"),
        ({"numbers": "[1,"}, "numbers"),
        ({"rounded": "1"}, "rounded"),
        ({"nothing": "1"}, "nothing"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_in_words_and_the_card_still_waits(house, window, edits, param):
    """Nothing ran, nothing was answered, and the field is named."""
    call = house.call("add_up", numbers=[1], factor=1, rounded=True)
    house.waiting()
    status, body = answer(window, card_in(window), edits=edits)
    assert status == 400
    assert body["error"]["param"] == param
    assert not call.done()
    assert house.effects == []
    assert answer(window, card_in(window), "close")[0] == 200


def test_the_proposed_text_can_be_edited(house, window, tmp_path):
    """The text on the card is the argument: what the person made of it is what is written."""
    call, item = asked(house, window, "write_file", path="hello.py", text=WELCOME)
    assert item["card"]["previews"][0]["content"] == "text"
    mine = item["card"]["previews"][0]["raw"].replace("Welcome", "Good morning")
    assert answer(window, item, edits={"text": mine})[0] == 200
    assert call.result(PATIENCE_SECONDS).success
    assert (tmp_path / "hello.py").read_text() == mine


def test_marks_for_the_editor_are_counted_as_a_browser_counts(house, window):
    """An emoji is one character here and two there; a mark on the wrong place would hide what it should show."""
    call, item = asked(house, window, "write_file", path="new.py", text="\U0001f600\tok\u202e\U0001f600\u200b\n")
    assert item["card"]["previews"][0]["marks"] == [[5, 6, "‹U+202E›"], [8, 9, "‹U+200B›"]]
    assert answer(window, item, "deny")[0] == 200
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"call_id": "x", "digest": "y", "action": "approve"},
        {"call_id": "x", "digest": "y", "action": "allow", "extra": 1},
        {"call_id": 1, "digest": "y", "action": "allow"},
        {"call_id": "x", "digest": "y", "action": "allow", "edits": {"a": 1}},
    ],
)
def test_a_malformed_answer_is_refused(window, body):
    """Nothing is guessed into an approval."""
    status, told = window.post("/page/answer", body)
    assert status == 400
    assert told["error"]["code"] == "bad_request"


def test_stopping_a_call_keeps_its_partial_result(house, window):
    """Cancelled is not failed: the model gets what there was."""
    call = house.call("count", to=10_000)
    with window.events() as following:
        while not fields_told(following()[2]).get("reported_so_far"):
            pass
        running = next(i for i in window.get("/page/state")[1]["items"] if i["kind"] == "call")
        assert running["status"] == "running"
        assert window.post("/page/cancel", {"call_id": running["id"]})[0] == 200
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.kind == "cancelled"
    assert "It had counted to" in outcome.message
    assert window.post("/page/cancel", {"call_id": running["id"]})[0] == 409


def test_a_window_that_was_away_catches_up_exactly(house, window):
    """Every event has a number. Who names the last one seen gets the next, and nothing twice."""
    with window.events() as following:
        seen, kind, _ = following()
        assert kind == "state"
        call = house.call("publish", version="1", index="test")
        house.waiting()
        while following()[1] != "item":
            pass
    assert answer(window, card_in(window), "deny")[0] == 200
    call.result(PATIENCE_SECONDS)
    with window.events(seen) as following:
        first, kind, item = following()
    assert int(first.partition("-")[2]) == int(seen.partition("-")[2]) + 1
    assert (kind, item["status"]) == ("item", "waiting")


@pytest.mark.parametrize("last_seen", ["", "nonsense", "00000000-1", "-5", "x-\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_window_of_another_run_gets_the_whole_state(window, last_seen):
    """After a restart the numbers mean nothing; the state does."""
    with window.events(last_seen.encode().decode("latin-1") if last_seen else None) as following:
        assert following()[1] == "state"


async def test_a_window_that_fell_behind_gets_the_state_instead_of_a_gap():
    """Only so many bytes of events are kept. What is missing is never passed over in silence."""
    feed = Feed(max_kept_bytes=3 * 220)
    following = feed.follow(None, lambda: {"n": "whole"})
    assert (await anext(following)).startswith(b"retry")
    first = await anext(following)
    assert b"event: state" in first
    for number in range(5):
        feed.tell("item", {"n": number})
    assert b"event: state" in await anext(following)
    feed.tell("item", {"n": 5})
    assert b'"n":5' in await anext(following)

    seen = first.split(b"\n")[0].removeprefix(b"id: ").decode()
    again = feed.follow(seen, lambda: {"n": "whole"})
    await anext(again)
    assert b"event: state" in await anext(again)
    feed.close()
    assert [piece async for piece in following] == []


async def test_an_idle_stream_says_that_it_is_still_there():
    """Whatever stands between would take silence for death."""
    feed = Feed()
    following = feed.follow(None, dict, heartbeat_seconds=0.01)
    pieces = [await anext(following) for _ in range(3)]
    assert pieces[2].startswith(b":")


def test_a_question_of_another_program_is_shown_and_answered_here(house, window):
    """Who shares the memory shares the cards: `lastword run --wait` in a terminal is answered on the page."""
    effects: list[Any] = []
    other = Session(tools_of_every_kind(effects), approver=wait_for_answer, journal=house.session.journal)
    call = asyncio.run_coroutine_threadsafe(other.call("publish", {"version": "2", "index": "test"}), house.loop)
    with window.events() as following:
        while not (found := _entries(following())):
            pass
    assert found[0]["session"] == other.id
    seen = f"call_id={found[0]['id']}&digest={found[0]['digest']}"
    item = window.get(f"/page/card?{seen}")[1]
    assert item["session"] == other.id
    assert answer(window, item)[0] == 200
    assert call.result(PATIENCE_SECONDS).success
    assert effects == [("publish", "2", "test")]
    state = window.get("/page/state")[1]
    assert state["inbox"] == []
    assert not [i for i in state["items"] if i.get("session")]


def _entries(event):
    _, kind, data = event
    return data["inbox"] if kind == "state" else data["put"] if kind == "inbox" else []


def test_the_preset_is_changed_in_plain_sight(house, window):
    """Both keys, and the second one is turned by a person here."""
    assert window.post("/page/preset", {"name": "nobody's"})[0] == 400
    assert window.post("/page/preset", {"name": "trusting"})[0] == 200
    assert window.get("/page/state")[1]["settings"]["preset"] == "trusting"
    assert house.call("add_up", numbers=[1], factor=1, rounded=True).result(PATIENCE_SECONDS).approval == "auto"
    assert window.post("/page/preset", {"name": "default"})[0] == 200


def test_the_timeline_tells_waiting_from_running_and_the_export_has_all(house, window):
    """Asked, answered by whom, started, finished: with times, and as lines of JSON to keep."""
    call = house.call("publish", version="1.4.0", index="test")
    house.waiting()
    told = window.get("/page/timeline")[1]
    assert told["calls"][0]["status"] == "waiting"
    answer(window, card_in(window))
    call.result(PATIENCE_SECONDS)
    story = window.get("/page/timeline")[1]["calls"][0]
    assert story["asked_at"] <= story["answered_at"] <= story["started_at"] <= story["ended_at"]
    assert story["reply"] == {"how": "allowed", "by": "the page", "reason": "", "surface": "page"}
    assert story["end"]["success"]
    status, headers, data = window.raw("GET", "/page/export", headers={"Cookie": window.cookie})
    assert status == 200
    assert headers["content-disposition"].startswith("attachment")
    kinds = [json.loads(line)["kind"] for line in data.decode().splitlines()]
    assert [kind for kind in kinds if kind in ("asked", "answered", "started", "finished")] == [
        "asked",
        "answered",
        "started",
        "finished",
    ]


def test_what_a_call_changed_can_be_undone_here(house, window, tmp_path):
    """Byte for byte, and the model hears of it with the next message."""
    (tmp_path / "hello.py").write_text("before\n")
    call, item = asked(house, window, "write_file", path="hello.py", text="after\n")
    answer(window, item)
    assert call.result(PATIENCE_SECONDS).success
    assert window.post("/page/undo", {"call_id": item["id"]})[0] == 200
    assert (tmp_path / "hello.py").read_text() == "before\n"
    assert window.post("/page/undo", {"call_id": item["id"]})[0] == 409


@pytest.fixture
async def doubtful(tmp_path):
    """A house whose program died in the middle of an approved call."""
    store, tools = MemoryStore(), tools_of_every_kind([])
    journal = Journal(store)
    async with Session(tools, id="doubtful", approver=wait_for_answer, journal=journal) as session:
        asking = asyncio.ensure_future(session.call("publish", {"version": "1.4.0", "index": "x"}))
        while not session.pending():
            await store.changed((await store.head()).seq)
        (request,) = session.pending()
        sealed = request.allow().sealed(request, Answerer.person("somebody"), journal.clock())
        assert await journal.answered(request, request.allow(), sealed)
        call = Call(request.call_id, request.tool, request.argument_bytes)
        # What a process leaves behind that dies while the tool runs.
        assert await journal.burn_and_start(session.id, call, tools.lookup("publish"), sealed, "person", LiveCall())
        asking.cancel()
    left = MemoryStore()
    for record in await store.read():
        if record.kind != "finished":
            left.append(Entry(record.stream, record.kind, record.subject, record.at, record.data or b"{}"))
    return left, request.call_id


@requirement("TOOL-55")
@pytest.mark.parametrize(
    ("decision", "kind", "ran"),
    [("done", "succeeded", 0), ("abandon", "outcome_unknown", 0), ("again", "succeeded", 1)],
)
def test_a_call_in_doubt_is_decided_on_the_page(doubtful, decision, kind, ran, houses):
    """Nothing runs again by itself; a person looks, and their word is written down."""
    store, call_id = doubtful
    house = houses(store=store, id="doubtful")
    window = house.window()
    assert [c["status"] for c in window.get("/page/timeline")[1]["calls"]] == ["doubt"]
    assert house.effects == []
    assert window.post("/page/resolve", {"call_id": call_id, "decision": "perhaps"})[0] == 400
    if decision == "again":
        for word in (None, "", "again", "publisher"):
            status, told = window.post("/page/resolve", {"call_id": call_id, "decision": decision, "word": word})
            assert (status, told["error"]["code"]) == (400, "not_confirmed"), "one press may be the second payment"
        assert house.effects == []
    assert window.post("/page/resolve", {"call_id": call_id, "decision": decision, "word": "publish"})[0] == 200
    (story,) = window.get("/page/timeline")[1]["calls"]
    assert (story["status"], story["end"]["kind"]) == ("ended", kind)
    assert len(house.effects) == ran
    assert window.post("/page/resolve", {"call_id": call_id, "decision": "done"})[0] == 409


def test_everything_is_stopped_from_the_page(house, window):
    """One act denies what waits, whoever asked for it, and says so. A press that comes later allows nothing."""
    call, item = asked(house, window, "publish", version="1", index="te\u202est")
    status, done = window.post("/page/stop_everything", {})
    assert status == 200
    assert done["message"].startswith("Everything is stopped.")
    assert 'Publish release (version: "1", index: te‹U+202E›st), asked for by ' in done["message"]
    assert item["id"] not in done["message"]
    assert call.result(timeout=20).kind == "denied"
    body = {"call_id": item["id"], "digest": item["card"]["digest"], "action": "allow"}
    assert window.post("/page/answer", body)[0] == 409
    assert house.effects == []


def test_the_assistant_is_stopped_and_spoken_to_from_the_page(house, window):
    """A turn at a time; nothing that is said is lost without a word."""
    assert window.post("/page/say", {"text": "  "})[0] == 400
    assert window.post("/page/say", {"text": "/publish version=1 index=test"})[0] == 200
    house.waiting()
    status, body = window.post("/page/say", {"text": "hello?"})
    assert (status, body["error"]["code"]) == (409, "busy")
    assert window.post("/page/stop")[0] == 200
    with window.events() as following:
        state = following()[2]
        while state.get("busy") is not False:
            state = following()[2]
    assert house.effects == []
    assert [c["end"]["kind"] for c in window.get("/page/state")[1]["items"] if c["kind"] == "call"] == ["cancelled"]


@requirement("API-64")
def test_what_was_used_for_an_answer_stands_under_it_after_a_restart(tmp_path):
    """A model that said "done" and did nothing must not become believable by closing the page."""
    store = MemoryStore()
    seen = []
    for words in (["hello", "/count to=1"], []):
        house = House(tmp_path, store, id="kept").open()
        try:
            window = house.window()
            for text in words:
                assert window.post("/page/say", {"text": text})[0] == 200
                with window.events() as following:
                    while following()[2].get("busy") is not False:
                        pass
            items = window.get("/page/state")[1]["items"]
            seen.append([item["used"] for item in items if item["kind"] == "message" and item["by"] == "assistant"])
        finally:
            house.close()
    assert seen[0] == seen[1] == ["No tool was used for this answer", "Used: count"]


@pytest.mark.parametrize("is_stopped", [True, False])
def test_what_a_person_stopped_stays_stopped_and_what_the_program_cut_off_goes_on(tmp_path, is_stopped, houses):
    """Both leave a request without its result. The journal says which of them nobody wants any more."""
    store = MemoryStore()
    house = House(tmp_path, store, id="kept").open()
    try:
        window = house.window()
        assert window.post("/page/say", {"text": "/publish version=1 index=test"})[0] == 200
        house.waiting()
        if is_stopped:
            assert window.post("/page/stop", {"turn": True})[0] == 200
            with window.events() as following:
                while following()[2].get("busy") is not False:
                    pass
    finally:
        house.close()
    again = houses(store=store, id="kept")
    assert len(again.do(again.session.journal.history("kept", kind="left_off"))) == is_stopped
    window = again.window()
    if not is_stopped:
        with window.events() as following:
            told = following()[2]
            while "Going on with what was interrupted." not in str(told):
                told = following()[2]


def test_every_path_and_every_event_is_documented(house):
    """The API is for others too; what is not written down is not theirs to use."""
    told = (Path(__file__).parents[2] / "docs" / "page.md").read_text()
    for route in house.page_routes():
        assert any(f"`{method} {route.path}" in told for method in route.methods or ("GET",)), route.path
    for kind in ("state", "item", "gone", "piece", "busy", "settings"):
        assert f"| `{kind}` |" in told
