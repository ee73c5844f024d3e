"""A question as data for the page: the words of its face, its arguments with their types, its previews as texts.

Everything that came from a model or a tool is marked here, by the rules of display.py, so that the page cannot forget
to. Secrets are dots. Raw texts go along only where a person can edit them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lastword import values
from lastword.card import views
from lastword.card.face import Face, marked_spans
from lastword.card.text import fold_of, literal, one_line, visible
from lastword.display import is_plain, marks, units
from lastword.editor import DiffLine, FileDiff, Preview

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest

# A text beyond this is not edited in a card, and not shown side by side.
MAX_TEXT = 400_000
# The lines of a diff that a page shows before somebody asks for all of them: more than anybody reads at once.
FOLD_LINES_OF_DIFF = 400


def card_of(request: ApprovalRequest, why_no_grant: str) -> views.CardView:
    """Everything that a person needs to decide. `why_no_grant`: why nothing can be granted from it, if so it is."""
    given = request.arguments
    words = Face.of(request, fold=False, given=request.shown_arguments, preview=False)
    content = _content_of(request, given)
    arguments = tuple(_arguments(request, given, words, content))
    message_fold = fold_of(words.message.text)
    previews = tuple(preview_of(preview, content if len(request.preview) == 1 else None) for preview in request.preview)
    folded = tuple(_folded(arguments, message_fold, previews))
    return views.CardView(
        digest=request.digest,
        sentence=words.description,
        effect=request.manifest.effect,
        effect_words=words.effect,
        origin=words.origin,
        again=words.again,
        edited=words.edited,
        title=words.title,
        message=words.message.text,
        message_fold=message_fold,
        why_asked=words.why_asked,
        why_no_grant=why_no_grant,
        preview_heading=words.preview_heading,
        primary=words.primary,
        secondary=words.secondary,
        second=words.second or None,
        offers_rest=words.offers_rest,
        editable=words.editable,
        word=words.second_act.word if words.second_act else None,
        folded=folded,
        must_open=folded if words.second_act else (),
        arguments=arguments,
        left_out=tuple(_left_out(request, given)),
        previews=previews,
    )


def _folded(
    arguments: Iterable[views.CardArgument], message_fold: int | None, previews: Iterable[views.CardPreview]
) -> Iterator[str]:
    """The names of the parts that are not shown whole at first."""
    for argument in arguments:
        if argument.fold is not None:
            yield f"argument {argument.name}"
    if message_fold is not None:
        yield "message"
    for number, preview in enumerate(previews):
        if preview.fold is not None:
            yield f"preview {number}"


def _content_of(request: ApprovalRequest, given: Mapping[str, Any]) -> str | None:
    """The argument that holds the proposed text, when editing the one means editing the other."""
    name = request.manifest.content_parameter
    previews = request.preview
    if name is None or len(previews) != 1 or name in request.manifest.secrets:
        return None
    proposed = previews[0].proposed
    return name if proposed is not None and given.get(name) == proposed else None


def _arguments(
    request: ApprovalRequest, given: Mapping[str, Any], words: Face, content: str | None
) -> Iterator[views.CardArgument]:
    secrets = request.manifest.secrets
    declared = {parameter.name: parameter for parameter in request.manifest.parameters}
    for name, (shown_name, passage) in zip(given, words.arguments, strict=True):
        parameter = declared.get(name)
        is_secret = name in secrets
        kind = parameter.type if parameter is not None else "any"
        is_text = isinstance(given[name], str) and kind in ("string", "any")
        # What is edited is the text itself, or JSON: the type is restored where the edit is read (web/card_routes.py).
        raw = "" if is_secret else given[name] if is_text else values.canonical(given[name]).decode()
        # What is in the preview as it is needs no second form, and megabytes of it would take their time.
        said = "" if is_secret or (name == content and passage.text == given[name]) else literal(given[name])
        exact = visible(said)
        yield views.CardArgument(
            name=name,
            shown_name=shown_name,
            type="string" if is_text else kind if kind != "any" else values.type_name[type(given[name])],
            about=one_line(parameter.description, 200) if parameter is not None else "",
            shown=passage.text,
            # What the preview shows is not shown here as well.
            fold=None if name == content else fold_of(passage.text),
            exact=None if is_secret or name == content or exact == passage.text else exact,
            raw=raw,
            marked=not is_secret and exact != said,
            secret=is_secret,
            in_preview=name == content,
        )


def _left_out(request: ApprovalRequest, given: Mapping[str, Any]) -> Iterator[views.MissingArgument]:
    """The arguments that the call does without, and that a person may add."""
    for parameter in request.manifest.parameters:
        if parameter.name not in given:
            yield views.MissingArgument(
                name=parameter.name,
                shown_name=one_line(parameter.name),
                type=parameter.type,
                about=one_line(parameter.description, 200),
                secret=parameter.secret,
            )


def preview_of_texts(name: str, base: str | None, proposed: str | None) -> views.CardPreview:
    """A change of a text that has a name and no file, as the page shows it, marked."""
    return preview_of(Preview(name, None, base, proposed))


def preview_of(preview: Preview, content: str | None = None) -> views.CardPreview:
    """A change as the page shows it, marked. `content`: the argument that holds the text, where that can be edited."""
    if not preview.path:
        text = visible(preview.proposed or "")
        return views.CardPreview(path="", kind="text", text=text, fold=fold_of(text))
    diff = FileDiff.of(preview)
    base, proposed = preview.base or "", preview.proposed or ""
    shown = views.CardPreview(
        path=one_line(preview.path, 300),
        kind=diff.kind,
        added=diff.added,
        removed=diff.removed,
        renamed_to=None if diff.renamed_to is None else one_line(diff.renamed_to, 300),
        note=diff.note or "",
    )
    is_large = len(base) + len(proposed) > MAX_TEXT
    if diff.kind in ("changed", "created", "deleted"):
        lines = tuple(_diff_rows(diff))
        room = Face.FOLD_DIFF_LINES if is_large else FOLD_LINES_OF_DIFF
        shown = replace(shown, lines=lines, fold=room if len(lines) > room else None)
    if is_large:
        return shown
    shown = replace(shown, base=_lines(base), proposed=_lines(proposed))
    if content is None:
        return shown
    return replace(shown, content=content, raw=proposed, marks=tuple(_marks_in_editor(proposed)))


def _diff_rows(diff: FileDiff) -> Iterator[views.DiffRow]:
    """The lines of a diff, marked, with a row for each run of lines that stay and are not shown."""
    at_old = at_new = 1
    for hunk in diff.hunks:
        # A side without lines is said to stand after the line before it.
        first = hunk.old_start + (not hunk.old_count)
        if first > at_old:
            yield ("gap", at_old, at_new, f"{_counted(first - at_old, 'unchanged line')}", (), "")
        at_old, at_new = first + hunk.old_count, hunk.new_start + (not hunk.new_count) + hunk.new_count
        for line in hunk.lines:
            is_same = not line.changed and is_plain(line.text)
            shown, changed = (line.text, ()) if is_same else marked_spans(line.text, line.changed, units)
            yield (line.kind, line.old, line.new, shown, changed, _aside(line))


def _aside(line: DiffLine) -> str:
    """What a line alone does not say."""
    said = []
    if line.hidden_before:
        said.append(f"{_counted(line.hidden_before, 'character')} before this")
    if line.hidden_after:
        said.append(f"{_counted(line.hidden_after, 'character')} after it")
    words = f"{' and '.join(said)} not shown" if said else ""
    return "; ".join(filter(None, (words, "no line ending at the end of the file" if line.no_newline else "")))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
