"""Paths of a project, and the files there, through directory file descriptors: nothing here can leave the folder.

A path has one spelling, so that what was shown and what is written can be compared as text. The rules for paths keep
out what no project needs and what some system reads differently from how it looks. They are manners, not the wall.
Names that are devices elsewhere (`aux.c`, `nul`) are ordinary files on the systems that this runs on.

The wall: every name of a path is opened by itself, relative to the descriptor of the folder before it, and never
through a symbolic link (`O_NOFOLLOW`). What was opened stays what it is, so a link that is swapped in between a check
and its use changes nothing: there is no second look-up. Links are refused altogether, also those that point inside: a
person who approves a path should not have to follow it.

What does not live here: changing a file (atomic_change.py), text (text.py), what was read and shown before (project.py,
recording.py).
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lastword.editor.provider import MAX_FILE_BYTES, Conflict, EditError, LeftOut, PathRefused, TooLarge

# Longer and deeper than any path a person reads on a card; below every system's own limit.
MAX_PATH_LENGTH = 1000
MAX_PATH_PARTS = 64

TEMPORARY = re.compile(r"\.lastword-[0-9a-f]{16}\.tmp")
"""The names of files that are being written. Nobody else may use them, and they are never listed."""


def parts_of(path: str) -> tuple[str, ...]:
    """The names on the way to a file, outermost first; refuses what is not a plain relative path."""
    if not isinstance(path, str) or not path:
        raise PathRefused(f"{path!r} is not a path", hint="give a path relative to the project, such as src/main.py")
    if len(path) > MAX_PATH_LENGTH:
        raise PathRefused(f"a path of {len(path)} characters; at most {MAX_PATH_LENGTH} are taken")
    shown = ascii(path)[1:-1] if _hidden(path) else path
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:/", path):
        raise PathRefused(
            "the path is absolute", place=shown, hint="give a path relative to the project, such as src/main.py"
        )
    parts = tuple(path.split("/"))
    if len(parts) > MAX_PATH_PARTS:
        raise PathRefused(f"a path of {len(parts)} parts; at most {MAX_PATH_PARTS} are taken", place=shown)
    if ".." in parts:
        raise PathRefused("the path leads upwards", place=shown, hint="name the file without ..")
    if "" in parts or "." in parts:
        plain = "/".join(part for part in parts if part not in ("", "."))
        raise PathRefused("the path has empty parts", place=shown, hint=f"write {plain}" if plain else None)
    for part in parts:
        if problem := name_problem(part):
            raise PathRefused(problem, place=shown)
    return parts


def name_problem(name: str) -> str | None:
    """What is wrong with one name of a path, in words, or None."""
    if not (name.isascii() and name.isprintable()) and (hidden := _hidden(name)):
        return f"the name holds U+{ord(hidden):04X}, which cannot be seen or typed"
    if "\\" in name:
        return "the name holds a backslash; parts of a path are separated by /"
    if name[-1] in ". ":
        return "the name ends with a dot or a space, which some systems drop"
    folded = name.casefold()
    if folded == ".git":
        return "git's own files are not part of the project"
    if TEMPORARY.fullmatch(folded):
        return "the name is kept for files that are being written"
    return None


def folded(name: str) -> str:
    """What a name is on a system that ignores case and the way accents are written."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _hidden(text: str) -> str | None:
    """The first control, format, surrogate or line-breaking character."""
    return next((c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")), None)


# O_NONBLOCK: opening a pipe that took the place of a file must not wait for a writer.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

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
        with self.parent(path) as (folder, name):
            status = None if folder is None else status_in(folder, name)
        if status is None:
            return None
        _refuse_special(status.st_mode, path)
        return "folder" if stat.S_ISDIR(status.st_mode) else "file"

    def mode(self, path: str) -> int | None:
        """The permission bits of a file, or None when there is none."""
        with self.parent(path) as (folder, name):
            status = None if folder is None else status_in(folder, name)
        return stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else None

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None when there is none."""
        with self.parent(path) as (folder, name):
            return None if folder is None else read_in(folder, name, path)

    @contextmanager
    def opened(self, path: str) -> Iterator[io.FileIO | None]:
        """A file of any size, to be read from its beginning; None when there is none."""
        with self.parent(path) as (folder, name):
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

    def remove_if_empty(self, path: str) -> None:
        """Remove a folder, unless somebody has put something into it."""
        with self.parent(path) as (folder, name):
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
                with self.opened_folder(path) as folder:
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

    @contextmanager
    def opened_folder(self, path: str) -> Iterator[int]:
        folder = self._descend(path.split("/") if path else [])
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
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
    def making_folders(self, path: str) -> Iterator[None]:
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
        if problem.errno in (errno.ELOOP, errno.ENOTDIR) and (status := status_in(folder, name)) is not None:
            _refuse_special(status.st_mode, path)
            raise EditError("this is a file, not a folder", place=path) from None
        raise
    refuse_collision(folder, name, path)
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def status_in(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open(folder: int, name: str, path: str) -> io.FileIO | None:
    """A regular file. Its kind is looked at before it is opened, since opening a device can act on it, and again
    afterwards, since it may have been swapped."""
    status = status_in(folder, name)
    if status is None:
        return None
    _refuse_all_but_files(status, path)
    try:
        descriptor = os.open(name, FILE, dir_fd=folder)
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


def read_in(folder: int, name: str, path: str) -> bytes | None:
    """The bytes of a regular file, if it is not too large."""
    file = _open(folder, name, path)
    if file is None:
        return None
    with file:
        size = os.fstat(file.fileno()).st_size
        refuse_too_large(path, size)
        data = bytearray()
        # The file may be growing. One byte too many is enough to know.
        while piece := file.read(MAX_FILE_BYTES + 1 - len(data)):
            data += piece
    refuse_too_large(path, len(data))
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


def place(folder: int, name: str, new_folder: int, new_name: str, path: str) -> None:
    """Give a file a new name that must be free. The old name may stay; the caller removes it."""
    try:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK):
            raise
        # A file system without hard links: look, then rename.
        if status_in(new_folder, new_name) is not None:
            raise _taken(path) from None
        os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)


def refuse_collision(folder: int, name: str, path: str, *, except_for: str | None = None) -> None:
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


def refuse_too_large(path: str, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise TooLarge(
            f"a file of {size:,} bytes; the editor takes at most {MAX_FILE_BYTES:,}",
            place=path,
            hint="it can be read a part at a time, with first_line and last_line, and not edited",
        )


def changed_meanwhile(path: str) -> Conflict:
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
