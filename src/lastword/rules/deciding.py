"""Who decides about a call: one pure function, asked before a card is drawn, after it, and when the call starts.

A rule stands for the preset's key and never for the tool's. A tool with `autoApprove: "exact"` takes a standing yes
only where every argument is given exactly, and so never the preset's, which knows no arguments at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lastword import values
from lastword.consent import AUTO, NOBODY, Auto, Call, Forbidden, Nobody, Person, Preset, Ruled
from lastword.display import visible
from lastword.rules.policy import Folder, Policy, Verdict
from lastword.rules.rule import Budget, PolicyRule, Saying
from lastword.tools import Manifest, Tool

Decision = Nobody | Auto | Ruled | Forbidden | Person

NO_KEY = "this tool must be asked about each time"
ONLY_EXACT = "this tool takes a standing yes only for exact arguments"
# Programs that carry out calls of their own, and do not say where. hook/agents.py has which; a test compares.
WITHOUT_FOLDER = frozenset({"Codex"})
_UNLIMITED = Budget()


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
        return Person((), f"Asked because the rule {said.rule} says so.", is_ruled=True, why=str(said.rule))
    found = by_keys(tool.manifest, preset)
    if not isinstance(found, Person):
        return found
    if why := why_not(tool, said):
        but = f"the rule {said.rule} would allow it, but {why}"
        turned = f"; {key_of(tool)}" if why in (NO_KEY, ONLY_EXACT) else ""
        return Person(found.missing, f"Asked. {but[:1].upper()}{but[1:]}.", why=f"{but}{turned}")
    return _by_rule(said.rule, tuple(_by_rule(other) for other in said.others) if said.others else ())


def _by_rule(rule: PolicyRule, others: tuple[Ruled, ...] = ()) -> Ruled:
    budget = rule.budget or _UNLIMITED
    return Ruled(str(rule), rule.key, budget.calls, budget.sums, budget.per, others)


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


def why_not(tool: Tool, said: Verdict) -> str:
    """Why an allow that speaks of a call is not enough; empty when it is."""
    assert said.rule is not None
    if tool.manifest.auto_approve is False:
        return why_keyless(tool.carried_out_by or "") or NO_KEY
    if tool.manifest.auto_approve == "exact" and not said.rule.where.is_exact:
        return ONLY_EXACT
    return said.but


def why_keyless(program: str) -> str:
    """Why nobody can turn the key of a program's tools; empty where somebody can."""
    return f"{program} does not tell its hooks in which folder a command runs" if program in WITHOUT_FOLDER else ""


def key_of(tool: Tool) -> str:
    """Who turns the key of a tool that keeps a rule from answering, and how; or why nobody can."""
    if keyless := why_keyless(tool.carried_out_by or ""):
        return keyless
    turned = "bounds" if tool.manifest.auto_approve == "exact" else "exact"
    lets = f"--standing {turned} lets rules answer{' within bounds' if turned == 'bounds' else ''}"
    whose, _, name = (tool.address or "").partition(":")
    if whose == "mcp":
        return f"lastword mcp trust {name.partition('/')[0]} {lets}"
    if whose:
        return f"lastword hook install {whose} {lets}"
    return f"its author lets rules answer with autoApprove{': true' if turned == 'bounds' else ''}"


class Explanation(msgspec.Struct, frozen=True):
    """What would be decided about a call that nobody makes, and why, in words that are marked."""

    saying: Saying
    why: str
    """The rule or the grant that decides; where a person is asked, the rule that comes nearest, and what misses."""
    sentence: str = ""
    """The same in a whole sentence, for a person."""

    def __post_init__(self) -> None:
        if not self.sentence:
            msgspec.structs.force_setattr(self, "sentence", f"{self.why[:1].upper()}{self.why[1:]}.")

    def __str__(self) -> str:
        return f"{self.saying}. {self.why}"


def explained(
    found: Decision, tool: Tool, preset: Preset, policy: Policy | None, call: Call, folder: Folder
) -> Explanation:
    """What was decided, in words."""
    match found:
        case Nobody():
            return Explanation("allow", "This tool asks nobody")
        case Auto():
            return Explanation("allow", f"The preset {visible(preset.name)} and the tool both say so")
        case Ruled():
            return Explanation("allow", found.rule, f"The rule {found.rule} allows it.")
        case Forbidden():
            return Explanation("deny", found.rule, f"The rule {found.rule} denies it.")
    if found.is_ruled:
        return Explanation("ask", found.why, f"The rule {found.why} wants it asked each time.")
    if found.why:
        return Explanation("ask", found.why)
    if policy is None:
        return Explanation("ask", "There are no rules")
    nearest = policy.nearest(tool, values.decode(call.arguments), folder, None)
    if nearest is None:
        return Explanation("ask", f"No rule allows calls of {visible(tool.name)}")
    words = nearest_words(*nearest)
    return Explanation("ask", f"Nearest: {words}", f"The rule that comes nearest is {words}.")


def nearest_words(rule: PolicyRule, misses: list[str]) -> str:
    """The rule that comes nearest, and what misses."""
    return f"{rule}: {miss_words(misses)}"


def miss_words(misses: Sequence[str]) -> str:
    """What misses, in a line."""
    others = len(misses) - 1
    does = "argument does" if others == 1 else "arguments do"
    return f"{misses[0]}; {others} more {does} not fit" if others else misses[0]


def _with_nearest(found: Person, tool: Tool, policy: Policy, call: Call, folder: Folder) -> Person:
    if tool.manifest.auto_approve is False:
        return found  # No rule could have allowed it.
    nearest = policy.nearest(tool, values.decode(call.arguments), folder)
    return found if nearest is None else Person(found.missing, f"Asked. Nearest rule: {nearest_words(*nearest)}.")
