"""Secrets of MCP servers: a file that only its owner can read, and `${NAME}` wherever one is meant.

A secret is put in where a server starts or is contacted, and nowhere else. It is never taken from the environment of
this process: a project's file could name any variable there. What a server says is searched for the secrets that it
was given, and they are taken out again before anybody sees, keeps or logs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from secrets import token_bytes
from typing import Any, ClassVar

import msgspec

from lastword.errors import ConfigError, Problem, did_you_mean
from lastword.store import data_folder, make_private, write_whole

NAMED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# A shorter one would be found in ordinary words, and every one of them hidden.
MIN_HIDDEN = 4
# From this length on nobody says a secret by chance.
MIN_TELLING = 12
KEY_BYTES = 32
# Of a tool's definition: what a call has to repeat to the server as it is.
_REPEATED = frozenset({"name", "enum", "const", "pattern", "required"})


class SecretFile:
    """The secrets of this person, by name."""

    NONE_USED: ClassVar[UsedSecrets]

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or own_file("mcp_secrets.json")

    def names(self) -> list[str]:
        return sorted(self._read())

    def keep(self, name: str, value: str) -> None:
        """Keep a secret, in place of the one that had this name."""
        if not SECRET_NAME.fullmatch(name):
            raise ConfigError(f"{name[:60]!r} is no name of a secret", hint="letters, digits and underscores")
        if not value or "\0" in value or "\n" in value:
            raise ConfigError(f"the secret {name} is empty, or has more than one line")
        write_private(self.file, self._read() | {name: value})

    def forget(self, name: str) -> bool:
        known = self._read()
        if known.pop(name, None) is None:
            return False
        write_private(self.file, known)
        return True

    def expand(self, texts: Mapping[str, str], place: str) -> tuple[dict[str, str], UsedSecrets]:
        """The texts with their secrets in them, and which secrets those were."""
        known, used = self._read(), dict[str, str]()

        def put(found: re.Match[str]) -> str:
            name = found[1]
            if name not in known:
                hint = did_you_mean(name, known) or f"lastword mcp secret {name} asks for it"
                raise ConfigError(f"there is no secret {name}", place=place, hint=hint)
            used[name] = known[name]
            return known[name]

        return {key: NAMED.sub(put, text) for key, text in texts.items()}, UsedSecrets(used)

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            # Its words could quote the file.
            raise ConfigError(f"cannot be read ({type(problem).__name__})", place=str(self.file)) from None


class UsedSecrets:
    """The secrets that a server was given, which are taken out again of whatever it says."""

    def __init__(self, used: Mapping[str, str]) -> None:
        self._used = used
        found = ((value, name) for name, value in used.items() if len(value) >= MIN_HIDDEN)
        self._longest_first = sorted(found, key=lambda pair: -len(pair[0]))

    def hide(self, text: str) -> str:
        for value, name in self._longest_first:
            if value in text:
                text = text.replace(value, f"${{{name}}}")
        return text

    def hide_in(self, value: Any) -> Any:
        """The same of a JSON value, however deep a text lies in it."""
        if isinstance(value, dict):
            return {self.hide(key): self.hide_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        return self.hide(value) if isinstance(value, str) else value

    def without(self, definition: dict[str, Any]) -> dict[str, Any]:
        """What a server says of a tool, without them: it is pinned, shown and sent to models.

        A Problem says that one is where it cannot be taken out.
        """
        made: dict[str, Any] = self._cleaned(definition)
        text = msgspec.json.encode(made).decode()
        for name, value in self._used.items():
            if len(value) >= MIN_TELLING and msgspec.json.encode(value).decode()[1:-1] in text:
                raise Problem(f"a tool whose definition holds the secret {name} in a name or a choice")
        return made

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item if _is_repeated(name, item) else self._cleaned(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._cleaned(item) for item in value]
        return self.hide(value) if isinstance(value, str) else value


SecretFile.NONE_USED = UsedSecrets({})


def _is_repeated(key: str, value: Any) -> bool:
    return key in _REPEATED and not isinstance(value, dict)  # An argument may be called `name`.


def own_file(name: str) -> Path:
    """A file in this person's own folder."""
    return data_folder() / name


def write_private(file: Path, value: Any) -> None:
    """Replace a file that only its owner may read, whole or not at all. Bytes are written as they are."""
    make_private(file.parent)
    data = value if isinstance(value, bytes) else msgspec.json.format(msgspec.json.encode(value), indent=1)
    write_whole(file, data)


def sealing_key(file: Path) -> bytes:
    """The key that seals what a client carries from one round to the next, made when it is first needed.

    It lies in a file that only its owner can read, and outlives the process, so that rounds do, too.
    """
    make_private(file.parent)
    write_whole(file, token_bytes(KEY_BYTES), keeps=True)
    if file.stat().st_mode & 0o077:
        raise ConfigError("others could read this key", place=str(file), hint="take it away; a new one is made")
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ConfigError("this is no key", place=str(file), hint="take it away; a new one is made")
    return key
