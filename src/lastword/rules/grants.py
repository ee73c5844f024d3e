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
from lastword.consent.answerer import Answerer, read_answerer
from lastword.consent.grant import GrantTerms, Scope
from lastword.display import visible
from lastword.errors import LastWordError, NotJSON, SessionError
from lastword.journal import Journal
from lastword.journal.asker import is_held
from lastword.journal.records import data_of
from lastword.rules.bounds import read_bound
from lastword.rules.counting import STREAM, Account, amount_words, day_words, last_use, moment, use_key
from lastword.rules.deciding import NO_KEY, ONLY_EXACT
from lastword.rules.rule import Where, is_amount
from lastword.store import Entry, Record
from lastword.tools.manifest import Manifest

GRANTED = "granted"
REVOKED = "revoked"

# A revocation that loses against so many uses in a row is told so; each of them was allowed.
MAX_TRIES = 1_000


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
    until: float | None = None
    calls: int | None = None
    sums: dict[str, str] = {}
    by: Answerer = Answerer("unknown")
    call_id: str = ""
    """From whose card it was given."""
    at: float = 0.0

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


@lru_cache(maxsize=200)
def _compiled(where: bytes) -> Where:
    """The same bounds are looked at three times for every call, and compiling them takes the longest."""
    found = {}
    for name, written in values.decode(where).items():

        def wrong(fact: str, hint: str | None, name: str = name) -> NoReturn:
            raise LastWordError(f"{name}: {fact}", hint=hint)

        found[name] = read_bound(written, wrong)
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
        sums = {name: Decimal(most) for name, most in terms.sums.items()}
    except InvalidOperation:
        return "A sum is a number"
    except LastWordError as problem:
        return problem.fact
    for name, bound in where.bounds.items():
        if not bound.is_closed:
            return f"{name} is left open: a text or number that anybody may have written is asked about"
        if bound.names_folder and not is_path(manifest, name):
            # Words with a slash in them lie inside of a folder, too, whatever else they say.
            return f"{name} is not said to be a path, and a folder bounds nothing else"
    for parameter in manifest.parameters:
        if parameter.name not in where.bounds:
            return f"It says nothing of {parameter.name}"
    if manifest.auto_approve == "exact" and not where.is_exact:
        return f"{ONLY_EXACT[:1].upper()}{ONLY_EXACT[1:]}"
    for name, most in sums.items():
        summed = where.bounds.get(name)
        if summed is None or not is_amount(summed) or not most.is_finite() or most < 0:
            return f"{name} cannot be summed: it is no number of at least 0"
    if manifest.counts_as_irreversible and terms.calls is None and not sums:
        return "What cannot be undone, or does not say so, is granted with a limit"
    if arguments is not None and where.misses(dict(arguments), Path("/")) and not where.is_volatile:
        return "It does not cover the call it stands on"
    return None


def is_path(manifest: Manifest, name: str) -> bool:
    """Whether a tool says that an argument is a path, or a list of them."""
    for parameter in manifest.parameters:
        if parameter.name == name:
            schema = parameter.schema or {}
            items = schema.get("items")
            return "path" in (schema.get("format"), items.get("format") if isinstance(items, dict) else None)
    return False


def granted_entry(journal: Journal, grant: Grant) -> Entry:
    """The record of a grant. It is written once, whoever tries."""
    facts = msgspec.to_builtins(grant)
    return journal.entry(STREAM, GRANTED, grant.id, facts, once=f"granted:{grant.id}")


def grant_in(record: Record) -> Grant | None:
    """The grant that a record holds; None when it is not understood, and so allows nothing."""
    facts = data_of(record)
    try:
        by = read_answerer(facts.get("by"))
        return msgspec.structs.replace(msgspec.convert(facts | {"by": msgspec.to_builtins(by)}, Grant), by=by)
    except (msgspec.ValidationError, TypeError):
        return None


async def standing_grants(journal: Journal) -> list[Grant]:
    """The grants that nobody has taken back, oldest first; their time may be over. Tampered when one was changed."""
    found = (grant_in(record) for record in await journal.standing(GRANTED, STREAM))
    return [grant for grant in found if grant is not None]


