"""A rule: of which calls it speaks, what it says of them, and what its author may not have meant. An order of files or
rules means nothing here.

An `allow` speaks of every parameter of its tool: what it does not name must not be there. An `ask` or a `deny` speaks
of the arguments that it names, whatever else is given: otherwise one argument more would be a way around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword import values
from lastword.display import visible
from lastword.errors import did_you_mean
from lastword.rules.value import shown_name, validator

if TYPE_CHECKING:
    from lastword.rules.bounds import Bound
    from lastword.rules.policy_places import Layer
    from lastword.tools import Tool

Saying = Literal["allow", "ask", "deny"]

SAYINGS: tuple[Saying, ...] = ("allow", "ask", "deny")

NO_KEY = "this tool must be asked about each time"
ONLY_EXACT = "this tool takes a standing yes only for exact arguments"
# Programs that carry out calls of their own, and do not say where. hook/agents.py has which; a test compares.
WITHOUT_FOLDER = frozenset({"Codex"})


class Budget(msgspec.Struct, frozen=True):
    """How much of a standing yes there is."""

    calls: int | None = None
    sums: dict[str, Decimal] = {}
    """The most that an argument may come to over all calls, by its name."""
    per: Literal["day"] | None = None
    """Counted anew for each day, in UTC; without it, once and for all."""

    @property
    def words(self) -> str:
        """After what it ends; empty when it does not."""
        said = [] if self.calls is None else [f"{self.calls} call{'' if self.calls == 1 else 's'}"]
        said += [f"{_exactly(most)} of {shown_name(name)} in all" for name, most in self.sums.items()]
        return f"at most {' and '.join(said)}{' each day (UTC)' if self.per else ''}" if said else ""


def _exactly(most: Decimal) -> str:
    """A limit to its last digit. Whatever calculates with it would round it to 28."""
    text = f"{most:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Where:
    """The arguments of a call, bounded by name."""

    def __init__(self, bounds: Mapping[str, Bound], *, is_whole: bool) -> None:
        self.bounds = dict(bounds)
        self.is_whole = is_whole
        """Whether what is not named must not be there."""
        self.is_volatile = any(bound.is_volatile for bound in bounds.values())

    @property
    def schema(self) -> dict[str, Any]:
        """The part of it that JSON Schema can say."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: bound.schema for name, bound in self.bounds.items()},
            "required": [name for name, bound in self.bounds.items() if not bound.may_be_absent],
        }
        if self.is_whole:
            schema["additionalProperties"] = False
        return schema

    @cached_property
    def _validator(self) -> Any:
        return validator(self.schema)

    def covers(self, arguments: dict[str, Any], folder: Path) -> bool:
        """Whether these arguments lie inside of every bound."""
        try:
            if not self._validator.is_valid(arguments):
                return False
        except ValueError:  # A bound is nested more deeply than a validator can compare.
            try:
                return not self.misses(arguments, folder)
            except RecursionError:
                return not self.is_whole  # An allow does not cover what nobody can tell; an ask or a deny may mean it.
        if not self.is_volatile:
            return True
        return all(bound.holds(arguments[name], folder) for name, bound in self.bounds.items() if name in arguments)

    def misses(self, arguments: dict[str, Any], folder: Path, secrets: frozenset[str] = frozenset()) -> list[str]:
        """What of these arguments does not fit, a sentence each; nothing when all of it does."""
        found = []
        for name, bound in self.bounds.items():
            if name not in arguments:
                if not bound.may_be_absent:
                    found.append(f"{shown_name(name)} is not given")
            elif (said := bound.miss(arguments[name], folder)) is not None:
                found.append(f"{shown_name(name)} {'does not fit' if name in secrets else said}")
        if self.is_whole:
            found += [f"it says nothing of {visible(name[:60])}" for name in arguments if name not in self.bounds]
        return found

    @staticmethod
    def miss_words(misses: Sequence[str]) -> str:
        """What misses, in a line."""
        others = len(misses) - 1
        does = "argument does" if others == 1 else "arguments do"
        return f"{misses[0]}; {others} more {does} not fit" if others else misses[0]

    def words(self) -> str:
        """All bounds in one sentence."""
        said = (f"{shown_name(name)} {bound.words()}" for name, bound in self.bounds.items())
        return ", ".join(said) or "without arguments"

    def words_of(self, tool: str) -> str:
        """The same of the calls of a tool."""
        return f"{visible(tool)}, {self.words()}"

    @property
    def is_exact(self) -> bool:
        """Whether every argument is given exactly."""
        return all(bound.is_exact for bound in self.bounds.values())


def any_of(bounded: Iterable[Where]) -> Any:
    """A validator for what lies inside of one of these at least, as far as JSON Schema can say."""
    return validator({"anyOf": [where.schema for where in bounded]})


