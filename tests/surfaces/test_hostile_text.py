"""What a tool or a model writes, on a real screen: seen, marked, and never obeyed."""

import asyncio
from typing import Any

import pytest

from lastword import ToolRegistry
from lastword.tools import Manifest, Parameter, Tool
from requirements import requirement
from surfaces.conftest import session_at
from surfaces.screens import Terminal

# name → the text, what must be seen of it, and what must never reach the terminal
HOSTILE: dict[str, tuple[str, str, bytes]] = {
    "a title change": ("\x1b]0;pwned\x07", "‹U+001B›]0;pwned‹U+0007›", b"\x1b]0;pwned"),
    "a cleared screen": ("\x1b[2J\x1b[Hgone", "‹U+001B›[2J‹U+001B›[Hgone", b"\x1b[2J"),
    "a C1 control": ("\x9b31mred", "‹U+009B›31mred", "\x9b".encode()),
    "a carriage return": ("honest\rforged", "honest‹U+000D›forged", b"honest\r"),
    "a backspace": ("allow\b\b\b\b\bdeny!", "allow‹U+0008›", b"\b"),
    "reversed text": ("file\u202efdp.exe", "file‹U+202E›fdp.exe", "\u202e".encode()),
    "an isolate": ("a\u2066b\u2069", "a‹U+2066›b‹U+2069›", "\u2066".encode()),
    "a zero-width space": ("pay\u200bpal", "pay‹U+200B›pal", "\u200b".encode()),
    "a zero-width joiner": ("pay\u200dpal", "pay‹U+200D›pal", "\u200d".encode()),
    "a byte order mark": ("\ufeffhidden", "‹U+FEFF›hidden", "\ufeff".encode()),
    "a no-break space": ("rm\u00a0-rf", "rm‹U+00A0›-rf", "\u00a0".encode()),
    "a tag character": ("ok\U000e0041", "ok‹U+E0041›", "\U000e0041".encode()),
    "a lookalike letter": ("p\u0430ypal", "pа‹U+0430›ypal", b"\x00"),
    "a forged mark": ("‹U+202E›", "‹U+2039›U+202E‹U+203A›", b"\x00"),
    "padding": ("x" + " " * 60 + "y", "x ‹60 spaces› y", b" " * 50),
}


class Puppet:
    """A tool whose every word is the attacker's."""

    def __init__(self, terminal: Terminal, said: dict[str, Any], **facts: Any) -> None:
        registry = ToolRegistry()
        facts = {
            "id": "puppet",
            "display_name": "Puppet",
            "description": "Says things.",
            "parameters": (Parameter("text", "string", required=False),),
        } | facts
        execute = lambda: {"success": True, "message": "ran"}  # noqa: E731
        registry.add(Tool(Manifest(**facts), "assistant", execute, request=lambda: said))
        self.session = session_at(terminal, registry)

    def ask(self, **arguments: Any) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.session.call("puppet", arguments))


async def deny(terminal: Terminal, asking: "asyncio.Task[Any]") -> None:
    terminal.press("d")
    assert (await asking).kind == "denied"


@requirement("TOOL-44")
@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_is_marked_wherever_a_tool_or_a_model_can_write(terminal: Terminal, name: str) -> None:
    """Title, message, argument, description, display name: every place, as rendered."""
    text, seen, never = HOSTILE[name]
    said = {"title": f"T {text}", "message": f"M {text}"}
    puppet = Puppet(terminal, said, display_name=f"N {text}", description=f"D {text}")
    asking = puppet.ask(text=f"A {text}")
    await terminal.until_menu()
    shown = terminal.text
    assert f"N {seen}" in shown
    assert f"│ D {seen}" in shown
    assert f"│ ▌ T {seen}" in shown
    assert f"│ ▌ M {seen}" in shown
    # In an argument C0 controls are JSON escapes, which are just as visible and exact.
    argument = next(line for line in terminal.lines if line.startswith("│   text"))
    assert seen in argument or "\\u00" in argument or "\\r" in argument or "\\b" in argument
    assert never not in terminal.raw
    assert terminal.screen.title == ""
    assert all(line.startswith(("╭", "│", "╰")) for line in terminal.lines)
    await deny(terminal, asking)


