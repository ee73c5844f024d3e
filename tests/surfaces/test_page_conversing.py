"""Conversations in Debian's Chromium: begin, find, rename, delete, go back, retry, and come back after a kill."""

from functools import partial

import pytest
from playwright.sync_api import Page, Route, expect

from surfaces.conftest import Houses
from surfaces.test_page_conversations import Listening
from surfaces.windows import Up


@pytest.fixture
def houses(houses: Houses) -> Houses:
    """Their models remember what they were sent."""
    return partial(houses, scripted=Listening)


def say(page: Page, words: str) -> None:
    page.get_by_label("Message to the assistant").fill(words)
    page.keyboard.press("Enter")


def answer(page: Page, words: str) -> None:
    expect(page.locator(".message.assistant").last).to_contain_text(words)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


@pytest.mark.parametrize("width", [1200, 390])
def test_conversations_are_found_renamed_deleted_and_opened_with_the_keyboard(houses, windows, width):
    """All of it without a mouse, and on the screen of a phone."""
    page = windows(houses("Hello Ann.", "Hello Bob.").key(), viewport={"width": width, "height": 844})
    say(page, "I am Ann")
    answer(page, "Hello Ann.")
    page.get_by_role("button", name="New conversation").press("Enter")
    expect(page.locator(".message")).to_have_count(0)
    say(page, "I am Bob")
    answer(page, "Hello Bob.")
    page.get_by_role("button", name="Conversations", exact=True).press("Enter")
    expect(page.get_by_label("Search conversations")).to_be_focused()
    expect(page.locator(".shelf li")).to_have_count(2)
    page.keyboard.type("hello ann")
    expect(page.locator(".shelf li")).to_have_count(1)
    page.get_by_role("button", name="Rename I am Ann").press("Enter")
    page.get_by_label("Title").fill("<b>Ann</b>\u202e")
    page.keyboard.press("Enter")
    expect(page.locator(".shelf .title")).to_contain_text("<b>Ann</b>‹U+202E›")
    page.locator(".shelf .title").press("Enter")
    expect(page.locator(".message.you")).to_contain_text("I am Ann")
    page.get_by_role("button", name="Conversations", exact=True).press("Enter")
    page.get_by_role("button", name="Delete I am Bob").press("Enter")
    expect(page.locator(".shelf .deleting")).to_contain_text("forgotten for good")
    page.locator(".shelf .deleting").get_by_role("button", name="Delete").press("Enter")
    expect(page.locator(".shelf li")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_list_of_conversations_is_gone_as_soon_as_another_one_is_shown(houses, windows):
    """Not a frame later: the list would take for itself the press that is meant to open it again."""
    page = windows(houses("Hello Ann.", "Hello Bob.").key())
    say(page, "I am Ann")
    answer(page, "Hello Ann.")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".message")).to_have_count(0)
    say(page, "I am Bob")
    answer(page, "Hello Bob.")
    page.evaluate("""window.seen = []; new MutationObserver(() => {
        const said = document.querySelector(".message.you")?.innerText;
        window.seen.push([said, document.querySelectorAll(".shelf").length]);
    }).observe(document.body, {childList: true, subtree: true, characterData: true})""")
    page.get_by_role("button", name="Conversations", exact=True).click()
    page.locator(".shelf .title", has_text="I am Ann").click()
    expect(page.locator(".message.you")).to_contain_text("I am Ann")
    expect(page.locator(".shelf")).to_have_count(0)
    seen = page.evaluate("window.seen")
    assert [lists for said, lists in seen if "Bob" in (said or "")].count(1)
    assert {lists for said, lists in seen if "Ann" in (said or "")} == {0}


def test_a_message_is_edited_and_the_conversation_goes_on_from_there(houses, windows):
    """What was meant is said where it was meant, and every window shows the same."""
    house = houses("First answer.", "Second answer.")
    page, other = windows(house.key()), windows(house.key())
    say(page, "Frist question")
    answer(page, "First answer.")
    page.locator(".message.you").get_by_role("button", name="Edit").click()
    page.get_by_label("Your message").fill("First question")
    page.locator(".editing").get_by_role("button", name="Send").click()
    for window in (page, other):
        expect(window.locator(".message.assistant .prose")).to_have_text("Second answer.")
        expect(window.locator(".message.you")).to_contain_text("First question")


def test_whoever_writes_before_the_first_picture_is_there_is_not_refused(houses, windows):
    """The window is told its token with the picture. A person who is faster need not read about tokens."""
    page = windows(houses("Here I am.").key())
    held: list[Route] = []
    page.route("**/page/events", lambda route: held.append(route))
    with page.expect_request("**/page/events"):
        page.reload()
    say(page, "Are you there?")
    held[0].continue_()
    answer(page, "Here I am.")


def test_a_failing_model_has_a_retry(houses, windows):
    """The words are there already; one press sends them again, and the failure goes."""
    page = windows(houses(None, "Now it works.").key())
    say(page, "Please")
    expect(page.locator(".message.failed")).to_contain_text("no room left")
    page.get_by_role("button", name="Retry").click()
    answer(page, "Now it works.")
    expect(page.locator(".message.failed")).to_have_count(0)
    expect(page.locator(".message.you")).to_have_count(1)


def test_a_conversation_comes_back_after_its_server_was_killed(tmp_path, windows):
    """`kill -9`, and the next `up` in this folder opens on what was said; the one before is still in the list."""
    up = Up(tmp_path)
    page = windows(up.key)
    page.locator(".card[data-armed=true]").get_by_role("button", name="Write note").click()
    expect(page.locator(".message.assistant").last).to_contain_text("2 of 3")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".call")).to_have_count(0)
    say(page, "tour")
    answer(page, "Rehearsal model")
    up.kill()
    again = Up(tmp_path)
    try:
        page = windows(again.key)
        expect(page.locator(".message.you")).to_contain_text("tour")
        page.get_by_role("button", name="Conversations", exact=True).click()
        expect(page.locator(".shelf li")).to_have_count(2)
        page.locator(".shelf .title:not([aria-current])").click()
        expect(page.locator(".call.good")).to_contain_text("Wrote a line to note.md.")
    finally:
        again.stop()
