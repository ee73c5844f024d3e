"""The paths of the page: its files, one stream of events, and what a person may do.

Reading needs the window's cookie; changing something also needs its token, in a header that only our own page can set.
docs/page.md describes the API; what it does is in conversation.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.call.recovery import Decision
from lastword.card.items import Done, DoneInWords, NewKey, SharedText
from lastword.card.trouble import trouble
from lastword.display import visible
from lastword.errors import LastWordError, StoreError
from lastword.journal import Journal
from lastword.server.limits import ServerLimits
from lastword.server.metrics import Metrics
from lastword.server.perimeter import EventStream, Perimeter, access_log, read_body
from lastword.server.refusal import Refusal
from lastword.web import past
from lastword.web.assets import asset
from lastword.web.card import question_of
from lastword.web.conversation import ConversationView
from lastword.web.gate import HEADERS, PageGate, Visitor, check_surface
from lastword.web.other_sessions import OtherSessions

STATIC = files("lastword.web") / "static"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person did with a card. `digest` is of the request that they saw."""

    call_id: str
    digest: str
    action: Literal["allow", "deny", "close"]
    reason: str | None = None
    edits: dict[str, str] = {}
    """Arguments to change, by name, each as text: a string as it stands, everything else as JSON."""


class UndoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The call to take back; without one, the last that changed something."""

    call_id: str | None = None


class CallBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call."""

    call_id: str


class SayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the person."""

    text: str


class ResolveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do about a call in doubt."""

    call_id: str
    decision: Decision


class StopBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to stop the turn at once, instead of what runs in it."""

    turn: bool = False


class PresetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The preset to work under."""

    name: str


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing more to say."""


class Page:
    """The page over one conversation."""

    def __init__(
        self,
        view: ConversationView,
        journal: Journal,
        gate: PageGate,
        others: OtherSessions | None,
        *,
        limits: ServerLimits | None = None,
        static: Traversable = STATIC,
    ) -> None:
        self._view = view
        self._journal = journal
        self._gate = gate
        self._others = others
        self._limits = limits or ServerLimits()
        self._static = static

    def routes(self) -> list[Route]:
        """Everything the page needs, for the app to stand beside its own."""
        do = self._changing
        return [
            Route("/", self._headed(self._index), methods=["GET"]),
            Route("/enter", self._headed(self._enter), methods=["GET"]),
            Route("/assets/{name}", self._headed(self._asset), methods=["GET"]),
            Route("/page/state", self._headed(self._state), methods=["GET"]),
            Route("/page/events", Events(self._view, self._gate)),
            Route("/page/question", self._headed(self._question), methods=["GET"]),
            Route("/page/shared", self._headed(self._shared), methods=["GET"]),
            Route("/page/timeline", self._headed(self._timeline), methods=["GET"]),
            Route("/page/export", self._headed(self._export), methods=["GET"]),
            do("/page/answer", AnswerBody, self._answer),
            do("/page/say", SayBody, self._say),
            do("/page/stop", StopBody, self._stop),
            do("/page/cancel", CallBody, self._cancel),
            do("/page/resolve", ResolveBody, self._resolve),
            do("/page/undo", UndoBody, self._undo),
            do("/page/preset", PresetBody, self._preset),
            do("/page/key", EmptyBody, self._key),
            do("/page/lock", EmptyBody, self._lock),
        ]

    def end_streams(self) -> None:
        """End every stream of events."""
        self._view.feed.close()

    # The files.

    async def _index(self, request: Request) -> Response:
        if not self._gate.knows(request):
            return _words(
                401,
                "This window has no key",
                "Open the address that <code>lastword up</code> printed. It works once; a window that is open can make "
                "another one, under Settings.",
            )
        index = self._static / "index.html"
        if not index.is_file():
            return _words(
                503,
                "The page was not built",
                "This copy of lastword was installed without its page. Install it again with a network: "
                "<code>pip install .</code> builds it.",
            )
        # It names the files of this version. Those are kept by browsers; it is asked for each time.
        return Response(index.read_bytes(), media_type="text/html", headers={"Cache-Control": "no-cache"})

    async def _enter(self, request: Request) -> Response:
        surface = check_surface(request.query_params.get("as", "page"))
        cookie = await self._gate.enter(request.query_params.get("key", ""), surface)
        if cookie is not None:
            return Response(
                status_code=303, headers={"Location": "/", "Set-Cookie": self._gate.set_cookie(request, cookie)}
            )
        if self._gate.knows(request):
            return Response(status_code=303, headers={"Location": "/"})
        return _words(
            403,
            "This key was used before",
            "A key opens the page once. Start <code>lastword up</code> again, or let an open window make another one, "
            "under Settings.",
        )

    async def _asset(self, request: Request) -> Response:
        accepted = request.headers.get("accept-encoding", "")
        found = asset(self._static / "assets", request.path_params["name"], accepted)
        if found is None:
            raise Refusal(404, "unknown_path", "there is nothing here")
        return found

    # Reading.

    async def _state(self, request: Request) -> Response:
        visitor = self._gate.check_reading(request)
        self._view.welcome(visitor.surface)
        return _json(self._view.state(visitor.token, visitor.name))

    async def _question(self, request: Request) -> Response:
        self._gate.check_reading(request)
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        others = self._others
        is_theirs = others is not None and others.has(call_id)
        asker = others if others is not None and is_theirs else self._view
        return _json(question_of(asker.question(call_id, digest)))

    async def _shared(self, request: Request) -> Response:
        self._gate.check_reading(request)
        return _json(SharedText(visible(self._view.session.format_state_for_prompt())))

    async def _timeline(self, request: Request) -> Response:
        self._gate.check_reading(request)
        own = self._view.session.id
        session_id = request.query_params.get("session") or own
        running = self._view.alive() if session_id == own else ()
        return _json(await past.timeline(self._view.session, session_id, running))

    async def _export(self, request: Request) -> Response:
        self._gate.check_reading(request)
        session_id = request.query_params.get("session") or self._view.session.id
        records = await self._journal.history(session_id)
        if not records:
            raise Refusal(404, "unknown_session", "nothing is remembered of this session")
        lines = b"".join(_encode(entry) + b"\n" for entry in past.exported(records))
        name = "".join(char for char in session_id if char.isalnum() or char in "-_")[:60]
        headers = {"Content-Disposition": f'attachment; filename="lastword-{name}.jsonl"'}
        return Response(lines, media_type="application/x-ndjson", headers=headers)

    # Changing.

    async def _answer(self, body: AnswerBody, visitor: Visitor) -> None:
        given = (body.call_id, body.digest, body.action, body.reason, body.edits, visitor.by)
        if self._others is not None and self._others.has(body.call_id):
            await self._others.answer(*given)
        else:
            self._view.answer(*given)

    async def _say(self, body: SayBody, visitor: Visitor) -> None:
        self._view.say(body.text, str(visitor.by), visitor.name)

    async def _stop(self, body: StopBody, visitor: Visitor) -> None:
        self._view.stop(turn=body.turn)

    async def _cancel(self, body: CallBody, visitor: Visitor) -> None:
        self._view.cancel(body.call_id)

    async def _resolve(self, body: ResolveBody, visitor: Visitor) -> DoneInWords:
        message = await self._view.resolve(body.call_id, body.decision, str(visitor.by))
        return DoneInWords(event=self._view.feed.last_id, message=visible(message))

    async def _undo(self, body: UndoBody, visitor: Visitor) -> DoneInWords:
        message = await self._view.undo(body.call_id, str(visitor.by))
        return DoneInWords(event=self._view.feed.last_id, message=visible(message))

    async def _preset(self, body: PresetBody, visitor: Visitor) -> None:
        self._view.choose(body.name)

    async def _key(self, body: EmptyBody, visitor: Visitor) -> NewKey:
        return NewKey(event=self._view.feed.last_id, path=f"/enter?key={self._gate.make_key()}")

    async def _lock(self, body: EmptyBody, visitor: Visitor) -> None:
        await self._gate.close_windows()

    # Around them.

    def _headed(self, handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            request.scope["lastword.route"] = request.scope["route"].path if "route" in request.scope else "page"
            response = await handle(request)
            response.headers.update(HEADERS)
            return response

        return answer

    def _changing(self, path: str, kind: type[T], act: Callable[[T, Visitor], Awaitable[Done | None]]) -> Route:
        async def answer(request: Request) -> Response:
            visitor = self._gate.check_changing(request)
            data = await read_body(dict(request.scope["headers"]), request.receive, self._limits)
            try:
                body = msgspec.json.decode(data, type=kind)
            except (msgspec.DecodeError, msgspec.ValidationError) as problem:
                raise Refusal(400, "bad_request", str(problem)) from None
            try:
                return _json(await act(body, visitor) or Done(event=self._view.feed.last_id))
            except Refusal:
                raise
            except StoreError as problem:
                raise Refusal(409, "refused", trouble("This could not be done", problem)) from None
            except LastWordError as problem:
                raise Refusal(409, "refused", problem.fact, hint=problem.hint) from None

        return Route(path, self._headed(answer), methods=["POST"])


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
        self._view.welcome(visitor.surface)
        stream = EventStream(_with_headers(send))
        leaving = asyncio.ensure_future(_gone(receive))
        last_seen = request.headers.get("last-event-id")
        try:
            following = self._view.feed.follow(last_seen, lambda: self._view.state(visitor.token, visitor.name))
            async with aclosing(following) as events:
                pieces = aiter(events)
                while True:
                    coming = asyncio.ensure_future(anext(pieces, None))
                    await asyncio.wait({coming, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    if leaving.done():
                        coming.cancel()
                        await asyncio.wait({coming})
                        return
                    piece = coming.result()
                    if piece is None:
                        break
                    await stream.write(piece)
            await stream.end()
        finally:
            leaving.cancel()


class Front:
    """The page and the API behind one address. Each has a perimeter of its own."""

    def __init__(
        self,
        api: ASGIApp,
        page: Page,
        *,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        log: Callable[[str], Any] | None = None,
    ) -> None:
        self._api = api
        self.page = page
        router = Router(page.routes(), default=_unknown_path, redirect_slashes=False)
        self._perimeter = Perimeter(
            router, hosts=hosts, origins=origins, metrics=Metrics(), log=access_log(log or (lambda line: None))
        )

    def end_streams(self) -> None:
        """Let every window go: a server that stops waits for its connections."""
        self.page.end_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = scope["type"] == "http" and (path in ("/", "/enter") or path.startswith(("/page/", "/assets/")))
        await (self._perimeter if is_page else self._api)(scope, receive, send)


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, "unknown_path", "there is nothing here")


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


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")


def _words(status: int, title: str, text: str) -> Response:
    """A page of words, for when the page itself cannot be shown."""
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>lastword: {title}</title></head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )
    return Response(html, status_code=status, media_type="text/html")
