"""Grants: what a person allowed from a card for calls like it, until it is used up, over, or taken back.

A grant is a record, written in one commit with the answer it came with. Whether it covers a call is looked at anew each
time, by the same bounds as a rule's, and so is everything that made it possible: the tool's key, the tool itself, the
program and the person. What can be granted is in terms.py, and how uses are counted in limits.py.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from lastword import values
from lastword.consent import Answerer, ApprovalRequest, GrantTerms, Scope, UserAction
from lastword.display import visible
from lastword.errors import SessionError
from lastword.rules.limits import STREAM, Account, day_words, last_use, use_key
from lastword.rules.terms import (
    MAX_KEPT,
    bounds_of,
    meant_from_folder,
    terms_words,
    why_not_given,
    why_not_these,
)

if TYPE_CHECKING:
    from lastword.journal import Journal
    from lastword.rules.rule import Where
    from lastword.store import Entry, Record, Store
    from lastword.tools import Manifest, Tool


GRANTED = "granted"
REVOKED = "revoked"
NOWHERE = Path("/")

# A revocation that loses against so many uses in a row is told so; each of them was allowed.
MAX_TRIES = 1_000


_looked_at: dict[str, tuple[Grant, Manifest, Where | None]] = {}
"""The bounds of grants as they were found last, by their ids."""


class GrantWho(msgspec.Struct, frozen=True):
    """Whose call it is that a grant should cover."""

    session_id: str
    process: str
    user: str | None
    call_id: str
    principal: str = ""
    """The person to whom the session belongs."""


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

    @classmethod
    def of(
        cls, request: ApprovalRequest, terms: GrantTerms, by: Answerer, process: str, user: str | None, at: float
    ) -> Grant:
        """The grant that these terms on this card mean."""
        return cls(
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

    @property
    def words(self) -> str:
        """How a person knows it."""
        return f"your grant of {day_words(self.at)}"

    def known_as(self, me: str) -> str:
        """How whoever looks at a list of grants knows it. Not all of them need be theirs."""
        if self.by.whose in ("", me):
            return self.words
        return f"a grant of {visible(self.by.whose)}, given on {day_words(self.at)}"

    @property
    def account(self) -> Account:
        return Account(self.id, self.words, self.calls, {name: Decimal(most) for name, most in self.sums.items()})

    def serves(self, who: GrantWho) -> bool:
        """Whether it is for calls of this session, run and person at all."""
        if self.user != who.user or self.by.whose != who.principal:
            return False
        if self.call_id == who.call_id:
            return False  # This one has a yes of its own. Where that is void, the card was another one, and comes back.
        if self.scope == "session":
            return self.session_id == who.session_id and self.process == who.process
        if self.scope == "run":
            return bool(self.run) and self.session_id == who.session_id and who.call_id.startswith(f"{self.run}.")
        return True

    def covers(
        self, manifest: Manifest, tool_digest: str, arguments: dict[str, Any], folder: Callable[[], Path]
    ) -> bool:
        """Whether it speaks of a call, and could be given again as it is."""
        if self.tool != manifest.id or self.tool_digest != tool_digest:
            return False
        where = self.bounds_now(manifest)
        return where is not None and where.covers(arguments, folder() if where.is_volatile else NOWHERE)

    def bounds_now(self, manifest: Manifest) -> Where | None:
        """Its bounds, if it could be given again as it is. That follows from its record and the tool alone, and
        is asked three times for every call, so it is kept for as long as both are the very same."""
        known = _looked_at.get(self.id)
        if known is not None and known[0] is self and known[1] is manifest:
            return known[2]
        # Its time is looked at apart.
        terms = GrantTerms(where=self.where, scope="session", calls=self.calls, sums=self.sums)
        found = bounds_of(self.where) if why_not_these(manifest, terms) is None else None
        said = {
            name: None if b.keys() <= {"absent", "under"} and "absent" in b else [b.get("is"), b.get("in")]
            for name, b in self.where.items()
        }
        if self.scope == "until" and meant_from_folder(manifest, said) is not None:
            found = None  # Whoever showed its card did not know that this is a path, or a command.
        if len(_looked_at) >= MAX_KEPT:
            _looked_at.clear()
        _looked_at[self.id] = self, manifest, found
        return found


class ListedGrant(msgspec.Struct, frozen=True):
    """A grant for whoever reads a list of them."""

    grant: Grant
    what: str
    whose: str
    how_long: str
    used: int
    totals: dict[str, Decimal]
    over: str | None
    """Why it serves nobody any more."""

    @property
    def left(self) -> str:
        """How much of it was used, in words."""
        return self.grant.account.left_words(self.used, self.totals)


@lru_cache(maxsize=MAX_KEPT)  # Each is read three times for every call. Whether it still stands is looked up each time.
def grant_in(record: Record, data_of: Callable[[Record], dict[str, Any]]) -> Grant | None:
    """The grant that a record holds; None when it is not understood, and so allows nothing."""
    facts = data_of(record)
    try:
        by = Answerer.read(facts.get("by"))
        grant = msgspec.convert(facts | {"by": msgspec.to_builtins(by)}, Grant)
        return msgspec.structs.replace(grant, by=by, seq=record.seq)
    except (msgspec.ValidationError, TypeError):
        return None


class Grants:
    """The grants on one memory."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def given(
        self,
        manifest: Manifest,
        request: ApprovalRequest,
        action: UserAction,
        by: Answerer,
        process: str,
        user: str | None,
    ) -> Grant | str:
        """The grant that the terms on this card mean, which came with an answer; or why they are not granted."""
        terms = action.grant
        assert terms is not None
        if why := why_not_given(manifest, request, terms, by, action):
            return why
        return Grant.of(request, terms, by, process, user, self.journal.clock())

    def entry(self, grant: Grant) -> Entry:
        """The record of a grant. It is written once, whoever tries."""
        facts = msgspec.to_builtins(grant)
        del facts["seq"]  # Nobody knows it before it is written.
        return self.journal.entry(STREAM, GRANTED, grant.id, facts, once=f"granted:{grant.id}")

    async def answer_elsewhere(self, facts: dict[str, Any], action: UserAction, by: Answerer | str) -> bool:
        """Answer a card of another program with a grant. False when it does not wait any more."""
        who = Answerer.named(by).signed(self.journal.people.me)
        entries: tuple[Entry, ...] = ()
        if action.grant is not None:
            request = ApprovalRequest.from_facts(facts)
            given = self.given(request.manifest, request, action, who, facts.get("process", ""), facts.get("user"))
            if isinstance(given, str):
                raise SessionError(given, place=request.call_id, hint="allow this call alone")
            entries = (self.entry(given),)
        return await self.journal.answer(facts, action, who, *entries)

    def any_standing(self) -> Awaitable[object]:
        """Whether there are any. Nearly always there is none, and every question pays for the look."""
        return self.journal.store.current(GRANTED, stream=STREAM)

    async def standing(self) -> list[Grant]:
        """Those that nobody has taken back, oldest first; their time may be over. Tampered when one was changed."""
        found = (grant_in(record, self.journal.data_of) for record in await self.journal.standing(GRANTED, STREAM))
        return [grant for grant in found if grant is not None]

    async def listed(self, here: str = "") -> list[ListedGrant]:
        """Those of them that are for the one who sits here to see: their own, nobody's, and of whom they answer for.

        `here`: the session that the list is read in, if it is one's.
        """
        return [
            ListedGrant(
                grant,
                terms_words(grant.tool, grant.where),
                grant.known_as(self.journal.people.me),
                self._how_long(grant, here),
                *await last_use(self.journal, grant.id),
                await self.why_over(grant),
            )
            for grant in await self.standing()
            if self.journal.people.sees(grant.by.whose)
        ]

    def _how_long(self, grant: Grant, here: str) -> str:
        """How long it holds, the same in every list."""
        is_here = grant.session_id == here and grant.process == self.journal.process_name()
        whose = "" if grant.by.whose == self.journal.people.me else visible(grant.by.whose)
        session_id, run = visible(grant.session_id), visible(grant.run)
        return GrantTerms.holding_words(grant.scope, grant.until, session_id, run, whose=whose, is_here=is_here)

    async def why_over(self, grant: Grant) -> str | None:
        """Why a grant that stands serves nobody any more, or None."""
        journal, now = self.journal, self.journal.clock()
        if now < grant.at:
            return "a clock was set back"
        until, process = grant.until, grant.process
        # Over is also what was over when something was written since: the clock may be set back.
        if grant.scope == "until" and (
            until is None or now >= until or await latest_since(journal.store, grant.seq) >= until
        ):
            return "its time is over"
        if grant.scope == "session" and not (
            process and (process == journal.process_name() or journal.store.is_held(f"process:{process}"))
        ):
            return "its session has ended"
        return None

    async def living(self, who: GrantWho, tool: Tool, data: bytes, folder: Callable[[], Path]) -> list[Grant]:
        """The grants that cover a call now, whatever is left of them."""
        standing = [g for g in await self.standing() if g.tool == tool.name and g.serves(who)]
        if not standing:
            return []
        arguments = values.decode(data)
        return [
            grant
            for grant in standing
            if grant.covers(tool.manifest, tool.digest, arguments, folder) and await self.why_over(grant) is None
        ]

    async def outdated(self, who: GrantWho, tool: Tool, data: bytes, folder: Callable[[], Path]) -> Grant | None:
        """A grant that would cover a call if its tool were still the one that it was given for."""
        arguments = values.decode(data)
        for grant in await self.standing():
            is_for_it = grant.tool == tool.name and grant.serves(who)
            if is_for_it and grant.covers(tool.manifest, grant.tool_digest, arguments, folder):
                return grant if await self.why_over(grant) is None else None
        return None

    async def nearest(
        self, who: GrantWho, tool: Tool, data: bytes, folder: Callable[[], Path]
    ) -> tuple[Grant, str] | None:
        """The grant for calls of a tool that misses least of this one, which none covers; and what misses, in words."""
        arguments = values.decode(data)
        best: tuple[Grant, Where, list[str]] | None = None
        for grant in await self.standing():
            if (grant.tool, grant.tool_digest) != (tool.name, tool.digest) or not grant.serves(who):
                continue
            where = grant.bounds_now(tool.manifest)
            if where is None or await self.why_over(grant) is not None:
                continue
            misses = where.misses(arguments, folder() if where.is_volatile else NOWHERE, tool.secrets)
            if misses and (best is None or len(misses) < len(best[2])):
                best = grant, where, misses
        return None if best is None else (best[0], best[1].miss_words(best[2]))

    async def waited_before(self, grant: Grant, call_id: str) -> bool:
        """Whether a call was asked about before a grant was given, and the person was not shown its card beside it."""
        if call_id in grant.settles:
            return False
        asked = await self.journal.store.read(subject=call_id, kind="asked", limit=1)
        return bool(asked) and asked[0].seq < grant.seq

    async def revoke(self, grant_id: str, by: Answerer) -> bool:
        """Take a grant back. False when it had ended. Whether another person has one of that name is not told."""
        journal = self.journal
        records = await journal.store.read(stream=STREAM, subject=grant_id, kind=GRANTED, last=1)
        grant = grant_in(records[0], journal.data_of) if records else None
        is_theirs = grant is not None and not journal.people.sees(grant.by.whose)
        if is_theirs or await journal.store.taken(f"granted:{grant_id}") is None:
            raise SessionError("there is no such grant", place=grant_id, hint="lastword grants lists them")
        return await self._end(grant_id, by.signed(journal.people.me))

    async def _end(self, grant_id: str, by: Answerer, why: str = "") -> bool:
        """Let a grant stand no longer. It wins or loses against a start: each takes the same number."""
        journal = self.journal
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

    async def revoke_all(self, by: Answerer) -> Sequence[str]:
        """Take all grants back, of everybody who shares this memory: for `stop`. What others allowed is not told."""
        return [
            f"{terms_words(grant.tool, grant.where)}: {grant.known_as(self.journal.people.me)}"
            if self.journal.people.sees(grant.by.whose)
            else f"{visible(grant.tool)}: a grant of another person"
            for grant in await self.standing()
            if await self._end(grant.id, by, "everything was stopped")
        ]

    async def end_session(self, session_id: str, run: str = "") -> None:
        """A session, or one run of it, is over, and so are the grants for it."""
        for grant in await self.standing():
            is_mine = grant.scope == "run" and grant.run == run if run else grant.scope in ("session", "run")
            if is_mine and grant.session_id == session_id and (run or grant.process == self.journal.process_name()):
                await self._end(grant.id, Answerer("unknown"), "its run is over" if run else "its session is over")


