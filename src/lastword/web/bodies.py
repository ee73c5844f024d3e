"""What people send to the page: the bodies of its requests, checked before anybody looks at them."""

from __future__ import annotations

from typing import Literal

import msgspec

from lastword.call import Decision
from lastword.consent import Scope
from lastword.rules import FIRST_CALLS


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person did with a card. `digest` is of the request that they saw."""

    call_id: str
    digest: str
    action: Literal["allow", "allow_second", "deny", "deny_rest", "close"]
    reason: str | None = None
    edits: dict[str, str] = {}
    """Arguments to change, by name, each as text: a string as it stands, everything else as JSON."""
    word: str | None = None
    """What was typed besides the press: the card's `word`, where it has one."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened: all in the card's `must_open`."""


class GrantChoiceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person has chosen in the second step of a card, so far. Nothing is granted by it."""

    call_id: str
    digest: str
    loosened: dict[str, int] = {}
    """Which of the offered bounds, by argument: 0 is exactly what the card says."""
    scope: Scope = "session"
    calls: int | None = FIRST_CALLS
    sums: dict[str, str] = {}


class GrantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A yes to a card and to what its second step said. `step` is of exactly that, as this window was shown it."""

    call_id: str
    digest: str
    step: str
    word: str | None = None
    """What was typed besides the press."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened: all in the card's `folded`."""


class RevokeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grant to take back."""

    id: str


class ExplainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that nobody makes: what would decide about it?"""

    tool: str
    arguments: dict[str, str] = {}
    """By name, each as text: a string as it stands, everything else as JSON."""


class SeenCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A card among several, as it was seen."""

    call_id: str
    digest: str
    opened: tuple[str, ...] = ()
    """The folded parts that were opened in the list: all of the card's `folded`, for a yes."""


class AnswersBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person did with several cards, each of which they saw in one list."""

    cards: tuple[SeenCard, ...]
    action: Literal["allow", "deny"]
    reason: str | None = None


class QuestionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person did with a question of a running tool."""

    call_id: str
    question: str
    """The id of the question that they saw."""
    action: Literal["give", "decline", "close"]
    values: dict[str, str] = {}
    """What they filled in, by the names of the fields, each as text."""


class UndoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The call to take back; without one, the last that changed something."""

    call_id: str | None = None


class CallBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call."""

    call_id: str


class SayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the person."""

    text: str


class ResolveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do about a call in doubt."""

    call_id: str
    decision: Decision
    word: str | None = None
    """The name of its tool, typed out: what running it again takes besides a press."""


class StopBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to stop the turn at once, instead of what runs in it."""

    turn: bool = False


class PresetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The preset to work under."""

    name: str


class AgainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the person's to go on from: the same words, or others."""

    message: str
    text: str | None = None


class ConversationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation."""

    id: str


class RenameBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation and its new title."""

    id: str
    title: str


class ModelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model to try, and to ask from then on."""

    address: str
    model: str = ""
    key: str = ""

    def __repr__(self) -> str:
        """Without the key: whatever shows this may be kept somewhere."""
        return f"ModelBody(address=…, model={self.model!r})"


class AddServerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server to name."""

    name: str
    way: str
    """A command with its arguments, or an address."""
    given: str = ""
    """Variables of a command or headers of an address, `NAME=VALUE` in each line."""

    def __repr__(self) -> str:
        """Without what is given to it: that may be a secret, however it was meant."""
        return f"AddServerBody(name={self.name!r}, way=…)"


class ServerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server."""

    name: str


class TrustBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A yes to what was shown of an MCP server. `digest` is of exactly that."""

    name: str
    digest: str
    word: str | None = None
    """What was typed besides the press."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened."""


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing more to say."""
