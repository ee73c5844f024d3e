"""Ways out of the project: none leads out, and each refusal says why."""

import os
import socket
import stat
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lastword.editor import MAX_FILE_BYTES, ProjectEditor
from lastword.editor.provider import LeftOut
from lastword.editor.text import Operation
from lastword.errors import Conflict, EditError, PathRefused
from requirements import requirement
from tries import often

# Enough to meet the race many times over; more only where one of its sides has not been met at all.
ROUNDS = often(1_000)
MOST_ROUNDS = 30_000


async def refused_everywhere(editor: ProjectEditor, path: str, words: str) -> None:
    """Every door refuses the path, in the same words."""
    operation: list[Operation] = [{"start_line": 1, "content": "x"}]
    sync: list[Callable[[], object]] = [
        lambda: editor.exists(path),
        lambda: editor.read_bytes(path),
        lambda: editor.open_diff_editor(path, "x"),
        lambda: editor.show_deletion(path),
        lambda: editor.show_rename(path, "free.txt"),
        lambda: editor.show_rename("notes.txt", path),
    ]
    for look in sync:
        with pytest.raises(PathRefused, match=words):
            look()
    for attempt in (
        editor.get_file_content(path),
        editor.update_file_content(path, "x"),
        editor.write_to_file(path, "x"),
        editor.insert_content(path, operation),
        editor.replace_in_file(path, operation),
        editor.delete_file(path),
        editor.rename_file(path, "free.txt"),
    ):
        with pytest.raises(PathRefused, match=words):
            await attempt


@requirement("EDIT-3")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/etc/passwd", "the path is absolute"),
        ("~/notes.txt", "the path is absolute"),
        ("C:/notes.txt", "the path is absolute"),
        ("../outside/secret.txt", "the path leads upwards"),
        ("src/../../outside/secret.txt", "the path leads upwards"),
        ("src/..", "the path leads upwards"),
        ("", "is not a path"),
        (".", "the path has empty parts"),
        ("./notes.txt", "hint: write notes.txt"),
        ("src//main.py", "hint: write src/main.py"),
        ("src/", "hint: write src"),
        ("notes.txt\0.png", r"notes.txt\\x00.png: the name holds U\+0000"),
        ("notes\n.txt", r"the name holds U\+000A"),
        ("notes\x1b[2J.txt", r"the name holds U\+001B"),
        ("notes\x85.txt", r"the name holds U\+0085"),
        ("notes\u202etxt.exe", r"the name holds U\+202E"),
        ("no\u200btes.txt", r"the name holds U\+200B"),
        ("notes\udcff.txt", r"the name holds U\+DCFF"),
        ("src\\main.py", "separated by /"),
        ("notes.txt.", "ends with a dot or a space"),
        ("notes.txt ", "ends with a dot or a space"),
        ("src./main.py", "ends with a dot or a space"),
        ("...", "ends with a dot or a space"),
        (".git/config", "git's own files"),
        ("src/.GIT/hooks/pre-commit", "git's own files"),
        (".lastword-0123456789abcdef.tmp", "kept for files that are being written"),
        ("x" * 1001, "at most 1000"),
        ("/".join(["a"] * 65), "at most 64"),
    ],
)
async def test_a_path_that_is_not_plain_is_refused_at_every_door(editor: ProjectEditor, path: str, words: str):
    """One spelling for each file, and no name that some system reads differently from how it looks."""
    await refused_everywhere(editor, path, words)


async def test_ordinary_odd_names_are_fine(editor: ProjectEditor):
    """The rules keep out what deceives, not what is merely unusual, or a device on a system that this is not."""
    usual = ("a b.txt", ".hidden", "ärger/日本語.md", "a..b", "x=1&y.txt", "-rf", "console.log", "gitignore")
    for path in (*usual, "a:b.txt", "src/aux.c", "nul", "Com1.log"):
        assert await editor.write_to_file(path, "x")
        assert await editor.get_file_content(path) == "x"
        assert path in editor.get_all_files()


