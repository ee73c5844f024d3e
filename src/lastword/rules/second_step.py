"""The second step of a card: what a person chooses, turned into terms, and all that they are told before the yes.

A choice is the number of one of the bounds that were offered, never a bound: a surface, or whoever pretends to be one,
has no words for a grant that was not offered. What can be offered at all is in granting.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.card import one_line, responses, summary_of
from lastword.consent import SCOPE_WORDS, ApprovalRequest, GrantTerms, Scope
from lastword.display import visible
from lastword.errors import LastWordError
from lastword.journal import Journal
from lastword.rules.granting import (
    GrantOffer,
    covered_before,
    granted_words,
    offer_for,
    settled_by,
    summary,
    terms_with,
    why_no_offer,
)
from lastword.rules.grants import bounds_of

# As many as a day of such calls may have. Whoever wants more says so.
FIRST_CALLS = 10
MAX_CALLS = 1_000_000
NOT_COUNTED = "This call is allowed now, and is not counted."
BEGINS = "It begins with calls that are exactly like this one. Loosen what you want to, one by one."
ONLY_LIKE_THIS = "It is for calls that are exactly like this one."
ANOTHERS = "This card is another person's, and a grant serves only whoever gives it"
FIRST_SCOPE: Scope = "session"


class GrantChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has chosen so far. Without a choice everything is exactly as on the card."""

    loosened: dict[str, int] = {}
    """For arguments that are not exact any more: which of the offered bounds, from 1 on."""
    scope: Scope = FIRST_SCOPE
    calls: int | None = FIRST_CALLS
    sums: dict[str, str] = {}


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


def why_no_step(request: ApprovalRequest, me: str) -> str:
    """Why a card has no second step for this person, in a sentence for every surface; empty where it has one."""
    return _sentence(_why_not_theirs(request, me) or why_no_offer(request) or "")


def _why_not_theirs(request: ApprovalRequest, me: str) -> str:
    return ANOTHERS if request.principal and request.principal != me else ""


async def step_of(
    request: ApprovalRequest,
    choice: GrantChoice,
    folder: Path,
    waiting: Sequence[ApprovalRequest],
    journal: Journal,
    event: str = "",
) -> SeenStep:
    """What this choice would grant from a card. `folder`: of the session that asks; an empty one when it is unknown."""
    offer = _why_not_theirs(request, journal.people.me) or offer_for(request, folder)
    if isinstance(offer, str):
        return SeenStep(step=responses.GrantStep(event=event, why_none=_sentence(offer)))
    if choice.scope == FIRST_SCOPE and choice.scope not in offer.scopes:
        choice = msgspec.structs.replace(choice, scope=offer.scopes[0])  # What no card offers is nobody's choice.
    bounds = _bounds(offer, choice)
    sums = {name: most.strip() for name, most in choice.sums.items() if most.strip()}
    if unknown := sums.keys() - set(offer.summable):
        raise LastWordError(f"{one_line(min(unknown), 60)} is no number that can be summed")
    step = responses.GrantStep(
        event=event,
        begins=BEGINS if offer.looser else ONLY_LIKE_THIS,
        bounds=tuple(_rows(offer, choice)),
        scopes=tuple((scope, SCOPE_WORDS[scope]) for scope in offer.scopes),
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
        return SeenStep(step=msgspec.structs.replace(step, problem=f"{fact[:1].upper()}{fact[1:]}."), choice=choice)
    settled = settled_by(terms, request, waiting, folder)
    terms = terms_with(terms, settled)
    sentence = summary(request, terms)
    facts = [request.digest, terms.where, terms.scope, terms.until, terms.calls, terms.sums, [*terms.settles], sentence]
    shown = msgspec.structs.replace(
        step,
        digest=values.digest(values.canonical(facts)),
        sentence=sentence,
        granted=granted_words(request.tool, terms),
        settling=_settling(len(settled)),
        settles=tuple(responses.GrantSettled(id=o.call_id, summary=summary_of(o.shown_arguments)) for o in settled),
        counting="" if choice.calls is None and not sums else NOT_COUNTED,
        past=(await covered_before(journal, request, terms, folder, {o.call_id for o in waiting})).words,
    )
    return SeenStep(step=shown, terms=terms, choice=choice, answers=request.digest)


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
