"""The servers of a configuration: what is seen of one that is looked at, and the tools of those that are trusted.

These stand in a registry from what was pinned, before any server is started. Whoever looks holds what they saw: trust
is pinned to exactly that, and not to what the server says a moment later.

Whatever is not as it was trusted is withheld, with the words why: a changed way to a server, a changed definition, a
tool that was never seen. Nothing is trusted by being first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from lastword.errors import ConfigError, LastWordError, ManifestError, ToolError, ToolLoadError
from lastword.lazily import load_later
from lastword.mcp.secrets import SecretFile
from lastword.mcp.server_files import ServerEntries
from lastword.mcp.server_trust import Definition, Launch, Pins, digest_of, launch_of, manifest_for, marked
from lastword.tools import Tool, tool_id

if TYPE_CHECKING:
    from lastword.config import Config, McpConfig
    from lastword.mcp import connection
    from lastword.mcp.connection import McpConnection
    from lastword.mcp.server_trust import Pinned
    from lastword.tools import ToolContext, ToolRegistry
else:
    # The SDK takes a second to load, and most programs that have servers start none of them.
    connection = load_later("lastword.mcp.connection")

log = logging.getLogger("lastword.mcp")

State = Literal["not trusted", "changed", "trusted", "running"]

# A description of a tool is looked at before it is trusted, and not read like a book.
MAX_SHOWN = 2_000
CHANGED = "its definition is not the one that you trusted"
GONE = "the server does not list it any more"


class McpServer:
    """One server of the configuration: whether it is trusted, and what of it is offered."""

    def __init__(self, launch: Launch, config: McpConfig, pinned: Pinned | None, secrets: SecretFile) -> None:
        self.launch = launch
        self.pinned = pinned
        self.withheld: dict[str, str] = {}
        """Which of its tools are not offered, and why."""
        self.new: list[str] = []
        """Tools that it lists and that nobody has looked at."""
        self._timeout_seconds = config.timeout_seconds
        self._secrets = secrets
        self._connection: McpConnection | None = None
        self._registry: ToolRegistry | None = None
        self._offered: dict[str, Tool] = {}
        """What stands in the registry because of this server: nothing else is ever taken out of it."""

    @property
    def name(self) -> str:
        return self.launch.name

    def id_of(self, tool: str) -> str:
        """What a tool of this server is called here."""
        return tool_id(self.name, tool)

    def why_not(self) -> list[str]:
        """Why nothing of it is offered, in words; nothing when it is trusted as it is."""
        if self.pinned is None:
            return ["you have not trusted it yet"]
        return self.pinned.way_changed(self.launch)

    @property
    def state(self) -> State:
        """How it stands, in a word."""
        if self.why_not():
            return "not trusted" if self.pinned is None else "changed"
        return "running" if self._connection is not None and self._connection.is_up else "trusted"

    @property
    def in_words(self) -> str:
        """Its name and how it stands, for a line."""
        offered = len(self.pinned.tools) - len(self.withheld) if self.pinned is not None and not self.why_not() else 0
        tools = counted(offered)
        return f"{self.name} ({tools if offered or not self.why_not() else self.state})"

    @property
    def last_error(self) -> str:
        return "" if self._connection is None else self._connection.last_error

    def offer(self, registry: ToolRegistry) -> None:
        """Register every tool that was trusted. Whether the way to the server is the trusted one was looked at."""
        assert self.pinned is not None
        self._registry = registry
        for definition in self.pinned.definitions():
            self._offer(definition)

    def _offer(self, definition: Definition) -> None:
        assert self._registry is not None
        try:
            assert self.pinned is not None
            manifest = manifest_for(self.name, definition, self.pinned.standing)
            # A card of it is void as soon as anything of the definition, or of the way to the server, changes.
            code = f"{definition.text}\0{self.launch.digest}".encode()
            address = f"mcp:{self.name}/{definition.name}"
            # Its folder is the server's business: a path from nowhere certain lies inside of no folder.
            tool = Tool(manifest, "registry", self._run(definition), code=code, address=address, works_in=Path())
            self._offered[definition.name] = self._registry.add(tool)  # It refuses a name that another tool has.
        except (ManifestError, ToolLoadError) as problem:
            self.withheld[definition.name] = str(problem)

    def _run(self, definition: Definition) -> Any:
        async def run(arguments: dict[str, Any], context: ToolContext[Any]) -> Any:
            link = await self._connected(definition)
            return await link.call(definition.name, arguments, context, self._timeout_seconds)

        return run

    async def _connected(self, definition: Definition) -> McpConnection:
        """The connection, if the server is reached as it was trusted and the tool is still what it was."""
        if self._connection is None or not self._connection.is_up:
            self._check_way()
        if self._connection is None:
            self._connection = connection.McpConnection(self.launch, self._secrets, self._listed)
        try:
            await self._connection.connect()
        except LastWordError as problem:
            raise ToolError(f"{problem.fact}. Nothing was sent to it", hint=problem.hint) from None
        if why := self.withheld.get(definition.name):
            raise ToolError(f"{marked(definition.name)} was not called: {why}", hint=self._hint)
        return self._connection

    def _check_way(self) -> None:
        """Look again at what would be started: a file may have changed since the tools were offered."""
        assert self.pinned is not None
        now = self.launch.again()
        if changed := self.pinned.way_changed(now):
            fact = f"the MCP server {self.name} was not started, since it is not what you trusted: {'; '.join(changed)}"
            raise ToolError(fact, hint=self._hint)

    @property
    def _hint(self) -> str:
        return f"lastword mcp trust {self.name} shows what changed, and asks"

    def _listed(self, found: list[Definition]) -> None:
        """Compare what the server lists with what was trusted, and offer exactly what is the same."""
        assert self.pinned is not None
        now = {definition.name: definition for definition in found}
        self.new = sorted(now.keys() - self.pinned.tools.keys())
        for definition in self.pinned.definitions():
            listed = now.get(definition.name)
            why = GONE if listed is None else None if listed.text == definition.text else CHANGED
            if why is not None and self.withheld.get(definition.name) not in (GONE, CHANGED):
                self._withdraw(definition, why)
            elif why is None and self.withheld.get(definition.name) in (GONE, CHANGED):
                del self.withheld[definition.name]
                self._offer(definition)

    def _withdraw(self, definition: Definition, why: str) -> None:
        self.withheld[definition.name] = why
        log.warning("mcp.%s: %s is withheld: %s", self.name, marked(definition.name), why)
        self._take_out(definition.name)

    def _take_out(self, name: str) -> None:
        tool = self._offered.pop(name, None)
        if tool is not None and self._registry is not None and self._registry.find(tool.name) is tool:
            self._registry.unregister(tool.name)

    @property
    def is_busy(self) -> bool:
        """Whether a call of it runs."""
        return self._connection is not None and self._connection.is_busy

    async def retire(self) -> None:
        """Offer nothing any more, and end."""
        for name in [*self._offered]:
            self._take_out(name)
        await self.close()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class McpServers:
    """All servers of a configuration, for as long as a program runs: `async with` ends what they started."""

    def __init__(
        self,
        configs: Mapping[str, McpConfig],
        place: Path,
        pins: Pins | None = None,
        secrets: SecretFile | None = None,
    ) -> None:
        self.pins, self.secrets = pins or Pins(), secrets or SecretFile()
        self.place = place
        self._configs = dict(configs)
        self._registry: ToolRegistry | None = None
        self.all = [self._made(name) for name in self._configs]

    def _made(self, name: str) -> McpServer:
        return McpServer(self.launch(name), self._configs[name], self.pins.of(self.place, name), self.secrets)

    def find(self, name: str) -> McpServer:
        """The server of that name. A ConfigError says which there are."""
        for server in self.all:
            if server.name == name:
                return server
        named = ", ".join(server.name for server in self.all) or "none"
        raise ConfigError(f"there is no MCP server {name}", place=str(self.place), hint=f"there is: {named}")

    def launch(self, name: str) -> Launch:
        """How it would be reached now."""
        return launch_of(name, self._configs[name], self.place.parent)

    def add(self, name: str, config: McpConfig) -> McpServer:
        """Name a server in the file. It is neither started nor contacted, and nothing of it is offered."""
        ServerEntries(self.place).add(name, config)
        self._configs[name] = config
        self.all.append(self._made(name))
        return self.all[-1]

    async def remove(self, name: str) -> None:
        """Take a server out of the file, forget the trust in it, and offer nothing of it any more."""
        server = self._idle(name)
        ServerEntries(self.place).remove(name)
        self.pins.forget(self.place, name)
        self.all.remove(server)
        del self._configs[name]
        await server.retire()

    async def trust(self, seen: Inspection) -> McpServer:
        """Pin exactly what somebody saw, and offer it from now on. Something else than was trusted before has its key
        turned back: it is turned for what somebody saw."""
        before = self._idle(seen.launch.name)
        if self.launch(before.name).digest != seen.launch.digest:
            raise ConfigError(
                f"what would be started for {before.name} has changed since you saw it", hint="look again"
            )
        pinned = self.pins.of(self.place, before.name)
        standing = pinned.standing if pinned is not None and seen.same_as(pinned) else False
        self.pins.keep(self.place, seen.launch, seen.tools, seen.version, standing)
        server = self._made(before.name)
        self.all[self.all.index(before)] = server
        await before.retire()
        if self._registry is not None:
            server.offer(self._registry)
        return server

    def _idle(self, name: str) -> McpServer:
        server = self.find(name)
        if server.is_busy:
            raise ConfigError(f"a call of the MCP server {name} is running", hint="wait for it, or stop it")
        return server

    def offer(self, registry: ToolRegistry) -> list[str]:
        """Put the tools of trusted servers into a registry. What is not offered is told, with what to type."""
        told = []
        self._registry = registry
        for server in self.all:
            if why := server.why_not():
                told.append(
                    f"The MCP server {server.name} of {self.place} is not used: {'; '.join(why)}\n"
                    f"hint: lastword mcp trust {server.name} shows it and asks you"
                )
                continue
            server.offer(registry)
            told += [
                f"{marked(name)} of the MCP server {server.name} is not used: {why}"
                for name, why in server.withheld.items()
            ]
        return told

    @classmethod
    def of(cls, config: Config, pins: Pins | None = None, secrets: SecretFile | None = None) -> Self:
        """The servers that a configuration names."""
        return cls(config.mcp, config.file or Path("lastword.toml"), pins, secrets)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        for server in self.all:
            await server.close()


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


def counted(tools: int) -> str:
    """So many tools, in words."""
    return f"{tools} tool{'' if tools == 1 else 's'}"
