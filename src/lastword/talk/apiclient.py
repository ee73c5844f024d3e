"""The assistant API from a client's side: one turn as a stream, and what the server remembers of a conversation.

A `Wire` carries a request and brings back a response, and everything above it is the same. There are two. One goes to
a URL. The other calls an app in the same process, with the very bytes that HTTP would have carried: `lastword up` and
`lastword chat` have the server beside them. The boundary stays the protocol: nothing is handed over that could not have
come through a socket, except that whoever holds the app needs no token for it.

What does not live here: what a reply asks for (replies.py) and what to do about it (satellite.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import msgspec

from lastword import server
from lastword.errors import ConfigError, LastWordError
from lastword.lazily import load_later
from lastword.wire import EventTooLarge, SentEvent, read_events

if TYPE_CHECKING:
    import aiohttp
    from starlette import datastructures
    from starlette.types import ASGIApp
else:
    # Each for one of the two ways, and slow to load.
    aiohttp = load_later("aiohttp")
    datastructures = load_later("starlette.datastructures")

Message = MutableMapping[str, Any]

# What a reply may hold besides text: more than this is not a chunk of an answer.
MAX_EVENT_BYTES = 16 * 1024 * 1024
# Reaching a server on this machine or in the same house. A server that is further away has a network in between.
CONNECT_SECONDS = 10.0
# Between two pieces of an answer. The server itself waits three minutes for a slow model, and then says so.
IDLE_SECONDS = 200.0
# A body with images in it. It is sent in pieces, so that the loop can do something else in between.
LARGE_BODY = 2**20
# Pieces of an answer that wait to be read. The app waits when there are more, as it would for a slow socket.
MAX_WAITING = 64


class ConnectionLost(LastWordError):
    """The server could not be reached, or went away before its answer was complete."""

    may_pass = True
    """Whether another attempt could succeed."""


class ApiError(LastWordError):
    """The server answered, and refused."""

    def __init__(self, status: int, code: str, fact: str, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.status = status
        self.code = code

    @classmethod
    def read(cls, status: int, data: bytes) -> ApiError:
        """What a server said when it refused, as far as it can be read."""
        match _decoded(data):
            case {"error": {"message": str(words), **more}}:
                fact, _, hint = words.partition("\nhint: ")
                code = more.get("code")
                return cls(status, code if isinstance(code, str) else "", fact, hint or None)
        return cls(status, "", f"the server answered with status {status}")

    @property
    def may_pass(self) -> bool:
        """Whether another attempt could succeed: the server is busy or stopping.

        Not when the model's server failed. Ours has tried that one again already, and attempts of both would multiply.
        """
        transient = self.status in (408, 429, 502, 503, 504) or self.code == "turn_running"
        return transient and not self.code.startswith("upstream_") and self.code not in _LASTING


# Failures that the next attempt would only repeat, and pay for.
_LASTING = ("no_model", "too_large")


class Response:
    """The beginning of a response; its body comes in pieces."""

    def __init__(self, status: int, headers: Mapping[str, str], pieces: Callable[[], AsyncGenerator[bytes]]) -> None:
        """`headers`: by name, without regard to its case. `pieces` raises ConnectionLost when the body breaks off."""
        self.status = status
        self.headers = headers
        self.pieces = pieces

    async def read(self) -> bytes:
        """The whole body."""
        async with aclosing(self.pieces()) as pieces:
            return b"".join([piece async for piece in pieces])

    async def json(self) -> dict[str, Any]:
        """The whole body of a success as a JSON object; of anything else, the refusal is raised."""
        data = await self.read()
        if self.status != 200:
            raise ApiError.read(self.status, data)
        return self.decode(data)

    async def events(self, *, too_large_status: int) -> AsyncGenerator[SentEvent]:
        """The events of the body. One that is too large is refused with a status that says whether to try again."""
        if self.status != 200:
            raise ApiError.read(self.status, await self.read())
        try:
            async with aclosing(self.pieces()) as pieces, aclosing(read_events(pieces, MAX_EVENT_BYTES)) as events:
                async for event in events:
                    yield event
        except EventTooLarge as problem:
            raise ApiError(too_large_status, "too_large", f"the server sent {problem.fact}") from None

    @staticmethod
    def decode(data: bytes) -> dict[str, Any]:
        """A JSON object; nothing else is an answer."""
        if not isinstance(found := _decoded(data), dict):
            raise ApiError(502, "garbage", "the server answered with something that is not a JSON object")
        return found


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


class Wire(Protocol):
    """A way to the server."""

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request; inside the context is its response. Leaving the context hangs up."""

    async def close(self) -> None:
        """Let go of connections."""


