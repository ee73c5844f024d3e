"""The patterns of a .gitignore file, as git reads them.

A pattern is matched against one entry of the tree at a time, never against what lies below it: whoever walks does not
enter what is ignored. (Libraries that match whole paths let `!/src/` bring back everything below `src`; git does not,
and the tests ask git.)

The file comes with the project and may be hostile. Every wildcard but the last in a name is an atomic group, so that a
name is matched in a time that grows with its length and the pattern's, whatever the two are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Far more rules than people write. Each costs a look at every entry below it.
MAX_RULES = 2_000

_ANYTHING_BELOW = "**"
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "a-fA-F0-9",
}


class Rule(NamedTuple):
    """One line of the file."""

    ignores: bool
    """False for a line that starts with `!`."""
    folders_only: bool
    anchored: bool
    """Whether the names start at the folder of the file; else there is one, and it may stand anywhere."""
    names: tuple[Callable[[str], object] | None, ...]
    """A test for each name of the path; None stands for any number of names."""


def parse_rules(text: str) -> list[Rule]:
    """The rules of a file, in order."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [rule for line in lines if (rule := _parse(line.removesuffix("\r"))) is not None][:MAX_RULES]


def decide(rules: Sequence[Rule], path: str, *, is_folder: bool) -> bool | None:
    """Whether the last rule that matches ignores the path, relative to the file's folder; None when none matches."""
    parts = path.split("/")
    for rule in reversed(rules):
        if rule.folders_only and not is_folder:
            continue
        if rule.anchored:
            matches = _matches(rule.names, parts)
        else:
            test = rule.names[0]
            matches = test is None or bool(test(parts[-1]))
        if matches:
            return rule.ignores
    return None


def _parse(line: str) -> Rule | None:
    # Spaces at the end mean nothing, unless the last of them is quoted.
    stripped = line.rstrip(" ")
    if len(stripped) < len(line) and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "
    if not stripped or stripped.startswith("#"):
        return None
    ignores = not stripped.startswith("!")
    pattern = stripped if ignores else stripped[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    anchored = "/" in pattern
    names = [_compile(name) for name in pattern.removeprefix("/").split("/")]
    if any(name is _INVALID for name in names):
        return None
    return Rule(ignores, folders_only, anchored, tuple(names))


def _matches(names: Sequence[Callable[[str], object] | None], parts: Sequence[str]) -> bool:
    """Match tests against names. One step back to the latest `**` is enough, as with the stars of a glob."""
    at = here = 0
    retry_at = retry_here = -1
    while here < len(parts):
        test = names[at] if at < len(names) else _never
        if test is None:
            if at == len(names) - 1:
                # At the end it stands for everything below, and that is at least one name.
                return True
            retry_at, retry_here = at + 1, here
            at += 1
        elif test(parts[here]):
            at += 1
            here += 1
        elif retry_at >= 0:
            retry_here += 1
            at, here = retry_at, retry_here
        else:
            return False
    return at == len(names)


def _never(_: str) -> bool:
    return False


_INVALID = _never


def _compile(name: str) -> Callable[[str], object] | None:
    """A test for one name of a path."""
    if name == _ANYTHING_BELOW:
        return None
    if not re.search(r"[*?\[\\]", name):
        return name.__eq__
    pieces = _pieces(name)
    return _INVALID if pieces is None else re.compile(_regex(pieces), re.DOTALL).fullmatch


def _regex(runs: list[str]) -> str:
    """Runs of fixed characters with a star between each two.

    Each star but the last takes the first place where its run fits; no other place could help what follows.
    """
    first, *rest = runs
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>.*?{run})" for run in middle) + ".*" + last


def _pieces(name: str) -> list[str] | None:
    """The regular expressions between the stars of a name; None when the pattern is broken and matches nothing."""
    runs = [""]
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            if runs[-1] or len(runs) == 1:
                runs.append("")
        elif char == "?":
            runs[-1] += "."
        elif char == "[":
            found = _char_class(name, at)
            if found is None:
                return None
            expression, at = found
            runs[-1] += expression
        elif char == "\\":
            if at == len(name):
                return None
            runs[-1] += re.escape(name[at])
            at += 1
        else:
            runs[-1] += re.escape(char)
    return runs


def _char_class(name: str, at: int) -> tuple[str, int] | None:
    """The set that starts after a bracket, and where the rest begins; None when it is never closed."""
    negated = name[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(name) and (first or name[at] != "]"):
        first = False
        if posix := re.compile(r"\[:(\w+):\]").match(name, at):
            if posix[1] not in _POSIX:
                return None
            items.append(_POSIX[posix[1]])
            at = posix.end()
            continue
        low, at = _set_char(name, at)
        if name[at : at + 1] == "-" and name[at + 1 : at + 2] not in ("", "]"):
            high, at = _set_char(name, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if at >= len(name):
        return None
    inside = "".join(items)
    if not inside:
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def _set_char(name: str, at: int) -> tuple[str, int]:
    if name[at] == "\\" and at + 1 < len(name):
        return name[at + 1], at + 2
    return name[at], at + 1
