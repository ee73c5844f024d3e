"""One change of a file in three steps, of which two wait for the disk and may do so beside an event loop.

What a write, a deletion and a rename have in common: what can be done beforehand, the change itself with a last look
before it, and bringing it to the disk.

A write makes a temporary file in the same folder, brings it to the disk, looks once more that the old file is what it
was, and renames. Whoever is killed on the way leaves the old file or the new one, and perhaps a temporary file, which
`sweep` removes: a living writer holds a lock on its own. Between the last look and the rename lie some microseconds in
which another program's write can still be lost; only a file that is being created is safe from that too, since a hard
link refuses to replace anything.

What does not live here: who waits for a change (project.py), and names and descriptors (project_folder.py).
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import ExitStack, suppress
from threading import Lock

from lastword.editor.project_folder import (
    FILE,
    TEMPORARY,
    Folder,
    changed_meanwhile,
    join,
    place,
    read_in,
    refuse_collision,
    refuse_too_large,
    status_in,
)
from lastword.errors import EditError


class Changing:
    """One change of a file, in three steps.

    The first and the last wait for the disk, and may do so beside an event loop; the change itself is the second, which
    takes no time. Whoever prepares a change and does not finish it leaves it.
    """

    def __init__(self, folder: Folder, path: str) -> None:
        self._folder, self.path = folder, path
        self._lock = Lock()
        self._open: ExitStack | None = None
        """What is to be closed and removed in the end. Whoever takes it does so."""
        self._changed: list[int] = []
        """Descriptors of the folders in which names have changed."""
        self._is_left = False

    def prepare(self) -> None:
        """Do what can be done before anything changes."""
        with ExitStack() as stack:
            self._prepare(stack)
            with self._lock:
                if self._is_left:
                    raise changed_meanwhile(self.path)  # Told to nobody: it makes all of the above go.
                self._open = stack.pop_all()

    def finish(self) -> None:
        """Look once more that the file is what it was, and change it."""
        with self._taken()[0] as stack:
            self._changed = self._finish()
            self._open = stack.pop_all()

    def settle(self) -> None:
        """Bring the change of names to the disk. A second time does nothing."""
        stack, changed = self._taken()
        with stack:
            for folder in changed:
                stack.callback(os.fsync, folder)

    def leave(self) -> None:
        """Nobody waits for it any longer: what was prepared, or is being prepared right now, goes."""
        with suppress(EditError), self._taken(leave=True)[0]:
            raise changed_meanwhile(self.path)

    def _prepare(self, stack: ExitStack) -> None:
        raise NotImplementedError

    def _finish(self) -> list[int]:
        raise NotImplementedError

    def _taken(self, *, leave: bool = False) -> tuple[ExitStack, list[int]]:
        with self._lock:
            taken, self._open = self._open, None
            changed, self._changed = self._changed, []
            self._is_left |= leave
        return taken or ExitStack(), changed


class Writing(Changing):
    """Make a file hold `data`. `over` is what it must hold until then; None: it must not exist.

    A file keeps its owner, and its permission bits unless `mode` says otherwise.
    """

    def __init__(self, folder: Folder, path: str, data: bytes, over: bytes | None, mode: int | None = None) -> None:
        refuse_too_large(path, len(data))
        super().__init__(folder, path)
        self._data, self._over, self._mode = data, over, mode
        self._at: tuple[int, str, str]
        """The folder's descriptor, the name of the file, and that of the temporary one."""

    def _prepare(self, stack: ExitStack) -> None:
        """The content goes to the disk under another name."""
        path, over, mode = self.path, self._over, self._mode
        stack.enter_context(self._folder.making_folders(path))
        folder, name = stack.enter_context(self._folder.parent(path, make=over is None))
        if folder is None:
            raise changed_meanwhile(path)
        if over is None:
            refuse_collision(folder, name, path)
        temporary, descriptor = _open_temporary(folder, 0o666 if over is None and mode is None else 0o600)
        stack.callback(os.close, descriptor)
        stack.callback(_remove_if_there, folder, temporary)
        _dress(descriptor, status_in(folder, name), mode)
        _fill(descriptor, self._data)
        self._at = folder, name, temporary

    def _finish(self) -> list[int]:
        folder, name, temporary = self._at
        if read_in(folder, name, self.path) != self._over:
            raise changed_meanwhile(self.path)
        if self._over is None:
            place(folder, temporary, folder, name, self.path)
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return [folder]


class Deleting(Changing):
    """Remove a file that holds `over`."""

    def __init__(self, folder: Folder, path: str, over: bytes) -> None:
        super().__init__(folder, path)
        self._over = over
        self._at: tuple[int | None, str]

    def _prepare(self, stack: ExitStack) -> None:
        self._at = stack.enter_context(self._folder.parent(self.path))

    def _finish(self) -> list[int]:
        folder, name = self._at
        if folder is None or read_in(folder, name, self.path) != self._over:
            raise changed_meanwhile(self.path)
        os.unlink(name, dir_fd=folder)
        return [folder]


class Renaming(Changing):
    """Move a file that holds `over` to a name that is free."""

    def __init__(self, folder: Folder, path: str, new_path: str, over: bytes) -> None:
        super().__init__(folder, path)
        self._new_path, self._over = new_path, over
        self._at: tuple[int | None, str]
        self._to: tuple[int | None, str]

    def _prepare(self, stack: ExitStack) -> None:
        """The folders of the new name are made."""
        stack.enter_context(self._folder.making_folders(self._new_path))
        self._at = stack.enter_context(self._folder.parent(self.path))
        if self._at[0] is None:
            raise changed_meanwhile(self.path)
        self._to = stack.enter_context(self._folder.parent(self._new_path, make=True))

    def _finish(self) -> list[int]:
        (folder, name), (new_folder, new_name) = self._at, self._to
        if folder is None or new_folder is None or read_in(folder, name, self.path) != self._over:
            raise changed_meanwhile(self.path)
        here = os.path.samestat(os.fstat(folder), os.fstat(new_folder))
        refuse_collision(new_folder, new_name, self._new_path, except_for=name if here else None)
        place(folder, name, new_folder, new_name, self._new_path)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return [folder, new_folder]


def sweep(folder: Folder) -> list[str]:
    """Remove the temporary files of writers that were killed; returns their paths."""
    removed = []
    for visited in folder.walk(lambda _: True):
        for name in filter(TEMPORARY.fullmatch, visited.files):
            with suppress(OSError), folder.opened_folder(visited.path) as descriptor:
                if _remove_abandoned(descriptor, name):
                    removed.append(join(visited.path, name))
    return removed


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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


def _remove_if_there(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _remove_abandoned(folder: int, name: str) -> bool:
    """Remove a temporary file if its writer is dead: a living one holds its lock."""
    descriptor = os.open(name, FILE, dir_fd=folder)
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
