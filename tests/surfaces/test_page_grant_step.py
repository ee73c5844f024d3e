"""The second step of a card in Debian's Chromium: how it is read, what grants, what never does, and how it looks."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from lastword.rules import Grants, Policy
from lastword.rules.policy import PolicyFile
from requirements import requirement
from surfaces.conftest import Houses
from surfaces.test_page_arming import Hand
from surfaces.test_page_grants import RULES
from surfaces.test_page_pictures import SIZES, Clock, compare_in_both, found_by_axe, window_of
from surfaces.windows import PATIENCE_SECONDS, House, read_to_end, settled

LINK = "Don't ask again…"
STEP = ".granting"
ARMED_STEP = ".granting[data-armed=true]"


@pytest.fixture
def house(houses: Houses) -> House:
    house = houses(id="pictures", clock=Clock())

    @house.session.registry.tool(auto_approve=True, effect="reversible", icon="creditcard", display_name="Pay")
    def pay(to: str, amount: float, note: str = "") -> str:
        """Pays somebody from the lunch account."""
        house.effects.append(("pay", to, amount, note))
        return "Paid."

    return house


def grants(house: House) -> list[Any]:
    found: list[Any] = house.do(Grants(house.session.journal).standing())
    return found


def agree(page: Page) -> Locator:
    """The button that grants."""
    return page.locator(STEP).get_by_role("button", name="Allow, and don't ask again")


def type_word(page: Page) -> None:
    settled(page, ARMED_STEP)
    page.locator(f"{STEP} .word").press_sequentially("grant")


def open_step(page: Page) -> None:
    page.get_by_role("button", name=LINK).click()
    expect(page.locator(f"{STEP} .agree")).to_be_visible()


@requirement("GRANT-1")
def test_a_person_loosens_reads_types_and_presses_and_is_not_asked_again(house, page):
    """The whole way, as a person goes it."""
    call = house.call("pay", to="Ada", amount=12.5, note="tea")
    open_step(page)
    page.get_by_label("at most 12.5").check()
    expect(page.locator(".agree .sentence")).to_contain_text("amount at most 12.5")
    page.locator(".limit input").first.fill("3")
    expect(page.locator(".agree .sentence")).to_contain_text("ends after 3 calls")
    type_word(page)
    agree(page).click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.call("pay", to="Ada", amount=3, note="tea").result(PATIENCE_SECONDS).success
    assert [(grant.calls, grant.where["amount"]) for grant in grants(house)] == [(3, {"min": 0, "max": 12.5})]


@requirement("GRANT-1")
def test_escape_and_back_lead_to_the_card_with_nothing_done(house, page):
    """Whoever only wanted to see what it would mean has answered nothing."""
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    page.keyboard.press("Escape")
    expect(page.locator(STEP)).to_have_count(0)
    open_step(page)
    page.get_by_role("button", name="Back to the card").click()
    expect(page.locator(STEP)).to_have_count(0)
    assert (call.done(), house.effects, grants(house)) == (False, [], [])
    settled(page)
    page.locator(".card .no").click()
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("GRANT-1")
def test_a_second_click_on_back_does_not_answer_the_card(house, page):
    """The buttons of the card come back where those of the step were, and one press allows what can be undone."""
    hand = Hand(page, house)
    call = house.call("pay", to="Ada", amount=12.5)
    page.wait_for_selector(".card")
    page.get_by_role("button", name=LINK).click()
    hand.wait(100)
    hand.settle(ARMED_STEP)
    page.get_by_role("button", name="Back to the card").click()
    hand.wait(50)
    expect(page.locator(STEP)).to_have_count(0)
    hand.click(".card .actions .primary")
    hand.wait(1000)
    assert (call.done(), house.effects) == (False, [])
    call.cancel()


WAYS = ("clicks", "word", "early", "paste", "enter", "press alone", "script", "front", "shortcut")


@requirement("GRANT-1")
def test_what_was_begun_before_the_step_or_is_one_act_grants_nothing(house, page):
    """Clicks that go on, a word typed at nothing or too early, a paste, Enter, a press without a word; and with the
    word there: a press that no hand made, the click that brings the window to the front, the keys that allow a card."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/page/grant") else None)
    hand = Hand(page, house)
    for what in (*WAYS, "both acts"):
        hand.wait(3000)
        call = house.call("pay", to="Ada", amount=12.5)
        page.wait_for_selector(".card")
        page.get_by_role("button", name=LINK).click()
        hand.wait(100)  # Nothing is drawn while the clock stands still.
        expect(page.locator(f"{STEP} .agree")).to_be_visible()
        go(what, hand, page)
        hand.wait(1000)
        if what == "both acts":  # What the others lack is there now, so they were refused for it.
            assert call.result(PATIENCE_SECONDS).success
            return
        assert (call.done(), house.effects, grants(house), sent) == (False, [], [], []), what
        house.session.cancel(house.waiting()[0].call_id)
        assert call.result(PATIENCE_SECONDS).kind == "denied"
        expect(page.locator(".card")).to_have_count(0)


