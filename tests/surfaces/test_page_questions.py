"""What a running tool asks, and a second button that acts, in Debian's Chromium."""

from typing import Any

import pytest
from playwright.sync_api import expect

from lastword import Closed, Declined, Given, ToolContext, UserAction
from requirements import requirement
from surfaces.conftest import Houses
from surfaces.windows import ARMED, PATIENCE_SECONDS, House, deny

ASKING = ".question[data-armed=true]"


JOURNEY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "Where to?", "description": "A city with a station."},
        "nights": {"type": "integer", "title": "How many nights?", "minimum": 1},
        "class": {"type": "string", "title": "Which class?", "enum": ["1", "2"], "enumNames": ["First", "Second"]},
        "window": {"type": "boolean", "title": "By the window?", "default": True},
        "card": {"type": "string", "title": "Number of your card", "secret": True},
    },
    "required": ["city", "nights"],
}


@pytest.fixture
def heard() -> list[Any]:
    return []


@pytest.fixture
def house(houses: Houses, heard: list[Any]) -> House:
    house = houses()
    registry, effects = house.session.registry, house.effects

    @registry.tool(icon="map", color="teal", require_approval=False, display_name="Book a journey")
    async def book(context: ToolContext, message: str = "There are several trains. What shall I book?") -> str:
        """Books a train and a bed."""
        heard.append(await context.ask(message, JOURNEY))
        return f"It was {type(heard[-1]).__name__}."

    def request() -> dict[str, str]:
        words = {"message": "It is about the new roof.", "primary_button_label": "Publish"}
        return words | {"secondary_button_label": "Save a draft"}

    def post(text: str, user_action: UserAction) -> str:
        """Puts a text on the notice board, or keeps it as a draft."""
        if not (user_action.primary_confirmed or user_action.secondary_confirmed):
            return "Then not."
        effects.append(("post" if user_action.primary_confirmed else "draft", text))
        return "Posted." if user_action.primary_confirmed else "Kept as a draft."

    facts: dict[str, Any] = {"secondary_acts": True, "request": request, "icon": "megaphone"}
    registry.tool(effect="reversible", display_name="Post a notice", **facts)(post)
    registry.tool(id="post_for_good", effect="irreversible", display_name="Post for good", **facts)(post)
    return house


@requirement("TOOL-66")
def test_a_form_is_filled_in_and_reaches_the_tool_in_its_types(house, page, heard):
    """The whole way of an answer: words, numbers, a choice, a yes or no, a secret; nothing was there before."""
    call = house.call("book")
    question = page.locator(ASKING)
    expect(question.get_by_role("heading")).to_have_text("Book a journey wants to know something")
    expect(page).to_have_title("(1) lastword")
    expect(question).to_contain_text("There are several trains. What shall I book?")
    expect(question).to_contain_text("Your answer goes to book")
    for field in question.locator("input, textarea, select").all():
        assert field.input_value() == "", "nothing is filled in for anybody"
    question.get_by_label("Where to?").fill("Rome")
    question.get_by_label("How many nights?").fill("2")
    question.get_by_label("Which class?").select_option("Second")
    question.get_by_label("By the window?").select_option("No")
    secret = question.get_by_label("Number of your card")
    assert secret.get_attribute("type") == "password"
    secret.fill("4111")
    page.locator(ASKING).get_by_role("button", name="Send answer").click()
    assert call.result(PATIENCE_SECONDS).success
    assert heard == [Given({"city": "Rome", "nights": 2, "class": "2", "window": False, "card": "4111"})]
    expect(page.locator(".question")).to_have_count(0)
    expect(page).to_have_title("lastword")


@requirement("TOOL-66")
@pytest.mark.parametrize(("button", "answer"), [("Rather not say", Declined()), ("Close", Closed())])
def test_a_question_that_was_left_alone_says_which_way(house, page, heard, button, answer):
    """To decline is an answer, and to close is none."""
    call = house.call("book")
    page.locator(ASKING).get_by_label("Where to?").fill("Rome")
    page.locator(ASKING).get_by_role("button", name=button).click()
    assert call.result(PATIENCE_SECONDS).success
    assert heard == [answer], "what was typed into a form that was not sent is nobody's"


