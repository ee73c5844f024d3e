"""The second step of a card, without a browser: what a window is told, what a yes takes, and what is refused."""

import asyncio
import time
from typing import Any

import pytest

from lastword.consent import Outcome
from lastword.rules import Grants, Policy
from lastword.rules.limits import day_words
from lastword.store import MemoryStore
from lastword.web.conversation import UNREAD_SECONDS
from requirements import requirement
from surfaces.conftest import Houses
from surfaces.test_chat import READY
from surfaces.test_inbox_api import Neighbour, entries, look, seen
from surfaces.windows import PATIENCE_SECONDS, Browserless, House

GRANT = "grant"
FIVE = {"to": "Ada", "amount": 5}


@pytest.fixture
def house(houses: Houses) -> House:
    house = houses()
    with_payments(house)
    return house


def with_payments(house: House) -> None:
    @house.session.registry.tool(auto_approve=True, effect="reversible")
    def pay(to: str, amount: float, note: str = "") -> str:
        """Pay somebody."""
        house.effects.append(("pay", to, amount, note))
        return "paid"

    @house.session.registry.tool(auto_approve=True, effect="irreversible")
    def burn(paper: str) -> str:
        """Burn a paper."""
        house.effects.append(("burn", paper))
        return "ashes"


def card_of(house: House, count: int = 1) -> dict[str, str]:
    request = house.waiting(count)[0]
    return {"call_id": request.call_id, "digest": request.digest}


def asked(house: House, tool: str, **arguments: Any) -> tuple[Any, dict[str, str]]:
    """A call that waits for its card, and the card."""
    return house.call(tool, **arguments), card_of(house)


def step(window: Browserless, card: dict[str, str], **chosen: Any) -> Any:
    status, told = window.post("/page/grant_step", {**card, **chosen})
    assert status == 200, told
    return told


def grants(house: House) -> list[Any]:
    found: list[Any] = house.do(Grants(house.session.journal).standing())
    return found


def is_over(call: Any) -> Outcome:
    outcome: Outcome = call.result(PATIENCE_SECONDS)
    return outcome


@requirement("GRANT-1")
def test_a_grant_is_given_by_a_step_that_was_read_and_a_word_that_was_typed(house, window):
    """The step grants nothing; the yes that names it does, and later calls like it ask nobody."""
    call, card = asked(house, "pay", **FIVE)
    first = step(window, card)
    assert first["sentence"] == (
        "Allow, and don't ask again for: pay, to “Ada”, amount 5, note empty; in this session; "
        "ends after 10 calls, or when the tool changes."
    )
    assert [row["choices"] for row in first["bounds"]] == [["exactly “Ada”"], ["exactly 5", "at most 5"], ["empty"]]
    told = step(window, card, loosened={"amount": 1}, calls=3, sums={"amount": "12"})
    assert "amount at most 5" in told["sentence"]
    assert "ends after 3 calls or 12 of amount in all, whichever comes first" in told["sentence"]
    assert grants(house) == []
    assert not call.done()
    assert window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})[0] == 200
    assert is_over(call).success
    assert is_over(house.call("pay", to="Ada", amount=4)).success
    assert [grant.where["amount"] for grant in grants(house)] == [{"min": 0, "max": 5}]
    [entry] = window.get("/page/grants")[1]["grants"]
    assert "1 of 3 calls, 4 of 12 amount" in entry["used"]


@requirement("GRANT-1")
@pytest.mark.parametrize("word", [None, "", "allow", "yes", "grants"])
def test_without_its_own_word_nothing_is_granted_and_the_card_waits(house, window, word):
    """One press, or the word that people type for single calls, must not become a standing yes."""
    call, card = asked(house, "pay", **FIVE)
    told = step(window, card)
    status, said = window.post("/page/grant", {**card, "step": told["digest"], "word": word})
    assert (status, said["error"]["code"]) == (400, "not_confirmed")
    assert grants(house) == []
    assert not call.done()
    assert house.effects == []
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)


