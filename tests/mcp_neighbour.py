"""A server next door for tests: its definitions, what it heard, and lastword's side of it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from lastword import Session, ToolRegistry
from lastword.config import McpConfig
from lastword.mcp import McpServers, Pins, SecretFile
from lastword.mcp.connection import McpConnection
from lastword.mcp.server_trust import Definition, launch_of
from lastword.testing import FixedApprover

PLAIN = Path(__file__).parent / "mcp_both_ways" / "plain_server.py"
MONEY: dict[str, Any] = {
    "type": "object",
    "properties": {"amount": {"type": "number", "description": "How much."}},
    "required": ["amount"],
    "additionalProperties": False,
}


def defined(name: str, **fields: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} | fields


# What plain servers list. Tools that were looked at once need no server to be trusted again.
_LISTED: dict[str, tuple[list[Definition], str]] = {}


class Neighbour:
    """One plain server in a folder, named `shop` by the folder's lastword.toml."""

    def __init__(self, folder: Path, *tools: dict[str, Any], **config: Any) -> None:
        self.folder = folder
        self.place = folder / "lastword.toml"
        self.data = folder / "data"
        self.diary = self.data / "diary.txt"
        self.pins = Pins(folder / "data" / "pins.json")
        self.secrets = SecretFile(folder / "data" / "secrets.json")
        self.define(*tools)
        self._is_plain = not config
        self.config = McpConfig(**({"command": sys.executable, "args": [str(PLAIN), str(self.data)]} | config))

    def define(self, *tools: Any) -> None:
        """Let the server list these from now on."""
        self.data.mkdir(exist_ok=True)
        # At once: a server that lists just then would read half of it.
        part = self.data / "tools.part"
        part.write_text(json.dumps(list(tools)))
        part.replace(self.data / "tools.json")

    def heard(self) -> list[str]:
        """What reached the server."""
        return self.diary.read_text().splitlines() if self.diary.exists() else []

    def calls(self) -> list[str]:
        return [line for line in self.heard() if line.startswith("called")]

    def servers(self) -> McpServers:
        return McpServers({"shop": self.config}, self.place, self.pins, self.secrets)

    async def trust(self, standing: Any = False) -> None:
        """What a person does with `lastword mcp trust shop`."""
        launch = launch_of("shop", self.config, self.folder)
        tools = (self.data / "tools.json").read_text()
        listed = _LISTED.get(tools) if self._is_plain else None
        if listed is None:
            link = McpConnection(launch, self.secrets)
            try:
                listed = await link.listed(), link.version
            finally:
                await link.close()
        if self._is_plain:
            _LISTED[tools] = listed
        self.pins.keep(self.place, launch, *listed, standing)
        self.diary.unlink(missing_ok=True)

    async def trusted(self, standing: Any = False) -> Self:
        await self.trust(standing)
        return self

    @asynccontextmanager
    async def session(self, *approver: Any, **more: Any) -> AsyncIterator[Session]:
        """A session with its tools, as they were trusted. Without an approver whoever is asked says yes."""
        async with self.servers() as servers:
            yield await opened(servers, approver[0] if approver else FixedApprover(), **more)


async def opened(servers: McpServers, approver: Any, **more: Any) -> Session:
    """A session with the tools of these servers."""
    registry = ToolRegistry()
    servers.offer(registry)
    return await Session(registry, approver=approver, **more).open()


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that another process does, of which nobody is told."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
