"""The inbox while the world moves: cards that come, go or change under a hand, keys held down, and being noticed."""

import time
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.askers import Asker
from surfaces.conftest import Run
from surfaces.test_chat import READY
from surfaces.test_inbox import ROW, calls_of, street, tab_to, to_inbox, wait_until_armed
from surfaces.test_page_pictures import SIZES
from surfaces.test_together import attach, key_of
from surfaces.windows import PATIENCE_SECONDS, settled

__all__ = ["street"]


# A notification is the system's, and a page cannot look at those that it made: they are written down on the way.
NOTICES = """
    window.notices = [];
    window.Notification = class extends window.Notification {
        constructor(title, options) { super(title, options); window.notices.push([title, options.body]); }
    };
"""
# On a phone the name is there, and making one fails.
REFUSES = """
    window.Notification = class {
        static permission = "granted";
        constructor() { throw new TypeError("Illegal constructor"); }
    };
"""


def notes(count: int, about: str = "page") -> list[tuple[str, dict[str, Any]]]:
    return [("add_note", {"page": f"{about} {n}", "text": "remember the milk"}) for n in range(count)]


def look_through(page: Page, count: int) -> None:
    """Choose so many, and look at each of them to its end."""
    page.get_by_label("Group what is alike").uncheck()
    for box in page.locator(".entry input").all()[:count]:
        box.check()
    page.get_by_role("button", name="Look at them, then answer").click()
    expect(page.locator(".one .arguments")).to_have_count(count)
    for one in page.locator(".one").all():
        one.scroll_into_view_if_needed()
    expect(page.get_by_text("All of them were on the screen.")).to_have_count(1)


@requirement("TOOL-55")
def test_a_card_that_comes_while_twelve_are_allowed_is_not_among_them(street, windows):
    """The press is for what was looked through. Whatever arrives under the hand waits for a look of its own."""
    asker = street.ask("clerk", notes(12)).until_asked()
    page = windows(street.house.key())
    to_inbox(page, 12)
    look_through(page, 12)
    late = street.ask("late", notes(3, "late")).until_asked()
    expect(page).to_have_title("(15) lastword")
    expect(page.locator(".one")).to_have_count(12)
    settled(page, ".several[data-armed=true]")
    page.get_by_role("button", name="Allow these 12").click()
    expect(page.get_by_role("heading", name="12 allowed", exact=True)).to_be_focused()
    assert [asker.next_end()[2] for _ in range(12)] == ["succeeded"] * 12
    expect(page).to_have_title("(3) lastword")
    assert late.done == []
    page.get_by_role("button", name="Back to the inbox").last.click()
    expect(page.locator(ROW, has_text="late")).to_have_count(3)


@requirement("TOOL-55")
def test_several_are_not_allowed_while_a_part_of_one_is_folded(street, windows):
    """The list said that all were on the screen, with 1,446 characters of one behind a fold that nobody had opened."""
    long = {"page": "long", "text": "remember the milk " * 100 + "and forget the rest"}
    asker = street.ask("clerk", [("add_note", long), *notes(2)]).until_asked()
    page = windows(street.house.key())
    to_inbox(page, 3)
    page.get_by_label("Group what is alike").uncheck()
    for box in page.locator(".entry input").all():
        box.check()
    page.get_by_role("button", name="Look at them, then answer").click()
    expect(page.locator(".one .arguments")).to_have_count(3)
    for one in page.locator(".one").all():
        one.scroll_into_view_if_needed()
    page.locator(".several .act").scroll_into_view_if_needed()
    settled(page, ".several[data-armed=true]")
    expect(page.get_by_text("1 of them were not on the screen yet.")).to_have_count(1)
    page.get_by_role("button", name="Allow these 3").click(force=True)
    page.get_by_role("button", name="show all").click()
    page.locator(".one", has_text="and forget the rest").locator("[data-end]").scroll_into_view_if_needed()
    expect(page.get_by_text("All of them were on the screen.")).to_have_count(1)
    assert asker.done == []
    settled(page, ".several[data-armed=true]")
    page.get_by_role("button", name="Allow these 3").click()
    assert [asker.next_end()[2] for _ in range(3)] == ["succeeded"] * 3


