"""Cards and questions as windows ask for them and answer them.

A card of the conversation that is open is answered in its session, one of another program through the journal
(other_sessions.py). Here is what counts as an answer: it is read from what the window sent, and refused where our own
windows would not have sent it. What does not live here: grants (grant_routes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from lastword.card import Draft, SecondAct, answer_of, one_line, responses, visible
from lastword.errors import ArgumentsError, LastWordError, Problem
from lastword.rules import folder_beside, why_no_step
from lastword.server import Refusal
from lastword.web.conversation import ConversationView, changed, not_waiting
from lastword.web.endpoints import Endpoints, PageBody, refusal_for

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from lastword.card import views
    from lastword.consent import Answerer, ApprovalRequest, UserAction
    from lastword.tools import QuestionAnswer, ToolQuestion
    from lastword.web.other_sessions import OtherSessions
    from lastword.web.page_gate import Visitor


# A person reads no longer list before one press.
MAX_AT_ONCE = 50


class AnswerBody(PageBody, frozen=True):
    """What a person did with a card. `digest` is of the request that they saw."""

    call_id: str
    digest: str
    action: Literal["allow", "allow_second", "deny", "deny_rest", "close"]
    reason: str | None = None
    edits: dict[str, str] = msgspec.field(default_factory=dict)
    """Arguments to change, by name, each as text: a string as it stands, everything else as JSON."""
    word: str | None = None
    """What was typed besides the press: the card's `word`, where it has one."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened: all in the card's `must_open`."""


class SeenCard(PageBody, frozen=True):
    """A card among several, as it was seen."""

    call_id: str
    digest: str
    opened: tuple[str, ...] = ()
    """The folded parts that were opened in the list: all of the card's `folded`, for a yes."""


class AnswersBody(PageBody, frozen=True):
    """What a person did with several cards, each of which they saw in one list."""

    cards: tuple[SeenCard, ...]
    action: Literal["allow", "deny"]
    reason: str | None = None


class QuestionBody(PageBody, frozen=True):
    """What a person did with a question of a running tool."""

    call_id: str
    question: str
    """The id of the question that they saw."""
    action: Literal["give", "decline", "close"]
    values: dict[str, str] = msgspec.field(default_factory=dict)
    """What they filled in, by the names of the fields, each as text."""


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
        call = self._view.shown.call(call_id)
        if call is None or call.card is None:
            raise not_waiting()
        if call.card.digest != digest:
            raise changed()
        return call

    async def answer(self, request: ApprovalRequest, action: UserAction, by: Answerer) -> None:
        """Answer a card, having seen its request."""
        if not self._view.session.answer(request.call_id, action, by):
            raise not_waiting()

    def beside(self, request: ApprovalRequest) -> tuple[Path, list[ApprovalRequest]]:
        """Where its session works, and the cards that wait there."""
        session = self._view.session
        return folder_beside(request, session.registry, session.editor), session.pending()

    def form(self, call_id: str, question_id: str) -> ToolQuestion:
        """What a running tool asks, for a window that has seen the question with this id."""
        questions = self._view.session.questions()
        question = next((q for q in questions if q.id == question_id and q.call_id == call_id), None)
        if question is None:
            raise not_waiting()
        return question

    async def answer_form(self, question: ToolQuestion, answer: QuestionAnswer, by: Answerer) -> None:
        """Answer what a running tool asks."""
        if not self._view.session.answer_question(question.id, answer, by):
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
        asked = self.of(call_id).question(call_id, digest)
        self._view.times.fetched(visitor.name, digest)
        me = self._view.session.journal.people.me
        # Unmarked, with secrets as digests, and with the tool's manifest: such a window draws the card itself.
        return responses.CardQuestion(asked.facts(), msgspec.to_builtins(asked.manifest), why_no_step(asked, me))

    async def _card(self, request: Request, visitor: Visitor) -> views.CallItem:
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        call = self.of(call_id).card(call_id, digest)
        self._view.times.fetched(visitor.name, digest)
        return call

    async def _answer(self, body: AnswerBody, visitor: Visitor) -> None:
        cards = self.of(body.call_id)
        request = cards.question(body.call_id, body.digest)
        if body.action in ("allow", "allow_second"):
            # What is folded differs from surface to surface: a terminal looks after its own.
            folded = self.folded(body.call_id, body.digest) if visitor.surface == "page" else ()
            if not cards.is_own:
                self._view.times.check_fetched(visitor.name, body.digest)
            self._view.times.check_read(request.digest)
            check_deliberate(request, body.word, folded=folded, opened=body.opened)
        await cards.answer(request, action_on(request, body), visitor.by)

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
            except LastWordError as problem:
                refused = refusal_for(problem)
                what = str(refused) if refused is problem else refused.fact
                results.append(responses.AnswerResult(seen.call_id, refused.code, visible(what)))
        return responses.DoneSeverally(event=self._view.feed.last_id, results=tuple(results))

    async def _answer_question(self, body: QuestionBody, visitor: Visitor) -> None:
        cards = self.of(body.call_id)
        question = cards.form(body.call_id, body.question)
        try:
            answer = answer_of(question, body.action, body.values)
        except ArgumentsError as problem:
            first = problem.problems[0]
            label = next((each.title for each in question.fields if each.name == first.place), "") or first.place or ""
            said = f"{one_line(label, 60)}: {visible(first.fact)}"
            raise Refusal(400, "answer_refused", said, param=first.place, hint=first.hint) from None
        await cards.answer_form(question, answer, visitor.by)


