"""What a person trusted of which server, on this machine: the way to it, and every definition, byte for byte.

It lies in the person's own folder and in no project. A server is known by the file that names it and by its name
there, so that two projects that call theirs the same have nothing to do with each other.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from lastword.errors import ConfigError
from lastword.mcp.definitions import Definition, marked
from lastword.mcp.launch import Launch
from lastword.mcp.secrets import write_private
from lastword.store import data_folder
from lastword.tools import ToolKey


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What was trusted of one server."""

    launch: dict[str, Any]
    tools: dict[str, str]
    """Each definition by the tool's name."""
    version: str = ""
    """What the server called itself. Shown, and nothing more."""
    standing: ToolKey = False
    """Which standing yes its tools may take: none, one for exact arguments, or one within bounds."""

    def __post_init__(self) -> None:
        if self.standing is True:  # As it was written down once. No preset is meant by it.
            msgspec.structs.force_setattr(self, "standing", "bounds")

    def definitions(self) -> list[Definition]:
        return [Definition(name, text) for name, text in self.tools.items()]

    def definition(self, name: str) -> Definition | None:
        text = self.tools.get(name)
        return None if text is None else Definition(name, text)

    def way_changed(self, launch: Launch) -> list[str]:
        """What is not as it was trusted on the way to the server, in words; nothing when all of it is."""
        now, before = launch.facts(), self.launch
        words = []
        for key in sorted(now.keys() | before.keys()):
            if now.get(key) != before.get(key):
                words.append(f"{key}: {_shown(before.get(key))} → {_shown(now.get(key))}")
        return words


class Pins:
    """All that this person trusted."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or data_folder(sys.platform, os.environ, Path.home()) / "mcp_trusted.json"

    def of(self, place: Path, name: str) -> Pinned | None:
        return self._read().get(_key(place, name))

    def keep(
        self,
        place: Path,
        launch: Launch,
        tools: Iterable[Definition],
        version: str = "",
        standing: ToolKey = False,
    ) -> Pinned:
        """Trust the server as it is. `standing` turns the key of its tools, which the person holds for them."""
        texts = {tool.name: tool.text for tool in tools}
        pinned = Pinned(launch=launch.facts(), tools=texts, version=version, standing=standing)
        write_private(self.file, self._read() | {_key(place, launch.name): pinned})
        return pinned

    def forget(self, place: Path, name: str) -> bool:
        known = self._read()
        if known.pop(_key(place, name), None) is None:
            return False
        write_private(self.file, known)
        return True

    def _read(self) -> dict[str, Pinned]:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, Pinned])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            # Nothing is trusted by a file that nobody can read, and nothing in it is overwritten either.
            hint = "mend it or take it away; then trust your servers again"
            raise ConfigError(f"cannot be read: {problem}", place=str(self.file), hint=hint) from None


def _key(place: Path, name: str) -> str:
    return f"{name} in {place.resolve()}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else marked(json.dumps(value, ensure_ascii=False))
