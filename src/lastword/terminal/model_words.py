"""The model's words on a screen, as they come: Markdown, read by markdown-it and laid out by rich.

Every line of them begins with a bar of ours, so that nothing the model writes can pass for a card, a prompt or a word
of the program. A word is written when it is complete: only then can be said whether it is what it looks like. A
heading, a list, a table, a quote or a piece of code is drawn when it is complete, and so is the rest of a paragraph
from the first word on that may have a style. Plain sentences, for screen readers, stay as they were written.

What cannot be seen has been marked before (display.py), and nothing here may bring back what was marked: entities and
escapes in addresses stay as they were written, HTML is text, and a link shows where it leads. What came unmarked is
marked before it is read.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import ClassVar, TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, ImageItem, Markdown
from rich.text import Text

from lastword.terminal.tty import size_of

BAR = "┃ "
PLAIN_BAR = "  "
PLAIN_NAME = "The assistant says:"
# No word is as long as this; what is, is written in pieces.
MAX_HELD = 2_000
# Below this the bar would leave no room for the text.
MIN_WIDTH = 20

# A piece of code is drawn after so many lines, also when it goes on: nobody should wait for a long one in the dark.
MAX_HELD_LINES = 100

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ANSI = {"bold": "1", "italic": "3", "strike": "9", "cyan": "36"}
_PARTS = re.compile(r"\n| +|[^ \n]+")

# Colours of the terminal's own palette, without a background: legible on light and on dark ones.
CODE_THEME = "ansi_light"

# What begins something else than a paragraph, and a row that may be one of a table.
_BLOCK = re.compile(
    r"[ ]{0,3}(?:#{1,6}(?:\s|$)|[>|]|```|~~~|[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|(?:[-*_]\s*){3,}$)|.*\|.*\|"
)
# The second line of a table, which makes one of the line before it.
_RULE = re.compile(r"[ ]{0,3}(?=.*\|)\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
# What may begin a style or a link in the middle of a paragraph.
_INLINE = re.compile(r"[*`\[<]|~~|(?<!\w)_|\\(?=[!-/:-@\[-`{-~])")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}


class ModelWords:
    """Where the model's words are written."""

    def __init__(self, screen: TextIO, *, plain: bool) -> None:
        self._screen = screen
        self._plain = plain
        self._bar = PLAIN_BAR if plain else BAR
        self._id = ""
        self._text = ""
        self._written = 0
        """Of the text, how much is on the screen."""
        self._column = 0
        self._spaces = ""
        self._speaking = False
        self._fence = ""
        """The line that opened the piece of code of which a part is on the screen."""
        self._colors = not plain and Console(file=screen).color_system is not None

    def say(self, id: str, text: str, *, is_whole: bool = False) -> None:
        """Write what is new in a message, given its text so far. The last word waits for its end."""
        if id != self._id:
            self.finish()
            self._id, self._text, self._written, self._fence = id, "", 0, ""
        self._take(text)
        if self._plain:
            self._write_to(len(text.rstrip()) if is_whole else _complete(text))
        else:
            self._draw(is_whole=is_whole)
        if is_whole:
            self._end_line()

    @property
    def is_in_line(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._column > 0

    def finish(self) -> None:
        """Something else is about to be written: write what was held back, and end the line."""
        if self._plain:
            self._write(self._text[self._written :].rstrip())
        else:
            self._draw(is_whole=True)
        self._written = len(self._text)
        self._end_line()

    def _draw(self, *, is_whole: bool) -> None:
        """Draw what is complete, block by block."""
        text = self._text.rstrip() if is_whole else self._text
        while self._written < len(text):
            start = self._written
            is_line_start = start == 0 or text[start - 1] == "\n"
            line_end = text.find("\n", start)
            line = text[start : line_end if line_end >= 0 else len(text)]
            if is_line_start and not self._fence and not line.strip() and line_end >= 0:
                self._write_to(line_end + 1)
                continue
            if not self._fence and not (is_line_start and _BLOCK.match(line)):
                # The words before the first bar are written by now: nobody knew that they begin a table.
                begun = text.rfind("\n", 0, start) + 1
                is_table = begins_table(text, begun, is_whole=is_whole)
                if is_table is None or (is_table and not self._draw_table(text, begun, is_whole=is_whole)):
                    return
                if is_table:
                    continue
            else:
                end = self._block_end(text, line, is_whole=is_whole)
                if end is None:
                    return
                self._draw_block(text[start:end], end)
                continue
            if not self._draw_line(text, line_end, is_whole=is_whole):
                return

    def _draw_table(self, text: str, begun: int, *, is_whole: bool) -> bool:
        """Draw the table that begins here, once it is whole, in the place of what is written of its first line."""
        written, self._written = self._written, begun
        end = self._block_end(text, "", is_whole=is_whole)
        if end is None:
            self._written = written
            return False
        if self._column and self._screen.isatty():
            self._screen.write("\r\x1b[K")
            self._column, self._spaces = 0, ""
        self._draw_block(text[begun:end], end)
        return True

    def _draw_line(self, text: str, line_end: int, *, is_whole: bool) -> bool:
        """Write a line of a paragraph, or what is complete of it; whether all of it is written."""
        end = line_end if line_end >= 0 else len(text)
        begun = _INLINE.search(text[self._written : end])
        plain_to = end if begun is None else self._written + begun.start()
        if plain_to == end and (line_end >= 0 or is_whole):
            self._write_to(end + (line_end >= 0))
            return True
        # The word that has a sign in it waits with those after it for the end of the line.
        word = max(text.rfind(" ", 0, plain_to), text.rfind("\n", 0, plain_to)) + 1
        self._write_to(min(word, _complete(text)) if plain_to < end else _complete(text))
        if line_end < 0 and not is_whole:
            return False
        self._write_styled(text[self._written : end])
        self._written = end
        if line_end >= 0:
            self._write_to(end + 1)
        return True

    def _block_end(self, text: str, line: str, *, is_whole: bool) -> int | None:
        """Where the block that begins now ends; None when more has to come."""
        start = self._written
        fence = _FENCE.match(self._fence or line)
        place, count = start, 0
        while (end := text.find("\n", place)) >= 0:
            held = text[place:end]
            count += 1
            if fence is None:
                is_end = not held.strip() or held.lstrip().startswith("#")
            else:
                is_close = held.strip().startswith(fence[1]) and not held.strip(" `~")
                is_end = count > MAX_HELD_LINES or (is_close and (bool(self._fence) or count > 1))
            if is_end:
                return end + 1
            place = end + 1
        return len(text) if is_whole else None

    def _draw_block(self, block: str, end: int) -> None:
        self._speak()
        if self._column:
            self._screen.write("\n")
            self._column, self._spaces = 0, ""
        opened = f"{self._fence}\n{block}" if self._fence else block
        lines = drawn(opened, self._room(), color=self._colors)
        # What stands between two blocks ended the first.
        for line in [*lines, ""] if block.endswith("\n\n") else lines:
            self._screen.write(f"{self._bar}{line}".rstrip() + "\n")
        first, *rest = opened.rstrip("\n").split("\n")
        fence = _FENCE.match(first)
        is_closed = fence is not None and bool(rest) and rest[-1].strip().startswith(fence[1])
        self._fence = first if fence is not None and not is_closed else ""
        self._written = end
        self._screen.flush()

    def _write_styled(self, text: str) -> None:
        """Write the rest of a line with its styles."""
        for piece, style in spans(text):
            codes = ";".join(_ANSI[name] for name in style.split() if name in _ANSI)
            self._write(piece, codes if self._colors else "")

    def _write_to(self, end: int) -> None:
        self._write(self._text[self._written : end])
        self._written = max(self._written, end)

    def _room(self) -> int:
        return max(MIN_WIDTH, size_of(self._screen)[0] - 1) - len(self._bar)

    def _speak(self) -> None:
        if not self._speaking:
            self._speaking = True
            if self._plain:
                self._screen.write(f"{PLAIN_NAME}\n")

    def _end_line(self) -> None:
        if self._column:
            self._screen.write("\n")
        self._screen.flush()
        self._column, self._spaces, self._speaking = 0, "", False

    def _take(self, text: str) -> None:
        """Have a new text so far. Where it contradicts what is written already, its line is written once more."""
        if not text.startswith(self._text[: self._written]):
            pairs = enumerate(zip(text, self._text, strict=False))
            same = next((place for place, (new, old) in pairs if new != old), len(text))
            self._written = text.rfind("\n", 0, same) + 1
            self._fence = ""
            if self._column:
                self._screen.write("\n")
            self._column, self._spaces = 0, ""
        self._text = text

    def _write(self, text: str, codes: str = "") -> None:
        if not text:
            return
        self._speak()
        room = self._room()
        for part in _PARTS.findall(text):
            if part == "\n":
                self._begin_line()
                self._screen.write("\n")
                self._column, self._spaces = 0, ""
            elif part[0] == " ":
                self._spaces += part
            else:
                self._word(part, room, codes)
        self._screen.flush()

    def _word(self, word: str, room: int, codes: str) -> None:
        used = self._column - len(self._bar) if self._column else 0
        if not self._plain and used and used + len(self._spaces) + cell_len(word) > room:
            self._screen.write("\n")
            self._column, self._spaces = 0, ""
        self._begin_line()
        # A screen reader wraps by itself; elsewhere a wrapped line needs its bar too.
        for number, chunk in enumerate([word] if self._plain else chop_cells(word, room)):
            if number:
                self._screen.write("\n")
                self._column = 0
                self._begin_line()
            self._screen.write(self._spaces + (f"\x1b[{codes}m{chunk}\x1b[0m" if codes else chunk))
            self._column += len(self._spaces) + cell_len(chunk)
            self._spaces = ""

    def _begin_line(self) -> None:
        if not self._column:
            self._screen.write(self._bar)
            self._column = len(self._bar)


def _complete(text: str) -> int:
    """Where the last word, or the white space at the end, begins."""
    kept = text.rstrip()
    if len(kept) == len(text):
        before = text.rsplit(None, 1)
        kept = before[0] if len(before) == 2 else ""
    return len(text) if len(text) - len(kept) > MAX_HELD else len(kept)


def begins_table(text: str, start: int, *, is_whole: bool) -> bool | None:
    """Whether the line that begins here is the first of a table; None when more has to come to know."""
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    if "|" not in line:
        return False
    if end < 0:
        return False if is_whole else None
    rule_end = text.find("\n", end + 1)
    rule = text[end + 1 : rule_end if rule_end >= 0 else len(text)]
    if rule_end < 0 and not is_whole:
        return False if rule.strip(" |:-") else None
    return _RULE.fullmatch(rule) is not None


def drawn(text: str, width: int, *, color: bool) -> list[str]:
    """The lines of a block, no wider than that."""
    text = _safe(text)
    prose = _Prose(text)
    console = _console(width, color=color)
    with console.capture() as captured:
        console.print(prose)
    lines = "\n".join(line.rstrip() for line in captured.get().split("\n")).strip("\n").split("\n")
    # What is nested more deeply than the parser goes, or has more columns than fit, is left out by it without a word.
    if _letters(text) - _letters(_STYLE.sub("", "\n".join(lines))) > sum(map(_unshown, prose.parsed)):
        return [piece for line in text.rstrip("\n").split("\n") for piece in chop_cells(line, width) or [""]]
    return lines


def spans(text: str) -> Iterator[tuple[str, str]]:
    """The words of a paragraph, each piece with its style; a link with its target behind it."""
    styles: list[str] = []
    target = ""
    shown = ""
    [inline] = _reader().parseInline(_safe(text))
    for token in inline.children or []:
        kind, _, way = token.type.rpartition("_")
        if token.type == "text":
            shown += token.content
            yield token.content, " ".join(styles)
        elif token.type == "code_inline":
            shown += token.content
            yield token.content, " ".join([*styles, "cyan"])
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n", ""
        elif token.type == "image":
            yield f"Picture: {token.content or 'without a name'} ({token.attrs['src']})", ""
        elif kind == "link":
            if way == "open":
                target, shown = str(token.attrs["href"]), ""
            elif shown != target:
                yield f" ({target})", ""
        elif way == "open":
            styles.append(_STYLES.get(kind, ""))
        elif way == "close":
            styles.pop()
        else:
            yield token.content, ""


def _safe(text: str) -> str:
    """The text without anything that speaks to the terminal. Most texts have been marked before, and have nothing."""
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp") else f"‹U+{ord(char):04X}›"
        for char in text
    )


class _Heading(Heading):
    """On the left, without a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class _Picture(ImageItem):
    """Nothing is fetched, and its address is not kept from the person."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble("Picture: ", self.text or "without a name", f" ({self.destination})")


class _Prose(Markdown):
    elements: ClassVar = {**Markdown.elements, "heading_open": _Heading, "image": _Picture}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=CODE_THEME, hyperlinks=False)
        self.markup = text
        self.parsed = _reader().parse(text)


@cache
def _console(width: int, *, color: bool) -> Console:
    return Console(
        file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None, emoji=False
    )


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _unshown(token: Token) -> int:
    """The letters of a block that are not drawn on purpose: the language of a piece of code, and titles of links."""
    own = _letters(token.info) + _letters(str(token.attrs.get("title") or ""))
    return own + sum(map(_unshown, token.children or ()))


@cache
def _reader() -> MarkdownIt:
    """As on the page. What would be left out or decoded is text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.disable(["entity", "reference", "code"])
    for name in ("normalizeLink", "normalizeLinkText"):
        setattr(reader, name, str)
    return reader
