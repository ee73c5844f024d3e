"""A question as data for the page: the words of its face, its arguments with their types, its previews as texts.

Everything that came from a model or a tool is marked here, by the rules of display.py, so that the page cannot forget
to. Secrets are dots. Raw texts go along only where a person can edit them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lastword import values
from lastword.card.face import Face, diff_rows, face, literal, one_line
from lastword.consent.approval import ApprovalRequest
from lastword.display import marks, visible
from lastword.editor import Preview
from lastword.editor.diff import diff_of

# A text beyond this is not edited in a card, and its diff goes as rows.
MAX_TEXT = 400_000


def card_of(request: ApprovalRequest) -> dict[str, Any]:
    """Everything that a person needs to decide, as JSON."""
    words = face(request, fold=False)
    content = _content_of(request)
    return {
        "digest": request.digest,
        "sentence": words.description,
        "effect": words.effect,
        "irreversible": words.irreversible,
        "origin": words.origin,
        "again": words.again,
        "edited": words.edited,
        "title": words.title,
        "message": words.message.text,
        "why_asked": words.why_asked,
        "preview_label": words.preview_label,
        "primary": words.primary,
        "secondary": words.secondary,
        "editable": words.editable,
        "arguments": _arguments(request, words, content),
        "left_out": _left_out(request),
        "previews": [_preview(preview, content if len(request.preview) == 1 else None) for preview in request.preview],
    }


def question_of(request: ApprovalRequest) -> dict[str, Any]:
    """The same for a window that draws it itself: unmarked, with secrets as digests, and with the tool's manifest."""
    return {"facts": request.facts(), "manifest": msgspec.to_builtins(request.manifest)}


def _content_of(request: ApprovalRequest) -> str | None:
    """The argument that holds the proposed text, when editing the one means editing the other."""
    name = request.manifest.content_parameter
    previews = request.preview
    if name is None or len(previews) != 1 or name in request.manifest.secrets:
        return None
    proposed = previews[0].proposed
    return name if proposed is not None and request.arguments.get(name) == proposed else None


def _arguments(request: ApprovalRequest, words: Face, content: str | None) -> list[dict[str, Any]]:
    secrets = request.manifest.secrets
    given = request.arguments
    declared = {parameter.name: parameter for parameter in request.manifest.parameters}
    ordered = [*(name for name in declared if name in given), *(name for name in given if name not in declared)]
    rows = []
    for name, (shown_name, passage) in zip(ordered, words.arguments, strict=True):
        parameter = declared.get(name)
        is_secret = name in secrets
        kind = parameter.type if parameter is not None else "any"
        is_text = isinstance(given[name], str) and kind in ("string", "any")
        # What is edited is the text itself, or JSON: the type is kept by whoever reads the edit, not by the page.
        raw = "" if is_secret else given[name] if is_text else values.canonical(given[name]).decode()
        rows.append(
            {
                "name": name,
                "shown_name": shown_name,
                "type": "string" if is_text else kind if kind != "any" else values.type_name[type(given[name])],
                "about": one_line(parameter.description, 200) if parameter is not None else "",
                "shown": passage.text,
                "raw": raw,
                "marked": not is_secret and visible(literal(given[name])) != literal(given[name]),
                "secret": is_secret,
                "in_preview": name == content,
            }
        )
    return rows


def _left_out(request: ApprovalRequest) -> list[dict[str, Any]]:
    """The arguments that the call does without, and that a person may add."""
    given = request.arguments
    return [
        {
            "name": parameter.name,
            "shown_name": one_line(parameter.name),
            "type": parameter.type,
            "about": one_line(parameter.description, 200),
            "secret": parameter.secret,
        }
        for parameter in request.manifest.parameters
        if parameter.name not in given
    ]


def _preview(preview: Preview, content: str | None) -> dict[str, Any]:
    if not preview.path:
        return {"path": "", "kind": "text", "text": visible(preview.proposed or "")}
    diff = diff_of(preview)
    base, proposed = preview.base or "", preview.proposed or ""
    told: dict[str, Any] = {
        "path": one_line(preview.path, 300),
        "kind": diff.kind,
        "added": diff.added,
        "removed": diff.removed,
        "renamed_to": None if diff.renamed_to is None else one_line(diff.renamed_to, 300),
        "note": diff.note or "",
        "content": content,
    }
    if len(base) + len(proposed) > MAX_TEXT:
        rows, _ = diff_rows([preview])
        return told | {"content": None, "rows": [[row.kind, row.text] for row in rows[1:]]}
    odd = bool(marks(base) or marks(proposed))
    told |= {"base": _lines(base), "proposed": _lines(proposed)}
    if content is not None:
        told["raw"] = proposed
        told["marks"] = _marks_in_editor(proposed) if odd else []
    return told


def _lines(text: str) -> str:
    """A text with its marks and with its lines as they are. Tabs stay: the page draws them."""
    return "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in text.split("\n"))


def _marks_in_editor(text: str) -> list[tuple[int, int, str]]:
    """From, to and mark, counted as browsers count: in units of sixteen bits."""
    found = []
    before = at = 0
    for place, mark in marks(text):
        if text[place] == "\t":
            continue
        at += units(text[before:place])
        size = units(text[place])
        found.append((at, at + size, mark))
        at += size
        before = place + 1
    return found


def units(text: str) -> int:
    """The length as a browser counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
