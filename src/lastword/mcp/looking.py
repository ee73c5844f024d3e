"""What a person is shown of a server before they trust it: the way to it, and what it then says of its tools.

Whoever looks holds what they saw: trust is pinned to exactly that, and not to what the server says a moment later.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from lastword.lazily import load_later
from lastword.mcp.definitions import Definition, difference, digest_of, manifest_for, marked
from lastword.mcp.launch import Launch
from lastword.mcp.pins import Pinned
from lastword.mcp.secrets import SecretFile

if TYPE_CHECKING:
    from lastword.mcp import connection
else:
    connection = load_later("lastword.mcp.connection")

# A description of a tool is looked at before it is trusted, and not read like a book.
MAX_SHOWN = 2_000


class Sighting(msgspec.Struct, frozen=True):
    """A server as it was when somebody looked."""

    launch: Launch
    tools: list[Definition]
    version: str
    unusable: list[str]
    """What it lists and nobody can use, in words."""

    @property
    def digest(self) -> str:
        """Of all its tools."""
        return digest_of(self.tools)

    def same_as(self, pinned: Pinned | None) -> bool:
        """Whether this is what was trusted, but for what it calls itself."""
        if pinned is None or pinned.way_changed(self.launch):
            return False
        return {tool.name: tool.text for tool in self.tools} == pinned.tools


async def look_at(launch: Launch, secrets: SecretFile) -> Sighting:
    """Start or contact a server, ask for its tools, and leave it again."""
    link = connection.McpConnection(launch, secrets)
    try:
        tools = await link.listed()
        return Sighting(launch, tools, link.version, link.unusable)
    finally:
        await link.close()


def way_of(launch: Launch) -> list[tuple[str, str]]:
    """How a server would be reached, as a person is shown it: nothing expanded, nothing left out."""
    if launch.url is not None:
        way = [("address", marked(launch.url))]
        return way + [("header", f"{marked(key)}: {marked(value)}") for key, value in launch.headers.items()]
    program = marked(launch.program or "there is none of that name")
    if launch.real_program != launch.program and launch.real_program is not None:
        program += f" (really {marked(launch.real_program)})"
    way = [
        ("command", marked(shlex.join([launch.command or "", *launch.args]))),
        ("program", program),
        ("folder", marked(launch.folder or "")),
    ]
    way += [("variable", f"{marked(key)}={marked(value)}") for key, value in launch.env.items()]
    return way + [("file", f"{marked(path)}, {digest[:16]}…") for path, digest in launch.files.items()]


def way_lines(launch: Launch) -> list[str]:
    """The same in lines."""
    return [f"{what}: {value}" for what, value in way_of(launch)]


def rights_of(launch: Launch) -> str:
    """What it means to start or contact it."""
    if launch.url is None:
        return "It would run with all the rights of your account."
    return "What its tools are given would be sent there."


class ShownTool(msgspec.Struct, frozen=True):
    """A tool in its server's words, before it is trusted."""

    id: str
    loud: bool
    """Whether it says of itself that it destroys."""
    about: str
    arguments: str


def shown_tool(launch: Launch, tool: Definition) -> ShownTool:
    """What is shown of a tool that nobody has trusted yet."""
    manifest = manifest_for(launch, tool)
    text = manifest.description
    return ShownTool(
        id=manifest.id,
        loud=manifest.effect == "irreversible",
        about=text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} … {len(text) - MAX_SHOWN} more characters",
        arguments=marked(", ".join(parameter.name for parameter in manifest.parameters)),
    )


def changed_tools(pinned: Pinned, tools: list[Definition]) -> list[tuple[Definition | None, Definition | None]]:
    """The tools that are not as they were trusted, each as it was and as it is."""
    now = {tool.name: tool for tool in tools}
    pairs = [(pinned.definition(name), now.get(name)) for name in sorted(now.keys() | pinned.tools.keys())]
    return [(before, after) for before, after in pairs if before != after]


def change_lines(pinned: Pinned, tools: list[Definition]) -> list[str]:
    """The same as a diff."""
    lines = []
    for before, after in changed_tools(pinned, tools):
        tool = after or before
        assert tool is not None
        what = "new" if before is None else "gone" if after is None else "changed"
        lines += [f"{marked(tool.name)}: {what}", *(f"  {row}" for row in difference(before, after)[2:])]
    return lines