@requirement("GRANT-2")
@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"loosened": {"amount": 2}}, "amount: this card does not offer that"),
        ({"loosened": {"amount": -1}}, "amount: this card does not offer that"),
        ({"loosened": {"note": 1}}, "note: this card does not offer that"),
        ({"loosened": {"to": 1}}, "to: this card does not offer that"),
        ({"loosened": {"tool": 1}}, "tool: this card does not offer that"),
        ({"sums": {"to": "5"}}, "to is no number that can be summed"),
    ],
)
def test_bounds_that_the_card_does_not_offer_are_refused_in_words(house, window, chosen, words):
    """A forged request asks for a wider bound, for free text left open, or for an argument that is none."""
    call, card = asked(house, "pay", **FIVE)
    status, told = window.post("/page/grant_step", {**card, **chosen})
    assert (status, told["error"]["code"]) == (409, "refused")
    assert words in told["error"]["message"]
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)
    assert grants(house) == []


@requirement("GRANT-2")
@pytest.mark.parametrize(
    "more", [{"bounds": {"note": {"any": True}}}, {"where": {}}, {"tool": "burn"}, {"settles": []}]
)
@pytest.mark.parametrize("path", ["grant_step", "grant"])
def test_a_request_that_brings_its_own_bounds_is_not_read(house, window, path, more):
    """Bounds, a tool or cards to settle are not for a window to say: there is no field for them."""
    call, card = asked(house, "pay", **FIVE)
    told = step(window, card)
    body = {**card, **({"step": told["digest"], "word": GRANT} if path == "grant" else {}), **more}
    assert window.post(f"/page/{path}", body)[0] == 400
    assert grants(house) == []
    assert not call.done()
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)


@requirement("GRANT-2")
def test_what_cannot_be_undone_is_not_granted_without_a_limit(house, window):
    """The step says so in place of its sentence, and there is nothing that a yes could name."""
    call, card = asked(house, "burn", paper="the draft")
    told = step(window, card, calls=None)
    assert told["problem"] == "What cannot be undone, or does not say so, is granted with a limit."
    assert (told["digest"], told["sentence"]) == ("", "")
    assert window.post("/page/grant", {**card, "step": "", "word": GRANT})[1]["error"]["code"] == "not_seen"
    assert not call.done()
    limited = step(window, card, calls=1)
    assert window.post("/page/grant", {**card, "step": limited["digest"], "word": GRANT})[0] == 200
    assert is_over(call).success


@requirement("GRANT-1")
def test_a_yes_names_a_step_that_this_very_window_was_shown(house, window):
    """Neither a made-up step, nor one of another card, nor what another window has read."""
    call, other = house.call("pay", **FIVE), house.call("burn", paper="the draft")
    first, second = ({"call_id": r.call_id, "digest": r.digest} for r in house.waiting(2))
    told = step(window, first)
    stranger = house.window()
    for where, card, named in (
        (window, first, "0" * 64),
        (stranger, first, told["digest"]),
    ):
        status, said = where.post("/page/grant", {**card, "step": named, "word": GRANT})
        assert (status, said["error"]["code"]) == (409, "not_seen")
    status, said = window.post("/page/grant", {**second, "step": told["digest"], "word": GRANT})
    assert (status, said["error"]["code"]) == (409, "changed")
    assert (grants(house), house.effects) == ([], [])
    for card, waiting in ((first, call), (second, other)):
        window.post("/page/answer", {**card, "action": "deny"})
        is_over(waiting)


@requirement("GRANT-1")
def test_a_yes_right_after_the_step_is_refused(house, window, unhurried):
    """Nobody reads what they would agree to in no time, though the card itself has been there for a while."""
    call, card = asked(house, "pay", **FIVE)
    readable = time.monotonic() + UNREAD_SECONDS
    while time.monotonic() < readable:
        step(window, card)
    told = step(window, card, calls=3)
    status, said = window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})
    assert (status, said["error"]["code"]) == (409, "too_soon")
    assert grants(house) == []
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)


