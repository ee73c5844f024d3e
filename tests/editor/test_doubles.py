"""The doubles of an editor: what is shown is seen by somebody, and what was shown is what is written."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreign import ForeignEditor

from lastword import ProjectEditor, Session, ToolRegistry
from lastword.editor import Change, Preview, RecordingEditor, ScriptEditorProvider, SealedEditor, still_current
from lastword.errors import Conflict, EditError, NotAllowedNow
from lastword.testing import FixedApprover
from lastword.tools import Manifest, Tool
from lastword.values import digest
from requirements import requirement

WRITES = [
    ("update_file_content", ("a.txt", "new\n")),
    ("write_to_file", ("a.txt", "new\n")),
    ("insert_content", ("a.txt", [{"start_line": 1, "content": "other"}])),
    ("replace_in_file", ("a.txt", [{"start_line": 1, "content": "new"}])),
    ("delete_file", ("a.txt",)),
    ("rename_file", ("a.txt", "b.txt")),
    ("restore", (Change("a.txt", b"", b"old\n"),)),
]


@pytest.fixture
def editor() -> ForeignEditor:
    return ForeignEditor({"a.txt": "old\n", "b.txt": "other\n"})


@pytest.mark.parametrize(("method", "arguments"), WRITES)
async def test_a_write_in_the_request_phase_is_refused_and_noted(editor: ForeignEditor, method: str, arguments):
    """The note stays when the tool swallows the exception."""
    recorder = RecordingEditor(editor)
    with pytest.raises(NotAllowedNow, match="nothing may be written before a person has agreed"):
        await getattr(recorder, method)(*arguments)
    assert recorder.attempts == [f"{method} a.txt"]
    assert editor.files == {"a.txt": "old\n", "b.txt": "other\n"}


async def test_a_diff_becomes_data_and_reaches_no_screen(editor: ForeignEditor):
    """What was shown is sealed and stored, so it must be data, with the digest of what it was shown against."""
    recorder = RecordingEditor(editor)
    assert await recorder.get_file_content("a.txt") == "old\n"
    recorder.open_diff_editor("a.txt", "new\n")
    recorder.open_diff_editor("c.txt", "created\n")
    assert recorder.previews == (
        Preview("a.txt", digest(b"old\n"), "old\n", "new\n"),
        Preview("c.txt", None, None, "created\n"),
    )
    assert editor.shown == []


async def test_the_second_diff_of_a_file_takes_the_place_of_the_first(editor: ForeignEditor):
    """Two contents for one path could not both be what runs."""
    recorder = RecordingEditor(editor)
    recorder.open_diff_editor("c.txt", "first")
    recorder.open_diff_editor("c.txt", "second")
    assert [preview.proposed for preview in recorder.previews] == ["second"]


async def test_a_diff_of_an_unread_foreign_file_says_what_to_do(editor: ForeignEditor):
    """Reading is async and showing is not, so the base is known only when it was read before."""
    with pytest.raises(EditError, match=r"await editor\.get_file_content"):
        RecordingEditor(editor).open_diff_editor("a.txt", "new\n")


async def test_files_that_changed_since_they_were_read_are_named(editor: ForeignEditor):
    """Changed, gone and newly there all make an approval stale; what stayed the same does not."""
    recorder = RecordingEditor(editor)
    await recorder.get_file_content("a.txt")
    await recorder.get_file_content("b.txt")
    await recorder.get_file_content("absent.txt")
    assert not recorder.exists("also-absent.txt")
    assert await still_current(editor, recorder.reads) == []
    editor.files |= {"a.txt": "moved on\n", "also-absent.txt": "here now"}
    assert await still_current(editor, recorder.reads) == ["a.txt", "also-absent.txt"]
    del editor.files["b.txt"]
    assert await still_current(editor, recorder.reads) == ["a.txt", "also-absent.txt", "b.txt"]


async def test_a_second_read_does_not_freshen_the_first(editor: ForeignEditor):
    """The tool may have decided on what it saw first."""
    recorder = RecordingEditor(editor)
    await recorder.get_file_content("a.txt")
    editor.files["a.txt"] = "moved on\n"
    await recorder.get_file_content("a.txt")
    assert await still_current(editor, recorder.reads) == ["a.txt"]


def test_what_only_looks_passes_through(editor: ForeignEditor):
    """The tool sees the real project in both phases."""
    for double in (RecordingEditor(editor), SealedEditor(editor)):
        assert double.script_name == "foreign"
        assert double.exists("a.txt")
        assert double.get_all_files() == ["a.txt", "b.txt"]
        assert double.get_all_folders() == []
        assert double.get_lint_errors() == {"a.txt": [{"line": 1, "message": "odd"}]}


SHOWN = Preview("a.txt", digest(b"old\n"), "old\n", "new\nold\n")


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("update_file_content", "new\nold\n"),
        ("write_to_file", "new\nold\n"),
        ("insert_content", [{"start_line": 1, "content": "new"}]),
    ],
)
async def test_exactly_what_was_shown_may_be_written(editor: ForeignEditor, method: str, argument):
    """By whichever method: what counts is what the file becomes."""
    sealed = SealedEditor(editor, [SHOWN])
    assert await getattr(sealed, method)("a.txt", argument)
    assert editor.files["a.txt"] == "new\nold\n"
    assert sealed.violations == []
    assert sealed.changes == [Change("a.txt", b"old\n", b"new\nold\n")]


@pytest.mark.parametrize(("method", "arguments"), WRITES)
async def test_another_content_than_the_one_shown_is_refused_and_noted(editor: ForeignEditor, method: str, arguments):
    """Consent covers what was shown."""
    sealed = SealedEditor(editor, [SHOWN])
    with pytest.raises(NotAllowedNow, match="refused"):
        await getattr(sealed, method)(*arguments)
    assert len(sealed.violations) == 1
    assert sealed.violations[0].startswith(f"{method} a.txt")
    assert editor.files == {"a.txt": "old\n", "b.txt": "other\n"}
    assert sealed.changes == []


@pytest.mark.parametrize(("method", "arguments"), WRITES)
async def test_with_a_preview_no_other_path_may_be_written(editor: ForeignEditor, method: str, arguments):
    """A tool that shows one file and writes another as well would have shown half of what it does."""
    sealed = SealedEditor(editor, [Preview("b.txt", digest(b"other\n"), "other\n", "new\n")])
    with pytest.raises(NotAllowedNow):
        await getattr(sealed, method)(*arguments)
    assert len(sealed.violations) == 1
    assert editor.files == {"a.txt": "old\n", "b.txt": "other\n"}


@pytest.mark.parametrize("method", ["insert_content", "replace_in_file"])
async def test_an_edit_of_an_absent_file_that_was_not_shown_is_refused(editor: ForeignEditor, method: str):
    """An editor that creates files on insertion must not be reached through a path that nobody saw."""
    sealed = SealedEditor(editor, [SHOWN])
    with pytest.raises(NotAllowedNow):
        await getattr(sealed, method)("absent.txt", [{"start_line": 1, "content": "x"}])


async def test_a_file_changed_after_it_was_shown_is_not_overwritten(editor: ForeignEditor):
    """The last look before the write, after every earlier check."""
    editor.files["a.txt"] = "moved on\n"
    with pytest.raises(Conflict, match="the file changed after it was shown"):
        await SealedEditor(editor, [SHOWN]).update_file_content("a.txt", "new\nold\n")
    assert editor.files["a.txt"] == "moved on\n"


async def test_writing_the_shown_content_twice_is_one_change(editor: ForeignEditor):
    """What this editor itself has written is no stranger's change."""
    sealed = SealedEditor(editor, [SHOWN])
    assert await sealed.update_file_content("a.txt", "new\nold\n")
    assert await sealed.update_file_content("a.txt", "new\nold\n")
    assert sealed.changes == [Change("a.txt", b"old\n", b"new\nold\n")]