class Api:
    """What a satellite needs of the server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def turn(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """One turn, as the chunks of its answer. It is complete when the generator ends without an exception."""
        data = msgspec.json.encode({**body, "stream": True, "stream_options": {"include_usage": True}})
        async with self._wire.exchange("POST", "/v1/chat/completions", data) as response:
            async with aclosing(response.events(too_large_status=502)) as events:
                async for event in events:
                    if event.data == b"[DONE]":
                        return
                    chunk = response.decode(event.data)
                    if "error" in chunk:
                        # The answer has begun, so its status is spent; the refusal comes as an event.
                        raise ApiError.read(502, event.data)
                    yield chunk
            raise ConnectionLost("the server closed the connection before its answer was complete")

    async def conversation(self, id: str) -> dict[str, Any] | None:
        """What the server remembers of a conversation; None when it knows none of that id."""
        found: dict[str, Any] | None = await self._ask("GET", _path(id))
        return found

    async def rewind(self, id: str, turns: int) -> int:
        """Go back to where there were so many turns; the number of the last turn now."""
        found = await self._ask("POST", f"{_path(id)}/rewind", {"turns": turns}, may_be_unknown=False)
        return int(found["turns"])

    async def delete(self, id: str) -> None:
        """Let the server forget a conversation; one that it does not know is forgotten already."""
        await self._ask("DELETE", _path(id))

    async def models(self) -> list[str]:
        """The names that a request may use; the first is the configured one."""
        found = await self._ask("GET", "/v1/models", may_be_unknown=False)
        return [str(entry["id"]) for entry in found["data"]]

    async def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, may_be_unknown: bool = True
    ) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        async with self._wire.exchange(method, path, data) as response:
            try:
                return await response.json()
            except ApiError as problem:
                if problem.status == 404 and may_be_unknown:
                    return None
                raise

    async def close(self) -> None:
        await self._wire.close()


def _path(id: str) -> str:
    return f"/v1/conversations/{quote(id, safe='')}"


class HttpWire:
    """The server at a URL."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of a server", hint="write it like http://127.0.0.1:8811")
        self.url = url.rstrip("/").removesuffix("/v1")
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Response]:
        sent = {"Content-Type": "application/json", **(headers or {})} if body is not None else dict(headers or {})
        try:
            # A redirect could carry the token to another host.
            data = body if body is None or len(body) < LARGE_BODY else BytesIO(body)
            request = self._open().request(method, self.url + path, data=data, headers=sent, allow_redirects=False)
            async with request as response:

                async def pieces() -> AsyncGenerator[bytes]:
                    while piece := await response.content.readany():
                        yield piece

                yield Response(response.status, response.headers, pieces)
        except (TimeoutError, aiohttp.ClientError, OSError) as problem:
            raise ConnectionLost(
                f"{self.url} does not answer ({type(problem).__name__})", hint="is the server running?"
            ) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"User-Agent": "lastword"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS)
            self._session = aiohttp.ClientSession(headers=headers, timeout=timeout)
        return self._session


class InProcessWire:
    """The way to an app object."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Response]:
        call = _Call(body or b"")
        path, _, query = path.partition("?")
        more = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *more],
            server.Tokens.INSIDE: True,
        }
        running = asyncio.ensure_future(call.run(self._app, scope))
        try:
            first = await call.sent.get()
            if first is None:
                raise ConnectionLost("the server inside this program broke off")
            headers = datastructures.Headers(raw=list(first.get("headers", ())))
            yield Response(first["status"], headers, call.pieces)
        finally:
            await call.hang_up(running)

    async def close(self) -> None:
        """There is nothing to let go of: the app belongs to whoever made it."""

    @staticmethod
    @asynccontextmanager
    async def alive(app: ASGIApp) -> AsyncIterator[None]:
        """Start the app and stop it afterwards, as a server would. Not for an app that is being served besides."""
        inbox: asyncio.Queue[Message] = asyncio.Queue()
        outbox: asyncio.Queue[Message] = asyncio.Queue()
        running = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put))
        inbox.put_nowait({"type": "lifespan.startup"})
        answer = await outbox.get()
        if answer["type"] != "lifespan.startup.complete":
            await running
        try:
            yield
        finally:
            inbox.put_nowait({"type": "lifespan.shutdown"})
            await running


class _Call:
    """One request as the app sees it."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.sent: asyncio.Queue[Message | None] = asyncio.Queue(MAX_WAITING)
        self._gone = asyncio.Event()

    async def run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            await self._send(None)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body of the answer."""
        while (message := await self.sent.get()) is not None:
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body", False):
                return
        raise ConnectionLost("the server inside this program broke off in the middle of its answer")

    async def hang_up(self, running: asyncio.Future[None]) -> None:
        """Tell the app that nobody reads any more, as a socket would tell it, and let it clean up."""
        self._gone.set()
        while not self.sent.empty():  # An app that waits for room goes on, and what it sends from now on is dropped.
            self.sent.get_nowait()
        await asyncio.wait({running})

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message | None) -> None:
        if not self._gone.is_set():
            await self.sent.put(message)
