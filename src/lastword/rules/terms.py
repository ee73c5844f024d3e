"""What can be granted from a card, by which bounds, and for how long. Pure: a card and terms in, words or terms out.

A surface that shows a card (an `ApprovalRequest`) does this:

    offer = GrantOffer.of(request, folder)         # a GrantOffer, or words why there is none: show them, offer nothing
    offer.bounds                                # exactly this call: {"to": {"is": "Ada"}, "amount": {"is": 12.5}}
    offer.looser["amount"]                      # what a person may choose instead: ({"min": 0, "max": 12.5},)
    offer.scopes                                # ("run", "session", "until"), with words in SCOPE_WORDS
    offer.needs_limit                           # whether it must say after how many calls or which sum it ends
    terms = offer.terms(bounds, scope, calls=10, sums={"amount": "100"})     # a LastWordError says what cannot be
    session.would_settle(request.call_id, terms)                             # the other cards that it would answer
    session.answer(request.call_id, request.allow_with(terms), by)           # the yes and the grant, in one commit

A card of another program is answered with `Grants(journal).answer_elsewhere(facts, request.allow_with(terms), by)`.
The door looks at everything once more; a surface cannot give more than this. One key never grants: the second step is a
step. What surfaces show of it is in grant_step.py, what was given in grants.py.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from lastword import values
from lastword.consent import Answerer, ApprovalRequest, GrantTerms, Scope, UserAction
from lastword.errors import LastWordError, NotJSON
from lastword.rules.bounds import Bound, command_like, read_bound
from lastword.rules.rule import NO_KEY, ONLY_EXACT, PolicyRule, Where
from lastword.rules.value import EXACT, amount_of, amount_words, shown_name

if TYPE_CHECKING:
    from lastword.tools import Manifest

# So many digits may a sum have, before and after the point. More of them nobody reads, and some nobody could write out.
MAX_DIGITS = 30
# So many levels may a value have that is granted exactly. Nobody reads more, and from 250 on none can be compared.
MAX_LEVELS = 64
# So many grants are kept in the form in which calls are looked at. More of them stand nowhere.
MAX_KEPT = 200


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

    @classmethod
    def of(cls, request: ApprovalRequest, folder: Path) -> GrantOffer | str:
        """What can be granted from this card, or why nothing can, in words for the person."""
        if why := why_no_offer(request):
            return why
        manifest, arguments = request.manifest, request.arguments
        bounds: dict[str, dict[str, Any]] = {name: {"is": value} for name, value in arguments.items()}
        bounds |= {p.name: {"absent": True} for p in manifest.parameters if p.name not in arguments}
        looser: dict[str, tuple[dict[str, Any], ...]] = {}
        if manifest.auto_approve != "exact":
            looser = {name: tuple(_looser(manifest, name, value, folder)) for name, value in arguments.items()}
        return cls(
            manifest=manifest,
            bounds=bounds,
            looser={name: choices for name, choices in looser.items() if choices},
            scopes=_scopes(request),
            summable=tuple(n for n, v in arguments.items() if type(v) in (int, float) and v >= 0),
        )

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
            raise LastWordError(f"it cannot be granted {GrantTerms.SCOPE_WORDS.get(scope, str(scope))} from this card")
        if scope == "until" and until is None:
            until = tonight(datetime.datetime.now())
        where = self.bounds | dict(bounds or {})
        terms = GrantTerms(where=where, scope=scope, until=until, calls=calls, sums=dict(sums or {}))
        if why := why_not_these(self.manifest, terms):
            raise LastWordError(why)
        return terms

    @staticmethod
    def settled_by(
        terms: GrantTerms, request: ApprovalRequest, waiting: Iterable[ApprovalRequest], folder: Path
    ) -> list[ApprovalRequest]:
        """The other waiting cards of its scope that a grant would answer, as far as its limits go."""
        if request.carried_out_by:
            return []  # Each waits in a program of its own, which nobody here can tell.
        where = bounds_of(terms.where)
        run = request.call_id.rpartition(".")[0]
        most = GrantTerms.MAX_SETTLED if terms.calls is None else min(GrantTerms.MAX_SETTLED, terms.calls)
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


def why_no_offer(request: ApprovalRequest) -> str | None:
    """Why nothing can be granted from this card, in words for the person; None when something can."""
    if why := why_none(request.manifest):
        keyless = PolicyRule.why_keyless(request.carried_out_by)
        return f"{keyless}, so it is asked about each time" if keyless else why
    if request.rule_line and not request.missing:
        # No key is missing, and somebody is asked all the same: that is a rule's word, against which no grant is heard.
        return "What a rule wants asked is asked about each time"
    return None


def _looser(manifest: Manifest, name: str, value: Any, folder: Path) -> Iterable[dict[str, Any]]:
    if type(value) in (int, float) and value >= 0:
        yield {"min": 0, "max": value}
    elif isinstance(value, str):
        if manifest.is_path(name) and (inside := _folder_around(value, folder)) is not None:
            yield {"under": inside}
        if name in manifest.COMMAND_NAMES and (here := _really(folder)) is not None:
            yield from command_like(value, here)


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


def _scopes(request: ApprovalRequest) -> tuple[Scope, ...]:
    """How long a grant from this card may hold. Nobody here learns when the session of another program ends."""
    if request.carried_out_by:
        return ("until",)  # Its folder is one of the arguments.
    found: tuple[Scope, ...] = ("run", "session") if "." in request.call_id else ("session",)
    return (*found, "until") if meant_from_folder(request.manifest, request.arguments) is None else found


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


def _why_not_so_long(request: ApprovalRequest, scope: Scope) -> str:
    """Why a grant from this card may not hold as long as that."""
    if request.carried_out_by:
        return f"{request.carried_out_by} does not say when it ends"
    if scope == "run":
        return "there is no run"
    name = meant_from_folder(request.manifest, request.arguments) or ""
    what = "command" if name in request.manifest.COMMAND_NAMES else "file"
    return f"{shown_name(name)} is another {what} in a session of another folder"


def tonight(now: datetime.datetime) -> float:
    """The end of this day, where the person is: also of one whose night has an hour more or less."""
    return datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time()).timestamp()


def bounds_of(where: Mapping[str, Any]) -> Where:
    """The bounds of a grant. A LastWordError says what is wrong with them."""
    if not isinstance(where, Mapping):
        raise LastWordError("a grant has a bound for every argument")
    try:
        return _compiled(values.encode(values.plain(dict(where))))
    except NotJSON as problem:
        raise LastWordError(f"a bound holds what no argument can be: {problem.fact}") from None


@lru_cache(maxsize=MAX_KEPT)
def _compiled(where: bytes) -> Where:
    """The same bounds are looked at three times for every call, and compiling them takes the longest."""
    found = {}
    for name, written in values.decode(where).items():

        def wrong(fact: str, hint: str | None, name: str = name) -> NoReturn:
            raise LastWordError(f"{shown_name(name)}: {fact}", hint=hint)

        found[name] = read_bound(written, wrong, is_fixed=True)
    return Where(found, is_whole=True)


def why_none(manifest: Manifest) -> str | None:
    """Why no grant at all can be given for a tool, in words for its card; None when one can."""
    if manifest.auto_approve is False:
        return f"{NO_KEY[:1].upper()}{NO_KEY[1:]}"
    if manifest.secrets:
        return "It takes a secret, which is kept nowhere, so it is asked about each time"
    return None


def why_not_these(manifest: Manifest, terms: GrantTerms, arguments: Mapping[str, Any] | None = None) -> str | None:
    """Why these terms cannot be granted, or None. `arguments` are of the call on whose card they stand."""
    if why := why_none(manifest):
        return why
    try:
        where = bounds_of(terms.where)
    except LastWordError as problem:
        return problem.fact
    sums = {name: _sum_of(most) for name, most in terms.sums.items()}
    for name, bound in where.bounds.items():
        if _is_deep(bound.terms):
            return f"{shown_name(name)} is nested more than {MAX_LEVELS} levels deep, where nobody sees what it says"
        if not bound.is_closed:
            return f"{shown_name(name)} is left open: a text or number that anybody may have written is asked about"
        if bound.names_folder and not manifest.is_path(name):
            # Words with a slash in them lie inside of a folder, too, whatever else they say.
            return f"{shown_name(name)} is not said to be a path, and a folder bounds nothing else"
    for parameter in manifest.parameters:
        if parameter.name not in where.bounds:
            return f"It says nothing of {parameter.name}"
    if manifest.auto_approve == "exact" and not where.is_exact:
        return f"{ONLY_EXACT[:1].upper()}{ONLY_EXACT[1:]}"
    for name, most in sums.items():
        summed = where.bounds.get(name)
        if summed is None or not summed.is_amount:
            return f"{shown_name(name)} cannot be summed: it is no number of at least 0"
        if not most.is_finite() or most.is_signed():
            return f"The sum of {shown_name(name)} is a number of at least 0"
        if max(most.adjusted(), 0) - min(int(most.as_tuple().exponent), 0) >= MAX_DIGITS:
            return f"The sum of {shown_name(name)} has more than {MAX_DIGITS} digits"
        if (least := _least(summed)) > most:
            fewest = f"each call takes {amount_words(least)} of {shown_name(name)} or more"
            return f"It would never answer: {fewest}, and in all it may be {amount_words(most)}"
    if manifest.counts_as_irreversible and terms.calls is None and not sums:
        return "What cannot be undone, or does not say so, is granted with a limit"
    if arguments is not None and (moved := [name for name, b in where.bounds.items() if b.leads_elsewhere]):
        return f"The folder of {shown_name(moved[0])} leads elsewhere; a grant names it with links followed"
    if arguments is not None and where.misses(dict(arguments), Path("/")) and not where.is_volatile:
        return "It does not cover the call it stands on"
    return None


def _is_deep(terms: Mapping[str, Any]) -> bool:
    """Whether a value that a bound names has too many levels to be granted."""
    try:
        values.plain(dict(terms), max_depth=MAX_LEVELS + 1)  # The bound itself is a level.
    except NotJSON:
        return True
    return False


def _least(bound: Bound) -> Decimal:
    """The least that an argument can come to."""
    known = [bound.terms["is"]] if "is" in bound.terms else bound.terms.get("in", [bound.terms.get("min", 0)])
    return min(amount_of(value) for value in known)


def _sum_of(written: str) -> Decimal:
    try:
        return Decimal(written)
    except InvalidOperation:
        return Decimal("NaN")


def meant_from_folder(manifest: Manifest, given: Mapping[str, Any]) -> str | None:
    """Which argument means something else in a session of another folder: a path that leads on from there, or a command
    line, which runs what is there. Where the folder is an argument, too, a command is bounded by it."""
    for parameter in manifest.parameters:
        value = given.get(parameter.name)
        if parameter.names_path and _has_text(value, lambda text: not text.startswith("/")):
            return parameter.name
    if given.get("cwd") is None or not manifest.is_path("cwd"):
        # Also one that a tool takes without having said so.
        return next((name for name in given if name in manifest.COMMAND_NAMES and _has_text(given[name], bool)), None)
    return None


def _has_text(value: Any, is_such: Callable[[str], bool]) -> bool:
    """Whether a text anywhere in a value is such a one."""
    if isinstance(value, str):
        return is_such(value)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_has_text(part, is_such) for part in inside)


def terms_words(tool: str, where: Mapping[str, Any]) -> str:
    """What a grant is for, in a line."""
    return bounds_of(where).words_of(tool)


def limits_words(calls: int | None, sums: Mapping[str, str]) -> str:
    """After what it ends, in words; empty when there is no limit."""
    said = [] if calls is None else [f"{calls} call{'' if calls == 1 else 's'}"]
    said += [f"{amount_words(Decimal(most))} of {shown_name(name)} in all" for name, most in sums.items()]
    return f"{' or '.join(said)}, whichever comes first" if len(said) > 1 else "".join(said)
