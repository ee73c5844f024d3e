"""The page in Debian's Chromium, as people use it: first visit, several windows, denying, editing, stopping."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from requirements import requirement
from surfaces.conftest import Houses
from surfaces.windows import ARMED, HELLO, PATIENCE_SECONDS, WELCOME, House, Up, deny, read_to_end, settled

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def house(houses: Houses, tmp_path: Path) -> House:
    (tmp_path / "hello.py").write_text(HELLO)
    return houses()


def test_from_the_first_visit_to_the_first_approval(tmp_path, windows):
    """`lastword up` on a machine that has nothing: the page opens on a real card, and one press later it is done."""
    up = Up(tmp_path)
    try:
        page = windows(up.key)
        expect(page).to_have_title("(1) lastword")
        card = page.locator(ARMED)
        expect(card.get_by_role("heading", level=2)).to_have_text("Write Note")
        expect(card.get_by_role("heading", level=3)).to_have_text("What would change")
        expect(card).to_contain_text("Can be undone")
        expect(card).to_contain_text("note.md")
        expect(card).to_contain_text("Somebody read this before it was written.")
        expect(card).not_to_contain_text("auto-approve")  # both keys are missing: there is nothing to explain
        card.get_by_role("button", name="Write note").click()
        expect(page.locator(".call.good")).to_contain_text("allowed by you")
        expect(page.locator(".call.good")).to_contain_text("Wrote a line to note.md.")
        expect(page).to_have_title("lastword")
        expect(page.locator(".message.assistant").last).to_contain_text("2 of 3")
    finally:
        assert up.stop() == 0


def test_values_are_shown_as_people_read_them_and_exactly_on_request(house, page):
    """Quotes and escapes are for programs. A text that could be taken for something else keeps its quotes."""
    call = house.call("publish", version="12", index='say "hi"\nand go')
    card = page.locator(ARMED)
    version, index = (card.get_by_role("row", name=name) for name in ("version", "index"))
    expect(version.locator("td")).to_have_text('"12"')
    expect(index.locator(".read")).to_have_text('say "hi"\nand go')
    index.get_by_role("button", name="index exactly, as JSON").click()
    expect(index.locator("td")).to_contain_text(r'"say \"hi\"\n')
    deny(page, call)


def test_two_windows_and_a_phone_show_the_same_card_and_one_answer_clears_all(house, windows):
    """Who opens late sees what is pending; who answers first answers for all."""
    first = windows(house.key())
    call = house.call("publish", version="1.4.0", index="https://test.example")
    expect(first.locator(ARMED)).to_contain_text("1.4.0")
    second = windows(house.key())
    phone = windows(house.key(), viewport=PHONE, has_touch=True, is_mobile=True)
    for page in (second, phone):
        expect(page.locator(ARMED)).to_contain_text("Cannot be undone")
        expect(page).to_have_title("(1) lastword")
    phone.locator(ARMED).locator(".word").tap()
    phone.keyboard.type("Allow ")  # as the keyboard of a phone writes it
    phone.locator(ARMED).get_by_role("button", name="Allow").tap()
    for page in (first, second, phone):
        expect(page.locator(".card")).to_have_count(0)
        expect(page.locator(".call.good")).to_contain_text("Published 1.4.0")
        expect(page).to_have_title("lastword")
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("publish", "1.4.0", "https://test.example")]


@requirement("TOOL-47")
def test_denying_with_a_reason_tells_the_assistant_why(house, page):
    """The reason is the person's answer; it goes to the model and stays on the page."""
    call = house.call("publish", version="1.4.0", index="https://test.example")
    card = page.locator(ARMED)
    card.get_by_role("button", name="Deny with a reason").click()
    expect(card.get_by_label("Why not? The assistant reads this.")).to_be_focused()
    page.keyboard.type("Wrong index")
    card.get_by_role("button", name="Deny, and say so").click()
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.kind == "denied"
    assert "Wrong index" in outcome.message
    expect(page.locator(".call.denied")).to_contain_text("You said: “Wrong index”")
    assert house.effects == []


