"""Text as a person may safely see it: what is invisible or misleading is marked, never stripped and never passed on.

Every surface draws text that came from a model or a tool through here. A mark looks like ‹U+202E›; surfaces may colour
what stands between ‹ and ›. A real ‹ in the text is itself marked, so a mark cannot be forged.

Ordinary text stays readable in any script: letters with their accents, right-to-left letters, ideographs, emoji. What
joins or separates letters without being seen is marked also where a language uses it, because nobody could tell two
texts apart that differ in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

# Runs of white space longer than this push what follows out of sight.
MAX_SPACES = 40
MAX_BLANK_LINES = 3
# No script stacks more marks on one letter; what does would run over the lines around it.
MAX_STACKED = 6

# What surfaces show for the tabs of source code, in place of their mark: they are no trick, and need not shout.
TAB = "⇥   "

# Letters that draw nothing, although Unicode calls them letters or symbols.
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\u034f\u180b\u180c\u180d\u180e\u180f")
_PLAIN = re.compile(r"[\x20-\x7e\n]*\Z")
_PADDING = re.compile(rf" {{{MAX_SPACES},}}|\n(?: *\n){{{MAX_BLANK_LINES + 1},}}")
# A word that has a letter beyond ASCII. It is looked for where a word begins, and so in one pass over a long one.
_WORD = re.compile(r"(?<![0-9A-Za-z_])[0-9A-Za-z_]*+[^\W\x00-\x7f]\w*+")
_EMOJI_STYLE = "\ufe0f"

# Scripts whose letters can pass for Latin ones.
_LOOKALIKE = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
# Letters and digits drawn again in another style. They are never ordinary text where a card shows them.
_STYLED = frozenset({"FULLWIDTH", "MATHEMATICAL"})
# Letters of the scripts above that cannot be told from a Latin one.
_TWINS = frozenset("аеорсухѕіјһԁԛԝѵӏкАВЕЅІЈКМНОРСТХҮԌԚԜαογνρτυικχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
# Letters that pass for a digit between digits.
_FALSE_DIGITS = frozenset("ОоЗзбΟοօՕ")
# Signs and letters that pass for the punctuation of paths, addresses and commands, or for a Latin letter.
_FALSE_SIGNS = frozenset("․⁄∕⧸／∖⧵＼．﹒ꓸ∶꞉\u037e＠﹫ǀǃɑɡ")


def visible(text: str) -> str:
    """The text with a mark in place of everything that a person could not see or could mistake."""
    if not _PLAIN.match(text):
        text = "".join(_marked(text))
    if "  " in text or "\n\n" in text or "\n \n" in text:
        text = _PADDING.sub(_count, text)
    return text


def visible_parts(text: str, cuts: Iterable[int]) -> list[str]:
    """The text as `visible` shows it, cut at these places: what a word around a cut makes suspicious stays marked."""
    shown = list(text) if _PLAIN.match(text) else _marked(text)
    edges = [0, *cuts, len(text)]
    return [_PADDING.sub(_count, "".join(shown[start:end])) for start, end in pairwise(edges)]


def is_plain(text: str) -> bool:
    """Whether `visible` leaves a text as it is, and each of its lines by itself. No for most texts beyond ASCII."""
    return _PLAIN.match(text) is not None and _PADDING.search(text) is None


def shortened(text: str, most: int) -> str:
    """The text as `visible` shows it, or its beginning and a mark that says how much is left out.

    For what nobody decides by: the whole of a card is shown, however long it is.
    """
    if len(text) <= most:
        return visible(text)
    return f"{visible(text[:most])}{left_out(len(text) - most)}"


def left_out(characters: int) -> str:
    """A mark for so many characters that are not shown."""
    return f" ‹{characters:,} more characters›"


def marks(text: str) -> list[tuple[int, str]]:
    """Where `visible` would mark a character, and with what: for surfaces on which the text itself can be edited.

    A mark stands in place of its character; that of a lookalike holds the letter and its code.
    """
    if _PLAIN.match(text):
        return []
    shown = _marked(text)
    return [(place, mark) for place, mark in enumerate(shown) if mark != text[place]]


def displayable(text: str) -> str:
    """The text with the replacement character for lone surrogates, which no surface and no journal can hold."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _marked(text: str) -> list[str]:
    """Each character as it may be seen. Knows what stands before, for what is drawn on top of it."""
    chars = _mark_lookalikes(text)
    # Nothing else changes by what stands before it, and most texts have none of these.
    odd = {char for char in set(text) if _kind(char) in ("M", "unseen")}
    if not odd:
        return chars
    base = ""  # the kind of what a mark would be drawn on; empty when there is nothing
    stacked, last = 0, -1
    for place, original in enumerate(text):
        if original not in odd:
            continue
        if place - 1 != last:
            base, stacked = _kind(chars[place - 1]), 0
        last, char = place, chars[place]
        kind = _kind(char)
        if kind == "M":
            stacked += 1
            if not base or stacked > MAX_STACKED:
                # On nothing, or on a sign of ours, it would be drawn over what the card itself says.
                chars[place], base = _code(char), ""
        elif kind == "unseen":
            if char == _EMOJI_STYLE and base in ("So", "Sm", "ASCII") and stacked == 0:
                # The sign before it becomes an emoji: that can be seen, and models write it all the time.
                stacked = 1
            else:
                chars[place], base = _code(char), ""
        else:
            base, stacked = kind, 0
    return chars


