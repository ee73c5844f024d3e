"""All rules that hold, looked up by tool: what they say of a call, and which comes nearest when none allows it.

The strictest wins: any deny, then any ask, then an allow. An allow counts only while its file and the tool behind it
are as a person accepted them; an ask and a deny count at once. Among allows one without limits wins; where all have
limits each of them may be enough, in the order of their names. The order in which they are written decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.consent import Call
from lastword.lazily import load_later
from lastword.rules.compiling import validator
from lastword.rules.places import Layer
from lastword.rules.rule import PolicyRule, Saying
from lastword.rules.wording import shown_name
from lastword.tools import Manifest, Tool, ToolRegistry

if TYPE_CHECKING:
    from lastword.rules import reading
else:
    # A session without rules reads no files.
    reading = load_later("lastword.rules.reading")

# How many rules are compared for the one line on a card. `lastword policy explain` compares all of them.
MAX_COMPARED = 5

Folder = Callable[[], Path]
"""Says from which folder paths and commands are meant. Asked only where a rule speaks of such."""
NOWHERE = Path("/")

Unaccepted = Callable[[PolicyRule, Tool], str | None]
"""Why an allow does not count for a tool as it is, or None: nobody has accepted the file, or the tool."""


class PolicyFile(msgspec.Struct, frozen=True):
    """A file that was read."""

    path: Path
    layer: Layer
    digest: str
    is_accepted: bool
    text: str = ""

    @property
    def state(self) -> str:
        """What its rules can do, for people. A project's file asks and denies, whoever accepts it."""
        if self.layer == "project":
            return "it can only ask and deny"
        return "accepted" if self.is_accepted else "not accepted: it can only ask and deny"


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say of one call."""

    saying: Saying | None = None
    """None when no rule speaks of it, or none that counts."""
    rule: PolicyRule | None = None
    but: str = ""
    """Why the rule, which would allow it, does not count."""
    others: tuple[PolicyRule, ...] = ()
    """Further rules that allow it, where the rule has limits: it may have nothing left."""


_SILENT = Verdict()


class Policy:
    """The rules of all layers, in no order."""

    def __init__(self, rules: Iterable[PolicyRule], unaccepted: Unaccepted, files: Sequence[PolicyFile] = ()) -> None:
        self.rules = tuple(rules)
        self.files = tuple(files)
        self._unaccepted = unaccepted
        self._by_tool: dict[tuple[str, str | None], _ToolRules | None] = {}
        self._last: tuple[Tool, bytes, Verdict] | None = None

    @classmethod
    def vouched(cls, text: str, registry: ToolRegistry, file: Path | str = "policy.toml") -> Policy:
        """A user's policy for which a program vouches, and for its own tools as they are registered now.

        For hosts that bring their rules along: a person who runs commands accepts theirs with `lastword policy accept`.
        """
        known = {tool.name: tool.digest for tool in registry.all()}

        def unaccepted(rule: PolicyRule, tool: Tool) -> str | None:
            return None if known.get(tool.name) == tool.digest else CHANGED_TOOL

        return cls(reading.read_rules(text, Path(file), "user"), unaccepted)

    def only_stricter(self, why: str) -> Policy:
        """The same rules where none of their allows counts, for this reason: they can only ask and deny."""
        return Policy(self.rules, lambda rule, tool: why, self.files)

    def facts(self) -> dict[str, Any]:
        """Which files it was read from, as they were: for the journal."""
        return {
            "files": [
                {"path": str(file.path), "layer": file.layer, "digest": file.digest, "accepted": file.is_accepted}
                for file in self.files
            ]
        }

    def verdict(self, tool: Tool, call: Call, folder: Folder) -> Verdict:
        """What the rules say of a call, and of the calls of other tools that it stands for."""
        found = self._of_call(tool, call, folder)
        if tool.consists_of is None or found.saying == "deny":
            return found
        strictest = found
        for part, given in tool.consists_of(values.decode(call.arguments)):
            said = self._of_part(part, given, folder)
            if said.saying == "deny":
                return said
            # What allows a part says nothing of the whole: a batch does not become looser by what it is made of.
            if said.saying == "ask" and strictest.saying != "ask":
                strictest = said
        return strictest

    def _of_part(self, tool: Tool, given: dict[str, Any], folder: Folder) -> Verdict:
        rules = self._rules_of(tool)
        if rules is None:
            return _SILENT
        # As a call of that tool would have them: what was left out is there by its default.
        arguments = {name: values.decode(default) for name, default in tool.defaults.items()} | given
        return self._strictest(rules, tool, arguments, folder_for(tool, folder))

    def _of_call(self, tool: Tool, call: Call, folder: Folder) -> Verdict:
        rules = self._rules_of(tool)
        if rules is None:
            return _SILENT
        last = self._last
        if last is not None and last[0] is tool and last[1] is call.arguments:
            return last[2]  # Asked again about the very same bytes: nothing that decides has changed.
        here = folder_for(tool, folder) if rules.is_volatile else NOWHERE
        found = self._strictest(rules, tool, values.decode(call.arguments), here)
        if not rules.is_volatile:
            self._last = tool, call.arguments, found
        return found

    def _strictest(self, rules: _ToolRules, tool: Tool, arguments: dict[str, Any], folder: Path) -> Verdict:
        for saying, group in (("deny", rules.deny), ("ask", rules.ask)):
            if (rule := group.first(arguments, folder)) is not None:
                return Verdict(saying, rule)  # type: ignore[arg-type]  # It is one of the two.
        found, limited = _SILENT, []
        for rule in rules.allow.all(arguments, folder):
            but = _why_unfit(rule, tool) or self._unaccepted(rule, tool) or ""
            if but or not has_key(tool.manifest, rule):
                found = found if found.rule is not None else Verdict(None if but else "allow", rule, but)
            elif rule.budget is None:
                return Verdict("allow", rule)
            else:
                limited.append(rule)
        return Verdict("allow", limited[0], others=tuple(limited[1:])) if limited else found

    def why_unaccepted(self, rule: PolicyRule, tool: Tool) -> str | None:
        """Why an allow does not count for a tool as it is, or None."""
        return self._unaccepted(rule, tool)

    def nearest(
        self, tool: Tool, arguments: dict[str, Any], folder: Folder, most: int | None = MAX_COMPARED
    ) -> tuple[PolicyRule, list[str]] | None:
        """The allow that misses least of this call, and what misses; None when there is none for the tool."""
        rules = self._rules_of(tool)
        if rules is None:
            return None
        here = folder_for(tool, folder) if rules.is_volatile else NOWHERE
        best, least = None, 0
        for rule in rules.allow.rules[:most]:
            missed = rule.where.missed(arguments, here) + (_why_unfit(rule, tool) is not None)
            if best is None or missed < least:
                best, least = rule, missed
        if best is None:
            return None
        misses = best.where.misses(arguments, here, tool.secrets)
        but = _why_unfit(best, tool)
        return best, misses if but is None else [*misses, but]

    def _rules_of(self, tool: Tool) -> _ToolRules | None:
        key = tool.name, tool.address
        try:
            return self._by_tool[key]
        except KeyError:
            mine = [rule for rule in self.rules if speaks_of(rule, tool)]
            # In the order of their names, so that the same is decided and said in whatever order they are written;
            # those without limits first, since none of the others is looked at then.
            mine.sort(key=lambda rule: (rule.budget is not None, rule.name, str(rule.file), rule.line))
            found = self._by_tool[key] = _ToolRules(mine) if mine else None
            return found


def folder_for(tool: Tool, folder: Folder) -> Path:
    """The folder that paths and commands of a tool's calls are meant from; a relative one when nobody knows it."""
    return folder() if tool.works_in is None else tool.works_in


