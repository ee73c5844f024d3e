"""The second step of a card in Debian's Chromium: how it is read, what grants, what never does, and how it looks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lastword.rules.grants import standing_grants
from lastword.rules.policy import Policy, PolicyFile
from requirements import requirement
from surfaces.test_page_arming import Hand
from surfaces.test_page_grants import RULES
from surfaces.test_page_pictures import AXE, PICTURES, SIZES, Clock, browser, compare, picture_of, window_of
from surfaces.windows import CHROMIUM, PATIENCE_SECONDS, House, settled

__all__ = ["browser"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed; the last lines of ./test say so")

expect.set_options(timeout=PATIENCE_SECONDS * 1000)

LINK = "Don't ask again…"
STEP = ".granting"
ARMED_STEP = ".granting[data-armed=true]"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, id="pictures", clock=Clock()).open()

    @house.session.registry.tool(auto_approve=True, effect="reversible", icon="creditcard", display_name="Pay")
    def pay(to: str, amount: float, note: str = "") -> str:
        """Pays somebody from the lunch account."""
        house.effects.append(("pay", to, amount, note))
        return "Paid."

    yield house
    house.close()


def grants(house: House) -> list[Any]:
    found: list[Any] = house.do(standing_grants(house.session.journal))
    return found


def open_step(page: Page) -> None:
    page.get_by_role("button", name=LINK).click()
    expect(page.locator(f"{STEP} .agree")).to_be_visible()


@requirement("GRANT-1")
def test_a_person_loosens_reads_types_and_presses_and_is_not_asked_again(house, windows):
    """The whole way, as a person goes it."""
    page = windows(house.key())
    call = house.call("pay", to="Ada", amount=12.5, note="tea")
    open_step(page)
    page.get_by_label("at most 12.5").check()
    expect(page.locator(".agree .sentence")).to_contain_text("amount at most 12.5")
    page.locator(".limit input").first.fill("3")
    expect(page.locator(".agree .sentence")).to_contain_text("ends after 3 calls")
    settled(page, ARMED_STEP)
    page.locator(f"{STEP} .word").press_sequentially("grant")
    page.locator(STEP).get_by_role("button", name="Allow, and don't ask again").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.call("pay", to="Ada", amount=3, note="tea").result(PATIENCE_SECONDS).success
    assert [(grant.calls, grant.where["amount"]) for grant in grants(house)] == [(3, {"min": 0, "max": 12.5})]


@requirement("GRANT-1")
def test_escape_and_back_lead_to_the_card_with_nothing_done(house, windows):
    """Whoever only wanted to see what it would mean has answered nothing."""
    page = windows(house.key())
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    page.keyboard.press("Escape")
    expect(page.locator(STEP)).to_have_count(0)
    open_step(page)
    page.get_by_role("button", name="Back to the card").click()
    expect(page.locator(STEP)).to_have_count(0)
    assert (call.done(), house.effects, grants(house)) == (False, [], [])
    settled(page, ".card[data-armed=true]")
    page.locator(".card .no").click()
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("GRANT-1")
@pytest.mark.parametrize("what", ["clicks", "word", "paste", "enter", "press alone"])
def test_what_was_begun_before_the_step_or_is_one_act_grants_nothing(house, windows, what):
    """Clicks that go on, a word typed at nothing, a paste into the field, Enter, a press without a word."""
    page = windows(house.key())
    hand = Hand(page, house)
    call = house.call("pay", to="Ada", amount=12.5)
    page.wait_for_selector(".card")
    page.get_by_role("button", name=LINK).click()
    hand.wait(100)  # Nothing is drawn while the clock stands still.
    expect(page.locator(f"{STEP} .agree")).to_be_visible()
    if what == "clicks":
        for _ in range(10):
            hand.click(f"{STEP} .actions .primary")
            hand.wait(333)
    if what == "word":
        for _ in range(3):
            page.keyboard.type("grant\n")
            hand.wait(400)
    hand.settle(ARMED_STEP)
    if what == "paste":
        page.evaluate("navigator.clipboard?.writeText('grant').catch(() => 0)")
        page.locator(f"{STEP} .word").focus()
        page.locator(f"{STEP} .word").dispatch_event("paste")
        page.keyboard.press("Control+V")
        hand.click(f"{STEP} .actions .primary")
    if what == "enter":
        page.locator(f"{STEP} .word").press_sequentially("grant")
        page.keyboard.press("Enter")
        page.locator(f"{STEP} .actions .primary").press("Enter")
    if what == "press alone":
        hand.click(f"{STEP} .actions .primary")
    hand.wait(1000)
    assert (call.done(), house.effects, grants(house)) == (False, [], [])
    call.cancel()


@requirement("GRANT-1")
def test_a_bound_that_is_changed_takes_the_word_back(house, windows):
    """What was typed was for the sentence that stood there."""
    page = windows(house.key())
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    settled(page, ARMED_STEP)
    page.locator(f"{STEP} .word").press_sequentially("grant")
    page.get_by_label("at most 12.5").check()
    expect(page.locator(".agree .sentence")).to_contain_text("amount at most 12.5")
    expect(page.locator(f"{STEP} .word")).to_have_value("")
    settled(page, ARMED_STEP)
    page.locator(STEP).get_by_role("button", name="Allow, and don't ask again").click(force=True)
    assert (call.done(), grants(house)) == (False, [])
    call.cancel()


@requirement("GRANT-2")
def test_a_card_without_a_second_step_says_why(house, windows):
    """A person who looks for it finds the reason in its place."""
    page = windows(house.key())
    call = house.call("post_letter", to="Ann")
    expect(page.get_by_text("This tool must be asked about each time.")).to_be_visible()
    expect(page.get_by_role("button", name=LINK)).to_have_count(0)
    call.cancel()


@requirement("GRANT-5")
def test_a_grant_is_taken_back_in_the_settings(house, browser):
    """Where the step said that it can be; and the next call asks again."""
    page = window_of(browser, house)
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    settled(page, ARMED_STEP)
    page.locator(f"{STEP} .word").press_sequentially("grant")
    page.locator(STEP).get_by_role("button", name="Allow, and don't ask again").click()
    assert call.result(PATIENCE_SECONDS).success
    page.get_by_role("link", name="Settings").click()
    expect(page.locator(".grants li")).to_contain_text("pay, to “Ada”, amount 12.5, note empty; in this session")
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("You have granted nothing.")).to_be_visible()
    assert grants(house) == []
    again = house.call("pay", to="Ada", amount=12.5)
    house.waiting(1)
    again.cancel()
    page.context.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_second_step_looks_as_it_was_agreed(browser, house, size):
    """Light and dark, wide and phone; and a screen reader finds nothing wrong with it."""
    page = window_of(browser, house, color_scheme="light", **SIZES[size])
    calls = [house.call("pay", to="Ada", amount=amount, note="tea") for amount in (12.5, 4)]
    house.waiting(2)
    expect(page.locator(".card")).to_have_count(2)
    page.get_by_role("button", name=LINK).first.click()
    page.get_by_label("at most 12.5").check()
    expect(page.locator(".agree .sentence")).to_contain_text("amount at most 12.5")
    page.locator(STEP).evaluate("step => step.scrollIntoView({block: 'start'})")
    settled(page, ARMED_STEP)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        compare(PICTURES / f"granting-{theme}-{size}.png", picture_of(page))
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run('.granting', {resultTypes: ['violations']})")
    assert [(problem["id"], problem["nodes"][0]["html"]) for problem in found["violations"]] == []
    page.context.close()
    for call in calls:
        call.cancel()


@requirement("RULE-7")
@pytest.mark.parametrize("size", SIZES)
def test_grants_rules_and_what_decides_look_as_they_were_agreed(browser, house, tmp_path, size):
    """A person asks what decides about a call, and reads it beside the rules with their file and layer."""
    policy = Policy.vouched(RULES, house.session.registry)
    files = [PolicyFile(Path("policy.toml"), "user", "", True)]
    house.session.policy = Policy(policy.rules, lambda rule, tool: None, files)
    page = window_of(browser, house, color_scheme="light", **SIZES[size])
    call = house.call("pay", to="Bo", amount=12.5, note="tea")
    open_step(page)
    settled(page, ARMED_STEP)
    page.locator(f"{STEP} .word").press_sequentially("grant")
    page.locator(STEP).get_by_role("button", name="Allow, and don't ask again").click()
    assert call.result(PATIENCE_SECONDS).success
    page.get_by_role("link", name="Settings").click()
    page.locator(".explaining select").select_option("pay", timeout=15_000)
    page.locator(".explaining").get_by_label("to", exact=True).fill("Ada")
    page.locator(".explaining").get_by_label("amount", exact=True).fill("25")
    page.get_by_role("button", name="Say what decides").click()
    expect(page.locator(".told")).to_have_text(
        "You would be asked. Nearest: small lunches (policy.toml:2): amount 25 is more than 20."
    )
    page.locator(".grants").evaluate("part => part.scrollIntoView({block: 'start'})")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        compare(PICTURES / f"rules-{theme}-{size}.png", picture_of(page))
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run('.grants', {resultTypes: ['violations']})")
    assert [(problem["id"], problem["nodes"][0]["html"]) for problem in found["violations"]] == []
    page.locator(".explaining").get_by_label("to", exact=True).fill("Mallory")
    expect(page.locator(".told")).to_have_count(0)
    page.get_by_role("button", name="Say what decides").click()
    expect(page.locator(".told")).to_contain_text("It would not happen, and nobody would be asked. never Mallory")
    assert house.effects == [("pay", "Bo", 12.5, "tea")]
    page.context.close()
