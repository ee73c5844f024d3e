"""Cards and questions as windows ask for them and answer them, and the grants that are given from cards.

A card of the conversation that is open is answered in its session, one of another program through the journal
(other_sessions.py). Here is what counts as an answer: it is read from what the window sent, and refused where our own
windows would not have sent it. The same for a yes to the second step of a card: it names what this very window was told
of it, with a word that was typed, and what is granted is put together anew from the card: nothing of it comes from the
window. What can be granted at all is in rules/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.routing import Route

from lastword.card import Draft, SecondAct, answer_of, one_line, read_value, responses, visible
from lastword.errors import ArgumentsError, LastWordError, Problem, UnknownTool
from lastword.rules import GrantChoice, Grants, SeenStep, folder_beside
from lastword.server import Refusal
from lastword.web.endpoints import Endpoints, PageBody, refusal_for

if TYPE_CHECKING:
    from pathlib import Path

    from lastword.card import views
    from lastword.consent import Answerer, ApprovalRequest, UserAction
    from lastword.rules import Policy
    from lastword.tools import Manifest, QuestionAnswer, ToolQuestion
    from lastword.web.conversation import ConversationView
    from lastword.web.other_sessions import OtherSessions
    from lastword.web.page_gate import Visitor

# A person reads no longer list before one press.
MAX_AT_ONCE = 50
ALONE = "this cannot be undone, or nobody said that it can: it is allowed by itself only"
# Steps that windows were shown and said nothing to yet. Whoever opens more looks again at the first.
MAX_SHOWN = 200

# Of a card that another program asks: whoever reads "this session" here would think of the page's own.
ENDS_THERE = "This session is that of the program that asks, and ends with it."

# What is said of a field for whoever has never heard of JSON: what it is, and an example.
_PLAIN = {"number": ("a number", "3"), "boolean": ("true or false", "true")}


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


class GrantChoiceBody(PageBody, frozen=True):
    """What a person has chosen in the second step of a card, so far. Nothing is granted by it."""

    call_id: str
    digest: str
    loosened: dict[str, int] = msgspec.field(default_factory=dict)
    """Which of the offered bounds, by argument: 0 is exactly what the card says."""
    scope: responses.Scope = "session"
    calls: int | None = GrantChoice.FIRST_CALLS
    sums: dict[str, str] = msgspec.field(default_factory=dict)


class GrantBody(PageBody, frozen=True):
    """A yes to a card and to what its second step said. `step` is of exactly that, as this window was shown it."""

    call_id: str
    digest: str
    step: str
    word: str | None = None
    """What was typed besides the press."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened: all in the card's `folded`."""


class RevokeBody(PageBody, frozen=True):
    """A grant to take back."""

    id: str


class ExplainBody(PageBody, frozen=True):
    """A call that nobody makes: what would decide about it?"""

    tool: str
    arguments: dict[str, str] = msgspec.field(default_factory=dict)
    """By name, each as text: a string as it stands, everything else as JSON."""


class OwnCards:
    """What waits in the conversation that is open."""

    is_own = True
    """Its cards are sent to every window; those of others go to whoever looks at them."""

    def __init__(self, view: ConversationView) -> None:
        self._view = view

    def request(self, call_id: str) -> ApprovalRequest | None:
        """The request behind a card."""
        return next((request for request in self._view.session.pending() if request.call_id == call_id), None)

    def call(self, call_id: str) -> views.CallItem | None:
        """The call with its card, to be looked at."""
        return self._view.shown.call(call_id)

    def form(self, call_id: str, question_id: str) -> ToolQuestion | None:
        """What a running tool asks."""
        questions = self._view.session.questions()
        return next((each for each in questions if each.id == question_id and each.call_id == call_id), None)

    async def answer(self, request: ApprovalRequest, action: UserAction, by: Answerer) -> bool:
        """Answer a card, having seen its request. False when it waits no longer, as below."""
        return bool(self._view.session.answer(request.call_id, action, by))

    async def answer_form(self, question: ToolQuestion, answer: QuestionAnswer, by: Answerer) -> bool:
        """Answer what a running tool asks."""
        return self._view.session.answer_question(question.id, answer, by)

    def beside(self, request: ApprovalRequest) -> tuple[Path, list[ApprovalRequest]]:
        """Where its session works, and the cards that wait there."""
        session = self._view.session
        return folder_beside(request, session.registry, session.editor), session.pending()


