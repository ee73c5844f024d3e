"""Grants: what a person allowed from a card for calls like it, until it is used up, over, or taken back.

A grant is a record, written in one commit with the answer it came with. Whether it covers a call is looked at anew each
time, by the same bounds as a rule's, and so is everything that made it possible: the tool's key, the tool itself, the
program and the person. What does not live here: how surfaces offer one (granting.py), and counting (counting.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from lastword import values
from lastword.consent import Answerer, GrantTerms, Scope, holding_words, read_answerer, sign
from lastword.display import visible
from lastword.errors import LastWordError, NotJSON, SessionError
from lastword.journal import Journal, data_of
from lastword.rules.bounds import Bound, read_bound
from lastword.rules.counting import STREAM, Account, amount_of, amount_words, day_words, last_use, use_key
from lastword.rules.deciding import NO_KEY, ONLY_EXACT
from lastword.rules.latest import latest_since
from lastword.rules.policy import NOWHERE
from lastword.rules.rule import Where, is_amount
from lastword.rules.wording import shown_name
from lastword.store import Entry, Record
from lastword.tools import Manifest

GRANTED = "granted"
REVOKED = "revoked"

# A revocation that loses against so many uses in a row is told so; each of them was allowed.
MAX_TRIES = 1_000
# So many digits may a sum have, before and after the point. More of them nobody reads, and some nobody could write out.
MAX_DIGITS = 30
# So many levels may a value have that is granted exactly. Nobody reads more, and from 250 on none can be compared.
MAX_LEVELS = 64
# So many grants are kept in the form in which calls are looked at. More of them stand nowhere.
MAX_KEPT = 200


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A grant as it was written down."""

    id: str
    tool: str
    tool_digest: str
    where: dict[str, dict[str, Any]]
    scope: Scope
    session_id: str
    run: str = ""
    process: str = ""
    """Under which name the program lives in which a grant for a session was given."""
    user: str | None = None
    """The digest of the user of its session."""
    until: float | None = None
    calls: int | None = None
    sums: dict[str, str] = {}
    by: Answerer = Answerer("unknown")
    call_id: str = ""
    """From whose card it was given."""
    settles: tuple[str, ...] = ()
    """The cards that waited then, and which the person was shown beside it."""
    at: float = 0.0
    seq: int = 0
    """The number of its record: what was written since is behind it, whatever the clock said."""

    @property
    def words(self) -> str:
        """How a person knows it."""
        return f"your grant of {day_words(self.at)}"

    @property
    def account(self) -> Account:
        return Account(self.id, self.words, self.calls, {name: Decimal(most) for name, most in self.sums.items()})


class GrantWho(msgspec.Struct, frozen=True):
    """Whose call it is that a grant should cover."""

    session_id: str
    process: str
    user: str | None
    call_id: str
    principal: str = ""
    """The person to whom the session belongs."""


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
        if bound.names_folder and not is_path(manifest, name):
            # Words with a slash in them lie inside of a folder, too, whatever else they say.
            return f"{shown_name(name)} is not said to be a path, and a folder bounds nothing else"
    for parameter in manifest.parameters:
        if parameter.name not in where.bounds:
            return f"It says nothing of {parameter.name}"
    if manifest.auto_approve == "exact" and not where.is_exact:
        return f"{ONLY_EXACT[:1].upper()}{ONLY_EXACT[1:]}"
    for name, most in sums.items():
        summed = where.bounds.get(name)
        if summed is None or not is_amount(summed):
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


def is_path(manifest: Manifest, name: str) -> bool:
    """Whether a tool says that an argument is a path, or a list of them."""
    for parameter in manifest.parameters:
        if parameter.name == name:
            schema = parameter.schema or {}
            items = schema.get("items")
            return "path" in (schema.get("format"), items.get("format") if isinstance(items, dict) else None)
    return False


