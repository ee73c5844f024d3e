"""How the inbox looks: pictures that are kept and compared, of the list with a card and of several at once."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

import lastword
from lastword.call import Limits
from lastword.journal import Journal
from surfaces.test_inbox_api import Neighbour
from surfaces.test_page_pictures import SIZES, Clock, compare_in_both, window_of
from surfaces.windows import PATIENCE_SECONDS, Browserless, House, settled

# Numbers of processes and ids of sessions are others every time.
STEADY = """() => {
    for (const name of document.querySelectorAll(".whose .number")) {
        const steady = name.textContent.replace(/process \\d+/, "process 4242");
        name.textContent = steady.replace(/: [0-9a-f]{6}/, ": 0a1b2c");
        if (name.textContent.startsWith("process")) name.previousElementSibling.textContent = "agent.py,";
    }
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = nodes.nextNode()); )
        node.textContent = node.textContent
            .replace(/(a program|\\S+), process \\d+/, "agent.py, process 4242")
            .replace(/\\(one of (\\d+) of this name: [0-9a-f]{6}\\)/, "(one of $1 of this name: 0a1b2c)")
            .replace(/^[0-9a-f]{18}$/, "0".repeat(18));
}"""


@pytest.fixture
def street(tmp_path: Path) -> Iterator[House]:
    clock = Clock()
    house = House(tmp_path, id="pictures", clock=clock).open()
    yield from asking(house, clock, tmp_path)


def waited_for(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def waits_for(window: Browserless) -> list[str]:
    """What the inbox says of the cards that somebody waits for."""
    return [entry["summary"] for entry in window.get("/page/state")[1]["inbox"] if entry["asker"] != "ended"]


@pytest.fixture
def quiet_street(tmp_path: Path) -> Iterator[House]:
    """One program has died, and two cards have waited too long."""
    clock = Clock()
    store = lastword.open_journal(f"sqlite:///{tmp_path}/street.db").store
    house = House(tmp_path, store, id="pictures", clock=clock).open()
    journal = Journal(lastword.open_journal(f"sqlite:///{tmp_path}/street.db").store, clock)
    dead = Neighbour(house, tmp_path / "done", journal)
    left = []
    for n in (11, 12):
        clock.now += 20
        left.append(dead.ask("add_note", page=f"2025/{n:02}", text="Pay the berth."))
        # The clock goes on when it is written down: which of two of one moment stands first is left to chance.
        waited_for(lambda: len(house.do(journal.waiting())) == len(left))
    house.do(journal.close())  # Its lock on its own name goes with it, as when a program dies.
    clock.now += 40
    late = Neighbour(house, tmp_path / "done", limits=Limits(approval_timeout_seconds=3))
    for tool, arguments in (
        ("look_up", {"word": "bilge"}),
        ("send_letter", {"to": "Bob", "text": "The boat is yours."}),
    ):
        # One after the other, for the same reason.
        assert late.ask(tool, **arguments).result(PATIENCE_SECONDS).kind == "expired"
        clock.now += 40
    clock.now += 600
    neighbour = Neighbour(house, tmp_path / "done")
    waiting = neighbour.ask("look_up", word="gunwale")
    # Before that the inbox may still show a card as waiting whose time was up, and its row would stay where it is.
    window = house.window()
    waited_for(lambda: waits_for(window) == ["word: gunwale"])
    yield house
    for call in (*left, waiting):
        call.cancel()
    house.close()


def asking(house: House, clock: Clock, tmp_path: Path) -> Iterator[House]:
    neighbour = Neighbour(house, tmp_path / "done")
    calls = []
    for n in range(6):
        clock.now += 61
        calls.append(neighbour.ask("add_note", page=f"2026/{n + 1:02}", text="Ask Ann about the boat."))
    clock.now += 9
    calls.append(neighbour.ask("send_letter", to="Ann", text="Dear Ann, the boat is yours from Monday on."))
    clock.now += 9
    calls.append(neighbour.ask("look_up", word="gunwale"))
    yield house
    for call in calls:
        call.cancel()
    house.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_inbox_looks_as_it_was_agreed(browser, street, size):
    """Light and dark, wide and phone: the list with what is alike, the card beside it, several at once."""
    page = window_of(browser, street, color_scheme="light", **SIZES[size])
    expect(page).to_have_title("(8) lastword")
    page.get_by_role("link", name="Inbox").click()
    page.locator(".row[data-group]").click()
    if size == "wide":
        page.get_by_text("page: 2026/02").click()
        settled(page, ".pane .card[data-armed=true]")
    compare_in_both(page, "inbox", size, STEADY)
    for box in page.locator(".group li input").all()[:3]:
        box.check()
    page.get_by_role("button", name="Look at them, then answer").click()
    settled(page, ".several[data-armed=true]")
    for one in page.locator(".one").all():
        one.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, 0)")
    compare_in_both(page, "several", size, STEADY)
    page.context.close()


@pytest.mark.parametrize("size", SIZES)
def test_what_is_dead_and_what_was_missed_look_as_it_was_agreed(browser, quiet_street, size):
    """Each stands apart from what waits and says what an answer would be worth; the card of a dead one says it too."""
    page = window_of(browser, quiet_street, color_scheme="light", **SIZES[size])
    expect(page).to_have_title("(1) lastword")
    page.get_by_role("link", name="Inbox").click()
    expect(page.get_by_role("heading", name="The program that asked has ended")).to_have_count(1)
    expect(page.get_by_role("heading", name="Nobody answered in time")).to_have_count(1)
    if size == "wide":
        page.get_by_text("page: 2025/11").click()
        settled(page, ".pane .card[data-armed=true]")
    else:
        page.get_by_role("heading", name="The program that asked has ended").scroll_into_view_if_needed()
    compare_in_both(page, "apart", size, STEADY)
    page.context.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_filters_look_as_it_was_agreed(browser, street, size):
    """Open on a phone, where they are folded otherwise; with something chosen, and one row that is over."""
    page = window_of(browser, street, color_scheme="light", **SIZES[size])
    expect(page).to_have_title("(8) lastword")
    page.get_by_role("link", name="Inbox").click()
    if size == "phone":
        page.get_by_role("button", name="Filter").click()
    page.get_by_label("Effect").select_option("irreversible")
    page.get_by_label("With the words").fill("ann")
    expect(page.get_by_text("1 of 8 shown")).to_be_visible()
    if size == "wide":
        page.locator("[data-stop]").first.click()
        page.locator(".pane .card[data-armed=true]").get_by_role("button", name="Deny", exact=True).click()
        expect(page.locator(".entry.over")).to_have_count(1)
        expect(page.locator(".card-over")).to_contain_text("enied by you")
    compare_in_both(page, "filters", size, STEADY)
    page.context.close()
