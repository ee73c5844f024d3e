"""The inbox in Debian's Chromium: cards of real programs on one SQLite journal, found, filtered and answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import lastword
from lastword.call import Limits
from requirements import requirement
from surfaces.askers import Asker
from surfaces.test_inbox_api import Neighbour
from surfaces.test_page_pictures import SIZES, found_by_axe
from surfaces.windows import PATIENCE_SECONDS, House, settled

NAMES = ("mailer", "backup", "research", "clerk")
ARMED = ".pane .card[data-armed=true]"
ROW = ".row[data-stop]:not([data-group])"

# Where the list stands, what has the focus, and where the row under the pointer is.
PLACE = """() => {
    const list = document.querySelector(".list"), at = document.activeElement;
    const box = at.getBoundingClientRect();
    const filters = [...document.querySelectorAll(".filters select")].map((one) => one.getBoundingClientRect().left);
    return [list.scrollTop, at.dataset.stop ?? at.className, box.top, box.left, scrollY, ...filters];
}"""


class Street:
    """A house, and programs beside it on the same journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f"sqlite:///{folder}/journal.db"
        self.journal = lastword.open_journal(self.store)
        self.house = House(folder, self.journal.store).open()
        self.askers: list[Asker] = []

    def ask(self, name: str, calls: list[tuple[str, dict[str, Any]]]) -> Asker:
        self.askers.append(Asker(self.folder, self.store, name, calls))
        return self.askers[-1]

    def close(self) -> None:
        for asker in self.askers:
            asker.close()
        self.house.close()


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    street.close()


