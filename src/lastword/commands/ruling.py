"""The rules that hold for a command, read once when it starts. A file with an error: nothing starts."""

from __future__ import annotations

from pathlib import Path

from lastword.cli import complain
from lastword.rules.layers import load_policy
from lastword.rules.places import places_for
from lastword.rules.policy import Policy


def rules_here(project: str | Path | None = None) -> Policy | None:
    """The rules of organisation, user and project. What they do not allow yet is said."""
    policy = load_policy(places_for(Path() if project is None else Path(project)))
    if policy is None:
        return None
    for file in policy.files:
        if not file.is_accepted and any(rule.saying == "allow" for rule in policy.rules if rule.file == file.path):
            complain(
                f"{file.path}: you have not accepted it as it is, so what it allows is asked about\n"
                "hint: lastword policy accept shows it and asks you"
            )
    return policy