@dataclass(eq=False, kw_only=True)
class PolicyRule:
    """One rule of a policy file."""

    name: str
    tool: str
    saying: Saying
    where: Where
    layer: Layer
    file: Path
    line: int
    budget: Budget | None = None

    @cached_property
    def key(self) -> str:
        """By what it says and not by its name or its place: a rule that says something else is another rule."""
        bounds = {name: bound.terms for name, bound in self.where.bounds.items()}
        facts: dict[str, Any] = {"tool": self.tool, "decide": self.saying, "where": bounds}
        if self.budget is not None:
            sums = {argument: str(most) for argument, most in self.budget.sums.items()}
            facts["limits"] = {"calls": self.budget.calls, "sum": sums, "per": self.budget.per}
        return values.digest(values.canonical(facts))

    def speaks_of(self, tool: Tool) -> bool:
        """Whether it is about this tool: by its id, by its address, or as one of all tools of a server or an agent."""
        if self.tool == tool.name or (tool.address is not None and self.tool == tool.address):
            return True
        return tool.address is not None and self.tool.endswith(("/*", ":*")) and tool.address.startswith(self.tool[:-1])

    def has_key(self, tool: Tool) -> bool:
        """Whether the tool's own key is turned far enough for an allow like this one."""
        key = tool.manifest.auto_approve
        return key in (True, "bounds") or (key == "exact" and self.where.is_exact)

    @staticmethod
    def why_keyless(program: str) -> str:
        """Why nobody can turn the key of a program's tools; empty where somebody can."""
        return f"{program} does not tell its hooks in which folder a command runs" if program in WITHOUT_FOLDER else ""

    @staticmethod
    def key_of(tool: Tool) -> str:
        """Who turns the key of a tool that keeps a rule from answering, and how; or why nobody can."""
        if keyless := PolicyRule.why_keyless(tool.carried_out_by or ""):
            return keyless
        turned = "bounds" if tool.manifest.auto_approve == "exact" else "exact"
        lets = f"--standing {turned} lets rules answer{' within bounds' if turned == 'bounds' else ''}"
        whose, _, name = (tool.address or "").partition(":")
        if whose == "mcp":
            return f"lastword mcp trust {name.partition('/')[0]} {lets}"
        if whose:
            return f"lastword hook install {whose} {lets}"
        return f"its author lets rules answer with autoApprove{': true' if turned == 'bounds' else ''}"

    def why_unfit(self, tool: Tool) -> str | None:
        """Why an allow is none for the tool, in words: it does not speak of a parameter, or it sums a secret."""
        for parameter in tool.manifest.parameters:
            if parameter.name not in self.where.bounds:
                return f"it says nothing of {parameter.name}"
        return self.why_not_summed(tool)

    def why_not_summed(self, tool: Tool) -> str | None:
        """Which argument it may not sum for the tool, in words: what comes to a sum is written down and told."""
        for name in () if self.budget is None else self.budget.sums:
            if name in tool.secrets:
                return f"it sums {shown_name(name)}, which is secret, and the sum would tell it"
        return None

    def notes(self, registered: Sequence[Tool]) -> Iterator[str]:
        """What its author may not have meant, beside the tools at hand."""
        tools = [tool for tool in registered if self.speaks_of(tool)]
        if not tools:
            nearest = did_you_mean(self.tool, [tool.address or tool.name for tool in registered])
            yield f"there is no tool {visible(self.tool)} here{f'; {nearest}' if nearest else ''}"
        if unknown := self._unknown_argument(tools):
            yield f"it never matches: {unknown}"
        for tool in tools if self.saying == "allow" else ():
            yield from self._notes_of(tool)

    def _notes_of(self, tool: Tool) -> Iterator[str]:
        """Why a rule allows less of a tool than it seems to, or more."""
        manifest, nothing = tool.manifest, f"it allows nothing of {tool.name}"
        unspoken = [parameter.name for parameter in manifest.parameters if parameter.name not in self.where.bounds]
        if unspoken:
            yield f"it says nothing of {', '.join(unspoken)}, so it never matches {tool.name}"
        if summed := self.why_not_summed(tool):
            yield f"{nothing}: {summed}"
        if not self.has_key(tool):
            yield f"{nothing}: {NO_KEY if manifest.auto_approve is False else ONLY_EXACT}; {self.key_of(tool)}"
        if tool.address is not None:
            return  # Servers seldom say which of their texts are paths, and of agents it is known.
        for name, bound in self.where.bounds.items():
            if bound.names_folder and not manifest.is_path(name):
                yield (
                    f"{tool.name} does not say that {visible(name)} is a path; if it is none, every text that begins "
                    "with that folder is let through, whatever follows"
                )

    def _unknown_argument(self, tools: Sequence[Tool]) -> str:
        """An argument that a rule needs and that none of its tools takes, in words: a slip that would deny nothing."""
        if not tools or any(tool.manifest.additional_parameters for tool in tools):
            return ""
        taken = {parameter.name for tool in tools for parameter in tool.manifest.parameters}
        for name, bound in self.where.bounds.items():
            if name not in taken and not bound.may_be_absent:
                nearest = did_you_mean(name, sorted(taken))
                return f"{tools[0].name} has no argument {visible(name)}{f'; {nearest}' if nearest else ''}"
        return ""

    @property
    def place(self) -> str:
        """Where it stands, for people. The organisation's file has the same name as one's own, so it has its folder."""
        return f"{self.file if self.layer == 'organisation' else self.file.name}:{self.line}"

    @property
    def words(self) -> str:
        """Of which calls it speaks, and how many of them there may be."""
        where = self.where.words() if self.where.bounds or self.where.is_whole else "every call"
        limits = "" if self.budget is None else self.budget.words
        return f"{visible(self.tool)}, {where}{f'; {limits}' if limits else ''}"

    @cached_property
    def _name(self) -> str:
        return f"{visible(self.name)} ({visible(self.place)})"

    def __str__(self) -> str:
        return self._name  # Said three times for every call that it allows.