def check_deliberate(
    request: ApprovalRequest, word: str | None, *, folded: Collection[str], opened: Collection[str]
) -> None:
    """Refuse a yes that our own windows would not send: they would not have taken it for meant."""
    if (needed := SecondAct.of(request)) is None:
        return
    check_opened(folded, opened, f"{needed.why}, and ")
    if not needed.is_done(word):
        raise Refusal(
            400,
            "not_confirmed",
            f"{needed.why}, so one press does not allow it",
            param="word",
            hint=f"type the word {needed.word} as well",
        )


def check_opened(folded: Collection[str], opened: Collection[str], why: str = "") -> None:
    """Refuse a yes to a card of which a part stayed folded, as far as its window says what it opened."""
    if closed := [part for part in folded if part not in opened]:
        raise Refusal(
            400,
            "not_opened",
            f"{why}a part of it was not opened: {visible(closed[0])}",
            param="opened",
            hint="show all of it before you allow it",
        )


def check_together(request: ApprovalRequest) -> None:
    """Refuse a yes to what is allowed by itself only."""
    if request.manifest.counts_as_irreversible:
        raise Refusal(
            409, "alone", "this cannot be undone, or nobody said that it can: it is allowed by itself only",
            hint="open its card, and answer it there",
        )  # fmt: skip


def cards_of(body: AnswersBody) -> tuple[SeenCard, ...]:
    """The cards that several answers are for, each once."""
    cards = tuple(dict.fromkeys(body.cards))
    if not cards:
        raise Refusal(400, "no_cards", "no card is named", param="cards")
    if len(cards) > MAX_AT_ONCE:
        raise Refusal(400, "too_many", f"more than {MAX_AT_ONCE} cards are not answered at once", param="cards")
    if len({card.call_id for card in cards}) < len(cards):
        raise Refusal(400, "named_twice", "a card is named twice, with two digests", param="cards")
    return cards


def action_on(request: ApprovalRequest, body: AnswerBody) -> UserAction:
    """What the person did, bound to what they saw. Edits are texts, read in the type that the argument has."""
    if body.action == "deny":
        return request.deny(body.reason or None)
    if body.action == "deny_rest":
        return request.deny_rest(body.reason or None)
    if body.action == "close":
        return request.close()
    if body.action == "allow_second":
        if not request.manifest.secondary_acts:
            raise Refusal(400, "no_second", "the second button of this tool is a no", param="action")
        if body.edits:
            raise Refusal(400, "edit_refused", "the second button takes the call as it is", param="edits")
        return request.allow_second()
    draft = Draft(request)
    for name, text in body.edits.items():
        try:
            draft.change(name, text)
        except (Problem, ArgumentsError) as problem:
            raise Refusal(400, "edit_refused", visible(problem.fact), param=name, hint=problem.hint) from None
    return draft.allow()
