"""What rules say of an agent's call, before anybody is asked and before a tool that only looks is let through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lastword.errors import ArgumentsError
from lastword.hook.acting import acting, folder_of
from lastword.hook.contract import HookInput
from lastword.lazily import load_later
from lastword.rules import PolicyPlaces, places_around, projects_started_in

if TYPE_CHECKING:
    from lastword.consent import call
    from lastword.hook import keys, showing
    from lastword.rules import Policy, Saying, layers
else:
    # Where there are no policy files nothing of this is needed, and an agent waits.
    layers = load_later("lastword.rules.layers")
    showing = load_later("lastword.hook.showing")
    keys = load_later("lastword.hook.keys")
    call = load_later("lastword.consent.call")


def places_of(said: HookInput) -> PolicyPlaces:
    """Where the policies lie that hold for an agent's call: of its folder, all above it, and where it was started. A
    command that names another folder to run in is in that one, too."""
    started = [Path(folder) for folder in projects_started_in()]
    runs_in = folder_of(said)
    named = () if runs_in is None else (runs_in, *runs_in.parents)
    return places_around(Path(said.cwd or "."), [*named, *started])


def policy_of(said: HookInput) -> Policy | None:
    """The rules that hold. A ConfigError says what is wrong with a file: then nothing is allowed."""
    places = places_of(said)
    return None if places.are_empty() else layers.load_policy(places)


def ruled(said: HookInput, policy: Policy | None) -> Saying | None:
    """What the rules say of a call; None when they say nothing that counts."""
    if policy is None:
        return None
    tool, _ = showing.tool_for(said, keys.AgentKeys().of(said.agent))
    try:
        meant = call.Call("", tool.name, tool.validate(acting(said)))
    except ArgumentsError:
        return None  # It will be refused for that.
    return policy.verdict(tool, meant, Path.cwd).saying


def is_ruled(said: HookInput) -> bool:
    """Whether a rule wants a call asked about or denied, whatever it is."""
    return ruled(said, policy_of(said)) in ("ask", "deny")