def meant_from_folder(manifest: Manifest, given: Mapping[str, Any]) -> str | None:
    """Which argument means something else in a session of another folder: a path that leads on from there, or a command
    line, which runs what is there. Where the folder is an argument, too, a command is bounded by it."""
    for parameter in manifest.parameters:
        value = given.get(parameter.name)
        if parameter.names_path and _has_text(value, lambda text: not text.startswith("/")):
            return parameter.name
    if given.get("cwd") is None or not is_path(manifest, "cwd"):
        # Also one that a tool takes without having said so.
        return next((name for name in given if name in Manifest.COMMAND_NAMES and _has_text(given[name], bool)), None)
    return None


def _has_text(value: Any, is_such: Callable[[str], bool]) -> bool:
    """Whether a text anywhere in a value is such a one."""
    if isinstance(value, str):
        return is_such(value)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_has_text(part, is_such) for part in inside)


def granted_entry(journal: Journal, grant: Grant) -> Entry:
    """The record of a grant. It is written once, whoever tries."""
    facts = msgspec.to_builtins(grant)
    del facts["seq"]  # Nobody knows it before it is written.
    return journal.entry(STREAM, GRANTED, grant.id, facts, once=f"granted:{grant.id}")


@lru_cache(maxsize=MAX_KEPT)  # Each is read three times for every call. Whether it still stands is looked up each time.
def grant_in(record: Record) -> Grant | None:
    """The grant that a record holds; None when it is not understood, and so allows nothing."""
    facts = data_of(record)
    try:
        by = read_answerer(facts.get("by"))
        grant = msgspec.convert(facts | {"by": msgspec.to_builtins(by)}, Grant)
        return msgspec.structs.replace(grant, by=by, seq=record.seq)
    except (msgspec.ValidationError, TypeError):
        return None


async def standing_grants(journal: Journal) -> list[Grant]:
    """The grants that nobody has taken back, oldest first; their time may be over. Tampered when one was changed."""
    found = (grant_in(record) for record in await journal.standing(GRANTED, STREAM))
    return [grant for grant in found if grant is not None]


async def seen_grants(journal: Journal) -> list[Grant]:
    """Those of them that are for the one who sits here to see: their own, nobody's, and of whom they answer for."""
    return [grant for grant in await standing_grants(journal) if journal.people.sees(grant.by.whose)]


async def why_over(journal: Journal, grant: Grant) -> str | None:
    """Why a grant that stands serves nobody any more, or None."""
    now = journal.clock()
    if now < grant.at:
        return "a clock was set back"
    if grant.scope == "until" and (grant.until is None or await _is_past(journal, grant, grant.until, now)):
        return "its time is over"
    if grant.scope == "session" and not (grant.process and is_alive(journal, grant.process)):
        return "its session has ended"
    return None


async def _is_past(journal: Journal, grant: Grant, until: float, now: float) -> bool:
    """Whether a moment is past, or was when something was written since the grant: the clock may be set back."""
    return now >= until or await latest_since(journal.store, grant.seq) >= until


def is_alive(journal: Journal, process: str) -> bool:
    return process == journal.process_name() or journal.store.is_held(f"process:{process}")


def serves(grant: Grant, who: GrantWho) -> bool:
    """Whether a grant is for calls of this session, run and person at all."""
    if grant.user != who.user or grant.by.whose != who.principal:
        return False
    if grant.call_id == who.call_id:
        return False  # This one has a yes of its own. Where that is void, the card was another one, and comes back.
    if grant.scope == "session":
        return grant.session_id == who.session_id and grant.process == who.process
    if grant.scope == "run":
        return bool(grant.run) and grant.session_id == who.session_id and who.call_id.startswith(f"{grant.run}.")
    return True


def covers(
    grant: Grant, manifest: Manifest, tool_digest: str, arguments: dict[str, Any], folder: Callable[[], Path]
) -> bool:
    """Whether a grant speaks of a call, and could be given again as it is."""
    if grant.tool != manifest.id or grant.tool_digest != tool_digest:
        return False
    where = _bounds_now(grant, manifest)
    return where is not None and where.covers(arguments, folder() if where.is_volatile else NOWHERE)


