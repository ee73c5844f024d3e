"""MCP on a surface: the servers whose tools are used, what a person is shown before they trust one, and the clients.

The page's TypeScript types are generated from these structs (web/ui/generate_wire.py). What a server or a client says
is marked before it comes here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lastword.card.done import Done
from lastword.card.items import CardPreview


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    id: str
    name: str
    withheld: str = ""
    """Why it is not offered; nothing where it is."""


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server of the configuration, and how it stands."""

    name: str
    state: Literal["not trusted", "changed", "trusted", "running"]
    way: tuple[tuple[str, str], ...]
    """How it is reached: nothing expanded."""
    changed: tuple[str, ...] = ()
    """What is not as it was trusted on the way to it."""
    tools: tuple[ServerTool, ...] = ()
    """Those that were trusted."""
    new: tuple[str, ...] = ()
    """Those that it lists and nobody has looked at."""
    version: str = ""
    last_error: str = ""


class ClientEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A program that uses our tools over MCP."""

    name: str
    """What it calls itself."""
    way: str
    since: float


class ServersFound(msgspec.Struct, frozen=True, kw_only=True):
    """MCP, both ways: the servers whose tools are used here, and the clients that use ours."""

    place: str
    """The file that names the servers."""
    servers: tuple[ServerEntry, ...]
    clients: tuple[ClientEntry, ...]


class ServerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked before a server is started or contacted, so that its tools can be looked at."""

    name: str
    digest: str
    way: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    rights: str
    word: str | None
    """What has to be typed besides the press; None where it was trusted to be started as it is."""


class SeenTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that nobody has trusted yet, in its server's words."""

    id: str
    loud: bool
    """Whether it says of itself that it destroys."""
    about: str
    fold: int | None
    arguments: str


class SeenServer(Done, frozen=True, kw_only=True):
    """A server was looked at, and this is what it says. Nothing of it is trusted by that."""

    name: str
    digest: str
    """Of what is shown: whoever trusts names it."""
    version: str
    version_before: str
    unusable: tuple[str, ...]
    tools: tuple[SeenTool, ...]
    """All of them, of a server that was never trusted."""
    changes: tuple[CardPreview, ...]
    """What changed since it was trusted, tool by tool."""
    count: int
    same: bool
    """Whether it is as it was trusted; then there is nothing to ask."""
    word: str
    must_open: tuple[str, ...]
    """The folded parts that have to be opened before it is trusted."""
