"""The assistant API in the same process: the app is called with the very bytes that HTTP would have carried.

`lastword up` and `lastword chat` have the server beside them. The boundary stays the protocol: nothing is handed over
that could not have come through a socket, except that whoever holds the app needs no token for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp

from lastword.server import Tokens
from lastword.talk.apiclient import ConnectionLost

Message = MutableMapping[str, Any]

# Pieces of an answer that wait to be read. The app waits when there are more, as it would for a slow socket.
MAX_WAITING = 64


class InProcessWire:
    """The way to an app object."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[_InProcessResponse]:
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
            Tokens.INSIDE: True,
        }
        running = asyncio.ensure_future(call.run(self._app, scope))
        try:
            first = await call.sent.get()
            if first is None:
                raise ConnectionLost("the server inside this program broke off")
            yield _InProcessResponse(first["status"], Headers(raw=list(first.get("headers", ()))), call)
        finally:
            await call.hang_up(running)

    async def close(self) -> None:
        """There is nothing to let go of: the app belongs to whoever made it."""


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


class _InProcessResponse:
    def __init__(self, status: int, headers: Mapping[str, str], call: _Call) -> None:
        self.status = status
        self.headers = headers
        self._call = call

    async def pieces(self) -> AsyncGenerator[bytes]:
        while (message := await self._call.sent.get()) is not None:
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body", False):
                return
        raise ConnectionLost("the server inside this program broke off in the middle of its answer")


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
