"""Who decides about a call: one pure function, asked before a card is drawn, after it, and when the call starts.

A rule stands for the preset's key and never for the tool's. A tool with `autoApprove: "exact"` takes a standing yes
only where every argument is given exactly, and so never the preset's, which knows no arguments at all.
"""

from __future__ import annotations

from lastword import values
from lastword.consent.approval import Preset
from lastword.consent.call import Call
from lastword.consent.decider import AUTO, NOBODY, Auto, Forbidden, Nobody, Person, Ruled
from lastword.rules.policy import Folder, Policy, Verdict
from lastword.rules.rule import Budget, PolicyRule
from lastword.tools.manifest import Manifest
from lastword.tools.tool import Tool

Decision = Nobody | Auto | Ruled | Forbidden | Person

NO_KEY = "this tool must be asked about each time"
ONLY_EXACT = "this tool takes a standing yes only for exact arguments"


def decide(tool: Tool, preset: Preset, policy: Policy | None, call: Call, folder: Folder) -> Decision:
    """Say whose yes a call needs. The strictest word wins, whoever said it."""
    if policy is None:
        return by_keys(tool.manifest, preset)
    said = policy.verdict(tool, call, folder)
    if said.saying is None and said.rule is None:
        found = by_keys(tool.manifest, preset)
        return _with_nearest(found, tool, policy, call, folder) if isinstance(found, Person) else found
    assert said.rule is not None
    if said.saying == "deny":
        return Forbidden(str(said.rule))
    if said.saying == "ask":
        return Person((), f"Asked because the rule {said.rule} says so.", is_ruled=True)
    found = by_keys(tool.manifest, preset)
    if not isinstance(found, Person):
        return found
    if why := why_not(tool.manifest, said):
        return Person(found.missing, f"Asked although the rule {said.rule} allows it: {why}.")
    budget = said.rule.budget or Budget()
    return Ruled(str(said.rule), said.rule.key, budget.calls, budget.sums, budget.per)


def by_keys(manifest: Manifest, preset: Preset) -> Nobody | Auto | Person:
    """Whose yes a call of this tool needs where no rule speaks of it."""
    if not manifest.require_approval:
        return NOBODY
    if preset.auto_approve and manifest.auto_approve is True:
        return AUTO

    # Two keys, and at least one is missing. The card tells the person which.
    if manifest.auto_approve is True:
        return Person(("preset",))
    return Person(("tool",)) if preset.auto_approve else Person(("preset", "tool"))


def why_not(manifest: Manifest, said: Verdict) -> str:
    """Why an allow that speaks of a call is not enough; empty when it is."""
    assert said.rule is not None
    if manifest.auto_approve is False:
        return NO_KEY
    if manifest.auto_approve == "exact" and not said.rule.where.is_exact:
        return ONLY_EXACT
    return said.but


def explain(tool: Tool, preset: Preset, policy: Policy | None, call: Call, folder: Folder) -> str:
    """What would be decided, and by which rule; where a person is asked, the nearest and what misses."""
    found = decide(tool, preset, policy, call, folder)
    match found:
        case Nobody():
            return "allow. This tool asks nobody"
        case Auto():
            return f"allow. The preset {preset.name} and the tool both say so"
        case Ruled():
            return f"allow. {found.rule}"
        case Forbidden():
            return f"deny. {found.rule}"
    if policy is None:
        return "ask. There are no rules"
    if found.is_ruled:
        return f"ask. {found.line.removeprefix('Asked because the rule ').removesuffix(' says so.')}".rstrip(". ")
    if found.line.startswith("Asked although"):
        return f"ask. {found.line.removeprefix('Asked although the rule ').rstrip('.')}"
    nearest = policy.nearest(tool, values.decode(call.arguments), folder, None)
    if nearest is None:
        return f"ask. No rule allows calls of {tool.name}"
    return f"ask. Nearest: {nearest_words(*nearest)}"


def nearest_words(rule: PolicyRule, misses: list[str]) -> str:
    """The rule that comes nearest, and what misses."""
    more = f", and {len(misses) - 1} more" if len(misses) > 1 else ""
    return f"{rule}: {misses[0]}{more}"


def _with_nearest(found: Person, tool: Tool, policy: Policy, call: Call, folder: Folder) -> Person:
    if tool.manifest.auto_approve is False:
        return found  # No rule could have allowed it.
    nearest = policy.nearest(tool, values.decode(call.arguments), folder)
    return found if nearest is None else Person(found.missing, f"Asked. Nearest rule: {nearest_words(*nearest)}.")