@requirement("TOOL-47")
def test_an_argument_that_was_left_out_can_be_added_in_its_type(house, page):
    """The tool's signature says which there are. What does not fit is refused, and what is not added stays out."""
    call = house.call("post_letter", to="Ann")
    card = page.locator(ARMED)
    expect(card.get_by_role("button", name="Add copies")).to_have_count(0)
    card.get_by_role("button", name="Edit arguments").click()
    card.get_by_role("button", name="Add copies").click()
    card.get_by_role("button", name="Add urgent").click()
    card.get_by_role("button", name="Add note").click()
    card.get_by_label("note", exact=True).fill("hurry")
    card.get_by_role("row", name="note").get_by_role("button", name="leave it out").click()
    expect(card.get_by_role("button", name="Add note")).to_be_visible()
    card.get_by_label("copies").fill("many")
    settled(page)
    card.locator(".word").press_sequentially("allow")
    card.get_by_role("button", name="Allow (edited)").click()
    expect(card.get_by_role("alert")).to_contain_text("copies must be a number")
    assert not call.done()
    card.get_by_label("copies").fill("3")
    card.get_by_role("button", name="Done editing").click()
    expect(card.get_by_role("row", name="copies")).to_contain_text("3")
    settled(page)
    card.get_by_role("button", name="Allow (edited)").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("post_letter", {"to": "Ann", "copies": 3, "urgent": True})]


@requirement("TOOL-6", "TOOL-55")
def test_what_does_not_say_whether_it_can_be_undone_takes_two_acts(house, page):
    """What nobody said counts as irreversible: neither the button nor its key is enough, and the card says why."""
    call = house.call("post_letter", to="Ann")
    card = page.locator(ARMED)
    expect(card).to_contain_text("Whether it can be undone is not known")
    expect(card.locator(".second")).to_contain_text(
        "Its tool does not say whether it can be undone. To allow it, type allow"
    )
    expect(card.locator(".primary kbd")).to_have_count(0)
    card.get_by_role("button", name="Allow").click(force=True)
    expect(card.locator(".word")).to_be_focused()
    card.focus()
    settled(page)
    page.keyboard.press("Control+Enter")
    card.locator(".word").press_sequentially("allo")
    settled(page)
    card.get_by_role("button", name="Allow").click(force=True)
    assert house.effects == []
    assert not call.done()
    card.locator(".word").press_sequentially("w")
    settled(page)
    card.get_by_role("button", name="Allow").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("post_letter", {"to": "Ann"})]


@requirement("TOOL-47")
def test_editing_arguments_keeps_their_types_and_says_so_on_the_button(house, page):
    """A number stays a number, a list a list; what does not fit is refused beside its field."""
    call = house.call("add_up", numbers=[1, 2], factor=3, rounded=True)
    card = page.locator(ARMED)
    card.get_by_role("button", name="Edit arguments").click()
    card.get_by_label("factor").fill("a lot")
    card.get_by_role("button", name="Allow (edited)").click()
    expect(card.get_by_role("alert")).to_contain_text("factor must be a number")
    card.get_by_label("factor").fill("10")
    card.get_by_label("numbers").fill("[4, 5]")
    card.get_by_label("rounded").select_option("false")
    settled(page)
    card.get_by_role("button", name="Allow (edited)").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("add_up", [4.0, 5.0], 10, False)]
    expect(page.locator(".call.good")).to_contain_text("changed and allowed by you")


