"""What a search, a listing or a lint did not look at: named, counted, and with the reason.

Whoever reads a result takes it for the whole. A file that is passed over without a word is a bug that nobody looks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lastword.editor.provider import MAX_FILE_BYTES, LeftOut
from lastword.errors import EditError, PrivateFile, TooLarge

# The reasons that come up in several places.
PRIVATE = "private"
NOT_TEXT = "not text in UTF-8"
TOO_LARGE = f"larger than {MAX_FILE_BYTES:,} bytes"
GONE = "gone since it was listed"

# The paths that are named for one reason. The others are counted: a thousand ignored files are no news.
NAMED = 10


class Group(msgspec.Struct, frozen=True):
    """Everything that was left out for one reason."""

    why: str
    count: int
    paths: list[str]
    """The first of them."""


def why_unread(problem: EditError) -> str:
    """Why a file could not be read, in the words of a group."""
    if isinstance(problem, PrivateFile):
        return PRIVATE
    return TOO_LARGE if isinstance(problem, TooLarge) else problem.fact


def grouped(left_out: Iterable[LeftOut]) -> list[Group]:
    """By reason, in the order in which the reasons come up."""
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.why, []).append(one.path)
    return [Group(why, len(paths), sorted(paths)[:NAMED]) for why, paths in by_reason.items()]


def in_words(groups: Sequence[Group]) -> str | None:
    """One sentence about all of it; None when nothing was left out."""
    if not groups:
        return None
    return f"Left out: {'; '.join(map(_words, groups))}."


def _words(group: Group) -> str:
    more = f" and {group.count - len(group.paths):,} more" if group.count > len(group.paths) else ""
    return f"{', '.join(group.paths)}{more} ({group.why})"
