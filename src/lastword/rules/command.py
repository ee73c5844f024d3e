"""One simple command: a program and its arguments, as a shell would split it, or nothing at all.

A bound over a command line has to know what would run. So this reads only what has one meaning in every shell: words,
single quotes, and double quotes without anything in them that a shell would expand. Whatever else there is (operators,
redirections, expansions, assignments, comments, escapes, a second line) is no simple command, and matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Longer than anybody types, and short enough to look at for every rule.
MAX_COMMAND = 4_000

# What stands for itself outside of quotes, everywhere in a word. No `~`, which is a home; no `=` in the first word.
_BARE = r"[A-Za-z0-9_@%+=:,./-]"
# At the beginning of a word zsh takes `=ls` for the place of that program, and fish `%self` for a number.
_FIRST = r"(?![=%])"
# In double quotes a shell still sees $ ` \ and, in some, !. In single quotes it sees nothing.
_WORD = re.compile(rf"{_FIRST}(?:{_BARE}|'[^'\x00-\x1f\x7f]*'|\"[^\"$`\\!\x00-\x1f\x7f]*\")+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PARTS = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")


def literal_pattern(word: str) -> str:
    """A pattern for one argument that only this very word fits."""
    return re.escape(word).replace("\\ ", " ")


def words_of_patterns(patterns: Sequence[str]) -> list[str] | None:
    """The words that patterns stand for where each is one that only a single word fits; None where one is not."""
    words = [_ESCAPED.sub(r"\1", pattern) for pattern in patterns]
    return words if [literal_pattern(word) for word in words] == [*patterns] else None


def simple_words(line: str) -> tuple[str, ...] | None:
    """The words of one simple command; None when it is anything else."""
    if len(line) > MAX_COMMAND:
        return None
    words: list[str] = []
    place, end = 0, len(line)
    while place < end:
        if line[place] == " ":
            place += 1
            continue
        found = _WORD.match(line, place)
        if found is None or (found.end() < end and line[found.end()] != " "):
            return None
        if not words and "=" in found.group():
            return None  # It sets a variable for the program, which may change what it does.
        words.append("".join(a or b or c for a, b, c in _PARTS.findall(found.group())))
        place = found.end()
    return tuple(words) if words and words[0] else None
