"""The paths of the page: its files, one stream of events, and what a person may do.

Reading needs the window's cookie; changing something also needs its token, in a header that only our own page can set.
docs/page.md describes the API; what it does is in conversation.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lastword.card import responses, trouble
from lastword.display import visible
from lastword.errors import LastWordError, StoreError
from lastword.journal import Journal, is_visible
from lastword.server import Refusal, ServerLimits, read_body
from lastword.talk import Api, Satellite
from lastword.web import contents, past, tokens
from lastword.web.answers import check_deliberate, check_opened
from lastword.web.assets import asset
from lastword.web.bodies import (
    AgainBody,
    AnswerBody,
    AnswersBody,
    CallBody,
    ConversationBody,
    EmptyBody,
    ModelBody,
    PresetBody,
    QuestionBody,
    RenameBody,
    ResolveBody,
    SayBody,
    StopBody,
    UndoBody,
)
from lastword.web.card import question_of
from lastword.web.conversation import ConversationView
from lastword.web.gate import HEADERS, PageGate, Visitor, check_surface, is_from_elsewhere
from lastword.web.grant_desk import GrantDesk
from lastword.web.inbox import LookedAt, cards_of, check_together
from lastword.web.other_sessions import OtherSessions
from lastword.web.own_questions import OwnQuestions
from lastword.web.servers import ServerDesk
from lastword.web.shelf import Shelf
from lastword.web.stream import Events
from lastword.web.wordpage import page_of_words, page_that_leads

STATIC = files("lastword.web") / "static"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class Page:
    """The page over one conversation."""

    def __init__(
        self,
        view: ConversationView,
        journal: Journal,
        gate: PageGate,
        others: OtherSessions | None,
        api: Api,
        shelf: Shelf,
        *,
        limits: ServerLimits | None = None,
        static: Traversable = STATIC,
        desk: ServerDesk | None = None,
    ) -> None:
        self._desk = desk
        self._view = view
        self._journal = journal
        self._gate = gate
        self._own = OwnQuestions(view)
        self._others = others
        self._api = api
        self._shelf = shelf
        self._limits = limits or ServerLimits()
        self._static = static
        self._looked_at = LookedAt()
        self._grants = GrantDesk(view, journal, gate, self._asker, self._looked_at)

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
            Route("/page/card", self._headed(self._card), methods=["GET"]),
            Route("/page/shared", self._headed(self._shared), methods=["GET"]),
            Route("/page/timeline", self._headed(self._timeline), methods=["GET"]),
            Route("/page/earlier", self._headed(self._earlier), methods=["GET"]),
            Route("/page/export", self._headed(self._export), methods=["GET"]),
            Route("/page/tokens", self._headed(self._tokens), methods=["GET"]),
            Route("/page/conversations", self._headed(self._conversations), methods=["GET"]),
            do("/page/again", AgainBody, self._again),
            do("/page/new", EmptyBody, self._new),
            do("/page/open", ConversationBody, self._open),
            do("/page/rename", RenameBody, self._rename),
            do("/page/delete", ConversationBody, self._delete),
            Route("/page/content", self._headed(self._content), methods=["GET"]),
            do("/page/answer", AnswerBody, self._answer),
            do("/page/answers", AnswersBody, self._answers),
            do("/page/answer_question", QuestionBody, self._answer_question),
            do("/page/say", SayBody, self._say),
            do("/page/stop", StopBody, self._stop),
            do("/page/stop_everything", EmptyBody, self._stop_everything),
            do("/page/cancel", CallBody, self._cancel),
            do("/page/resolve", ResolveBody, self._resolve),
            do("/page/undo", UndoBody, self._undo),
            do("/page/preset", PresetBody, self._preset),
            do("/page/model", ModelBody, self._model),
            do("/page/key", EmptyBody, self._key),
            do("/page/lock", EmptyBody, self._lock),
            *self._grants.routes(self._headed, do, _json),
            *([] if self._desk is None else self._desk.routes(self._headed, do, _json)),
        ]

    def end_streams(self) -> None:
        """End every stream of events."""
        self._view.feed.close()

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

    async def _state(self, request: Request) -> Response:
        visitor = self._gate.check_reading(request)
        self._view.welcome(visitor.surface)
        return _json(self._view.state(visitor.token, visitor.name))

    async def _question(self, request: Request) -> Response:
        visitor = self._gate.check_reading(request)
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        question = question_of(self._asker(call_id).question(call_id, digest), self._journal.people.me)
        self._looked_at.note(visitor.name, digest)
        return _json(question)

    async def _card(self, request: Request) -> Response:
        visitor = self._gate.check_reading(request)
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        call = self._asker(call_id).card(call_id, digest)
        self._looked_at.note(visitor.name, digest)
        return _json(call)

    async def _shared(self, request: Request) -> Response:
        self._gate.check_reading(request)
        return _json(responses.SharedText(visible(self._view.session.format_state_for_prompt())))

    async def _timeline(self, request: Request) -> Response:
        self._gate.check_reading(request)
        own = self._view.session.id
        session_id = await self._visible(request.query_params.get("session") or own)
        running = self._view.alive() if session_id == own else ()
        return _json(await past.timeline(self._view.session, session_id, running))

    async def _earlier(self, request: Request) -> Response:
        self._gate.check_reading(request)
        return _json(await past.earlier(self._view.session, self._api, self._view.begins_with))

    async def _export(self, request: Request) -> Response:
        self._gate.check_reading(request)
        session_id = await self._visible(request.query_params.get("session") or self._view.session.id)
        records = await self._journal.history(session_id)
        if not records:
            raise _unknown_session()
        lines = b"".join(_encode(entry) + b"\n" for entry in past.exported(records))
        name = "".join(char for char in session_id if char.isalnum() or char in "-_")[:60]
        headers = {"Content-Disposition": f'attachment; filename="lastword-{name}.jsonl"'}
        return Response(lines, media_type="application/x-ndjson", headers=headers)

    async def _conversations(self, request: Request) -> Response:
        self._gate.check_reading(request)
        words = request.query_params.get("words", "")[:200]
        return _json(await self._shelf.find(words, self._view.session.id))

    async def _tokens(self, request: Request) -> Response:
        self._gate.check_reading(request)
        return _json(await tokens.total(self._view.session))

    async def _content(self, request: Request) -> Response:
        self._gate.check_reading(request)
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        for record in await self._journal.store.read(subject=call_id, limit=1):
            await self._visible(record.stream)
        return await contents.content(self._journal, call_id, digest)

    async def _visible(self, session_id: str) -> str:
        """A session that the person here may look at: their own, nobody's, or of one for whom they may answer."""
        if session_id != self._view.session.id and not await is_visible(self._journal, session_id):
            raise _unknown_session()
        return session_id

    # Changing.

    def _asker(self, call_id: str) -> OwnQuestions | OtherSessions:
        """Whose question it is."""
        return self._others if self._others is not None and self._others.has(call_id) else self._own

    async def _answer(self, body: AnswerBody, visitor: Visitor) -> None:
        asker = self._asker(body.call_id)
        if body.action in ("allow", "allow_second"):
            request = asker.question(body.call_id, body.digest)
            # What is folded differs from surface to surface: a terminal looks after its own.
            folded = asker.folded(body.call_id, body.digest) if visitor.surface == "page" else ()
            if asker is not self._own:
                # Those of our own session are sent to every window, those of others to whoever looks at them.
                self._looked_at.check(visitor.name, body.digest)
            check_deliberate(request, self._view.put, body.word, folded=folded, opened=body.opened)
        given = (body.call_id, body.digest, body.action, body.reason, body.edits, visitor.by)
        if isinstance(asker, OtherSessions):
            await asker.answer(*given)
        else:
            asker.answer(*given)

    async def _answers(self, body: AnswersBody, visitor: Visitor) -> responses.DoneSeverally:
        """Several at once, each as if it had been answered alone: one that is refused holds up no other."""
        results = []
        for seen in cards_of(body):
            try:
                if body.action == "allow":
                    asker = self._asker(seen.call_id)
                    check_together(asker.question(seen.call_id, seen.digest))
                    self._looked_at.check(visitor.name, seen.digest)
                    # A list of several is the page's alone: a terminal shows one card after the other.
                    check_opened(asker.folded(seen.call_id, seen.digest), seen.opened)
                await self._answer(AnswerBody(seen.call_id, seen.digest, body.action, body.reason), visitor)
                results.append(responses.AnswerResult(seen.call_id))
            except Refusal as refused:
                results.append(responses.AnswerResult(seen.call_id, refused.code, visible(str(refused))))
            except LastWordError as problem:
                what = trouble("This could not be done", problem) if isinstance(problem, StoreError) else problem.fact
                results.append(responses.AnswerResult(seen.call_id, "refused", visible(what)))
        return responses.DoneSeverally(event=self._view.feed.last_id, results=tuple(results))

    async def _answer_question(self, body: QuestionBody, visitor: Visitor) -> None:
        given = (body.call_id, body.question, body.action, body.values, visitor.by)
        if self._others is not None and self._others.has_question(body.call_id):
            await self._others.answer_question(*given)
        else:
            self._own.answer_question(*given)

    async def _say(self, body: SayBody, visitor: Visitor) -> None:
        await self._shelf.check_free(self._journal, self._view.session.id)
        self._view.say(body.text, str(visitor.by), visitor.name)
        await self._shelf.begin(self._view.session.id, body.text)

    async def _again(self, body: AgainBody, visitor: Visitor) -> None:
        await self._shelf.check_free(self._journal, self._view.session.id)
        self._view.again(body.message, body.text, visitor.name)

    async def _new(self, body: EmptyBody, visitor: Visitor) -> None:
        await self._go_to(None)

    async def _open(self, body: ConversationBody, visitor: Visitor) -> None:
        await self._shelf.check_known(body.id)
        if body.id != self._view.session.id:
            await self._shelf.check_free(self._journal, body.id)
            await self._go_to(body.id)

    async def _go_to(self, id: str | None) -> None:
        self._view.check_idle()
        session = self._view.session.beside(id)
        await session.open()
        satellite = Satellite(session, self._api, hear=self._view.hear)
        await self._view.go_to(session, satellite)
        self._shelf.opened(session.id)

    async def _rename(self, body: RenameBody, visitor: Visitor) -> None:
        await self._shelf.check_known(body.id)
        self._shelf.entitle(body.id, body.title)

    async def _delete(self, body: ConversationBody, visitor: Visitor) -> None:
        await self._shelf.check_finished(body.id)
        if body.id == self._view.session.id:
            await self._go_to(None)
        await self._shelf.remove(body.id)

    async def _stop(self, body: StopBody, visitor: Visitor) -> None:
        self._view.stop(turn=body.turn)

    async def _stop_everything(self, body: EmptyBody, visitor: Visitor) -> responses.DoneInWords:
        message = await self._view.stop_everything(visitor.by)
        return responses.DoneInWords(event=self._view.feed.last_id, message=message)

    async def _cancel(self, body: CallBody, visitor: Visitor) -> None:
        self._view.cancel(body.call_id)

    async def _resolve(self, body: ResolveBody, visitor: Visitor) -> responses.DoneInWords:
        message = await self._view.resolve(body.call_id, body.decision, str(visitor.by), body.word)
        return responses.DoneInWords(event=self._view.feed.last_id, message=visible(message))

    async def _undo(self, body: UndoBody, visitor: Visitor) -> responses.DoneInWords:
        message = await self._view.undo(body.call_id, str(visitor.by))
        return responses.DoneInWords(event=self._view.feed.last_id, message=visible(message))

    async def _preset(self, body: PresetBody, visitor: Visitor) -> None:
        self._view.choose(body.name)

    async def _model(self, body: ModelBody, visitor: Visitor) -> responses.TriedModel:
        return await self._view.choose_model(body.address, body.model, body.key)

    async def _key(self, body: EmptyBody, visitor: Visitor) -> responses.NewKey:
        return responses.NewKey(event=self._view.feed.last_id, path=f"/enter?key={self._gate.make_key()}")

    async def _lock(self, body: EmptyBody, visitor: Visitor) -> None:
        await self._gate.close_windows()

    # Around them.

    def _headed(self, handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            request.scope["lastword.route"] = request.scope["route"].path if "route" in request.scope else "page"
            response = await handle(request)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)  # What a tool made has a stricter policy of its own.
            return response

        return answer

    def _changing(
        self, path: str, kind: type[T], act: Callable[[T, Visitor], Awaitable[responses.Done | None]]
    ) -> Route:
        async def answer(request: Request) -> Response:
            visitor = self._gate.check_changing(request)
            data = await read_body(dict(request.scope["headers"]), request.receive, self._limits)
            try:
                body = msgspec.json.decode(data, type=kind)
            except (msgspec.DecodeError, msgspec.ValidationError) as problem:
                raise Refusal(400, "bad_request", str(problem)) from None
            try:
                return _json(await act(body, visitor) or responses.Done(event=self._view.feed.last_id))
            except Refusal:
                raise
            except StoreError as problem:
                raise Refusal(409, "refused", trouble("This could not be done", problem)) from None
            except LastWordError as problem:
                raise Refusal(409, "refused", problem.fact, hint=problem.hint) from None

        return Route(path, self._headed(answer), methods=["POST"])


def _unknown_session() -> Refusal:
    """Also what is said of another person's: whether there is one is nobody else's business."""
    return Refusal(404, "unknown_session", "nothing is remembered of this session")


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")
