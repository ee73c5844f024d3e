"""The second step of a card, and the grants that stand, as data for every surface.

The page's TypeScript types are generated from these structs (web/ui/generate_wire.py). All texts in here are marked;
what they say is decided in rules/.
"""

from __future__ import annotations

import msgspec

from lastword.card.done import Done
from lastword.consent import Scope

GRANT_WORD = "grant"
"""What is typed before the press that grants. Another word than the one that allows a single call."""

GRANT_WORDS = {
    "ask": "Don't ask again…",
    "title": "Allow, and don't ask again",
    "how_long": "how long",
    "ends_after": "ends after",
    "not_whole": "The number of calls is a whole number above 0.",
    "back": "Back to the card",
}
"""What the second step says on every surface, whatever the card. The page has it from wire.ts."""

# Of whoever looks: others who share the memory may have some, which are not theirs to see.
NO_GRANTS = "You have no grants. One is given from a card, in a second step."


class GrantBound(msgspec.Struct, frozen=True, kw_only=True):
    """An argument, and what of it a grant may cover: first exactly what the card says, then what is looser."""

    name: str
    shown_name: str
    choices: tuple[str, ...]
    chosen: int = 0


class GrantSum(msgspec.Struct, frozen=True, kw_only=True):
    """An argument whose values may be limited in all."""

    name: str
    shown_name: str
    most: str = ""
    """As it was typed; nothing for no limit."""


class GrantSettled(msgspec.Struct, frozen=True, kw_only=True):
    """Another card that waits now, and that the grant would answer."""

    id: str
    summary: str


class GrantStep(Done, frozen=True, kw_only=True):
    """What would be granted from a card, all of it, before anything is."""

    why_none: str = ""
    """Why nothing can be granted from this card. Everything else is empty then."""
    problem: str = ""
    """Why what was chosen cannot be granted as it is."""
    digest: str = ""
    """Of what is shown here. A yes names it; there is none while there is a problem."""
    begins: str = ""
    """What is said before the bounds: what they are now, and whether they can be loosened."""
    sentence: str = ""
    bounds: tuple[GrantBound, ...] = ()
    scopes: tuple[tuple[Scope, str], ...] = ()
    scope: Scope = "session"
    calls: int | None = None
    sums: tuple[GrantSum, ...] = ()
    needs_limit: bool = False
    settling: str = ""
    """What is said before the cards that it would answer as well; empty where there are none."""
    settles: tuple[GrantSettled, ...] = ()
    counting: str = ""
    """What its limits count, where it has some."""
    ends: str = ""
    """When the session ends for which it would hold, where that is not clear by itself."""
    past: str = ""
    granted: str = ""
    """What is said as soon as it stands."""
    word: str = GRANT_WORD


class ExplainedCall(Done, frozen=True, kw_only=True):
    """What would be decided about a call, and why."""

    saying: str
    """`allow`, `ask` or `deny`."""
    why: str
    """The rule or the grant that decides; where a person is asked, the rule that comes nearest, and what misses."""


class GrantEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A grant that stands."""

    id: str
    sentence: str
    used: str
    over: str = ""
    """Why it serves nobody any more, though nobody took it back."""


class RuleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a policy file."""

    name: str
    saying: str
    words: str


class RuleFile(msgspec.Struct, frozen=True, kw_only=True):
    """A policy file and its rules."""

    path: str
    layer: str
    state: str
    """What its rules can do: whether somebody accepted what they allow."""
    rules: tuple[RuleEntry, ...]


class GrantsFound(msgspec.Struct, frozen=True, kw_only=True):
    """All that stands for an answer: what was granted from cards, and the rules that this conversation has."""

    grants: tuple[GrantEntry, ...]
    files: tuple[RuleFile, ...]
