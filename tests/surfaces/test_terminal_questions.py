"""What a running tool asks, and a second button that acts, on a real screen."""

import asyncio
from typing import Any

import pytest

from lastword import Closed, Declined, Given, Outcome, ToolContext, ToolRegistry, UserAction
from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.conftest import MakeTool, Run, session_at
from surfaces.screens import Terminal
from surfaces.test_chat import READY, request

FORM = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "Where to?"},
        "nights": {"type": "integer", "title": "How many nights?"},
        "pin": {"type": "string", "title": "Your pin", "secret": True},
    },
    "required": ["city", "nights"],
}


class Desk:
    """A session at a terminal with a tool that asks and one with two ways to act."""

    def __init__(self, terminal: Terminal, *, plain: bool = False) -> None:
        self.terminal = terminal
        self.heard: list[Any] = []
        self.effects: list[Any] = []
        registry = ToolRegistry()
        self.session = session_at(terminal, registry, plain=plain)

        @registry.tool(require_approval=False, display_name="Book a journey")
        async def book(context: ToolContext, message: str = "What shall I book?") -> str:
            """Books a train."""
            self.heard.append(await context.ask(message, FORM))
            return "done"

        def request() -> dict[str, str]:
            return {"message": "?", "primary_button_label": "Publish", "secondary_button_label": "Save a draft"}

        def post(text: str, user_action: UserAction) -> str:
            """Posts a text."""
            if not (user_action.primary_confirmed or user_action.secondary_confirmed):
                return "Then not."
            self.effects.append("post" if user_action.primary_confirmed else "draft")
            return "done"

        facts: dict[str, Any] = {"secondary_acts": True, "request": request}
        registry.tool(effect="reversible", **facts)(post)
        registry.tool(id="post_for_good", effect="irreversible", **facts)(post)

    def call(self, tool: str, **arguments: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.session.call(tool, arguments))


async def menu(terminal: Terminal, times: int = 1) -> None:
    """Until the question takes keys."""
    await terminal.until("[Esc] close", times)
    await terminal.until_sent("┆ ? ".encode(), times)


@requirement("TOOL-66")
async def test_a_question_is_filled_in_line_by_line_and_sent(terminal):
    """Who asks, in whose words, what there is to fill in, where it goes; then line by line, and one key sends it."""
    desk = Desk(terminal)
    call = desk.call("book")
    await menu(terminal)
    assert terminal.lines[:5] == [
        "┆ ? Book a journey wants to know something",
        "┆ book: Books a train.",
        "┆",
        "┆ The tool asks:",
        "┆   “ What shall I book?",
    ]
    assert "Your answer goes to book" in terminal.text
    assert "[f] fill in   [s] send answer   [k] rather not say   [Esc] close" in terminal.text
    await terminal.press_for("s", "“Where to?” has to be filled in first")
    await menu(terminal, 2)
    terminal.press("f")
    await terminal.press_at("1. Where to? (text):", "Rome\r")
    await terminal.press_at("2. How many nights? (whole number):", "two\r")
    await terminal.press_at("3. Your pin (secret, optional):", "hunter2\r", then="Your pin: ••••••")
    await menu(terminal, 3)
    await terminal.press_for("s", "Not sent: nights: this is no number")
    await menu(terminal, 4)
    terminal.press("f")
    await terminal.press_at("1. Where to? (text): Rome", "\r")
    await terminal.press_at("2. How many nights? (whole number): two", "\x15" + "2\r")
    await terminal.press_at("3. Your pin (secret, optional):", "hunter2\r")
    await menu(terminal, 5)
    terminal.press("s")
    assert (await call).success
    assert desk.heard == [Given({"city": "Rome", "nights": 2, "pin": "hunter2"})]
    assert b"hunter2" not in terminal.raw, "a secret is never on the screen"


@requirement("TOOL-66")
@pytest.mark.parametrize(("key", "answer"), [("k", Declined()), ("\x1b", Closed())])
async def test_declining_and_closing_are_two_keys(terminal, key, answer):
    """To decline is an answer, and to close is none."""
    desk = Desk(terminal)
    call = desk.call("book")
    await menu(terminal)
    terminal.press(key)
    await call
    assert desk.heard == [answer]


@requirement("TOOL-66")
async def test_the_keys_of_cards_mean_nothing_to_a_question(terminal):
    """Whoever presses what allows, denies or edits a card answers nothing here."""
    desk = Desk(terminal)
    call = desk.call("book")
    await menu(terminal)
    for times, key in enumerate("adrepvn2y", 1):
        terminal.press(key)
        await terminal.until_listening(times)
    terminal.press("\r")
    # Another hint takes its place as soon as the keys are quiet.
    await terminal.until_sent(b"Enter alone sends nothing", 1)
    assert desk.heard == []
    await terminal.press_until("k", "You would rather not say.")
    await call
    assert desk.heard == [Declined()]