@requirement("TOOL-55")
def test_a_card_that_is_closed_before_or_during_the_press_is_left_out_and_said(street, windows):
    """One is denied in another window while the list is read, one while the press is on its way."""
    asker = street.ask("clerk", notes(4)).until_asked()
    page = windows(street.house.key())
    to_inbox(page, 4)
    other = street.house.window()
    cards = [{"call_id": e["id"], "digest": e["digest"]} for e in other.get("/page/state")[1]["inbox"]]
    look_through(page, 4)
    other.post("/page/answer", {**cards[1], "action": "deny", "reason": "I was first"})
    expect(page.locator(".one").nth(1)).to_contain_text("denied by you: “I was first”")
    allow = page.get_by_role("button", name="Allow these 3")
    settled(page, ".several[data-armed=true]")

    def overtake(route: Route) -> None:
        other.post("/page/answer", {**cards[2], "action": "deny"})
        route.continue_()

    page.route("**/page/answers", overtake)
    allow.click()
    expect(page.get_by_role("heading", name="2 allowed, 1 not")).to_be_focused()
    expect(page.locator(".one").nth(2)).to_contain_text("this question is not waiting any more")
    ends = {str(arguments["page"]): kind for _, arguments, kind in (asker.next_end() for _ in range(4))}
    assert ends == {"page 0": "succeeded", "page 1": "denied", "page 2": "denied", "page 3": "succeeded"}
    assert len(asker.done) == 2


@requirement("TOOL-55")
def test_a_key_that_is_held_down_answers_no_second_card(street, windows):
    """Whoever holds Ctrl+Enter a little long, and walks on, has allowed one card and not the next."""
    asker = street.ask("clerk", notes(6)).until_asked()
    page = windows(street.house.key())
    to_inbox(page, 6)
    page.get_by_label("Group what is alike").uncheck()
    page.locator(ROW).first.focus()
    wait_until_armed(page, "page 0")
    page.keyboard.down("Control")
    page.keyboard.down("Enter")
    assert asker.next_end()[1]["page"] == "page 0"
    # Still down: a key that is pressed again without having been let go repeats.
    page.locator(ROW).nth(1).focus()
    wait_until_armed(page, "page 1")
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.keyboard.up("Control")
    # Nor does one that is held while it walks through the list, or chooses.
    for key in ("ArrowDown", "j", "x", "Space", "Enter"):
        page.locator(ROW).nth(2).focus()
        for _ in range(4):
            page.keyboard.down(key)
        page.keyboard.up(key)
    # A press of its own counts, so the ones above were refused and not merely late.
    page.locator(ROW).nth(5).focus()
    wait_until_armed(page, "page 5")
    page.keyboard.press("Control+Enter")
    assert asker.next_end()[1]["page"] == "page 5"
    assert len(asker.done) == 2


def until_focus_is(page: Page, wanted: bool) -> None:
    """Not wait_for_function: unless the first look succeeds, it looks again with eval, which our policy refuses."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while page.evaluate("document.hasFocus()") is not wanted:
        assert time.monotonic() < ends
        page.wait_for_timeout(20)


def behind(page: Page) -> Page:
    """Put a window behind another one, as far as it can tell itself."""
    page.context.new_cdp_session(page).send("Emulation.setFocusEmulationEnabled", {"enabled": False})
    page.context.new_page().bring_to_front()
    until_focus_is(page, False)
    return page


@pytest.mark.usefixtures("whole_browser")
def test_somebody_who_allowed_it_is_notified_in_our_words_and_the_title_counts(street, windows):
    """Behind other windows only. What a program or a model wrote stays on the card, where it is quoted."""
    page = windows(street.house.key(), permissions=["notifications"])
    page.context.add_init_script(NOTICES)
    page.reload()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    behind(page)
    street.ask("clerk", [("add_note", {"page": "SECRET", "text": "x"}), *notes(7)]).until_asked()
    expect(page).to_have_title("(8) lastword")
    told = page.evaluate("window.notices")
    assert {title for title, _ in told} == {"lastword is waiting for you"}
    assert all("SECRET" not in body for _, body in told)
    assert told[0][1].startswith("Add note. Can be undone.")
    page.bring_to_front()
    until_focus_is(page, True)
    street.ask("late", notes(1)).until_asked()
    expect(page).to_have_title("(9) lastword")
    assert page.evaluate("window.notices.length") == len(told), "who looks at the page needs no notice"


@pytest.mark.usefixtures("whole_browser")
def test_a_browser_that_refuses_to_notify_still_shows_the_cards(street, windows):
    """A phone's browser has notifications, allows them, and throws when a page makes one."""
    page = windows(street.house.key(), permissions=["notifications"])
    page.context.add_init_script(REFUSES)
    page.reload()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    behind(page)
    street.ask("clerk", notes(2)).until_asked()
    expect(page).to_have_title("(2) lastword")
    page.bring_to_front()
    to_inbox(page, 2)


