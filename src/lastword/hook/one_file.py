"""The file that an agent wants to change, as far as a card has to know it. It is read, and never written here."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NoReturn

from lastword.editor import MAX_FILE_BYTES, LintError, Operation, decode
from lastword.errors import EditError, NotText


class OneFile:
    """An editor over the one file that a path leads to, links followed as the agent will follow them.

    The file is known by where it really lies. When the path leads elsewhere later, what was looked at is not there.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def real_path(self) -> str:
        """Where the path leads now."""
        return os.path.realpath(self.path)

    def can_be_shown(self) -> bool:
        """Whether a change of it would be shown as a diff."""
        try:
            _text_of(self.real_path())
        except EditError:
            return False
        return True

    @property
    def script_name(self) -> str:
        return os.path.basename(self.path)

    def exists(self, path: str) -> bool:
        return path == self.real_path() and os.path.exists(path)

    def get_all_folders(self) -> list[str]:
        return []

    def get_all_files(self) -> list[str]:
        return [self.real_path()]

    async def get_file_content(self, path: str) -> str | None:
        """Its text; None when it is not there. EditError when it is not a text of bearable size."""
        if path != self.real_path():
            raise EditError("the path leads elsewhere now", place=path)
        return _text_of(path)

    async def update_file_content(self, path: str, content: str) -> bool:
        self._refuse(path)

    async def write_to_file(self, path: str, content: str) -> bool:
        self._refuse(path)

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        self._refuse(path)

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        self._refuse(path)

    def open_diff_editor(self, path: str, content: str) -> None:
        """Nobody looks at a screen here."""

    def get_lint_errors(self) -> dict[str, list[LintError]]:
        return {}

    def _refuse(self, path: str) -> NoReturn:
        raise EditError("the agent writes it, and nobody else", place=path)


def _text_of(path: str) -> str | None:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise EditError("it is no regular file", place=path)
        if found.st_size > MAX_FILE_BYTES:
            raise EditError(f"it has {found.st_size:,} bytes, more than can be shown", place=path)
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise EditError(f"it cannot be read: {problem.strerror}", place=path) from None
    text = decode(data)
    if text is None or len(data) > MAX_FILE_BYTES:
        raise NotText("it is binary, not UTF-8, or too large", place=path)
    return text
