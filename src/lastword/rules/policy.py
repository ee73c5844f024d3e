"""All rules that hold, looked up by tool: what they say of a call, and which comes nearest when none allows it.

The strictest wins: any deny, then any ask, then an allow. An allow counts only while its file and the tool behind it
are as a person accepted them; an ask and a deny count at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.consent.call import Call
from lastword.lazily import load_later
from lastword.rules.bounds import validator
from lastword.rules.places import Layer
from lastword.rules.rule import PolicyRule, Saying
from lastword.tools.registry import ToolRegistry
from lastword.tools.tool import Tool

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


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say of one call."""

    saying: Saying | None = None
    """None when no rule speaks of it, or none that counts."""
    rule: PolicyRule | None = None
    but: str = ""
    """Why the rule, which would allow it, does not count."""


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

    def facts(self) -> dict[str, Any]:
        """Which files it was read from, as they were: for the journal."""
        return {
            "files": [
                {"path": str(file.path), "layer": file.layer, "digest": file.digest, "accepted": file.is_accepted}
                for file in self.files
            ]
        }

    def verdict(self, tool: Tool, call: Call, folder: Folder) -> Verdict:
        """What the rules say of a call."""
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
        found = _SILENT
        for rule in rules.allow.all(arguments, folder):
            but = _unspoken(rule, tool) or self._unaccepted(rule, tool)
            if but is None:
                return Verdict("allow", rule)
            found = Verdict(None, rule, but)
        return found

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
            missed = rule.where.missed(arguments, here) + (_unspoken(rule, tool) is not None)
            if best is None or missed < least:
                best, least = rule, missed
        if best is None:
            return None
        misses = best.where.misses(arguments, here, tool.secrets)
        but = _unspoken(best, tool)
        return best, misses if but is None else [*misses, but]

    def _rules_of(self, tool: Tool) -> _ToolRules | None:
        key = tool.name, tool.address
        try:
            return self._by_tool[key]
        except KeyError:
            mine = [rule for rule in self.rules if speaks_of(rule, tool)]
            # In the order of their places, so that a card says the same whatever was read first.
            mine.sort(key=lambda rule: (str(rule.file), rule.line))
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


def _unspoken(rule: PolicyRule, tool: Tool) -> str | None:
    """Which parameter of the tool an allow does not speak of, in words."""
    for parameter in tool.manifest.parameters:
        if parameter.name not in rule.where.bounds:
            return f"it says nothing of {parameter.name}"
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
        if not self.rules or not self._any.is_valid(arguments):
            return ()
        return (rule for rule in self.rules if rule.where.covers(arguments, folder))

    def first(self, arguments: dict[str, Any], folder: Path) -> PolicyRule | None:
        return next(iter(self.all(arguments, folder)), None)
