"""Everything that a client is told: what became of its call, what happens while it waits, and that our tools changed.

What became of a call is for a client, and the model behind it. While it waits it hears that a person is asked, and what
the running tool reports. That a server behind us withdrew a tool, or offers it again, a client of the newer protocol
listens for with a request of its own; in the older one it is simply told.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import deque
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lastword.call.events import Reported
from lastword.display import visible
from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.call.events import Event
    from lastword.consent import Outcome
    from lastword.runs import Run
    from lastword.session import Session
    from lastword.tools import ToolRegistry

with brought_by("mcp", "mcp", "mcp_types"):
    import mcp_types as types
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.models import InitializationOptions
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

NOT_ASKED = "lastword/not_asked"
"""By whose word nobody was asked, where a rule or a grant stood for the person."""
EARLIER = "(The same was asked for before, and this is its result, which had not been delivered.)"

PROGRESS_SECONDS = 5.0
# Of a tool that reports faster than a client reads, the last lines are passed on.
MAX_BEHIND = 100

# Of more connections the oldest are not told; they find out when they list again.
MAX_CONNECTIONS = 200

# Under these names a program finds what the words say.
KIND, CALL = "lastword/kind", "lastword/call"


async def reply(session: Session, outcome: Outcome, *, is_old: bool = False) -> types.CallToolResult:
    """The end of a call: its words, its value, and what it returned beside that."""
    words = f"{outcome.message}\n{EARLIER}" if is_old else outcome.message
    content: list[Any] = [types.TextContent(type="text", text=words)]
    for kept in outcome.content:
        if kept.kind == "text":
            continue  # Its words are in the message.
        data = base64.b64encode(await session.content(outcome.call_id, kept.digest)).decode()
        if kept.kind == "image":
            content.append(types.ImageContent(type="image", data=data, mime_type=kept.media_type))
        elif kept.kind == "audio":
            content.append(types.AudioContent(type="audio", data=data, mime_type=kept.media_type))
        else:
            uri = f"lastword://{outcome.call_id}/{kept.digest}"
            blob = types.BlobResourceContents(uri=uri, blob=data, mime_type=kept.media_type)
            content.append(types.EmbeddedResource(type="resource", resource=blob))
    value = outcome.value if outcome.gave_value and type(outcome.value) is dict else None
    return types.CallToolResult(
        content=content,
        structured_content=value,
        is_error=not outcome.success,
        _meta={KIND: outcome.kind, CALL: outcome.call_id} | await _not_asked(session, outcome),
    )


async def _not_asked(session: Session, outcome: Outcome) -> dict[str, str]:
    if outcome.approval not in ("rule", "grant"):
        return {}
    started = (await session.journal.life(outcome.call_id)).started or {}
    return {NOT_ASKED: started["why"]} if started.get("why") else {}


def reply_to_script(run: Run, *, is_old: bool = False) -> types.CallToolResult:
    """The end of a script: what it printed, and each error with its place."""
    problems = [str(problem) for problem in run.errors or ((run.error,) if run.error is not None else ())]
    lines = [*run.output, *problems]
    if run.in_doubt is not None:
        lines.append(f"Nobody knows how the call {run.in_doubt} ended. A person has to decide before this goes on.")
    if is_old:
        lines.append(EARLIER)
    words = "\n".join(lines) or "The script is done, and printed nothing."
    return _about(run.run_id, words, run.status, is_error=run.status != "done")


def still_open(call_id: str, what: str, is_running: bool) -> types.CallToolResult:
    """Said shortly before the client would stop waiting."""
    waits = "waits for a person's answer, and nothing has happened yet"
    state = "was allowed, and is running" if is_running else waits
    return _open(call_id, f"The call {call_id} of {what} {state}.", "running" if is_running else "waiting")


def script_still_open(run_id: str, *, waits: bool) -> types.CallToolResult:
    """The same of a script, some of whose calls may be done by then."""
    state = "waits for a person's answer about its next call" if waits else "is running"
    return _open(run_id, f"The script {run_id} {state}.", "waiting" if waits else "running")


def _open(id: str, words: str, kind: str) -> types.CallToolResult:
    words = (
        f"{words} It goes on without you. Ask for exactly the same again to wait for its result: that starts nothing a "
        "second time. Do not try to do it in another way."
    )
    return _about(id, words, kind, is_error=True)


def _about(id: str, words: str, kind: str, *, is_error: bool) -> types.CallToolResult:
    said: list[Any] = [types.TextContent(type="text", text=words)]
    return types.CallToolResult(content=said, is_error=is_error, _meta={KIND: kind, CALL: id})


def refused(words: str) -> types.CallToolResult:
    """Nothing was done, and why."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=True)


class Waiting(AbstractContextManager["Waiting"]):
    """A client that waits for one call. What the call reports from here on is passed on to it."""

    def __init__(self, context: Any, session: Session, call_id: str, name: str) -> None:
        self._context = context
        self._session = session
        self._call_id = call_id
        self._words = f"Waiting for a person to answer for {name} in lastword"
        self._reports: deque[str] = deque(maxlen=MAX_BEHIND)
        self._came = asyncio.Event()
        self._told = 0.0

    def __enter__(self) -> Self:
        self._stop_listening = self._session.listen(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stop_listening()

    def _hear(self, event: Event) -> None:
        # Calls of a script have its id, and a number.
        if isinstance(event, Reported) and (event.call_id + ".").startswith(self._call_id + "."):
            self._reports.append(event.message)
            self._came.set()

    async def until(self, task: asyncio.Task[Any], seconds: float | None) -> bool:
        """Whether the task ended within so many seconds, in which the client was kept patient."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        next_word = began + PROGRESS_SECONDS
        while not task.done():
            left = None if seconds is None else seconds - (loop.time() - began)
            if left is not None and left <= 0:
                return False
            pause = next_word - loop.time() if left is None else min(next_word - loop.time(), left)
            coming = asyncio.ensure_future(self._came.wait())
            try:
                await asyncio.wait({task, coming}, timeout=max(pause, 0), return_when=asyncio.FIRST_COMPLETED)
            finally:
                coming.cancel()
            await self._pass_on(loop.time() - began)
            if not task.done() and loop.time() >= next_word:
                next_word = loop.time() + PROGRESS_SECONDS
                await self._tell(loop.time() - began, self._words)
        await self._pass_on(loop.time() - began)
        return True

    async def _pass_on(self, elapsed: float) -> None:
        self._came.clear()
        while self._reports:
            await self._tell(elapsed, visible(self._reports.popleft()))

    async def _tell(self, elapsed: float, words: str) -> None:
        # How much there is to do nobody knows: what a person needs is a part of it. It only has to grow.
        self._told = max(elapsed, self._told + 0.001)
        await self._context.session.report_progress(self._told, None, words)


log = logging.getLogger("lastword.mcp")


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
