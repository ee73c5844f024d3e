"""Files that are changed by people alone: whatever decides what is asked, and what a person has accepted.

These are the policies, `lastword.toml`, the settings from which agents start our hook, the files from which clients
start our gateway, the memory, and all of a person's data folder. A standing yes never answers for a call that would
write one of them.

A file is known by its name, in whatever folder it would be. It is also known by where it really lies: a policy may be a
link to a file of another name, and an agent that writes into a hard link writes into the policy. So the files in use
are compared by their place on the disk, which has one number however a path to it is written, also where a disk ignores
case. What is not there yet is known by the nearest folder that is, and the names on from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from lastword import config
from lastword.editor import folded
from lastword.rules import client_files
from lastword.rules.agent_settings import SETTINGS, projects_started_in, settings_in, settings_of_person
from lastword.rules.places import FILE, PROJECT_FILE, SYSTEM
from lastword.rules.policy import Policy
from lastword.store import Store, data_folder

Place = tuple[int, int, str]
"""The disk, the number that a file or folder has on it, and the names on from there of what is not there yet."""

_NAMES = {PROJECT_FILE: "rules", config.FILE: "settings"} | dict.fromkeys(client_files.NAMES, "servers")
_HOOKS = {agent.folder: frozenset(agent.files) for agent in SETTINGS.values()}


class GuardedFile(msgspec.Struct, frozen=True):
    """A file that is changed by people alone."""

    path: str
    """As it was named."""
    has: str
    """What is in it, in a word."""

    @property
    def why(self) -> str:
        return f"has {self.has}, which are changed by people alone"


def first_guarded(paths: Iterable[str], folder: Path, policy: Policy | None, store: Store) -> GuardedFile | None:
    """The first of these paths at which lies, or would lie, what people alone change; None when there is none.

    Relative ones are meant from the folder. The policy and the store are those in use.
    """
    known: dict[Place, str] | None = None
    for path in paths:
        try:
            real = os.path.realpath(folder / path)
        except ValueError:
            continue  # No file can have such a name.
        has = _by_name(path) or _by_name(real)
        if has is None:
            if known is None:
                known = {_place(file): has for file, has in _in_use(folder, policy, store)}
            has = next((known[place] for place in _places(real) if place in known), None)
        if has is not None:
            return GuardedFile(path, has)
    return None


def _by_name(path: str) -> str | None:
    """What a file of this name has, wherever it is. A folder that is called so will do: it takes the file's place."""
    above = ""
    for part in path.split("/"):
        name = folded(part)
        if name in _NAMES:
            return _NAMES[name]
        if name in _HOOKS.get(above, ()):
            return "hooks"
        above = name
    return None


def _in_use(folder: Path, policy: Policy | None, store: Store) -> Iterator[tuple[str, str]]:
    """The files and folders that count for whoever works in this folder, and what is in them."""
    own = (str(data_folder(sys.platform, os.environ, Path.home())), str(SYSTEM))
    yield from ((place, "rules") for place in own)
    # Where one of these is not there, its name or its folder is enough. One that is may be a link, or have other names.
    projects = _projects_of(folder)
    named = [(f"{place}/{FILE}", "rules") for place in own]
    named += [(f"{project}/{name}", has) for project in projects for name, has in _NAMES.items()]
    homes = (str(Path.home()), SETTINGS["claude"].of_person())
    named += [(f"{home}/{name}", "servers") for home in homes for name in client_files.NAMES]
    yield from (one for one in named if os.path.lexists(one[0]))
    yield from ((file, "hooks") for project in projects for file in settings_in(project))
    yield from ((file, "hooks") for file in settings_of_person())
    yield from ((file, "servers") for file in client_files.wrapped_files())
    yield from ((str(read.path), "rules") for read in ([] if policy is None else policy.files))
    yield from ((file, "settings") for file in config.READ)
    yield from ((str(file), "records") for file in store.files)


def _projects_of(folder: Path) -> Iterable[str]:
    """The folders whose settings may count for whoever works in this one: itself, all above it, and where an agent was
    started that has gone elsewhere since."""
    real = Path(os.path.realpath(folder))
    return dict.fromkeys([*(str(place).rstrip("/") for place in (real, *real.parents)), *projects_started_in()])


def _place(path: str) -> Place:
    """Where a file or a folder lies, links followed."""
    try:
        found = os.stat(path)
    except OSError:
        if os.path.islink(path):
            return next(_places(os.path.realpath(path)))
    else:
        return found.st_dev, found.st_ino, ""
    above, name = os.path.split(path)
    if above == path:
        return 0, 0, ""
    disk, number, names = _place(above)
    return disk, number, f"{names}/{folded(name)}" if names else folded(name)


def _places(real: str) -> Iterator[Place]:
    """Where a file lies by a path without links, and every folder it lies in, also those that are not there yet."""
    names: list[str] = []
    while True:
        try:
            found = os.stat(real)
        except OSError:
            names.append(folded(os.path.basename(real)))
        else:
            # From the innermost on: those that are not there yet, and then this one.
            for first in range(len(names)):
                yield found.st_dev, found.st_ino, "/".join(reversed(names[first:]))
            yield found.st_dev, found.st_ino, ""
            names.clear()
        if real == (real := os.path.dirname(real)):
            return
