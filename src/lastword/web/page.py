"""The page over one session: all of its paths, and the app that serves them beside the API.

docs/page.md describes the paths; what they do is in conversation.py, and in the modules of cards, grants, servers and
conversations.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.card import responses
from lastword.server import Middleware, Refusal, ServerLimits
from lastword.web.card_routes import CardRoutes
from lastword.web.conversation import ConversationView
from lastword.web.conversation_list import PageConversations
from lastword.web.endpoints import EmptyBody, Endpoints, PageBody, asset, page_of_words, page_that_leads
from lastword.web.other_sessions import OtherSessions
from lastword.web.page_gate import PageGate, check_surface, is_from_elsewhere
from lastword.web.server_routes import ServerRoutes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection
    from importlib.resources.abc import Traversable

    from lastword.card import views
    from lastword.mcp import McpServers
    from lastword.session import Session
    from lastword.talk import Api
    from lastword.web.assistant import AssistantSetup
    from lastword.web.page_gate import Visitor

STATIC = files("lastword.web") / "static"


class SayBody(PageBody, frozen=True):
    """A message of the person."""

    text: str


class AgainBody(PageBody, frozen=True):
    """A message of the person's to go on from: the same words, or others."""

    message: str
    text: str | None = None


class StopBody(PageBody, frozen=True):
    """Whether to stop the turn at once, instead of what runs in it."""

    turn: bool = False


class CallBody(PageBody, frozen=True):
    """One call."""

    call_id: str


class ResolveBody(PageBody, frozen=True):
    """What to do about a call in doubt."""

    call_id: str
    decision: Literal["again", "done", "abandon"]
    word: str | None = None
    """The name of its tool, typed out: what running it again takes besides a press."""


class UndoBody(PageBody, frozen=True):
    """The call to take back; without one, the last that changed something."""

    call_id: str | None = None


class PresetBody(PageBody, frozen=True):
    """The preset to work under."""

    name: str


class ModelBody(PageBody, frozen=True):
    """The model to try, and to ask from then on."""

    address: str
    model: str = ""
    key: str = ""

    def __repr__(self) -> str:
        """Without the key: whatever shows this may be kept somewhere."""
        return f"ModelBody(address=…, model={self.model!r})"


@dataclass(frozen=True, slots=True)
class PageSetup:
    """How the page is served, and what it shows beside its own conversation."""

    limits: ServerLimits = field(default_factory=ServerLimits)
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    log: Callable[[str], Any] | None = None
    folder: str = ""
    """Where it was started: the conversation that was open there last is open again the next time."""
    watches_others: bool = True
    """Whether it shows the questions of other programs too."""
    servers: McpServers | None = None
    """The MCP servers that it shows."""


@asynccontextmanager
async def open_page(
    app: ASGIApp, session: Session, api: Api, assistant: AssistantSetup, setup: PageSetup | None = None
) -> AsyncIterator[tuple[PageApp, PageGate]]:
    """The page beside the API app, and the gate that makes its keys."""
    setup = setup or PageSetup()
    gate = PageGate(session.journal.store)
    await gate.open()
    view = ConversationView(session, api, assistant, has_servers=setup.servers is not None)
    await view.open()
    page = Page(view, gate, setup)
    page.open()
    try:
        yield PageApp(app, page, setup), gate
    finally:
        page.close()
        await view.close()


class PageApp:
    """The page and the API behind one address. Each is checked by itself."""

    def __init__(self, api: ASGIApp, page: Page, setup: PageSetup) -> None:
        self._api = api
        self.page = page
        router = Router(page.routes(), default=_unknown_path, redirect_slashes=False)
        log = setup.log or (lambda line: None)
        self._checked = Middleware(router, hosts=setup.hosts, origins=setup.origins, log=log)

    def end_streams(self) -> None:
        """Let every window go: a server that stops waits for its connections."""
        self.page.view.feed.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = scope["type"] == "http" and (path in ("/", "/enter") or path.startswith(("/page/", "/assets/")))
        await (self._checked if is_page else self._api)(scope, receive, send)


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, "unknown_path", "there is nothing here")


