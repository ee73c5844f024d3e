"""Attacks on the second step of a card and on explain, without a browser: forged, replayed, absurd, other people's."""

import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lastword.consent import People
from lastword.journal import Journal
from requirements import requirement
from surfaces.test_inbox_api import Neighbour, entries, look, seen
from surfaces.test_page_grants import FIVE, GRANT, asked, card_of, grants, house, is_over, step
from surfaces.windows import Browserless, House

__all__ = ["house"]

NINES = "99." + "9" * 27
LONG = "For the lunch that we had together on the third of November, in the garden. " * 6


def deny_all(house: House, window: Browserless) -> None:
    for request in house.session.pending():
        window.post("/page/answer", {"call_id": request.call_id, "digest": request.digest, "action": "deny"})


@requirement("GRANT-1")
@pytest.mark.parametrize("other", ["to Mallory", "to Ada now"])
def test_a_step_of_another_card_that_reads_the_same_grants_nothing(house, window, other):
    """A sentence has the beginning of a long text: cards that differ after it are two, and so are two that do not."""
    calls = [house.call("pay", **FIVE, note=LONG + end) for end in ("to Ada now", other)]
    cards = [{"call_id": request.call_id, "digest": request.digest} for request in house.waiting(2)]
    told = [step(window, card) for card in cards]
    assert told[0]["sentence"] == told[1]["sentence"]
    status, said = window.post("/page/grant", {**cards[1], "step": told[0]["digest"], "word": GRANT})
    assert (status, said["error"]["code"]) == (409, "changed")
    assert (grants(house), house.effects) == ([], [])
    deny_all(house, window)
    assert [is_over(call).kind for call in calls] == ["denied", "denied"]


@requirement("GRANT-1")
def test_another_evening_than_the_one_that_was_read_is_not_granted(house, window, monkeypatch):
    """Midnight passes, or the machine travels, while the step stands there: until tonight is another moment then."""
    call, card = asked(house, "pay", **FIVE)
    try:
        monkeypatch.setenv("TZ", "Etc/GMT+12")
        time.tzset()
        told = step(window, card, scope="until")
        monkeypatch.setenv("TZ", "Etc/GMT-14")
        time.tzset()
        status, said = window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (status, said["error"]["code"]) == (409, "changed")
    assert grants(house) == []
    deny_all(house, window)
    is_over(call)


@requirement("GRANT-1")
def test_a_yes_that_is_sent_twice_grants_once(house, window):
    """A double click, a retry, a replayed request: the card is answered by then, and the step is spent."""
    call, card = asked(house, "pay", **FIVE)
    body = {**card, "step": step(window, card)["digest"], "word": GRANT}
    assert window.post("/page/grant", body)[0] == 200
    assert window.post("/page/grant", body)[0] == 409
    assert is_over(call).success
    again = house.call("pay", to="Bo", amount=5)
    other = card_of(house)
    assert window.post("/page/grant", {**body, **other})[1]["error"]["code"] == "not_seen"
    assert len(grants(house)) == 1
    deny_all(house, window)
    is_over(again)


@requirement("GRANT-1", "GRANT-4")
@pytest.mark.parametrize(
    ("most", "words"),
    [
        ("1e999999999", "more than 30 digits"),
        ("1e-999999999", "more than 30 digits"),
        ("0." + "1" * 31, "more than 30 digits"),
        ("-0", "is a number of at least 0"),
        ("-5", "is a number of at least 0"),
        ("NaN", "is a number of at least 0"),
        ("sNaN", "is a number of at least 0"),
        ("Infinity", "is a number of at least 0"),
        ("many", "is a number of at least 0"),
        ("1,000", "is a number of at least 0"),
    ],
)
def test_a_sum_that_nobody_could_read_is_refused_in_words(house, window, most, words):
    """One that would take a gigabyte to write out is refused before anybody writes it."""
    call = house.call("pay", **FIVE)
    told = step(window, card_of(house), sums={"amount": most})
    assert words in told["problem"]
    assert (told["digest"], told["sentence"]) == ("", "")
    deny_all(house, window)
    is_over(call)


