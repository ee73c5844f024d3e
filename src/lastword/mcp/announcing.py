"""Telling clients that the list of tools changed: a server behind us withdrew one, or offers it again.

In the newer protocol a client listens for it with a request of its own; in the older one it is simply told.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lastword.lazily import brought_by
from lastword.tools import ToolRegistry

with brought_by("mcp", "mcp", "mcp_types"):
    import mcp_types as types
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.models import InitializationOptions
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

log = logging.getLogger("lastword.mcp")

# Of more connections the oldest are not told; they find out when they list again.
MAX_CONNECTIONS = 200


class AnnouncingServer(Server[Any]):
    """A server that says of itself that it announces changed lists, in both eras of the protocol."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Announcer:
    """Whom to tell, and when."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.on_listen = ListenHandler(self._bus, max_subscriptions=MAX_CONNECTIONS)
        self._connections: dict[tuple[str, str], Any] = {}
        self._registries: list[ToolRegistry] = []
        self._telling: asyncio.Task[None] | None = None

    def watch(self, registry: ToolRegistry) -> None:
        """Announce from now on what changes in it."""
        if registry not in self._registries:
            self._registries.append(registry)
            registry.listen(lambda change: self._tell_soon())

    def heard(self, principal: str, context: Any) -> None:
        """Remember a connection that has asked for something."""
        headers = {} if context.request is None else context.request.headers
        place = (principal, headers.get("mcp-session-id", ""))
        self._connections.pop(place, None)
        self._connections[place] = context.session
        if len(self._connections) > MAX_CONNECTIONS:
            del self._connections[next(iter(self._connections))]

    async def close(self) -> None:
        self.on_listen.close()
        if self._telling is not None:
            self._telling.cancel()

    def _tell_soon(self) -> None:
        """Once for however many tools change together."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        await asyncio.sleep(0)
        await self._bus.publish(ToolsListChanged())
        for place, session in [*self._connections.items()]:
            try:
                await session.send_notification(types.ToolListChangedNotification())
            except Exception as problem:
                log.debug("a client that is gone was not told of changed tools: %s", type(problem).__name__)
                self._connections.pop(place, None)
