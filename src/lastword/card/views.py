"""What surfaces show of a conversation: its items, their cards and forms, the inbox, and the events that tell of them.

One vocabulary for the page and for terminals. The page's TypeScript types are generated from these structs
(web/ui/generate_wire.py). Texts are marked and secrets are dots before they get here. What does not live here: what a
single request is answered (responses.py), how an item comes about (web/call_item.py), how it looks (terminal/, web/ui).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from lastword.consent import Kind as OutcomeKind
from lastword.tools import Effect, questions
from lastword.tools.content import BlockKind as ContentKind

Surface = Literal["page", "terminal"]
CallStatus = Literal["waiting", "running", "ended", "doubt", "left"]
"""`doubt`: it was started, and its end is not known. `left`: its program stopped before it was started."""
ScriptStatus = Literal["running", "done", "failed", "cancelled", "waiting", "left"]
Waits = Literal["waits", "ended", "unknown"]
"""Whether the program that asked hears an answer, as journal/programs.py says it."""
PreviewKind = Literal["text", "changed", "created", "deleted", "renamed", "unchanged"]
LineKind = Literal["same", "added", "removed", "gap"]
DiffRow = tuple[LineKind, int | None, int | None, str, tuple[tuple[int, int], ...], str]
"""A line of a diff: its number in the old and in the new text, the line, from and to of what its partner has not, in
units of sixteen bits, and what there is to say of it. A gap has the numbers of the first lines that are not shown."""


class ToolEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may ask for."""

    tool: str
    name: str
    about: str
    asks: bool
    auto_approve: bool
    grantable: bool
    """Whether a grant or a rule may answer for it, be it for exact arguments only."""
    effect: Effect | None
    parameters: tuple[str, ...]
    required: tuple[str, ...]
    secrets: tuple[str, ...]


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
    can_choose_model: bool = False
    """Whether a model can be chosen here: not where the configuration names one."""
    has_servers: bool = False  # Whether MCP servers can be looked at and added here.
    next_model: str = ""
    """The one that was chosen, and answers as soon as what runs is over."""


class CardArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of the call that a card asks about."""

    name: str
    shown_name: str
    type: str
    about: str
    shown: str
    fold: int | None
    """Where `shown` folds: so many units of sixteen bits are seen at first. None: all of it."""
    exact: str | None
    """The value as JSON, where `shown` is not that already."""
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

    A diff comes as `lines`. `base` and `proposed` are there to be seen side by side, unless they are too large.
    """

    path: str
    kind: PreviewKind
    text: str | None = None
    fold: int | None = None
    """Where `text` folds, as an argument does; of `lines`, how many are seen at first."""
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
    lines: tuple[DiffRow, ...] | None = None


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
    message_fold: int | None
    why_asked: str
    why_no_grant: str
    """Why it has no second step; nothing where it has one."""
    preview_heading: str
    primary: str
    secondary: str
    second: str | None
    """What the second button says where it is a yes of its own; `secondary` is then a third one."""
    offers_rest: bool
    """Whether one of the answers is a no to the rest of the script."""
    editable: bool
    word: str | None
    """What has to be typed before it can be allowed. None where a press is enough: it says that it can be undone."""
    folded: tuple[str, ...]
    """The parts that are not shown whole at first. Among several, a yes needs all of them opened."""
    must_open: tuple[str, ...]
    """The folded parts that have to be opened before it can be allowed: `argument NAME`, `message`, `preview 0`."""
    arguments: tuple[CardArgument, ...]
    left_out: tuple[MissingArgument, ...]
    previews: tuple[CardPreview, ...]


class CallReply(msgspec.Struct, frozen=True):
    """What was answered, and by whom."""

    how: Literal["allowed", "second", "edited", "denied", "closed", "auto", "standing", "ruled"]
    """`second`: allowed, with the second button. `standing`: nobody was asked, and `by` says why.
    `ruled`: the rule of `by` denied it."""
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

    kind: OutcomeKind
    words: str
    message: str
    """What the model was told, or its beginning."""
    hidden: int
    """How many characters of the message are not here."""
    success: bool
    own_words: str = ""
    """What the tool itself said to a no. The rest of that message is for the model, and a row says it already."""


class CallContent(msgspec.Struct, frozen=True, kw_only=True):
    """An image, a sound, a file or a text that a call returned. Its bytes are below /page/content."""

    kind: ContentKind
    digest: str
    name: str
    media_type: str
    size: str
    """In words."""
    alt: str = ""