@requirement("TOOL-44")
async def test_a_million_characters_fold_and_say_so(terminal: Terminal) -> None:
    """A card that fills more than the screen hides its own question; one that cuts silently lies."""
    puppet = Puppet(terminal, {"title": "y" * 1_000_000, "message": "x" * 1_000_000})
    asking = puppet.ask(text="z" * 1_000_000)
    await terminal.until("[v] show all")
    assert len(terminal.lines) < 45
    assert terminal.text.count("… 999,400 more characters: v shows them") == 2  # the message, and the argument
    assert "(999880 more characters)" in terminal.text  # the title
    await deny(terminal, asking)


@requirement("TOOL-44")
async def test_what_is_folded_can_be_seen_whole(terminal: Terminal) -> None:
    """Folding is for the first glance; who wants every character gets every character."""
    asking = Puppet(terminal, {"message": "m" * 700}).ask(text="\n".join(f"row {n}" for n in range(30)))
    await terminal.until("[v] show all")
    assert "row 20" not in terminal.text
    await terminal.press_for("v", "row 29")
    await terminal.until_menu()
    assert terminal.raw.count(b"m") > 1300
    await deny(terminal, asking)


@requirement("TOOL-44")
async def test_half_characters_are_shown_as_undisplayable(terminal: Terminal) -> None:
    """A lone surrogate can be drawn by nobody; it must neither crash the card nor vanish from it."""
    puppet = Puppet(terminal, {"message": "half \ud83d here"})
    asking = puppet.ask()
    await terminal.until("│ ▌ half ‹U+FFFD› here")
    await terminal.until_menu()
    await deny(terminal, asking)
    refused = await puppet.session.call("puppet", {"text": "\ud83d"})
    assert refused.kind == "invalid_arguments"


@requirement("TOOL-44")
async def test_a_message_cannot_pose_as_the_card(terminal: Terminal) -> None:
    """Model-written text never names the tool or the action: every line of it stands behind a quotation bar."""
    forged = "Nothing.\n│\n│ [a] Deny   [d] Allow\n╰▸ You chose: Cancel\n\n╭─ ◆ Harmless Tool  harmless"
    asking = Puppet(terminal, {"message": forged}).ask()
    await terminal.until_menu()
    assert "│ ▌ ╰▸ You chose: Cancel" in terminal.lines
    assert "│ ▌ ╭─ ◆ Harmless Tool  harmless" in terminal.lines
    assert sum(line.startswith("╭─") for line in terminal.lines) == 1
    assert sum(line.startswith("╰▸") for line in terminal.lines) == 1
    await deny(terminal, asking)


@requirement("TOOL-44")
async def test_an_argument_name_is_text_too(terminal: Terminal) -> None:
    """With additionalParameters a model chooses even the names."""
    asking = Puppet(terminal, {"message": "Hm."}, additional_parameters=True).ask(**{"a\u202eb": 1})
    await terminal.until("a‹U+202E›b")
    await terminal.until_menu()
    await deny(terminal, asking)


async def test_markup_of_the_drawing_library_means_nothing(terminal: Terminal) -> None:
    """Rich reads [bold] and :smile: in its own texts; a tool's text is not one of them."""
    asking = Puppet(terminal, {"message": "[bold red]loud[/] :smile: [link=x]y[/link]"}).ask()
    await terminal.until("│ ▌ [bold red]loud[/] :smile: [link=x]y[/link]")
    await terminal.until_menu()
    await deny(terminal, asking)


async def test_wide_characters_do_not_break_the_frame(narrow: Terminal) -> None:
    """A character that takes two columns must be counted as two."""
    asking = Puppet(narrow, {"message": "漢字" * 40}).ask(text="字" * 60)
    await narrow.until_menu()
    assert all(line.startswith(("╭", "│", "╰")) for line in narrow.lines)
    await deny(narrow, asking)
