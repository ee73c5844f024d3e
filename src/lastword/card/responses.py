"""What a request of a window is answered: what was done, and what was asked for.

One vocabulary for the page and for terminals, as in views.py, which has what a window is shown by events. What servers,
clients and tools say is marked before it comes here.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from lastword.card.views import CallItem, CardPreview, Item, ScriptItem
from lastword.consent import Scope as Scope

GRANT_WORD = "grant"
"""What is typed before the press that grants. Another word than the one that allows a single call."""


class EarlierItems(msgspec.Struct, frozen=True):
    """What was before everything that a window has been told, oldest first."""

    items: tuple[Item, ...]


class SessionSpan(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """A session, from its first call to its last one."""

    id: str
    first: float
    last: float


class SessionTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """The calls and scripts of a session with their times, and which other sessions there are."""

    session: str
    own: str
    calls: tuple[CallItem, ...]
    runs: tuple[ScriptItem, ...]
    left_out: int
    sessions: tuple[SessionSpan, ...]


class ExportedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the journal, whole, for a file."""

    seq: int
    session: str
    kind: str
    subject: str
    at: float
    data: Any
    digest: str


class CardQuestion(msgspec.Struct, frozen=True):
    """What a card asks, for a window that draws it itself: unmarked, with secrets as digests."""

    facts: dict[str, Any]
    manifest: dict[str, Any]
    why_no_grant: str = ""


class SharedText(msgspec.Struct, frozen=True):
    """What the tools of the session know, as the model is told."""

    text: str


class TokenTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What the model's server counted for the answers of a conversation, since it began."""

    tokens: int
    answers: int
    uncounted: int
    """Answers for which it counted nothing."""
    taken_back: int
    """Answers in the sum that do not count any more, because the person went back to an earlier message."""
    words: str


class ConversationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in the list."""

    id: str
    title: str
    at: float
    """When it was opened last."""
    is_open: bool
    found: str = ""
    """Where words were looked for: the line that has them, when the title has not."""


class ConversationsFound(msgspec.Struct, frozen=True):
    """The conversations of the page, newest first."""

    conversations: tuple[ConversationEntry, ...]
    unsearched: int = 0
    """Where words were looked for: how many of the others were looked into by their titles only."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Something was done."""

    event: str = ""
    """The newest event. A window that has seen it has seen what was done at once."""


class DoneInWords(Done, frozen=True, kw_only=True):
    """Something was done that needs words."""

    message: str


class TriedModel(Done, frozen=True, kw_only=True):
    """A model was tried and kept, and this is what it can do."""

    model: str
    streams: bool
    native: bool
    """Whether it asks for tools in its own way."""
    grammar: bool
    """Whether it can be held to a form."""
    context_tokens: int | None
    protocols: tuple[str, ...]
    """Those in which it asked for a tool."""
    unlisted: str
    """That its server does not list it, in words with the nearest that it lists; empty when it does."""


class NewKey(Done, frozen=True, kw_only=True):
    """A key was made."""

    path: str
    """Opens the page once."""


class AnswerResult(msgspec.Struct, frozen=True):
    """What became of one answer among several."""

    call_id: str
    code: str | None = None
    """None: it counts. Else why it does not."""
    message: str = ""


class DoneSeverally(Done, frozen=True, kw_only=True):
    """Several cards were answered, each by itself."""

    results: tuple[AnswerResult, ...]


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    id: str
    name: str
    withheld: str = ""
    """Why it is not offered; nothing where it is."""


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server of the configuration, and how it stands."""

    name: str
    state: Literal["not trusted", "changed", "trusted", "running"]
    way: tuple[tuple[str, str], ...]
    """How it is reached: nothing expanded."""
    changed: tuple[str, ...] = ()
    """What is not as it was trusted on the way to it."""
    tools: tuple[ServerTool, ...] = ()
    """Those that were trusted."""
    new: tuple[str, ...] = ()
    """Those that it lists and nobody has looked at."""
    version: str = ""
    last_error: str = ""


class ClientEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A program that uses our tools over MCP."""

    name: str
    """What it calls itself."""
    way: str
    since: float


class ServersFound(msgspec.Struct, frozen=True, kw_only=True):
    """MCP, both ways: the servers whose tools are used here, and the clients that use ours."""

    place: str
    """The file that names the servers."""
    servers: tuple[ServerEntry, ...]
    clients: tuple[ClientEntry, ...]


class ServerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked before a server is started or contacted, so that its tools can be looked at."""

    name: str
    digest: str
    way: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    rights: str
    word: str | None
    """What has to be typed besides the press; None where it was trusted to be started as it is."""


class SeenTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that nobody has trusted yet, in its server's words."""

    id: str
    loud: bool
    """Whether it says of itself that it destroys."""
    about: str
    fold: int | None
    arguments: str


class SeenServer(Done, frozen=True, kw_only=True):
    """A server was looked at, and this is what it says. Nothing of it is trusted by that."""

    name: str
    digest: str
    """Of what is shown: whoever trusts names it."""
    version: str
    version_before: str
    unusable: tuple[str, ...]
    tools: tuple[SeenTool, ...]
    """All of them, of a server that was never trusted."""
    changes: tuple[CardPreview, ...]
    """What changed since it was trusted, tool by tool."""
    count: int
    same: bool
    """Whether it is as it was trusted; then there is nothing to ask."""
    word: str
    must_open: tuple[str, ...]
    """The folded parts that have to be opened before it is trusted."""


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