@pytest.mark.long
def test_two_hundred_cards_are_filtered_answered_and_stopped_on_a_phone_by_keyboard_alone(street, windows):
    """390 pixels and no pointer: find, filter, answer one, twelve at once, a program that died, stop everything."""
    names = ("mailer", "backup", "research", "clerk")
    askers = {name: street.ask(name, calls_of(name, 50)) for name in names}
    for asker in askers.values():
        asker.until_asked()
    page = windows(street.house.key(), **SIZES["phone"])
    expect(page).to_have_title("(200) lastword")
    page.get_by_role("link", name="Inbox").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("200 of 200 shown")).to_be_visible()
    heights = page.evaluate("[document.querySelector('.list').clientHeight, innerHeight, innerWidth]")
    assert heights[2] == 390
    assert heights[0] > heights[1] / 2, "the filters leave no room for the list"
    assert page.evaluate("document.documentElement.scrollWidth") == 390

    # Filter: the choices are folded until they are wanted.
    page.locator("#picks").evaluate("picks => { if (picks.offsetHeight) throw new Error('open') }")
    page.get_by_label("With the words").focus()
    tab_to(page, ".more")
    page.keyboard.press("Enter")
    tab_to(page, "#picks select")
    page.keyboard.type("backup")
    tab_to(page, "#picks label:nth-child(2) select")
    page.keyboard.type("add_note")
    expect(page.get_by_text("30 of 200 shown")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Filter (2)")).to_be_focused()
    page.keyboard.press("Enter")

    # One in the middle; then twelve at once.
    tab_to(page, ".list [data-stop]")
    page.keyboard.press("ArrowRight")
    for _ in range(15):
        page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.querySelector('.entry-line').textContent")
    page.keyboard.press("Enter")
    wait_until_armed(page, chosen.split(": ")[1].split(",")[0])
    page.keyboard.press("Control+Enter")
    assert askers["backup"].next_end()[1]["page"] in chosen
    page.keyboard.press("Escape")
    expect(page.locator(".list :focus")).to_have_count(1)
    for number in range(1, 13):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Space")
        expect(page.get_by_text(f"{number} chosen", exact=True)).to_be_visible()
    tab_to(page, ".several-bar .primary")
    page.keyboard.press("Enter")
    expect(page.locator(".one .arguments")).to_have_count(12)
    expect(page.locator(".several")).to_be_focused()
    while page.get_by_text("All of them were on the screen.").count() == 0:
        page.keyboard.press("PageDown")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    settled(page, ".several[data-armed=true]")
    page.keyboard.press("Control+Enter")
    assert [askers["backup"].next_end()[2] for _ in range(12)] == ["succeeded"] * 12
    assert len(askers["backup"].done) == 13

    # A program dies: its cards are told from the others. Then everything stops.
    askers["mailer"].kill()
    expect(page).to_have_title("(137) lastword")
    page.get_by_role("button", name="Stop everything", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop everything now")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_title("lastword")
    assert {askers["clerk"].next_end()[2] for _ in range(50)} == {"denied"}
    assert askers["clerk"].done == []


def test_two_windows_and_a_terminal_are_in_step(run: Run, windows, tmp_path):
    """What one of them answers is gone from the others, which say who it was."""
    store = f"sqlite:///{tmp_path}/shared.db"
    with ScriptedModel([]) as model, ExitStack() as after:
        program = run("up", "--port", "0", "--store", store, columns=150, LASTWORD_UPSTREAM=model.url)
        program.until(READY)
        joined = attach(run)
        joined.until(READY)
        page = windows(key_of(program))
        page.get_by_role("link", name="Settings").click()
        page.get_by_role("button", name="Make an address").click()
        other = windows(page.get_by_label("Address with a key").input_value())
        asker = Asker(tmp_path, store, "clerk", [("look_up", {"word": f"w{n}"}) for n in range(4)])
        after.callback(asker.close)
        asker.until_asked()
        for window in (page, other):
            to_inbox(window, 4)
            window.get_by_label("Group what is alike").uncheck()
        page.locator(ROW, has_text="w1").click()
        wait_until_armed(page, "w1")
        page.locator(".pane").get_by_role("button", name="Allow").click()
        assert asker.next_end() == ("look_up", {"word": "w1"}, "succeeded")
        expect(other.locator(ROW, has_text="w1")).to_contain_text("allowed by you")
        joined.press_for("/inbox all\r", "word: w3")
        assert "word: w1" not in joined.text
        joined.press_for("/deny 1 not now\r", "1 denied.")
        assert asker.next_end() == ("look_up", {"word": "w0"}, "denied")
        for window in (page, other):
            expect(window.locator(ROW, has_text="w0")).to_contain_text("denied by the terminal: “not now”")
            expect(window).to_have_title("(2) lastword")