_looked_at: dict[str, tuple[Grant, Manifest, Where | None]] = {}


def _bounds_now(grant: Grant, manifest: Manifest) -> Where | None:
    """The bounds of a grant, if it could be given again as it is. That follows from its record and the tool alone, and
    is asked three times for every call, so it is kept for as long as both are the very same."""
    known = _looked_at.get(grant.id)
    if known is not None and known[0] is grant and known[1] is manifest:
        return known[2]
    terms = GrantTerms(
        where=grant.where, scope="session", calls=grant.calls, sums=grant.sums
    )  # Its time is looked at apart.
    found = bounds_of(grant.where) if why_not_these(manifest, terms) is None else None
    named = {
        name: None if bound.keys() <= {"absent", "under"} and "absent" in bound else [bound.get("is"), bound.get("in")]
        for name, bound in grant.where.items()
    }
    if grant.scope == "until" and meant_from_folder(manifest, named) is not None:
        found = None  # Whoever showed its card did not know that this is a path, or a command.
    if len(_looked_at) >= MAX_KEPT:
        _looked_at.clear()
    _looked_at[grant.id] = grant, manifest, found
    return found


async def living(
    journal: Journal, who: GrantWho, manifest: Manifest, tool_digest: str, data: bytes, folder: Callable[[], Path]
) -> list[Grant]:
    """The grants that cover a call now, whatever is left of them."""
    standing = [g for g in await standing_grants(journal) if g.tool == manifest.id and serves(g, who)]
    if not standing:
        return []
    arguments = values.decode(data)
    return [
        grant
        for grant in standing
        if covers(grant, manifest, tool_digest, arguments, folder) and await why_over(journal, grant) is None
    ]


async def outdated(
    journal: Journal, who: GrantWho, manifest: Manifest, data: bytes, folder: Callable[[], Path]
) -> Grant | None:
    """A grant that would cover a call if its tool were still the one that it was given for."""
    arguments = values.decode(data)
    for grant in await standing_grants(journal):
        is_for_it = grant.tool == manifest.id and serves(grant, who)
        if is_for_it and covers(grant, manifest, grant.tool_digest, arguments, folder):
            return grant if await why_over(journal, grant) is None else None
    return None


async def nearest_grant(
    journal: Journal, who: GrantWho, manifest: Manifest, tool_digest: str, data: bytes, folder: Callable[[], Path]
) -> tuple[Grant, list[str]] | None:
    """The grant for calls of a tool that misses least of this one, which none covers, and what misses."""
    arguments = values.decode(data)
    best: tuple[Grant, Where, Path] | None = None
    least = 0
    for grant in await standing_grants(journal):
        if grant.tool != manifest.id or grant.tool_digest != tool_digest or not serves(grant, who):
            continue
        where = _bounds_now(grant, manifest)
        if where is None or await why_over(journal, grant) is not None:
            continue
        here = folder() if where.is_volatile else NOWHERE
        missed = where.missed(arguments, here)
        if missed and (best is None or missed < least):
            best, least = (grant, where, here), missed
    return None if best is None else (best[0], best[1].misses(arguments, best[2], manifest.secrets))


async def waited_before(journal: Journal, grant: Grant, call_id: str) -> bool:
    """Whether a call was asked about before a grant was given, and the person was not shown its card beside it."""
    if call_id in grant.settles:
        return False
    asked = await journal.store.read(subject=call_id, kind="asked", limit=1)
    return bool(asked) and asked[0].seq < grant.seq


async def revoke(journal: Journal, grant_id: str, by: Answerer) -> bool:
    """Take a grant back. False when it had ended. Whether another person has one of that name is not told."""
    records = await journal.store.read(stream=STREAM, subject=grant_id, kind=GRANTED, last=1)
    grant = grant_in(records[0]) if records else None
    is_theirs = grant is not None and not journal.people.sees(grant.by.whose)
    if is_theirs or await journal.store.taken(f"granted:{grant_id}") is None:
        raise SessionError("there is no such grant", place=grant_id, hint="lastword grants lists them")
    return await _end(journal, grant_id, sign(by, journal.people.me))


