"""One connection to one server, owned by one task: it starts when it is needed, and ends with us.

Calls come from any task. What a server did when it died in the middle of one nobody knows, so that the call is in doubt
and never sent again. The server itself is started again when somebody next needs it, later each time that it fails.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from lastword import __version__
from lastword.errors import LastWordError, OutcomeUnknown, Problem, ToolError
from lastword.lazily import brought_by
from lastword.mcp.server_answers import PausableClock, put_to_person, quoted, result_of
from lastword.mcp.server_trust import MAX_TOOLS, Definition, Launch, definition_of, environment, marked
from lastword.mcp.transports import CONNECT_SECONDS, MAX_ANSWER_BYTES, Complaints, http_client, pipes

if TYPE_CHECKING:
    from lastword.mcp.secrets import SecretFile
    from lastword.tools import ToolContext

with brought_by("mcp", "mcp", "mcp_types", "anyio", "httpx2", "pydantic"):
    import anyio
    import httpx2
    import mcp_types as types
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client
    from pydantic import ValidationError

log = logging.getLogger("lastword.mcp")
LIST_SECONDS = 30.0
# A first change is looked at once, the next ones so much later.
RELIST_SECONDS = 0.2
# A list that is longer than this has no end.
MAX_PAGES = 50
# A server that fails is tried again after 1 second, 2, 4, and at last every minute.
MAX_BACKOFF_SECONDS = 60.0
# Nobody reads more lines of progress of one call, and each is remembered.
MAX_PROGRESS = 1_000
MAX_PROGRESS_WORDS = 500

# How the SDK begins when the way to the server broke, or when what came back over HTTP was no answer. Its codes do not
# tell: servers that refuse something use the same.
_BROKEN = ("Connection closed", "SSE stream ", "Failed to parse ", "Server returned an error response")


class ServerGone(LastWordError):
    """The server cannot be reached."""


class McpConnection:
    """The way to one server, and what it was last seen to offer."""

    def __init__(
        self, launch: Launch, secrets: SecretFile, on_list: Callable[[list[Definition]], None] | None = None
    ) -> None:
        self.launch = launch
        self.last_error = ""
        self.version = ""
        self.unusable: list[str] = []
        """What the server lists and nobody can use, in words."""
        self._secrets = secrets
        self._on_list = on_list
        self._used = secrets.NONE_USED
        self._complaints = Complaints(self._used)
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._stop = asyncio.Event()
        self._relist = asyncio.Event()
        self._failures = 0
        self._not_before = 0.0
        self._running: list[tuple[ToolContext[Any], PausableClock]] = []

    @property
    def is_up(self) -> bool:
        return self._client is not None

    @property
    def is_busy(self) -> bool:
        """Whether a call runs."""
        return bool(self._running)

    async def connect(self) -> None:
        """Be connected, with the tools listed. ServerGone says why that cannot be."""
        if self._client is not None:
            return
        loop = asyncio.get_running_loop()
        if self._owner is not None and self._ready is not None and self._ready.done():
            await asyncio.wait({self._owner})  # It broke, and is being tidied up.
        if self._owner is None or self._owner.done():
            wait = self._not_before - loop.time()
            if wait > 0:
                raise ServerGone(
                    f"the MCP server {self.launch.name} failed a moment ago: {self.last_error}",
                    hint=f"it is tried again in {wait:.0f} seconds",
                )
            self._ready, self._stop = loop.create_future(), asyncio.Event()
            self._owner = loop.create_task(self._own(self._ready, self._stop))
        assert self._ready is not None
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """End the connection and the server that was started for it."""
        self._stop.set()
        if self._owner is not None:
            if self._ready is not None and not self._ready.done():
                self._owner.cancel()  # It is still trying to connect.
            with suppress(asyncio.CancelledError):
                await self._owner

    async def _own(self, ready: asyncio.Future[None], stop: asyncio.Event) -> None:
        """Live the whole life of one connection, in the one task that opens and closes it."""
        problem: BaseException | None = None
        try:
            async with AsyncExitStack() as after:
                async with asyncio.timeout(CONNECT_SECONDS):
                    client = await after.enter_async_context(self._open(stop))
                found = await self._list(client)
                self._client, self._failures, self.last_error = client, 0, ""
                self._tell(found)
                ready.set_result(None)
                after.push_async_callback(self._end, asyncio.ensure_future(self._follow(client)))
                await stop.wait()
                self._client = None
        except asyncio.CancelledError:
            problem = ServerGone(f"the MCP server {self.launch.name} was closed")
            raise
        except BaseException as found_problem:
            problem = found_problem
        finally:
            self._client = None
            if problem is not None:
                self._failed(problem)
            if not ready.done():
                ready.set_exception(self._gone(problem))
                ready.exception()  # Perhaps nobody waits for it any more.

    def _failed(self, problem: BaseException) -> None:
        self.last_error = self._in_words(problem)
        self._failures += 1
        wait = min(2.0 ** (self._failures - 1), MAX_BACKOFF_SECONDS)
        self._not_before = asyncio.get_running_loop().time() + wait

    def _gone(self, problem: BaseException | None) -> LastWordError:
        if isinstance(problem, LastWordError) and not isinstance(problem, ServerGone):
            return problem  # A secret that is missing, say: it tells what to do itself.
        return ServerGone(f"the MCP server {self.launch.name} cannot be reached: {self.last_error}")

    def _in_words(self, problem: BaseException) -> str:
        while isinstance(problem, BaseExceptionGroup):
            problem = problem.exceptions[0]
        complained = self._complaints.text
        if isinstance(problem, TimeoutError):
            words = f"it did not answer within {CONNECT_SECONDS:.0f} seconds"
        else:
            words = str(problem).partition("\n")[0] or type(problem).__name__
        if complained:
            words = f"{words}; it said: {complained[-600:]}"
        return marked(self._used.hide(words))

    @asynccontextmanager
    async def _open(self, stop: asyncio.Event) -> AsyncIterator[Client]:
        launch = self.launch
        launch.check()
        place = f"mcp.{launch.name}"
        async with AsyncExitStack() as after:
            if launch.url is not None:
                headers, self._used = self._secrets.expand(launch.headers, place)
                http = await after.enter_async_context(http_client(headers))
                transport: Any = streamable_http_client(
                    launch.url, http_client=http, max_sse_event_size=MAX_ANSWER_BYTES
                )
            else:
                env, self._used = self._secrets.expand(launch.env, place)
                self._complaints = Complaints(self._used)

                def ended(why: str) -> None:
                    self.last_error = f"{why}: {self._complaints.text[-600:]}" if self._complaints.text else why
                    self._client = None
                    stop.set()

                transport = pipes(launch, environment(env, os.environ), self._complaints, ended)
            client = Client(
                transport,
                client_info=types.Implementation(name="lastword", version=__version__),
                elicitation_callback=self._elicited,
                message_handler=self._heard,
                cache=None,
            )
            yield await after.enter_async_context(client)

    async def listed(self) -> list[Definition]:
        """What the server offers now."""
        await self.connect()
        assert self._client is not None
        found = await self._list(self._client)
        self._tell(found)
        return found

    async def _list(self, client: Client) -> list[Definition]:
        info = client.server_info
        self.version = marked(self._used.hide(f"{info.name} {info.version}")[:200]) if info is not None else ""
        found: dict[str, Definition] = {}
        self.unusable = []
        cursor: str | None = None
        async with asyncio.timeout(LIST_SECONDS):
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                for tool in page.tools:
                    self._add(found, tool)
                if len(found) > MAX_TOOLS:
                    raise ServerGone(f"it lists more than {MAX_TOOLS} tools")
                cursor = page.next_cursor
                if not cursor:
                    return list(found.values())
        raise ServerGone(f"its list of tools has more than {MAX_PAGES} pages")

    def _add(self, found: dict[str, Definition], tool: types.Tool) -> None:
        try:
            said = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            definition = definition_of(self._used.without(said))
        except Problem as problem:
            self.unusable.append(problem.fact)
            return
        if definition.name in found:
            # Which of them a call would reach is the server's secret.
            self.unusable.append(f"{marked(definition.name)} is listed twice")
            del found[definition.name]
        else:
            found[definition.name] = definition

    def _tell(self, found: list[Definition]) -> None:
        if self._on_list is not None:
            self._on_list(found)

    async def _heard(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()

    async def _follow(self, client: Client) -> None:
        """List again whenever the server says that its tools changed, in either era of the protocol."""
        subscribed = asyncio.ensure_future(self._subscribe(client))
        try:
            while True:
                await self._relist.wait()
                self._relist.clear()
                try:
                    self._tell(await self._list(client))
                except Exception as problem:
                    log.info("mcp.%s: the changed list could not be read: %s", self.launch.name, type(problem).__name__)
                    self._tell([])  # What is not known to be as it was trusted is withheld.
                # One that answers every listing with news of another would leave time for nothing else.
                await asyncio.sleep(RELIST_SECONDS)
        finally:
            await self._end(subscribed)

    async def _subscribe(self, client: Client) -> None:
        with suppress(Exception):  # An older server tells without being asked, and some do not tell at all.
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._relist.set()

    @staticmethod
    async def _end(task: asyncio.Future[Any]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext[Any], seconds: float) -> Any:
        """Call a tool, and give what its server gave. Whoever cancels the call cancels it there, too."""
        client = self._client
        if client is None:
            raise ToolError(f"the MCP server {self.launch.name} is gone; nothing was sent to it")
        clock = PausableClock(seconds)
        reported = 0

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            nonlocal reported
            reported += 1
            if reported <= MAX_PROGRESS:
                known = total is not None and total > 0
                words = message or (f"{progress:g} of {total:g}" if known else f"{progress:g}")
                fraction = min(max(progress / total, 0.0), 1.0) if total is not None and total > 0 else None
                context.report(marked(self._used.hide(words)[:MAX_PROGRESS_WORDS]), "mcp", fraction=fraction)

        running = (context, clock)
        self._running.append(running)
        sent = asyncio.ensure_future(client.call_tool(name, arguments, progress_callback=hear))

        def cancel() -> None:
            sent.cancel()

        context.on_cancel = cancel
        try:
            answered = await self._answered(sent, clock)
        finally:
            clock.stop()
            self._running.remove(running)
            if not sent.done():
                sent.cancel()
        return result_of(self.launch.name, answered, self._used)

    async def _answered(self, sent: asyncio.Future[types.CallToolResult], clock: PausableClock) -> dict[str, Any]:
        """What the server answered; whatever else happens, in the words of a tool."""
        server = self.launch.name
        up: asyncio.Future[Any] = asyncio.ensure_future(clock.run_out.wait())
        both: set[asyncio.Future[Any]] = {sent, up}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
        if not sent.done():
            sent.cancel()
            with suppress(BaseException):
                await asyncio.wait({sent}, timeout=1)
            raise OutcomeUnknown(
                f"the MCP server {server} did not answer within {clock.seconds:g} seconds. It was told to stop, and "
                "nobody knows what it has done"
            )
        try:
            answer = sent.result()
        except MCPError as problem:
            if not self.is_up or problem.error.message.startswith(_BROKEN):
                self._stop.set()
                why = self.last_error or quoted(problem.error.message, self._used)
                raise OutcomeUnknown(f"the MCP server {server} broke off in the middle of the call ({why})") from None
            raise ToolError(f"the MCP server {server} refuses: {quoted(problem.error.message, self._used)}") from None
        except (ValidationError, RuntimeError) as problem:
            words = str(problem).partition("\n")[0]
            raise ToolError(
                f"the MCP server {server} ran it, but its answer is not what it promised: {quoted(words, self._used)}. "
                "What it did stays done"
            ) from None
        except (OSError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as problem:
            self._stop.set()
            raise OutcomeUnknown(
                f"the connection to the MCP server {server} broke in the middle of the call ({type(problem).__name__})"
            ) from None
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True) | (
            {"structuredContent": answer.structured_content} if "structured_content" in answer.model_fields_set else {}
        )

    async def _elicited(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """A question of the server. Outside of a call there is nobody whom it could be for."""
        if not self._running:
            return types.ElicitResult(action="cancel")
        running, clock = self._running[-1]
        asked = self._used.hide_in(params.model_dump(mode="json", by_alias=True, exclude_none=True))
        with clock.paused():
            said = await put_to_person(self.launch.name, asked, running)
        return types.ElicitResult(**said)
