"""What is remembered of the content of a result: never the bytes, which the store keeps by their digest."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import msgspec

from lastword.tools import content

# A name is a part of a line, and of a path. Most file systems take 255 bytes, and a character has up to four.
MAX_NAME = 60
# A sentence or two. What needs more is a text.
MAX_ALT = 300


class Kept(msgspec.Struct, frozen=True):
    """One block of a result."""

    kind: content.BlockKind
    """What it is by its bytes, whatever its tool called it."""
    digest: str
    """SHA-256 of the bytes, in hexadecimal."""
    media_type: str
    size: int
    name: str
    """Safe as the name of a file, and as a part of a line."""
    alt: str = ""

    def __str__(self) -> str:
        """For people and models that get no more than words."""
        about = f": {self.alt}" if self.alt else ""
        return f"[{self.kind} {self.name}, {self.media_type}, {size_in_words(self.size)}, kept for the person{about}]"


def size_in_words(size: int) -> str:
    """So many bytes, short."""
    if size < 1000:
        return f"{size} {'byte' if size == 1 else 'bytes'}"
    number, unit = (size / 1e3, "KB") if size < 999_500 else (size / 1e6, "MB")
    return f"{number:.1f} {unit}" if number < 10 and unit == "MB" else f"{number:.0f} {unit}"


def clean_name(name: str | None, kind: content.BlockKind, media_type: str) -> str:
    """A name without a path, without what cannot be seen, and without what a shell or a disk takes for something else.

    It may come from a model by way of a tool: `../../.bashrc`, or a line break and a sentence in our voice.
    """
    last = re.split(r"[/\\]", name or "")[-1]
    seen = "".join(char for char in last if unicodedata.category(char)[0] not in "CZ" or char == " ")
    plain = re.sub(r'[<>:"|?*\[\]\x00-\x1f]', "_", " ".join(seen.split())).strip(". -~")
    if not plain:
        return kind + content.extension_of(media_type)
    if len(plain) <= MAX_NAME:
        return plain
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[: MAX_NAME - 11]}.{ending[:10]}" if dot and stem else plain[:MAX_NAME]


def clean_alt(text: str) -> str:
    """One line of what can be seen. It stands between brackets of ours, and cannot close them."""
    seen = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in text[: 2 * MAX_ALT])
    line = " ".join(seen.split()).replace("[", "(").replace("]", ")")
    return line if len(line) <= MAX_ALT else f"{line[: MAX_ALT - 1]}…"


def in_words(kept: Iterable[Kept]) -> str:
    """All that was kept but the texts, which are read where they stand, a line each."""
    return "\n".join(str(block) for block in kept if block.kind != "text")