class Page:
    """The paths of one conversation."""

    def __init__(
        self, view: ConversationView, gate: PageGate, setup: PageSetup, *, static: Traversable = STATIC
    ) -> None:
        self.view = view
        self._gate = gate
        self._limits = setup.limits
        self._static = static
        self._others = OtherSessions(view) if setup.watches_others else None
        self._watching: asyncio.Future[None] | None = None
        self._cards = CardRoutes(view, self._others)
        self._servers = None if setup.servers is None else ServerRoutes(setup.servers, view)
        self._conversations = PageConversations(view, setup.folder)

    def open(self) -> None:
        """Watch what others ask, and which tools there are, until it is closed."""
        self._conversations.opened(self.view.session.id)
        if self._servers is not None:
            self._servers.open()
        if self._others is not None:
            self._watching = asyncio.ensure_future(self._others.watch())

    def close(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            self._watching.cancel()
        if self._servers is not None:
            self._servers.close()

    def routes(self) -> list[Route]:
        """Everything the page needs, for the app to stand beside its own."""
        view, gate = self.view, self._gate
        at = Endpoints(view, gate, self._limits)
        return [
            at.public("/", self._index),
            at.public("/enter", self._enter),
            at.public("/assets/{name}", self._asset),
            at.events("/page/events"),
            at.reading("/page/state", self._state),
            at.reading("/page/shared", self._shared),
            at.changing("/page/say", SayBody, self._say),
            at.changing("/page/again", AgainBody, self._again),
            at.changing("/page/stop", StopBody, lambda body, _: view.stop(turn=body.turn)),
            at.changing("/page/stop_everything", EmptyBody, lambda _, visitor: view.stop_everything(visitor.by)),
            at.changing("/page/cancel", CallBody, lambda body, _: view.cancel(body.call_id)),
            at.changing("/page/resolve", ResolveBody, self._resolve),
            at.changing("/page/undo", UndoBody, lambda body, visitor: view.undo(body.call_id, str(visitor.by))),
            at.changing("/page/preset", PresetBody, lambda body, _: view.assistant.choose(body.name)),
            at.changing("/page/model", ModelBody, self._model),
            at.changing("/page/key", EmptyBody, lambda *_: responses.NewKey(path=f"/enter?key={gate.make_key()}")),
            at.changing("/page/lock", EmptyBody, lambda *_: gate.close_windows()),
            *self._cards.routes(at),
            *self._conversations.routes(at),
            *([] if self._servers is None else self._servers.routes(at)),
        ]

    # The files.

    async def _index(self, request: Request) -> Response:
        if not self._gate.knows(request):
            return page_of_words(
                401,
                "This window has no key",
                "Open the address that <code>lastword up</code> printed. It works once; a window that is open can make "
                "another one, under Settings.",
            )
        index = self._static / "index.html"
        if not index.is_file():
            return page_of_words(
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
            response = page_that_leads("/") if is_from_elsewhere(request) else Response(None, 303, {"Location": "/"})
            response.headers["Set-Cookie"] = self._gate.set_cookie(request, cookie)
            return response
        if self._gate.knows(request):
            return Response(status_code=303, headers={"Location": "/"})
        if not self._gate.was_used(request.query_params.get("key", "")):
            return page_of_words(
                403,
                "This key opens nothing",
                "It is of an earlier <code>lastword up</code>, or a part of it is missing: copy the whole address that "
                "was printed. An open window can make another one, under Settings.",
            )
        return page_of_words(
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

    async def _state(self, request: Request, visitor: Visitor) -> views.PageState:
        self.view.assistant.welcome(visitor.surface)
        return self.view.state(visitor.token, visitor.name)

    async def _shared(self, request: Request, visitor: Visitor) -> responses.SharedText:
        return responses.SharedText(self.view.shared())

    # Changing.

    async def _say(self, body: SayBody, visitor: Visitor) -> None:
        await self._conversations.check_free(self.view.session.id)
        self.view.say(body.text, str(visitor.by), visitor.name)
        await self._conversations.begin(self.view.session.id, body.text)

    async def _again(self, body: AgainBody, visitor: Visitor) -> None:
        await self._conversations.check_free(self.view.session.id)
        self.view.assistant.again(body.message, body.text, visitor.name)

    async def _resolve(self, body: ResolveBody, visitor: Visitor) -> str:
        return await self.view.resolve(body.call_id, body.decision, str(visitor.by), body.word)

    async def _model(self, body: ModelBody, visitor: Visitor) -> responses.TriedModel:
        return await self.view.assistant.choose_model(body.address, body.model, body.key)
