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

from lastword.journal import data_of
from lastword.rules.value import EXACT, amount_of, amount_words, shown_name
from lastword.store import Entry

if TYPE_CHECKING:
    from lastword.journal import Journal

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


class Use(msgspec.Struct, frozen=True):
    """One use of an account, if nobody else takes its number."""

    number: int
    totals: dict[str, str]
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
    facts = data_of(records[-1])
    return facts["number"], {name: Decimal(total) for name, total in facts["totals"].items()}


async def next_use(journal: Journal, account: Account, call_id: str, arguments: Mapping[str, Any]) -> Use | str:
    """The next use of an account by a call, or why there is none."""
    used, totals = await last_use(journal, account.id)
    number = used + 1
    if account.calls is not None and number > account.calls:
        a_day, until = (" a day", " until midnight in UTC") if account.is_daily else ("", "")
        calls, are = ("call", "it is") if account.calls == 1 else ("calls", "they are")
        was = "is" if account.is_daily else "was"
        return f"{account.of} {was} for {account.calls} {calls}{a_day}, and {are} used up{until}"
    zero = Decimal(0)
    after = {name: EXACT.add(totals.get(name, zero), amount_of(arguments.get(name))) for name in account.sums}
    for name, most in account.sums.items():
        if not after[name] <= most:
            left = amount_words(EXACT.subtract(most, totals.get(name, zero)))
            of = f"{amount_words(most)} left for {shown_name(name)}{' today' if account.is_daily else ''}"
            return f"{account.of} has {left} of {of}, which is not enough"
    counted = [f"{number} of {account.calls} calls"] if account.calls is not None else []
    for name, most in account.sums.items():
        # Of a single one it is clear what is counted, and the sentence is read at every call.
        of_what = f" {shown_name(name)}" if len(account.sums) > 1 else ""
        counted.append(f"{amount_words(after[name])} of {amount_words(most)}{of_what}")
    written = {name: str(total) for name, total in after.items()}
    words = ", ".join([account.of, *counted])
    facts = {"number": number, "totals": written, "call": call_id, "words": words}
    entry = journal.entry(STREAM, USED, account.id, facts, once=use_key(account.id, number))
    return Use(number, written, words, entry)


async def last_day(journal: Journal, account: str) -> str:
    """The last day, in UTC, for which an account was used that is counted anew each day; empty when there is none."""
    records = await journal.store.read(stream=STREAM, below=account, kind=USED, last=1)
    return records[0].subject.rpartition(".")[2] if records else ""


def account_of_day(account: str, day: str) -> str:
    """Under which name the uses of one day are counted."""
    return f"{account}.{day}"


def day_words(seconds: float) -> str:
    """A day for people, as they call it where they are: 15 November."""
    day = datetime.datetime.fromtimestamp(seconds)
    return f"{day.day} {day:%B}"


def utc_day(seconds: float) -> str:
    """The day of a moment, in UTC: 2026-11-15."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
