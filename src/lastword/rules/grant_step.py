"""The second step of a card, for every surface: what a person chooses, and all that they are told before the yes.

A choice is the number of one of the bounds that were offered, never a bound: a surface, or whoever pretends to be one,
has no words for a grant that was not offered. What can be offered at all is in terms.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from lastword import values
from lastword.card import one_line, responses, summary_of, visible
from lastword.consent import Answerer, ApprovalRequest, GrantTerms, Scope
from lastword.editor import folder_of
from lastword.errors import LastWordError
from lastword.rules.terms import GrantOffer, bounds_of, limits_words, terms_words, why_no_offer

if TYPE_CHECKING:
    from lastword.editor import ScriptEditorProvider
    from lastword.journal import Journal
    from lastword.tools import ToolRegistry

# A look back is for the eye. More cards than these are in `lastword calls`.
MAX_PAST = 500
MAX_CALLS = 1_000_000
NOT_COUNTED = "This call is allowed now, and is not counted."
BEGINS = "It begins with calls that are exactly like this one. Loosen what you want to, one by one."
ONLY_LIKE_THIS = "It is for calls that are exactly like this one."
ANOTHERS = "This card is another person's, and a grant serves only whoever gives it"
FIRST_SCOPE: Scope = "session"


class GrantChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has chosen so far. Without a choice everything is exactly as on the card."""

    FIRST_CALLS: ClassVar = 10
    """As many as a day of such calls may have. Whoever wants more says so."""

    loosened: dict[str, int] = {}
    """For arguments that are not exact any more: which of the offered bounds, from 1 on."""
    scope: Scope = FIRST_SCOPE
    calls: int | None = FIRST_CALLS
    sums: dict[str, str] = {}


class GrantPast(msgspec.Struct, frozen=True):
    """What a grant would have covered before."""

    cards: int = 0
    """So many cards of this tool were looked at: those that a person answered."""
    covered: int = 0
    denied: int = 0
    """So many of those it covers were denied, or changed, by a person."""

    @property
    def words(self) -> str:
        if not self.cards:
            return "You have not answered a card of this tool before."
        if self.cards == 1:
            said = f"It would {'' if self.covered else 'not '}have answered the one card of this tool that you answered"
            return f"{said}, and which you denied or changed." if self.denied else f"{said}."
        said = f"Of the last {self.cards} cards of this tool that you answered it would have answered {self.covered}"
        return f"{said}; {self.denied} of them you denied or changed." if self.denied else f"{said}."

    @classmethod
    async def of(
        cls, journal: Journal, request: ApprovalRequest, terms: GrantTerms, folder: Path, waiting: Collection[str] = ()
    ) -> GrantPast:
        """Of the last cards of this tool, how many a grant would have answered, and what became of those.

        What waits now is no earlier card: whoever lists it beside the grant says which calls it is of.
        """
        where = bounds_of(terms.where)
        cards = covered = denied = 0
        for record in reversed(await journal.store.read(kind="asked", last=MAX_PAST)):
            facts = journal.data_of(record)
            if not facts or facts["tool"] != request.tool or record.subject in (request.call_id, *waiting):
                continue
            if facts.get("principal", "") != request.principal:
                continue  # What others were asked is their own business, and no grant of this person's would answer it.
            answer = (await journal.life(record.subject)).answered
            if answer is None or Answerer.read(answer["approver"]).kind != "person":
                continue  # A rule or a grant stood for them, or nobody was there: no card that anybody saw.
            cards += 1
            if where.covers(facts["arguments"], folder):
                covered += 1
                is_yes = answer.get("primary_confirmed") and answer.get("arguments") is None
                denied += not is_yes
        return cls(cards, covered, denied)


class SeenStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it was shown, and the terms that a yes to it means."""

    step: responses.GrantStep
    terms: GrantTerms | None = None
    choice: GrantChoice = GrantChoice()
    answers: str = ""
    """The digest of the card that it belongs to."""

    def means_the_same(self, other: SeenStep) -> bool:
        """Whether a yes to either would grant the same from the same card, but for the cards that are settled."""
        # A sentence has the beginning of a long text: two cards may have the same one, and grant different things.
        return self.answers == other.answers and self.step.sentence == other.step.sentence

    @classmethod
    async def of(
        cls,
        request: ApprovalRequest,
        choice: GrantChoice,
        folder: Path,
        waiting: Sequence[ApprovalRequest],
        journal: Journal,
    ) -> SeenStep:
        """What this choice would grant from a card. `folder`: of the session that asks; an empty one when nobody knows
        it."""
        offer = _why_not_theirs(request, journal.people.me) or GrantOffer.of(request, folder)
        if isinstance(offer, str):
            return cls(step=responses.GrantStep(why_none=_sentence(offer)))
        if choice.scope == FIRST_SCOPE and choice.scope not in offer.scopes:
            choice = msgspec.structs.replace(choice, scope=offer.scopes[0])  # What no card offers is nobody's choice.
        bounds = _bounds(offer, choice)
        sums = {name: most.strip() for name, most in choice.sums.items() if most.strip()}
        if unknown := sums.keys() - set(offer.summable):
            raise LastWordError(f"{one_line(min(unknown), 60)} is no number that can be summed")
        step = responses.GrantStep(
            begins=BEGINS if offer.looser else ONLY_LIKE_THIS,
            bounds=tuple(_rows(offer, choice)),
            scopes=tuple((scope, GrantTerms.SCOPE_WORDS[scope]) for scope in offer.scopes),
            scope=choice.scope,
            calls=choice.calls,
            sums=tuple(
                responses.GrantSum(name=name, shown_name=one_line(name, 60), most=sums.get(name, ""))
                for name in offer.summable
            ),
            needs_limit=offer.needs_limit,
        )
        try:
            if choice.calls is not None and choice.calls > MAX_CALLS:
                raise LastWordError(f"it ends after at most {MAX_CALLS:,} calls", hint="or leave the number out")
            terms = offer.terms(bounds, choice.scope, calls=choice.calls, sums=sums)
        except LastWordError as problem:
            fact = problem.fact.rstrip(".")  # Its names are marked already.
            return cls(step=msgspec.structs.replace(step, problem=f"{fact[:1].upper()}{fact[1:]}."), choice=choice)
        settled = GrantOffer.settled_by(terms, request, waiting, folder)
        terms = terms_with(terms, settled)
        sentence = summary(request, terms)
        facts = [
            request.digest,
            terms.where,
            terms.scope,
            terms.until,
            terms.calls,
            terms.sums,
            [*terms.settles],
            sentence,
        ]
        shown = msgspec.structs.replace(
            step,
            digest=values.digest(values.canonical(facts)),
            sentence=sentence,
            granted=SeenStep.granted_words(request.tool, terms),
            settling=_settling(len(settled)),
            settles=tuple(responses.GrantSettled(id=o.call_id, summary=summary_of(o.shown_arguments)) for o in settled),
            counting="" if choice.calls is None and not sums else NOT_COUNTED,
            past=(await GrantPast.of(journal, request, terms, folder, {o.call_id for o in waiting})).words,
        )
        return cls(step=shown, terms=terms, choice=choice, answers=request.digest)

    @staticmethod
    def why_none(request: ApprovalRequest, me: str) -> str:
        """Why a card has no second step for this person, in a sentence for every surface; empty where it has one."""
        return _sentence(_why_not_theirs(request, me) or why_no_offer(request) or "")

    @staticmethod
    def granted_words(tool: str, terms: GrantTerms) -> str:
        """What is said to whoever gave a grant, once it stands."""
        what = f"{terms_words(tool, terms.where)}; {GrantTerms.until_words(terms.scope, terms.until)}"
        count = len(terms.settles)
        others = f" {count} other cards are answered by it." if count > 1 else " Another card is answered by it."
        return f"Allowed, and not asked again: {what}.{others if count else ''}"


def _why_not_theirs(request: ApprovalRequest, me: str) -> str:
    return ANOTHERS if request.principal and request.principal != me else ""


def summary(request: ApprovalRequest, terms: GrantTerms) -> str:
    """All that a person would agree to, in one sentence."""
    until = GrantTerms.until_words(terms.scope, terms.until)
    limits = limits_words(terms.calls, terms.sums)
    ends = f"ends after {limits}, or when the tool changes" if limits else "ends when the tool changes"
    return f"Allow, and don't ask again for: {terms_words(request.tool, terms.where)}; {until}; {ends}."


def terms_with(terms: GrantTerms, listed: Iterable[ApprovalRequest]) -> GrantTerms:
    """The same terms, which also answer these cards: those that the person was shown."""
    return msgspec.structs.replace(terms, settles=tuple(other.call_id for other in listed))


def folder_beside(request: ApprovalRequest, registry: ToolRegistry, editor: ScriptEditorProvider | None) -> Path:
    """The folder that paths and commands of a card are meant from, as the door has it; a relative one when nobody knows
    where they lead from."""
    tool, here = registry.find(request.tool), folder_of(editor) or Path.cwd()
    return here if tool is None else tool.folder_from(lambda: here)


def _sentence(why: str) -> str:
    return f"{visible(why).rstrip('.')}." if why else ""


def _settling(count: int) -> str:
    if count == 0:
        return ""
    if count == 1:
        return "Another card that waits now is answered by it as well:"
    return f"{count} other cards that wait now are answered by it as well:"


def _bounds(offer: GrantOffer, choice: GrantChoice) -> dict[str, dict[str, Any]]:
    """The bounds that were chosen, of those that were offered."""
    found = dict(offer.bounds)
    for name, number in choice.loosened.items():
        offered = offer.looser.get(name, ())
        if name not in found or not 0 <= number <= len(offered):
            raise LastWordError(
                f"{one_line(name, 60)}: this card does not offer that", hint="choose one of the bounds that it shows"
            )
        if number:
            found[name] = offered[number - 1]
    return found


def _rows(offer: GrantOffer, choice: GrantChoice) -> list[responses.GrantBound]:
    return [
        responses.GrantBound(
            name=name,
            shown_name=one_line(name, 60),
            choices=tuple(_words(bound) for bound in (exact, *offer.looser.get(name, ()))),
            chosen=choice.loosened.get(name, 0),
        )
        for name, exact in offer.bounds.items()
    ]


def _words(bound: dict[str, Any]) -> str:
    """A bound for a list of choices: what it is, and that it is nothing else where it is exact."""
    said = bounds_of({"it": bound}).bounds["it"].words()
    return f"exactly {said}" if bound.get("is", "") != "" else said
