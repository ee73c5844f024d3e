"""Grants on the page: the second step of a card, the yes to it, and the grants and rules that stand.

A window says which of the offered bounds was chosen, and is told what that would grant; it is granted by a yes that
names what this very window was told, with a word that was typed. What is granted is put together anew from the card:
nothing of it comes from the window. What can be granted at all is in rules/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.routing import Route

from lastword.card import SecondAct, read_value, responses, visible
from lastword.consent import Scope
from lastword.errors import ArgumentsError, LastWordError, Problem, UnknownTool
from lastword.rules import FIRST_CALLS, GrantChoice, Policy, SeenStep, listed_grants, revoke, step_of
from lastword.server import Refusal
from lastword.web.card_routes import CardRoutes, check_opened
from lastword.web.conversation import ConversationView, changed
from lastword.web.endpoints import Endpoints, PageBody

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest
    from lastword.tools import Manifest
    from lastword.web.page_gate import Visitor

# Steps that windows were shown and said nothing to yet. Whoever opens more looks again at the first.
MAX_SHOWN = 200

# Of a card that another program asks: whoever reads "this session" here would think of the page's own.
ENDS_THERE = "This session is that of the program that asks, and ends with it."

# What is said of a field for whoever has never heard of JSON: what it is, and an example.
_PLAIN = {"number": ("a number", "3"), "boolean": ("true or false", "true")}


class GrantChoiceBody(PageBody, frozen=True):
    """What a person has chosen in the second step of a card, so far. Nothing is granted by it."""

    call_id: str
    digest: str
    loosened: dict[str, int] = msgspec.field(default_factory=dict)
    """Which of the offered bounds, by argument: 0 is exactly what the card says."""
    scope: Scope = "session"
    calls: int | None = FIRST_CALLS
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


class GrantRoutes:
    """What windows show and do about standing yeses."""

    def __init__(self, view: ConversationView, cards: CardRoutes) -> None:
        self._view = view
        self._journal = view.session.journal
        self._cards = cards
        self._shown: dict[tuple[str, str], SeenStep] = {}

    def routes(self, at: Endpoints) -> list[Route]:
        return [
            at.reading("/page/grants", self.found),
            at.changing("/page/grant_step", GrantChoiceBody, self.step),
            at.changing("/page/grant", GrantBody, self.grant),
            at.changing("/page/grant_revoke", RevokeBody, self.revoke),
            at.changing("/page/explain", ExplainBody, self.explain),
        ]

    async def step(self, body: GrantChoiceBody, visitor: Visitor) -> responses.GrantStep:
        """What would be granted. Nothing is."""
        request = self._cards.of(body.call_id).question(body.call_id, body.digest)
        choice = GrantChoice(loosened=body.loosened, scope=body.scope, calls=body.calls, sums=body.sums)
        seen = await self._step(request, choice)
        if seen.terms is not None:
            self._shown[visitor.name, seen.step.digest] = seen
            if len(self._shown) > MAX_SHOWN:
                del self._shown[next(iter(self._shown))]
            self._view.times.shown(seen.step.digest)
        return seen.step

    async def grant(self, body: GrantBody, visitor: Visitor) -> None:
        """Allow a card, and what its second step said: both, or neither."""
        cards = self._cards.of(body.call_id)
        request = cards.question(body.call_id, body.digest)
        seen = self._shown.get((visitor.name, body.step))
        if seen is None:
            raise Refusal(
                409, "not_seen", "this window was not told what would be granted",
                hint="open the second step of the card, and read it",
            )  # fmt: skip
        fresh = await self._step(request, seen.choice)
        if fresh.terms is None or seen.terms is None or not fresh.means_the_same(seen):
            raise changed()
        self._check(request, body, visitor)
        # Of the cards that were listed, those that still wait. One that came since was not read by anybody.
        settles = tuple(call_id for call_id in seen.terms.settles if call_id in fresh.terms.settles)
        await cards.answer(request, request.allow_with(replace(fresh.terms, settles=settles)), visitor.by)
        self._shown.pop((visitor.name, body.step), None)  # It may have been crowded out since.

    def _check(self, request: ApprovalRequest, body: GrantBody, visitor: Visitor) -> None:
        """Refuse a yes that our own windows would not send: they would not have taken it for meant."""
        if not self._cards.of(request.call_id).is_own:
            self._view.times.check_fetched(visitor.name, request.digest)
        self._view.times.check_read(request.digest, body.step)
        if visitor.surface == "page":
            # Whatever the effect: the sentence has the beginning of a long text, and only the card has all of it.
            check_opened(self._cards.folded(request.call_id, request.digest), body.opened)
        if not SecondAct(responses.GRANT_WORD).is_done(body.word):
            raise Refusal(
                400, "not_confirmed", "one press does not grant anything", param="word",
                hint=f"type the word {responses.GRANT_WORD} as well",
            )  # fmt: skip

    async def _step(self, request: ApprovalRequest, choice: GrantChoice) -> SeenStep:
        cards = self._cards.of(request.call_id)
        folder, waiting = cards.beside(request)
        seen = await step_of(request, choice, folder, waiting, self._journal, self._view.feed.last_id)
        if not cards.is_own and seen.step.scope == "session":
            return replace(seen, step=replace(seen.step, ends=ENDS_THERE))
        return seen

    async def found(self, request: Request, visitor: Visitor) -> responses.GrantsFound:
        """What stands now."""
        entries = [
            responses.GrantEntry(
                id=one.grant.id,
                sentence=f"{one.what}; {one.how_long}",
                used=f"{one.whose[:1].upper()}{one.whose[1:]}, {one.left}",
                over=one.over or "",
            )
            for one in await listed_grants(self._journal, self._view.session.id)
        ]
        policy = self._view.session.policy
        return responses.GrantsFound(grants=tuple(entries), files=() if policy is None else _files(policy))

    async def explain(self, body: ExplainBody, visitor: Visitor) -> responses.ExplainedCall:
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
        return responses.ExplainedCall(event=self._view.feed.last_id, saying=told.saying, why=told.sentence)

    async def revoke(self, body: RevokeBody, visitor: Visitor) -> None:
        """Take a grant back. What it has started goes on; nothing more starts by it."""
        if not await revoke(self._journal, body.id, visitor.by):
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