async def _end(journal: Journal, grant_id: str, by: Answerer, why: str = "") -> bool:
    """Let a grant stand no longer. It wins or loses against a start: each takes the same number."""
    if not any(r.subject == grant_id for r in await journal.standing(GRANTED, STREAM)):
        return False
    facts = {"by": msgspec.to_builtins(by), "why": why}
    for _ in range(MAX_TRIES):
        used, _totals = await last_use(journal, grant_id)
        if await journal.claim(STREAM, REVOKED, grant_id, facts, use_key(grant_id, used + 1)):
            return True
        if not any(r.subject == grant_id for r in await journal.standing(GRANTED, STREAM)):
            return False  # Somebody else took it back.
    raise SessionError("it is used faster than it can be taken back", place=grant_id, hint="lastword stop")


async def revoke_all(journal: Journal, by: Answerer) -> Sequence[str]:
    """Take all grants back, of everybody who shares this memory: for `stop`. What others allowed is not told."""
    return [
        f"{terms_words(grant.tool, grant.where)}: {whose_words(grant, journal.people.me)}"
        if journal.people.sees(grant.by.whose)
        else f"{visible(grant.tool)}: a grant of another person"
        for grant in await standing_grants(journal)
        if await _end(journal, grant.id, by, "everything was stopped")
    ]


async def end_session_grants(journal: Journal, session_id: str, run: str = "") -> None:
    """A session, or one run of it, is over, and so are the grants for it."""
    for grant in await standing_grants(journal):
        is_mine = grant.scope == "run" and grant.run == run if run else grant.scope in ("session", "run")
        if is_mine and grant.session_id == session_id and (run or grant.process == journal.process_name()):
            await _end(journal, grant.id, Answerer("unknown"), "its run is over" if run else "its session is over")


def terms_words(tool: str, where: Mapping[str, Any]) -> str:
    """What a grant is for, in a line."""
    return f"{visible(tool)}, {bounds_of(where).words()}"


def whose_words(grant: Grant, me: str) -> str:
    """How whoever looks at a list of grants knows it. Not all of them need be theirs."""
    if grant.by.whose in ("", me):
        return grant.words
    return f"a grant of {visible(grant.by.whose)}, given on {day_words(grant.at)}"


def how_long_words(grant: Grant, journal: Journal, here: str = "") -> str:
    """How long it holds, the same in every list. `here`: the session that the list is read in, if it is one's."""
    is_here = grant.session_id == here and grant.process == journal.process_name()
    whose = "" if grant.by.whose == journal.people.me else visible(grant.by.whose)
    session_id, run = visible(grant.session_id), visible(grant.run)
    return holding_words(grant.scope, grant.until, session_id, run, whose=whose, is_here=is_here)


def left_words(grant: Grant, used: int, totals: Mapping[str, Decimal]) -> str:
    """How much of it was used, in words."""
    times = "once" if used == 1 else f"{used} times"
    said = [f"used {times}" if grant.calls is None else f"{used} of {grant.calls} calls"]
    for name, most in grant.sums.items():
        said.append(f"{amount_words(totals.get(name, Decimal(0)))} of {amount_words(Decimal(most))} {shown_name(name)}")
    if grant.calls is not None and used >= grant.calls:
        said.append("used up")
    return ", ".join(said)


def limits_words(calls: int | None, sums: Mapping[str, str]) -> str:
    """After what it ends, in words; empty when there is no limit."""
    said = [] if calls is None else [f"{calls} call{'' if calls == 1 else 's'}"]
    said += [f"{amount_words(Decimal(most))} of {shown_name(name)} in all" for name, most in sums.items()]
    return f"{' or '.join(said)}, whichever comes first" if len(said) > 1 else "".join(said)
