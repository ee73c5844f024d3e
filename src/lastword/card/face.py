"""What cards say, as data: every word, marked and folded, before it gets a shape.

Of a card that asks for consent we write the tool's name, the effect, the arguments and the reasons; of a question that
a running tool asks, where the answer goes. What the tool wrote is kept apart, so that a surface can quote it and it is
not mistaken for ours.

An entry of the inbox says enough to find a card and to tell it from others; the card itself is fetched when somebody
looks at it, so a thousand of them cost a window no more than a list. What does not live here: the structs that travel
to windows (views.py), and where entries come from (web/conversation.py, web/other_sessions.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from lastword.card.text import Passage, beginning, in_one_line, literal, one_line, passage, readable
from lastword.card.views import FormChoice, FormField, InboxEntry, QuestionView, Waits
from lastword.consent import ApprovalRequest, Secrets
from lastword.display import TAB, color_name, glyph, is_plain, units, visible, visible_parts
from lastword.editor import DrawnOnce, FileDiff, Preview, Row

if TYPE_CHECKING:
    from lastword.tools import Manifest, ToolQuestion, questions

FOLD_ARGUMENTS = 20
# The names of all files come first: which ones would change matters more than how. A longer list is not read.
FOLD_FILES = 100
# The rows of long texts are kept for as many characters of them.
KEPT_CHARACTERS = 16_000_000
# A label is a button, not a text.
MAX_LABEL = 40
# What a row shows of the arguments. The card has all of them.
MAX_SUMMARY = 160
MAX_VALUE = 60
MAX_ROW = 300
MAX_NAMED = 6
# Of the name of a program. The number of its process stands behind it, however long it is.
MAX_PROGRAM = 60

EFFECT_WORDS = {
    "none": "Changes nothing",
    "reversible": "Can be undone",
    "irreversible": "Cannot be undone",
    None: "Whether it can be undone is not known",
}
# A button that says no must not mean yes, whatever its tool calls it.
_SAYS_NO = {"cancel", "deny", "no", "close", "stop", "decline", "reject", "abort", "don't allow", "not now", "skip"}

_FIELD_KINDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "choice": "choice",
}


@dataclass(frozen=True, slots=True)
class SecondAct:
    """A word that is typed out besides the press.

    One press can be an accident. A word in one place and a press in another are none: every surface asks for both
    before a call is allowed that cannot be undone, or does not say whether it can, and the paths below /page/ refuse an
    answer that comes without the word. A tool that says `reversible` or `none` needs the press alone.
    """

    word: str
    why: str = ""
    """Why one press is not enough, as the beginning of a sentence."""

    @classmethod
    def of(cls, request: ApprovalRequest) -> SecondAct | None:
        """The one that allowing this call needs; None where a press is enough."""
        manifest = request.manifest
        if not manifest.counts_as_irreversible:
            return None
        is_said = manifest.effect == "irreversible"
        return cls("allow", "this cannot be undone" if is_said else "its tool does not say whether this can be undone")

    def is_done(self, typed: str | None) -> bool:
        """Whether the word was typed. A phone begins it with a capital, and ends it with a space."""
        return typed is not None and typed.strip().casefold() == self.word


@dataclass(frozen=True, slots=True)
class Face:
    """The words of one card."""

    FOLD_DIFF_LINES: ClassVar = 20
    GRANT_WORDS: ClassVar = {
        "ask": "Don't ask again…",
        "title": "Allow, and don't ask again",
        "how_long": "how long",
        "ends_after": "ends after",
        "not_whole": "The number of calls is a whole number above 0.",
        "back": "Back to the card",
    }
    """What the second step says on every surface, whatever the card. The page has it from wire.ts."""
    NO_GRANTS: ClassVar = "You have no grants. One is given from a card, in a second step."
    """Of whoever looks: others who share the memory may have some, which are not theirs to see."""

    glyph: str
    color: str | None
    name: str
    tool: str
    description: str
    effect: str
    irreversible: bool
    """Whether its tool says that it cannot be undone."""
    second_act: SecondAct | None
    """What a yes takes besides the press."""
    origin: str
    again: str
    """Why the same call is asked again; empty the first time."""
    edited: bool
    arguments: tuple[tuple[str, Passage], ...]
    arguments_hidden: int
    title: str
    message: Passage
    why_asked: str
    preview_label: str
    """What the button says that shows the preview, or all of it."""
    preview_heading: str
    diff: tuple[Row, ...]
    diff_hidden: int
    primary: str
    secondary: str
    """What the button says that says no."""
    second: str
    """What the second button says where it is a yes of its own; empty where it says no."""
    editable: bool
    offers_rest: bool
    """Whether one of the answers is a no to the rest of the script."""

    @staticmethod
    def looks(tool: Manifest | ToolQuestion) -> dict[str, Any]:
        """Name, sign and colour of a tool, from its manifest or from what it asks."""
        return {"name": one_line(tool.display_name), "glyph": glyph(tool.icon), "color": color_name(tool.color)}

    @classmethod
    def of(
        cls,
        request: ApprovalRequest,
        *,
        fold: bool = True,
        exact: bool = False,
        given: dict[str, Any] | None = None,
        preview: bool = True,
    ) -> Face:
        """The words for a request; with `fold=False` all of them, and with `exact` every value as JSON.

        Who has its shown arguments at hand gives them, and who draws its preview themselves says so: of a change of
        megabytes neither is made twice for nothing.
        """
        manifest = request.manifest
        rows = list((request.shown_arguments if given is None else given).items())
        shown = rows[:FOLD_ARGUMENTS] if fold else rows
        read = literal if exact else readable
        diff, diff_hidden = diff_rows(request.preview if preview else (), fold=fold)
        message = Passage("") if request.message == manifest.description else passage(request.message, fold=fold)
        title = "" if request.title == manifest.display_name else one_line(request.title)
        return cls(
            glyph=glyph(manifest.icon),
            color=manifest.color,
            name=one_line(manifest.display_name),
            tool=request.tool,
            description=one_line(manifest.description, 300),
            effect=EFFECT_WORDS[manifest.effect],
            irreversible=manifest.effect == "irreversible",
            second_act=SecondAct.of(request),
            origin=one_line(request.origin),
            again=one_line(request.problem or "", 300),
            edited=request.author == "person",
            # Dots without quotes are ours: a text of dots keeps its own.
            arguments=tuple(
                (one_line(name), Passage(Secrets.MASK) if name in manifest.secrets else passage(read(value), fold=fold))
                for name, value in shown
            ),
            arguments_hidden=len(rows) - len(shown),
            title=title,
            message=message,
            why_asked=_why_asked(
                request.missing, visible(request.rule_line), request.denials if request.offers_rest else 0
            ),
            preview_label=one_line(request.preview_label or "", MAX_LABEL) or ("Preview" if request.preview else ""),
            preview_heading="What would change" if any(p.path for p in request.preview) else "What the tool shows",
            diff=tuple(diff),
            diff_hidden=diff_hidden,
            primary=_primary(request.primary_button_label),
            secondary=ApprovalRequest.DENY if manifest.secondary_acts else _secondary(request.secondary_button_label),
            second=_second(request.secondary_button_label) if manifest.secondary_acts else "",
            editable=bool(manifest.parameters) or manifest.additional_parameters,
            offers_rest=request.offers_rest,
        )

    @staticmethod
    def keep_rows(request: ApprovalRequest) -> None:
        """Make the rows of long previews, which takes moments, for all who show them later."""
        diff_rows(request.preview, fold=False)

    @staticmethod
    def rows(arguments: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
        """Arguments as the rows of a list have them, marked. Whoever calls it has made dots of the secrets."""
        return tuple((one_line(name), one_line(in_one_line(value), MAX_ROW)) for name, value in arguments.items())

    @property
    def folded(self) -> bool:
        """Whether anything is not shown."""
        return bool(
            self.arguments_hidden or self.message.hidden or self.diff_hidden or any(p.hidden for _, p in self.arguments)
        )


def question_view(question: ToolQuestion, *, elsewhere: bool = False) -> QuestionView:
    """A question as surfaces get it; `elsewhere` when another program asks, to which no secret can be given."""
    shown = beginning(question.message)
    return QuestionView(
        id=question.id,
        about=one_line(question.description, 300),
        message=visible(question.message),
        message_fold=None if shown == question.message else units(visible(shown)),
        goes_to=f"Your answer goes to {question.tool}, the tool that is running. "
        "It is no approval, and lets nothing else happen.",
        fields=tuple(_field(field) for field in question.fields),
        can_give=not (elsewhere and any(field.secret and field.required for field in question.fields)),
    )


def entry_of(
    request: ApprovalRequest, asked_at: float, *, session: str | None, program: str = "", asker: Waits = "waits"
) -> InboxEntry:
    """The entry of a question of this program, as it is `called`. Nothing of its preview is drawn for it."""
    manifest = request.manifest
    # Whose it is counts and not what it is called: a program chooses its own name.
    alike = f"{session} {program} {request.tool} {request.tool_digest}"
    return InboxEntry(
        id=request.call_id,
        digest=request.digest,
        tool=request.tool,
        **Face.looks(manifest),
        effect=manifest.effect,
        effect_words=EFFECT_WORDS[manifest.effect],
        sentence=one_line(manifest.description, 300),
        summary=summary_of(request.shown_arguments),
        session=session,
        program=program,
        origin=one_line(request.origin),
        asked_at=asked_at,
        asker=asker,
        alone=manifest.counts_as_irreversible,
        alike=sha256(alike.encode()).hexdigest()[:16],
    )


def called(program: str, process: str, session: str, namesakes: int = 1) -> str:
    """What a program is called on every screen, so that none passes for another one or for the person's own assistant.

    It chose its name itself. `namesakes`: how many programs that ask now have chosen the same.
    """
    if not program:
        return f"a program, session {session[:8]}"
    known = re.fullmatch(r"(.+), process ([1-9][0-9]{0,9})", program, re.DOTALL)
    # Blanks that a reader passes over would make two names of one.
    if known is None or known[1] != " ".join(known[1].split()):
        words = f"a program that calls itself “{one_line(program, MAX_PROGRAM)}”"
    else:
        words = f"{one_line(known[1], MAX_PROGRAM)}, process {known[2]}"
    # Ids begin with their time, which programs that were started together share.
    return words if namesakes < 2 else f"{words} (one of {namesakes} of this name: {one_line(process[-6:])})"


def summary_of(arguments: Mapping[str, object]) -> str:
    """Arguments in a line, marked: enough to tell a call from others. Whoever calls it has made dots of the secrets."""
    given = list(arguments.items())
    named = [f"{name}: {_short(value)}" for name, value in given[:MAX_NAMED]]
    more = [f"and {len(given) - MAX_NAMED} more"] if len(given) > MAX_NAMED else []
    return one_line(", ".join([*named, *more]), MAX_SUMMARY)


def _short(value: object) -> str:
    text = in_one_line(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def diff_rows(previews: Sequence[Preview], *, fold: bool = True) -> tuple[list[Row], int]:
    """What would change, as marked rows of a diff, and how many rows are not among them.

    Folded, every file is still named with what would happen to it; the files share the room for their lines.
    """
    rows: list[Row] = []
    hidden = 0
    room = Face.FOLD_DIFF_LINES
    shown = previews[:FOLD_FILES] if fold else previews
    for number, preview in enumerate(shown):
        head, body = _rows(preview)
        kept = min(len(body), room // (len(shown) - number)) if fold else len(body)
        room -= kept
        hidden += len(body) - kept
        rows += [*head, *body[:kept]]
        if 0 < kept < len(body) and len(shown) > 1:
            rows.append(_fold_row(body[kept:]))
    if len(previews) > len(shown):
        rest = [sum(map(len, _rows(preview))) for preview in previews[len(shown) :]]
        rows.append(Row("fold", f"… and {len(rest)} more files"))
        hidden += sum(rest)
    return rows, hidden


def _field(field: questions.QuestionField) -> FormField:
    return FormField(
        name=field.name,
        label=one_line(field.title or field.name),
        about=one_line(field.description, 300),
        kind=field.kind,
        kind_words=_FIELD_KINDS[field.kind],
        required=field.required,
        secret=field.secret,
        choices=tuple(FormChoice(choice.value, one_line(choice.title)) for choice in field.choices),
    )


def _marked(rows: list[Row]) -> list[Row]:
    """The rows with their marks. Thousands without any, as most are, take one look."""
    texts = "\n".join(row.text for row in rows)
    # A tab ends a run of spaces, as any character does.
    if not is_plain(texts.replace("\t", "|")):
        marked = [(row, *marked_spans(row.text, row.changed, len)) for row in rows]
        return [Row(row.kind, shown, row.old, row.new, changed) for row, shown, changed in marked]
    return [_tabbed(row) if "\t" in row.text else row for row in rows] if "\t" in texts else rows


def _tabbed(row: Row) -> Row:
    def moved(place: int) -> int:
        return place + row.text.count("\t", 0, place) * (len(TAB) - 1)

    changed = tuple((moved(start), moved(end)) for start, end in row.changed)
    return Row(row.kind, row.text.replace("\t", TAB), row.old, row.new, changed)


def marked_spans(
    text: str, changed: Sequence[tuple[int, int]], size: Callable[[str], int]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A line with its marks, and where what changed is between them, in whatever a surface counts."""
    shown, spans, at = "", [], 0
    for number, part in enumerate(visible_parts(text, [cut for span in changed for cut in span])):
        part = part.replace("‹tab›", TAB)
        end = at + size(part)
        if number % 2:
            spans.append((at, end))
        shown, at = shown + part, end
    return shown, tuple(spans)


