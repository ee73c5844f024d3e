"""The editor's tools on a real screen: the card with its diff, and a function renamed across a project."""

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword import Outcome, Session, ToolRegistry
from lastword.card import face
from lastword.editor import Preview, ProjectEditor, editor_tools
from lastword.testing import FixedApprover
from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.conftest import Run, session_at
from surfaces.screens import Terminal, piped

ROOT = Path(__file__).parents[2]


class Desk:
    """A session at a terminal, with the editor's tools on a small project."""

    def __init__(self, terminal: Terminal, folder: Path, *, plain: bool = False) -> None:
        registry = ToolRegistry()
        editor_tools(registry)
        self.terminal = terminal
        self.folder = folder
        self.session = session_at(terminal, registry, plain=plain, editor=ProjectEditor(folder))

    def ask(self, tool: str, **arguments: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.session.call(tool, arguments, origin="line 3 of tidy.nuwa"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "greet.py").write_text('def greet(name):\n    print("Hello, " + name)\n\n\ngreet("you")\n')
    (project / "notes.txt").write_text("one\ntwo\nthree\n")
    return project


@requirement("TOOL-44", "TOOL-46", "EDIT-5")
async def test_the_card_of_an_edit_shows_the_exact_change(terminal: Terminal, folder: Path):
    """The whole card, word for word: this is what people will agree to."""
    desk = Desk(terminal, folder)
    asking = desk.ask("replace_text", path="greet.py", old='"Hello, " + name', new='f"Hello, {name}!"')
    await terminal.until_menu()
    assert terminal.lines == [
        "╭─ ✎ Replace text  replace_text",
        "│ Replaces a text in a file. It must occur exactly once, or as often as count says.",
        "│ Can be undone.",
        "│ Asked for by line 3 of tidy.nuwa.",
        "│",
        "│ Arguments:",
        "│   path         greet.py",
        '│   old          "\\"Hello, \\" + name"',
        '│   new          f"Hello, {name}!"',
        "│   count        1",
        "│   all          false",
        "│   whole_words  false",
        "│",
        "│ The tool says:",
        "│ ▌ Change greet.py",
        "│ ▌ greet.py: 1 line added, 1 removed.",
        "│",
        "│ What would change:",
        "│   change greet.py (+1 -1)",
        "│   @@ -1,5 +1,5 @@",
        "│   1 1  def greet(name):",
        '│   2   -    print("Hello, " + name)',
        '│     2 +    print(f"Hello, {name}!")',
        "│   3 3",
        "│   4 4",
        '│   5 5  greet("you")',
        "│",
        "│ [a] Change file   [d] Deny   [r] deny with a reason   [e] edit   [p] Show the change",
        "│ [v] exact values   [Esc] close",
        "╰▸",
    ]
    terminal.press("a")
    outcome = await asking
    assert outcome.success
    assert 'print(f"Hello, {name}!")' in (folder / "greet.py").read_text()


@requirement("EDIT-5")
async def test_a_batch_names_every_file_and_folds_the_lines(terminal: Terminal, folder: Path):
    """Which files would change matters more than how: a long diff must not push another file off the card."""
    (folder / "long.txt").write_text("".join(f"line {n}\n" for n in range(60)))
    (folder / "old.bin").write_bytes(b"\0\xff")
    desk = Desk(terminal, folder)
    asking = desk.ask(
        "edit_files",
        edits=[
            {"action": "write_file", "path": "long.txt", "text": "".join(f"Line {n}\n" for n in range(60))},
            {"action": "write_file", "path": "new/file.txt", "text": "new\n"},
            {"action": "rename_file", "path": "greet.py", "new_path": "hello.py"},
            {"action": "delete_file", "path": "old.bin"},
            {"action": "delete_file", "path": "notes.txt"},
        ],
    )
    await terminal.until_menu()
    shown = terminal.lines[terminal.lines.index("│ What would change:") + 1 :]
    assert shown[: shown.index("│")] == [
        "│   change long.txt (+60 -60)",
        "│   @@ -1,60 +1,60 @@",
        "│   1   -line 0",
        "│     1 +Line 0",
        "│   2   -line 1",
        "│   … 117 more rows of this file, with 59 lines added and 58 removed",
        "│   create new/file.txt (+1 -0)",
        "│   @@ -0,0 +1,1 @@",
        "│     1 +new",
        "│   rename greet.py to hello.py",
        "│   delete old.bin",
        "│   the file is not text, so its content is not shown",
        "│   delete notes.txt (+0 -3)",
        "│   @@ -1,3 +0,0 @@",
        "│   1   -one",
        "│   2   -two",
        "│   3   -three",
        "│   … 117 more lines: p shows them",
    ]
    assert "│ ▌ 5 files, 61 lines added, 63 removed." in terminal.lines
    await terminal.press_for("p", "+Line 59")
    await terminal.until_menu()
    terminal.press("d")
    assert (await asking).kind == "denied"
    assert (folder / "notes.txt").exists()


async def test_more_files_than_anybody_reads_are_counted(terminal: Terminal, folder: Path, monkeypatch):
    """Nothing is left out without a word."""
    monkeypatch.setattr(face, "FOLD_FILES", 2)
    desk = Desk(terminal, folder)
    asking = desk.ask(
        "edit_files", edits=[{"action": "write_file", "path": f"{n}.txt", "text": "x\n"} for n in range(5)]
    )
    await terminal.until_menu()
    assert "│   … and 3 more files" in terminal.lines
    assert "create 4.txt" not in terminal.text
    await terminal.press_for("p", "create 4.txt")
    await terminal.until_menu()
    terminal.press("d")
    await asking


@requirement("TOOL-46")
async def test_a_file_that_changes_while_its_card_waits_is_asked_about_again_with_the_new_diff(
    terminal: Terminal, folder: Path
):
    """The first yes was to something else. The second card says why it is there, and shows what would happen now."""
    desk = Desk(terminal, folder)
    asking = desk.ask("replace_text", path="notes.txt", old="two", new="2")
    await terminal.until_menu()
    (folder / "notes.txt").write_text("zero\none\ntwo\n")
    await terminal.press_for("a", "│ Asked again: notes.txt changed while the question waited.")
    await terminal.until_menu(times=2)
    assert "│   1 1  zero" in terminal.lines
    terminal.press("a")
    assert (await asking).success
    assert (folder / "notes.txt").read_text() == "zero\none\n2\n"


async def test_without_colour_and_boxes_the_change_is_read_in_words(terminal: Terminal, folder: Path):
    """A screen reader gets the same lines."""
    desk = Desk(terminal, folder, plain=True)
    asking = desk.ask("delete_file", path="notes.txt")
    await terminal.until("Type one of these")
    for line in ("  delete notes.txt (+0 -3)", "  -two", "  > notes.txt would be gone, with 3 lines."):
        assert line in terminal.lines
    terminal.press("deny\r")
    assert (await asking).kind == "denied"


RENAME = r"""
LET found = CALL search_files { query: "\\bfolder_of\\b", regex: true, pattern: "*.py", max_matches: 500 }
FOR path IN found.files DO
  LET renamed = CALL replace_text { path: path, old: "folder_of", new: "place_of", whole_words: true, all: true }
  IF NOT renamed.success THEN
    PRINT(FORMAT("left alone: {path}", {path: path}))
  END
END
"""
OLD = re.compile(r"\bfolder_of\b")
DENIED = "src/lastword/rules/grant_step.py"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of this repository's own source."""
    project = tmp_path / "copy"
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__", "static"))
    return project


def texts(project: Path) -> dict[str, str]:
    return {str(path.relative_to(project)): path.read_text() for path in project.rglob("*.py")}


@requirement("EDIT-7", "TOOL-46")
async def test_a_function_is_renamed_across_files_by_a_script_one_file_denied_the_rest_undone(copy: Path):
    """Every file has its card with its whole diff; a denial leaves that file alone and the script goes on."""
    before = texts(copy)
    uses = [path for path, text in sorted(before.items()) if OLD.search(text)]
    assert DENIED in uses
    assert len(uses) > 2
    registry = ToolRegistry()
    editor_tools(registry)
    approver = FixedApprover(
        lambda request: request.deny("not this one") if request.arguments["path"] == DENIED else request.allow()
    )
    async with Session(registry, approver=approver, editor=ProjectEditor(copy)) as session:
        run = await session.run_script(RENAME, name="rename.nuwa")
        assert run.status == "done", run.error
        assert run.output == [f"left alone: {DENIED}"]
        assert [request.preview[0].path for request in approver.requests] == uses
        for request in approver.requests:
            (preview,) = request.preview
            assert preview.base == before[preview.path]
            assert preview.proposed == OLD.sub("place_of", before[preview.path])
        assert texts(copy) == {
            path: text if path == DENIED else OLD.sub("place_of", text) for path, text in before.items()
        }
        for request in approver.requests:
            if request.arguments["path"] != DENIED:
                await session.undo(request.call_id)
    assert texts(copy) == before


def test_the_same_at_a_terminal_with_lastword_run_and_lastword_undo(copy: Path, run: Run, tmp_path: Path):
    """As a person does it: a key for each card, the ids from the screen, one command for each undo."""
    before = texts(copy)
    uses = [path for path, text in sorted(before.items()) if OLD.search(text)]
    (tmp_path / "rename.nuwa").write_text(RENAME)
    program = run("run", "rename.nuwa", "--project", "copy", lines=1000)
    for number, path in enumerate(uses, 1):
        program.until(f"│ ▌ Change {path}")
        program.until("[Esc] close", times=number)
        assert f"│   change {path} (" in program.text
        program.press("d" if path == DENIED else "a")
    assert program.finish() == 0
    assert f"left alone: {DENIED}" in program.lines
    assert texts(copy)[DENIED] == before[DENIED]
    assert sum(OLD.search(text) is not None for text in texts(copy).values()) == 1
    ids = re.findall(r"To take it back: lastword undo (\S+)", program.text)
    assert len(ids) == len(uses) - 1
    for call_id in ids:
        done = piped("undo", call_id, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Took back replace_text: src/")
    assert texts(copy) == before


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel([RENAME.strip(), "Renamed where I was allowed to."]) as model:
        yield model


def test_the_same_in_a_chat_with_lastword_edit(copy: Path, run: Run, tmp_path: Path, model: ScriptedModel):
    """The model writes the script, the person answers the cards and takes the last change back with a word."""
    before = texts(copy)
    uses = [path for path, text in sorted(before.items()) if OLD.search(text)]
    (tmp_path / "lastword.toml").write_text('[preset.default]\nprotocol = "script"\n')
    program = run("edit", "copy", "--config", "lastword.toml", lines=1000, LASTWORD_UPSTREAM=model.url)
    program.until("asks ▸")
    program.say("Rename folder_of to place_of.")
    for number, path in enumerate(uses, 1):
        program.until(f"│ ▌ Change {path}")
        program.press_at("[Esc] close", "d" if path == DENIED else "a", number)
    program.until("Renamed where I was allowed to.")
    assert texts(copy)[DENIED] == before[DENIED]
    for number in range(1, len(uses)):
        program.say("/undo")
        program.until("is as it was before", times=number)
    assert texts(copy) == before
    program.say("/quit")
    assert program.finish() == 0


async def test_a_line_that_changed_a_little_has_its_words_marked(folder: Path, terminal: Terminal) -> None:
    """Two long lines that differ in one word look the same; the word is underlined, also behind tabs and marks."""
    (folder / "pay.py").write_text("\tpay(ann, \u200b5)\nstay\n")
    asking = Desk(terminal, folder).ask("replace_text", path="pay.py", old="5", new="500")
    await terminal.until_menu()
    shown = terminal.lines[terminal.lines.index("│ What would change:") + 3 :]
    assert shown[:3] == [
        "│   1   -⇥   pay(ann, ‹U+200B›5)",
        "│     1 +⇥   pay(ann, ‹U+200B›500)",
        "│   2 2  stay",
    ]
    marked = re.findall(r"\x1b\[1;4;3[12]m([^\x1b]*)", terminal.raw.decode())
    assert marked == ["5", "500"]
    terminal.press("d")
    assert (await asking).kind == "denied"


def test_the_marks_of_words_stand_where_the_words_are_shown() -> None:
    """Tabs and marks are longer on the screen than in the file; a mark beside the word would mislead."""
    for before in ("", "\t", "\t\t x ", "\u200b", "\u202e\t"):
        change = Preview("x", base_digest=None, base=f"{before}pay 5 now\n", proposed=f"{before}pay 500 now\n")
        rows = [row for row in face.diff_rows([change])[0] if row.changed]
        assert [row.text[start:end] for row in rows for start, end in row.changed] == ["5", "500"]
