"""The card with a frame and colour. Printed once; it stays in the scrollback with its answer below it.

The frame is open on the right: no text, however wide its characters, can break it, and every line of the card begins
with a bar of ours that no tool can write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.text import Text

from lastword.card import Face, Passage
from lastword.display import color_name
from lastword.terminal.screen import size_of

BAR = "│ "
QUOTE = "▌ "
LINE = "┊ "
PROMPT = "╰▸ "
# Below this the frame would leave no room for the text.
MIN_WIDTH = 24
# Below this the numbers of a diff would.
MIN_NUMBERED_WIDTH = 60

_DIFF_STYLES = {"file": "bold", "note": "italic", "hunk": "cyan", "added": "green", "removed": "red", "fold": "italic"}
_MARK = re.compile(r"‹[^‹›]*›")
_WORDS = re.compile(r"\S+|\s+")
_RICH_COLORS = {
    "orange": "dark_orange", "purple": "medium_purple", "pink": "hot_pink", "teal": "dark_cyan",
    "indigo": "slate_blue1", "brown": "orange4", "gray": "grey50",
}  # fmt: skip


def draw(face: Face, width: int, waiting: int = 0, last: str = "") -> list[Text]:
    """The lines of the card above its menu. `last`: what is said of it below why it is asked."""
    inner = max(MIN_WIDTH, width) - len(BAR) - 1
    color = accent(face)
    head = list(wrap(f"{face.glyph} {face.name}", inner - 1))
    lines = [Text.assemble(("╭─ ", color), (head[0], f"bold {color}"))]
    lines += [Text.assemble((BAR, color), "   ", (rest, f"bold {color}")) for rest in head[1:]]
    # The id is ours to say: a display name can be anything, and two tools may share it.
    aside = f"{face.tool}{f' · {waiting} more waiting' if waiting else ''}"
    if cell_len(lines[-1].plain + "  " + aside) < width:
        lines[-1].append(f"  {aside}", "not bold dim")
    else:
        lines += [Text.assemble((BAR, color), (piece, "dim")) for piece in wrap(aside, inner)]
    lines += [barred(face, line) for line in _body(face, inner, last)]
    return lines


def barred(face: Face, line: Text) -> Text:
    """A line of the card, behind its bar."""
    return led(BAR if line.plain else BAR.rstrip(), accent(face)).append_text(line)


def menu(face: Face, width: int, items: list[tuple[str, str]]) -> list[Text]:
    """The keys and what they do, broken between items."""
    color = accent(face)
    room = max(MIN_WIDTH, width) - len(BAR) - 1
    lines: list[Text] = [barred(face, Text())]
    row = led(BAR, color)
    used = 0
    for key, words in items:
        length = cell_len(f"[{key}] {words}")
        if used and used + 3 + length > room:
            lines.append(row)
            row, used = led(BAR, color), 0
        if used:
            row.append("   ")
            used += 3
        row.append(f"[{key}]", "bold")
        row.append(f" {words}")
        used += length
    return [*lines, row]


def prompt(face: Face) -> Text:
    """Where the answer will stand."""
    return led(PROMPT, accent(face))


def accent(face: Face) -> str:
    """The colour of the frame: the tool's own, and red for what cannot be undone."""
    if face.irreversible:
        return "red"
    name = color_name(face.color) or "blue"
    return _RICH_COLORS.get(name, name)


def fitted(text: str, screen: TextIO) -> str:
    """Lines of ours as a screen shows them: broken between words. For a program they stay as they are."""
    if not screen.isatty():
        return text
    width = size_of(screen)[0] - 1
    return "\n".join(line for part in text.split("\n") for line in wrap(part, width))


def wrap(text: str, width: int) -> Iterator[str]:
    """Break a line between words, and words that are too long anywhere."""
    line, used = "", 0
    for piece in _WORDS.findall(text):
        length = cell_len(piece)
        if used + length > width and line.strip():
            yield line.rstrip()
            line, used = "", 0
            if piece.isspace():
                continue
        while length > width:
            first, *_ = chop_cells(piece, width)
            yield first
            piece = piece[len(first) :]
            length = cell_len(piece)
        line += piece
        used += length
    yield line.rstrip()