@requirement("GRANT-1")
@pytest.mark.parametrize(
    ("most", "shown"),
    [
        ("１００", "100"),
        (" 1e2 ", "100"),
        ("1_00", "100"),
        (NINES, NINES),
    ],
)
def test_a_sum_is_said_as_it_is_written_down(house, window, most, shown):
    """However it was typed, what is read is what counts, to its last digit."""
    call, card = asked(house, "pay", **FIVE)
    told = step(window, card, sums={"amount": most})
    assert f"10 calls or {shown} of amount in all, whichever comes first" in told["sentence"]
    assert window.post("/page/grant", {**card, "step": told["digest"], "word": GRANT})[0] == 200
    assert is_over(call).success
    [grant] = grants(house)
    assert grant.account.sums == {"amount": Decimal(shown)}


@requirement("GRANT-2")
@pytest.mark.parametrize(
    "chosen",
    [
        '"calls": true', '"calls": "10"', '"calls": 1e400', '"calls": NaN', '"calls": 10.5', '"calls": 1e6000',
        '"calls": 9223372036854775808', '"calls": -1', '"calls": 0', '"calls": 1000001',
        '"loosened": {"amount": true}', '"loosened": {"amount": 9223372036854775808}', '"loosened": {"amount": 0.5}',
        '"loosened": {"amo\\u0075nt\\u200b": 1}', '"loosened": [1]', '"scope": "for ever"', '"scope": "run"',
        '"sums": {"amount": 100}', '"sums": {"to": "100"}', '"sums": {"amount": {"a": 1}}', '"until": 99999999999',
        '"id": "x"', '"sums": ' + "[" * 5_000 + "]" * 5_000,
    ],
)  # fmt: skip
def test_a_choice_that_is_no_choice_is_refused_and_there_is_nothing_to_agree_to(house, window, chosen):
    """Truth for one, numbers past all numbers, names that look alike, fields that are none, depth without end."""
    call, card = asked(house, "pay", **FIVE)
    body = f'{{"call_id": "{card["call_id"]}", "digest": "{card["digest"]}", {chosen}}}'
    status, said = window.post("/page/grant_step", body.encode())
    assert status in (400, 409) or (status == 200 and said["problem"] and not said["digest"]), said
    if status != 200:
        assert said["error"]["message"]
    assert grants(house) == []
    deny_all(house, window)
    is_over(call)


@requirement("GRANT-1")
def test_what_cannot_be_meant_for_us_grants_nothing(house, window):
    """Another origin, another kind of content, another window's token: each with everything else right."""
    call, card = asked(house, "pay", **FIVE)
    body = {**card, "step": step(window, card)["digest"], "word": GRANT}
    stranger = house.window()
    for headers in (
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Lastword-Token": stranger.token},
        {"Host": "evil.example"},
        {"Content-Type": "text/plain"},
    ):
        assert window.post("/page/grant", body, **headers)[0] in (400, 403, 415, 421), headers
    assert (grants(house), house.effects) == ([], [])
    deny_all(house, window)
    is_over(call)