def _rows(preview: Preview) -> tuple[list[Row], list[Row]]:
    """What would happen to a file, in words, and its lines, marked. Those of long texts are made once."""
    return _KEPT.of(preview)


def _head_and_body(preview: Preview) -> tuple[list[Row], list[Row]]:
    """A text of the tool's own is no file, and all lines."""
    if not preview.path:
        return [], _marked([Row("same", line) for line in (preview.proposed or "").split("\n")])
    rows = _marked(FileDiff.of(preview).rows(fold_lines=None))
    head = 2 if len(rows) > 1 and rows[1].kind == "note" else 1
    return rows[:head], rows[head:]


_KEPT = DrawnOnce(_head_and_body, KEPT_CHARACTERS)


def _fold_row(hidden: Sequence[Row]) -> Row:
    added, removed = (sum(row.kind == kind for row in hidden) for kind in ("added", "removed"))
    return Row("fold", f"… {len(hidden)} more rows of this file, with {added} lines added and {removed} removed")


def _primary(label: str) -> str:
    shown = one_line(label, MAX_LABEL) or ApprovalRequest.ALLOW
    return (
        f"{ApprovalRequest.ALLOW} (the tool calls it “{shown}”)" if shown.casefold().strip(" .!") in _SAYS_NO else shown
    )


def _secondary(label: str) -> str:
    shown = one_line(label, MAX_LABEL)
    return ApprovalRequest.DENY if not shown or shown.casefold() == ApprovalRequest.CANCEL.casefold() else shown


def _second(label: str) -> str:
    """A second button that acts must not look as if it did not."""
    shown = one_line(label, MAX_LABEL)
    if not _says_no(shown):
        return shown
    return f"{ApprovalRequest.ALLOW} the second way" + (f" (the tool calls it “{shown}”)" if shown else "")


def _says_no(label: str) -> bool:
    return not label or label.casefold().strip(" .!") in _SAYS_NO


def _why_asked(missing: tuple[str, ...], rule_line: str, denials: int) -> str:
    """Why a person is asked although a rule or a key is there. Without any there is nothing to explain."""
    before = f"You denied the last {denials} calls of this script." if denials else ""
    if rule_line:
        return f"{rule_line} {before}".rstrip()
    match missing:
        case ("preset",):
            return f"Asked because your preset does not auto-approve. {before}".rstrip()
        case ("tool",):
            return f"Asked because this tool must not be auto-approved. {before}".rstrip()
    return before
