"""Limits that hold for all programs on one memory: the last use is won once, and a sum is never exceeded.

Each use of a grant, or of a rule with limits, is a record with a number, the totals so far and a key made of both; it
is written in the commit that starts its call. Whoever comes second with the same number starts nothing, looks again
and takes the next number, if there is one. A revocation takes the next number too, and so wins or loses against a
start. Nothing is given back: a call that failed may have acted.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.consent import deciders
from lastword.rules.value import EXACT, amount_of, amount_words, shown_name

if TYPE_CHECKING:
    from lastword.consent import Call, deciders
    from lastword.journal import Journal
    from lastword.store import Entry

STREAM = "grants"
"""Where grants, their uses and their ends are written down, of all sessions."""
USED = "grant_used"


class Account(msgspec.Struct, frozen=True):
    """What may be used, and how much of it there is."""

    id: str
    of: str
    """Whose it is, for people: `your grant of 15 November`."""
    calls: int | None = None
    sums: dict[str, Decimal] = {}
    is_daily: bool = False
    """Whether it is counted anew each day."""

    async def next_use(self, journal: Journal, call_id: str, arguments: Mapping[str, Any]) -> Use | str:
        """The next use of it by a call, or why there is none."""
        used, totals = await last_use(journal, self.id)
        number = used + 1
        if self.calls is not None and number > self.calls:
            a_day, until = (" a day", " until midnight in UTC") if self.is_daily else ("", "")
            calls, are = ("call", "it is") if self.calls == 1 else ("calls", "they are")
            was = "is" if self.is_daily else "was"
            return f"{self.of} {was} for {self.calls} {calls}{a_day}, and {are} used up{until}"
        zero = Decimal(0)
        after = {name: EXACT.add(totals.get(name, zero), amount_of(arguments.get(name))) for name in self.sums}
        for name, most in self.sums.items():
            if not after[name] <= most:
                left = amount_words(EXACT.subtract(most, totals.get(name, zero)))
                of = f"{amount_words(most)} left for {shown_name(name)}{' today' if self.is_daily else ''}"
                return f"{self.of} has {left} of {of}, which is not enough"
        counted = [f"{number} of {self.calls} calls"] if self.calls is not None else []
        for name, most in self.sums.items():
            # Of a single one it is clear what is counted, and the sentence is read at every call.
            of_what = f" {shown_name(name)}" if len(self.sums) > 1 else ""
            counted.append(f"{amount_words(after[name])} of {amount_words(most)}{of_what}")
        written = {name: str(total) for name, total in after.items()}
        words = ", ".join([self.of, *counted])
        facts = {"number": number, "totals": written, "call": call_id, "words": words}
        entry = journal.entry(STREAM, USED, self.id, facts, once=use_key(self.id, number))
        return Use(words, entry)

    def left_words(self, used: int, totals: Mapping[str, Decimal]) -> str:
        """How much of it was used, for a list."""
        times = "once" if used == 1 else f"{used} times"
        said = [f"used {times}" if self.calls is None else f"{used} of {self.calls} calls"]
        for name, most in self.sums.items():
            said.append(f"{amount_words(totals.get(name, Decimal(0)))} of {amount_words(most)} {shown_name(name)}")
        if self.calls is not None and used >= self.calls:
            said.append("used up")
        return ", ".join(said)


class Use(msgspec.Struct, frozen=True):
    """One use of an account, if nobody else takes its number."""

    words: str
    """Why nobody was asked: `your grant of 15 November, 3 of 10 calls, 38.50 of 100`."""
    entry: Entry


def use_key(account: str, number: int) -> str:
    """The key that makes a use, or the end of a grant, the only one of its number."""
    return f"grant:{account}:{number}"


async def last_use(journal: Journal, account: str) -> tuple[int, dict[str, Decimal]]:
    """How often an account was used, and what its arguments came to."""
    records = await journal.store.read(stream=STREAM, subject=account, kind=USED, last=1)
    if not records:
        return 0, {}
    await journal.store.prove(records)
    facts = journal.data_of(records[-1])
    return facts["number"], {name: Decimal(total) for name, total in facts["totals"].items()}


class Accounts:
    """What rules and grants have left, for whoever decides by them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._days: dict[str, str] = {}
        """The last day that was counted for a rule, by its account."""

    async def next_use(self, decider: deciders.Ruled | deciders.Granted, call: Call) -> Use | str:
        """The next use by a call of what lets it pass, or why there is none."""
        account = await self._of(decider)
        return await account.next_use(self._journal, call.id, values.decode(call.arguments))

    async def _of(self, decider: deciders.Ruled | deciders.Granted) -> Account:
        if isinstance(decider, deciders.Granted):
            return Account(decider.id, decider.words, decider.calls, decider.sums)
        id = f"rule:{decider.key}"
        if decider.per == "day":
            id = f"{id}.{await self._day(id)}"
        return Account(id, f"the rule {decider.rule}", decider.calls, decider.sums, decider.per == "day")

    async def _day(self, account: str) -> str:
        """The day, in UTC, for which a rule is counted now: never one before the last that was, where a clock is set
        back."""
        last = self._days.get(account)
        if last is None:
            records = await self._journal.store.read(stream=STREAM, below=account, kind=USED, last=1)
            last = records[0].subject.rpartition(".")[2] if records else ""
        today = datetime.datetime.fromtimestamp(self._journal.clock(), datetime.UTC).date().isoformat()
        day = self._days[account] = max(last, today)
        return day


def day_words(seconds: float) -> str:
    """A day for people, as they call it where they are: 15 November."""
    day = datetime.datetime.fromtimestamp(seconds)
    return f"{day.day} {day:%B}"
