"""Where a path leads, for whoever bounds it by a folder.

Programs do not agree on it. Some follow links as they come, and others take `..` away first, as Node does; some trim
white space, some take `~` for a home and `$NAME` for a variable; and below /proc/self every process finds places of its
own. So an allow counts a path only where all of them end up inside the folder, and an ask or a deny also where one may.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

# No path that anybody means has a second line.
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f]")
# White space that JavaScript trims and Python does not.
_BYTE_ORDER_MARK = "\ufeff"
# What is more than a path for some who are given one: an option, an address or a place on another machine, what a shell
# expands, another way to write a slash or a dot.
_MORE = re.compile(r"-|[^/]*:|.*[\\`{]|.*%2[ef]", re.IGNORECASE)
# As many as Linux follows before it gives up.
MAX_LINKS = 40


def is_inside(path: str, folder: str, base: Path, *, is_fixed: bool = False) -> bool:
    """Whether a path surely leads to this folder or into it. A fixed folder is not followed: nothing lies in a link."""
    if not path or is_unclear(path, base) or _MORE.match(path):
        return False
    try:
        real = folder if is_fixed else os.path.realpath(folder)
        return all(_is_within(there, real, str) for there in _ends(path, base))
    except (OSError, ValueError):
        return False


def may_be_inside(path: str, folder: str, base: Path) -> bool:
    """Whether a path may lead to this folder or into it, whoever reads it and however the disk spells names."""
    if is_unclear(path, base):
        return True
    try:
        return any(_is_within(there, os.path.realpath(folder), folded) for there in _ends(path, base))
    except (OSError, ValueError):
        return False  # It leads nowhere.


def is_at(here: Path, folder: str, *, is_fixed: bool = False) -> bool:
    """Whether something that runs here runs in this folder, or in one below it. A fixed one is not followed."""
    if not here.is_absolute():
        return False
    try:
        return _is_within(os.path.realpath(here), folder if is_fixed else os.path.realpath(folder), str)
    except (OSError, ValueError):
        return False


def leads_elsewhere(folder: str) -> bool:
    """Whether a folder is not where its path says: it is a link, or behind one."""
    try:
        return os.path.realpath(folder) != (folder.rstrip("/") or "/")
    except (OSError, ValueError):
        return True


def is_unclear(path: str, base: Path) -> bool:
    """Whether nobody here can tell where a path leads: to a home or a variable, on from nowhere certain, to another
    place in every process, or to wherever its white space is taken for a part of it."""
    if not (base.is_absolute() or path.startswith("/")) or path.startswith("~") or "$" in path:
        return True
    if path[:5].lower() == "file:":
        return True
    if path != path.strip().strip(_BYTE_ORDER_MARK) or _UNPRINTED.search(path):
        return True
    whole = os.path.join(base, path)
    return any(_is_of_process(way) for way in {whole, os.path.normpath(whole)})


def reads_two_ways(path: str, base: Path) -> bool:
    """Whether a path leads one program here and another there. Of a program whose ways with `~` and `$` are known."""
    if path != path.strip().strip(_BYTE_ORDER_MARK) or _UNPRINTED.search(path):
        return True
    try:
        return len(_ends(path, base)) > 1 or _is_of_process(os.path.join(base, path))
    except (OSError, ValueError):
        return True


def folded(path: str) -> str:
    """A path as a disk takes it that knows neither case nor the ways to write one letter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _ends(path: str, base: Path) -> set[str]:
    """Where it leads: with links followed as they come, and with `..` taken away first."""
    whole = os.path.join(base, path)
    return {os.path.realpath(whole), os.path.realpath(os.path.normpath(whole))}


def _is_within(there: str, folder: str, spelled: Callable[[str], str]) -> bool:
    there, folder = spelled(there), spelled(folder)
    return there == folder or there.startswith(folder.rstrip("/") + "/")


def _is_of_process(path: str) -> bool:
    """Whether the way there goes through /proc, also by a link: /proc/self is another place in another program."""
    at, ahead, links = "/", path.split("/")[::-1], 0
    while ahead:
        name = ahead.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        at = os.path.join(at, name)
        if at == "/proc":
            return True
        if os.path.islink(at):
            links += 1
            if links > MAX_LINKS:
                return True
            target = os.readlink(at)
            ahead += target.split("/")[::-1]
            at = "/" if target.startswith("/") else os.path.dirname(at)
    return False