def calls_of(name: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Of every five: three notes, a word, a letter."""
    found: list[tuple[str, dict[str, Any]]] = []
    for n in range(count):
        if n % 5 == 3:
            found.append(("look_up", {"word": f"{name} word {n}"}))
        elif n % 5 == 4:
            found.append(("send_letter", {"to": f"{name} friend {n}", "text": "Dear friend"}))
        else:
            found.append(("add_note", {"page": f"{name} page {n}", "text": "remember the milk"}))
    return found


def to_inbox(page: Page, count: int) -> None:
    expect(page).to_have_title(f"({count}) lastword")
    page.get_by_role("link", name="Inbox").click()
    expect(page.get_by_text(f"{count} of {count} shown")).to_be_visible()


def wait_until_armed(page: Page, words: str) -> None:
    expect(page.locator(".pane .card")).to_contain_text(words)
    settled(page, ARMED)


@requirement("TOOL-58")
def test_many_cards_of_four_programs_are_found_filtered_and_answered(street, windows):
    """Soon all of a person's agents ask here: each card is found, answered where it is, and nothing else moves."""
    askers = {name: street.ask(name, calls_of(name, 30)) for name in NAMES}
    for asker in askers.values():
        asker.until_asked()
    page, other = windows(street.house.key()), windows(street.house.key())
    for window in (page, other):
        to_inbox(window, 120)
    # Those alike are one row each: three tools of four programs.
    expect(page.locator(".row[data-group]")).to_have_count(12)
    expect(page.locator(ROW)).to_have_count(0)

    # Find and filter: by program, tool, effect, age and words.
    page.get_by_label("Program").select_option(askers["research"].label)
    expect(page.get_by_text("30 of 120 shown")).to_be_visible()
    page.get_by_label("Tool").select_option("send_letter")
    expect(page.get_by_text("6 of 120 shown")).to_be_visible()
    page.get_by_label("Program").select_option("")
    page.get_by_label("Tool").select_option("")
    page.get_by_label("Effect").select_option("irreversible")
    expect(page.get_by_text("24 of 120 shown")).to_be_visible()
    page.get_by_label("Effect").select_option("")
    page.get_by_label("Asked").select_option("older60")
    expect(page.get_by_text("No card fits.")).to_be_visible()
    page.get_by_label("Asked").select_option("newer60")
    page.get_by_label("With the words").fill("clerk page 17, text")  # "17" alone may be in the number of a process
    expect(page.get_by_text("1 of 120 shown")).to_be_visible()
    page.get_by_label("With the words").fill("")
    expect(page.get_by_text("120 of 120 shown")).to_be_visible()

    # Answer one in the middle. Scroll and focus stay, also when others are answered and new ones come.
    page.get_by_label("Group what is alike").uncheck()
    middle = page.locator(ROW, has_text="page: research page 17,")
    middle.scroll_into_view_if_needed()
    middle.focus()
    wait_until_armed(page, "research page 17")
    before = page.evaluate(PLACE)
    assert before[0] > 1000
    page.keyboard.press("Control+Enter")
    expect(middle).to_contain_text("allowed by you")
    assert askers["research"].next_end() == (
        "add_note",
        {"page": "research page 17", "text": "remember the milk"},
        "succeeded",
    )
    assert page.evaluate(PLACE) == before
    quiet = street.house.window()
    label = askers["mailer"].label
    first = next(entry for entry in quiet.get("/page/state")[1]["inbox"] if entry["program"] == label)
    quiet.post("/page/answer", {"call_id": first["id"], "digest": first["digest"], "action": "deny"})
    expect(page.locator(".entry.over")).to_have_count(2)
    street.ask("latecomer", calls_of("latecomer", 1)).until_asked()
    expect(page.get_by_role("heading", name="Came in since")).to_have_count(1)
    assert page.evaluate(PLACE) == before
    # The other window is in step, and says who it was.
    other.get_by_label("Group what is alike").uncheck()
    expect(other.locator(ROW, has_text="page: research page 17,")).to_have_count(1)
    expect(other.locator(".entry.over")).to_have_count(2)
    expect(other).to_have_title("(119) lastword")

    # Twelve at once.
    page.get_by_role("button", name="Tidy up (2 over, 1 new)").click()
    expect(page.get_by_text("119 of 119 shown")).to_be_visible()
    page.get_by_label("Program").select_option(askers["backup"].label)
    page.get_by_label("Tool").select_option("add_note")
    for box in page.locator(".entry input").all()[:12]:
        box.check()
    page.get_by_role("button", name="Look at them, then answer").click()
    expect(page.locator(".one .arguments")).to_have_count(12)
    settled(page, ".several[data-armed=true]")
    allow = page.get_by_role("button", name="Allow these 12")
    for one in page.locator(".one").all():
        one.scroll_into_view_if_needed()
    expect(page.get_by_text("All of them were on the screen.")).to_be_visible()
    assert askers["backup"].done == []
    settled(page, ".several[data-armed=true]")
    allow.click()
    expect(page.get_by_role("heading", name="12 allowed")).to_be_focused()
    kinds = [askers["backup"].next_end()[2] for _ in range(12)]
    assert kinds == ["succeeded"] * 12
    assert len(askers["backup"].done) == 12
    # Whoever pressed reads of each what they said and what it did.
    expect(page.locator(".one .outcome", has_text="Allowed by you. done")).to_have_count(12)
    expect(other).to_have_title("(107) lastword")

    # A program dies. Its cards are told from the others, here and where they stand, and are not counted.
    page.get_by_role("button", name="Back to the inbox").last.click()
    askers["mailer"].kill()
    expect(page).to_have_title("(78) lastword")
    page.get_by_role("link", name="Chat").click()
    page.get_by_role("link", name="Inbox").click()
    expect(page.get_by_role("heading", name="The program that asked has ended")).to_have_count(1)

    # Stop everything, from wherever one is.
    page.get_by_role("button", name="Stop everything", exact=True).click()
    page.get_by_role("button", name="Stop everything now").click()
    for name in ("research", "clerk"):
        left = 30 - (name == "research")
        assert {askers[name].next_end()[2] for _ in range(left)} == {"denied"}
    for window in (page, other):
        expect(window).to_have_title("lastword")
    assert askers["clerk"].done == []


@pytest.mark.parametrize("size", SIZES)
def test_everything_in_the_inbox_is_done_by_keyboard(street, windows, size):
    """Walk, look, choose several, allow, deny with a reason: no pointer, also on a phone with a keyboard."""
    asker = street.ask("clerk", calls_of("clerk", 8)).until_asked()
    page = windows(street.house.key(), **SIZES[size])
    expect(page).to_have_title("(8) lastword")
    page.get_by_role("link", name="Inbox").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("8 of 8 shown")).to_be_visible()
    page.get_by_label("With the words").focus()
    tab_to(page, ".list [data-stop]")
    # Five notes are a group, the rest stands by itself.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "clerk page 1" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    wait_until_armed(page, "clerk page 1")
    page.keyboard.press("Enter")
    settled(page, ARMED)
    page.keyboard.press("Control+Enter")
    assert asker.next_end()[1:] == ({"page": "clerk page 1", "text": "remember the milk"}, "succeeded")
    expect(page.locator(".card-over")).to_contain_text("allowed by you")
    # What it did comes to where the card was.
    expect(page.locator(".card-over .pill.good")).to_have_text("done")
    expect(page.locator(".card-over")).to_contain_text("Done.")
    expect(page.locator(".pane")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(ROW, has_text="allowed by you")).to_be_focused()
    # Two at once: down, choose, down, choose; then the list of what they do.
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
    expect(page.get_by_text("2 chosen")).to_be_visible()
    tab_to(page, ".several-bar .primary")
    page.keyboard.press("Enter")
    expect(page.locator(".one .arguments")).to_have_count(2)
    expect(page.locator(".several")).to_be_focused()
    settled(page, ".several[data-armed=true]")
    page.keyboard.press("End")
    expect(page.get_by_text("All of them were on the screen.")).to_have_count(1)
    settled(page, ".several[data-armed=true]")
    page.keyboard.press("Enter")
    settled(page, ".several[data-armed=true]")
    assert len(asker.done) == 1
    page.keyboard.press("Control+Enter")
    assert [asker.next_end()[2] for _ in range(2)] == ["succeeded", "succeeded"]
    expect(page.locator(".act h2")).to_be_focused()
    tab_to(page, ".act button")
    page.keyboard.press("Enter")
    # Deny one with a reason.
    expect(page.locator(".list [data-stop]:focus")).to_have_count(1)
    page.keyboard.press("End")
    row = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    wait_until_armed(page, "clerk")
    page.keyboard.press("Control+Backspace")
    expect(page.get_by_label("Why not? The assistant reads this.")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("not now")
    settled(page, ARMED)
    page.keyboard.press("Enter")
    tool, _, kind = asker.next_end()
    assert (tool, kind) == ("send_letter", "denied"), row


def tab_to(page: Page, where: str) -> None:
    """Press Tab until what is looked for has the focus."""
    for _ in range(30):
        if page.evaluate("where => document.activeElement.matches(where)", where):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {where}")


def test_hostile_names_are_texts_in_every_place_of_the_inbox(street, windows):
    """A program chooses its name, its tool's name and its arguments: none of them may be markup, or pass for ours."""
    page = windows(street.house.key())
    page.evaluate("() => { window.alert = () => { window.alerted = true; }; }")
    hostile = "<img src=x onerror=alert(2)></p><a href=javascript:alert(3)>x</a> \u202e\u200b"
    name = "<b>evil<img src=x onerror=alert(4)>"
    asker = street.ask(name, [("odd_one", {"text": hostile})] * 4 + [("add_note", {"page": hostile, "text": hostile})])
    asker.until_asked()
    to_inbox(page, 5)
    page.locator(".row[data-group]").click()
    page.locator(ROW).first.click()
    wait_until_armed(page, "<img src=x onerror=alert(2)>")
    expect(page.locator(".pane .card footer")).to_contain_text(name)
    page.locator(".entry input:enabled").last.check()
    page.get_by_role("button", name="Look at them, then answer").click()
    expect(page.locator(".one")).to_contain_text("‹U+202E›")
    found = "document.querySelectorAll('main img, main script, main a, main b:not(.second b)').length"
    assert page.evaluate(found) == 0
    page.keyboard.press("Escape")
    assert page.evaluate(found) == 0
    expect(page.locator(".entry", has_text="‹U+202E›").first).to_be_visible()
    asker.kill()
    expect(page).to_have_title("lastword")
    page.get_by_role("button", name="Tidy up").click()
    expect(page.locator(".apart")).to_contain_text(name)
    assert page.evaluate(found) == 0
    assert page.evaluate("window.alerted") is None


@requirement("TOOL-55")
def test_presses_that_were_not_meant_answer_nothing_in_the_inbox(street, windows):
    """Opening a card and pressing on: the row's double click, keys held down, a list that nobody has looked through."""
    asker = street.ask("clerk", [("add_note", {"page": f"p{n}", "text": "line\n" * 30}) for n in range(8)])
    asker.until_asked()
    page = windows(street.house.key())
    to_inbox(page, 8)
    page.get_by_label("Group what is alike").uncheck()
    page.locator(ROW).first.focus()
    for _ in range(3):
        page.keyboard.press("Control+Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Enter")
    wait_until_armed(page, "p1")
    # A click that no hand made.
    page.evaluate("document.querySelector('.pane .primary').click()")
    page.get_by_role("button", name="Choose all that are shown").click()
    page.get_by_role("button", name="Look at them, then answer").click()
    expect(page.locator(".one .arguments")).to_have_count(8)
    settled(page, ".several[data-armed=true]")
    # The end of the list is there; what is in the middle never was on the screen.
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.get_by_text("were not on the screen yet")).to_be_visible()
    settled(page, ".several[data-armed=true]")
    page.get_by_role("button", name="Allow these 8").click(force=True)
    page.keyboard.press("Control+Enter")
    settled(page, ".several[data-armed=true]")
    assert asker.done == []
    assert len(street.house.window().get("/page/state")[1]["inbox"]) == 8
    page.get_by_role("button", name="Deny these 8").click()
    assert {asker.next_end()[2] for _ in range(8)} == {"denied"}


