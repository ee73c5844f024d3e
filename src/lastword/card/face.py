"""What a card says, as data: every word of it, marked and folded, before it gets a shape.

We write the tool's name, the effect, the arguments and the reasons. What the tool wrote is kept apart, so that a
surface can quote it and it is not mistaken for ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lastword.consent.approval import ALLOW, CANCEL, ApprovalRequest
from lastword.display import glyph, visible
from lastword.editor import Preview
from lastword.editor.diff import Row, diff_of, unified

# A card that fills more than a screen hides its own question. Longer values fold, and say how much is folded.
FOLD_LINES = 10
FOLD_CHARACTERS = 600
FOLD_ARGUMENTS = 20
FOLD_DIFF_LINES = 20
# The names of all files come first: which ones would change matters more than how. A longer list is not read.
FOLD_FILES = 100
# A label is a button, not a text.
MAX_LABEL = 40

_EFFECTS = {
    "none": "Changes nothing",
    "reversible": "Can be undone",
    "irreversible": "Cannot be undone",
    None: "Whether it can be undone is not known",
}
# A button that says no must not mean yes, whatever its tool calls it.
_SAYS_NO = {"cancel", "deny", "no", "close", "stop", "decline", "reject", "abort", "don't allow", "not now", "skip"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as it may be shown, and how many characters of it are not."""

    text: str
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Face:
    """The words of one card."""

    glyph: str
    color: str | None
    name: str
    tool: str
    description: str
    effect: str
    irreversible: bool
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
    diff: tuple[Row, ...]
    diff_hidden: int
    primary: str
    secondary: str
    editable: bool

    @property
    def folded(self) -> bool:
        """Whether anything is not shown."""
        return bool(
            self.arguments_hidden or self.message.hidden or self.diff_hidden or any(p.hidden for _, p in self.arguments)
        )


def face(request: ApprovalRequest, *, fold: bool = True) -> Face:
    """The words for a request; with `fold=False` all of them."""
    manifest = request.manifest
    given = request.shown_arguments
    # In the order in which the tool's author explains them, not in that of the canonical bytes.
    declared = [p.name for p in manifest.parameters if p.name in given]
    rows = [(name, given[name]) for name in [*declared, *(name for name in given if name not in declared)]]
    shown = rows[:FOLD_ARGUMENTS] if fold else rows
    diff, diff_hidden = diff_rows(request.preview, fold=fold)
    message = Passage("") if request.message == manifest.description else passage(request.message, fold=fold)
    title = "" if request.title == manifest.display_name else one_line(request.title)
    return Face(
        glyph=glyph(manifest.icon),
        color=manifest.color,
        name=one_line(manifest.display_name),
        tool=request.tool,
        description=one_line(manifest.description, 300),
        effect=_EFFECTS[manifest.effect],
        irreversible=manifest.effect == "irreversible",
        origin=one_line(request.origin),
        again=one_line(request.problem or "", 300),
        edited=request.author == "person",
        arguments=tuple((one_line(name), passage(literal(value), fold=fold)) for name, value in shown),
        arguments_hidden=len(rows) - len(shown),
        title=title,
        message=message,
        why_asked=_why_asked(request.missing),
        preview_label=one_line(request.preview_label or "", MAX_LABEL) or ("Preview" if request.preview else ""),
        diff=tuple(diff),
        diff_hidden=diff_hidden,
        primary=_primary(request.primary_button_label),
        secondary=one_line(request.secondary_button_label, MAX_LABEL) or CANCEL,
        editable=bool(manifest.parameters) or manifest.additional_parameters,
    )


def literal(value: Any) -> str:
    """A value as a JSON literal. A line break in a text also breaks the line, after its `\\n`; nothing else does."""
    if isinstance(value, str):
        # All lines in one go: a million of them one by one would keep every other card waiting for seconds. No string
        # of JSON holds the character that separates them here.
        lines = json.dumps(value.split("\n"), ensure_ascii=False, separators=("\0", ":"))
        return '"' + lines[2:-2].replace('"\0"', "\\n\n") + '"'
    short = json.dumps(value, ensure_ascii=False)
    return short if len(short) <= 60 else json.dumps(value, ensure_ascii=False, indent=2)


def passage(text: str, *, fold: bool = True) -> Passage:
    """A text with its marks, folded to its beginning when it is long."""
    kept = text
    if fold:
        kept = "\n".join(text.split("\n", FOLD_LINES)[:FOLD_LINES])[:FOLD_CHARACTERS]
    return Passage(visible(kept), len(text) - len(kept))


def one_line(text: str, limit: int = 120) -> str:
    """A text for a place with one line. A line break is shown as such; a longer text says how much longer it is."""
    kept = visible(text[:limit].replace("\n", "⏎"))
    return kept if len(text) <= limit else f"{kept}… ({len(text) - limit} more characters)"


def diff_rows(previews: Sequence[Preview], *, fold: bool = True) -> tuple[list[Row], int]:
    """What would change, as marked rows of a diff, and how many rows are not among them.

    Folded, every file is still named with what would happen to it; the files share the room for their lines.
    """
    rows: list[Row] = []
    hidden = 0
    room = FOLD_DIFF_LINES
    shown = previews[:FOLD_FILES] if fold else previews
    for number, preview in enumerate(shown):
        head, body = _head_and_body(preview)
        kept = min(len(body), room // (len(shown) - number)) if fold else len(body)
        room -= kept
        hidden += len(body) - kept
        rows += [*head, *body[:kept]]
        if 0 < kept < len(body) and len(shown) > 1:
            rows.append(_fold_row(body[kept:]))
    if len(previews) > len(shown):
        rest = [sum(map(len, _head_and_body(preview))) for preview in previews[len(shown) :]]
        rows.append(Row("fold", f"… and {len(rest)} more files"))
        hidden += sum(rest)
    # A tab in source code is no trick; it is shown, and does not shout.
    return [Row(row.kind, visible(row.text).replace("‹tab›", "⇥   ")) for row in rows], hidden


def _head_and_body(preview: Preview) -> tuple[list[Row], list[Row]]:
    """What would happen to a file, in words, and its lines. A text of the tool's own is no file, and all lines."""
    if not preview.path:
        return [], [Row("same", line) for line in (preview.proposed or "").split("\n")]
    rows = unified(diff_of(preview), fold_lines=None)
    head = 2 if len(rows) > 1 and rows[1].kind == "note" else 1
    return rows[:head], rows[head:]


def _fold_row(hidden: Sequence[Row]) -> Row:
    added, removed = (sum(row.kind == kind for row in hidden) for kind in ("added", "removed"))
    return Row("fold", f"… {len(hidden)} more rows of this file, with {added} lines added and {removed} removed")


def _primary(label: str) -> str:
    shown = one_line(label, MAX_LABEL) or ALLOW
    return f"{ALLOW} (the tool calls it “{shown}”)" if shown.casefold().strip(" .!") in _SAYS_NO else shown


def _why_asked(missing: tuple[str, ...]) -> str:
    if not missing:
        return ""
    reasons = {"preset": "your preset does not auto-approve", "tool": "this tool must not be auto-approved"}
    return "You are asked because " + ", and ".join(reasons[key] for key in missing) + "."
