"""The card on a real screen: what it shows, and which keys answer it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lastword import Outcome, Preset, Session, ToolRegistry
from lastword.editor import ProjectEditor
from lastword.tools import Effect, Manifest, Parameter, Tool
from requirements import requirement
from surfaces.conftest import approver_at, session_at
from surfaces.screens import Terminal


class Bench:
    """A session at a terminal with one tool, and what the tool did."""

    def __init__(self, terminal: Terminal, *, plain: bool = False, editor: ProjectEditor | None = None) -> None:
        self.terminal = terminal
        self.ran: list[dict[str, Any]] = []
        self.said: dict[str, Any] = {"message": "The assistant wants to write a note."}
        self.registry = ToolRegistry()
        self.session = session_at(terminal, self.registry, plain=plain, editor=editor)

    def tool(self, name: str = "write_note", **facts: Any) -> None:
        def execute(params: dict[str, Any]) -> dict[str, Any]:
            self.ran.append(params)
            return {"success": True, "message": "Written."}

        facts = {
            "id": name,
            "display_name": "Write Note",
            "description": "Writes a note.",
            "icon": "pencil",
            "parameters": (
                Parameter("path", "string", "Where."),
                Parameter("count", "number", "How often.", required=False),
            ),
            "effect": "reversible",
        } | facts
        self.registry.add(Tool(Manifest(**facts), "assistant", execute, request=lambda params: self.said))

    def ask(self, name: str = "write_note", **arguments: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.session.call(name, arguments or {"path": "a.md"}, origin="line 3 of tidy.nuwa"))

    async def asked(self, name: str = "write_note", **arguments: Any) -> asyncio.Task[Outcome]:
        """Ask, and wait until the card takes keys."""
        asking = self.ask(name, **arguments)
        await self.terminal.until_menu()
        return asking


@pytest.fixture
async def bench(terminal: Terminal) -> AsyncIterator[Bench]:
    bench = Bench(terminal)
    bench.tool()
    yield bench
    await bench.session.close()


@requirement("TOOL-1", "TOOL-44")
async def test_the_card_shows_what_would_run_before_it_asks(bench: Bench, terminal: Terminal) -> None:
    """Blind approval is the defect reported most: name, effect, origin and exact arguments come before the question."""
    bench.said = {"title": "A note", "message": "It will be short.", "primary_button_label": "Write file"}
    asking = await bench.asked(path="a.md", count=3)
    assert terminal.lines == [
        "╭─ ✎ Write Note  write_note",
        "│ Writes a note.",
        "│ Can be undone.",
        "│ Asked for by line 3 of tidy.nuwa.",
        "│",
        "│ Arguments:",
        "│   path   a.md",
        "│   count  3",
        "│",
        "│ The tool says:",
        "│ ▌ A note",
        "│ ▌ It will be short.",
        "│",
        "│ [a] Write file   [d] Deny   [r] deny with a reason   [e] edit   [v] exact values   [Esc] close",
        "╰▸",
    ]
    terminal.press("a")
    assert (await asking).kind == "succeeded"
    await terminal.until("╰▸ You chose: Write file")
    assert bench.ran == [{"path": "a.md", "count": 3}]


@requirement("TOOL-44")
async def test_a_narrow_card_breaks_its_lines_and_keeps_its_bar(narrow: Terminal) -> None:
    """On forty columns nothing may run over the edge: the terminal would break the line behind our bar."""
    bench = Bench(narrow)
    bench.tool(display_name="A tool with a rather long name for people to read")
    bench.said = {"message": "A message of many words, which must be broken between them and stay behind the bar."}
    asking = await bench.asked(path="/a/very/long/path/that/does/not/fit/into/forty/columns.md" + " and" * 200)
    assert [line for line in narrow.lines if not line.startswith(("╭", "│", "╰"))] == []
    assert "path  /a/very/long/path/that/" in narrow.text
    assert max(map(len, narrow.lines)) < 40
    narrow.press("d")
    assert (await asking).kind == "denied"


@requirement("TOOL-44")
async def test_a_card_without_colour_says_the_same(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is a promise; nothing on the card may depend on it."""
    monkeypatch.setenv("NO_COLOR", "1")
    bench = Bench(terminal)
    bench.tool(effect="irreversible")
    asking = await bench.asked()
    assert "│ Cannot be undone." in terminal.lines
    colours = {cell.fg for row in terminal.screen.buffer.values() for cell in row.values()}
    assert colours == {"default"}
    terminal.press("d")
    await asking