def test_a_card_of_another_program_leaves_the_chat_as_it_is(street, windows):
    """Somebody writes: neither their words nor their place go, and the count says that somebody else waits."""
    page = windows(street.house.key())
    field = page.get_by_label("Message to the assistant")
    field.fill("half a sent")
    asker = street.ask("clerk", calls_of("clerk", 1)).until_asked()
    expect(page).to_have_title("(1) lastword")
    expect(field).to_be_focused()
    expect(page.locator(".card")).to_have_count(0)
    page.keyboard.type("ence")
    expect(field).to_have_value("half a sentence")
    page.get_by_role("button", name="1 waiting for you").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    asker.kill()


@pytest.mark.parametrize(("theme", "size"), [("light", "wide"), ("dark", "phone")])
def test_axe_finds_nothing_in_the_inbox(street, windows, theme, size):
    """What a machine can find of what keeps people out."""
    dead = street.ask("mailer", calls_of("mailer", 5)).until_asked()
    street.ask("clerk", calls_of("clerk", 8)).until_asked()
    dead.kill()
    page = windows(street.house.key(), color_scheme=theme, **SIZES[size])
    expect(page).to_have_title("(8) lastword")
    page.get_by_role("link", name="Inbox").click()
    page.locator(".row[data-group]").first.click()
    expect(page.locator(ROW).first).to_be_visible()
    check_with_axe(page, "list")
    page.locator(ROW).first.click()
    settled(page, ARMED)
    check_with_axe(page, "card")
    if size == "phone":
        page.get_by_role("button", name="Back to the list").click()
    page.locator(".entry input:enabled").nth(1).check()
    page.get_by_role("button", name="Look at them, then answer").click()
    settled(page, ".several[data-armed=true]")
    check_with_axe(page, "several")
    page.get_by_role("button", name="Stop everything", exact=True).click()
    check_with_axe(page, "stop")


