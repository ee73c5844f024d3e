"""Rules beside the tools at hand: which of these they allow, and what somebody who wrote them may not have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastword.display import visible
from lastword.errors import did_you_mean
from lastword.rules.policy import NO_KEY, ONLY_EXACT, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lastword.rules.policy import Policy
    from lastword.rules.rule import PolicyRule
    from lastword.tools import Tool, ToolRegistry


class PolicyReview:
    """A policy, read for its author before it decides about anything."""

    def __init__(self, policy: Policy, registry: ToolRegistry) -> None:
        self._policy = policy
        self._tools = registry.all()

    def allowed(self) -> Iterator[tuple[PolicyRule, Tool]]:
        """Each rule that allows, with each tool that it speaks of."""
        for rule in self._policy.rules:
            if rule.saying == "allow":
                yield from ((rule, tool) for tool in self._tools if rule.speaks_of(tool))

    def outdated(self) -> Iterator[str]:
        """Rules of an accepted file that allow nothing any more, since their tool has changed."""
        accepted = {file.path for file in self._policy.files if file.is_accepted}
        for rule, tool in self.allowed():
            if rule.file in accepted and (why := self._policy.why_unaccepted(rule, tool)):
                yield f"{rule}: it allows nothing of {tool.name}: {why}"

    def notes(self) -> Iterator[str]:
        """What its author may not have meant."""
        for rule in self._policy.rules:
            tools = [tool for tool in self._tools if rule.speaks_of(tool)]
            if not tools:
                nearest = did_you_mean(rule.tool, [tool.address or tool.name for tool in self._tools])
                yield f"{rule}: there is no tool {visible(rule.tool)} here{f'; {nearest}' if nearest else ''}"
            if unknown := _unknown_argument(rule, tools):
                yield f"{rule}: it never matches: {unknown}"
            for tool in tools if rule.saying == "allow" else ():
                yield from (f"{rule}: {note}" for note in _notes_of(rule, tool))


def _notes_of(rule: PolicyRule, tool: Tool) -> Iterator[str]:
    """Why a rule allows less of a tool than it seems to, or more."""
    manifest, nothing = tool.manifest, f"it allows nothing of {tool.name}"
    unspoken = [parameter.name for parameter in manifest.parameters if parameter.name not in rule.where.bounds]
    if unspoken:
        yield f"it says nothing of {', '.join(unspoken)}, so it never matches {tool.name}"
    if summed := rule.why_not_summed(tool):
        yield f"{nothing}: {summed}"
    if not rule.has_key(tool):
        yield f"{nothing}: {NO_KEY if manifest.auto_approve is False else ONLY_EXACT}; {key_of(tool)}"
    if tool.address is not None:
        return  # Servers seldom say which of their texts are paths, and of agents it is known.
    for name, bound in rule.where.bounds.items():
        if bound.names_folder and not manifest.is_path(name):
            yield (
                f"{tool.name} does not say that {visible(name)} is a path; if it is none, every text that begins with "
                "that folder is let through, whatever follows"
            )


def _unknown_argument(rule: PolicyRule, tools: Sequence[Tool]) -> str:
    """An argument that a rule needs and that none of its tools takes, in words: a slip that would deny nothing."""
    if not tools or any(tool.manifest.additional_parameters for tool in tools):
        return ""
    taken = {parameter.name for tool in tools for parameter in tool.manifest.parameters}
    for name, bound in rule.where.bounds.items():
        if name not in taken and not bound.may_be_absent:
            nearest = did_you_mean(name, sorted(taken))
            return f"{tools[0].name} has no argument {visible(name)}{f'; {nearest}' if nearest else ''}"
    return ""