async def test_without_previews_everything_may_be_written_and_is_noted(editor: ForeignEditor):
    """The person agreed to the arguments alone; undo still needs what was there."""
    sealed = SealedEditor(editor)
    assert await sealed.write_to_file("c.txt", "created\n")
    assert await sealed.insert_content("a.txt", [{"start_line": 2, "content": "more"}])
    assert await sealed.replace_in_file("b.txt", [{"start_line": 1, "content": "less"}])
    assert not await sealed.update_file_content("absent.txt", "x")
    assert sealed.changes == [
        Change("c.txt", None, b"created\n"),
        Change("a.txt", b"old\n", b"old\nmore\n"),
        Change("b.txt", b"other\n", b"less\n"),
    ]


async def test_a_preview_that_is_only_words_says_nothing_about_files(editor: ForeignEditor):
    """A tool may show a text before it asks; the files it writes are then as free as with no preview."""
    sealed = SealedEditor(editor, [Preview("", None, None, "I will tidy up.")])
    assert await sealed.update_file_content("a.txt", "new\n")


async def test_line_endings_that_the_file_replaces_make_no_difference():
    """A model writes one kind of line ending; the file keeps its own, in the preview as in the write."""
    editor = ForeignEditor({"a.txt": "old\r\n"})
    sealed = SealedEditor(editor, [Preview("a.txt", digest(b"old\r\n"), "old\r\n", "new\r\n")])
    assert await sealed.update_file_content("a.txt", "new\n")
    assert editor.files["a.txt"] == "new\r\n"


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