def check_with_axe(page: Page, view: str) -> None:
    assert (view, found_by_axe(page, "document")) == (view, [])


@pytest.mark.parametrize("size", SIZES)
def test_the_number_of_a_process_is_never_cut(street, windows, size):
    """Two programs of one name are told apart by it alone; on a phone a row ended with "agent.py, pro…"."""
    name = "a-clerk-with-a-name-that-is-longer-than-the-row-of-a-phone"
    asker = street.ask(name, calls_of("clerk", 1)).until_asked()
    page = windows(street.house.key(), **SIZES[size])
    to_inbox(page, 1)
    number = page.locator(f"{ROW} .number")
    expect(number).to_have_text(f"process {asker.pid}")
    assert number.evaluate(
        """number => {
            const [inner, outer] = [number, number.closest(".row")].map((each) => each.getBoundingClientRect());
            const isWhole = number.scrollWidth <= number.clientWidth + 1;
            return isWhole && inner.left >= outer.left && inner.right <= outer.right && inner.bottom <= outer.bottom;
        }"""
    )
    expect(page.locator(f"{ROW} .program")).to_contain_text(name[:20])


def test_a_card_that_nobody_answers_keeps_its_row_and_stands_apart_once_the_list_is_tidied(street, windows):
    """Nothing moves under the pointer; afterwards it is neither counted nor offered to be answered."""
    neighbour = Neighbour(street.house, street.folder / "done", limits=Limits(approval_timeout_seconds=8))
    waits = Neighbour(street.house, street.folder / "done").ask("look_up", word="waits")
    late = neighbour.ask("add_note", page="late", text="remember the milk")
    page = windows(street.house.key())
    to_inbox(page, 2)
    expect(page.locator(ROW)).to_have_count(2)
    assert late.result(PATIENCE_SECONDS).kind == "expired"
    row = page.locator(ROW, has_text="page: late")
    expect(row).to_contain_text("Nobody answered in time")
    expect(page).to_have_title("(1) lastword")
    expect(page.locator(".apart")).to_have_count(0)
    page.get_by_role("button", name="Tidy up").click()
    apart = page.locator(".apart", has_text="Nobody answered in time")
    expect(apart.locator(ROW)).to_have_count(1)
    expect(apart.locator("input")).to_be_disabled()
    expect(page.get_by_text("1 of 1 shown")).to_be_visible()
    apart.locator(ROW).click()
    expect(page.locator(".card-over")).to_contain_text("Nothing of it was done.")
    # Whoever comes later is told as well.
    later = windows(street.house.key())
    to_inbox(later, 1)
    expect(later.locator(".apart")).to_contain_text("page: late")
    waits.cancel()
