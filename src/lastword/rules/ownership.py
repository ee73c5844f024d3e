"""Whose a file is: its owner's alone, on the whole way to it. Otherwise somebody else could put another in its place.

A way leads through folders and links. Whoever may write a folder may put another file, or a link to one, in the place
of what is in it; so each of them is looked at, link by link, and not only where the way ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from lastword.errors import ConfigError

# As many as Linux follows.
MAX_LINKS = 40

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def refuse_others(path: Path, opened: os.stat_result, owner: int) -> None:
    """Refuse a file that others could have written or exchanged. What was opened is known by its facts."""
    if opened.st_uid != owner or opened.st_mode & _OTHERS_WRITE:
        _refuse(path, owner)
    end = path
    for place, facts in _way(path.absolute()):
        # Root may do everything anyway, and holds the folders above.
        if facts.st_uid not in (0, owner) or (stat.S_ISDIR(facts.st_mode) and _is_open(facts)):
            _refuse(place, owner)
        end = place
    for folder in (path.parent, end.parent):
        if folder.stat().st_mode & _OTHERS_WRITE:  # Even one in which each keeps to their own files, like /tmp.
            _refuse(folder, owner)
    if not os.path.samestat(end.lstat(), opened):
        raise ConfigError("it was exchanged while it was read", place=str(path), hint="start again")


def _is_open(facts: os.stat_result) -> bool:
    """Whether others may exchange what is in a folder. In one like /tmp they may not touch what is not theirs."""
    return bool(facts.st_mode & _OTHERS_WRITE) and not facts.st_mode & stat.S_ISVTX


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every folder, every link and at last the file itself on the way that a path leads, one link after the other."""
    here, links = Path("/"), 0
    names = _names(str(path))
    while names:
        yield here, here.lstat()
        name = names.pop()
        there = here.parent if name == ".." else here / name
        facts = there.lstat()
        if not stat.S_ISLNK(facts.st_mode):
            here = there
            continue
        yield there, facts
        links += 1
        if links > MAX_LINKS:
            raise ConfigError(f"more than {MAX_LINKS} links lead to it", place=str(path), hint="remove the links")
        target = os.readlink(there)
        here = Path("/") if target.startswith("/") else here
        names += _names(target)
    yield here, here.lstat()


def _names(path: str) -> list[str]:
    """The names of a path, the last first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _refuse(path: Path, owner: int) -> NoReturn:
    who = "root" if owner == 0 else f"the user {owner}"
    raise ConfigError(
        f"it is not {who}'s alone, so others could have written the organisation's policy",
        place=str(path),
        hint=f"chown {who.removeprefix('the user ')} and chmod go-w, or take it away",
    )
