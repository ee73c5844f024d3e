"""Draw the card of the README: `python docs/pictures/draw.py` writes card.svg beside this file.

The card is a real one, drawn by the code that draws it in a terminal; nobody is asked and nothing runs.
"""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from lastword import Session, ToolRegistry, UserAction
from lastword.card import Face
from lastword.consent.approval import ApprovalRequest
from lastword.editor import ProjectEditor, ScriptEditorProvider
from lastword.terminal import card_layout
from lastword.tools.manifest import Manifest, Parameter
from lastword.tools.tool import Tool

WIDTH = 84
PICTURE = Path(__file__).parent / "card.svg"
BEFORE = '"""Greets people."""\n\n\ndef greet(name):\n    message = "Hello, " + name\n    print(message)\n'
AFTER = '"""Greets people."""\n\n\ndef greet(name):\n    return f"Welcome, {name}!"\n'
MENU = [
    ("a", "Write file"), ("d", "Deny"), ("r", "deny with a reason"), ("e", "edit"), ("p", "Show the change"),
    ("v", "exact values"), ("Esc", "close"),
]  # fmt: skip


def picture() -> str:
    """The SVG, the same every time."""
    # Recorded, and printed nowhere.
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor",
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    for line in lines():
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    svg = console.export_svg(title="lastword call write_file", theme=SVG_EXPORT_THEME, unique_id="card")
    # Who looks at a picture must not be reported to whoever serves its fonts.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def lines() -> list[Text]:
    """The card, with its menu."""
    with TemporaryDirectory() as folder:
        Path(folder, "hello.py").write_text(BEFORE)
        shown = Face.of(asyncio.run(ask(folder)))
    color = card_layout.accent(shown)
    prompt = card_layout.led(card_layout.PROMPT, color)
    return [*card_layout.draw(shown, WIDTH), *card_layout.menu(color, WIDTH, MENU), prompt]


async def ask(folder: str) -> ApprovalRequest:
    """Call a tool that changes a file, and keep the card instead of answering it."""
    cards: list[ApprovalRequest] = []

    async def look(request: ApprovalRequest) -> UserAction:
        cards.append(request)
        return request.close()

    async def request(params: dict[str, Any], editor: ScriptEditorProvider) -> dict[str, Any]:
        return {
            "message": "Returns the greeting instead of printing it.",
            "primary_button_label": "Write file",
            "preview_button": {
                "label": "Show the change",
                "action": lambda: editor.open_diff_editor(params["path"], AFTER),
            },
        }

    manifest = Manifest(
        id="write_file",
        display_name="Write File",
        description="Writes a file of the project.",
        icon="pencil",
        color="systemBlue",
        parameters=(Parameter("path", "string"), Parameter("encoding", "string")),
        effect="reversible",
        script_editor_only=True,
    )
    registry = ToolRegistry()
    registry.add(Tool(manifest, "assistant", lambda: None, request=request))
    async with Session(registry, approver=look, editor=ProjectEditor(folder)) as session:
        arguments = {"path": "hello.py", "encoding": "utf-8"}
        await session.call("write_file", arguments, origin="line 3 of tidy.nuwa")
    return cards[0]


if __name__ == "__main__":
    PICTURE.write_text(picture())
