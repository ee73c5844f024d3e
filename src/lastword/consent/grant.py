"""A grant as data: the yes that a person gives beside the yes to one card, for calls like it.

What it says, who may give it and what it covers is decided in rules/. It travels inside the answer to a card, so that
both are written down in one step.
"""

from __future__ import annotations

import datetime
from typing import Any, Literal

import msgspec

from lastword import ids
from lastword.errors import LastWordError

Scope = Literal["run", "session", "until"]
"""How long it holds: this run of a script, this session in this program, or until a moment in all sessions of whoever
gave it."""

SCOPE_WORDS: dict[Scope, str] = {
    "run": "in this run",
    "session": "in this session",
    # It is the wider one, and has to say so: whoever gave it is served in every session that they have.
    "until": "in all your sessions until tonight",
}

# A list of cards that nobody can read was not read.
MAX_SETTLED = 50


class GrantTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a person agrees to beside one call: further calls of the same tool, within these bounds."""

    where: dict[str, dict[str, Any]]
    """A bound for every parameter, in the words of policy files: `{"to": {"is": "Ada"}}`."""
    scope: Scope
    until: float | None = None
    """For the scope `until`: seconds since the epoch."""
    calls: int | None = None
    """The most calls. None for no limit, which only a tool may have whose effect can be undone."""
    sums: dict[str, str] = {}
    """The most that an argument may come to over all calls, as exact decimals: `{"amount": "100"}`."""
    settles: tuple[str, ...] = ()
    """Other calls whose cards wait now, which the person was shown and which this grant answers."""
    id: str = msgspec.field(default_factory=ids.new)

    def __post_init__(self) -> None:
        if (self.scope == "until") != (self.until is not None):
            raise LastWordError("a grant until a moment names it, and no other does", hint='scope="until", until=…')
        if self.calls is not None and (type(self.calls) is not int or self.calls < 1):
            raise LastWordError("the calls of a grant are a whole number above 0")
        if len(self.settles) > MAX_SETTLED:
            raise LastWordError(f"a grant answers at most {MAX_SETTLED} waiting cards", hint="answer the others")


def until_words(scope: Scope, until: float | None) -> str:
    """How long it would hold, for whoever gives it from a card: they are in its session, and in its run."""
    return SCOPE_WORDS.get(scope, str(scope)) if until is None else f"in all your sessions {_until(until)}"


def holding_words(
    scope: Scope, until: float | None, session_id: str, run: str, *, whose: str = "", is_here: bool = False
) -> str:
    """How long one that was given holds, for whoever reads of it later, in another session or in none.

    `whose`: the person who gave it, where that is not the reader. `is_here`: the reader is in the very session, in the
    very program, that it serves.
    """
    if until is not None:
        in_all = f"in all of {whose}'s sessions" if whose else "in all your sessions"
        return f"{in_all} {_until(until)}"
    if scope == "run":
        return f"in the run {run}, until it ends"
    return SCOPE_WORDS["session"] if is_here else f"in the session {session_id}, until its program ends"


def _until(until: float) -> str:
    moment = datetime.datetime.fromtimestamp(until)
    if (moment.hour, moment.minute) != (0, 0):
        return f"until {moment.day} {moment:%B, %H:%M}"
    # Midnight is the next day's by its date, and this day's for whoever reads it.
    day = moment - datetime.timedelta(minutes=1)
    return f"until midnight, the end of {day.day} {day:%B}"