@requirement("TOOL-44")
async def test_only_the_frame_has_the_colour_of_the_tool(terminal: Terminal) -> None:
    """A tool may choose the colour of its frame, and not that of our words."""
    bench = Bench(terminal)
    bench.tool(color="systemGreen")
    asking = await bench.asked()
    colours = {
        line: [terminal.screen.buffer[line][column].fg for column in (0, 2)]
        for line, text in enumerate(terminal.screen.display)
        if text.startswith("│ ") and text[2] != " "
    }
    assert len(colours) >= 6
    assert all(frame == "green" and words == "default" for frame, words in colours.values())
    terminal.press("d")
    await asking


@requirement("TOOL-49")
async def test_enter_alone_never_approves(bench: Bench, terminal: Terminal) -> None:
    """Enter is what people press to get rid of something. It says so, in place, and nothing else happens."""
    asking = await bench.asked()
    terminal.press("\r")
    await terminal.until_sent(b"Enter alone does not answer", 1)
    height = len(terminal.lines)
    terminal.press("\n")
    terminal.press("x")
    await terminal.press_until("r", "Your reason")
    assert len(terminal.lines) == height
    terminal.press("no\r")
    assert (await asking).kind == "denied"
    assert bench.ran == []


@requirement("TOOL-40")
@pytest.mark.parametrize("key", ["\x1b", "\x03", "\x04"], ids=["Esc", "Ctrl+C", "Ctrl+D"])
async def test_esc_and_its_kin_close_the_card(bench: Bench, terminal: Terminal, key: str) -> None:
    """Closed is neither yes nor no, and certainly not yes."""
    asking = await bench.asked()
    terminal.press(key)
    outcome = await asking
    assert outcome.kind == "denied"
    assert "closed the question without answering" in outcome.message
    await terminal.until("╰▸ Closed without an answer.")


async def test_arrow_keys_and_unknown_keys_do_nothing(bench: Bench, terminal: Terminal) -> None:
    """An arrow begins with the byte of Esc; it must not close the card."""
    asking = await bench.asked()
    for times, key in enumerate(("\x1b[A", "\x1b[B", "ü", "x"), 1):
        terminal.press(key)
        await terminal.until_listening(times)
    assert not asking.done()
    terminal.press("d")
    assert "the person denied it" in (await asking).message


@requirement("TOOL-47")
async def test_a_denial_can_give_a_reason(bench: Bench, terminal: Terminal) -> None:
    """The assistant reads it, and can do better."""
    asking = await bench.asked()
    terminal.press("r")
    await terminal.press_at("Your reason", "wrong folder\r")
    outcome = await asking
    assert "Their reason: wrong folder" in outcome.message
    await terminal.until("╰▸ Denied: wrong folder")


async def test_esc_in_a_line_goes_back_to_the_card(bench: Bench, terminal: Terminal) -> None:
    """Who changes their mind about a reason has not answered the card."""
    asking = await bench.asked()
    terminal.press("r")
    await terminal.press_at("Your reason", "hm\x1b")
    await terminal.until_menu(2)
    assert not asking.done()
    terminal.press("a")
    assert (await asking).kind == "succeeded"


@requirement("TOOL-47")
async def test_edited_arguments_keep_their_types_and_are_what_runs(bench: Bench, terminal: Terminal) -> None:
    """`42` typed over a text is a text, over a number a number; and the assistant is told."""
    asking = await bench.asked(path="a.md", count=1)
    await terminal.press_for("e", "Edit: path, count.")
    await terminal.press_at("╰▸ Edit:", "path=42\r", then='│ path: a.md → "42"')
    await terminal.press_at("╰▸ Edit:", "count=42\r", then="│ count: 1 → 42")
    await terminal.press_at("╰▸ Edit:", "\r")
    await terminal.press_at("[a] Allow (edited)", "a")
    outcome = await asking
    assert bench.ran == [{"path": "42", "count": 42}]
    assert 'What ran: {"path":"42","count":42}' in outcome.message
    await terminal.until("╰▸ You chose: Allow (edited)")