def go(what: str, hand: Hand, page: Page) -> None:
    """One of the ways in which nobody grants."""
    if what == "clicks":
        for _ in range(10):
            hand.click(f"{STEP} .actions .primary")
            hand.wait(333)
    if what == "word":
        for _ in range(3):
            page.keyboard.type("grant\n")
            hand.wait(400)
    if what == "early":
        page.locator(f"{STEP} .word").focus()
        page.keyboard.type("grant")
    hand.settle(ARMED_STEP)
    if what == "early":
        hand.click(f"{STEP} .actions .primary")
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
    if what in ("script", "front", "shortcut", "both acts"):
        page.locator(f"{STEP} .word").press_sequentially("grant")
        hand.wait(3000)
        expect(page.locator(f"{STEP} .primary")).to_have_attribute("aria-disabled", "false")
    if what == "both acts":
        hand.click(f"{STEP} .actions .primary")
    if what == "script":
        page.locator(f"{STEP} .actions .primary").evaluate("button => button.click()")
    if what == "front":
        page.evaluate("dispatchEvent(new Event('focus'))")
        hand.click(f"{STEP} .actions .primary")
    if what == "shortcut":
        page.locator(f"{STEP}").press("Control+Enter")
        page.locator(f"{STEP} .actions .primary").press("Control+Enter")


@requirement("GRANT-1")
def test_a_bound_that_is_changed_takes_the_word_back(house, page):
    """What was typed was for the sentence that stood there."""
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    type_word(page)
    page.get_by_label("at most 12.5").check()
    expect(page.locator(".agree .sentence")).to_contain_text("amount at most 12.5")
    expect(page.locator(f"{STEP} .word")).to_have_value("")
    settled(page, ARMED_STEP)
    agree(page).click(force=True)
    assert (call.done(), grants(house)) == (False, [])
    call.cancel()


@requirement("GRANT-1")
def test_while_a_choice_is_on_its_way_nothing_can_be_read_or_agreed_to(house, page):
    """What stands there was said of another choice; and an answer that was overtaken is not heard."""
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    type_word(page)
    held: list[Route] = []
    page.route("**/page/grant_step", lambda route: held.append(route))
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/page/grant") else None)
    page.get_by_label("at most 12.5").check()
    sentence = page.locator(".agree .sentence")
    expect(sentence).to_be_hidden()
    button = agree(page)
    button.click(force=True)
    page.locator(".limit input").first.fill("3")
    for _ in range(100):
        if len(held) == 2:
            break
        page.wait_for_timeout(20)
    first, second = held
    with page.expect_response("**/page/grant_step"):
        second.continue_()
    expect(page.locator(".agree .sentence")).to_contain_text(
        "amount at most 12.5, note empty; in this session; ends after 3"
    )
    with page.expect_response("**/page/grant_step"):
        first.continue_()
    settled(page, ARMED_STEP)
    expect(page.locator(".agree .sentence")).to_contain_text("ends after 3 calls")
    button.click(force=True)
    assert (call.done(), grants(house), sent) == (False, [], [])
    call.cancel()


