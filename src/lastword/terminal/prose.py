"""What a model writes, drawn for a screen: Markdown read by markdown-it and laid out by rich.

The text has been marked before (display.py), and nothing here may bring back what was marked: entities and escapes in
addresses stay as they were written, HTML is text, and a link shows where it leads. What came
unmarked is marked before it is read.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, ImageItem, Markdown
from rich.text import Text

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


def begins_block(line: str) -> bool:
    """Whether a line is the beginning of something that has to be seen whole to be drawn."""
    return _BLOCK.match(line) is not None


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


def styled_from(text: str) -> int:
    """Where in a paragraph something begins that may have a style, or a link; its length when nothing does."""
    found = _INLINE.search(text)
    return found.start() if found else len(text)


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
    for token in _inside(text):
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


def _inside(text: str) -> list[Token]:
    [inline] = _reader().parseInline(_safe(text))
    return inline.children or []


def _safe(text: str) -> str:
    """The text without anything that speaks to the terminal. Most texts have been marked before, and have nothing."""
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp") else f"‹U+{ord(char):04X}›"
        for char in text
    )