def test_editing_the_proposed_text_writes_what_the_person_made_of_it(house, page, tmp_path):
    """The diff is open; a line is fixed in place; that is what is written, and the assistant is told."""
    call = house.call("write_file", path="hello.py", text=WELCOME)
    card = page.locator(ARMED)
    expect(card.locator(".counts")).to_have_text("+2 −3")
    card.get_by_role("button", name="Edit the text").click()
    editor = card.get_by_label("Proposed text of hello.py, editable")
    editor.get_by_text("Welcome").click()
    page.keyboard.press("Home")
    page.keyboard.press("Control+Enter")
    assert not call.done(), "keys in the editor must not answer the card"
    page.keyboard.press("Control+z")
    page.keyboard.type("# Mine: ")
    expect(card.get_by_role("button", name=re.compile(r"\(edited\)"))).to_be_visible()
    settled(page)
    card.get_by_role("button", name=re.compile(r"\(edited\)")).click()
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.success
    assert "changed the arguments" in outcome.message
    assert "# Mine: " in (tmp_path / "hello.py").read_text()


def test_the_diff_is_shown_inline_or_side_by_side(house, page):
    """Both are the same change; the person chooses."""
    call = house.call("write_file", path="hello.py", text=WELCOME)
    card = page.locator(ARMED)
    expect(card.get_by_label("Change of hello.py")).to_have_count(1)
    card.get_by_role("button", name="Side by side").click()
    expect(card.get_by_label("Text of hello.py as it is now")).to_contain_text('"Hello, " + name')
    expect(card.get_by_label("Change of hello.py")).to_contain_text("Welcome")
    card.get_by_role("button", name="Inline").click()
    expect(card.get_by_label("Text of hello.py as it is now")).to_have_count(0)
    deny(page, call)


@requirement("EDIT-5")
def test_lines_that_changed_a_little_stand_in_pairs_with_their_numbers_and_words(house, windows, tmp_path):
    """Hundreds of lines with a comment added are read pair by pair, and what is new in each can be seen."""
    (tmp_path / "many.py").write_text("".join(f"value_{number} = {number}\n" for number in range(1, 301)))
    page = windows(house.key())
    text = "".join(f"value_{number} = {number}  # counted\n" for number in range(1, 301))
    call = house.call("write_file", path="many.py", text=text)
    card = page.locator(ARMED)
    rows = card.get_by_label("Change of many.py").locator("tr")
    expect(rows).to_have_count(400)
    for place, (kind, numbers) in enumerate([("removed", "1"), ("added", "1"), ("removed", "2"), ("added", "2")]):
        expect(rows.nth(place)).to_have_class(kind)
        expect(rows.nth(place).locator(".number").nth(int(kind == "added"))).to_have_text(numbers)
    expect(rows.nth(0).locator(".new")).to_have_count(0)
    assert "".join(rows.nth(1).locator(".new").all_text_contents()) == "  # counted"
    card.get_by_role("button", name="… 200 more lines: show all").click()
    expect(rows).to_have_count(600)
    expect(rows.last.locator(".number").nth(1)).to_have_text("300")
    deny(page, call)


def test_what_stays_is_folded_and_a_line_without_end_too(house, windows, tmp_path):
    """Forty lines that nobody changes, and a megabyte on one line, would hide what is asked."""
    long = "x" * 9_000
    lines = [f"line {number}" for number in range(1, 41)]
    (tmp_path / "mixed.txt").write_text("\n".join([*lines, long, "end"]))
    lines[19] = "line <b>20</b>\u202e"
    page = windows(house.key())
    call = house.call("write_file", path="mixed.txt", text="\n".join([*lines, f"{long}y", "end"]))
    card = page.locator(ARMED)
    change = card.get_by_label("Change of mixed.txt")
    expect(change).to_contain_text("line <b>20</b>‹U+202E›")
    assert change.locator("b").count() == 0
    expect(change).to_contain_text("8,800 characters before this not shown")
    expect(change).to_contain_text("no line ending at the end of the file")
    assert len(change.text_content() or "") < 2_500
    expect(change).not_to_contain_text("line 10")
    change.get_by_role("button", name="16 unchanged lines").click()
    row = change.locator("tr", has_text="line 10")
    expect(row.locator(".number")).to_have_text(["10", "10"])
    expect(row).to_have_class("same")
    read_to_end(page)
    deny(page, call)