@requirement("GRANT-1")
def test_the_second_step_is_told_to_whoever_has_it_read_to_them(house, page):
    """What changes is in a region that was there before; each choice has a name, and belongs to an argument."""
    call = house.call("pay", to="Ada", amount=12.5)
    held: list[Route] = []
    page.route("**/page/grant_step", lambda route: held.append(route), times=1)
    page.get_by_role("button", name=LINK).click()
    expect(page.get_by_role("region", name="Allow, and don't ask again")).to_be_focused()
    live = page.locator(f"{STEP} [aria-live=polite]")
    expect(live).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect(live.locator(".sentence")).to_contain_text("pay, to “Ada”")
    expect(live).to_have_attribute("aria-busy", "false")
    amount = page.get_by_role("radiogroup", name="amount")
    expect(amount.get_by_role("radio", name="exactly 12.5")).to_be_checked()
    amount.get_by_role("radio", name="exactly 12.5").press("ArrowDown")
    expect(live.locator(".sentence")).to_contain_text("amount at most 12.5")
    expect(page.get_by_role("radiogroup", name="how long").get_by_role("radio", name="in this session")).to_be_checked()
    calls = page.get_by_role("textbox", name="ends after so many calls")
    calls.fill("none")
    expect(live).to_have_text("The number of calls is a whole number above 0.")
    expect(calls).to_have_attribute("aria-invalid", "true")
    agree(page).click(force=True)
    assert (call.done(), grants(house)) == (False, [])
    call.cancel()


@requirement("GRANT-1")
def test_a_part_that_stayed_folded_is_opened_before_the_word(house, page):
    """The sentence has the beginning of a long text. There is nowhere to type before the rest of it was there."""
    call = house.call("pay", to="Ada", amount=12.5, note="a long story " * 400)
    open_step(page)
    button = agree(page)
    expect(page.locator(STEP)).to_contain_text("A part of this card is folded. Before you can grant it, open it.")
    expect(page.locator(f"{STEP} .word")).to_have_count(0)
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    page.locator(STEP).get_by_role("button", name="open it").click()
    expect(page.locator(STEP)).to_have_count(0)
    expect(page.locator(".card .second")).to_contain_text("There is more of it below.")
    page.get_by_role("button", name=LINK).click()  # It reads on, like any press, and opens nothing.
    expect(page.locator(STEP)).to_have_count(0)
    read_to_end(page)
    open_step(page)
    type_word(page)
    assert (call.done(), grants(house)) == (False, [])
    button.click()
    assert call.result(PATIENCE_SECONDS).success
    assert [grant.where["note"] for grant in grants(house)] == [{"is": "a long story " * 400}]


@requirement("GRANT-1", "TOOL-46")
def test_a_part_that_is_opened_while_the_step_stands_there_is_read_to_its_end_first(house, windows):
    """It stands above the step, and whoever opens it there may be past it at once."""
    page = windows(house.key(), viewport={"width": 390, "height": 700})
    call = house.call("pay", to="Ada", amount=12.5, note="a long story " * 400)
    read_to_end(page)
    open_step(page)
    page.locator(".card .fold").click()
    words = "You have not seen all of this card. Before you can grant it, go back to it."
    expect(page.locator(STEP)).to_contain_text(words)
    expect(page.locator(f"{STEP} .word")).to_have_count(0)
    button = agree(page)
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    assert (call.done(), grants(house)) == (False, [])
    page.get_by_role("button", name="go back to it").click()
    read_to_end(page)
    open_step(page)
    type_word(page)
    button.click()
    assert call.result(PATIENCE_SECONDS).success
    assert len(grants(house)) == 1


@requirement("GRANT-1")
def test_a_call_that_is_being_changed_has_no_second_step(house, page):
    """Its bounds are those of the call that was asked for, and a person who writes another reads that one."""
    call = house.call("pay", to="Ada", amount=12.5)
    page.get_by_role("button", name="Edit arguments").click()
    page.locator(".card").get_by_label("amount").fill("500")
    expect(page.get_by_role("button", name=LINK)).to_have_count(0)
    call.cancel()


@requirement("GRANT-1")
def test_how_long_it_holds_is_shown_as_chosen_where_there_is_no_choice(house, windows):
    """The call of an agent: nobody learns when its session ends, so the card offers tonight alone, and shows that."""
    registry = house.session.registry
    tool = registry.lookup("pay")
    registry.unregister("pay")
    registry.add(dataclasses.replace(tool, carried_out_by="an agent"))
    page = windows(house.key())
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    expect(page.get_by_role("radiogroup", name="how long").get_by_role("radio")).to_have_count(1)
    expect(page.get_by_role("radio", name="in all your sessions until tonight")).to_be_checked()
    expect(page.locator(".agree .sentence")).to_contain_text("; in all your sessions until ")
    call.cancel()


