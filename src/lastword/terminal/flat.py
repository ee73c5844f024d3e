"""The card as plain sentences: no boxes, no signs, one thing a line. For screen readers and dumb terminals."""

from __future__ import annotations

from collections.abc import Iterator

from lastword.card import Face, Passage

FLAT_GRANT = "don't ask again"
"""The words that lead to the second step."""


def flat(face: Face, waiting: int = 0, last: str = "") -> Iterator[str]:
    """The lines of the card above its question. `last`: what is said of it below why it is asked."""
    yield "Approval needed." + (f" {waiting} more waiting." if waiting else "")
    yield f"Tool: {face.name} ({face.tool})."
    if face.description:
        yield f"What it does: {face.description}"
    yield f"{face.effect}."
    if face.origin:
        yield f"Asked for by {face.origin}."
    if face.edited:
        yield "You changed the arguments."
    if face.again:
        yield f"Asked again: {face.again}."
    yield "Arguments:" if face.arguments else "No arguments."
    for name, value in face.arguments:
        first, *rest = value.text.split("\n")
        yield f"  {name}: {first}"
        yield from (f"    > {line}" for line in rest)
        yield from _hidden(value)
    if face.arguments_hidden:
        yield f"  {face.arguments_hidden} more arguments: answer all to see them."
    if face.title or face.message.text:
        yield "The tool says:"
        said = [*([face.title] if face.title else []), *(face.message.text.split("\n") if face.message.text else [])]
        yield from (f"  > {line}" for line in said)
        yield from _hidden(face.message)
    if face.diff:
        yield from flat_diff(face)
    yield from filter(None, (face.why_asked, last))


def flat_diff(face: Face) -> Iterator[str]:
    """The preview, as far as the face shows it."""
    yield f"{face.preview_heading}:"
    yield from (f"  {row.text}" for row in face.diff)
    if face.diff_hidden:
        yield f"  {face.diff_hidden} more lines: answer preview to see them."


def question(face: Face, *, edited: bool, grants: bool = False) -> Iterator[str]:
    """The words that answer the card."""
    primary = ("" if face.primary == "Allow" else face.primary) + (" with your changes" if edited else "")
    words = [
        f"allow ({primary.strip()})" if primary else "allow",
        "deny" if face.secondary == "Deny" else f"deny ({face.secondary})",
        "deny because REASON",
    ]
    if face.second:
        words.insert(1, f"allow the second ({face.second})")
    if face.offers_rest:
        words.append("deny the rest")
    if grants:
        words.append(FLAT_GRANT)
    if face.editable:
        words.append("edit NAME=VALUE")
    if face.preview_label:
        words.append("preview")
    if face.folded or face.arguments:
        words.append("all" if face.folded else "exactly")
    yield "Type one of these and press Enter: " + ", ".join(words) + "."


def _hidden(said: Passage) -> Iterator[str]:
    if said.hidden:
        yield f"    {said.hidden} more characters: answer all to see them."
