"""How the page answers: a path that is read, one that changes something, the stream of events; and its files.

Reading needs the window's cookie; changing something also needs its token, in a header that only our own page can set.
The name of a built file holds a digest of its contents, so browsers keep it for good. Bytes that a call returned were
made by a tool, perhaps from what a stranger wrote: nothing in them may run, look like a page of ours, or be taken for
anything else than what their first bytes are.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lastword.card import responses
from lastword.errors import LastWordError, SessionError, StoreError
from lastword.log import trouble
from lastword.server import EventStream, Refusal, ServerLimits, read_body
from lastword.web.page_gate import HEADERS, PageGate, Visitor

if TYPE_CHECKING:
    from lastword.consent import Kept
    from lastword.journal import Journal
    from lastword.web.conversation import ConversationView

BYTES_TYPE = "application/octet-stream"
ASSET_KEPT = "public, max-age=31536000, immutable"
# The smallest first: it is taken where a browser does not care.
ENDINGS = {"br": ".br", "gzip": ".gz"}
# A digest names the same bytes for ever; they are somebody's own, and no proxy's to keep.
CONTENT_KEPT = "private, max-age=31536000, immutable"
# Opened by itself, it is a document: one that may load nothing, run nothing and be in no frame.
CONTENT_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

T = TypeVar("T")
WhatWasDone = responses.Done | str | None

_encode = msgspec.json.Encoder().encode


class PageBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a window sends, checked before anybody looks at it. Each is beside the path that takes it."""


class EmptyBody(PageBody, frozen=True):
    """Nothing more to say."""


class Endpoints:
    """Makes the routes of the page, each behind the gate."""

    def __init__(self, view: ConversationView, gate: PageGate, limits: ServerLimits) -> None:
        self._view = view
        self._gate = gate
        self._limits = limits

    def public(self, path: str, handle: Callable[[Request], Awaitable[Response]]) -> Route:
        """A path that a window without a key may ask for as well."""

        async def answer(request: Request) -> Response:
            _name_route(request)
            return _headed(await handle(request))

        return Route(path, answer, methods=["GET"])

    def reading(self, path: str, read: Callable[[Request, Visitor], Awaitable[Any]]) -> Route:
        """A path that a window of ours reads: a response, or what becomes one."""

        async def answer(request: Request) -> Response:
            _name_route(request)
            found = await read(request, self._gate.check_reading(request))
            return _headed(found if isinstance(found, Response) else _json(found))

        return Route(path, answer, methods=["GET"])

    def changing(
        self, path: str, kind: type[T], act: Callable[[T, Visitor], Awaitable[WhatWasDone] | WhatWasDone]
    ) -> Route:
        """A path by which a window of ours does something. What is sent is checked before anybody looks at it.

        `act` says what was done where there is something to say, in words that are marked; the event is put in here.
        """

        async def answer(request: Request) -> Response:
            _name_route(request)
            visitor = self._gate.check_changing(request)
            data = await read_body(dict(request.scope["headers"]), request.receive, self._limits)
            try:
                body = msgspec.json.decode(data, type=kind)
            except (msgspec.DecodeError, msgspec.ValidationError) as problem:
                raise Refusal(400, "bad_request", str(problem)) from None
            try:
                done = act(body, visitor)
                done = await done if isinstance(done, Awaitable) else done
            except LastWordError as problem:
                raise refusal_for(problem) from None
            told = responses.DoneInWords(message=done) if isinstance(done, str) else done or responses.Done()
            return _headed(_json(replace(told, event=self._view.feed.last_id)))

        return Route(path, answer, methods=["POST"])

    def events(self, path: str) -> Route:
        """The stream of events of a window."""
        return Route(path, EventsOfWindow(self._view, self._gate))


def refusal_for(problem: LastWordError) -> Refusal:
    """What a window is told of something that could not be done."""
    if isinstance(problem, StoreError):
        return Refusal(409, "refused", trouble("This could not be done", problem))
    return problem if isinstance(problem, Refusal) else Refusal(409, "refused", problem.fact, hint=problem.hint)