@requirement("TOOL-66")
@pytest.mark.parametrize(
    "message",
    [
        "Approval needed.\n[a] Allow   [d] Deny",
        "╭─ ✎ Write Note\n│ Cannot be undone.\n╰▸ Type allow",
        "\u202eworg\u202c\x1b[2J\x1b[H[a] Allow",
        "A" * 60_000,
    ],
    ids=["words", "box", "escapes", "long"],
)
async def test_no_words_make_a_question_look_like_a_card(terminal, message):
    """Every line of a tool comes behind our bar and a quotation mark; no escape of its own reaches the screen."""
    desk = Desk(terminal)
    call = desk.call("book", message=message)
    await menu(terminal)
    assert all(line.startswith("┆") for line in terminal.lines), terminal.text
    for line in terminal.lines:
        if "Allow" in line or "╭" in line or "╰" in line:
            assert line.startswith("┆   “ "), line
    assert "\u202e".encode() not in terminal.raw
    assert b"\x1b[2J" not in terminal.raw
    assert len(terminal.lines) < 40, "a long text is folded"
    terminal.press("k")
    await call
    assert desk.heard == [Declined()]


@requirement("TOOL-66")
@pytest.mark.parametrize(("typed", "meant"), [("MB", "MB"), ("mb", "mb"), ("gb", "GB")])
async def test_choices_that_differ_in_case_are_told_apart(terminal, typed, meant):
    """Whoever typed MB was understood as mb, because that stood first."""
    desk = Desk(terminal)
    units = {"unit": {"type": "string", "enum": ["mb", "MB", "GB"]}}

    @desk.session.registry.tool(require_approval=False)
    async def measure(context: ToolContext) -> str:
        """Measures."""
        desk.heard.append(await context.ask("In what?", {"properties": units}))
        return "done"

    call = desk.call("measure")
    await menu(terminal)
    terminal.press("f")
    await terminal.press_at("1. unit (choice, optional):", f"{typed}\r", then=f"unit: {meant}")
    await menu(terminal, 2)
    terminal.press("s")
    assert (await call).success
    assert desk.heard == [Given({"unit": meant})]


@requirement("TOOL-66")
async def test_a_question_is_read_aloud_in_plain_words(terminal):
    """For screen readers and dumb terminals: words, and a secret that is not echoed."""
    desk = Desk(terminal, plain=True)
    call = desk.call("book")
    await terminal.until("rather not say, close.")
    assert "┆" not in terminal.text
    for number, typed in ((1, "Rome"), (2, "2"), (3, "hunter2")):
        terminal.press(f"fill {number}\n")
        await terminal.press_at(f"{['“Where to?”', '“How many nights?”', '“Your pin”'][number - 1]} (", f"{typed}\n", 2)
        await terminal.until("rather not say, close.", number + 1)
    terminal.press("send\n")
    assert (await call).success
    assert desk.heard == [Given({"city": "Rome", "nights": 2, "pin": "hunter2"})]
    assert b"hunter2" not in terminal.raw


@requirement("TOOL-67")
async def test_the_second_button_has_a_key_of_its_own_beside_deny(terminal):
    """Three acts, each with its name and key."""
    desk = Desk(terminal)
    call = desk.call("post", text="Hi")
    await terminal.until_menu()
    assert "[a] Publish   [2] Save a draft   [d] Deny" in terminal.text
    terminal.press("2")
    assert (await call).success
    assert desk.effects == ["draft"]
    await terminal.until("You chose: Save a draft")


@requirement("TOOL-67")
async def test_deny_stays_a_no_beside_a_second_button_that_acts(terminal):
    """The third act is the no."""
    desk = Desk(terminal)
    call = desk.call("post", text="Hi")
    await terminal.until_menu()
    terminal.press("d")
    assert (await call).kind == "denied"
    assert desk.effects == []


@requirement("TOOL-67")
async def test_a_second_button_that_cannot_be_undone_takes_a_word_as_well(terminal):
    """One key is no consent to what cannot be taken back, whichever button it was."""
    desk = Desk(terminal)
    call = desk.call("post_for_good", text="Hi")
    await terminal.until_menu()
    await terminal.press_for("2", "Type allow and press Enter to go on:")
    assert desk.effects == []
    terminal.press("allow\r")
    assert (await call).success
    assert desk.effects == ["draft"]


@requirement("TOOL-67")
async def test_the_second_button_takes_no_edited_call(terminal):
    """What was changed was shown for the first button alone."""
    desk = Desk(terminal)
    call = desk.call("post", text="Hi")
    await terminal.until_menu()
    terminal.press("e")
    await terminal.press_at("╰▸ Edit:", "text=Bye\r", then="text: Hi → Bye")
    await terminal.press_at("╰▸ Edit:", "\r")
    await terminal.until_menu(2)
    terminal.press("2")
    await terminal.until_sent(b"without your changes", 1)
    assert desk.effects == []
    await terminal.press_until("d", "You chose: Deny")
    assert (await call).kind == "denied"


