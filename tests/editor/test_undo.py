"""Undo: what one call changed is one step, and taking it back leaves no trace."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trees import tree

from lastword.editor.encoding import BOM
from lastword.editor.project import ProjectEditor
from lastword.editor.provider import Change
from lastword.editor.recording import SealedEditor
from lastword.editor.reversal import fold, undo
from lastword.errors import Conflict, LastWordError

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


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
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
    assert changed <= {name for step in fold(sealed.changes) for name in (step.path, *step.made_folders)}
    await undo(editor, sealed.changes)
    assert tree(folder) == before


async def test_a_file_changed_since_is_not_restored_and_neither_is_any_other(editor: ProjectEditor, folder: Path):
    """One call is one step: half of it taken back is a state nobody has ever seen."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    await sealed.write_to_file("src/main.py", "by the tool\n")
    (folder / "src/main.py").write_text("by a person\n")
    with pytest.raises(Conflict, match=r"changed since: src/main\.py; nothing was taken back"):
        await undo(editor, sealed.changes)
    assert (folder / "notes.txt").read_text() == "by the tool\n"
    assert (folder / "src/main.py").read_text() == "by a person\n"


async def test_a_deleted_file_whose_name_is_taken_again_is_not_restored(editor: ProjectEditor, folder: Path):
    """Restoring it would overwrite what came after."""
    sealed = SealedEditor(editor)
    await sealed.delete_file("notes.txt")
    (folder / "notes.txt").write_text("by a person\n")
    with pytest.raises(Conflict):
        await undo(editor, sealed.changes)
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
    assert await undo(editor, sealed.changes) == ["new/file.txt"]
    assert tree(folder)["new/mine.txt"] is not None
    assert "new/file.txt" not in tree(folder)


async def test_a_file_deleted_and_written_again_gets_its_mode_back(editor: ProjectEditor, folder: Path):
    """The call left another mode than it found, so that is part of what is taken back."""
    (folder / "notes.txt").chmod(0o755)
    sealed = SealedEditor(editor)
    await sealed.delete_file("notes.txt")
    await sealed.write_to_file("notes.txt", "one\ntwo\n")
    assert tree(folder)["notes.txt"] != (b"one\ntwo\n", 0o755)
    assert await undo(editor, sealed.changes) == ["notes.txt"]
    assert tree(folder)["notes.txt"] == (b"one\ntwo\n", 0o755)


async def test_undoing_twice_does_nothing_the_second_time(editor: ProjectEditor, folder: Path):
    """What is restored stays restored, so an undo that stopped halfway can be asked for again."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    await sealed.write_to_file("new/file.txt", "by the tool\n")
    await sealed.write_to_file("empty/file.txt", "by the tool\n")
    await sealed.delete_file("empty/file.txt")
    assert await undo(editor, sealed.changes) == ["new/file.txt", "notes.txt"]
    assert sorted(tree(folder)) == ["notes.txt", "src", "src/main.py"]
    assert await undo(editor, sealed.changes) == []
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


async def test_a_mode_changed_since_is_kept(editor: ProjectEditor, folder: Path):
    """The call kept the mode, so its undo has nothing to say about it."""
    sealed = SealedEditor(editor)
    await sealed.write_to_file("notes.txt", "by the tool\n")
    (folder / "notes.txt").chmod(0o755)
    await undo(editor, sealed.changes)
    assert tree(folder)["notes.txt"] == (b"one\ntwo\n", 0o755)
