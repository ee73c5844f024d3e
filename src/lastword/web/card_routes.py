"""Cards and questions as windows ask for them and answer them.

A card of the conversation that is open is answered in its session, one of another program through the journal
(other_sessions.py). What does not live here: what counts as an answer (answers.py), and grants (grant_routes.py).
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.routing import Route

from lastword.card import responses, views
from lastword.consent import Answerer, ApprovalRequest, GrantTerms
from lastword.display import visible
from lastword.errors import LastWordError, StoreError
from lastword.log import trouble
from lastword.rules import folder_beside
from lastword.server import Refusal
from lastword.web.answers import (
    action_on,
    answer_to,
    cards_of,
    changed,
    check_deliberate,
    check_opened,
    check_together,
    not_waiting,
)
from lastword.web.bodies import AnswerBody, AnswersBody, QuestionBody
from lastword.web.card_view import question_of
from lastword.web.conversation import ConversationView
from lastword.web.endpoints import Endpoints
from lastword.web.other_sessions import OtherSessions
from lastword.web.page_gate import Visitor


class OwnCards:
    """What may be asked and answered of the cards in the conversation."""

    is_own = True
    """Its cards are sent to every window; those of others go to whoever looks at them."""

    def __init__(self, view: ConversationView) -> None:
        self._view = view

    def question(self, call_id: str, digest: str) -> ApprovalRequest:
        """The request behind a card, for a window that has seen it and may answer it."""
        request = next((r for r in self._view.session.pending() if r.call_id == call_id), None)
        if request is None:
            raise not_waiting()
        if request.digest != digest:
            raise changed()
        return request

    def card(self, call_id: str, digest: str) -> views.CallItem:
        """The call with its card, to be looked at."""
        call = self._view.shown.items.get(call_id)
        if not isinstance(call, views.CallItem) or call.card is None:
            raise not_waiting()
        if call.card.digest != digest:
            raise changed()
        return call

    async def answer(self, body: AnswerBody, by: Answerer) -> None:
        """Answer a card, having seen the request with this digest."""
        request = self.question(body.call_id, body.digest)
        if not self._view.session.answer(body.call_id, action_on(request, body), by):
            raise not_waiting()

    def beside(self, request: ApprovalRequest) -> tuple[Path, list[ApprovalRequest]]:
        """Where its session works, and the cards that wait there."""
        session = self._view.session
        return folder_beside(request, session.registry, session.editor), session.pending()

    async def grant(self, request: ApprovalRequest, terms: GrantTerms, by: Answerer) -> None:
        """Allow a card, and what its second step said."""
        if not self._view.session.answer(request.call_id, request.allow_with(terms), by):
            raise not_waiting()

    async def answer_question(self, body: QuestionBody, by: Answerer) -> None:
        """Answer what a running tool asks, having seen the question with this id."""
        questions = self._view.session.questions()
        question = next((q for q in questions if q.id == body.question and q.call_id == body.call_id), None)
        if question is None:
            raise not_waiting()
        if not self._view.session.answer_question(body.question, answer_to(question, body), by):
            raise not_waiting()


class CardRoutes:
    """The cards of all sessions."""

    def __init__(self, view: ConversationView, others: OtherSessions | None) -> None:
        self._view = view
        self._own = OwnCards(view)
        self._others = others

    def routes(self, at: Endpoints) -> list[Route]:
        return [
            at.reading("/page/question", self._question),
            at.reading("/page/card", self._card),
            at.changing("/page/answer", AnswerBody, self._answer),
            at.changing("/page/answers", AnswersBody, self._answers),
            at.changing("/page/answer_question", QuestionBody, self._answer_question),
        ]

    def of(self, call_id: str) -> OwnCards | OtherSessions:
        """Those among which this card is."""
        return self._others if self._others is not None and self._others.has(call_id) else self._own

    def folded(self, call_id: str, digest: str) -> tuple[str, ...]:
        """The parts of a card on the page that are not shown whole at first."""
        card = self.of(call_id).card(call_id, digest).card
        return () if card is None else card.folded

    async def _question(self, request: Request, visitor: Visitor) -> responses.CardQuestion:
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        question = question_of(self.of(call_id).question(call_id, digest), self._view.session.journal.people.me)
        self._view.times.fetched(visitor.name, digest)
        return question

    async def _card(self, request: Request, visitor: Visitor) -> views.CallItem:
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        call = self.of(call_id).card(call_id, digest)
        self._view.times.fetched(visitor.name, digest)
        return call

    async def _answer(self, body: AnswerBody, visitor: Visitor) -> None:
        cards = self.of(body.call_id)
        if body.action in ("allow", "allow_second"):
            request = cards.question(body.call_id, body.digest)
            # What is folded differs from surface to surface: a terminal looks after its own.
            folded = self.folded(body.call_id, body.digest) if visitor.surface == "page" else ()
            if not cards.is_own:
                self._view.times.check_fetched(visitor.name, body.digest)
            self._view.times.check_read(request.digest)
            check_deliberate(request, body.word, folded=folded, opened=body.opened)
        await cards.answer(body, visitor.by)

    async def _answers(self, body: AnswersBody, visitor: Visitor) -> responses.DoneSeverally:
        """Several at once, each as if it had been answered alone: one that is refused holds up no other."""
        results = []
        for seen in cards_of(body):
            try:
                if body.action == "allow":
                    check_together(self.of(seen.call_id).question(seen.call_id, seen.digest))
                    self._view.times.check_fetched(visitor.name, seen.digest)
                    # A list of several is the page's alone: a terminal shows one card after the other.
                    check_opened(self.folded(seen.call_id, seen.digest), seen.opened)
                await self._answer(AnswerBody(seen.call_id, seen.digest, body.action, body.reason), visitor)
                results.append(responses.AnswerResult(seen.call_id))
            except Refusal as refused:
                results.append(responses.AnswerResult(seen.call_id, refused.code, visible(str(refused))))
            except LastWordError as problem:
                what = trouble("This could not be done", problem) if isinstance(problem, StoreError) else problem.fact
                results.append(responses.AnswerResult(seen.call_id, "refused", visible(what)))
        return responses.DoneSeverally(event=self._view.feed.last_id, results=tuple(results))

    async def _answer_question(self, body: QuestionBody, visitor: Visitor) -> None:
        if self._others is not None and self._others.has_question(body.call_id):
            await self._others.answer_question(body, visitor.by)
        else:
            await self._own.answer_question(body, visitor.by)
