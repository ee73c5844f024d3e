"""Files that are changed by people alone: the policies, and what a person has accepted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from lastword.editor import Preview
from lastword.rules.places import PROJECT_FILE, SYSTEM
from lastword.store.folders import data_folder


def changes_policy(previews: Iterable[Preview], folder: Path | None) -> str | None:
    """Which policy file a call would write, or None. Such a call is asked about, whoever says yes to it."""
    return policy_among((path for shown in previews for path in (shown.path, shown.renamed_to) if path), folder)


def policy_among(paths: Iterable[str], folder: Path | None) -> str | None:
    """The first of these paths that is a policy file or lies beside what a person has accepted, or None."""
    own = [os.path.realpath(where) for where in (data_folder(sys.platform, os.environ, Path.home()), SYSTEM)]
    for path in paths:
        there = os.path.realpath((folder or Path()) / path)
        names = (os.path.basename(there).casefold(), os.path.basename(path).casefold())
        if PROJECT_FILE in names or any(f"{there}/".startswith(f"{where}/") for where in own):
            return path
    return None
