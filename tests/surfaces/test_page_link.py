"""Whether the server answers, and what a window says of it: one thing in all its places, and never two at once."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from surfaces.conftest import Houses
from surfaces.windows import ARMED, House, Scripted, deny


@pytest.fixture
def house(houses: Houses) -> House:
    return houses(model=Scripted("Heard."))


def cut_off(page: Page, path: str) -> Callable[[], None]:
    """Let requests to this path get no answer, and none of those that look whether there is one; until it is called."""
    cut = [path, "/page/state"]

    def fail(route: Route) -> None:
        if any(route.request.url.endswith(each) for each in cut):
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/page/*", fail)
    return cut.clear


def live(page: Page) -> Any:
    return page.locator(".link-state")


def test_a_message_that_got_no_answer_is_not_called_lost_beside_a_live_link(page):
    """One request can fail while the stream of events goes on: red words about a server that answers are a lie."""
    expect(live(page)).to_have_text("live")
    back = cut_off(page, "/page/say")
    page.get_by_label("Message to the assistant").fill("Good morning")
    page.get_by_role("button", name="Send").click()
    alert = page.locator(".composer [role=alert]")
    expect(alert).to_contain_text("lastword does not answer")
    expect(live(page)).to_have_text("reconnecting…")
    back()
    expect(live(page)).to_have_text("live")
    expect(alert).to_have_count(0)
    # What was typed is still there, and what is known is said: a request may arrive whose answer does not.
    expect(page.get_by_label("Message to the assistant")).to_have_value("Good morning")
    expect(page.locator(".composer")).to_contain_text("lastword answers again")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".message.assistant")).to_contain_text("Heard.")
    expect(page.locator(".composer")).not_to_contain_text("lastword answers again")


def test_an_answer_to_a_card_that_got_no_answer_can_be_given_again(house, page):
    """The card stays, says what is known, and takes the answer once the server is back."""
    call = house.call("sign_in", user="ann", password="x")
    card = page.locator(ARMED)
    expect(card).to_have_count(1)
    back = cut_off(page, "/page/answer")
    card.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".card [role=alert]")).to_contain_text("lastword does not answer")
    expect(live(page)).to_have_text("reconnecting…")
    back()
    expect(live(page)).to_have_text("live")
    expect(page.locator(".card [role=alert]")).to_have_count(0)
    expect(page.locator(".card")).to_contain_text("lastword answers again")
    deny(page, call)


@pytest.mark.parametrize(
    ("view", "press", "path"),
    [
        ("Chat", "New conversation", "/page/new"),
        ("Settings", "Make an address", "/page/key"),
        ("Settings", "trusting", "/page/preset"),
    ],
)
def test_no_view_goes_on_saying_that_nobody_answers(page, view, press, path):
    """Every place that asks something of the server is told when it is back, and not the composer alone."""
    page.get_by_role("link", name=view).click()
    back = cut_off(page, path)
    (page.get_by_role("button", name=press).or_(page.get_by_role("radio", name=press))).first.click()
    alert = page.locator("main [role=alert]")
    expect(alert).to_contain_text("lastword does not answer")
    expect(live(page)).to_have_text("reconnecting…")
    back()
    expect(live(page)).to_have_text("live")
    expect(alert).to_have_count(0)