class CardRoutes:
    """The cards of all sessions, and what may be granted from them."""

    def __init__(self, view: ConversationView, others: OtherSessions | None) -> None:
        self._view = view
        self._journal = view.session.journal
        self._checks = view.checks
        self._own = OwnCards(view)
        self._others = others
        self._steps: dict[tuple[str, str], SeenStep] = {}
        """What windows were told of second steps, by the window and the digest of the step."""

    def routes(self, at: Endpoints) -> list[Route]:
        return [
            at.reading("/page/question", self._question),
            at.reading("/page/card", self._card),
            at.changing("/page/answer", AnswerBody, self._answer),
            at.changing("/page/answers", AnswersBody, self._answers),
            at.changing("/page/answer_question", QuestionBody, self._answer_question),
            at.reading("/page/grants", self._grants),
            at.changing("/page/grant_step", GrantChoiceBody, self._grant_step),
            at.changing("/page/grant", GrantBody, self._grant),
            at.changing("/page/grant_revoke", RevokeBody, self._revoke),
            at.changing("/page/explain", ExplainBody, self._explain),
        ]

    # What is asked.

    def _of(self, call_id: str) -> OwnCards | OtherSessions:
        """Those among which this card is."""
        return self._others if self._others is not None and self._others.has(call_id) else self._own

    def _request(self, call_id: str, digest: str) -> ApprovalRequest:
        """The request behind a card, for a window that has seen it and may answer it."""
        return self._checks.as_seen(self._of(call_id).request(call_id), digest)

    def _call(self, call_id: str, digest: str) -> views.CallItem:
        """The call with its card, for a window that knows which."""
        call = self._of(call_id).call(call_id)
        self._checks.as_seen(None if call is None else call.card, digest)
        assert call is not None
        return call

    def _folded(self, call_id: str, digest: str) -> tuple[str, ...]:
        """The parts of a card on the page that are not shown whole at first."""
        card = self._call(call_id, digest).card
        return () if card is None else card.folded

    async def _question(self, request: Request, visitor: Visitor) -> responses.CardQuestion:
        call_id, digest = _named(request)
        asked = self._request(call_id, digest)
        self._checks.fetched(visitor.name, digest)
        why_no_grant = SeenStep.why_none(asked, self._journal.people.me)
        # Unmarked, with secrets as digests, and with the tool's manifest: such a window draws the card itself.
        return responses.CardQuestion(asked.facts(), msgspec.to_builtins(asked.manifest), why_no_grant)

    async def _card(self, request: Request, visitor: Visitor) -> views.CallItem:
        call_id, digest = _named(request)
        call = self._call(call_id, digest)
        self._checks.fetched(visitor.name, digest)
        return call

    # What counts as an answer.

    async def _answer(self, body: AnswerBody, visitor: Visitor) -> None:
        request = self._request(body.call_id, body.digest)
        if body.action in ("allow", "allow_second"):
            # What is folded differs from surface to surface: a terminal looks after its own.
            folded = self._folded(body.call_id, body.digest) if visitor.surface == "page" else ()
            self._check_read(visitor, request.call_id, body.digest)
            if (needed := SecondAct.of(request)) is not None:
                self._checks.check_opened(folded, body.opened, f"{needed.why}, and ")
                self._checks.check_word(needed.word, body.word, f"{needed.why}, so one press does not allow it")
        await self._settle(request, action_on(request, body), visitor)

    async def _answers(self, body: AnswersBody, visitor: Visitor) -> responses.DoneSeverally:
        """Several at once, each as if it had been answered alone: one that is refused holds up no other."""
        results = []
        for seen in cards_of(body):
            try:
                if body.action == "allow":
                    if self._request(seen.call_id, seen.digest).manifest.counts_as_irreversible:
                        raise Refusal(409, "alone", ALONE, hint="open its card, and answer it there")
                    self._checks.check_fetched(visitor.name, seen.digest)
                    # A list of several is the page's alone: a terminal shows one card after the other.
                    self._checks.check_opened(self._folded(seen.call_id, seen.digest), seen.opened)
                await self._answer(AnswerBody(seen.call_id, seen.digest, body.action, body.reason), visitor)
                results.append(responses.AnswerResult(seen.call_id))
            except LastWordError as problem:
                refused = refusal_for(problem)
                what = str(refused) if refused is problem else refused.fact
                results.append(responses.AnswerResult(seen.call_id, refused.code, visible(what)))
        return responses.DoneSeverally(results=tuple(results))

    async def _answer_question(self, body: QuestionBody, visitor: Visitor) -> None:
        cards = self._of(body.call_id)
        question = cards.form(body.call_id, body.question)
        if question is None:
            raise self._checks.not_waiting()
        try:
            answer = answer_of(question, body.action, body.values)
        except ArgumentsError as problem:
            first = problem.problems[0]
            label = next((each.title for each in question.fields if each.name == first.place), "") or first.place or ""
            said = f"{one_line(label, 60)}: {visible(first.fact)}"
            raise Refusal(400, "answer_refused", said, param=first.place, hint=first.hint) from None
        if not await cards.answer_form(question, answer, visitor.by):
            raise self._checks.not_waiting()

    async def _settle(self, request: ApprovalRequest, action: UserAction, visitor: Visitor) -> None:
        if not await self._of(request.call_id).answer(request, action, visitor.by):
            raise self._checks.not_waiting()

    def _check_read(self, visitor: Visitor, call_id: str, *digests: str) -> None:
        """Refuse a yes to what its window cannot have read yet: first of all the card."""
        if not self._of(call_id).is_own:
            self._checks.check_fetched(visitor.name, digests[0])
        self._checks.check_read(*digests)

    # What may be granted.

    async def _grant_step(self, body: GrantChoiceBody, visitor: Visitor) -> responses.GrantStep:
        """What would be granted. Nothing is."""
        request = self._request(body.call_id, body.digest)
        choice = GrantChoice(loosened=body.loosened, scope=body.scope, calls=body.calls, sums=body.sums)
        seen = await self._step(request, choice)
        if seen.terms is not None:
            self._steps[visitor.name, seen.step.digest] = seen
            if len(self._steps) > MAX_SHOWN:
                del self._steps[next(iter(self._steps))]
            self._checks.shown(seen.step.digest)
        return seen.step

    async def _grant(self, body: GrantBody, visitor: Visitor) -> None:
        """Allow a card, and what its second step said: both, or neither."""
        request = self._request(body.call_id, body.digest)
        seen = self._steps.get((visitor.name, body.step))
        if seen is None:
            raise Refusal(
                409, "not_seen", "this window was not told what would be granted",
                hint="open the second step of the card, and read it",
            )  # fmt: skip
        fresh = await self._step(request, seen.choice)
        if fresh.terms is None or seen.terms is None or not fresh.means_the_same(seen):
            raise self._checks.changed()
        self._check_read(visitor, request.call_id, request.digest, body.step)
        if visitor.surface == "page":
            # Whatever the effect: the sentence has the beginning of a long text, and only the card has all of it.
            self._checks.check_opened(self._folded(request.call_id, request.digest), body.opened)
        self._checks.check_word(responses.GRANT_WORD, body.word, "one press does not grant anything")
        # Of the cards that were listed, those that still wait. One that came since was not read by anybody.
        settles = tuple(call_id for call_id in seen.terms.settles if call_id in fresh.terms.settles)
        await self._settle(request, request.allow_with(replace(fresh.terms, settles=settles)), visitor)
        self._steps.pop((visitor.name, body.step), None)  # It may have been crowded out since.

    async def _step(self, request: ApprovalRequest, choice: GrantChoice) -> SeenStep:
        cards = self._of(request.call_id)
        folder, waiting = cards.beside(request)
        seen = await SeenStep.of(request, choice, folder, waiting, self._journal)
        if not cards.is_own and seen.step.scope == "session":
            return replace(seen, step=replace(seen.step, ends=ENDS_THERE))
        return seen

    async def _grants(self, request: Request, visitor: Visitor) -> responses.GrantsFound:
        """What stands now."""
        entries = [
            responses.GrantEntry(
                id=one.grant.id,
                sentence=f"{one.what}; {one.how_long}",
                used=f"{one.whose[:1].upper()}{one.whose[1:]}, {one.left}",
                over=one.over or "",
            )
            for one in await Grants(self._journal).listed(self._view.session.id)
        ]
        policy = self._view.session.policy
        return responses.GrantsFound(grants=tuple(entries), files=() if policy is None else _files(policy))

    async def _explain(self, body: ExplainBody, visitor: Visitor) -> responses.ExplainedCall:
        """What decides about a call of this conversation, and why. Nothing is asked or written down."""
        session = self._view.session
        try:
            manifest = session.registry.lookup(body.tool).manifest
            given = {name: _meant(manifest, name, text) for name, text in body.arguments.items()}
            told = await session.explain(body.tool, given)
        except UnknownTool as problem:
            raise Refusal(400, "unknown_tool", visible(problem.fact), param="tool", hint=problem.hint) from None
        except Problem as problem:
            raise _unfit(problem) from None
        except ArgumentsError as several:
            raise _unfit(several.problems[0]) from None
        return responses.ExplainedCall(saying=told.saying, why=told.sentence)

    async def _revoke(self, body: RevokeBody, visitor: Visitor) -> None:
        """Take a grant back. What it has started goes on; nothing more starts by it."""
        if not await Grants(self._journal).revoke(body.id, visitor.by):
            raise LastWordError("this grant had ended already")


