"""The editor over real files: what it reads, what it writes, and what it keeps."""

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import tree

from lastword.editor import (
    MAX_FILE_BYTES,
    Preview,
    ProjectEditor,
    ProjectProvider,
    RecordingEditor,
    ScriptEditorProvider,
    SealedEditor,
    decode,
    still_current,
)
from lastword.editor.text import BOM, encode
from lastword.errors import Conflict, EditError, NotAllowedNow, NotText
from lastword.values import digest
from requirements import requirement
from tries import tries


def takes_a_provider(editor: ScriptEditorProvider) -> ScriptEditorProvider:
    return editor


@requirement("EDIT-1")
async def test_the_editor_and_its_doubles_have_the_methods_of_the_seeds(editor: ProjectEditor):
    """A tool written against the interface must not care which of the three it was given."""
    for one in (editor, RecordingEditor(editor), SealedEditor(editor)):
        provider = takes_a_provider(one)
        assert isinstance(provider, ProjectProvider)
        assert provider.script_name == "project"
        assert provider.exists("src/main.py")
        assert provider.exists("src")
        assert not provider.exists("src/absent.py")
        assert provider.get_all_folders() == ["src"]
        assert provider.get_all_files() == ["notes.txt", "src/main.py"]
        assert await provider.get_file_content("notes.txt") == "one\ntwo\n"
        assert await provider.get_file_content("absent.txt") is None
        assert provider.get_lint_errors() == {}


@requirement("EDIT-1")
async def test_update_writes_existing_files_only_and_write_creates(editor: ProjectEditor, folder: Path):
    """The one difference between the two methods."""
    assert not await editor.update_file_content("new/deep.txt", "x")
    assert not (folder / "new").exists()
    assert await editor.write_to_file("new/deep.txt", "x")
    assert (folder / "new" / "deep.txt").read_text() == "x"
    assert await editor.update_file_content("new/deep.txt", "y")
    assert (folder / "new" / "deep.txt").read_text() == "y"


@requirement("EDIT-1", "EDIT-2")
async def test_structured_edits_reach_the_file(editor: ProjectEditor, folder: Path):
    """The pure functions are tested by themselves; here they meet the disk."""
    assert await editor.insert_content("notes.txt", [{"start_line": 1, "content": "zero"}])
    assert await editor.replace_in_file("notes.txt", [{"start_line": 3, "content": "2"}])
    assert (folder / "notes.txt").read_text() == "zero\none\n2\n"
    assert not await editor.insert_content("absent.txt", [{"start_line": 1, "content": "zero"}])
    with pytest.raises(EditError, match=r"notes.txt: line 9 is out of range"):
        await editor.insert_content("notes.txt", [{"start_line": 1, "content": "x"}, {"start_line": 9, "content": "y"}])
    assert (folder / "notes.txt").read_text() == "zero\none\n2\n"


@requirement("EDIT-4")
@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444])
async def test_a_write_keeps_the_mode(editor: ProjectEditor, folder: Path, mode: int):
    """A script stays executable and a private file private."""
    (folder / "notes.txt").chmod(mode)
    assert await editor.update_file_content("notes.txt", "new\n")
    assert stat.S_IMODE((folder / "notes.txt").stat().st_mode) == mode


@requirement("EDIT-4")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_write_keeps_the_owner(editor: ProjectEditor, folder: Path):
    """An administrator who edits somebody's file does not take it from them."""
    os.chown(folder / "notes.txt", 12345, 12345)
    (folder / "notes.txt").chmod(0o4755)
    assert await editor.update_file_content("notes.txt", "new\n")
    status = (folder / "notes.txt").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 12345, 0o4755)


