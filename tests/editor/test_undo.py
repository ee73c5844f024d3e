"""Undoing a call: byte for byte, in a program and by `lastword undo`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import tree
from workbench import Workbench

from lastword import open_journal
from lastword.cli import DONE, FAILED, WRONG_USAGE, run
from lastword.editor import Change, ProjectEditor, SealedEditor
from lastword.editor.text import BOM
from lastword.errors import Conflict, LastWordError
from requirements import requirement
from tries import tries

contents = st.sampled_from(
    [b"", b"one", b"one\n", b"one\r\ntwo\r\n", b"one\r\ntwo\n", BOM, BOM + b"one\r\ntwo", "grüße\n".encode(), b"\n\n"]
)
modes = st.sampled_from([0o644, 0o755, 0o600, 0o440])
paths = st.sampled_from(["a.txt", "b.txt", "deep/c.txt", "new/er/d.txt"])
texts = st.sampled_from(["", "new", "new\n", "new\r\nlines\r\n", "a\nb\nc"])
operations = st.lists(
    st.fixed_dictionaries({"start_line": st.integers(1, 3), "content": st.sampled_from(["x", "y\n", "x\r\ny"])}),
    max_size=2,
)
edits = st.one_of(
    st.tuples(st.just("update_file_content"), paths, texts),
    st.tuples(st.just("write_to_file"), paths, texts),
    st.tuples(st.just("insert_content"), paths, operations),
    st.tuples(st.just("replace_in_file"), paths, operations),
    st.tuples(st.just("delete_file"), paths),
    st.tuples(st.just("rename_file"), paths, paths),
)
steps = st.lists(edits, max_size=5)


@tries(20)
@given(st.dictionaries(st.sampled_from(["a.txt", "b.txt", "deep/c.txt"]), st.tuples(contents, modes)), steps)
async def test_undoing_what_was_done_is_doing_nothing(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, tuple[bytes, int]], steps: list[tuple[Any, ...]]
):
    """Bytes, modes, line endings, byte order marks, empty files, missing last line endings, folders: all as before."""
    folder = tmp_path_factory.mktemp("project")
    for path, (data, mode) in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)
        (folder / path).chmod(mode)
    before = tree(folder)
    editor = ProjectEditor(folder)
    sealed = SealedEditor(editor)
    for method, *arguments in steps:
        try:
            await getattr(sealed, method)(*arguments)
        except LastWordError:
            continue
    done = tree(folder)
    changed = {path for path in {*before, *done} if before.get(path) != done.get(path)}
    assert changed <= {name for step in Change.fold(sealed.changes) for name in (step.path, *step.made_folders)}
    await Change.take_back(editor, sealed.changes)
    assert tree(folder) == before


async def test_a_file_changed_since_is_not_restored_and_neither_is_any_other(editor: ProjectEditor, folder: Path):
    """One call is one step: half of it taken back is a state nobody has ever seen."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    await sealed.write_to_file("src/main.py", "by the tool\n")
    (folder / "src/main.py").write_text("by a person\n")
    with pytest.raises(Conflict, match=r"changed since: src/main\.py; nothing was taken back"):
        await Change.take_back(editor, sealed.changes)
    assert (folder / "notes.txt").read_text() == "by the tool\n"
    assert (folder / "src/main.py").read_text() == "by a person\n"


async def test_a_deleted_file_whose_name_is_taken_again_is_not_restored(editor: ProjectEditor, folder: Path):
    """Restoring it would overwrite what came after."""
    sealed = SealedEditor(editor)
    await sealed.delete_file("notes.txt")
    (folder / "notes.txt").write_text("by a person\n")
    with pytest.raises(Conflict):
        await Change.take_back(editor, sealed.changes)
    assert (folder / "notes.txt").read_text() == "by a person\n"


async def test_one_change_is_refused_by_itself_when_the_file_moved_on(editor: ProjectEditor, folder: Path):
    """The editor's own last look, whoever calls it."""
    with pytest.raises(Conflict, match="the change was not taken back"):
        await editor.restore(Change("notes.txt", b"before\n", b"after\n", 0o644))
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


async def test_a_folder_made_for_a_file_stays_when_somebody_uses_it(editor: ProjectEditor, folder: Path):
    """Undo takes back what the call did, not what others did since."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("new/file.txt", "x")
    (folder / "new" / "mine.txt").write_text("by a person\n")
    assert await Change.take_back(editor, sealed.changes) == ["new/file.txt"]
    assert tree(folder)["new/mine.txt"] is not None
    assert "new/file.txt" not in tree(folder)


async def test_a_file_deleted_and_written_again_gets_its_mode_back(editor: ProjectEditor, folder: Path):
    """The call left another mode than it found, so that is part of what is taken back."""
    (folder / "notes.txt").chmod(0o755)
    sealed = SealedEditor(editor)
    await sealed.delete_file("notes.txt")
    await sealed.write_to_file("notes.txt", "one\ntwo\n")
    assert tree(folder)["notes.txt"] != (b"one\ntwo\n", 0o755)
    assert await Change.take_back(editor, sealed.changes) == ["notes.txt"]
    assert tree(folder)["notes.txt"] == (b"one\ntwo\n", 0o755)


async def test_undoing_twice_does_nothing_the_second_time(editor: ProjectEditor, folder: Path):
    """What is restored stays restored, so an undo that stopped halfway can be asked for again."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    await sealed.write_to_file("new/file.txt", "by the tool\n")
    await sealed.write_to_file("empty/file.txt", "by the tool\n")
    await sealed.delete_file("empty/file.txt")
    assert await Change.take_back(editor, sealed.changes) == ["new/file.txt", "notes.txt"]
    assert sorted(tree(folder)) == ["notes.txt", "src", "src/main.py"]
    assert await Change.take_back(editor, sealed.changes) == []
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


