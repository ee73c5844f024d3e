"""A card on a terminal: with a frame and colour, or as plain sentences for screen readers and dumb terminals.

A framed card is printed once; it stays in the scrollback with its answer below it, and only the last line, the prompt,
is ever written over. The frame is open on the right: no text, however wide its characters, can break it, and every line
of the card begins with a bar of ours that no tool can write. Plain sentences have no boxes and no signs, and one thing
a line. What does not live here: what a card says (card/face.py) and the conversation about it (card_dialogue.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from lastword.display import color_name
from lastword.terminal.tty import MIN_WIDTH, size_of, wrap

if TYPE_CHECKING:
    from lastword.card import Face

BAR = "│ "
QUOTE = "▌ "
LINE = "┊ "
PROMPT = "╰▸ "
# Below this the numbers of a diff would.
MIN_NUMBERED_WIDTH = 60

_DIFF_STYLES = {"file": "bold", "note": "italic", "hunk": "cyan", "added": "green", "removed": "red", "fold": "italic"}
_MARK = re.compile(r"‹[^‹›]*›")
_RICH_COLORS = {
    "orange": "dark_orange", "purple": "medium_purple", "pink": "hot_pink", "teal": "dark_cyan",
    "indigo": "slate_blue1", "brown": "orange4", "gray": "grey50",
}  # fmt: skip
PLAIN_GRANT = "don't ask again"
"""The words that lead to the second step."""


class Sheet:
    """The paper for one card, or for one question of a running tool."""

    def __init__(self, color: str, screen: TextIO, prompt: str = PROMPT) -> None:
        self.prompt = prompt
        self._color = color
        # Nothing in a text is ever read as markup.
        self._console = Console(file=screen, highlight=False, markup=False, emoji=False)
        # A pipe and a dumb terminal cannot write over a line: there the prompt appears with its answer.
        self._can_rewrite = self._console.is_terminal and not self._console.is_dumb_terminal
        self.is_at_prompt = False
        self.printed = 0
        """How many lines stand above the prompt."""

    @property
    def width(self) -> int:
        """Of the screen, as it is now."""
        return self.size()[0]

    def size(self) -> tuple[int, int]:
        """Columns and rows of the screen, as they are now."""
        return size_of(self._console.file)

    def card(self, shown: Face, waiting: int = 0, last: str = "") -> None:
        self.print(draw(shown, self.width, waiting, last))

    def preview(self, shown: Face) -> None:
        self.print(barred(self._color, line) for line in diff(shown, self.width - len(BAR) - 1))

    def menu(self, items: list[tuple[str, str]], hint: str) -> None:
        self.print(menu(self._color, self.width, items))
        self.hint(hint)

    def say(self, words: str) -> None:
        room = self.width - len(BAR) - 1
        self.print(
            barred(self._color, Text(piece)) for line in words.split("\n") for piece in wrap(line, max(MIN_WIDTH, room))
        )

    def rows(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Lines with what stands before each, and their style. What is broken goes on below its beginning."""
        room = max(MIN_WIDTH, self.width) - len(BAR) - 1
        for lead, text, style in rows:
            for number, piece in enumerate(wrap(text.replace("\n", "⏎"), room - len(lead))):
                line = led(" " * len(lead) if number else lead, "bold").append_text(marked(piece, style))
                self.print([barred(self._color, line if line.plain.strip() else Text())])

    def hint(self, words: str) -> None:
        """Beside the prompt, in place of the last hint: Enter pressed ten times must not scroll the card away."""
        self._prompt(Text(words, "italic"))

    def answer(self, words: str) -> None:
        self._prompt(Text(words, "bold"), ends=True)

    def clear_prompt(self) -> None:
        if self.is_at_prompt:
            self._console.file.write("\r\x1b[K")
            self._console.file.flush()
            self.is_at_prompt = False

    def _prompt(self, words: Text, *, ends: bool = False) -> None:
        self.clear_prompt()
        line = led(self.prompt, self._color).append_text(words)
        if ends:
            self._console.print(line, soft_wrap=True)
        elif self._can_rewrite:
            line.truncate(self.width - 1, overflow="ellipsis")
            self._console.print(line, end="", soft_wrap=True)
            self.is_at_prompt = True

    def print(self, lines: Iterable[Text]) -> None:
        """Lines above the prompt, each as long as fits."""
        self.clear_prompt()
        for line in lines:
            self._console.print(line, no_wrap=True, overflow="ignore", crop=False)
            self.printed += 1


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
    lines += [barred(color, line) for line in _body(face, inner, last)]
    return lines