def _meant(manifest: Manifest, name: str, text: str) -> Any:
    """The value that somebody means who typed this into the field of an argument."""
    try:
        return read_value(manifest, name, text)
    except Problem:
        kind = next((p.type for p in manifest.parameters if p.name == name), "")
        if kind not in _PLAIN:
            raise
        what, example = _PLAIN[kind]
        raise Problem(f"{name} is {what}, and {text[:60]} is not", hint=f"for instance {example}") from None


def _unfit(problem: Problem) -> Refusal:
    """What is wrong with an argument of a call that somebody asks about."""
    place = f"{problem.place}: " if problem.place else ""
    return Refusal(400, "arguments_refused", visible(f"{place}{problem.fact}"), param=problem.place, hint=problem.hint)


def _files(policy: Policy) -> tuple[responses.RuleFile, ...]:
    return tuple(
        responses.RuleFile(
            path=visible(str(file.path)),
            layer=file.layer,
            state=file.state,
            rules=tuple(
                responses.RuleEntry(name=visible(str(rule)), saying=rule.saying, words=rule.words)
                for rule in policy.rules
                if rule.file == file.path
            ),
        )
        for file in policy.files
    )


def _named(request: Request) -> tuple[str, str]:
    """The call and the digest of the card that a window asks for."""
    return request.query_params.get("call_id", ""), request.query_params.get("digest", "")


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