@requirement("TOOL-47")
async def test_a_value_can_be_edited_where_it_stands(bench: Bench, terminal: Terminal) -> None:
    """A name alone brings its value to the cursor: nobody should retype a long text to change its end."""
    asking = await bench.asked()
    terminal.press("e")
    await terminal.press_at("╰▸ Edit:", "path\r")
    await terminal.press_at("╰▸ path = a.md", ".txt\r", then="a.md → a.md.txt")
    await terminal.press_at("╰▸ Edit:", "\r")
    await terminal.press_at("(edited)", "a")
    await asking
    assert bench.ran == [{"path": "a.md.txt"}]


@requirement("TOOL-47")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("count=many", "must be a number, found many"),
        ("pth=x", "did you mean path?"),
        ("count=true", "must be a number"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_in_words(
    bench: Bench, terminal: Terminal, typed: str, words: str
) -> None:
    """What a person types is checked like what a model sends, and nothing of it stays."""
    asking = await bench.asked()
    terminal.press("e")
    await terminal.press_at("╰▸ Edit:", f"{typed}\r", then=words)
    await terminal.press_at("╰▸ Edit:", "\r", then="Nothing was changed.")
    await terminal.until_menu(2)
    terminal.press("a")
    await asking
    assert bench.ran == [{"path": "a.md"}]


async def test_a_secret_is_masked_wherever_it_could_be_read(terminal: Terminal) -> None:
    """Scrollback is shared, recorded and photographed."""
    bench = Bench(terminal)
    bench.tool(parameters=(Parameter("token", "string", "A key.", secret=True),))
    asking = await bench.asked(token="hunter2")
    terminal.press("e")
    await terminal.press_at("╰▸ Edit:", "token\r")
    await terminal.press_at("token =", "swordfish\r", then="token: •••••• → ••••••")
    await terminal.press_at("╰▸ Edit:", "\r")
    await terminal.press_at("(edited)", "a")
    await asking
    assert bench.ran == [{"token": "swordfish"}]
    assert b"hunter2" not in terminal.raw
    assert b"swordfish" not in terminal.raw


@requirement("TOOL-6", "TOOL-49")
@pytest.mark.parametrize(
    ("effect", "words"),
    [("irreversible", "This cannot be undone."), (None, "Its tool does not say whether this can be undone.")],
)
async def test_what_cannot_be_undone_wants_a_word(terminal: Terminal, effect: Effect | None, words: str) -> None:
    """No single key may publish, delete or send; and whoever does not say is taken to do it for good."""
    bench = Bench(terminal)
    bench.tool(effect=effect)
    asking = await bench.asked()
    assert "[a] Allow…" in terminal.text
    await terminal.press_for("a", "Type allow and press Enter")
    assert words in terminal.text
    await terminal.press_for("\r", "the word allow was not typed")
    await terminal.until_menu(2)
    assert bench.ran == []
    terminal.press("a")
    await terminal.press_at("Type allow and press Enter", "allow\r")
    assert (await asking).kind == "succeeded"


@requirement("TOOL-6")
@pytest.mark.parametrize("effect", ["none", "reversible"])
async def test_a_tool_that_says_what_it_does_is_allowed_with_one_key(terminal: Terminal, effect: Effect) -> None:
    """Two acts for everything would be typed without reading. One word of a tool's author makes it one key."""
    bench = Bench(terminal)
    bench.tool(effect=effect)
    asking = await bench.asked()
    assert "[a] Allow   " in terminal.text
    terminal.press("a")
    assert (await asking).kind == "succeeded"


@pytest.mark.usefixtures("unhurried")
async def test_keys_typed_before_the_card_can_be_read_are_thrown_away(bench: Bench, terminal: Terminal) -> None:
    """A key meant for an unseen prompt must never answer one."""
    terminal.press("aaaa\r")
    asking = bench.ask()
    await terminal.until("The tool says")
    terminal.press("a")  # the card is there, and nobody can have read it yet
    await terminal.until_menu()
    await asyncio.wait({asking}, timeout=0.2)
    assert not asking.done()
    terminal.press("d")
    assert (await asking).kind == "denied"
    assert bench.ran == []


async def test_a_pasted_text_answers_nothing(bench: Bench, terminal: Terminal) -> None:
    """Several keys at once are no person's answer."""
    asking = await bench.asked()
    terminal.press("a\r")
    await terminal.until_listening()
    assert not asking.done()
    terminal.press("d")
    await asking
    assert bench.ran == []


@requirement("TOOL-47")
@pytest.mark.usefixtures("unhurried")
async def test_cards_come_one_at_a_time_and_a_double_press_answers_only_one(bench: Bench, terminal: Terminal) -> None:
    """A second press of the same key is meant for the first card."""
    calls = [bench.ask(path="one.md"), bench.ask(path="two.md")]
    await terminal.until_menu()
    await terminal.until("╰▸ (1 more waiting)")
    # Cards are drawn in threads, so either may be the first.
    shown = "one.md" if "one.md" in terminal.text else "two.md"
    assert terminal.text.count("Arguments:") == 1
    terminal.press("a")
    await terminal.press_at("You chose: Allow", "a")
    await terminal.until_menu(2)
    assert sum(call.done() for call in calls) == 1
    terminal.press("d")
    assert sorted([(await call).kind for call in calls]) == ["denied", "succeeded"]
    assert bench.ran == [{"path": shown}]


async def test_a_card_answered_elsewhere_gives_the_terminal_back(bench: Bench, terminal: Terminal) -> None:
    """Every prompt exists once: what another window answered is not asked here any more."""
    asking = await bench.asked()
    [request] = bench.session.pending()
    bench.session.answer(request.call_id, request.allow(), by="the page")
    assert (await asking).kind == "succeeded"
    await terminal.until("This card waits no longer")
    follow = bench.ask()
    await terminal.until_menu(2)
    terminal.press("d")
    assert (await follow).kind == "denied"


@requirement("TOOL-41")
@pytest.mark.parametrize(
    ("preset", "tool", "words"),
    [
        (False, False, ""),
        (False, True, "│ Asked because your preset does not auto-approve."),
        (True, False, "│ Asked because this tool must not be auto-approved."),
    ],
)
async def test_the_card_says_which_half_of_auto_approval_is_missing(
    terminal: Terminal, preset: bool, tool: bool, words: str
) -> None:
    """Who is asked although one key is there must be told why. Where none is, a sentence would only be noise."""
    bench = Bench(terminal)
    bench.tool(auto_approve=tool)
    bench.session.preset = Preset(auto_approve=preset)
    asking = await bench.asked()
    assert [line for line in terminal.lines if "auto-approve" in line] == ([words] if words else [])
    terminal.press("d")
    await asking


async def test_a_button_that_says_no_cannot_mean_yes(bench: Bench, terminal: Terminal) -> None:
    """The label is the tool's. One that calls its yes Cancel is shown for what it is."""
    bench.said = {"message": "Hm.", "primary_button_label": "Cancel", "secondary_button_label": "Allow"}
    asking = await bench.asked()
    assert "[a] Allow (the tool calls it “Cancel”)" in terminal.text
    terminal.press("d")
    assert (await asking).kind == "denied"


@requirement("TOOL-46", "EDIT-5")
async def test_the_preview_is_on_the_card_and_in_full_on_request(terminal: Terminal, tmp_path: Path) -> None:
    """A long change folds, says how much is folded, and `p` shows every line of it."""
    file = tmp_path / "a.txt"
    file.write_text("".join(f"line {n}\n" for n in range(40)))
    bench = Bench(terminal, editor=ProjectEditor(tmp_path))
    changed = "".join(f"Line {n}\n" for n in range(40))

    async def request(params: dict[str, Any], editor: Any) -> dict[str, Any]:
        button = {"label": "Show the change", "action": lambda: editor.open_diff_editor("a.txt", changed)}
        return {"message": "It changes a.txt.", "preview_button": button}

    manifest = Manifest(id="tidy", display_name="Tidy", description="Tidies.", script_editor_only=True)
    bench.registry.add(Tool(manifest, "assistant", lambda: {"success": True, "message": ""}, request=request))
    asking = asyncio.create_task(bench.session.call("tidy"))
    await terminal.until("[p] Show the change")
    assert "│    9    -line 8" in terminal.lines
    assert "│       8 +Line 7" in terminal.lines
    assert "+Line 39" not in terminal.text
    assert "│   … 61 more lines: p shows them" in terminal.lines
    await terminal.press_for("p", "+Line 39")
    await terminal.press_at("[p] Show the change", "d")
    assert (await asking).kind == "denied"
    assert file.read_text().startswith("line 0")


@requirement("TOOL-45")
async def test_a_card_that_is_asked_again_says_why(bench: Bench, terminal: Terminal) -> None:
    """The same question twice looks like a fault, unless it says what changed in between."""
    asking = await bench.asked()
    tool = bench.registry.lookup("write_note")
    bench.registry.unregister("write_note")
    bench.tool(description="Writes another note.")
    assert tool.digest != bench.registry.lookup("write_note").digest
    await terminal.press_for("a", "│ Asked again: the tool changed while the question waited.")
    await terminal.until_menu(2)
    terminal.press("d")
    assert (await asking).kind == "denied"


async def test_closing_from_outside_is_closing(bench: Bench, terminal: Terminal) -> None:
    """Ctrl+C reaches a program as a signal when its card does not read keys; the card can then be closed."""
    approver = approver_at(terminal)
    assert not approver.close()
    session = Session(bench.registry, approver=approver)
    asking = asyncio.create_task(session.call("write_note", {"path": "a.md"}))
    await terminal.until_menu()
    assert approver.close()
    assert "closed the question" in (await asking).message
    assert bench.ran == []


@requirement("TOOL-49")
async def test_a_terminal_that_goes_away_is_nobody(bench: Bench, terminal: Terminal) -> None:
    """Who closed the window has not answered. Nothing runs, and it is not called a refusal."""
    asking = await bench.asked()
    terminal.hang_up()
    assert (await asking).kind == "no_approver"
    assert bench.ran == []


@requirement("TOOL-44")
async def test_the_line_that_edits_a_value_marks_what_cannot_be_seen(bench: Bench, terminal: Terminal) -> None:
    """A name that turns its letters round would be allowed for another one; marks are drawn and never become text."""
    hidden = "pay\u202egpj.exe\u200b"
    asking = await bench.asked(path=hidden)
    terminal.press("e")
    await terminal.press_at("╰▸ Edit:", "path\r", then="╰▸ path = pay‹U+202E›gpj.exe‹U+200B›")
    terminal.press("\x1b[D\x7fX\r")  # one step left passes the whole mark, and what is erased is the letter before it
    await terminal.until("→ pay‹U+202E›gpj.exX‹U+200B›")
    await terminal.press_at("╰▸ Edit:", "\r")
    await terminal.press_at("(edited)", "a")
    await asking
    assert bench.ran == [{"path": "pay\u202egpj.exX\u200b"}]
    assert "\u202e" not in terminal.raw.decode()
    assert "\u200b" not in terminal.raw.decode()


@requirement("TOOL-44")
@pytest.mark.parametrize(
    ("value", "shown", "exact"),
    [
        ("a.md", "a.md", '"a.md"'),
        ("3", '"3"', '"3"'),
        ("true", '"true"', '"true"'),
        ("", '""', '""'),
        (" x", '" x"', '" x"'),
        ('say "hi"', 'say "hi"', '"say \\"hi\\""'),
        ("one\ntwo\n", "┊ one", '┊ "one\\n'),
    ],
)
async def test_a_text_is_shown_as_it_is_read_and_exactly_with_one_key(
    bench: Bench, terminal: Terminal, value: str, shown: str, exact: str
) -> None:
    """Backslashes and quotation marks are for programs; what could be taken for something else keeps its quotes."""
    asking = await bench.asked(path=value)
    assert f"│   path  {shown}" in terminal.lines
    terminal.press("v")
    await terminal.until_menu(2)
    assert f"│   path  {exact}" in terminal.lines
    terminal.press("d")
    await asking


@requirement("NUWA-80")
async def test_after_three_denials_in_a_row_a_key_denies_the_rest_of_the_script(terminal: Terminal) -> None:
    """Nobody presses the same key two hundred times. Until then the key is not there."""
    bench = Bench(terminal)
    bench.tool()
    text = 'FOR n IN RANGE(200) DO LET r = TRY CALL write_note { path: "a.md", count: n } END STOP "told"'
    run = asyncio.create_task(bench.session.run_script(text))
    for number in range(3):
        await terminal.until_menu(number + 1)
        assert "deny the rest" not in terminal.text
        await terminal.press_for("d", "You chose: Deny", number + 1)
    await terminal.until("[n] deny the rest of the script")
    await terminal.until_menu(4)
    assert "You denied the last 3 calls" in terminal.text
    terminal.press("n")
    ended = await run
    assert (ended.output, bench.ran) == (["told"], [])
    await terminal.until("Denied, and so is the rest of the script")