@requirement("GRANT-2")
def test_where_no_grant_is_offered_the_card_says_why(house, window):
    """Whoever looks for the second step reads why there is none, and a forged yes finds none either."""
    call, card = asked(house, "post_letter", to="Ann")
    shown = window.get(f"/page/card?call_id={card['call_id']}&digest={card['digest']}")[1]["card"]
    assert shown["why_no_grant"] == "This tool must be asked about each time."
    told = step(window, card)
    assert told["why_none"] == "This tool must be asked about each time."
    assert told["digest"] == ""
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)


@requirement("GRANT-2", "RULE-2")
def test_where_a_rule_wants_it_asked_no_grant_is_offered(house, window):
    """A rule's word wins over a grant, so a second step would promise what nobody keeps."""
    rule = '[[rule]]\nname = "ask about Ada"\ntool = "pay"\ndecide = "ask"\n[rule.where]\nto = { is = "Ada" }\n'
    house.session.policy = Policy.vouched(rule, house.session.registry)
    call, card = asked(house, "pay", **FIVE)
    shown = window.get(f"/page/card?call_id={card['call_id']}&digest={card['digest']}")[1]["card"]
    assert shown["why_asked"] == "Asked because the rule ask about Ada (policy.toml:1) says so."
    assert shown["why_no_grant"] == "What a rule wants asked is asked about each time."
    told = step(window, card)
    assert (told["why_none"], told["digest"]) == (shown["why_no_grant"], "")
    window.post("/page/answer", {**card, "action": "deny"})
    is_over(call)


@requirement("GRANT-6")
def test_only_the_waiting_cards_that_were_listed_are_settled(house, window):
    """One that comes after the step was shown was read by nobody."""
    calls = [house.call("pay", **FIVE), house.call("pay", **FIVE)]
    card = card_of(house, 2)
    told = step(window, card)
    assert [other["summary"] for other in told["settles"]] == ['to: Ada, amount: 5, note: ""']
    late = house.call("pay", **FIVE)
    house.waiting(3)
    assert window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})[0] == 200
    assert [is_over(call).success for call in calls] == [True, True]
    [left] = house.waiting(1)
    assert not late.done()
    window.post("/page/answer", {"call_id": left.call_id, "digest": left.digest, "action": "deny"})
    assert is_over(late).kind == "denied"


@requirement("GRANT-7")
@pytest.mark.parametrize("whose", ["own", "another program's"])
def test_a_card_that_a_grant_answered_says_of_which_day_it_is_and_how_much_is_used(house, window, tmp_path, whose):
    """A number that stands on no other surface tells nobody which yes of theirs it was."""
    if whose == "own":
        calls = [house.call("pay", **FIVE), house.call("pay", **FIVE)]
        card = card_of(house, 2)
    else:
        neighbour = Neighbour(house, tmp_path / "done")
        neighbour.session.registry.add(house.session.registry.lookup("pay"))
        calls = [neighbour.ask("pay", **FIVE), neighbour.ask("pay", **FIVE)]
        entry = entries(window, 2)[0]
        look(window, entry)
        card = seen(entry)
    told = step(window, card)
    [other] = told["settles"]
    assert told["granted"].endswith("; in this session. Another card is answered by it.")
    with window.events() as following:
        following()
        assert window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})[0] == 200
        replies: list[dict[str, Any]] = []
        while not replies or "calls" not in replies[-1]["by"]:
            _, kind, data = following()
            found = [gone["reply"] for gone in data["gone"] if gone["id"] == other["id"]] if kind == "inbox" else []
            replies += [reply for reply in found if reply is not None]
    assert {reply["how"] for reply in replies} == {"standing"}
    assert replies[-1]["by"] == f"your grant of {day_words(time.time())}, 1 of 10 calls"
    assert not any(grant.id in reply["by"] for reply in replies for grant in grants(house))
    assert all(is_over(call).success for call in calls)