@requirement("EDIT-4")
async def test_where_there_are_no_hard_links_a_new_file_is_still_not_put_over_an_old_one(
    editor: ProjectEditor, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Memory sticks and some network drives have none: the system then says that it may not be done."""

    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert await editor.write_to_file("new.txt", "x")
    assert await editor.rename_file("new.txt", "moved.txt")
    assert (folder / "moved.txt").read_text() == "x"
    with pytest.raises(Conflict, match="there is something of that name already"):
        await editor.rename_file("moved.txt", "notes.txt")
    assert sorted(os.listdir(folder)) == ["moved.txt", "notes.txt", "src"]


@requirement("EDIT-4")
async def test_a_new_file_gets_the_mode_the_user_asked_the_system_for(editor: ProjectEditor, folder: Path):
    """The temporary file's privacy must not stick to the result."""
    before = os.umask(0o027)
    try:
        await editor.write_to_file("new.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "new.txt").stat().st_mode) == 0o640


@requirement("EDIT-4")
@pytest.mark.parametrize(
    ("old", "content", "expected"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\nb\n", "a\r\nc\r\n", b"a\nc\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"a\r\nb\r\n", "a\nb\r\nc", b"a\nb\r\nc"),
        (BOM + b"a\n", "b\n", BOM + b"b\n"),
        (BOM + b"a\n", "\ufeffb\n", BOM + b"b\n"),
        (BOM + b"a\r\n", "b\nc\n", BOM + b"b\r\nc\r\n"),
        (b"a", "b", b"b"),
        (b"", "b\n", b"b\n"),
        (b"a\n", "", b""),
    ],
)
async def test_a_write_keeps_the_form_of_the_file(
    editor: ProjectEditor, folder: Path, old: bytes, content: str, expected: bytes
):
    """Models write one kind of line ending and no byte order mark; the file keeps its own."""
    (folder / "notes.txt").write_bytes(old)
    assert await editor.update_file_content("notes.txt", content)
    assert (folder / "notes.txt").read_bytes() == expected


@requirement("EDIT-4")
@tries()
@given(st.lists(st.sampled_from([BOM, b"\r\n", b"\n", b"\r", b"a", "é".encode(), b"\xff", b"\0"])).map(b"".join))
def test_writing_what_was_read_changes_no_byte(data: bytes):
    """Whatever the form: encode is the inverse of decode."""
    text = decode(data)
    if text is not None:
        assert encode(text, data, path="a") == data


@requirement("EDIT-4")
@pytest.mark.parametrize("data", [b"\x89PNG\0\0", "grüße".encode("latin-1"), "text".encode("utf-16")])
async def test_what_is_not_utf8_reads_as_none_and_is_not_written(editor: ProjectEditor, folder: Path, data: bytes):
    """Guessing an encoding would now and then write back something else than was read."""
    (folder / "odd.bin").write_bytes(data)
    assert await editor.get_file_content("odd.bin") is None
    for attempt in (
        editor.update_file_content("odd.bin", "x"),
        editor.write_to_file("odd.bin", "x"),
        editor.insert_content("odd.bin", [{"start_line": 1, "content": "x"}]),
        editor.replace_in_file("odd.bin", [{"start_line": 1, "content": "x"}]),
    ):
        with pytest.raises(NotText, match="binary or not UTF-8"):
            await attempt
    with pytest.raises(NotText, match="binary or not UTF-8"):
        editor.open_diff_editor("odd.bin", "x")
    assert (folder / "odd.bin").read_bytes() == data


@requirement("EDIT-4")
@pytest.mark.parametrize("content", ["half \ud800 character", "a\0b"])
async def test_content_that_is_not_text_is_refused(editor: ProjectEditor, folder: Path, content: str):
    """It could not be read back."""
    with pytest.raises(NotText, match="the new content holds"):
        await editor.write_to_file("notes.txt", content)
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


@requirement("EDIT-4")
async def test_huge_files_are_refused_in_words(editor: ProjectEditor, folder: Path):
    """Also a sparse one, which costs nobody anything to make."""
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(EditError, match="a file of 4,000,001 bytes; the editor takes at most 4,000,000"):
        await editor.get_file_content("huge.txt")
    with pytest.raises(EditError, match="the editor takes at most"):
        await editor.write_to_file("notes.txt", "x" * (MAX_FILE_BYTES + 1))
    assert (folder / "notes.txt").read_text() == "one\ntwo\n"


@requirement("EDIT-4")
@pytest.mark.parametrize("method", ["update_file_content", "write_to_file"])
async def test_a_file_changed_since_it_was_read_is_a_conflict(editor: ProjectEditor, folder: Path, method: str):
    """Somebody else's work is not overwritten by a decision made without it."""
    await editor.get_file_content("notes.txt")
    (folder / "notes.txt").write_text("somebody else's\n")
    with pytest.raises(Conflict, match="the file changed since it was read, and nothing was written"):
        await getattr(editor, method)("notes.txt", "mine\n")
    assert (folder / "notes.txt").read_text() == "somebody else's\n"
    await editor.get_file_content("notes.txt")
    assert await getattr(editor, method)("notes.txt", "mine, knowingly\n")


@requirement("EDIT-4")
async def test_deleting_and_renaming_meet_the_same_conflict(editor: ProjectEditor, folder: Path):
    """A file can be lost by these as well as by a write."""
    await editor.get_file_content("notes.txt")
    (folder / "notes.txt").write_text("somebody else's\n")
    for attempt in (editor.delete_file("notes.txt"), editor.rename_file("notes.txt", "b.txt")):
        with pytest.raises(Conflict):
            await attempt
    assert (folder / "notes.txt").read_text() == "somebody else's\n"


@requirement("EDIT-4")
async def test_a_file_that_appeared_since_it_was_looked_for_is_a_conflict(editor: ProjectEditor, folder: Path):
    """Nothing there is something that was read, too."""
    assert await editor.get_file_content("new.txt") is None
    (folder / "new.txt").write_text("somebody else's\n")
    with pytest.raises(Conflict):
        await editor.write_to_file("new.txt", "mine\n")
    assert (folder / "new.txt").read_text() == "somebody else's\n"


async def test_what_the_editor_wrote_itself_is_no_conflict(editor: ProjectEditor):
    """It knows what it left."""
    await editor.get_file_content("notes.txt")
    assert await editor.update_file_content("notes.txt", "1\n")
    assert await editor.update_file_content("notes.txt", "2\n")


async def test_a_name_that_is_taken_is_not_renamed_over(editor: ProjectEditor, folder: Path):
    """A rename must not be a deletion in disguise."""
    with pytest.raises(Conflict, match="there is something of that name already"):
        await editor.rename_file("notes.txt", "src/main.py")
    assert (folder / "src" / "main.py").read_text() == "print('hello')\n"
    assert (folder / "notes.txt").exists()


async def test_a_rename_moves_bytes_and_mode_into_new_folders(editor: ProjectEditor, folder: Path):
    """Binary files too: a rename does not read text."""
    (folder / "tool.bin").write_bytes(b"\0\1")
    (folder / "tool.bin").chmod(0o755)
    assert await editor.rename_file("tool.bin", "deep/er/tool.bin")
    assert (folder / "deep/er/tool.bin").read_bytes() == b"\0\1"
    assert stat.S_IMODE((folder / "deep/er/tool.bin").stat().st_mode) == 0o755
    assert not (folder / "tool.bin").exists()
    assert not await editor.rename_file("tool.bin", "again.bin")


async def test_a_rename_may_change_case_alone(editor: ProjectEditor, folder: Path):
    """The collision it would meet is itself."""
    assert await editor.rename_file("notes.txt", "Notes.txt")
    assert (folder / "Notes.txt").read_text() == "one\ntwo\n"
    assert "notes.txt" not in os.listdir(folder)


async def test_a_refused_write_leaves_no_folders_behind(editor: ProjectEditor, folder: Path):
    """Nothing changed means nothing: the folders were only made for the file."""
    with pytest.raises(EditError, match="file name too long"):
        await editor.write_to_file("a/b/" + "x" * 300, "x")
    assert not (folder / "a").exists()


async def test_deleting_removes_the_file_and_says_when_there_is_none(editor: ProjectEditor, folder: Path):
    """A tool can word the difference."""
    assert await editor.delete_file("notes.txt")
    assert not (folder / "notes.txt").exists()
    assert not await editor.delete_file("notes.txt")


async def test_a_folder_is_no_file(editor: ProjectEditor):
    """In words, since a model often confuses the two."""
    with pytest.raises(EditError, match="this is a folder, not a file"):
        await editor.get_file_content("src")
    with pytest.raises(EditError, match="this is a folder, not a file"):
        await editor.delete_file("src")
    with pytest.raises(EditError, match="this is a file, not a folder"):
        await editor.write_to_file("notes.txt/x", "x")


@requirement("EDIT-5")
async def test_a_diff_is_handed_to_the_surface_and_changes_nothing(folder: Path):
    """The same data that a card is drawn from, whatever the surface makes of it."""
    shown: list[Preview] = []
    editor = ProjectEditor(folder, show=shown.append)
    before = tree(folder)
    editor.open_diff_editor("notes.txt", "one\n")
    editor.open_diff_editor("new/file.txt", "new\n")
    editor.show_deletion("notes.txt")
    editor.show_rename("notes.txt", "src/notes.txt")
    base = digest(b"one\ntwo\n")
    assert shown == [
        Preview("notes.txt", base, "one\ntwo\n", "one\n"),
        Preview("new/file.txt", None, None, "new\n"),
        Preview("notes.txt", base, "one\ntwo\n", None),
        Preview("notes.txt", base, "one\ntwo\n", None, "src/notes.txt"),
    ]
    assert tree(folder) == before


async def test_what_could_not_be_done_is_not_shown(editor: ProjectEditor):
    """Nobody should be asked to approve a card whose yes would fail."""
    for preview in (
        lambda: editor.open_diff_editor("../outside.txt", "x"),
        lambda: editor.open_diff_editor("notes.txt", "half \ud800"),
        lambda: editor.show_deletion("absent.txt"),
        lambda: editor.show_rename("absent.txt", "b.txt"),
        lambda: editor.show_rename("notes.txt", "src/main.py"),
    ):
        with pytest.raises(EditError):
            preview()


async def test_the_digest_of_a_read_is_over_the_bytes(editor: ProjectEditor, folder: Path):
    """A change of line endings or of the byte order mark is a change of the file, though not of its text."""
    recorder = RecordingEditor(editor)
    await recorder.get_file_content("notes.txt")
    assert recorder.reads == {"notes.txt": digest(b"one\ntwo\n")}
    (folder / "notes.txt").write_bytes(BOM + b"one\ntwo\n")
    assert await still_current(editor, recorder.reads) == ["notes.txt"]


async def test_a_file_whose_place_a_link_took_is_not_current(editor: ProjectEditor, folder: Path, outside: Path):
    """What can no longer be read is not what was read, even if the link shows the same text."""
    recorder = RecordingEditor(editor)
    await recorder.get_file_content("notes.txt")
    (folder / "notes.txt").unlink()
    (outside / "same.txt").write_text("one\ntwo\n")
    (folder / "notes.txt").symlink_to(outside / "same.txt")
    assert await still_current(editor, recorder.reads) == ["notes.txt"]


async def test_deletion_and_rename_need_their_own_preview(editor: ProjectEditor, folder: Path):
    """A yes to one is no yes to the other."""
    recorder = RecordingEditor(editor)
    recorder.show_deletion("notes.txt")
    sealed = SealedEditor(editor, recorder.previews)
    with pytest.raises(NotAllowedNow):
        await sealed.rename_file("notes.txt", "b.txt")
    assert len(sealed.violations) == 1
    assert await sealed.delete_file("notes.txt")

    recorder = RecordingEditor(editor)
    recorder.show_rename("src/main.py", "src/app.py")
    sealed = SealedEditor(editor, recorder.previews)
    for attempt in (sealed.delete_file("src/main.py"), sealed.rename_file("src/main.py", "src/other.py")):
        with pytest.raises(NotAllowedNow):
            await attempt
    assert len(sealed.violations) == 2
    assert await sealed.rename_file("src/main.py", "src/app.py")
    assert (folder / "src/app.py").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path):
    """A mistyped folder must not become a project."""
    with pytest.raises(EditError, match="there is no such folder"):
        ProjectEditor(tmp_path / "absent")
