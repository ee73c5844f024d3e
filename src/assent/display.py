"""Text as a person may safely see it: what is invisible or misleading is marked, never stripped and never passed on.

Every surface draws text that came from a model or a tool through here. A mark looks like ‹U+202E›; surfaces may colour
what stands between ‹ and ›. A real ‹ in the text is itself marked, so a mark cannot be forged.
"""

from __future__ import annotations

import re
import unicodedata

# Runs of white space longer than this push what follows out of sight.
MAX_SPACES = 40
MAX_BLANK_LINES = 3

# Letters that draw nothing, although Unicode calls them letters or symbols.
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\u034f\u180b\u180c\u180d\u180e\u180f")
_PLAIN = re.compile(r"[\x20-\x7e\n]*\Z")
_PADDING = re.compile(rf" {{{MAX_SPACES},}}|\n{{{MAX_BLANK_LINES + 2},}}")
_WORD = re.compile(r"\w+")
# Scripts whose letters can pass for Latin ones.
_LOOKALIKE = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL")


def visible(text: str) -> str:
    """The text with a mark in place of everything that a person could not see or could mistake."""
    if not _PLAIN.match(text):
        text = "".join(_marked(char) for char in _mark_lookalikes(text))
    if "  " in text or "\n\n" in text:
        text = _PADDING.sub(_count, text)
    return text


def displayable(text: str) -> str:
    """The text with the replacement character for half characters, which no surface and no journal can hold."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def is_plain(text: str) -> bool:
    """Whether `visible` would change nothing."""
    return visible(text) == text


def _marked(char: str) -> str:
    if " " <= char <= "~" or char == "\n":
        return char
    if len(char) > 1:
        return char  # a lookalike that was marked already
    if char in "‹›\ufffd":
        return f"‹U+{ord(char):04X}›"
    category = unicodedata.category(char)
    # Cc Cf Cs Co Cn: controls, formats, surrogates, private, unassigned. Zs Zl Zp: spaces that are not a space.
    if (
        category[0] in "CZ"
        or char in _BLANK_LETTERS
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    ):
        return f"‹U+{ord(char):04X}›"
    return char


def _mark_lookalikes(text: str) -> list[str]:
    """The characters of the text; a letter of another script inside a Latin word comes with its code."""
    chars = list(text)
    for word in _WORD.finditer(text):
        letters = word.group()
        if letters.isascii():
            continue
        scripts = [_script(char) for char in letters]
        mixed = "LATIN" in scripts or "DIGIT" in scripts
        for offset, script in enumerate(scripts):
            if script in ("FULLWIDTH", "MATHEMATICAL") or (mixed and script in _LOOKALIKE):
                place = word.start() + offset
                chars[place] = f"{chars[place]}‹U+{ord(chars[place]):04X}›"
    return chars


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _count(run: re.Match[str]) -> str:
    length = len(run.group())
    if run.group()[0] == " ":
        return f" ‹{length} spaces› "
    return f"\n‹{length - 1} blank lines›\n"


def fold(text: str, max_lines: int, max_width: int | None = None) -> tuple[str, int]:
    """The first lines of a text, and how many are not shown. Whoever draws it must say so."""
    lines = text.split("\n")
    if max_width is not None:
        lines = [piece for line in lines for piece in (_chunks(line, max_width) or [""])]
    if len(lines) <= max_lines:
        return "\n".join(lines), 0
    return "\n".join(lines[:max_lines]), len(lines) - max_lines


def _chunks(line: str, width: int) -> list[str]:
    return [line[start : start + width] for start in range(0, len(line), width)]


_GLYPHS = {
    "location": "⌖", "map": "⌖", "doc": "▤", "folder": "▤", "pencil": "✎", "trash": "⌫", "magnifyingglass": "⌕",
    "calendar": "▦", "clock": "◷", "timer": "◷", "envelope": "✉", "message": "✉", "person": "☺", "photo": "▣",
    "camera": "▣", "lock": "⚿", "key": "⚿", "globe": "◍", "network": "◍", "cloud": "☁", "bolt": "ϟ", "lightbulb": "☼",
    "sun": "☼", "gear": "⚙", "wrench": "⚙", "hammer": "⚙", "terminal": "▸", "function": "ƒ", "number": "#",
    "textformat": "¶", "text": "¶", "list": "≡", "cart": "¤", "creditcard": "¤", "heart": "♥", "star": "★",
    "bell": "♪", "music": "♪", "play": "▸", "square": "▪", "arrow": "→", "paperplane": "→", "chart": "▥",
}  # fmt: skip


def glyph(icon: str | None) -> str:
    """One of our own signs for a symbol name such as `location.fill`; a neutral one when we have none."""
    if not icon:
        return "◆"
    return _GLYPHS.get(icon.partition(".")[0], "◆")


_COLORS = {
    "red",
    "green",
    "blue",
    "yellow",
    "cyan",
    "magenta",
    "orange",
    "purple",
    "pink",
    "teal",
    "indigo",
    "brown",
    "gray",
}


def color_name(color: str | None) -> str | None:
    """`systemBlue` and `blue` are blue; a name we do not know is no colour."""
    if not color:
        return None
    name = color.removeprefix("system").lower()
    return name if name in _COLORS else None
