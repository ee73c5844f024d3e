"""What would be started or contacted for a server, as facts that a person sees and that trust is pinned to.

Variables and headers stand here as they are written, with `${NAME}` in them, so that a secret which would go to a
stranger is seen to. A file that is an argument is part of it by its digest: `node ./server.js` changes by a pull.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.config import McpConfig
from lastword.errors import ConfigError
from lastword.tools.guard import MARKER

# Larger ones are data, and not what a server does.
MAX_FILE_BYTES = 64 * 2**20
_INTERPRETERS = re.compile(
    r"(ba|da|a|k|z|c|tc|fi)?sh|busybox|env|perl|ruby|python|pypy|node|bun|deno|php|lua|tclsh|[gm]?awk|java"
)
# What a server gets of our environment: where things are, and in which language to speak.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One server, as it would be reached now."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    folder: str | None = None
    program: str | None = None
    """The file that the command is; None when there is none of that name."""
    real_program: str | None = None
    """The same behind all links."""
    files: dict[str, str] = {}
    """The arguments that are files, and a program that comes with the folder, by their digests."""
    url: str | None = None
    headers: dict[str, str] = {}

    def facts(self) -> dict[str, Any]:
        """What a person agrees to, without what is empty."""
        facts: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        del facts["name"]
        return {key: value for key, value in facts.items() if value not in (None, {}, [])}

    @property
    def digest(self) -> str:
        return values.digest(values.canonical(self.facts()))

    def check(self) -> None:
        """Refuse what cannot be started, before anything is tried."""
        place = f"mcp.{self.name}"
        if self.url is None and self.program is None:
            raise ConfigError(f"there is no program {self.command}", place=place, hint="is it installed, and on PATH?")
        if self.folder is not None and not os.path.isdir(self.folder):
            raise ConfigError(f"there is no folder {self.folder}", place=place)


def launch_of(name: str, config: McpConfig, base: Path) -> Launch:
    """How the server of this configuration would be reached; `base` is the folder of its file."""
    if config.url is not None:
        return Launch(name=name, url=config.url, headers=dict(config.headers))
    assert config.command is not None
    folder = os.path.abspath(base / (config.folder or ""))
    program = _program(config.command, folder)
    return Launch(
        name=name,
        command=config.command,
        args=tuple(config.args),
        env=dict(config.env),
        folder=folder,
        program=program,
        real_program=None if program is None else os.path.realpath(program),
        files=dict(_files(config, folder, program)),
    )


def environment(own: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """All that a server gets: little of ours, what its configuration says, and the mark of what runs below us."""
    kept = {key: ours[key] for key in INHERITED if key in ours and not ours[key].startswith("()")}
    return kept | dict(own) | {MARKER: ours.get(MARKER, str(os.getpid()))}


def _program(command: str, folder: str) -> str | None:
    if os.sep in command:
        return shutil.which(os.path.normpath(os.path.join(folder, os.path.expanduser(command))))
    found = shutil.which(command)
    return None if found is None else os.path.abspath(found)


def _files(config: McpConfig, folder: str, program: str | None) -> Iterator[tuple[str, str]]:
    is_first, before = True, ""
    for argument in config.args:
        for part in dict.fromkeys((argument, argument.partition("=")[2])):
            path = os.path.join(folder, part)
            # What a server works on changes with its work. The first file may be what it is, whatever it looks like:
            # it counts, unless it is the value of a long option to something that is no interpreter.
            is_value = (before if part == argument else argument).startswith("--") and not _interprets(program)
            if not part or ((is_value or not is_first) and _is_database(path)):
                continue
            if (digest := _digest(path)) is not None:
                is_first = False
                yield part, digest
        before = argument
    if program is not None and os.path.realpath(program).startswith(os.path.realpath(folder) + os.sep):
        digest = _digest(program)
        if digest is not None:
            yield program, digest


def _interprets(program: str | None) -> bool:
    """Whether it is one of the programs that run files: a shell also runs the lines of a database."""
    return program is None or _INTERPRETERS.match(os.path.basename(os.path.realpath(program))) is not None


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except (OSError, ValueError):
        return False


def _digest(path: str) -> str | None:
    """The digest of a file; None for what is none, a folder say."""
    try:
        if not os.path.isfile(path):
            return None
        found = sha256()
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                return "too large to be looked at"
            while chunk := file.read(2**20):
                found.update(chunk)
        return found.hexdigest()
    except (OSError, ValueError) as problem:
        return f"not readable ({type(problem).__name__})"