CHANGED_TOOL = "the tool is not the one that was accepted for it; lastword policy accept"


def speaks_of(rule: PolicyRule, tool: Tool) -> bool:
    """Whether a rule is about this tool: by its id, by its address, or as one of all tools of a server or an agent."""
    if rule.tool == tool.name or (tool.address is not None and rule.tool == tool.address):
        return True
    return tool.address is not None and rule.tool.endswith(("/*", ":*")) and tool.address.startswith(rule.tool[:-1])


def has_key(manifest: Manifest, rule: PolicyRule) -> bool:
    """Whether the tool's own key is turned far enough for an allow like this one."""
    return manifest.auto_approve in (True, "bounds") or (manifest.auto_approve == "exact" and rule.where.is_exact)


def _why_unfit(rule: PolicyRule, tool: Tool) -> str | None:
    """Why an allow is none for the tool, in words: it does not speak of a parameter, or it sums a secret."""
    for parameter in tool.manifest.parameters:
        if parameter.name not in rule.where.bounds:
            return f"it says nothing of {parameter.name}"
    return None if rule.budget is None else why_not_summed(rule, tool)


def why_not_summed(rule: PolicyRule, tool: Tool) -> str | None:
    """Which argument a rule may not sum for the tool, in words: what comes to a sum is written down and told."""
    for name in () if rule.budget is None else rule.budget.sums:
        if name in tool.secrets:
            return f"it sums {shown_name(name)}, which is secret, and the sum would tell it"
    return None


class _ToolRules:
    """The rules of one tool."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.deny, self.ask, self.allow = (
            _Group([rule for rule in rules if rule.saying == saying]) for saying in ("deny", "ask", "allow")
        )
        self.is_volatile = any(rule.where.is_volatile for rule in rules)


class _Group:
    """Rules that say the same of one tool. That none of them speaks of a call is found in one look."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = tuple(rules)

    @cached_property
    def _any(self) -> Any:
        return validator({"anyOf": [rule.where.schema for rule in self.rules]})

    def all(self, arguments: dict[str, Any], folder: Path) -> Iterable[PolicyRule]:
        if not self.rules:
            return ()
        try:
            if not self._any.is_valid(arguments):
                return ()
        except ValueError:
            pass  # One of them is nested more deeply than a validator can compare, and each is looked at by itself.
        return (rule for rule in self.rules if rule.where.covers(arguments, folder))

    def first(self, arguments: dict[str, Any], folder: Path) -> PolicyRule | None:
        return next(iter(self.all(arguments, folder)), None)
