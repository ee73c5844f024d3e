"""What the page and the terminal show of a conversation: the shape of everything that the paths below /page/ send.

The page's TypeScript types are generated from these structs (web/ui/generate_wire.py). Texts are marked (display.py)
and secrets are dots before they get here. What does not live here: how an item comes about (web/story.py and
web/conversation.py) and how it looks (terminal/transcript.py, web/ui).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from lastword.consent.outcome import Kind
from lastword.tools.manifest import Effect

Surface = Literal["page", "terminal"]
"""The kinds of windows."""
CallStatus = Literal["waiting", "running", "ended", "doubt", "left"]
"""`doubt`: it was started, and its end is not known. `left`: its program stopped before it was started."""
ScriptStatus = Literal["running", "done", "failed", "cancelled", "waiting", "left"]
PreviewKind = Literal["text", "changed", "created", "deleted", "renamed", "unchanged"]
RowKind = Literal["file", "note", "hunk", "same", "added", "removed", "fold"]


class CardArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of the call that a card asks about."""

    name: str
    shown_name: str
    type: str
    about: str
    shown: str
    raw: str
    """The value to begin editing with: a text as it is, everything else as JSON. Empty for a secret."""
    marked: bool
    """Whether `shown` has marks that `raw` has not."""
    secret: bool
    in_preview: bool
    """Whether it is the text of the preview, and edited there."""


class MissingArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that the call does without, and that a person may add."""

    name: str
    shown_name: str
    type: str
    about: str
    secret: bool


class CardPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What would change in a file, or a text of the tool's own, which has no path.

    A diff is drawn from `base` and `proposed`; where they are too large, it comes as `rows`.
    """

    path: str
    kind: PreviewKind
    text: str | None = None
    added: int = 0
    removed: int = 0
    renamed_to: str | None = None
    note: str = ""
    content: str | None = None
    """The argument that holds the proposed text, where editing one means editing the other."""
    base: str | None = None
    proposed: str | None = None
    raw: str | None = None
    """The proposed text without marks, where it can be edited."""
    marks: tuple[tuple[int, int, str], ...] = ()
    """Of `raw`: from, to and mark, in units of sixteen bits."""
    rows: tuple[tuple[RowKind, str], ...] | None = None


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits: everything that a person needs to decide."""

    digest: str
    sentence: str
    effect: Effect | None
    effect_words: str
    origin: str
    again: str
    edited: bool
    title: str
    message: str
    why_asked: str
    preview_label: str
    primary: str
    secondary: str
    editable: bool
    arguments: tuple[CardArgument, ...]
    left_out: tuple[MissingArgument, ...]
    previews: tuple[CardPreview, ...]


class CallReply(msgspec.Struct, frozen=True):
    """What was answered, and by whom."""

    how: Literal["allowed", "edited", "denied", "closed", "auto"]
    by: str
    reason: str = ""
    surface: Surface | None = None
    """The kind of window in which it was answered; None when it was none of ours."""


class CallReport(msgspec.Struct, frozen=True):
    """A line of progress. The same id replaces the earlier line."""

    id: str | None
    text: str
    fraction: float | None
    number: int = 0
    """Counts the reports of a call, so that a window that has seen some of them knows which are new."""


class CallEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    kind: Kind
    words: str
    message: str
    """What the model was told, or its beginning."""
    hidden: int
    """How many characters of the message are not here."""
    success: bool
    own_words: str = ""
    """What the tool itself said to a no. The rest of that message is for the model, and a row says it already."""


class CallItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="call"):
    """A call of a tool."""

    id: str
    tool: str = ""
    name: str = ""
    glyph: str = "◆"
    color: str | None = None
    origin: str = ""
    run: str | None = None
    """The script that made it."""
    line: int | None = None
    """The line of that script."""
    session: str | None = None
    """Of a call that another program made."""
    status: CallStatus = "waiting"
    arguments: tuple[tuple[str, str], ...] = ()
    card: CardView | None = None
    reply: CallReply | None = None
    reports: tuple[CallReport, ...] = ()
    reported_so_far: int = 0
    stopping: bool = False
    end: CallEnd | None = None
    changed: tuple[str, ...] = ()
    undone_by: str | None = None
    undone_on: Surface | None = None
    """The kind of window in which it was undone; None when it was none of ours."""
    times_asked: int = 0
    asked_at: float | None = None
    answered_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None


class ScriptItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """A script being carried out. Its calls are items of their own, and name it."""

    id: str
    name: str | None = None
    """None for one that was given none: those that the assistant writes."""
    text: str = ""
    status: ScriptStatus = "running"
    lines: tuple[str, ...] = ()
    printed: int = 0
    """How many lines there were, with those that are not shown any more."""
    error: str = ""
    at: float = 0.0


class MessageItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    """Words: of the person, of the model, or of this program."""

    id: str
    by: Literal["you", "assistant", "lastword"]
    text: str = ""
    at: float = 0.0
    open: bool = False
    """Whether more of it is still coming."""
    window: str = ""
    """The window in which the person wrote it."""
    problem: bool = False
    """Whether it is about something that went wrong, and may quote what others wrote."""


Item = CallItem | ScriptItem | MessageItem


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may ask for."""

    tool: str
    name: str
    about: str
    asks: bool
    auto_approve: bool
    effect: Effect | None
    parameters: tuple[str, ...]
    required: tuple[str, ...]


class PresetChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A preset to work under."""

    name: str
    auto_approve: bool = False
    protocol: str = ""
    model: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the assistant works now."""

    model: str = ""
    rehearsal: bool = False
    preset: str = ""
    presets: tuple[PresetChoice, ...] = ()
    tools: tuple[ToolEntry, ...] = ()

    @property
    def chosen(self) -> PresetChoice:
        """The preset that is worked under."""
        return next((p for p in self.presets if p.name == self.preset), PresetChoice(name=self.preset))


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, for a window that has just come."""

    session: str
    items: tuple[Item, ...]
    busy: bool
    settings: Settings
    token: str
    """What this window has to show to change something."""
    window: str
    """The name of this window."""


class TextPiece(msgspec.Struct, frozen=True):
    """More of a message that is being written: keep so many units of sixteen bits, and put the text behind them."""

    id: str
    keep: int
    text: str


class ItemGone(msgspec.Struct, frozen=True):
    """An item is not shown any more."""

    id: str


class BusyState(msgspec.Struct, frozen=True):
    """Whether the model or a tool works, or a card of theirs waits."""

    busy: bool


class PageEvents(msgspec.Struct, frozen=True):
    """The events by their kinds, each with its data."""

    state: PageState
    item: Item
    gone: ItemGone
    piece: TextPiece
    busy: BusyState
    settings: Settings


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


class SharedText(msgspec.Struct, frozen=True):
    """What the tools of the session know, as the model is told."""

    text: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Something was done."""

    event: str
    """The newest event. A window that has seen it has seen what was done at once."""


class DoneInWords(Done, frozen=True, kw_only=True):
    """Something was done that needs words."""

    message: str


class NewKey(Done, frozen=True, kw_only=True):
    """A key was made."""

    path: str
    """Opens the page once."""