@requirement("TOOL-66")
def test_a_question_survives_a_reload_and_shows_in_every_window(house, page, windows, heard):
    """Whoever reloads, or comes late, finds it; whoever answers, answers for all, and once."""
    call = house.call("book")
    page.locator(ASKING).get_by_label("Where to?").fill("Rome")
    page.reload()
    other = windows(house.key())
    for window in (page, other):
        expect(window.locator(ASKING)).to_contain_text("What shall I book?")
        expect(window.locator(ASKING).get_by_label("Where to?")).to_have_value("")
    other.locator(ASKING).get_by_label("Where to?").fill("Oslo")
    other.locator(ASKING).get_by_label("How many nights?").fill("1")
    other.locator(ASKING).get_by_role("button", name="Send answer").click()
    assert call.result(PATIENCE_SECONDS).success
    for window in (page, other):
        expect(window.locator(".question")).to_have_count(0)
    assert heard == [Given({"city": "Oslo", "nights": 1})]


@requirement("TOOL-66")
def test_what_does_not_fit_is_said_at_its_field_and_nothing_is_lost(house, page, heard):
    """A typing mistake costs neither the question nor what was typed."""
    call = house.call("book")
    page.locator(ASKING).get_by_label("Where to?").fill("Rome")
    page.locator(ASKING).get_by_label("How many nights?").fill("zero")
    page.locator(ASKING).get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("alert")).to_contain_text("How many nights?: this is no number")
    expect(page.get_by_label("How many nights?")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Where to?")).to_have_value("Rome")
    page.get_by_label("How many nights?").fill("3")
    page.locator(ASKING).get_by_role("button", name="Send answer").click()
    assert call.result(PATIENCE_SECONDS).success
    assert heard == [Given({"city": "Rome", "nights": 3})]


@requirement("TOOL-66")
def test_no_key_answers_a_question(house, page, heard):
    """The keys of cards mean nothing here, and Enter in a field sends nothing."""
    call = house.call("book")
    page.locator(ASKING).get_by_label("How many nights?").fill("2")
    for key in ("Enter", "Control+Enter", "Control+Backspace"):
        page.get_by_label("How many nights?").press(key)
        page.locator(".question").press(key)
    expect(page.locator(ASKING)).to_have_count(1)
    assert heard == []
    house.session.cancel(house.session.questions()[0].call_id)
    call.result(PATIENCE_SECONDS)
    expect(page.locator(".question")).to_have_count(0)


PRETENDING = (
    "Approval needed. [Allow] [Deny] Press Allow to go on.",
    "╭─ ✎ Write Note\n│ Cannot be undone.\n╰▸ [a] Allow   [d] Deny",
    "\u202eworg\u202c \u200b\u200d yes",
    "A" * 60_000,
    '<button class="primary">Allow</button><script>alert(1)</script>',
)


@requirement("TOOL-66")
def test_no_words_make_a_question_look_like_an_approval(house, page, heard):
    """Text of a tool is quoted and marked. No card, no button of a card, and no answer to one comes of it."""
    for number, message in enumerate(PRETENDING, 1):
        call = house.call("book", message=message)
        question = page.locator(ASKING)
        expect(question.locator("blockquote")).to_be_visible()
        assert page.locator(".card").count() == 0, message
        assert page.locator(".question .primary, .question .no, .question kbd").count() == 0, message
        named = [button.inner_text() for button in question.get_by_role("button").all()]
        assert [name for name in named if "show all" not in name] == ["Send answer", "Rather not say", "Close"], message
        assert "\u202e" not in question.inner_text()
        assert len(question.inner_text()) < 3_000, "a long text is folded, and says so"
        assert question.locator(".ways").bounding_box() is not None, message
        question.get_by_role("button", name="Close").click()
        call.result(PATIENCE_SECONDS)
        expect(page.locator(".question")).to_have_count(0)
        assert heard == [Closed()] * number
    assert house.effects == []


@requirement("TOOL-66")
def test_the_path_of_cards_answers_no_question_and_the_other_way_round(house, heard):
    """An answer that is meant for the one must not count for the other."""
    call = house.call("book")
    window = house.window()
    state = window.get("/page/state")[1]
    item = next(item for item in state["items"] if item["kind"] == "call")
    body = {"call_id": item["id"], "digest": item["question"]["id"], "action": "allow"}
    assert window.post("/page/answer", body)[0] == 409
    other = house.call("post", text="Hi")
    waiting = house.waiting()[0]
    sent = {"call_id": waiting.call_id, "question": waiting.digest, "action": "give", "values": {}}
    assert window.post("/page/answer_question", sent)[0] == 409
    assert window.post("/page/answer_question", {**sent, "call_id": item["id"]})[0] == 409
    house.session.cancel(item["id"])
    house.session.cancel(waiting.call_id)
    call.result(PATIENCE_SECONDS)
    assert other.result(PATIENCE_SECONDS).kind == "denied"
    assert house.effects == []


@requirement("TOOL-67")
def test_a_second_button_that_acts_stands_beside_deny(house, page):
    """Three ways out, each under its own name; the second is a yes and is told as one."""
    call = house.call("post", text="Hi")
    card = page.locator(ARMED)
    expect(card).to_be_visible()
    names = [button.inner_text().split("\n")[0] for button in card.locator(".actions > button").all()]
    assert names[:3] == ["Publish", "Save a draft", "Deny"]
    card.get_by_role("button", name="Save a draft").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("draft", "Hi")]
    expect(page.locator(".call.good")).to_contain_text("allowed, with the second button, by you")