@requirement("EDIT-3")
@pytest.mark.parametrize("target", ["outside/secret.txt", "project/notes.txt", "absent"])
async def test_a_linked_file_is_refused_wherever_it_points(
    editor: ProjectEditor, folder: Path, outside: Path, target: str
):
    """Also inside: a person who approves a path should not have to follow it."""
    (folder / "link.txt").symlink_to(folder.parent / target)
    await refused_everywhere(editor, "link.txt", "this is a symbolic link")
    assert "link.txt" not in editor.get_all_files()
    assert (outside / "secret.txt").read_text() == "secret\n"


@requirement("EDIT-3")
async def test_a_linked_folder_is_refused_on_the_way(editor: ProjectEditor, folder: Path, outside: Path):
    """The link may be any part of the path."""
    (folder / "src" / "link").symlink_to(outside)
    await refused_everywhere(editor, "src/link/secret.txt", "src/link: this is a symbolic link")
    await refused_everywhere(editor, "src/link/new/deep.txt", "src/link: this is a symbolic link")
    assert editor.get_all_folders() == ["src"]
    assert editor.get_all_files() == ["notes.txt", "src/main.py"]
    assert sorted(os.listdir(outside)) == ["secret.txt"]


@requirement("EDIT-3")
async def test_a_hard_link_is_replaced_and_the_outside_file_stays(editor: ProjectEditor, folder: Path, outside: Path):
    """A rename gives the name a new inode; the old one belongs to somebody else."""
    os.link(outside / "secret.txt", folder / "shared.txt")
    inode = (outside / "secret.txt").stat().st_ino
    assert await editor.update_file_content("shared.txt", "changed\n")
    assert (outside / "secret.txt").read_text() == "secret\n"
    assert (outside / "secret.txt").stat().st_ino == inode
    assert (folder / "shared.txt").read_text() == "changed\n"


