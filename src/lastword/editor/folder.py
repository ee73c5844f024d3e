"""Files below one folder, through directory file descriptors: nothing here can leave the folder.

Every name of a path is opened by itself, relative to the descriptor of the folder before it, and never through a
symbolic link (`O_NOFOLLOW`). What was opened stays what it is, so a link that is swapped in between a check and its
use changes nothing: there is no second look-up. Links are refused altogether, also those that point inside: a person
who approves a path should not have to follow it.

A write makes a temporary file in the same folder, brings it to the disk, looks once more that the old file is what it
was, and renames. Whoever is killed on the way leaves the old file or the new one, and perhaps a temporary file, which
`sweep` removes: a living writer holds a lock on its own. Between the last look and the rename lie some microseconds in
which another program's write can still be lost; only a file that is being created is safe from that too, since a hard
link refuses to replace anything.

What does not live here: text (encoding.py), what was read and shown before (project.py, recording.py).
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lastword.editor import LeftOut
from lastword.editor.paths import MAX_PATH_PARTS, TEMPORARY, folded, name_problem, parts_of
from lastword.errors import Conflict, EditError, PathRefused, TooLarge

# Text that people review is smaller; a change is kept twice (before and after) in the journal.
MAX_FILE_BYTES = 4_000_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe that took the place of a file must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


# Why something in a folder is not part of a project.
LINK_OR_SPECIAL = "a link, a pipe, a socket or a device"
NO_PATH = "a name that no path may hold"
TOO_DEEP = f"deeper than the {MAX_PATH_PARTS} parts that a path may have"


class Visited(NamedTuple):
    """What is in one folder, by name, sorted. The project itself is the empty path."""

    path: str
    folders: tuple[str, ...]
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


class Folder:
    """A folder on disk whose files are named by relative paths."""

    def __init__(self, root: Path) -> None:
        # The way to the project is the operator's; only what lies below it is somebody else's to name.
        self.root = root.resolve()
        if not self.root.is_dir():
            raise EditError("there is no such folder", place=str(root))

    def kind(self, path: str) -> str | None:
        """`file`, `folder`, or None when there is nothing; refuses anything else."""
        with self._parent(path) as (folder, name):
            status = None if folder is None else _status(folder, name)
        if status is None:
            return None
        _refuse_special(status.st_mode, path)
        return "folder" if stat.S_ISDIR(status.st_mode) else "file"

    def mode(self, path: str) -> int | None:
        """The permission bits of a file, or None when there is none."""
        with self._parent(path) as (folder, name):
            status = None if folder is None else _status(folder, name)
        return stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else None

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None when there is none."""
        with self._parent(path) as (folder, name):
            return None if folder is None else _read(folder, name, path)

    @contextmanager
    def opened(self, path: str) -> Iterator[io.FileIO | None]:
        """A file of any size, to be read from its beginning; None when there is none."""
        with self._parent(path) as (folder, name):
            file = None if folder is None else _open(folder, name, path)
            try:
                yield file
            finally:
                if file is not None:
                    file.close()

    def missing_folders(self, path: str) -> list[str]:
        """The folders on the way to this path that are not there, outermost first."""
        parts = parts_of(path)
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        return [folder for folder in folders if self.kind(folder) is None]

    def write(self, path: str, data: bytes, *, over: bytes | None, mode: int | None = None) -> None:
        """Make the file hold `data`, in one step. `over` is what it must hold until then; None: it must not exist.

        A file keeps its owner, and its permission bits unless `mode` says otherwise.
        """
        if len(data) > MAX_FILE_BYTES:
            raise _too_large(path, len(data))
        with self._making_folders(path), self._parent(path, make=over is None) as (folder, name):
            if folder is None:
                raise _changed(path)
            if over is None:
                _refuse_collision(folder, name, path)
            temporary, descriptor = _open_temporary(folder, 0o666 if over is None and mode is None else 0o600)
            try:
                _dress(descriptor, _status(folder, name), mode)
                _fill(descriptor, data)
                if _read(folder, name, path) != over:
                    raise _changed(path)
                if over is None:
                    _place(folder, temporary, folder, name, path)
                else:
                    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                os.close(descriptor)

    def delete(self, path: str, *, over: bytes) -> None:
        """Remove a file that holds `over`."""
        with self._parent(path) as (folder, name):
            if folder is None or _read(folder, name, path) != over:
                raise _changed(path)
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def rename(self, path: str, new_path: str, *, over: bytes) -> None:
        """Move a file that holds `over` to a name that is free."""
        with (
            self._making_folders(new_path),
            self._parent(path) as (folder, name),
            self._parent(new_path, make=True) as (new_folder, new_name),
        ):
            if folder is None or new_folder is None or _read(folder, name, path) != over:
                raise _changed(path)
            here = os.path.samestat(os.fstat(folder), os.fstat(new_folder))
            _refuse_collision(new_folder, new_name, new_path, except_for=name if here else None)
            _place(folder, name, new_folder, new_name, new_path)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.fsync(new_folder)
            os.fsync(folder)

    def remove_if_empty(self, path: str) -> None:
        """Remove a folder, unless somebody has put something into it."""
        with self._parent(path) as (folder, name):
            if folder is not None:
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folder)

    def walk(self, enter: Callable[[str], bool]) -> Iterator[Visited]:
        """Each folder, outermost first; links are not followed.

        `enter` is asked about each folder's path before it is opened.
        """
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                with self._opened(path) as folder:
                    folders, files, others = _entries(folder)
            except FileNotFoundError:
                continue  # It vanished since.
            except (OSError, EditError) as problem:
                why = problem.fact if isinstance(problem, EditError) else _reason(problem)
                yield Visited(path, (), (), (LeftOut(path, f"unreadable: {why}"),))
                continue
            left_out = [LeftOut(join(path, name), LINK_OR_SPECIAL) for name in others]
            left_out += [
                LeftOut(join(path, ascii(name)[1:-1]), NO_PATH)
                for name in (*folders, *files)
                if name_problem(name) is not None and name.casefold() != ".git" and not TEMPORARY.fullmatch(name)
            ]
            # What no path can name is not there for anybody who goes by paths.
            below = {name: join(path, name) for name in folders if name_problem(name) is None}
            if path.count("/") + 3 > MAX_PATH_PARTS:
                left_out += [LeftOut(child, TOO_DEEP) for child in below.values()]
            yield Visited(path, tuple(below), tuple(files), tuple(left_out))
            if path.count("/") + 3 <= MAX_PATH_PARTS:
                waiting += [child for child in reversed(below.values()) if enter(child)]

    def sweep(self) -> list[str]:
        """Remove the temporary files of writers that were killed; returns their paths."""
        removed = []
        for visited in self.walk(lambda _: True):
            for name in filter(TEMPORARY.fullmatch, visited.files):
                with suppress(OSError), self._opened(visited.path) as folder:
                    if _remove_abandoned(folder, name):
                        removed.append(join(visited.path, name))
        return removed

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        folder = self._descend(path.split("/") if path else [])
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
        """The descriptor of the folder a path lies in (None when it is not there), and the last name."""
        *folders, name = parts_of(path)
        with _in_words(path):
            try:
                folder = self._descend(folders, make=make)
            except FileNotFoundError:
                yield None, name
                return
            try:
                yield folder, name
            finally:
                os.close(folder)

    def _descend(self, parts: list[str], *, make: bool = False) -> int:
        """A descriptor of the folder that these names lead to, each opened from the one before."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for index, part in enumerate(parts):
                inner = _open_folder(folder, part, "/".join(parts[: index + 1]), make=make)
                os.close(folder)
                folder = inner
        except BaseException:
            os.close(folder)
            raise
        return folder

    @contextmanager
    def _making_folders(self, path: str) -> Iterator[None]:
        """Folders that were made for a write which then failed are taken back."""
        missing = self.missing_folders(path)
        try:
            yield
        except BaseException:
            for folder in reversed(missing):
                self.remove_if_empty(folder)
            raise


def join(folder: str, name: str) -> str:
    """The path of a name in a folder; the project itself is the empty path."""
    return f"{folder}/{name}" if folder else name


def _open_folder(folder: int, name: str, path: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENOTDIR) and (status := _status(folder, name)) is not None:
            _refuse_special(status.st_mode, path)
            raise EditError("this is a file, not a folder", place=path) from None
        raise
    _refuse_collision(folder, name, path)
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open(folder: int, name: str, path: str) -> io.FileIO | None:
    """A regular file. Its kind is looked at before it is opened, since opening a device can act on it, and again
    afterwards, since it may have been swapped."""
    status = _status(folder, name)
    if status is None:
        return None
    _refuse_all_but_files(status, path)
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise _is_special("a symbolic link", path) from None
        raise
    file = io.FileIO(descriptor)
    try:
        _refuse_all_but_files(os.fstat(descriptor), path)
    except BaseException:
        file.close()
        raise
    return file


def _read(folder: int, name: str, path: str) -> bytes | None:
    """The bytes of a regular file, if it is not too large."""
    file = _open(folder, name, path)
    if file is None:
        return None
    with file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise _too_large(path, size)
        data = bytearray()
        # The file may be growing. One byte too many is enough to know.
        while piece := file.read(MAX_FILE_BYTES + 1 - len(data)):
            data += piece
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(path, len(data))
    return bytes(data)


def _entries(folder: int) -> tuple[list[str], list[str], list[str]]:
    """The names of the folders, of the regular files and of everything else in a folder, sorted."""
    folders, files, others = [], [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            else:
                others.append(entry.name)
    return sorted(folders), sorted(files), sorted(others)


def _open_temporary(folder: int, mode: int) -> tuple[str, int]:
    """A new file beside the one to be written, locked as long as its writer lives."""
    while True:
        name = f".lastword-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(name, _NEW, mode, dir_fd=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A sweep may have come between the two lines and taken the file for an abandoned one.
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        os.close(descriptor)


def _remove_abandoned(folder: int, name: str) -> bool:
    """Remove a temporary file if its writer is dead: a living one holds its lock."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _dress(descriptor: int, old: os.stat_result | None, mode: int | None) -> None:
    """Give the new file the owner and the permission bits of the old one, before anything is in it."""
    if old is not None:
        new = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            with suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        mode = stat.S_IMODE(old.st_mode) if mode is None else mode
    if mode is not None:
        os.fchmod(descriptor, mode)