class FormChoice(msgspec.Struct, frozen=True):
    """One of the values to choose from."""

    value: str
    label: str


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """Something to fill in. It begins empty, whatever it is."""

    name: str
    label: str
    about: str
    kind: questions.FieldKind
    kind_words: str
    required: bool
    secret: bool
    choices: tuple[FormChoice, ...]


class QuestionView(msgspec.Struct, frozen=True, kw_only=True):
    """A running tool wants to know something. It asks for no consent, and gets none."""

    id: str
    about: str
    """What the tool does, as its manifest says."""
    message: str
    message_fold: int | None
    goes_to: str
    fields: tuple[FormField, ...]
    can_give: bool
    """Whether an answer can be given here: a secret does not travel to another program."""


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
    question: QuestionView | None = None
    """What the tool asks while it runs."""
    reply: CallReply | None = None
    reports: tuple[CallReport, ...] = ()
    reported_so_far: int = 0
    stopping: bool = False
    end: CallEnd | None = None
    content: tuple[CallContent, ...] = ()
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
    turn: int | None = None
    """Of the person's words: the turn that they began, from which the conversation can go on differently."""
    raw: str | None = None
    """Of the person's words: what they typed, where `text` has marks."""
    used: str = ""
    """Under an answer: which tools were used for it, in words."""
    tokens: int | None = None
    """Under an answer: what the model's server counted for it, where it does."""
    reasoning: str = ""
    """What the model thought before it answered. It is folded away, and no part of the answer."""


Item = CallItem | ScriptItem | MessageItem


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A card that waits, in short."""

    id: str
    digest: str
    """Of the question as it is now: a card that is asked again has another one."""
    tool: str
    name: str
    glyph: str
    color: str | None
    effect: Effect | None
    effect_words: str
    sentence: str
    summary: str
    """The arguments in one line, cut where that is not enough."""
    session: str | None
    """None for a card of the window's own conversation."""
    program: str
    """Who asks, in words; empty for the window's own conversation."""
    origin: str
    asked_at: float
    asker: Waits = "waits"
    alone: bool
    """Whether it is allowed by itself only: it cannot be undone, or nobody said that it can."""
    alike: str
    """The same for cards of the same tool of the same program."""


class InboxGone(msgspec.Struct, frozen=True):
    """A card that does not wait any more."""

    id: str
    reply: CallReply | None
    """Who answered it and how; None when it has ended without an answer."""
    end: CallEnd | None = None
    at: float | None = None
    """How and when its call has ended, where that is known. Of one that was allowed it comes later."""


class InboxMissed(msgspec.Struct, frozen=True):
    """A card that nobody answered in time. Its call is over, and nothing of it was done."""

    entry: InboxEntry
    at: float
    """When its time was up."""


class InboxChange(msgspec.Struct, frozen=True):
    """What has changed in the inbox: new or changed entries, and those that are gone."""

    put: tuple[InboxEntry, ...] = ()
    gone: tuple[InboxGone, ...] = ()
    missed: tuple[InboxMissed, ...] | None = None
    """Those that nobody answered in time, all of them; None when they are as before."""


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, for a window that has just come."""

    session: str
    items: tuple[Item, ...]
    has_earlier: bool = False
    """Whether there was something before them, for whoever asks."""
    busy: bool
    settings: Settings
    inbox: tuple[InboxEntry, ...] = ()
    """What waits for an answer, of all programs."""
    missed: tuple[InboxMissed, ...] = ()
    """What nobody answered in time, the newest last."""
    token: str
    """What this window has to show to change something."""
    window: str
    """The name of this window."""


class TextPiece(msgspec.Struct, frozen=True):
    """More of a message that is being written: keep so many units of sixteen bits, and put the text behind them."""

    id: str
    keep: int
    text: str


class Splice(msgspec.Struct, frozen=True):
    """A list that has changed: from `at` on, so many entries are cut out and these are put in their place."""

    field: str
    at: int
    cut: int
    put: tuple[Any, ...]


class ItemDelta(msgspec.Struct, frozen=True):
    """What is new about an item that is shown already: some fields as they are now, and what changed in its lists."""

    id: str
    fields: dict[str, Any]
    splices: tuple[Splice, ...] = ()


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
    delta: ItemDelta
    gone: ItemGone
    piece: TextPiece
    busy: BusyState
    settings: Settings
    inbox: InboxChange
