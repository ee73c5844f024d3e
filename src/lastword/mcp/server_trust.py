"""What a person was shown of a server, and what of it they trusted on this machine, byte for byte.

Whoever looks holds what they saw: trust is pinned to exactly that, and not to what the server says a moment later. It
lies in the person's own folder and in no project. A server is known by the file that names it and by its name there, so
that two projects that call theirs the same have nothing to do with each other.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.errors import ConfigError
from lastword.lazily import load_later
from lastword.mcp.secrets import SecretFile, write_private
from lastword.mcp.server_facts import Definition, Launch, difference, digest_of, manifest_for, marked
from lastword.store import data_folder
from lastword.tools import ToolKey

if TYPE_CHECKING:
    from lastword.mcp import connection
else:
    # The SDK takes a second to load, and most programs that look at what was trusted start no server.
    connection = load_later("lastword.mcp.connection")


# A description of a tool is looked at before it is trusted, and not read like a book.
MAX_SHOWN = 2_000


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

    def changed_tools(self, tools: list[Definition]) -> list[tuple[Definition | None, Definition | None]]:
        """The tools that are not as they were trusted, each as it was and as it is."""
        now = {tool.name: tool for tool in tools}
        pairs = [(self.definition(name), now.get(name)) for name in sorted(now.keys() | self.tools.keys())]
        return [(before, after) for before, after in pairs if before != after]

    def change_lines(self, tools: list[Definition]) -> list[str]:
        """The same as a diff."""
        lines = []
        for before, after in self.changed_tools(tools):
            tool = after or before
            assert tool is not None
            what = "new" if before is None else "gone" if after is None else "changed"
            lines += [f"{marked(tool.name)}: {what}", *(f"  {row}" for row in difference(before, after)[2:])]
        return lines


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


class Inspection(msgspec.Struct, frozen=True):
    """A server as it was when somebody looked."""

    launch: Launch
    tools: list[Definition]
    version: str
    unusable: list[str]
    """What it lists and nobody can use, in words."""

    @classmethod
    async def of(cls, launch: Launch, secrets: SecretFile) -> Inspection:
        """Start or contact a server, ask for its tools, and leave it again."""
        link = connection.McpConnection(launch, secrets)
        try:
            tools = await link.listed()
            return cls(launch, tools, link.version, link.unusable)
        finally:
            await link.close()

    @property
    def digest(self) -> str:
        """Of all its tools."""
        return digest_of(self.tools)

    def same_as(self, pinned: Pinned | None) -> bool:
        """Whether this is what was trusted, but for what it calls itself."""
        if pinned is None or pinned.way_changed(self.launch):
            return False
        return {tool.name: tool.text for tool in self.tools} == pinned.tools

    def shown_tools(self) -> Iterator[ShownTool]:
        """What is shown of tools that nobody has trusted yet."""
        for tool in self.tools:
            manifest = manifest_for(self.launch.name, tool)
            text = manifest.description
            more = f" … {len(text) - MAX_SHOWN} more characters" if len(text) > MAX_SHOWN else ""
            yield ShownTool(
                id=manifest.id,
                loud=manifest.effect == "irreversible",
                about=f"{text[:MAX_SHOWN]}{more}",
                arguments=marked(", ".join(parameter.name for parameter in manifest.parameters)),
            )


class ShownTool(msgspec.Struct, frozen=True):
    """A tool in its server's words, before it is trusted."""

    id: str
    loud: bool
    """Whether it says of itself that it destroys."""
    about: str
    arguments: str
