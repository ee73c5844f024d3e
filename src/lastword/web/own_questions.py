"""Questions of the conversation that the windows show, and the way of their answers to its session.

What does not live here: questions of other programs, which are answered through the journal (other_sessions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lastword.card import views
from lastword.consent import Answerer, ApprovalRequest, GrantTerms
from lastword.rules import folder_beside
from lastword.web.answers import action_on, answer_to, changed, not_waiting
from lastword.web.conversation import ConversationView


class OwnQuestions:
    """What may be asked and answered of the cards in the conversation."""

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
        call = self._view.items.get(call_id)
        if not isinstance(call, views.CallItem) or call.card is None:
            raise not_waiting()
        if call.card.digest != digest:
            raise changed()
        return call

    def folded(self, call_id: str, digest: str) -> tuple[str, ...]:
        """The parts of a card on the page that are not shown whole at first."""
        card = self.card(call_id, digest).card
        return () if card is None else card.folded

    def answer(
        self, call_id: str, digest: str, action: str, reason: str | None, edits: Mapping[str, str], by: Answerer
    ) -> None:
        """Answer a card, having seen the request with this digest."""
        request = self.question(call_id, digest)
        if not self._view.session.answer(call_id, action_on(request, action, reason, edits), by):
            raise not_waiting()

    def beside(self, request: ApprovalRequest) -> tuple[Path, list[ApprovalRequest]]:
        """Where its session works, and the cards that wait there."""
        session = self._view.session
        return folder_beside(request, session.registry, session.editor), session.pending()

    async def grant(self, request: ApprovalRequest, terms: GrantTerms, by: Answerer) -> None:
        """Allow a card, and what its second step said."""
        if not self._view.session.answer(request.call_id, request.allow_with(terms), by):
            raise not_waiting()

    def answer_question(
        self, call_id: str, question_id: str, action: str, values: Mapping[str, str], by: Answerer
    ) -> None:
        """Answer what a running tool asks, having seen the question with this id."""
        question = next(
            (q for q in self._view.session.questions() if q.id == question_id and q.call_id == call_id), None
        )
        if question is None:
            raise not_waiting()
        if not self._view.session.answer_question(question_id, answer_to(question, action, values), by):
            raise not_waiting()