@requirement("EDIT-3")
async def test_pipes_sockets_and_devices_are_refused_without_waiting(editor: ProjectEditor, folder: Path):
    """Opening a pipe for reading waits for a writer that never comes."""
    os.mkfifo(folder / "pipe")
    await refused_everywhere(editor, "pipe", "this is a pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        # The name of a socket is short on every system, so it is bound from within the folder.
        before = os.open(".", os.O_RDONLY)
        os.chdir(folder)
        try:
            listener.bind("socket")
        finally:
            os.fchdir(before)
            os.close(before)
        await refused_everywhere(editor, "socket", "this is a socket")
    assert editor.get_all_files() == ["notes.txt", "src/main.py"]


@requirement("EDIT-3")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_a_device_in_the_project_is_refused(editor: ProjectEditor, folder: Path):
    """Reading one can act on it."""
    os.mknod(folder / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    await refused_everywhere(editor, "zero", "this is a device")


@requirement("EDIT-3")
@pytest.mark.parametrize(
    ("there", "new"),
    [("README.md", "readme.md"), ("straße.txt", "STRASSE.txt"), ("caf\u00e9.txt", "cafe\u0301.txt")],
)
async def test_a_new_name_that_is_an_old_one_elsewhere_is_refused(
    editor: ProjectEditor, folder: Path, there: str, new: str
):
    """On a system that ignores case or composes accents one file would swallow the other."""
    (folder / there).write_text("x")
    with pytest.raises(PathRefused, match="on many systems the two names are one"):
        await editor.write_to_file(new, "y")
    with pytest.raises(PathRefused, match="on many systems the two names are one"):
        await editor.rename_file("notes.txt", new)
    with pytest.raises(PathRefused, match="on many systems the two names are one"):
        await editor.write_to_file("SRC/new.py", "y")
    assert sorted(os.listdir(folder)) == sorted([there, "notes.txt", "src"])


async def race(swap: Callable[[], None], use: Callable[[int], Awaitable[None]]) -> None:
    """Use the project while a thread swaps, until the use has both succeeded and been refused."""
    stop = threading.Event()

    def keep_swapping() -> None:
        while not stop.is_set():
            swap()

    thread = threading.Thread(target=keep_swapping)
    # The threads change places as often as they can, so that the gap between two system calls is met.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    succeeded = refused = 0
    try:
        for number in range(MOST_ROUNDS):
            try:
                await use(number)
                succeeded += 1
            except EditError:
                refused += 1
            if number >= ROUNDS and succeeded and refused:
                break
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    # Both sides of the race were met, or it would prove nothing.
    assert succeeded
    assert refused


@requirement("EDIT-3")
async def test_a_folder_swapped_for_a_link_between_check_and_use_leads_nowhere(
    editor: ProjectEditor, folder: Path, outside: Path
):
    """A racing thread; whichever side of the swap a call meets, it reads and writes inside or not at all."""
    (outside / "main.py").write_text("secret\n")
    (folder / "evil").symlink_to(outside)

    def swap() -> None:
        os.rename(folder / "src", folder / "kept")
        os.rename(folder / "evil", folder / "src")
        os.rename(folder / "src", folder / "evil")
        os.rename(folder / "kept", folder / "src")

    async def use(number: int) -> None:
        assert await editor.get_file_content("src/main.py") != "secret\n"
        await editor.update_file_content("src/main.py", f"round {number}\n")
        await editor.delete_file("src/absent.py")
        await editor.rename_file("src/absent.py", "src/other.py")
        found = [editor.read_bytes(path) for path in editor.get_all_files()]
        assert b"secret\n" not in found

    await race(swap, use)
    assert sorted(os.listdir(outside)) == ["main.py", "secret.txt"]
    assert (outside / "main.py").read_text() == "secret\n"
    assert (folder / "src" / "main.py").read_text().startswith(("round", "print"))


@requirement("EDIT-3")
async def test_a_file_swapped_for_a_link_between_check_and_use_is_not_followed(
    editor: ProjectEditor, folder: Path, outside: Path
):
    """The last name of a path races as well as the others. The link is replaced or refused, never written through."""

    def swap() -> None:
        (folder / "link").symlink_to(outside / "secret.txt")
        os.rename(folder / "link", folder / "notes.txt")
        (folder / "plain").write_text("mine\n")
        os.rename(folder / "plain", folder / "notes.txt")

    async def use(number: int) -> None:
        assert await editor.get_file_content("notes.txt") != "secret\n"
        await editor.write_to_file("notes.txt", f"round {number}\n")

    await race(swap, use)
    assert (outside / "secret.txt").read_text() == "secret\n"
    assert sorted(os.listdir(outside)) == ["secret.txt"]


class LastMoment:
    """Does something once, at the last moment before a name is opened or linked: after every check, before the use.

    An audit hook hears of it there. One can never be removed again, so this one only listens while it is told to.
    """

    def __init__(self) -> None:
        self._name: str | None = None
        self._action: Callable[[], object] = lambda: None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        named = {"open": 0, "os.link": 1}.get(event)
        if named is not None and self._name is not None and arguments[named] == self._name:
            self._name = None
            self._action()

    def do(self, name: str, action: Callable[[], object]) -> None:
        self._name, self._action = name, action

    def done(self) -> bool:
        return self._name is None


LAST_MOMENT = LastMoment()


@requirement("EDIT-3")
async def test_a_file_that_becomes_a_link_at_the_last_moment_is_refused(
    editor: ProjectEditor, folder: Path, outside: Path
):
    """The check has passed; the opening itself must refuse."""
    (folder / "link").symlink_to(outside / "secret.txt")
    LAST_MOMENT.do("notes.txt", lambda: os.rename(folder / "link", folder / "notes.txt"))
    with pytest.raises(PathRefused, match="this is a symbolic link"):
        await editor.get_file_content("notes.txt")
    assert LAST_MOMENT.done()


@requirement("EDIT-3")
async def test_a_folder_that_becomes_a_link_at_the_last_moment_is_refused(
    editor: ProjectEditor, folder: Path, outside: Path
):
    """Each folder on the way is opened by itself, and none through a link."""

    def swap() -> None:
        os.rename(folder / "src", folder / "kept")
        (folder / "src").symlink_to(outside)

    LAST_MOMENT.do("src", swap)
    with pytest.raises(PathRefused, match="src: this is a symbolic link"):
        await editor.write_to_file("src/new.py", "x")
    assert LAST_MOMENT.done()
    assert sorted(os.listdir(outside)) == ["secret.txt"]


@requirement("EDIT-12")
def test_a_folder_that_cannot_be_opened_is_named_and_not_taken_for_empty(editor: ProjectEditor, folder: Path):
    """Here it becomes a file at the last moment; mostly it is one that belongs to somebody else."""
    (folder / "closed").mkdir()

    def swap() -> None:
        (folder / "closed").rmdir()
        (folder / "closed").write_text("")

    LAST_MOMENT.do("closed", swap)
    assert editor.listing().left_out == (LeftOut("closed", "unreadable: this is a file, not a folder"),)
    assert LAST_MOMENT.done()


@requirement("EDIT-3")
async def test_a_file_that_becomes_a_pipe_at_the_last_moment_is_neither_read_nor_waited_for(
    editor: ProjectEditor, folder: Path
):
    """Opening a pipe waits for a writer. If it does so here, a timer becomes one after a while, and tells."""
    os.mkfifo(folder / "pipe")
    waited: list[bool] = []

    def rescue() -> None:
        os.close(os.open(folder / "notes.txt", os.O_WRONLY | os.O_NONBLOCK))
        waited.append(True)

    timer = threading.Timer(5, rescue)
    timer.start()
    LAST_MOMENT.do("notes.txt", lambda: os.rename(folder / "pipe", folder / "notes.txt"))
    try:
        with pytest.raises(PathRefused, match="this is a pipe"):
            await editor.get_file_content("notes.txt")
    finally:
        timer.cancel()
    assert LAST_MOMENT.done()
    assert waited == []


async def test_a_file_that_grows_at_the_last_moment_is_not_read_beyond_the_limit(editor: ProjectEditor, folder: Path):
    """The size that was looked at first is not the size that is there."""
    LAST_MOMENT.do("notes.txt", lambda: os.truncate(folder / "notes.txt", MAX_FILE_BYTES + 10))
    with pytest.raises(EditError, match="the editor takes at most"):
        await editor.get_file_content("notes.txt")
    assert LAST_MOMENT.done()


@requirement("EDIT-4")
async def test_a_file_written_by_somebody_else_during_a_write_is_a_conflict(editor: ProjectEditor, folder: Path):
    """The last look comes after the new content is on the disk. Here the other one is as late as can be."""
    opened = []

    def other() -> None:
        opened.append(True)
        if len(opened) == 1:
            # The first opening is the read before the write; the second is the last look.
            LAST_MOMENT.do("notes.txt", other)
        else:
            (folder / "notes.txt").write_text("somebody else's\n")

    LAST_MOMENT.do("notes.txt", other)
    with pytest.raises(Conflict, match="the file changed in the meantime"):
        await editor.update_file_content("notes.txt", "mine\n")
    assert (folder / "notes.txt").read_text() == "somebody else's\n"
    assert sorted(os.listdir(folder)) == ["notes.txt", "src"]


@requirement("EDIT-4")
async def test_a_name_taken_by_somebody_else_during_a_write_is_not_overwritten(editor: ProjectEditor, folder: Path):
    """A new file is put in place by a hard link, which replaces nothing."""

    LAST_MOMENT.do("new.txt", lambda: (folder / "new.txt").write_text("somebody else's\n"))
    with pytest.raises(Conflict, match="there is something of that name already"):
        await editor.write_to_file("new.txt", "mine\n")
    assert (folder / "new.txt").read_text() == "somebody else's\n"
    assert sorted(os.listdir(folder)) == ["new.txt", "notes.txt", "src"]
