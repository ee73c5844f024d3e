"""Offering a grant on a card: the second step, for every surface.

A surface that shows a card (an `ApprovalRequest`) does this:

    offer = offer_for(request, folder)          # a GrantOffer, or words why there is none: show them, offer nothing
    offer.bounds                                # exactly this call: {"to": {"is": "Ada"}, "amount": {"is": 12.5}}
    offer.looser["amount"]                      # what a person may choose instead: ({"min": 0, "max": 12.5},)
    offer.scopes                                # ("run", "session", "until"), with words in SCOPE_WORDS
    offer.needs_limit                           # whether it must say after how many calls or which sum it ends
    terms = offer.terms(bounds, scope, calls=10, sums={"amount": "100"})     # a LastWordError says what cannot be
    summary(request, terms)                     # all of it in one sentence, to be read before the last key
    settled_by(terms, request, waiting)         # the other waiting cards that it would answer: list them, and
    terms = terms_with(terms, settled)          # those that were listed, and no others, are settled with it
    await covered_before(journal, request, terms)    # of the last cards of this tool, how many it would have answered
    session.answer(request.call_id, request.allow_with(terms), by)           # the yes and the grant, in one commit

A card of another program is answered with `answer_elsewhere(journal, facts, request.allow_with(terms), by)`. The door
looks at everything once more; a surface cannot give more than this. One key never grants: the second step is a step.
Listing and taking back are in grants.py: `seen_grants`, `revoke`.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from lastword.consent import (
    MAX_SETTLED,
    SCOPE_WORDS,
    Answerer,
    ApprovalRequest,
    GrantTerms,
    Scope,
    UserAction,
    named,
    read_answerer,
    sign,
    until_words,
)
from lastword.editor import ScriptEditorProvider, folder_of
from lastword.errors import LastWordError, SessionError
from lastword.journal import Journal, data_of
from lastword.rules.command import literal_pattern, simple_words
from lastword.rules.counting import EXACT, amount_of
from lastword.rules.deciding import why_keyless
from lastword.rules.grants import (
    Grant,
    bounds_of,
    granted_entry,
    is_path,
    limits_words,
    meant_from_folder,
    terms_words,
    why_none,
    why_not_these,
)
from lastword.rules.policy import folder_for
from lastword.rules.wording import shown_name
from lastword.tools import Manifest, ToolRegistry

# A look back is for the eye. More cards than these are in `lastword calls`.
MAX_PAST = 500


class GrantOffer(msgspec.Struct, frozen=True, kw_only=True):
    """What can be granted from one card."""

    manifest: Manifest
    bounds: dict[str, dict[str, Any]]
    """Exactly this call."""
    looser: dict[str, tuple[dict[str, Any], ...]]
    """What may be chosen instead, by argument. Nothing for a text: it is asked about unless it is the very same."""
    scopes: tuple[Scope, ...]
    summable: tuple[str, ...]
    """The arguments whose sum may be limited."""

    @property
    def needs_limit(self) -> bool:
        return self.manifest.counts_as_irreversible

    def terms(
        self,
        bounds: Mapping[str, dict[str, Any]] | None = None,
        scope: Scope = "session",
        *,
        calls: int | None = None,
        sums: Mapping[str, str] | None = None,
        until: float | None = None,
    ) -> GrantTerms:
        """The terms that a person chose. A LastWordError says what cannot be granted."""
        if scope not in self.scopes:
            raise LastWordError(f"it cannot be granted {SCOPE_WORDS.get(scope, str(scope))} from this card")
        if scope == "until" and until is None:
            until = tonight(datetime.datetime.now())
        where = self.bounds | dict(bounds or {})
        terms = GrantTerms(where=where, scope=scope, until=until, calls=calls, sums=dict(sums or {}))
        if why := why_not_these(self.manifest, terms):
            raise LastWordError(why)
        return terms


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


def why_no_offer(request: ApprovalRequest) -> str | None:
    """Why nothing can be granted from this card, in words for the person; None when something can."""
    if why := why_none(request.manifest):
        keyless = why_keyless(request.carried_out_by)
        return f"{keyless}, so it is asked about each time" if keyless else why
    if request.rule_line and not request.missing:
        # No key is missing, and somebody is asked all the same: that is a rule's word, against which no grant is heard.
        return "What a rule wants asked is asked about each time"
    return None


def offer_for(request: ApprovalRequest, folder: Path) -> GrantOffer | str:
    """What can be granted from this card, or why nothing can, in words for the person."""
    if why := why_no_offer(request):
        return why
    manifest, arguments = request.manifest, request.arguments
    bounds: dict[str, dict[str, Any]] = {name: {"is": value} for name, value in arguments.items()}
    bounds |= {p.name: {"absent": True} for p in manifest.parameters if p.name not in arguments}
    looser: dict[str, tuple[dict[str, Any], ...]] = {}
    if manifest.auto_approve != "exact":
        looser = {name: tuple(_looser(manifest, name, value, folder)) for name, value in arguments.items()}
    return GrantOffer(
        manifest=manifest,
        bounds=bounds,
        looser={name: choices for name, choices in looser.items() if choices},
        scopes=_scopes(request),
        summable=tuple(n for n, v in arguments.items() if type(v) in (int, float) and v >= 0),
    )


def folder_elsewhere(facts: Mapping[str, Any]) -> Path:
    """The folder that paths and commands of another program's card are meant from, as it said; a relative one when
    nobody knows."""
    return Path(facts.get("folder", ""))


def folder_beside(request: ApprovalRequest, registry: ToolRegistry, editor: ScriptEditorProvider | None) -> Path:
    """The folder that paths and commands of a card are meant from, as the door has it; a relative one when nobody knows
    where they lead from."""
    tool, here = registry.find(request.tool), folder_of(editor) or Path.cwd()
    return here if tool is None else folder_for(tool, lambda: here)


def _scopes(request: ApprovalRequest) -> tuple[Scope, ...]:
    """How long a grant from this card may hold. Nobody here learns when the session of another program ends."""
    if request.carried_out_by:
        return ("until",)  # Its folder is one of the arguments.
    found: tuple[Scope, ...] = ("run", "session") if "." in request.call_id else ("session",)
    return (*found, "until") if meant_from_folder(request.manifest, request.arguments) is None else found


def _why_not_so_long(request: ApprovalRequest, scope: Scope) -> str:
    """Why a grant from this card may not hold as long as that."""
    if request.carried_out_by:
        return f"{request.carried_out_by} does not say when it ends"
    if scope == "run":
        return "there is no run"
    name = meant_from_folder(request.manifest, request.arguments) or ""
    what = "command" if name in Manifest.COMMAND_NAMES else "file"
    return f"{shown_name(name)} is another {what} in a session of another folder"


def _looser(manifest: Manifest, name: str, value: Any, folder: Path) -> Iterable[dict[str, Any]]:
    if type(value) in (int, float) and value >= 0:
        yield {"min": 0, "max": value}
    elif isinstance(value, str):
        if is_path(manifest, name) and (inside := _folder_around(value, folder)) is not None:
            yield {"under": inside}
        words = simple_words(value) if name in Manifest.COMMAND_NAMES else None
        if words is not None and len(words) > 1 and (here := _really(folder)) is not None:
            args = [literal_pattern(word) for word in words[1:]]
            yield {"command": {"program": words[0], "args": args, "cwd": here}}


def _folder_around(path: str, folder: Path) -> str | None:
    """The folder that a path lies in, where it really is: `notes/../../x` must not read as if it were in notes. Of
    where the call works, that folder itself."""
    around = folder if path == str(folder) else (folder / path).parent
    return None if "\0" in path or path.startswith("~") else _really(around)


def _really(folder: Path) -> str | None:
    """Where a folder really is, which is how a grant names it; None when nobody knows, and of the one that everything
    is in."""
    if not folder.is_absolute():
        return None
    try:
        real = os.path.realpath(folder)
    except (OSError, ValueError):
        return None
    return None if real == "/" else real


def summary(request: ApprovalRequest, terms: GrantTerms) -> str:
    """All that a person would agree to, in one sentence."""
    until = until_words(terms.scope, terms.until)
    limits = limits_words(terms.calls, terms.sums)
    ends = f"ends after {limits}, or when the tool changes" if limits else "ends when the tool changes"
    return f"Allow, and don't ask again for: {terms_words(request.tool, terms.where)}; {until}; {ends}."


def granted_words(tool: str, terms: GrantTerms) -> str:
    """What is said to whoever gave a grant, once it stands."""
    what = f"{terms_words(tool, terms.where)}; {until_words(terms.scope, terms.until)}"
    count = len(terms.settles)
    others = f" {count} other cards are answered by it." if count > 1 else " Another card is answered by it."
    return f"Allowed, and not asked again: {what}.{others if count else ''}"


def settled_by(
    terms: GrantTerms, request: ApprovalRequest, waiting: Iterable[ApprovalRequest], folder: Path
) -> list[ApprovalRequest]:
    """The other waiting cards of its scope that a grant would answer, as far as its limits go."""
    if request.carried_out_by:
        return []  # Each waits in a program of its own, which nobody here can tell.
    where = bounds_of(terms.where)
    run = request.call_id.rpartition(".")[0]
    most = MAX_SETTLED if terms.calls is None else min(MAX_SETTLED, terms.calls)
    left = {name: Decimal(total) for name, total in terms.sums.items()}
    found: list[ApprovalRequest] = []
    for other in waiting:
        if (
            len(found) == most
            or other.call_id == request.call_id
            or (other.tool, other.tool_digest) != (request.tool, request.tool_digest)
            or other.session_id != request.session_id
            or (terms.scope == "run" and not other.call_id.startswith(f"{run}."))
            # What a rule wants asked stays asked, and a card that came back wants an answer of its own.
            or why_no_offer(other) is not None
            or other.problem is not None
            or not where.covers(other.arguments, folder)
        ):
            continue
        after = {name: EXACT.subtract(total, amount_of(other.arguments.get(name))) for name, total in left.items()}
        if all(total >= 0 for total in after.values()):
            left = after
            found.append(other)
    return found


def terms_with(terms: GrantTerms, listed: Iterable[ApprovalRequest]) -> GrantTerms:
    """The same terms, which also answer these cards: those that the person was shown."""
    return msgspec.structs.replace(terms, settles=tuple(other.call_id for other in listed))


async def covered_before(
    journal: Journal, request: ApprovalRequest, terms: GrantTerms, folder: Path, waiting: Collection[str] = ()
) -> GrantPast:
    """Of the last cards of this tool, how many a grant would have answered, and what became of those.

    What waits now is no earlier card: whoever lists it beside the grant says which calls it is of.
    """
    where = bounds_of(terms.where)
    cards = covered = denied = 0
    for record in reversed(await journal.store.read(kind="asked", last=MAX_PAST)):
        facts = data_of(record)
        if not facts or facts["tool"] != request.tool or record.subject in (request.call_id, *waiting):
            continue
        if facts.get("principal", "") != request.principal:
            continue  # What others were asked is their own business, and no grant of this person's would answer it.
        answer = (await journal.life(record.subject)).answered
        if answer is None or read_answerer(answer["approver"]).kind != "person":
            continue  # A rule or a grant stood for them, or nobody was there: no card that anybody saw.
        cards += 1
        if where.covers(facts["arguments"], folder):
            covered += 1
            is_yes = answer.get("primary_confirmed") and answer.get("arguments") is None
            denied += not is_yes
    return GrantPast(cards, covered, denied)


def why_not_given(
    manifest: Manifest, request: ApprovalRequest, terms: GrantTerms, by: Answerer, action: UserAction
) -> str | None:
    """Why terms that came with an answer are not granted, or None."""
    if by.kind != "person":
        return "only a person grants"
    if action.answers != request.digest or not action.primary_confirmed:
        return "it belongs to another card"
    if terms.scope not in _scopes(request):
        return _why_not_so_long(request, terms.scope)
    if request.call_id in terms.settles:
        return "it settles its own card"
    return why_not_these(manifest, terms, request.arguments)


def grant_of(
    request: ApprovalRequest, terms: GrantTerms, by: Answerer, process: str, user: str | None, at: float
) -> Grant:
    """The grant that these terms on this card mean."""
    return Grant(
        id=terms.id,
        tool=request.tool,
        tool_digest=request.tool_digest,
        where=terms.where,
        scope=terms.scope,
        session_id=request.session_id,
        run=request.call_id.rpartition(".")[0] if terms.scope == "run" else "",
        process=process,
        user=user,
        until=terms.until,
        calls=terms.calls,
        sums={name: str(Decimal(most)) for name, most in terms.sums.items()},
        by=by,
        call_id=request.call_id,
        settles=terms.settles,
        at=at,
    )


async def answer_elsewhere(journal: Journal, facts: dict[str, Any], action: UserAction, by: Answerer | str) -> bool:
    """Answer a card of another program with a grant. False when it does not wait any more."""
    terms, who = action.grant, sign(named(by), journal.people.me)
    if terms is None:
        return await journal.answer(facts, action, who)
    request = ApprovalRequest.from_facts(facts)
    if why := why_not_given(request.manifest, request, terms, who, action):
        raise SessionError(why, place=request.call_id, hint="allow this call alone")
    grant = grant_of(request, terms, who, facts.get("process", ""), facts.get("user"), journal.clock())
    return await journal.answer(facts, action, who, granted_entry(journal, grant))


def tonight(now: datetime.datetime) -> float:
    """The end of this day, where the person is: also of one whose night has an hour more or less."""
    return datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time()).timestamp()