@requirement("TOOL-51", "TOOL-52")
def test_stopping_a_running_call_keeps_what_it_has(house, page):
    """Progress updates one line in place; stop keeps the partial result, and it does not read as a failure."""
    call = house.call("count", to=100_000)
    running = page.locator(".call.running")
    expect(running.locator(".reports li")).to_have_count(1)
    expect(running.locator(".reports")).to_contain_text(re.compile(r"counting, ([5-9]|\d\d)"))
    running.get_by_role("button", name="Stop, keep what is done").click()
    outcome = call.result(PATIENCE_SECONDS)
    assert outcome.kind == "cancelled"
    expect(page.locator(".call")).to_contain_text("It had counted to")
    expect(page.locator(".call .pill")).to_have_text("stopped")


def test_a_window_finds_its_card_again_after_the_server_was_killed(tmp_path, windows):
    """Suspend, never fail: the same window, the same card, a new process; and the answer counts."""
    up = Up(tmp_path)
    page = windows(up.key)
    expect(page.locator(ARMED)).to_contain_text("Write Note")
    up.kill()
    expect(page.get_by_text("reconnecting…")).to_be_visible()
    again = Up(tmp_path, up.port)
    try:
        assert "left unfinished" in again.said
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        settled(page)
        expect(page.locator(".message.assistant").first).to_contain_text("The tour has three steps")
        page.locator(ARMED).get_by_role("button", name="Write note").click()
        expect(page.locator(".call.good")).to_contain_text("Wrote a line to note.md.")
    finally:
        assert again.stop() == 0


def test_a_double_press_answers_one_card(house, page):
    """Two cards wait, and a hand presses twice: with the keyboard, with the pointer. The second card is untouched."""
    first = house.call("add_up", numbers=[1], factor=1, rounded=True)
    house.waiting(1)
    second = house.call("add_up", numbers=[2], factor=1, rounded=True)
    house.waiting(2)
    expect(page.locator(ARMED)).to_have_count(2)
    page.locator(ARMED).first.focus()
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    assert first.result(PATIENCE_SECONDS).success
    expect(page.locator(".card")).to_have_count(1)
    page.keyboard.press("Control+Enter")
    assert not second.done()
    third = house.call("add_up", numbers=[3], factor=1, rounded=True)
    house.waiting(2)
    expect(page.locator(ARMED)).to_have_count(2)
    spot = page.locator(".card .primary").first.bounding_box()
    page.mouse.dblclick(spot["x"] + 20, spot["y"] + 10)
    page.mouse.click(spot["x"] + 20, spot["y"] + 10)
    assert second.result(PATIENCE_SECONDS).success
    assert len(house.waiting(1)) == 1
    assert not third.done()
    house.session.cancel(house.waiting(1)[0].call_id)


def test_a_card_that_has_just_appeared_cannot_be_answered_yet(house, page):
    """A press that was meant for what stood there before."""
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    # The browser itself presses as soon as the card is there: no hand is faster.
    page.evaluate(
        """new MutationObserver((_, watcher) => {
            const button = document.querySelector(".card .primary");
            if (button) { watcher.disconnect(); button.click(); document.body.dataset.pressed = "yes"; }
        }).observe(document.body, {childList: true, subtree: true})"""
    )
    call = house.call("publish", version="1", index="x")
    # Not wait_for_function: unless the first look succeeds, it looks again with eval, which the page's policy refuses.
    expect(page.locator("body")).to_have_attribute("data-pressed", "yes")
    page.locator(".card .primary").click(force=True)
    expect(page.locator(ARMED)).to_have_count(1)
    assert not call.done()
    # Nor does a click that no hand made, however long the card has stood there.
    page.evaluate("document.querySelector('.card .primary').click()")
    deny(page, call)