@requirement("TOOL-67")
async def test_the_second_button_is_said_in_words_where_cards_are_read_aloud(terminal):
    """`allow` alone stays the first button."""
    desk = Desk(terminal, plain=True)
    call = desk.call("post", text="Hi")
    await terminal.press_at("allow (Publish), allow the second (Save a draft), deny,", "allow the second\n")
    assert (await call).success
    assert desk.effects == ["draft"]


ASK = """
FORM = {"type": "object", "properties": {"city": {"type": "string", "title": "Where to?"}}, "required": ["city"]}
def execute(params):
    answer = AssistantTool.ask_sync("What shall I book?", FORM)
    return {"success": True, "message": "It was " + repr(answer)}
AssistantTool.register_execute_tool(execute)
"""


@requirement("TOOL-66")
def test_a_folder_tool_asks_in_the_terminal_it_was_called_from(make_tool: MakeTool, run: Run) -> None:
    """The whole way of `lastword call`, with a plain function that waits in its thread."""
    make_tool("book", ASK, requireApproval=False)
    program = run("call", "book", "--tools", "tools")
    program.press_at("[f] fill in", "f")
    program.press_at("1. Where to? (text):", "Rome\r", then="  Where to?: Rome")
    program.press_at("[Esc] close", "s", 2)
    assert program.finish() == 0
    assert "It was Given(values={'city': 'Rome'})" in program.text


@requirement("TOOL-66", "TOOL-67")
def test_another_terminal_lists_a_question_declines_it_and_cannot_allow_it(make_tool: MakeTool, run: Run) -> None:
    """`lastword approvals` and `answer` know it for what it is."""
    make_tool("book", ASK, requireApproval=False)
    waiting = run("call", "book", "--tools", "tools", "--wait", "--store", "sqlite:///j.db")
    waiting.until("wants to know something. From any terminal: lastword answer ")
    listing = run("approvals", "--store", "sqlite:///j.db")
    assert listing.finish() == 0
    assert "book asks: “What shall I book?”" in listing.text
    call_id = next(line.split()[0] for line in listing.lines if "wants to know something" in line)
    allowing = run("answer", call_id, "--allow", "--store", "sqlite:///j.db")
    assert allowing.finish() != 0
    assert "no approval: there is nothing to allow" in allowing.text
    denying = run("answer", call_id, "--deny", "--store", "sqlite:///j.db")
    assert denying.finish() == 0
    assert "Declined" in denying.text
    assert waiting.finish() == 0
    assert "It was Declined()" in waiting.text


POST = """
def request(params):
    return {"message": "?", "primary_button_label": "Publish", "secondary_button_label": "Save a draft"}
def execute(params, user_action):
    if not (user_action.primary_confirmed or user_action.secondary_confirmed):
        return {"success": False, "message": "Then not."}
    return {"success": True, "message": "posted" if user_action.primary_confirmed else "kept as a draft"}
AssistantTool.register_approval_request(request)
AssistantTool.register_execute_tool_with_approval(execute)
"""


@requirement("TOOL-67")
def test_the_second_button_is_pressed_from_another_terminal(make_tool: MakeTool, run: Run) -> None:
    """`lastword answer ID --second`: a yes of its own, and refused where the tool has no such button."""
    make_tool("post", POST, secondaryActs=True)
    make_tool("plain", POST)
    for name, code in (("plain", 2), ("post", 0)):
        waiting = run("call", name, "--tools", "tools", "--wait", "--store", "sqlite:///j.db")
        waiting.until("lastword answer ")
        listing = run("approvals", "--store", "sqlite:///j.db")
        listing.finish()
        call_id = listing.lines[0].split()[0]
        answering = run("answer", call_id, "--second", "--store", "sqlite:///j.db")
        if not code:
            answering.type_by_hand("allow", "Type allow and press Enter to go on: ")
        assert (answering.finish() == 0) == (code == 0), answering.text
        if code:
            assert "the second button of this tool is a no" in answering.text
            assert run("answer", call_id, "--deny", "--store", "sqlite:///j.db").finish() == 0
        else:
            assert "Allowed." in answering.text
            assert waiting.finish() == 0
            assert "kept as a draft" in waiting.text


@requirement("TOOL-66")
def test_a_terminal_that_joins_finds_the_question_and_answers_it_for_all(make_tool: MakeTool, run: Run) -> None:
    """It stands in the conversation: whoever comes later sees it, and the terminal that has it loses it."""
    make_tool("book", ASK, requireApproval=False)
    with ScriptedModel([request("book"), "You go to Rome."]) as model:
        first = run("up", "--port", "0", "--tools", "tools", columns=150, LASTWORD_UPSTREAM=model.url)
        first.until("Ctrl+D stops.")
        first.until(READY)
        first.say("Book something.", "[f] fill in")
        second = run("chat", "--attach")
        second.press_at("[f] fill in", "f")
        second.press_at("1. Where to? (text):", "Rome\r", then="  Where to?: Rome")
        second.press_at("[Esc] close", "s", 2, then="Your answer was sent.")
        for program in (first, second):
            program.until("You go to Rome.")
        assert "This question waits no longer." in first.text
