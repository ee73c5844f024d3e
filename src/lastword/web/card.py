"""A question as data for the page: the words of its face, its arguments with their types, its previews as texts.

Everything that came from a model or a tool is marked here, by the rules of display.py, so that the page cannot forget
to. Secrets are dots. Raw texts go along only where a person can edit them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from lastword import values
from lastword.card.face import Face, diff_rows, face, literal, one_line
from lastword.card.items import CardArgument, CardPreview, CardQuestion, CardView, MissingArgument
from lastword.card.units import units
from lastword.consent.approval import CANCEL, ApprovalRequest
from lastword.display import marks, visible
from lastword.editor import Preview
from lastword.editor.diff import diff_of

# A text beyond this is not edited in a card, and its diff goes as rows.
MAX_TEXT = 400_000


def card_of(request: ApprovalRequest) -> CardView:
    """Everything that a person needs to decide."""
    words = face(request, fold=False)
    content = _content_of(request)
    return CardView(
        digest=request.digest,
        sentence=words.description,
        effect=request.manifest.effect,
        effect_words=words.effect,
        origin=words.origin,
        again=words.again,
        edited=words.edited,
        title=words.title,
        message=words.message.text,
        why_asked=words.why_asked,
        preview_label=words.preview_label,
        primary=words.primary,
        # On a page that can also be closed, Cancel would not say that it is an answer.
        secondary="Deny" if words.secondary == CANCEL else words.secondary,
        editable=words.editable,
        arguments=tuple(_arguments(request, words, content)),
        left_out=tuple(_left_out(request)),
        previews=tuple(
            _preview(preview, content if len(request.preview) == 1 else None) for preview in request.preview
        ),
    )


def question_of(request: ApprovalRequest) -> CardQuestion:
    """The same for a window that draws it itself: unmarked, with secrets as digests, and with the tool's manifest."""
    return CardQuestion(request.facts(), msgspec.to_builtins(request.manifest))


def _content_of(request: ApprovalRequest) -> str | None:
    """The argument that holds the proposed text, when editing the one means editing the other."""
    name = request.manifest.content_parameter
    previews = request.preview
    if name is None or len(previews) != 1 or name in request.manifest.secrets:
        return None
    proposed = previews[0].proposed
    return name if proposed is not None and request.arguments.get(name) == proposed else None


def _arguments(request: ApprovalRequest, words: Face, content: str | None) -> Iterator[CardArgument]:
    secrets = request.manifest.secrets
    given = request.arguments
    declared = {parameter.name: parameter for parameter in request.manifest.parameters}
    ordered = [*(name for name in declared if name in given), *(name for name in given if name not in declared)]
    for name, (shown_name, passage) in zip(ordered, words.arguments, strict=True):
        parameter = declared.get(name)
        is_secret = name in secrets
        kind = parameter.type if parameter is not None else "any"
        is_text = isinstance(given[name], str) and kind in ("string", "any")
        # What is edited is the text itself, or JSON: the type is restored where the edit is read (web/answers.py).
        raw = "" if is_secret else given[name] if is_text else values.canonical(given[name]).decode()
        yield CardArgument(
            name=name,
            shown_name=shown_name,
            type="string" if is_text else kind if kind != "any" else values.type_name[type(given[name])],
            about=one_line(parameter.description, 200) if parameter is not None else "",
            shown=passage.text,
            raw=raw,
            marked=not is_secret and visible(literal(given[name])) != literal(given[name]),
            secret=is_secret,
            in_preview=name == content,
        )


def _left_out(request: ApprovalRequest) -> Iterator[MissingArgument]:
    """The arguments that the call does without, and that a person may add."""
    given = request.arguments
    for parameter in request.manifest.parameters:
        if parameter.name not in given:
            yield MissingArgument(
                name=parameter.name,
                shown_name=one_line(parameter.name),
                type=parameter.type,
                about=one_line(parameter.description, 200),
                secret=parameter.secret,
            )


def _preview(preview: Preview, content: str | None) -> CardPreview:
    if not preview.path:
        return CardPreview(path="", kind="text", text=visible(preview.proposed or ""))
    diff = diff_of(preview)
    base, proposed = preview.base or "", preview.proposed or ""
    shown = CardPreview(
        path=one_line(preview.path, 300),
        kind=diff.kind,
        added=diff.added,
        removed=diff.removed,
        renamed_to=None if diff.renamed_to is None else one_line(diff.renamed_to, 300),
        note=diff.note or "",
    )
    if len(base) + len(proposed) > MAX_TEXT:
        rows, _ = diff_rows([preview])
        return replace(shown, rows=tuple((row.kind, row.text) for row in rows[1:]))
    shown = replace(shown, base=_lines(base), proposed=_lines(proposed))
    if content is None:
        return shown
    return replace(shown, content=content, raw=proposed, marks=tuple(_marks_in_editor(proposed)))


def _lines(text: str) -> str:
    """A text with its marks and with its lines as they are. Tabs stay: the page draws them."""
    return "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in text.split("\n"))


def _marks_in_editor(text: str) -> Iterator[tuple[int, int, str]]:
    """From, to and mark, counted as browsers count."""
    before = at = 0
    for place, mark in marks(text):
        if text[place] == "\t":
            continue
        at += units(text[before:place])
        size = units(text[place])
        yield at, at + size, mark
        at += size
        before = place + 1