@requirement("GRANT-2")
def test_a_card_without_a_second_step_says_why(house, page):
    """A person who looks for it finds the reason in its place."""
    call = house.call("post_letter", to="Ann")
    expect(page.get_by_text("This tool must be asked about each time.")).to_be_visible()
    expect(page.get_by_role("button", name=LINK)).to_have_count(0)
    call.cancel()


@requirement("GRANT-7")
def test_the_timeline_and_the_conversation_say_which_rule_denied_a_call(house, windows):
    """A bare "not allowed" leaves whoever reads it to guess who said so."""
    house.session.policy = Policy.vouched(RULES, house.session.registry)
    page = windows(house.key())
    assert house.call("pay", to="Mallory", amount=5).result(PATIENCE_SECONDS).kind == "denied"
    expect(page.locator(".call .line")).to_contain_text("denied by the rule never Mallory (policy.toml:15)")
    page.get_by_role("link", name="Timeline").click()
    expect(page.locator(".bars .took")).to_have_text("denied by the rule never Mallory (policy.toml:15)")
    page.get_by_label("Show").select_option("Answered by a person")
    expect(page.locator(".bars details")).to_have_count(0)
    page.get_by_label("Show").select_option("You were not asked")
    expect(page.locator(".bars details")).to_have_count(1)


@requirement("GRANT-5")
def test_a_grant_is_taken_back_in_the_settings(house, browser):
    """Where the step said that it can be; and the next call asks again."""
    page = window_of(browser, house)
    call = house.call("pay", to="Ada", amount=12.5)
    open_step(page)
    type_word(page)
    agree(page).click()
    assert call.result(PATIENCE_SECONDS).success
    page.get_by_role("link", name="Settings").click()
    expect(page.locator(".grants li")).to_contain_text("pay, to “Ada”, amount 12.5, note empty; in this session")
    button = page.get_by_role("button", name="Take it back")
    expect(button).to_have_accessible_description("pay, to “Ada”, amount 12.5, note empty; in this session")
    button.press("Enter")
    expect(page.get_by_text("You have granted nothing.")).to_be_visible()
    # Whoever has the screen read to them, or uses no pointer, is told so and stays where they were.
    expect(page.locator(".grants").get_by_role("status").first).to_contain_text("Taken back: pay, to “Ada”")
    expect(page.get_by_role("heading", name="What you allowed from cards")).to_be_focused()
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
    compare_in_both(page, "granting", size)
    assert found_by_axe(page, "'.granting'") == []
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
    type_word(page)
    agree(page).click()
    assert call.result(PATIENCE_SECONDS).success
    page.get_by_role("link", name="Settings").click()
    page.locator(".explaining select").select_option("pay", timeout=15_000)
    page.locator(".explaining").get_by_label("to", exact=True).fill("Ada")
    page.locator(".explaining").get_by_label("amount", exact=True).fill("25")
    page.get_by_role("button", name="Say what decides").click()
    expect(page.locator(".told")).to_have_text(
        "You would be asked. The rule that comes nearest is small lunches (policy.toml:2): amount 25 is more than 20."
    )
    # A wide window has nearly all of it, with the answer at its end; a phone has the beginning.
    where = "end" if size == "wide" else "start"
    page.locator(".grants").evaluate(f"part => part.scrollIntoView({{block: '{where}'}})")
    compare_in_both(page, "rules", size)
    assert found_by_axe(page, "'.grants'") == []
    page.locator(".explaining").get_by_label("to", exact=True).fill("Mallory")
    expect(page.locator(".told")).to_have_count(0)
    page.get_by_role("button", name="Say what decides").click()
    expect(page.locator(".told")).to_have_text(
        "It would not happen, and nobody would be asked. The rule never Mallory (policy.toml:15) denies it."
    )
    assert house.effects == [("pay", "Bo", 12.5, "tea")]
    page.context.close()