async def test_a_mode_changed_since_is_kept(editor: ProjectEditor, folder: Path):
    """The call kept the mode, so its undo has nothing to say about it."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    (folder / "notes.txt").chmod(0o755)
    await Change.take_back(editor, sealed.changes)
    assert tree(folder)["notes.txt"] == (b"one\ntwo\n", 0o755)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'journal.db'}"


def change(folder: Path, store: str, tool: str = "write_file", **arguments: object) -> str:
    """One call in a session of its own, and its id."""

    async def call() -> str:
        journal = open_journal(store)
        bench = Workbench(folder, journal)
        try:
            return (await bench.done(tool, **(arguments or {"path": "notes.txt", "text": "new\n"}))).call_id
        finally:
            await journal.close()

    return asyncio.run(call())


@requirement("EDIT-7")
def test_a_call_of_another_process_is_taken_back_where_it_ran(folder: Path, store: str, capsys, monkeypatch, tmp_path):
    """The journal knows the folder, so the command works from anywhere."""
    (folder / "notes.txt").chmod(0o640)
    before = tree(folder)
    edits = [
        {"action": "write_file", "path": "notes.txt", "text": "new\n"},
        {"action": "write_file", "path": "new/er/file.txt", "text": "new\n"},
        {"action": "delete_file", "path": "src/main.py"},
    ]
    call_id = change(folder, store, "edit_files", edits=edits)
    monkeypatch.chdir(tmp_path)
    assert run(["undo", call_id, "--store", store]) == DONE
    assert capsys.readouterr().out.splitlines() == [
        "Took back edit_files: 3 files are as they were before.",
        "  src/main.py",
        "  new/er/file.txt",
        "  notes.txt",
    ]
    assert tree(folder) == before


def test_the_users_own_journal_is_the_one_that_is_looked_in(folder: Path, capsys, monkeypatch, tmp_path: Path):
    """Without --store, as for every other command."""
    monkeypatch.delenv("LASTWORD_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data" / "lastword").mkdir(parents=True)
    call_id = change(folder, f"sqlite:///{tmp_path / 'data' / 'lastword' / 'lastword.db'}")
    monkeypatch.setattr("sys.platform", "linux")
    assert run(["undo", call_id, "--json"]) == DONE
    assert json.loads(capsys.readouterr().out) == {
        "call_id": call_id,
        "tool": "write_file",
        "paths": ["notes.txt"],
        "message": "Took back write_file: notes.txt is as it was before.",
    }
    assert (folder / "notes.txt").read_bytes() == b"one\ntwo\n"


def test_a_second_undo_is_refused_in_words(folder: Path, store: str, capsys):
    """And changes nothing, whatever the file holds by then."""
    call_id = change(folder, store)
    assert run(["undo", call_id, "--store", store]) == DONE
    (folder / "notes.txt").write_bytes(b"new\n")
    assert run(["undo", call_id, "--store", store]) == WRONG_USAGE
    assert "taken back already, by a person at the command line" in capsys.readouterr().err
    assert (folder / "notes.txt").read_bytes() == b"new\n"


def test_a_file_changed_since_is_refused_in_words(folder: Path, store: str, capsys):
    """It failed, and says what to do; later work is not touched."""
    call_id = change(folder, store)
    (folder / "notes.txt").write_bytes(b"by a person\n")
    assert run(["undo", call_id, "--store", store]) == FAILED
    assert capsys.readouterr().err.splitlines() == [
        "changed since: notes.txt; nothing was taken back",
        "hint: undo the later changes first, or restore the file by hand",
    ]
    assert (folder / "notes.txt").read_bytes() == b"by a person\n"


def test_a_project_that_was_moved_is_named(folder: Path, store: str, capsys, tmp_path: Path):
    """The journal remembers where it was; the person knows where it is."""
    before = tree(folder)
    call_id = change(folder, store)
    moved = folder.rename(tmp_path / "moved")
    assert run(["undo", call_id, "--store", store]) == FAILED
    assert "there is no such folder" in capsys.readouterr().err
    assert run(["undo", call_id, "--store", store, "--project", str(moved)]) == DONE
    assert tree(moved) == before


def test_an_unknown_call_is_wrong_usage(store: str, capsys):
    """With the way to another journal."""
    assert run(["undo", "nope", "--store", store]) == WRONG_USAGE
    assert capsys.readouterr().err.splitlines() == [
        "nope: there is no such call in this journal",
        "hint: --store names another journal, if it is there",
    ]


def test_show_tells_the_whole_story(folder: Path, store: str, capsys):
    """What was about to happen, that it happened, and that it was taken back."""
    call_id = change(folder, store)
    run(["undo", call_id, "--store", store])
    capsys.readouterr()
    assert run(["show", call_id, "--store", store]) == DONE
    told = capsys.readouterr().out
    for words in ("about to change notes.txt", "changed notes.txt", "were taken back by a person at the command line"):
        assert words in told


@pytest.mark.parametrize("command", ["tools", "prompt", "grammar"])
def test_the_editors_tools_are_told_where_they_are_asked_for(command: str, capsys, monkeypatch, tmp_path: Path):
    """A model that writes scripts for a project needs their names; one without a project must not have them."""
    monkeypatch.chdir(tmp_path)
    assert run([command, "--editor"]) == DONE
    assert "replace_text" in capsys.readouterr().out
    run([command])
    assert "replace_text" not in capsys.readouterr().out


def test_a_script_for_the_editor_is_checked_and_planned(capsys, monkeypatch, tmp_path: Path):
    """Before it runs, and without a project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.nuwa").write_text('CALL write_file { path: "a.txt", txt: "x" }\n')
    assert run(["check", "a.nuwa", "--editor"]) == FAILED
    assert "txt" in capsys.readouterr().err
    (tmp_path / "a.nuwa").write_text('CALL write_file { path: "a.txt", text: "x" }\n')
    assert run(["check", "a.nuwa", "--editor"]) == DONE
    assert run(["plan", "a.nuwa", "--editor"]) == DONE
    assert "write_file" in capsys.readouterr().out


