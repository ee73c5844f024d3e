"""The rules that hold for a command, read once when it starts. A file with an error: nothing starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lastword.cli import complain
from lastword.config import load
from lastword.rules import Policy, load_policy, places_for
from lastword.store import SqliteStore, default_path, is_whole, open_store
from lastword.tools import given_above, is_below, is_in_folder_above

STORE = "LASTWORD_STORE"
ELSEWHERE = "a tool or an agent started this on another memory than yours, where what was used of it is not counted"


def rules_here(project: str | Path | None, store: str | None, config: Path | None = None) -> Policy | None:
    """The rules of organisation, user and project, for work on this memory. What they do not allow yet is said."""
    policy = load_policy(places_for(Path() if project is None else Path(project)))
    if policy is None:
        return None
    for file in policy.files:
        if not file.is_accepted and any(rule.saying == "allow" for rule in policy.rules if rule.file == file.path):
            complain(
                f"{file.path}: you have not accepted it as it is, so what it allows is asked about\n"
                "hint: lastword policy accept shows it and asks you"
            )
    return counted(policy, store, config)


def counted(policy: Policy, store: str | None, config: Path | None = None) -> Policy:
    """The rules for work on this memory: limits are counted in it, and in a new one they would begin anew."""
    return policy if is_own_memory(store, config) else policy.only_stricter(ELSEWHERE)


def is_own_memory(store: str | None, config: Path | None = None) -> bool:
    """Whether this is the memory that the person chose. A person may name any; what a tool started may not.

    Below, a file counts once the person has accepted it, and a variable only as it was where all of this began.
    """
    if not is_below():
        return True
    if not is_in_folder_above():
        return False
    named = given_above(STORE)
    if named and not is_whole(named):
        return False  # From which folder it was meant nobody knows here.
    outer = {name: value for name, value in os.environ.items() if name != STORE}
    own = named or load(config, environ=outer).server.store
    return _place(store or load(config, environ=os.environ).server.store) == _place(own)


def _place(address: str | None) -> str:
    """The same for two addresses of the same memory in a file."""
    address = address or f"sqlite:///{default_path(sys.platform, os.environ, Path.home())}"
    if not address.lower().startswith("sqlite:"):
        return address
    opened = open_store(address)
    assert isinstance(opened, SqliteStore)
    return os.path.realpath(opened.path)
