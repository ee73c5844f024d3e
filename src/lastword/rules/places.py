"""Where policy files lie. Nothing here knows a rule: a hook, which starts often, finds at once that there are none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from lastword.store import data_folder

Layer = Literal["organisation", "user", "project"]

FILE = "policy.toml"
PROJECT_FILE = "lastword.policy.toml"
SYSTEM = Path("/Library/Application Support/lastword" if sys.platform == "darwin" else "/etc/lastword")


class PolicyPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of the three layers are, whether there are any or not."""

    organisation: Path
    user: Path
    project: Path
    around: tuple[Path, ...] = ()
    """Further files of projects that hold, too: of the folders above, for whoever does not stay in one."""
    owner: int = 0
    """To whom the organisation's file has to belong: root."""

    def layers(self) -> tuple[tuple[Layer, Path], ...]:
        further: list[tuple[Layer, Path]] = [("project", path) for path in self.around]
        return ("organisation", self.organisation), ("user", self.user), ("project", self.project), *further

    def are_empty(self) -> bool:
        """Whether there is no file at all. One that cannot be looked at may be there."""
        return not any(_may_be_there(path) for _, path in self.layers())


def places_for(project: Path, environ: Mapping[str, str] | None = None) -> PolicyPlaces:
    """Where policies lie for whoever works in this folder."""
    environ = os.environ if environ is None else environ
    own = data_folder(sys.platform, environ, Path.home())
    return PolicyPlaces(organisation=SYSTEM / FILE, user=own / FILE, project=project / PROJECT_FILE)


def places_around(folder: Path, others: Iterable[Path] = ()) -> PolicyPlaces:
    """Where policies lie for whoever moves about: of this folder, of all above it, and of some others.

    A project may only ask and deny. Whoever goes down into a folder of it would otherwise leave its rules behind.
    """
    found = places_for(folder)
    here = Path(os.path.realpath(folder))
    files = dict.fromkeys(place / PROJECT_FILE for place in (here, *here.parents, *others))
    files.pop(found.project, None)
    return msgspec.structs.replace(found, around=tuple(files))


def _may_be_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
