"""What a card was drawn from: the files and the state that a request function looked at, each with a mark.

A mark is short, and the same for as long as what it stands for is. It is taken *before* the tool looks, so that what
changes in the same moment is found changed, and never current. Files that a tool reads through the editor are noted
there (editor/recording.py); how an `open` comes to our ears is told in audit_hook.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Literal, Protocol
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from lastword.values import canonical, digest

# A file is read twice more for its marks: when the card is drawn, and when the call starts. Of what is larger than this
# the mark is made of size, time of change and inode, which a program that means to can keep while it changes the rest.
MAX_DIGESTED_BYTES = 8 * 1024 * 1024

# Every look is part of the question, and so of the journal.
MAX_OBSERVATIONS = 10_000

_NOT_FILES = ("/proc/", "/sys/")
# Where Python keeps what it is made of. Reading it is what running a program means.
_OF_PYTHON = (os.path.join(os.path.dirname(os.path.realpath(os.__file__)), ""),)
_INSTALLED = ("/site-packages/", "/dist-packages/", "/__pycache__/")

UNREADABLE = "unreadable"


class Observation(msgspec.Struct, frozen=True, array_like=True):
    """One thing that was looked at, and its mark then; None when it was not there."""

    kind: Literal["file", "quoted file", "state", "state keys"]
    """A file whose name is no text is quoted, as in a URL: a journal holds text."""
    name: str
    mark: str | None

    @property
    def is_file(self) -> bool:
        return self.kind in ("file", "quoted file")


class Readable(Protocol):
    """State, as far as a look is concerned."""

    def keys(self) -> list[str]: ...

    def mark(self, key: str) -> str | None: ...


class Observations:
    """Everything that one request function looked at, as it was when it looked for the first time."""

    def __init__(self, state: Readable) -> None:
        self._state = state
        self._taken: dict[tuple[str, str], Observation] = {}
        self.are_too_many = False
        self.has_glanced = False
        """Whether it looked at something that has no mark: a folder's list, a file's size, a device."""

    def add_file(self, path: str) -> None:
        """Note a file that is about to be read, unless it is Python's own or no file at all."""
        path = os.path.abspath(path)
        if path.startswith(_OF_PYTHON) or any(part in path for part in _INSTALLED):
            return
        if path.startswith(_NOT_FILES):
            self.has_glanced = True
            return
        kind: Literal["file", "quoted file"] = "file"
        name = path
        if not _is_text(path):
            kind, name = "quoted file", quote_from_bytes(os.fsencode(path))
        if self._has_room(kind, name):
            mark = _mark_of(path)
            if mark == NO_FILE:
                self.has_glanced = True
            else:
                self._taken[kind, name] = Observation(kind, name, mark)

    def add_state(self, state: Readable, key: str | None) -> None:
        """Note a key of the session's state, or all of it. Any other state is not the question's."""
        if state is not self._state:
            return
        if key is None:
            names = sorted(state.keys())
            if self._has_room("state keys", ""):
                self._taken["state keys", ""] = Observation("state keys", "", _mark_of_keys(names))
        else:
            names = [key]
        for name in names:
            # What no state can have as a key is not there today, and will not be tomorrow.
            if _is_text(name) and self._has_room("state", name):
                self._taken["state", name] = Observation("state", name, state.mark(name))

    def taken(self) -> tuple[Observation, ...]:
        """All of it, in an order that does not depend on who looked first."""
        return tuple(self._taken[key] for key in sorted(self._taken))

    def _has_room(self, kind: str, name: str) -> bool:
        if (kind, name) in self._taken:
            return False
        self.are_too_many = self.are_too_many or len(self._taken) >= MAX_OBSERVATIONS
        return not self.are_too_many


def changed_files(looks: Iterable[Observation]) -> list[str]:
    """The names of the files that are not what they were. Reads them all: not for an event loop."""
    changed = []
    for look in looks:
        if look.is_file:
            path = look.name if look.kind == "file" else os.fsdecode(unquote_to_bytes(look.name))
            if _mark_of(path) != look.mark:
                changed.append(look.name)
    return changed


def changed_state(looks: Iterable[Observation], state: Readable) -> list[str]:
    """The keys of the state that are not what they were, in words."""
    known = {look.name: look.mark for look in looks if look.kind == "state"}
    changed = [key for key, mark in known.items() if state.mark(key) != mark]
    for look in looks:
        if look.kind == "state keys" and _mark_of_keys(names := sorted(state.keys())) != look.mark:
            changed += [key for key in names if key not in known]
    return [f"the state {key!r}" for key in changed]


NO_FILE = "no file"


def _mark_of(path: str) -> str | None:
    """What a file holds, in short; None when there is none. What is no regular file is not even opened."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return NO_FILE
        if found.st_size <= MAX_DIGESTED_BYTES:
            with open(path, "rb", opener=_open_now) as file:
                data = file.read(MAX_DIGESTED_BYTES + 1)
            if len(data) <= MAX_DIGESTED_BYTES:
                return digest(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return UNREADABLE
    return f"{found.st_size} bytes, changed at {found.st_mtime_ns}, inode {found.st_ino}"


def _is_text(name: object) -> bool:
    try:
        return isinstance(name, str) and bool(name.encode())
    except UnicodeEncodeError:
        return False


def _open_now(path: str, flags: int) -> int:
    """A pipe that took the file's place in this very moment must not make anybody wait."""
    return os.open(path, flags | os.O_NONBLOCK)


def _mark_of_keys(names: list[str]) -> str:
    return digest(canonical(names))
