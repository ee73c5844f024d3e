"""The inbox in a terminal: its lines, its numbers, its one line of news, and several answers at once."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import lastword
from lastword.card import views
from lastword.errors import LastWordError
from lastword.terminal.chat_commands import News, NumberedInbox
from surfaces.askers import Asker
from surfaces.conftest import Run


def entry(id: str, **more: Any) -> views.InboxEntry:
    facts = views.InboxEntry(
        id=id,
        digest=f"digest {id}",
        tool="send",
        name="Send",
        glyph="◆",
        color=None,
        effect="reversible",
        effect_words="Can be undone",
        sentence="Sends a letter.",
        summary=f"to: Ann {id}",
        session="s",
        program="clerk.py, process 7",
        origin="",
        asked_at=100.0,
        alone=False,
        alike=id,
    )
    return replace(facts, **more)


def test_one_line_tells_of_many_cards_of_other_programs():
    """Two hundred lines would push everything off the screen that somebody was reading."""
    news = News()
    assert news.line([]) is None
    assert news.line([entry("1")]) == "Another program asks: Send (send). /answer shows the card."
    news.say([entry("1")])
    assert news.line([entry("1")]) is None
    said = []
    for count in range(2, 201):
        waiting = [entry(str(n), program=f"p{n % 4}") for n in range(count)]
        if (line := news.line(waiting)) is not None:
            said.append(line)
            news.say(waiting)
    assert said[0] == "2 cards of 2 other programs wait. /inbox lists them."
    assert len(said) == 7
    assert news.line([entry("0", asker="ended")]) is None
    assert news.line([entry("again")]) is not None, "once nothing is left of what was told, the next card is news"


def test_cards_that_are_given_up_again_do_not_silence_the_next_one():
    """A program that asked a hundred times and left one waiting kept the terminal quiet until two hundred waited."""
    news = News()
    flood = [entry(str(n)) for n in range(100)]
    assert news.line(flood) is not None
    news.say(flood)
    assert news.line(flood[:1]) is None
    assert news.line([flood[0], entry("new", program="backup, process 8")]) is not None


def test_what_nobody_answered_in_time_stands_apart_and_has_no_number():
    """It is over: a number would promise that it can still be answered, and would move those of the others."""
    late = [views.InboxMissed(entry(f"late {n}", asked_at=50.0), 90.0 + n) for n in range(12)]
    listing = NumberedInbox()
    lines = listing.lines([entry("1"), entry("2")], "", late, now=100.0)
    apart = lines.index("Nobody answered these in time. They are over, and nothing of them was done:")
    assert "to: Ann 2" in "\n".join(lines[:apart])
    assert "late" not in "\n".join(lines[:apart])
    assert lines[apart + 1].strip() == "… 2 earlier ones"
    assert "to: Ann late 11" in lines[apart + 11]
    assert len(listing.pick("1-2")) == 2
    with pytest.raises(LastWordError):
        listing.pick("3")
    assert listing.lines([], "", late[:1], now=100.0)[:2] == ["Nothing waits for an answer.", lines[apart]]
    assert listing.lines([], "bob", late, now=100.0) == ["Nothing waits that fits."]


def test_the_list_groups_what_is_alike_and_keeps_dead_programs_apart():
    """The same order as on the page, and a number for each card that was read beside it."""
    alike = [entry(str(n), alike="same") for n in range(2, 6)]
    listing = NumberedInbox()
    lines = listing.lines([entry("1"), *alike, entry("9", asker="ended", program="dead.py, process 1")], "")
    assert lines[0] == "      1  Send (send), clerk.py, process 7. Can be undone."
    assert lines[2] == "    2-5  4 alike: Send (send), clerk.py, process 7. Can be undone."
    assert lines[4].startswith("Of these the program that asked has ended")
    assert lines[5] == "      6  Send (send), dead.py, process 1. Can be undone."
    assert [picked.id for picked in listing.pick("1,4-6")] == ["1", "4", "5", "9"]
    assert len(listing.lines([entry("1"), *alike], "all")) == 11


@pytest.mark.parametrize("numbers", ["0", "7", "2-9", "5-2", "x", "", "1,", "-1"])
def test_a_number_that_was_not_listed_is_refused(numbers):
    """It could only mean a card that nobody has read."""
    listing = NumberedInbox()
    listing.lines([entry(str(n)) for n in range(6)], "")
    with pytest.raises(LastWordError, match="list"):
        listing.pick(numbers)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ("ann", 2),
        ("tool=send", 2),
        ("program=clerk", 1),
        ("effect=cannot", 1),
        ("newer=1m", 1),
        ("older=2m", 1),
        ("x y", 0),
    ],
)
def test_the_list_is_filtered_as_on_the_page(wanted, count):
    """By tool, program, effect, age and words."""
    other = entry("2", program="mailer.py", effect_words="Cannot be undone", asked_at=400.0)
    lines = NumberedInbox().lines([entry("1"), other], wanted, now=420.0)
    assert sum("Send (send)" in line for line in lines) == count


@pytest.mark.parametrize("wanted", ["colour=red", "newer=soon", "tool="])
def test_a_filter_that_means_nothing_is_refused(wanted):
    """A list of everything would pass for what was wanted."""
    with pytest.raises(LastWordError):
        NumberedInbox().lines([entry("1")], wanted)


def test_cards_of_a_program_are_listed_answered_and_denied_in_a_terminal(run: Run, tmp_path: Path):
    """`/inbox`, `/answer 1`, `/deny 1-3 REASON`: each means the card that was read beside its number."""
    store = f"sqlite:///{tmp_path}/shared.db"
    lastword.open_journal(store)
    terminal = run("up", "--port", "0", "--store", store)
    terminal.until("▸")
    asker = Asker(tmp_path, store, "clerk", [("look_up", {"word": f"w{n}"}) for n in range(4)])
    try:
        asker.until_asked()
        terminal.press_at("/inbox lists them.", "/inbox all\r", then="word: w3")
        # Whoever looks at one and goes away again has not answered it: it waits, and can be looked at again.
        terminal.press("/answer 2\r")
        terminal.press_at("[Esc] close", "\x1b")
        terminal.press_at("It still waits. /inbox lists it.", "/answer 2\r")
        # Below its own words a program may write that the assistant asks.
        terminal.until(f"This card is of another program: {asker.label}.")
        terminal.press_at("[Esc] close", "a", 2)
        assert asker.next_end() == ("look_up", {"word": "w1"}, "succeeded")
        terminal.press_at("▸", "/inbox all\r")
        terminal.press_at("/deny 2-5 REASON", "/deny 1-3 not today\r", 2, then="3 denied.")
        assert [asker.next_end()[2] for _ in range(3)] == ["denied"] * 3
        assert asker.done == [{"word": "w1"}]
    finally:
        asker.close()