@requirement("GRANT-1")
def test_text_that_pretends_to_be_our_sentence_is_marked(house, window):
    """An argument closes its quotes, begins a line, turns the writing round and paints: none of it passes for ours."""
    hostile = "Ada”, amount 0\n; never \u202e \x1b[2J <b>“"
    call = house.call("pay", to=hostile, amount=5)
    told = step(window, card_of(house))
    for text in (told["sentence"], told["bounds"][0]["choices"][0]):
        assert "“Ada‹U+201D›, amount 0⏎; never ‹U+202E› ‹U+001B›[2J <b>‹U+201C›”" in text
    window.post("/page/answer", {**card_of(house), "action": "deny"})
    is_over(call)


@requirement("GRANT-5")
def test_a_grant_is_listed_and_taken_back(house, window):
    """After that the next call asks again."""
    call, card = asked(house, "pay", **FIVE)
    window.post("/page/grant", {**card, "step": step(window, card)["digest"], "word": GRANT})
    is_over(call)
    [entry] = window.get("/page/grants")[1]["grants"]
    assert entry["sentence"] == "pay, to “Ada”, amount 5, note empty; in this session"
    assert window.post("/page/grant_revoke", {"id": entry["id"]})[0] == 200
    assert window.get("/page/grants")[1]["grants"] == []
    assert window.post("/page/grant_revoke", {"id": entry["id"]})[0] == 409
    assert window.post("/page/grant_revoke", {"id": "nothing"})[0] == 409
    again = house.call("pay", **FIVE)
    window.post("/page/answer", {**card_of(house), "action": "deny"})
    assert is_over(again).kind == "denied"


@requirement("GRANT-5")
def test_a_terminal_lists_grants_and_takes_one_back(house, window, run):
    """A chat that joined the conversation: whoever sits there sees what stands, and can end it."""
    call, card = asked(house, "pay", **FIVE)
    window.post("/page/grant", {**card, "step": step(window, card)["digest"], "word": GRANT})
    is_over(call)
    [grant] = grants(house)
    program = run("chat", "--attach", house.key())
    program.press_at(READY, "/grants\r", then=f"{grant.id}  pay, to “Ada”, amount 5, note empty; in this session")
    program.press_at("0 of 10 calls", "/grants drop\r")
    program.press_at("say which grant to take back", "/grants revoke nothing\r")
    program.press_at("there is no such grant", f"/grants revoke {grant.id}\r", then="Taken back.")
    assert grants(house) == []
    program.press_for("/grants\r", "You have no grants.")


@requirement("GRANT-1")
def test_a_card_of_another_program_is_granted_through_the_journal(house, window, tmp_path):
    """It is given to the session that asked, by a window that has looked at the card."""
    neighbour = Neighbour(house, tmp_path / "done")

    @neighbour.session.registry.tool(auto_approve=True, effect="reversible")
    def lend(book: str) -> str:
        """Lend a book."""
        return "lent"

    call = neighbour.ask("lend", book="Emma")
    [entry] = entries(window, 1)
    told = step(window, seen(entry))
    assert told["scope"] == "session"
    assert told["ends"] == "This session is that of the program that asks, and ends with it."
    assert step(window, seen(entry), scope="until")["ends"] == ""
    body = {**seen(entry), "step": told["digest"], "word": GRANT}
    assert window.post("/page/grant", body)[1]["error"]["code"] == "not_seen"
    look(window, entry)
    assert window.post("/page/grant", body)[0] == 200
    assert is_over(call).success
    [grant] = grants(house)
    assert (grant.session_id, grant.tool) == (neighbour.session.id, "lend")
    # Read in this conversation, "in this session" would be a promise that nobody made.
    [listed] = window.get("/page/grants")[1]["grants"]
    assert listed["sentence"] == f"lend, book “Emma”; in the session {neighbour.session.id}, until its program ends"
    work = neighbour.session.call("lend", {"book": "Emma"})
    assert is_over(asyncio.run_coroutine_threadsafe(work, house.loop)).success


