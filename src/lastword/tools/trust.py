"""Which tool code this person has agreed to run, on this machine.

Code in a folder that was named (`--tools DIR`) is meant. Code that merely lies in `tools/` may have come with somebody
else's project, so it is imported after one question. The answer is remembered for the folder and the digest of
everything in it that Python can import: changed code is other code, and is asked about again. Who works on a tool of
their own answers `always` once: then the folder is trusted while it and its files belong to this user and nobody else
may write them.

A configuration that was found (config/loader.py), a policy and its rules are accepted in the same way, by their place
and what they say.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from lastword import values
from lastword.errors import ConfigError, NotJSON
from lastword.store import data_folder, make_private, write_whole


class CodeFolder(Protocol):
    """A folder of code, as far as trust is concerned: where it lies, and what Python could import from it."""

    @property
    def path(self) -> Path: ...

    def files(self) -> list[Path]: ...

    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was agreed about one folder."""

    digest: str
    whole_folder: bool = False
    """Also when its code changes."""


class Trust:
    """The agreements of this person, in one small file that only they can read."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or data_folder() / "trusted.json"

    def covers(self, folder: CodeFolder) -> bool:
        """Whether the code in this folder may be imported without a question."""
        known = self._read().get(str(folder.path.resolve()))
        if known is None:
            return False
        if known.whole_folder and _is_mine_alone(folder):
            return True
        return known.digest == folder.digest()

    def knows(self, folder: CodeFolder) -> bool:
        """Whether this folder was agreed to before, perhaps with other code in it."""
        return str(folder.path.resolve()) in self._read()

    def remember(self, folder: CodeFolder, digest: str | None = None, *, whole_folder: bool = False) -> None:
        """Agree to the code that was shown, by its digest; without one, to what is in the folder now."""
        known = self._read()
        known[str(folder.path.resolve())] = Agreement(digest or folder.digest(), whole_folder)
        self._write(known)

    @staticmethod
    def digest_of(text: str) -> str:
        """What stands for the text of a file in the list."""
        return hashlib.sha256(text.encode()).hexdigest()

    def covers_file(self, file: Path, text: str) -> bool:
        """Whether this file was accepted with this text in it."""
        known = self._read().get(str(file.resolve()))
        return known is not None and known.digest == self.digest_of(text)

    def remember_file(self, file: Path, text: str) -> None:
        """Accept the file as long as it says this."""
        known = self._read()
        known[str(file.resolve())] = Agreement(self.digest_of(text))
        self._write(known)

    @staticmethod
    def rule_name(rule: str, tool: str) -> str:
        """Under which name it is remembered that a rule was accepted for a tool."""
        return f"{_RULE}{rule} {tool}"

    def rules(self) -> dict[str, str]:
        """For which tool, as it was then, each rule was accepted: digests by `rule_name`."""
        return {name: known.digest for name, known in self._read().items() if name.startswith(_RULE)}

    def remember_rules(self, digests: Mapping[str, str]) -> None:
        """Accept rules for tools as they are: digests by `rule_name`."""
        self._write(self._read() | {name: Agreement(digest) for name, digest in digests.items()})

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
        facts = values.canonical(msgspec.to_builtins(known))
        write_whole(self._file, msgspec.json.format(facts, indent=2) + b"\n")


_RULE = "rule "  # No path begins like this: those of folders and files are absolute.


def read_no_caches() -> None:
    """Keep byte code in a folder of ours. A `__pycache__` that came with a tool could hold other code than its source.

    The folder's name ends as the guard expects of byte code, which may be written while a card is drawn.
    """
    cache = data_folder() / "__pycache__"
    with suppress(OSError):  # Python would make it readable for everybody, and the folder of the journal with it.
        make_private(cache)
    sys.pycache_prefix = str(cache)


def _is_mine_alone(folder: CodeFolder) -> bool:
    """Whether the folder and its code belong to this user, and nobody else may write them."""
    for path in (folder.path, *folder.files()):
        facts = path.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
    return True