def barred(color: str, line: Text) -> Text:
    """A line of the card, behind its bar."""
    return led(BAR if line.plain else BAR.rstrip(), color).append_text(line)


def menu(color: str, width: int, items: list[tuple[str, str]]) -> list[Text]:
    """The keys and what they do, broken between items."""
    room = max(MIN_WIDTH, width) - len(BAR) - 1
    lines: list[Text] = [barred(color, Text())]
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


def accent(face: Face) -> str:
    """The colour of the frame: the tool's own, and red for what cannot be undone."""
    if face.irreversible:
        return "red"
    name = color_name(face.color) or "blue"
    return _RICH_COLORS.get(name, name)


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
            yield from _quoted(face.title, width, "bold")
        if face.message.text:
            yield from _quoted(face.message.text, width)
            yield from _more(face.message.hidden, width)
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
        for line in (*_literal(value.text, width - indent), *_more(value.hidden, width - indent)):
            yield led(label.ljust(indent), "bold").append_text(line)
            label = ""
    if face.arguments_hidden:
        yield from _said(f"  … {face.arguments_hidden} more arguments: v shows them", width, "italic")


def _literal(text: str, width: int) -> Iterator[Text]:
    lines = text.split("\n")
    # A text of several lines gets a bar, so that none of them can pass for another argument.
    bar = LINE if len(lines) > 1 else ""
    for line in lines:
        drawn = marked(line)
        for start, piece in _pieces(line, width - len(bar)):
            yield led(bar, "dim").append_text(drawn[start : start + len(piece)])


def _more(hidden: int, width: int) -> Iterator[Text]:
    """How much of a text is not shown, and how to see it."""
    if hidden:
        yield from _said(f"… {hidden:,} more characters: v shows them", width, "italic")


def _quoted(text: str, width: int, style: str = "") -> Iterator[Text]:
    for line in text.split("\n"):
        for piece in wrap(line, width - len(QUOTE)):
            yield led(QUOTE, "dim").append_text(marked(piece, style))


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


def plain_card(face: Face, waiting: int = 0, last: str = "") -> Iterator[str]:
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
        yield from _plain_more(value.hidden)
    if face.arguments_hidden:
        yield f"  {face.arguments_hidden} more arguments: answer all to see them."
    if face.title or face.message.text:
        yield "The tool says:"
        said = [*([face.title] if face.title else []), *(face.message.text.split("\n") if face.message.text else [])]
        yield from (f"  > {line}" for line in said)
        yield from _plain_more(face.message.hidden)
    if face.diff:
        yield from plain_diff(face)
    yield from filter(None, (face.why_asked, last))


def plain_diff(face: Face) -> Iterator[str]:
    """The preview, as far as the face shows it."""
    yield f"{face.preview_heading}:"
    yield from (f"  {row.text}" for row in face.diff)
    if face.diff_hidden:
        yield f"  {face.diff_hidden} more lines: answer preview to see them."


def plain_ways(face: Face, *, edited: bool, grants: bool = False) -> str:
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
        words.append(PLAIN_GRANT)
    if face.editable:
        words.append("edit NAME=VALUE")
    if face.preview_label:
        words.append("preview")
    if face.folded or face.arguments:
        words.append("all" if face.folded else "exactly")
    return f"Type one of these and press Enter: {', '.join(words)}."


def _plain_more(hidden: int) -> Iterator[str]:
    if hidden:
        yield f"    {hidden} more characters: answer all to see them."