@requirement("RULE-7")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"tool": "pay", "arguments": {"to": "Ada", "amount": "much"}},
            ["amount is a number, and much is not", "hint: for instance 3"],
        ),
        ({"tool": "pay", "arguments": {"to": "Ada"}}, ["amount", "missing"]),
        ({"tool": "pay", "arguments": {"to": "Ada", "amount": "1e400"}}, ["amount"]),
        ({"tool": "pay", "arguments": {"to": "Ada", "amount": "NaN"}}, ["amount"]),
        ({"tool": "pay", "arguments": {"to": "Ada", "amount": "true"}}, ["amount"]),
        ({"tool": "pay", "arguments": {"to": "Ada", "amount": "5", "ammount": "5"}}, ["ammount", "amount?"]),
        ({"tool": "pay", "arguments": {"to=Ada\u202e": "x"}}, ["to=Ada‹U+202E›"]),
        ({"tool": "pay", "arguments": {"amount": "[" * 5_000}}, ["amount"]),
        ({"tool": "pai"}, ["pai", "pay"]),
        ({"tool": "\u202e\x1b[2J"}, ["‹U+202E›‹U+001B›"]),
    ],
)
def test_a_call_that_cannot_be_explained_is_refused_with_place_fact_and_hint(house, window, body, words):
    """Whoever fills in the form reads which field is wrong, and what to write there."""
    status, said = window.post("/page/explain", body)
    assert status in (400, 409), said
    message = said["error"]["message"]
    assert [word for word in words if word not in message] == [], message
    assert len(message) < 1_000


@requirement("RULE-7")
def test_a_name_of_an_argument_says_nothing_of_its_value(house, window):
    """`to=Ada` is a name that no argument has, and not the argument `to` with a value."""
    assert window.post("/page/explain", {"tool": "pay", "arguments": {"to=Ada": "", "amount": "5"}})[0] == 400


@pytest.fixture
def adas(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, people=People("ada")).open()

    @house.session.registry.tool(auto_approve=True, effect="reversible")
    def pay(to: str, amount: float, note: str = "") -> str:
        """Pay somebody."""
        house.effects.append(("pay", to, amount))
        return "paid"

    yield house
    house.close()


@requirement("TEAM-3", "GRANT-1")
def test_a_card_of_another_person_has_no_second_step_and_is_not_counted(adas, tmp_path):
    """Whoever may answer for somebody gives away nothing of theirs, and does not read what they were asked before."""
    adas.session.journal.people = People("ada", {"ada": ("bo",)})
    window = adas.window()
    bo = Neighbour(adas, tmp_path / "done", Journal(adas.store, people=People("bo")))
    bo.session.registry.add(adas.session.registry.lookup("pay"))
    theirs = bo.ask("pay", **FIVE)
    [entry] = entries(window, 1)
    assert look(window, entry)["card"]["why_no_grant"].startswith("This card is another person's"), "and offers none"
    told = step(window, seen(entry))
    assert told["why_none"] == "This card is another person's, and a grant serves only whoever gives it."
    assert told["digest"] == ""
    assert window.post("/page/answer", {**seen(entry), "action": "deny"})[0] == 200
    assert is_over(theirs).kind == "denied"
    own = adas.call("pay", **FIVE)
    assert step(window, card_of(adas))["past"] == "You have not answered a card of this tool before."
    deny_all(adas, window)
    is_over(own)


@requirement("TEAM-3", "GRANT-5")
def test_the_grants_of_another_person_are_not_told_not_counted_and_not_taken_back(adas):
    """Two people on one memory. What one of them allowed is no business of the other."""
    window = adas.window()
    call = adas.call("pay", **FIVE)
    card = card_of(adas)
    window.post("/page/grant", {**card, "step": step(window, card, scope="until")["digest"], "word": GRANT})
    assert is_over(call).success
    [own] = window.get("/page/grants")[1]["grants"]

    def as_bo(**answers: Any) -> None:
        adas.session.journal.people = People("bo", answers)  # The same memory, with another person at it.

    as_bo()
    assert window.get("/page/grants")[1]["grants"] == []
    refused = window.post("/page/grant_revoke", {"id": own["id"]})
    unknown = window.post("/page/grant_revoke", {"id": "nothing"})
    assert refused[0] == unknown[0] == 409
    assert refused[1]["error"]["message"] == unknown[1]["error"]["message"]
    assert len(grants(adas)) == 1
    as_bo(bo=("ada",))
    [seen] = window.get("/page/grants")[1]["grants"]
    assert seen["used"].startswith("A grant of ada, given on ")
    assert window.post("/page/grant_revoke", {"id": own["id"]})[0] == 200
    assert grants(adas) == []