def test_the_click_that_brings_the_window_to_the_front_answers_nothing(house, page):
    """Somebody clicks into the window to see it, and the button happens to be there."""
    call = house.call("publish", version="1", index="x")
    button = page.locator(ARMED).get_by_role("button", name="Allow")
    spot = button.bounding_box()
    # The window comes to the front at the very moment in which the pointer is there.
    page.evaluate("addEventListener('mousemove', () => dispatchEvent(new Event('focus')), {capture: true, once: true})")
    page.mouse.click(spot["x"] + 5, spot["y"] + 5)
    expect(page.locator(ARMED)).to_have_count(1)
    assert not call.done()
    deny(page, call)


def test_a_key_on_a_card_that_has_just_moved_answers_nothing(house, page):
    """Another card came, the window came to the front: what the hand meant is not what is there now."""
    call = house.call("add_up", numbers=[1], factor=1, rounded=True)
    card = page.locator(ARMED)
    card.focus()
    page.evaluate("addEventListener('keydown', () => dispatchEvent(new Event('focus')), {capture: true, once: true})")
    page.keyboard.press("Control+Enter")
    settled(page)
    assert not call.done()
    page.keyboard.press("Control+Enter")
    assert call.result(PATIENCE_SECONDS).success


def test_everything_can_be_done_with_the_keyboard_and_enter_never_approves(house, page):
    """From the composer to the card, to its buttons, to an answer. Enter alone does nothing, not even on the button."""
    call = house.call("add_up", numbers=[1], factor=1, rounded=True)
    settled(page)
    page.locator("#say").focus()
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Escape")
    card = page.locator(ARMED)
    expect(card).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="numbers exactly, as JSON")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="Allow")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert not call.done()
    page.keyboard.press("Shift+Tab")
    card.focus()
    page.keyboard.press("Control+Backspace")
    expect(card.get_by_label("Why not? The assistant reads this.")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(card).to_be_focused()
    page.keyboard.press("Control+Enter")
    assert call.result(PATIENCE_SECONDS).success


@requirement("TOOL-44", "TOOL-55")
def test_what_cannot_be_undone_takes_a_word_and_a_press(house, page):
    """It says so and has no shortcut. One press is not enough, nor two of them, nor a word that was pasted."""
    call = house.call("publish", version="1", index="x")
    card = page.locator(ARMED)
    expect(card).to_contain_text("Cannot be undone")
    expect(card.locator("kbd")).to_have_count(0)
    card.focus()
    page.keyboard.press("Control+Enter")
    expect(card).to_be_focused()
    card.locator(".primary").dblclick(force=True)
    expect(card.locator(".word")).to_be_focused()
    card.locator(".word").evaluate(
        """field => field.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, cancelable: true}))
            && (field.value = "pasted")"""
    )
    expect(card.locator(".word")).to_have_value("")
    page.keyboard.type("alow")
    page.keyboard.press("Enter")
    card.locator(".primary").click(force=True)
    assert not call.done()
    page.keyboard.press("Control+a")
    page.keyboard.type("allow")
    page.keyboard.press("Enter")
    assert not call.done(), "the word alone is not enough either"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert call.result(PATIENCE_SECONDS).success


@requirement("TOOL-55")
def test_what_is_folded_must_be_opened_before_what_cannot_be_undone_is_allowed(house, page):
    """59,422 characters that nobody has seen. Where it can be undone, they may stay folded."""
    call = house.call("publish", version="1", index="x" * 60_000)
    card = page.locator(ARMED)
    expect(card.locator(".word")).to_have_count(0)
    card.locator(".primary").click(force=True)
    expect(card.locator(".second")).to_contain_text("a part of it is folded")
    assert not call.done()
    card.get_by_role("button", name="open it").click()
    expect(page.locator(".card .fold")).to_have_text("Show less")
    expect(card.locator(".word")).to_have_count(0)
    read_to_end(page)
    card.locator(".word").press_sequentially("allow")
    card.get_by_role("button", name="Show less").click()  # what was open once has been seen
    settled(page)
    card.locator(".primary").click()
    assert call.result(PATIENCE_SECONDS).success
    call = house.call("add_up", numbers=[1] * 1000, factor=1, rounded=True)
    card.locator(".primary").click()
    assert call.result(PATIENCE_SECONDS).success


def test_on_a_phone_undo_and_details_stand_side_by_side(house, windows):
    """Torn apart over two lines they look like parts of two things."""
    page = windows(house.key(), viewport=PHONE, has_touch=True, is_mobile=True)
    call = house.call("write_file", path="new.py", text="one = 1\n")
    page.locator(ARMED).locator(".actions button").first.tap()
    assert call.result(PATIENCE_SECONDS).success
    undo, details = (page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Details"))
    expect(undo).to_be_visible()
    expect(details).to_be_visible()
    for width in range(300, 400, 10):  # one of them is where only one of the two fits beside the name
        page.set_viewport_size({**PHONE, "width": width})
        assert undo.bounding_box()["y"] == details.bounding_box()["y"], width


@requirement("TOOL-44")
def test_hostile_text_is_marked_and_cannot_pass_for_ours(house, page):
    """Reversed, invisible and lookalike characters are seen; a fake button is text; nothing of it is markup."""
    text = 'safe = "\u202etxt.exe"\nname\u200b = 1\n<img src=x onerror=alert(1)>\npаssword = 2\n'
    call = house.call("write_file", path="new.py", text=text)
    card = page.locator(ARMED)
    expect(card).to_contain_text("‹U+202E›")
    expect(card).to_contain_text("‹U+200B›")
    expect(card).to_contain_text("‹U+0430›")
    shown = card.evaluate("card => card.textContent")
    assert not {"\u202e", "\u200b"} & set(shown)
    assert card.locator("img").count() == 0
    card.get_by_role("button", name="Edit the text").click()
    editor = card.get_by_label("Proposed text of new.py, editable")
    expect(editor).to_contain_text("‹U+202E›")
    assert "\u202e" not in (editor.text_content() or "")
    deny(page, call)


def test_a_card_is_announced_once(house, page):
    """A screen reader hears of it when it comes, and not again with every change of the page."""
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.evaluate(
        """() => {
            window.heard = [];
            const region = document.querySelector("[aria-live=polite]");
            new MutationObserver(() => window.heard.push(region.textContent))
                .observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    call = house.call("publish", version="1", index="x")
    settled(page)
    house.call("count", to=3).result(PATIENCE_SECONDS)
    page.locator(ARMED).get_by_role("button", name="Edit arguments").click()
    expect(page.locator(".card .word")).to_be_visible()  # The fields are read first, and the buttons wait anew.
    deny(page, call)
    assert [words for words in page.evaluate("window.heard") if words] == [
        "Waiting for your answer: Publish release. Cannot be undone."
    ]


def test_a_window_that_is_not_in_front_shows_a_notification_in_our_words(house, page, browser):
    """Its text names the tool and the effect; nothing that a model or a tool wrote gets out of the card."""
    page.evaluate(
        """() => {
            window.notices = [];
            window.Notification = class { static permission = "granted";
                constructor(title, options) { window.notices.push([title, options.body]); } close() {} };
            document.hasFocus = () => false;
        }"""
    )
    call = house.call("publish", version="EVIL: click allow", index="x")
    settled(page)
    assert page.evaluate("window.notices") == [["lastword is waiting for you", "Publish release. Cannot be undone."]]
    deny(page, call)


@requirement("API-52")
def test_no_other_page_can_frame_it(house, page):
    """A frame over which somebody lays other buttons."""
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    other = page.context.new_page()
    other.goto("data:text/html,<title>other</title>")
    with other.expect_event("framenavigated", lambda frame: frame.parent_frame is not None):
        other.evaluate(
            "address => { const f = document.createElement('iframe'); f.src = address; document.body.append(f); }",
            house.address + "/",
        )
    assert all("lastword" not in (frame.content() if frame.parent_frame else "") for frame in other.frames)


def test_a_script_shows_its_lines_its_calls_and_what_it_printed(house, page):
    """The line that asks is marked in the script and quoted on the card; progress and output stay in place."""
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    script = (
        "LET total = CALL add_up { numbers: [1, 2], factor: 2, rounded: true }\n"
        'PRINT(total)\nCALL publish { version: "2.0", index: "x" }'
    )
    page.get_by_label("Message to the assistant").fill(script)
    page.get_by_role("button", name="Send").click()
    card = page.locator(ARMED)
    expect(card).to_contain_text("line 1 of the script")
    expect(page.locator(".script li.now")).to_contain_text("add_up")
    card.get_by_role("button", name="Allow").click()
    expect(page.locator(".printed")).to_contain_text("6")
    expect(page.locator(f"{ARMED}.grave")).to_contain_text("line 3 of the script")
    page.locator(ARMED).get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".script .pill").first).to_have_text("failed")
    assert house.effects == [("add_up", [1.0, 2.0], 2, True)]


def test_the_timeline_shows_a_bar_for_each_call_and_filters_them(house, page):
    """Waiting and running are told apart; words and kinds filter; a call opens to its steps."""
    call = house.call("publish", version="1.4.0", index="x")
    page.locator(ARMED).locator(".word").press_sequentially("allow")
    page.locator(ARMED).get_by_role("button", name="Allow").click()
    call.result(PATIENCE_SECONDS)
    house.call("count", to=2).result(PATIENCE_SECONDS)
    page.get_by_role("link", name="Timeline").click()
    rows = page.locator(".bars details")
    expect(rows).to_have_count(2)
    expect(rows.first.locator(".bar.waiting")).to_have_count(1)
    expect(rows.first.locator(".bar.running")).to_have_count(1)
    expect(rows.nth(1).locator(".bar.waiting")).to_have_count(0)
    rows.first.locator("summary").click()
    expect(rows.first).to_contain_text("allowed by you")
    page.get_by_label("With the words").fill("1.4.0")
    expect(rows).to_have_count(1)
    page.get_by_label("With the words").fill("")
    page.get_by_label("Show").select_option("Needed no approval")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Count")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export").click()
    assert downloading.value.suggested_filename.endswith(".jsonl")


def test_with_reduced_motion_nothing_moves(house, windows):
    """For people whom it makes ill."""
    page = windows(house.key(), reduced_motion="reduce")
    call = house.call("publish", version="1", index="x")
    settled(page)
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).animationName !== 'none').length"
    )
    assert moving == 0
    house.session.cancel(house.waiting()[0].call_id)
    call.result(PATIENCE_SECONDS)


@requirement("NUWA-80")
def test_after_three_denials_in_a_row_a_button_denies_the_rest_of_the_script(house, page):
    """Nobody presses the same button two hundred times. Until then it is not there."""
    text = 'FOR n IN RANGE(200) DO LET r = TRY CALL publish { version: STRING(n), index: "x" } END STOP "told"'
    run = asyncio.run_coroutine_threadsafe(house.session.run_script(text), house.loop)
    rest = page.get_by_role("button", name="Deny the rest of the script")
    for number in range(3):
        card = page.locator(ARMED)
        expect(card).to_contain_text(f'"{number}"')
        expect(rest).to_have_count(0)
        card.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(ARMED)).to_contain_text("You denied the last 3 calls of this script.")
    rest.click()
    assert run.result(30).output == ["told"]
    assert house.effects == []