def _body(face: Face, width: int, last: str) -> Iterator[Text]:
    if face.description:
        yield from _said(face.description, width)
    yield Text(f"{face.effect}.", "bold red" if face.irreversible else "bold")
    if face.origin:
        yield from _said(f"Asked for by {face.origin}.", width, "dim")
    if face.edited:
        yield Text("You changed the arguments.", "bold")
    if face.again:
        yield from _said(f"Asked again: {face.again}.", width, "bold yellow")
    yield Text()
    yield from _arguments(face, width)
    if face.title or face.message.text:
        yield Text()
        yield Text("The tool says:", "bold")
        if face.title:
            yield from _quoted(Passage(face.title), width, "bold")
        if face.message.text:
            yield from _quoted(face.message, width)
    if face.diff:
        yield Text()
        yield Text(f"{face.preview_heading}:", "bold")
        yield from diff(face, width)
    if face.why_asked or last:
        yield Text()
        for line in filter(None, (face.why_asked, last)):
            yield from _said(line, width, "dim")


def diff(face: Face, width: int) -> Iterator[Text]:
    """The preview, as far as the face shows it."""
    digits = max((len(str(number)) for row in face.diff for number in (row.old, row.new) if number), default=0)
    # On a narrow screen the lines need the room; the heads of the hunks have the numbers too.
    numbered = digits > 0 and width >= MIN_NUMBERED_WIDTH
    indent = 2 + (2 * digits + 2 if numbered else 0)
    for row in face.diff:
        # Legible by its sign; the colour only helps.
        drawn = marked(row.text, _DIFF_STYLES.get(row.kind, ""))
        for start, end in row.changed:
            drawn.stylize("bold underline", start, end)
        head = "  "
        if numbered and row.kind in ("same", "added", "removed"):
            head += f"{row.old or '':>{digits}} {row.new or '':>{digits}} "
        room = width - (indent if len(head) > 2 else 2)
        for start, piece in _pieces(row.text, room):
            yield led(head, "dim").append_text(drawn[start : start + len(piece)])
            head = " " * len(head)
    if face.diff_hidden:
        yield from _said(f"  … {face.diff_hidden} more lines: p shows them", width, "italic")


def _arguments(face: Face, width: int) -> Iterator[Text]:
    if not face.arguments:
        yield Text("No arguments.")
        return
    yield Text("Arguments:", "bold")
    longest = max(cell_len(name) for name, _ in face.arguments)
    # Long names, or a narrow terminal: the value goes below its name instead of beside it.
    beside = longest <= min(24, width // 3)
    indent = longest + 4 if beside else 4
    for name, value in face.arguments:
        label = f"  {name}"
        if not beside:
            yield from _said(label, width, "bold")
            label = ""
        for line in _literal(value, width - indent):
            yield led(label.ljust(indent), "bold").append_text(line)
            label = ""
    if face.arguments_hidden:
        yield from _said(f"  … {face.arguments_hidden} more arguments: v shows them", width, "italic")


def _literal(value: Passage, width: int) -> Iterator[Text]:
    lines = value.text.split("\n")
    # A text of several lines gets a bar, so that none of them can pass for another argument.
    bar = LINE if len(lines) > 1 else ""
    for line in lines:
        drawn = marked(line)
        for start, piece in _pieces(line, width - len(bar)):
            yield led(bar, "dim").append_text(drawn[start : start + len(piece)])
    if value.hidden:
        yield from _said(hidden_words(value.hidden), width, "italic")


def hidden_words(count: int) -> str:
    """How much of a text is not shown, and how to see it."""
    return f"… {count:,} more characters: v shows them"


def _quoted(said: Passage, width: int, style: str = "") -> Iterator[Text]:
    for line in said.text.split("\n"):
        for piece in wrap(line, width - len(QUOTE)):
            yield led(QUOTE, "dim").append_text(marked(piece, style))
    if said.hidden:
        yield from _said(hidden_words(said.hidden), width, "italic")


def _said(text: str, width: int, style: str = "") -> Iterator[Text]:
    for piece in wrap(text, width):
        yield marked(piece, style)


def _pieces(line: str, width: int) -> Iterator[tuple[int, str]]:
    """A line in pieces of a width, each with its place in the line."""
    start = 0
    for piece in chop_cells(line, max(1, width)) or [""]:
        yield start, piece
        start += len(piece)


def led(text: str, style: str) -> Text:
    """The beginning of a line, whose style ends with it: the own style of a `Text` would colour all that follows."""
    return Text().append(text, style)


def marked(text: str, style: str = "") -> Text:
    """A line whose marks stand out."""
    drawn = Text(text, style)
    for mark in _MARK.finditer(text):
        drawn.stylize("bold yellow reverse", *mark.span())
    return drawn