@lru_cache(maxsize=4096)
def _kind(char: str) -> str:
    """What a character is to the eye: `unseen`, `M` for a mark on the letter before, empty for none, or a category."""
    if len(char) > 1 or char in " \n":  # a lookalike with its code after it, or white space
        return ""
    if "!" <= char <= "~":
        return "ASCII"
    category = unicodedata.category(char)
    # Cc Cf Cs Co Cn: controls, formats, surrogates, private, unassigned. Zs Zl Zp: spaces that are not a space.
    if (
        category[0] in "CZ"
        or char in "‹›\ufffd"
        or char in _BLANK_LETTERS
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    ):
        return "unseen"
    return "M" if category[0] == "M" else category


def _code(char: str) -> str:
    return "‹tab›" if char == "\t" else f"‹U+{ord(char):04X}›"


def _mark_lookalikes(text: str) -> list[str]:
    """The characters of the text; one that passes for another comes with its code."""
    chars = list(text)
    if not _FALSE_SIGNS.isdisjoint(text):
        chars = [char + _code(char) if char in _FALSE_SIGNS else char for char in chars]
    # Each word is looked into once, however often it is there: a text has far fewer words than places for them.
    places: dict[str, list[int]] = {}
    for match in _WORD.finditer(text):
        places.setdefault(match.group(), []).append(match.start())
    script = {char: _script(char) for char in set("".join(places))}
    styled = {char for char, of in script.items() if of in _STYLED} - _FALSE_SIGNS
    lookalike = {char for char, of in script.items() if of in _LOOKALIKE} - _FALSE_SIGNS
    latin = {char for char, of in script.items() if of == "LATIN"}
    digits = {char for char, of in script.items() if of == "DIGIT"}
    # A whole word of twins is ordinary where its script is spoken, and a disguise where it is not.
    spoken = {of for char, of in script.items() if char not in _TWINS}
    for word, starts in places.items():
        letters = set(word)
        false = letters & styled
        if not letters.isdisjoint(latin) or (
            letters <= _TWINS and len(word) > 1 and spoken.isdisjoint(script[char] for char in letters)
        ):
            false |= letters & lookalike
        if not letters.isdisjoint(digits):
            false |= letters & _FALSE_DIGITS
        if false:
            for start in starts:
                for place, char in enumerate(word, start):
                    if char in false:
                        chars[place] = char + _code(char)
    return chars


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _count(run: re.Match[str]) -> str:
    if run.group()[0] == " ":
        return f" ‹{len(run.group())} spaces› "
    return f"\n‹{run.group().count(chr(10)) - 1} blank lines›\n"


def fold(text: str, max_lines: int, max_width: int | None = None) -> tuple[str, int]:
    """The first lines of a text, and how many are not shown. Whoever draws it must say so."""
    lines = text.split("\n")
    if max_width is not None:
        # A line without a character is one as well.
        lines = [line[at : at + max_width] for line in lines for at in range(0, len(line) or 1, max_width)]
    if len(lines) <= max_lines:
        return "\n".join(lines), 0
    return "\n".join(lines[:max_lines]), len(lines) - max_lines


_GLYPHS = {
    "location": "⌖", "map": "⌖", "doc": "▤", "folder": "▤", "pencil": "✎", "trash": "⌫", "magnifyingglass": "⌕",
    "calendar": "▦", "clock": "◷", "timer": "◷", "envelope": "✉", "message": "✉", "person": "☺", "photo": "▣",
    "camera": "▣", "lock": "⚿", "key": "⚷", "globe": "◍", "network": "◍", "cloud": "☁", "bolt": "ϟ", "lightbulb": "☼",
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


def units(text: str) -> int:
    """The length of a text as browsers count it: in units of sixteen bits, of which a character has one or two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def first_units(text: str, count: int) -> str:
    """The beginning of a text, of so many units."""
    if text.isascii():
        return text[:count]
    return text.encode("utf-16-le", "surrogatepass")[: 2 * count].decode("utf-16-le", "surrogatepass")