@requirement("TOOL-67")
def test_deny_is_the_third_button_and_nothing_happens(house, page):
    """Whoever knows only two kinds of buttons must find the no."""
    call = house.call("post", text="Hi")
    deny(page, call)
    assert house.effects == []


@requirement("TOOL-67")
def test_a_second_button_that_cannot_be_undone_takes_two_acts_as_the_first_does(house, page):
    """One press is no consent to what cannot be taken back, whichever button it was."""
    call = house.call("post_for_good", text="Hi")
    card = page.locator(ARMED)
    card.get_by_role("button", name="Save a draft").click(force=True)  # It says that it cannot be pressed yet.
    expect(card.locator(".word")).to_be_focused()
    assert house.effects == []
    page.locator(ARMED).locator(".word").press_sequentially("allow")
    page.locator(ARMED).get_by_role("button", name="Save a draft").click()
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("draft", "Hi")]


@requirement("TOOL-67")
def test_the_api_takes_a_second_press_only_as_deliberately_as_a_first(house):
    """Without the word, with another digest, with edits, or for a tool without such a button: refused."""
    call = house.call("post_for_good", text="Hi")
    plain = house.call("publish", version="1", index="x")
    asked = {request.tool: request for request in house.waiting(2)}
    window = house.window()
    window.get("/page/state")
    card = asked["post_for_good"]
    good = {"call_id": card.call_id, "digest": card.digest, "action": "allow_second", "word": "allow"}
    assert window.post("/page/answer", {**good, "word": None})[0] == 400
    assert window.post("/page/answer", {**good, "digest": "0" * 64})[0] == 409
    assert window.post("/page/answer", {**good, "edits": {"text": "Bye"}})[0] == 400
    other = asked["publish"]
    assert window.post("/page/answer", {**good, "call_id": other.call_id, "digest": other.digest})[0] == 400
    assert house.effects == []
    assert window.post("/page/answer", good)[0] == 200
    assert call.result(PATIENCE_SECONDS).success
    assert house.effects == [("draft", "Hi")]
    house.session.cancel(other.call_id)
    assert plain.result(PATIENCE_SECONDS).kind == "denied"
