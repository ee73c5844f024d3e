"""The stream of events of a window: /page/events."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from lastword.server import EventStream, Refusal
from lastword.web.conversation import ConversationView
from lastword.web.gate import HEADERS, PageGate


class Events:
    """The stream of events. It begins where the window left off."""

    def __init__(self, view: ConversationView, gate: PageGate) -> None:
        self._view = view
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["lastword.route"] = "/page/events"
        request = Request(scope, receive)
        if request.method != "GET":
            raise Refusal(405, "wrong_method", "this path has no such method", headers={"Allow": "GET"})
        visitor = self._gate.check_reading(request)
        closed = self._gate.closed
        self._view.welcome(visitor.surface)
        stream = EventStream(_with_headers(send))
        leaving = asyncio.ensure_future(_gone(receive))
        locked = asyncio.ensure_future(closed.wait())
        last_seen = request.headers.get("last-event-id")
        try:
            following = self._view.feed.follow(last_seen, lambda: self._view.state(visitor.token, visitor.name))
            async with aclosing(following) as events:
                pieces = aiter(events)
                while True:
                    coming = asyncio.ensure_future(anext(pieces, None))
                    await asyncio.wait({coming, leaving, locked}, return_when=asyncio.FIRST_COMPLETED)
                    if leaving.done() or locked.done():
                        coming.cancel()
                        await asyncio.wait({coming})
                        break
                    piece = coming.result()
                    if piece is None:
                        break
                    await stream.write(piece)
            if not leaving.done():
                await stream.end()
        finally:
            leaving.cancel()
            locked.cancel()


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *extra, (b"x-accel-buffering", b"no")]}
        await send(message)

    return sending


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
