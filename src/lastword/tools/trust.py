"""Which tool code this person has agreed to run, on this machine.

Code in a folder that was named (`--tools DIR`) is meant. Code that merely lies in `tools/` may have come with somebody
else's project, so it is imported after one question. The answer is remembered for the folder and the digest of
everything in it that Python can import: changed code is other code, and is asked about again. Who works on a tool of
their own answers `always` once: then the folder is trusted while it and its files belong to this user and nobody else
may write them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.errors import ConfigError, NotJSON
from lastword.store.folders import data_folder, make_private
from lastword.tools.code import code_files, digest_of_folder


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was agreed about one folder."""

    digest: str
    whole_folder: bool = False
    """Also when its code changes."""


class Trust:
    """The agreements of this person, in one small file that only they can read."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or data_folder(sys.platform, os.environ, Path.home()) / "trusted.json"

    def covers(self, folder: Path) -> bool:
        """Whether the code in this folder may be imported without a question."""
        known = self._read().get(str(folder.resolve()))
        if known is None:
            return False
        if known.whole_folder and _is_mine_alone(folder):
            return True
        return known.digest == digest_of_folder(folder)

    def knows(self, folder: Path) -> bool:
        """Whether this folder was agreed to before, perhaps with other code in it."""
        return str(folder.resolve()) in self._read()

    def remember(self, folder: Path, *, whole_folder: bool = False) -> None:
        """Agree to the code that is in the folder now."""
        known = self._read()
        known[str(folder.resolve())] = Agreement(digest_of_folder(folder), whole_folder)
        self._write(known)

    def _read(self) -> dict[str, Agreement]:
        try:
            facts = self._file.stat()
            text = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(
                "others could have written this list of trusted code, so it is not believed",
                place=str(self._file),
                hint="delete it; you will be asked again",
            )
        try:
            return msgspec.convert(values.parse(text), dict[str, Agreement])
        except (NotJSON, msgspec.ValidationError) as problem:
            raise ConfigError(
                f"the list of trusted code cannot be read: {problem}",
                place=str(self._file),
                hint="delete it; you will be asked again",
            ) from None

    def _write(self, known: Mapping[str, Agreement]) -> None:
        make_private(self._file.parent)
        written = self._file.with_suffix(f".{os.getpid()}")
        facts: dict[str, Any] = msgspec.to_builtins(known)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(values.canonical(facts), indent=2) + b"\n")
        written.replace(self._file)


def read_no_caches() -> None:
    """Keep byte code in a folder of ours. A `__pycache__` that came with a tool could hold other code than its source.

    The folder's name ends as the guard expects of byte code, which may be written while a card is drawn.
    """
    cache = data_folder(sys.platform, os.environ, Path.home()) / "__pycache__"
    with suppress(OSError):  # Python would make it readable for everybody, and the folder of the journal with it.
        make_private(cache)
    sys.pycache_prefix = str(cache)


def _is_mine_alone(folder: Path) -> bool:
    """Whether the folder and its code belong to this user, and nobody else may write them."""
    for path in (folder, *code_files(folder)):
        facts = path.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
    return True
