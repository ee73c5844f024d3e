"""A key for the person's own programs, in a file that only they can read: `lastword chat --attach` looks for it.

It opens once, like every other key; a used one is replaced by a new one. The file is locked for as long as its server
lives. A file that can be locked belongs to a dead server, whose port another program may listen on by now.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from lastword.store import make_private
from lastword.web.gate import PageGate

log = logging.getLogger("lastword")


class JoinableServer(msgspec.Struct, frozen=True):
    """A server that can be joined."""

    address: str
    key: str
    folder: str
    """Where it was started."""


class JoinFile:
    """The file of one server."""

    def __init__(self, join_folder: Path, address: str, gate: PageGate, folder: Path) -> None:
        self._file = join_folder / f"{address.rpartition(':')[2]}.json"
        self._address = address
        self._gate = gate
        self._folder = folder
        self._held: int | None = None

    @contextmanager
    def published(self) -> Iterator[None]:
        """Publish the file, with a key in it. Where it cannot be written, the page has addresses all the same."""
        self._renew()
        try:
            yield
        finally:
            if self._held is not None:
                with suppress(OSError):
                    self._file.unlink()
                os.close(self._held)

    def _renew(self) -> None:
        key = self._gate.make_standing_key(self._renew)
        try:
            self._write(key)
        except OSError as problem:
            log.warning("`lastword chat --attach` will not find this server: %s", problem)

    def _write(self, key: str) -> None:
        make_private(self._file.parent)
        # Complete and locked before it gets the name under which it is looked for.
        new = self._file.with_suffix(".new")
        new.unlink(missing_ok=True)
        held = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        os.write(held, msgspec.json.encode(JoinableServer(self._address, key, str(self._folder))))
        os.replace(new, self._file)
        if self._held is not None:
            os.close(self._held)
        self._held = held


def find_joinable(join_folder: Path) -> list[JoinableServer]:
    """The servers of this person that live now."""
    files = sorted(join_folder.glob("*.json")) if join_folder.is_dir() else []
    return [found for file in files if (found := _read(file)) is not None]


def _read(file: Path) -> JoinableServer | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as opened:
        facts = os.fstat(fd)
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            return None  # Another user could have written it, or read its key.
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(opened.read(), type=JoinableServer)
    return None