def _fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _place(folder: int, name: str, new_folder: int, new_name: str, path: str) -> None:
    """Give a file a new name that must be free. The old name may stay; the caller removes it."""
    try:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK):
            raise
        # A file system without hard links: look, then rename.
        if _status(new_folder, new_name) is not None:
            raise _taken(path) from None
        os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)


def _refuse_collision(folder: int, name: str, path: str, *, except_for: str | None = None) -> None:
    """A new name must differ from every other by more than case, or the project breaks on other systems."""
    wanted = folded(name)
    for other in os.listdir(folder):
        if other not in (name, except_for) and folded(other) == wanted:
            raise PathRefused(
                f"{other} is there already, and on many systems the two names are one", place=path, hint=f"use {other}"
            )


def _refuse_all_but_files(status: os.stat_result, path: str) -> None:
    _refuse_special(status.st_mode, path)
    if stat.S_ISDIR(status.st_mode):
        raise EditError("this is a folder, not a file", place=path)


def _refuse_special(mode: int, path: str) -> None:
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    raise _is_special(kinds.get(stat.S_IFMT(mode), "a device"), path)


def _is_special(kind: str, path: str) -> PathRefused:
    return PathRefused(f"this is {kind}, and only plain files and folders are opened", place=path)


def _too_large(path: str, size: int) -> TooLarge:
    return TooLarge(
        f"a file of {size:,} bytes; the editor takes at most {MAX_FILE_BYTES:,}",
        place=path,
        hint="it can be read a part at a time, with first_line and last_line, and not edited",
    )


def _changed(path: str) -> Conflict:
    return Conflict("the file changed in the meantime, and nothing was written", place=path, hint="read it again")


def _taken(path: str) -> Conflict:
    return Conflict("there is something of that name already", place=path, hint="choose a name that is free")


@contextmanager
def _in_words(path: str) -> Iterator[None]:
    """What the system says about a path, as an error of ours."""
    try:
        yield
    except OSError as problem:
        raise EditError(f"the system refused: {_reason(problem)}", place=path) from problem


def _reason(problem: OSError) -> str:
    return os.strerror(problem.errno).lower() if problem.errno else str(problem)
