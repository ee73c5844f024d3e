"""A card that is taller than the window: what lies behind its buttons is seen before anything is allowed."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from requirements import requirement
from surfaces.conftest import Houses
from surfaces.test_page_arming import Hand
from surfaces.windows import ARMED, FRAME, PATIENCE_SECONDS, READ_ON, House, read_to_end, settled

# Whether what would run is in sight, and not behind something else.
IN_SIGHT = """place => {
  const { left, top, bottom } = place.getBoundingClientRect();
  const isSeen = (y) => {
    const above = place.getRootNode().elementFromPoint(left + 2, y);
    return above !== null && (above.contains(place) || place.contains(above));
  };
  return isSeen(top + 2) && isSeen(bottom - 2);
}"""


@pytest.fixture
def house(houses: Houses) -> House:
    house = houses()

    @house.session.registry.tool(require_approval=True, effect="reversible")
    def order(*, one: str, two: str, three: str, four: str, five: str, six: str) -> str:
        """Orders something, with many arguments."""
        house.effects.append(six)
        return "Ordered."

    return house


ORDER = {name: f"the words of {name}" for name in ("one", "two", "three", "four", "five", "six")}


# On a phone more of a card lies behind its buttons, and nothing of it stands side by side.
either_size = pytest.mark.parametrize(
    "size",
    [
        pytest.param({"width": 1280, "height": 900}, id="wide", marks=pytest.mark.long),
        pytest.param({"width": 390, "height": 844}, id="phone"),
    ],
)


@requirement("TOOL-46")
@pytest.mark.parametrize("way", ["press", "key"])
def test_nothing_is_allowed_that_lies_behind_the_buttons(house: House, windows: Any, way: str):
    """On a phone the buttons stay at the bottom of the window, over whatever was not scrolled to yet."""
    page = windows(house.key(), viewport={"width": 390, "height": 600})
    hand = Hand(page, house)
    call = house.call("order", **ORDER)
    page.wait_for_selector(".card")
    hand.settle(ARMED)
    last = page.get_by_text("the words of six")
    assert not last.evaluate(IN_SIGHT), "the card has to be taller than the window for this"
    allow = page.locator(".card .actions .primary")
    expect(allow).to_have_attribute("aria-disabled", "true")
    expect(page.locator(".card .second")).to_contain_text("There is more of it below.")
    if way == "press":
        hand.click(".card .actions .primary")
    else:
        page.locator(".card").focus()
        page.keyboard.press("Control+Enter")
    hand.wait(3000)
    assert (call.done(), house.effects) == (False, [])
    page.locator(".card").evaluate(READ_ON)
    assert last.evaluate(IN_SIGHT)
    hand.settle(ARMED)
    hand.click(".card .actions .primary")
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == ["the words of six"]


@requirement("TOOL-46")
def test_a_card_that_was_seen_is_not_asked_to_be_read_again_when_the_window_shrinks(house: House, windows: Any):
    """It fitted, and somebody read it. A phone that is turned does not make it unread."""
    page = windows(house.key(), viewport={"width": 1200, "height": 1400})
    hand = Hand(page, house)
    call = house.call("order", **ORDER)
    page.wait_for_selector(".card")
    hand.settle(ARMED)
    allow = page.locator(".card .actions .primary")
    expect(allow).to_have_attribute("aria-disabled", "false")
    page.set_viewport_size({"width": 390, "height": 600})
    hand.settle(ARMED)
    expect(allow).to_have_attribute("aria-disabled", "false")
    hand.click(".card .actions .primary")
    assert call.result(PATIENCE_SECONDS).success


TO_THE_END = "() => scrollTo(0, document.documentElement.scrollHeight)"


@requirement("TOOL-46")
def test_whoever_jumps_to_the_end_has_not_seen_what_lies_between(house: House, windows: Any):
    """The end is in sight then, and the buttons are below it; what was asked for was passed by."""
    page = windows(house.key(), viewport={"width": 390, "height": 600})
    call = house.call("order", **{**ORDER, "three": "\n".join(f"Item {number}" for number in range(10)) * 3})
    page.wait_for_selector(ARMED)
    words = page.locator(".card .second")
    expect(words).to_contain_text("There is more of it below.")
    page.evaluate(TO_THE_END)
    expect(words).to_contain_text("You went past a part of it.")
    assert page.get_by_text("the words of six").evaluate(IN_SIGHT)
    settled(page)
    page.locator(".card .actions .primary").click(force=True)
    assert (call.done(), house.effects) == (False, [])
    expect(words).to_contain_text("There is more of it below.")  # The press has led back to where it was left.
    page.evaluate(TO_THE_END)
    page.get_by_role("button", name="Go back to it").click()
    expect(words).to_contain_text("There is more of it below.")
    read_to_end(page)
    page.locator(".card .actions .primary").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == ["the words of six"]


LETTER = "\n".join(f"Line {number} of a long letter." for number in range(1, 121))


@requirement("TOOL-46", "TOOL-55")
@either_size
def test_what_was_opened_is_read_to_its_end_as_well(house: House, windows: Any, size: Any):
    """It was folded, so nobody has seen it. Opened and closed again it has still not been seen."""

    @house.session.registry.tool(require_approval=True, effect="irreversible")
    def send(to: str, text: str, after: str) -> str:
        """Sends a letter."""
        house.effects.append(to)
        return "Sent."

    page = windows(house.key(), viewport=size)
    call = house.call("send", to="Ada", text=LETTER, after="nothing")
    page.wait_for_selector(ARMED)
    read_to_end(page)
    open_it = page.locator(".card .second").get_by_role("button", name="open it")
    open_it.click()
    expect(page.locator(".card .second")).to_contain_text("There is more of it below.")
    assert not page.get_by_text("Line 120 of a long letter.").evaluate(IN_SIGHT)
    page.locator(".card .fold").click()  # It stands at the end of the letter: whoever goes there has jumped.
    read_to_end(page)
    expect(open_it).to_be_visible()
    open_it.click()
    expect(page.locator(".card .word")).to_have_count(0)
    settled(page)
    page.locator(".card .actions .primary").click(force=True)
    assert (call.done(), house.effects) == (False, [])
    read_to_end(page)
    assert page.locator(".card").get_by_text("nothing").evaluate(IN_SIGHT)
    page.locator(".card .word").press_sequentially("allow")
    page.locator(".card .actions .primary").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == ["Ada"]


@requirement("TOOL-46", "TOOL-55")
def test_what_was_read_to_its_end_may_be_closed_again_before_the_rest_is_read(house: House, windows: Any):
    """It has been seen, and whoever reads a long card closes what is done with. What was only opened was not,
    though the card had been as long before, and all of it was read then."""

    @house.session.registry.tool(require_approval=True, effect="irreversible")
    def send(text: str, one: str, two: str, three: str) -> str:
        """Sends a letter."""
        house.effects.append(one)
        return "Sent."

    page = windows(house.key(), viewport={"width": 390, "height": 600})
    line = "words that fill a line of it and another "
    short = {name: (line * 13).strip() for name in ("one", "two", "three")}
    call = house.call("send", text=LETTER[: LETTER.index("Line 41")], **short)
    page.wait_for_selector(ARMED)
    fold = page.locator(".card .fold").first
    open_it = page.get_by_role("button", name="open it")
    read_to_end(page)
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "true")
    fold.evaluate("button => button.click()")
    read_to_end(page)
    open_it.click()
    more = page.locator(".card .second").get_by_role("button", name="Read on")
    while not fold.evaluate(IN_SIGHT):
        more.click()
        page.evaluate(FRAME)
    expect(page.locator(".card .second")).to_contain_text("There is more of it below.")
    fold.evaluate("button => button.click()")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".card .word")).to_have_count(0)
    read_to_end(page)
    page.locator(".card .word").press_sequentially("allow")
    page.locator(".card .actions .primary").click()
    assert call.result(PATIENCE_SECONDS).success


OLD = "".join(f"old {number}\n" for number in range(1, 201))
NEW = "".join(f"new {number}\n" for number in range(1, 201))
# What has a scroll bar of its own, or would have one.
INNER_SCROLLERS = """card => {
  const inside = (root) => [...(root?.querySelectorAll("*") ?? [])];
  const all = inside(card).flatMap((each) => [each, ...inside(each.shadowRoot)]);
  const scrolls = (each) => each.matches("textarea") || /auto|scroll/.test(getComputedStyle(each).overflowY);
  return all.filter((each) => scrolls(each) && each.scrollHeight > each.clientHeight + 1).map((each) => each.className);
}"""


def read_anew(page: Any) -> None:
    """It cannot be allowed, nor by going to its end; its own words lead through all of it."""
    page.evaluate(FRAME)
    expect(page.locator(".card .second")).to_contain_text(re.compile("There is more of it|You went past a part"))
    expect(page.locator(".card .actions .primary")).to_have_attribute("aria-disabled", "true")
    page.evaluate(TO_THE_END)
    expect(page.locator(".card .second")).to_contain_text("You went past a part of it.")
    assert page.locator(".card").evaluate(INNER_SCROLLERS) == []
    read_to_end(page)


@requirement("TOOL-46")
def test_a_change_side_by_side_is_another_text_to_read_and_so_is_the_one_gone_back_to(house: House, windows: Any):
    """Two columns in a low box would be all of the card, and the long form after them was never looked at."""
    (house.folder / "a.txt").write_text(OLD)
    page = windows(house.key(), viewport={"width": 1300, "height": 800})
    call = house.call("write_file", path="a.txt", text=NEW)
    page.wait_for_selector(ARMED)
    allow = page.locator(".card .actions .primary")
    page.get_by_role("button", name="Side by side").click()
    expect(page.locator(".card .diff").get_by_text("new 1", exact=True)).to_be_visible()
    read_anew(page)
    expect(allow).to_have_attribute("aria-disabled", "false")
    assert page.locator(".card .diff").get_by_text("new 200", exact=True).evaluate(IN_SIGHT)
    page.get_by_role("button", name="Inline").evaluate("button => button.click()")
    expect(page.locator(".card .lines")).to_be_visible()
    read_anew(page)
    page.get_by_role("button", name="Side by side").evaluate("button => button.click()")
    expect(page.locator(".card .cm-mergeView")).to_be_visible()
    read_anew(page)
    allow.click()
    assert call.result(PATIENCE_SECONDS).success
    assert (house.folder / "a.txt").read_text() == NEW


@requirement("TOOL-46")
@either_size
def test_a_text_that_is_opened_to_be_edited_is_read_in_its_field(house: House, windows: Any, size: Any):
    """What was asked for stands in the field until somebody changes it, and again once they take that back."""
    (house.folder / "a.txt").write_text(OLD)
    page = windows(house.key(), viewport=size)
    call = house.call("write_file", path="a.txt", text=NEW)
    page.wait_for_selector(ARMED)
    allow = page.locator(".card .actions .primary")
    page.get_by_role("button", name="Edit the text").click()
    field = page.get_by_role("textbox", name="Proposed text of a.txt, editable")
    expect(field).to_be_visible()
    read_anew(page)
    expect(allow).to_have_attribute("aria-disabled", "false")
    field.press("Control+a")
    field.press("Delete")
    page.keyboard.type("short")
    expect(allow).to_contain_text("(edited)")
    page.get_by_role("button", name="Take my changes back").evaluate("button => button.click()")
    expect(field).to_have_count(0)
    read_anew(page)
    allow.click()
    assert call.result(PATIENCE_SECONDS).success
    assert (house.folder / "a.txt").read_text() == NEW


@requirement("TOOL-46", "TOOL-55")
@either_size
def test_arguments_in_fields_are_read_there_and_again_when_somebody_is_done(house: House, windows: Any, size: Any):
    """A letter in a low field would have been passed by, and stay so when it is shown whole again."""

    @house.session.registry.tool(require_approval=True, effect="irreversible")
    def send(to: str, text: str, after: str) -> str:
        """Sends a letter."""
        house.effects.append(text)
        return "Sent."

    page = windows(house.key(), viewport=size)
    call = house.call("send", to="Ada", text=LETTER, after="nothing")
    page.wait_for_selector(ARMED)
    read_to_end(page)
    page.locator(".card .second").get_by_role("button", name="open it").click()
    page.get_by_role("button", name="Edit arguments").click()
    field = page.get_by_role("textbox", name="text", exact=True)
    expect(field).to_be_visible()
    read_anew(page)
    expect(page.locator(".card .word")).to_be_visible()
    field.fill("short")
    expect(page.locator(".card .actions .primary")).to_contain_text("(edited)")
    page.get_by_role("button", name="as it was").click()
    expect(field).to_have_value(LETTER)
    read_anew(page)
    page.get_by_role("button", name="Done editing").click()
    expect(field).to_have_count(0)
    read_anew(page)
    page.locator(".card .word").press_sequentially("allow")
    page.locator(".card .actions .primary").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [LETTER]


@requirement("TOOL-46")
def test_a_value_as_it_travels_is_read_like_the_one_that_people_read(house: House, windows: Any):
    """Exactly, it has as many lines as before or more, and others. Back again, the first were never read."""

    @house.session.registry.tool(require_approval=True, effect="reversible")
    def store(table: dict[str, Any]) -> str:
        """Keeps a table."""
        return "Kept."

    page = windows(house.key(), viewport={"width": 390, "height": 600})
    call = house.call("store", table={f"name {number}": f"value {number}" for number in range(40)})
    page.wait_for_selector(ARMED)
    read_to_end(page)
    fold = page.locator(".card .fold")
    if fold.count():
        fold.click()
    exactly = page.get_by_role("button", name="table exactly, as JSON")
    for _ in range(2):
        exactly.evaluate("button => button.click()")
        read_anew(page)
    page.locator(".card .actions .primary").click()
    assert call.result(PATIENCE_SECONDS).success
