"""Presses that were not meant for a card, in Debian's Chromium: clicks, keys and pastes that began before it.

The browser's clock stands still and is moved by hand, so that three clicks a second are three clicks a second however
busy the machine is.
"""

import random
import time
import zlib
from concurrent.futures import Future
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from lastword import Image
from lastword.consent import Outcome
from requirements import requirement
from surfaces.windows import ARMED, FRAME, PATIENCE_SECONDS, House

# How long a card waits after a press that came too early.
PRESSED_MILLISECONDS = 1200

KEYS = ("a", "y", "Enter", "Space", "Tab", "Shift+Tab", "Control+Enter", "Control+Backspace", "Escape", "Backspace")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "add_up": {"numbers": [1], "factor": 1, "rounded": True},
    "publish": {"version": "1.4.0", "index": "https://test.example"},
    "post_letter": {"to": "Ann"},
}
PASTES = ("allow", "yes\n", "a", "allow\nallow\nallow")


class Hand:
    """A window whose time stands still but for what the hand does in it."""

    def __init__(self, page: Page, house: House) -> None:
        self.page = page
        self.house = house
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.clock.pause_at("2100-01-01")

    def wait(self, milliseconds: int) -> None:
        self.page.clock.run_for(milliseconds)

    def settle(self, armed: str) -> None:
        """Keep still until this can be answered: frames and answers take their own time, whatever the clock says."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.wait(PRESSED_MILLISECONDS + 100)
            self.page.evaluate(FRAME)
            if self.page.locator(armed).count():
                return
            assert time.monotonic() < deadline, "it never took an answer"

    def ask(self, tool: str) -> "Future[Outcome]":
        """Let a card appear, and give it no time at all."""
        call = self.house.call(tool, **ARGUMENTS[tool])
        self.return_to_chat()
        self.page.wait_for_selector(".card")
        return call

    def return_to_chat(self) -> None:
        """Tab and Enter may have led to another view, as they do; the card is in the chat."""
        if "#" in self.page.url:
            self.page.get_by_text("Chat", exact=True).click()

    def click(self, where: str) -> None:
        """Press the pointer where this is, or where it will be, in the middle of the window."""
        found = self.page.locator(where).first
        box = found.bounding_box() if found.count() else None
        x, y = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) if box else (600, 450)
        self.page.mouse.click(x, y)

    def paste(self, text: str) -> None:
        """Where something takes the text, as a phone or a voice gives it; elsewhere all that comes is the key."""
        if not self.page.locator("input:focus, textarea:focus, [contenteditable=true]:focus").count():
            self.page.keyboard.press("Control")
        self.page.keyboard.insert_text(text)

    def press(self, draw: random.Random) -> str:
        """Something that a hand does which is busy with something else."""
        kind = draw.choice(["click", "click", "click", "double click", "key", "key", "word", "paste"])
        if kind == "key":
            what = draw.choice(KEYS)
            self.page.keyboard.press(what)
        elif kind == "word":
            what = "allow"
            self.page.keyboard.type(what)
        elif kind == "paste":
            what = draw.choice(PASTES)
            self.paste(what)
        else:
            what = draw.choice([".card .primary", ".card .primary", ".card .no", ".card .word", ".card", "#say"])
            self.click(what)
            if kind == "double click":
                self.click(what)
        return f"{kind} {what}"

    def allow(self) -> None:
        """Allow what waits, on purpose: after the wait, with both acts where there are two."""
        self.return_to_chat()
        self.click(".card header")  # Tab may have led out of the page, and coming back is no answer.
        self.wait(PRESSED_MILLISECONDS + 100)
        for button in ("Back", "Done editing"):
            if self.page.locator(".card").get_by_role("button", name=button).count():
                self.page.locator(".card").get_by_role("button", name=button).click()
                self.wait(PRESSED_MILLISECONDS + 100)
        self.settle(ARMED)
        if self.page.locator(".card .word").count():
            self.page.locator(".card .word").fill("")
            self.page.locator(".card .word").press_sequentially("allow")
        # A message that was sent meanwhile may have scrolled it away: whoever means it looks for it.
        self.page.locator(".card .primary").first.click()


@pytest.mark.parametrize("tool", ["add_up", "publish"])
@requirement("TOOL-55")
def test_clicking_that_began_before_a_card_allows_nothing(house, page, tool):
    """Ten clicks, three a second, where its button appears: nobody has read it in between."""
    hand = Hand(page, house)
    for _ in range(3):
        hand.click(".card .primary")
        hand.wait(333)
    call = hand.ask(tool)
    for _ in range(10):
        hand.click(".card .primary")
        hand.wait(333)
        assert not call.done()
    assert house.effects == []
    hand.allow()
    assert call.result(PATIENCE_SECONDS).success


def streams(house: House, page: Page, seed: int) -> None:
    """One stream: it begins, a card appears, it goes on for a while and ends; then somebody means it."""
    draw = random.Random(seed)
    # Shift+Tab and Enter may begin a new conversation, and then the card of this one is elsewhere.
    page.route("**/page/new", lambda route: route.fulfill(json={"event": 0}))
    hand = Hand(page, house)
    before, after = draw.randrange(1, 6), draw.randrange(3, 14)
    slowest = draw.choice([120, 400, 1000])
    done: list[str] = []

    def step() -> None:
        done.append(hand.press(draw))
        hand.wait(draw.randrange(20, slowest))

    for _ in range(before):
        step()
    call = hand.ask(draw.choice(["add_up", "publish", "post_letter"]))
    for _ in range(after):
        step()
        assert not call.done(), f"seed {seed}: {done}"
    assert house.effects == [], f"seed {seed}: {done}"
    hand.allow()
    assert call.result(PATIENCE_SECONDS).success, f"seed {seed}: {done}"
    assert len(house.effects) == 1


@requirement("TOOL-55")
@pytest.mark.parametrize("seed", range(8))
def test_no_stream_of_presses_that_began_before_a_card_answers_it(house, windows, seed):
    """Clicks, keys and pastes of somebody who was busy with something else; and a press that is meant does count."""
    streams(house, windows(house.key()), seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 200))
def test_no_stream_of_two_hundred_answers_a_card(house, windows, seed):
    """The same, with more of them."""
    streams(house, windows(house.key()), seed)


def png(width: int, height: int) -> bytes:
    """A white picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    rows = zlib.compress((b"\0" + b"\xff" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@requirement("TOOL-55")
def test_a_card_that_an_image_pushes_away_has_to_stand_still_again(house, windows):
    """A picture above the card arrives when somebody is about to press Deny, and Allow slides under the pointer."""

    @house.session.registry.tool(require_approval=False)
    def plot() -> Image:
        """Plots."""
        return Image(png(300, 330), name="plot.png")

    page = windows(house.key(), viewport={"width": 390, "height": 900})
    held: list[Route] = []
    page.route("**/page/content*", lambda route: held.append(route))
    hand = Hand(page, house)
    assert house.call("plot").result(PATIENCE_SECONDS).success
    page.wait_for_selector(".content.image")
    call = hand.ask("add_up")
    hand.settle(ARMED)
    before = page.locator(".card .no").bounding_box()
    for route in held:
        route.continue_()
    expect(page.locator(".content img")).to_have_js_property("naturalHeight", 330)
    after = page.locator(".card .no").bounding_box()
    assert after["y"] != before["y"], "the card has to move, or this shows nothing"
    expect(page.locator(".card")).to_have_attribute("data-armed", "false")
    hand.click(".card .primary")
    assert not call.done()
    assert house.effects == []
    hand.allow()
    assert call.result(PATIENCE_SECONDS).success