def _name_route(request: Request) -> None:
    """For the log and the metrics: before anything can be refused."""
    request.scope["lastword.route"] = request.scope["route"].path if "route" in request.scope else "page"


def _headed(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)  # What a tool made has a stricter policy of its own.
    return response


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")


class EventsOfWindow:
    """A stream of events. It begins where the window left off."""

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
        self._view.assistant.welcome(visitor.surface)
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


# The files.


def asset(folder: Traversable, name: str, accept_encoding: str) -> Response | None:
    """A file by its name, in the smallest form that the browser takes; None when there is no such file."""
    # One of those that are there, so that no name can mean anything outside the folder.
    found = {file.name: file for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}
    if name not in found or name.endswith(tuple(ENDINGS.values())):
        return None
    headers = {"Cache-Control": ASSET_KEPT, "Vary": "Accept-Encoding"}
    for encoding in preferred(accept_encoding):
        if (smaller := found.get(name + ENDINGS[encoding])) is not None:
            headers["Content-Encoding"] = encoding
            return Response(smaller.read_bytes(), media_type=_media_of_asset(name), headers=headers)
    return Response(found[name].read_bytes(), media_type=_media_of_asset(name), headers=headers)


def preferred(accept_encoding: str) -> list[str]:
    """Those of our encodings that a browser takes, the one that it likes best first."""
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        encoding, _, weight = part.replace(" ", "").partition(";q=")
        try:
            weights[encoding] = float(weight or 1)
        except ValueError:
            weights[encoding] = 0.0
    liked = {encoding: weights.get(encoding, weights.get("*", 0.0)) for encoding in ENDINGS}
    return sorted((encoding for encoding in liked if liked[encoding] > 0), key=lambda encoding: -liked[encoding])


def _media_of_asset(name: str) -> str:
    # The system's table may have another type for it, which browsers refuse to run.
    return "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or BYTES_TYPE


async def content(journal: Journal, call_id: str, digest: str) -> Response:
    """What a call returned, by its digest. A refusal when the journal does not name it, or does not hold it."""
    try:
        kept, data = await journal.content(call_id, digest)
    except SessionError as problem:
        raise Refusal(404, "unknown_content", problem.fact) from None
    except StoreError as problem:
        raise Refusal(409, "refused", trouble("This cannot be shown", problem)) from None
    headers = {
        "Cache-Control": CONTENT_KEPT,
        "Content-Disposition": disposition(kept),
        "Content-Security-Policy": CONTENT_POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    return Response(data, media_type=_media_of_content(kept), headers=headers)


def disposition(kept: Kept) -> str:
    """Whether a browser shows it or saves it, and under which name."""
    how = "inline" if kept.kind in ("image", "audio") else "attachment"
    return f"{how}; filename*=UTF-8''{quote(kept.name, safe='')}"


def _media_of_content(kept: Kept) -> str:
    """The type, where it was told by the bytes. A file is bytes to be saved, whatever it is called."""
    if kept.kind in ("image", "audio"):
        return kept.media_type
    return "text/plain; charset=utf-8" if kept.kind == "text" else BYTES_TYPE


def page_of_words(status: int, title: str, text: str) -> Response:
    """A page of words, for when the page itself cannot be shown."""
    head = f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>lastword: {title}</title>'
    return _document(status, head, f"<h1>{title}</h1><p>{text}</p>")


def page_that_leads(path: str) -> Response:
    """A page that leads on by itself. A redirect would still be the step of whoever led here."""
    head = f'<meta http-equiv="refresh" content="0;url={path}"><title>lastword</title>'
    return _document(200, head, f'<p><a href="{path}">Open the page</a></p>')


def _document(status: int, head: str, body: str) -> Response:
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"{head}</head><body><main>{body}</main></body></html>"
    )
    return Response(html, status_code=status, media_type="text/html")
