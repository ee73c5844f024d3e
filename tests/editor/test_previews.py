"""What a tool shows is seen by somebody, or its author hears that it is not."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastword import ProjectEditor, Session, ToolRegistry
from lastword.editor.provider import Preview, ScriptEditorProvider
from lastword.testing import FixedApprover
from lastword.tools import Manifest, Tool
from requirements import requirement

Action = Callable[[ScriptEditorProvider], Any]


def previewing(action: Action) -> ToolRegistry:
    """A tool whose preview button does this."""

    def request(editor: ScriptEditorProvider) -> dict[str, Any]:
        return {"message": "Change it?", "preview_button": {"label": "Show", "action": lambda: action(editor)}}

    def execute() -> dict[str, Any]:
        return {"success": True, "message": "."}

    registry = ToolRegistry()
    manifest = Manifest(id="show", display_name="Show", description="Shows.")
    registry.add(Tool(manifest, "assistant", execute, request=request, code=b"show"))
    return registry


@requirement("TOOL-46")
@pytest.mark.parametrize("result", [{"title": "a diff"}, ["one"], 7], ids=["dict", "list", "number"])
async def test_a_preview_that_cannot_be_shown_is_no_card(folder: Path, result: Any):
    """The button would be gone without a word, and the person would be asked about less than the tool wants to show."""
    approver = FixedApprover()
    async with Session(previewing(lambda editor: result), approver=approver, editor=ProjectEditor(folder)) as session:
        outcome = await session.call("show")
    assert outcome.kind == "refused"
    words = f"its preview returned a {type(result).__name__}, which cannot be shown"
    assert words in outcome.message
    assert approver.requests == []


@pytest.mark.parametrize(
    "action",
    [
        lambda editor: "a text",
        lambda editor: editor.open_diff_editor("notes.txt", "new\n"),
        lambda editor: [editor.open_diff_editor(path, "new\n") for path in ("notes.txt", "other.txt")],
    ],
    ids=["text", "diff", "list of diffs"],
)
async def test_a_preview_that_shows_something_has_its_button(folder: Path, action: Action):
    """Whatever it returns besides."""
    approver = FixedApprover()
    async with Session(previewing(action), approver=approver, editor=ProjectEditor(folder)) as session:
        assert (await session.call("show")).success
    assert approver.requests[0].preview_label == "Show"
    assert approver.requests[0].preview


async def showing(editor: ScriptEditorProvider) -> str:
    """Shows where nobody looks."""
    editor.open_diff_editor("notes.txt", "new\n")
    return "done"


@requirement("EDIT-5")
async def test_a_diff_that_is_shown_after_the_card_is_told_to_the_author(folder: Path, caplog):
    """An editor without a screen of its own shows what cards show; in the execute function there is none any more."""
    registry = ToolRegistry()
    registry.tool(require_approval=False)(showing)
    with caplog.at_level(logging.WARNING, "lastword"):
        async with Session(registry, editor=ProjectEditor(folder)) as session:
            assert (await session.call("showing")).success
    assert "open_diff_editor('notes.txt') in an execute function shows nothing" in caplog.text
    assert "Call it in the request function" in caplog.text
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


@requirement("EDIT-5")
async def test_a_diff_that_is_shown_on_a_screen_is_seen_at_any_time(folder: Path, caplog):
    """Whoever has a screen for it gets the same data that a card is drawn from."""
    shown: list[Preview] = []
    registry = ToolRegistry()
    registry.tool(require_approval=False)(showing)
    with caplog.at_level(logging.WARNING, "lastword"):
        async with Session(registry, editor=ProjectEditor(folder, show=shown.append)) as session:
            assert (await session.call("showing")).success
    assert [(preview.path, preview.base, preview.proposed) for preview in shown] == [
        ("notes.txt", "one\ntwo\n", "new\n")
    ]
    assert caplog.text == ""