RULES = """
[[rule]]
name = "small lunches"
tool = "pay"
decide = "allow"
limits = { calls = 1, sum = { amount = 30 }, per = "day" }
[rule.where]
to = { in = ["Ada"] }
amount = { min = 0, max = 20 }
note = { absent = true, is = "" }
[rule.tests]
match = [{ to = "Ada", amount = 20, note = "" }]
not_match = [{ to = "Bo", amount = 20, note = "" }]

[[rule]]
name = "never Mallory"
tool = "pay"
decide = "deny"
[rule.where]
to = { is = "Mallory" }
"""


@requirement("RULE-7")
def test_a_window_is_told_what_decides_about_a_call_and_nothing_of_it_happens(house, window):
    """A rule, a rule that has nothing left, the nearest one, a no, and a grant: with the words of `policy explain`."""
    house.session.policy = Policy.vouched(RULES, house.session.registry)

    def told(**arguments):
        status, said = window.post("/page/explain", {"tool": "pay", "arguments": arguments})
        assert status == 200, said
        return said["saying"], said["why"]

    before = house.do(house.session.journal.store.head()).seq
    assert told(to="Ada", amount="20") == ("allow", "The rule small lunches (policy.toml:2) allows it.")
    nearest = "The rule that comes nearest is small lunches (policy.toml:2): amount 25 is more than 20."
    assert told(to="Ada", amount="25") == ("ask", nearest)
    assert told(to="Mallory", amount="1") == ("deny", "The rule never Mallory (policy.toml:15) denies it.")
    hostile = told(to="A”\n\u202e\x1b[2J<b>", amount="1")[1]
    assert "“A‹U+201D›⏎‹U+202E›‹U+001B›[2J<b>” is none of “Ada”" in hostile
    assert house.do(house.session.journal.store.head()).seq == before
    assert (house.effects, house.session.pending()) == ([], [])
    assert is_over(house.call("pay", to="Ada", amount=20)).approval == "rule"
    used_up = "The rule small lunches (policy.toml:2) is for 1 call a day, and it is used up until midnight in UTC."
    assert told(to="Ada", amount="5") == ("ask", used_up)
    call, card = asked(house, "pay", to="Bo", amount=5)
    window.post("/page/grant", {**card, "step": step(window, card)["digest"], "word": GRANT})
    is_over(call)
    saying, why = told(to="Bo", amount="5")
    assert (saying, why.partition(", ")[2]) == ("allow", "1 of 10 calls.")
    for body in (
        {"tool": "pay", "arguments": {"to": "Ada"}},
        {"tool": "nothing"},
        {"tool": "pay", "arguments": {"x": "1"}},
    ):
        assert window.post("/page/explain", body)[0] in (400, 409)


@requirement("GRANT-7")
def test_the_timeline_says_why_nobody_was_asked(house, window):
    """As it happens and afterwards: the rule, or the grant with what was used of it, and never an id."""
    house.session.policy = Policy.vouched(RULES, house.session.registry)
    is_over(house.call("pay", to="Ada", amount=20))
    call, card = asked(house, "pay", to="Bo", amount=5)
    window.post("/page/grant", {**card, "step": step(window, card, sums={"amount": "9"})["digest"], "word": GRANT})
    is_over(call)
    is_over(house.call("pay", to="Bo", amount=5))
    denied = is_over(house.call("pay", to="Mallory", amount=5))
    assert (denied.kind, "never Mallory (policy.toml:15)" in denied.message) == ("denied", True)
    day = day_words(grants(house)[0].at)
    with window.events() as following:
        state = following()[2]
    lived = [item for item in state["items"] if item["kind"] == "call"]
    remembered = window.get("/page/timeline")[1]["calls"]
    for calls in (lived, remembered):
        assert [(call["reply"] or {"how": None, "by": None})["how"] for call in calls] == [
            "standing",
            "allowed",
            "standing",
            "ruled",
        ]
        assert calls[0]["reply"]["by"] == "the rule small lunches (policy.toml:2), 1 of 1 calls, 20 of 30"
        assert calls[2]["reply"]["by"] == f"your grant of {day}, 1 of 10 calls, 5 of 9"
        assert all(calls[3][looks] == calls[1][looks] for looks in ("name", "glyph", "color"))
        assert calls[3]["arguments"] == [["to", "Mallory"], ["amount", "5"], ["note", '""']]
        assert calls[3]["reply"]["by"] == "the rule never Mallory (policy.toml:15)"