def test_an_editor_tool_without_a_project_says_what_is_missing(capsys, monkeypatch, tmp_path: Path):
    """Also where there is no tools/ folder, which has nothing to do with it."""
    monkeypatch.chdir(tmp_path)
    assert run(["call", "read_file", "path=a.txt"]) == WRONG_USAGE
    assert "hint: name one: --project DIR" in capsys.readouterr().err


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_misspelt_editor_tool_is_recognized(capsys, monkeypatch, tmp_path: Path, folder: Path, with_folder: bool):
    """With a project the editor's tools are at hand, and the one that was meant is among them."""
    monkeypatch.chdir(tmp_path)
    if with_folder:
        (tmp_path / "tools").mkdir()
    arguments = ["path=notes.txt", "--project", str(folder), "--store", "memory:"]
    assert run(["call", "raed_file", *arguments]) == WRONG_USAGE
    assert capsys.readouterr().err == "unknown tool raed_file\nhint: did you mean read_file?\n"
    assert run(["call", "qqq", *arguments]) == WRONG_USAGE
    assert "hint: the tools are: delete_file, edit_files, fix_lint, " in capsys.readouterr().err


def test_a_folders_own_tool_of_the_same_name_comes_first(capsys, monkeypatch, tmp_path: Path, folder: Path):
    """Whoever wrote a read_file of their own gets that one."""
    own = tmp_path / "tools" / "read_file"
    own.mkdir(parents=True)
    manifest = {
        "displayName": "R",
        "id": "read_file",
        "description": "Own.",
        "parameters": [],
        "requireApproval": False,
    }
    (own / "assistant_tool.json").write_text(json.dumps(manifest))
    (own / "assistant_tool.py").write_text(
        "from lastword import AssistantTool\n"
        'AssistantTool.register_execute_tool(lambda params: {"success": True, "message": "my own"})\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    arguments = ["--tools", "tools", "--project", str(folder), "--store", "memory:"]
    assert run(["call", "read_file", *arguments]) == DONE
    assert capsys.readouterr().out == "my own\n"
    assert run(["call", "list_files", *arguments]) == DONE
    assert "notes.txt" in capsys.readouterr().out


@requirement("EDIT-7")
@pytest.mark.parametrize(
    ("kind", "found", "put"),
    [
        ("changing_file", b'"b25lCnR3bwo="', b'"ZXZpbAo="'),  # what the file held before
        ("changing_file", b'"notes.txt"', b'"other.txt"'),
        ("changed_file", b'"left_mode":420', b'"left_mode":511'),
        ("finished", b'"succeeded"', b'"cancelled"'),
    ],
)
def test_a_record_that_somebody_edited_is_not_acted_upon(folder: Path, store: str, capsys, kind: str, found, put):
    """An undo writes what the journal says. Whoever can edit the journal must not be able to have it write anything."""
    (folder / "notes.txt").chmod(0o644)
    call_id = change(folder, store)
    before = tree(folder)
    edit = apsw.Connection(store.removeprefix("sqlite:///"))
    ((seq, data),) = edit.execute("SELECT seq, data FROM records WHERE kind = ?", (kind,)).fetchall()
    assert isinstance(data, bytes | str)
    assert found in data
    edit.execute("UPDATE records SET data = ? WHERE seq = ?", (data.replace(found, put), seq))
    edit.close()
    assert run(["undo", call_id, "--store", store]) != DONE
    assert f"record {seq} ({kind}) was changed after it was written" in capsys.readouterr().err
    assert tree(folder) == before