class _Times:
    """The times of the records of one store from a place on, as far as they were looked at: each once."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.seen = first - 1
        self._latest: list[tuple[int, int]] = []
        """Places and times, the times falling: each is the latest of all records from its place on."""

    def take(self, seq: int, at: int) -> None:
        if seq <= self.seen:
            return  # Two calls look at the same time, and the other one was here.
        self.seen = seq
        while self._latest and self._latest[-1][1] <= at:
            self._latest.pop()
        self._latest.append((seq, at))

    def latest(self, seq: int) -> int:
        place = bisect_left(self._latest, (seq,))
        return self._latest[place][1] if place < len(self._latest) else 0


_walks: WeakKeyDictionary[Store, _Times] = WeakKeyDictionary()


async def latest_since(store: Store, seq: int) -> float:
    """The greatest time that this record or any after it has, in seconds."""
    walk = _walks.get(store)
    if walk is None or seq < walk.first:
        walk = _walks[store] = _Times(seq)
    end = (await store.head()).seq
    while walk.seen < end:
        last = min(walk.seen + store.PAGE_RECORDS, end)
        for link in await store.links(range(walk.seen + 1, last + 1)):
            walk.take(link.seq, link.at)
        walk.seen = max(walk.seen, last)
        await asyncio.sleep(0)  # It may be a day's records, and others wait for their turn meanwhile.
    return walk.latest(seq) / 1e6