def why_over(journal: Journal, grant: Grant, now: float) -> str | None:
    """Why a grant that stands serves nobody any more, or None."""
    if now < grant.at:
        return "a clock was set back"
    if grant.scope == "until" and (grant.until is None or now >= grant.until):
        return "its time is over"
    if grant.scope == "session" and not (grant.process and is_alive(journal, grant.process)):
        return "its session has ended"
    return None


def is_alive(journal: Journal, process: str) -> bool:
    return process == journal.process_name() or is_held(journal.store, f"process:{process}")


def serves(grant: Grant, who: GrantWho) -> bool:
    """Whether a grant is for calls of this session, run and person at all."""
    if grant.user != who.user or grant.by.whose != who.principal:
        return False
    if grant.scope == "session":
        return grant.session_id == who.session_id and grant.process == who.process
    if grant.scope == "run":
        return bool(grant.run) and grant.session_id == who.session_id and who.call_id.startswith(f"{grant.run}.")
    return True


def covers(grant: Grant, manifest: Manifest, tool_digest: str, arguments: dict[str, Any], folder: Path) -> bool:
    """Whether a grant speaks of a call, and could be given again as it is."""
    if grant.tool != manifest.id or grant.tool_digest != tool_digest:
        return False
    terms = GrantTerms(
        where=grant.where, scope="session", calls=grant.calls, sums=grant.sums
    )  # Its time is looked at apart.
    return why_not_these(manifest, terms) is None and bounds_of(grant.where).covers(arguments, folder)


async def living(
    journal: Journal, who: GrantWho, manifest: Manifest, tool_digest: str, data: bytes, folder: Callable[[], Path]
) -> list[Grant]:
    """The grants that cover a call now, whatever is left of them."""
    standing = [g for g in await standing_grants(journal) if g.tool == manifest.id and serves(g, who)]
    if not standing:
        return []
    now, arguments = await moment(journal), values.decode(data)
    return [
        grant
        for grant in standing
        if why_over(journal, grant, now) is None and covers(grant, manifest, tool_digest, arguments, folder())
    ]


async def revoke(journal: Journal, grant_id: str, by: Answerer, why: str = "") -> bool:
    """Take a grant back. False when it had ended. It wins or loses against a start: each takes the same number."""
    records = [r for r in await journal.standing(GRANTED, STREAM) if r.subject == grant_id]
    if not records:
        if await journal.store.taken(f"granted:{grant_id}") is None:
            raise SessionError("there is no such grant", place=grant_id, hint="lastword grants lists them")
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
    """Take all grants back, of everybody who shares this memory: for `stop`."""
    return [
        f"{visible(grant.tool)}: {grant.words}"
        for grant in await standing_grants(journal)
        if await revoke(journal, grant.id, by, "everything was stopped")
    ]


async def end_session_grants(journal: Journal, session_id: str, run: str = "") -> None:
    """A session, or one run of it, is over, and so are the grants for it."""
    for grant in await standing_grants(journal):
        is_mine = grant.scope == "run" and grant.run == run if run else grant.scope in ("session", "run")
        if is_mine and grant.session_id == session_id and (run or grant.process == journal.process_name()):
            await revoke(journal, grant.id, Answerer("unknown"), "its run is over" if run else "its session is over")


def terms_words(tool: str, where: Mapping[str, Any]) -> str:
    """What a grant is for, in a line."""
    return f"{visible(tool)}, {bounds_of(where).words()}"


def left_words(grant: Grant, used: int, totals: Mapping[str, Decimal]) -> str:
    """How much of it was used, in words."""
    said = [f"{used} of {grant.calls} calls" if grant.calls is not None else f"used {used} times"]
    for name, most in grant.sums.items():
        said.append(f"{amount_words(totals.get(name, Decimal(0)))} of {amount_words(Decimal(most))} {visible(name)}")
    return ", ".join(said)


def limits_words(calls: int | None, sums: Mapping[str, str]) -> str:
    """After what it ends, in words; empty when there is no limit."""
    said = [] if calls is None else [f"{calls} call{'' if calls == 1 else 's'}"]
    said += [f"{amount_words(Decimal(most))} of {visible(name)} in all" for name, most in sums.items()]
    return ", ".join(said)