@requirement("GRANT-7")
def test_what_a_rule_denied_stands_where_it_was_after_a_restart(tmp_path):
    """It has no question and no start, so its time was none: it went before everything else, and was not seen again."""
    store, seen = MemoryStore(), []
    for words in (["/pay to=Mallory amount=5", "/pay to=Ada amount=1", "/pay to=Mallory amount=6", "/pay to=Bo"], []):
        house = House(tmp_path, store, id="kept").open()
        try:
            with_payments(house)
            house.session.policy = Policy.vouched(RULES, house.session.registry)
            window = house.window()
            for text in words:
                assert window.post("/page/say", {"text": text})[0] == 200
                with window.events() as following:
                    while following()[2].get("busy") is not False:
                        pass
            items = window.get("/page/state")[1]["items"]
            assert items[0]["kind"] == "message"
            seen.append([row_of(item) for item in items if item["kind"] == "call"])
        finally:
            house.close()
    assert seen[1] == seen[0]
    never = ("ruled", "the rule never Mallory (policy.toml:15)")
    assert seen[0] == [
        ("Mallory", never, "not allowed", ""),
        ("Ada", ("standing", "the rule small lunches (policy.toml:2), 1 of 1 calls, 1 of 30"), "done", ""),
        ("Mallory", never, "not allowed", ""),
        (None, None, "wrong arguments", ""),
    ]


def row_of(call: Any) -> tuple[Any, ...]:
    """What a row of the conversation says of a call."""
    reply = call["reply"] and (call["reply"]["how"], call["reply"]["by"])
    return dict(call["arguments"]).get("to"), reply, call["end"]["words"], call["end"]["own_words"]


@requirement("GRANT-7")
def test_a_session_in_which_a_rule_denied_everything_is_among_the_sessions(house, window):
    """Nothing was asked and nothing started, and what was tried is to be found all the same."""
    house.session.policy = Policy.vouched(RULES, house.session.registry)
    is_over(house.call("pay", to="Mallory", amount=5))
    assert [span["id"] for span in window.get("/page/timeline")[1]["sessions"]] == [house.session.id]


@requirement("GRANT-1")
def test_a_folded_part_is_opened_before_a_grant_whatever_the_effect(house, window):
    """The sentence has the beginning of a long text: the rest of what is granted stands on the card alone."""
    call, card = asked(house, "pay", to="Ada", amount=5, note="x" * 5_000)
    body = {**card, "step": step(window, card)["digest"], "word": GRANT}
    status, said = window.post("/page/grant", body)
    assert (status, said["error"]["code"]) == (400, "not_opened")
    assert (grants(house), call.done()) == ([], False)
    assert window.post("/page/grant", {**body, "opened": ["argument note"]})[0] == 200
    assert is_over(call).success


@requirement("GRANT-5")
@pytest.mark.parametrize("path", ["grant_step", "grant", "grant_revoke", "explain"])
def test_without_the_windows_token_nothing_is_granted_or_taken_back(house, window, path):
    """Another site that a browser has open can send a cookie, and no header of ours."""
    window.token = ""
    body = (
        {"id": "x"}
        if path == "grant_revoke"
        else {"tool": "pay"}
        if path == "explain"
        else {"call_id": "x", "digest": "x"}
    )
    assert window.post(f"/page/{path}", body)[0] == 403
