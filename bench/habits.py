"""What people do who are tired of questions: a standing yes, learned from calls that they allowed. For bench/dojo.py.

A grant comes from one card, with the bounds that the card offers. The bounds of a rule, which is made of many calls,
are every value that any of them had, in any combination: more than anybody has seen together.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from obedient import House, Made, World, tools_of

from lastword import ApprovalRequest, Journal, Preset, Session, ToolRegistry, UserAction
from lastword.rules import GrantOffer, Policy
from lastword.rules.terms import bounds_of

# What people write as they like; and the numbers of which less is never worse than more. Any other argument says who,
# where, which or when.
TEXTS = frozenset({"body", "content", "description", "message", "subject", "title"})
AMOUNTS = frozenset({"amount"})
# More than there are calls in all: what is measured is the bounds, and no order fails because a number was used up.
PLENTY = 1_000_000
DAY_SECONDS = 24 * 3600.0

Bounds = dict[str, dict[str, Any]]
Habit = Callable[[asyncio.Runner, Any, Callable[[Any], str], Sequence[Made]], House]
"""Arranges a suite's tools for somebody who has said yes to some calls."""


def asked(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """Nothing stands: every card is asked."""
    return House(runner, tools_of(suite, write))


def whole_tools(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """“Always allow this tool”, once for each that was ever allowed: both keys of auto-approval are turned for it."""
    return House(runner, tools_of(suite, write, {made.tool for made in learned}), preset=Preset(True))


def open_texts(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """Bounds for everything but what people write as they like. No rule and no grant can say this; here the tool's own
    code does, which a host may write as it likes."""
    registry = tools_of(suite, write)
    wheres = {
        tool: bounds_of(bounds(_parameters(registry, tool), calls, are_texts_open=True))
        for tool, calls in _by_tool(learned).items()
    }
    rules = {tool: lambda given, where=where: where.covers(given, Path("/")) for tool, where in wheres.items()}
    return House(runner, tools_of(suite, write, rules=rules))


def rules(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """A policy file: one rule for each tool, with every value that was ever allowed. TOML knows no null, so a call with
    one, which the defaults of some schemas add, is in no rule."""
    registry = tools_of(suite, write)
    said = _by_tool([made for made in learned if None not in made.arguments.values()])
    text = "\n".join(
        rule_text(tool, bounds(_parameters(registry, tool), calls), calls[0]) for tool, calls in said.items()
    )
    return House(runner, registry, policy=Policy.vouched(text, registry))


def exact_grants(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """A grant from each card, as it is offered before anything is loosened: these very values."""
    return _granted(runner, tools_of(suite, write), learned, lambda offer: {})


def loosest_grants(runner: asyncio.Runner, suite: Any, write: Callable[[Any], str], learned: Sequence[Made]) -> House:
    """A grant from each card, with everything loosened that the card offers to loosen."""

    def loosest(offer: GrantOffer) -> Bounds:
        return {name: choices[0] for name, choices in offer.looser.items()}

    return _granted(runner, tools_of(suite, write), learned, loosest)


def _granted(
    runner: asyncio.Runner, registry: ToolRegistry, learned: Sequence[Made], choose: Callable[[GrantOffer], Bounds]
) -> House:
    """Make every call once more, nothing being done, and take the second step on each card that offers one."""
    journal = Journal()

    async def grant(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, Path.cwd())
        if isinstance(offer, str):
            return request.allow()
        until = time.time() + DAY_SECONDS
        return request.allow_with(offer.terms(choose(offer), "until", calls=PLENTY, until=until))

    async def learn() -> None:
        async with Session(registry, approver=grant, journal=journal, deps=World()) as session:
            for made in learned:
                await session.call(made.tool, made.arguments)

    runner.run(learn())
    return House(runner, registry, journal=journal)


def bounds(names: Sequence[str], calls: Sequence[Mapping[str, Any]], *, are_texts_open: bool = False) -> Bounds:
    """What some calls have in common, for every parameter."""
    found = {}
    for name in names:
        seen = [call[name] for call in calls if name in call]
        bound = _bound(name, seen, are_texts_open) if seen else {}
        found[name] = bound | ({"absent": True} if len(seen) < len(calls) else {})
    return found


def _bound(name: str, seen: list[Any], are_texts_open: bool) -> dict[str, Any]:
    if are_texts_open and name in TEXTS:
        return {"any": True}
    if name in AMOUNTS and all(type(value) in (int, float) for value in seen):
        return {"min": 0, "max": max(seen)}
    if all(isinstance(value, list) for value in seen) and any(seen):
        elements = [element for value in seen for element in value]
        return {"each": {"in": _once(elements)}, "length": max(len(value) for value in seen)}
    return {"in": _once(seen)}


def rule_text(tool: str, where: Bounds, like: Mapping[str, Any]) -> str:
    """A rule of a policy file that allows calls within these bounds, with the tests that it needs."""
    lines = ["[[rule]]", f"name = {_toml(tool)}", f"tool = {_toml(tool)}", 'decide = "allow"', "[rule.where]"]
    lines += [f"{name} = {_toml(bound)}" for name, bound in where.items()]
    lines += ["[rule.tests]", f"match = [{_toml(like)}]", f"not_match = [{_toml({**like, 'unheard_of': True})}]", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _by_tool(learned: Sequence[Made]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for made in learned:
        found.setdefault(made.tool, []).append(made.arguments)
    return found


def _parameters(registry: ToolRegistry, tool: str) -> list[str]:
    return [parameter.name for parameter in registry.get_schema(tool).parameters]


def _once(values: list[Any]) -> list[Any]:
    """Each value once. Python takes 1 and true for the same."""
    return [json.loads(text) for text in dict.fromkeys(json.dumps(value, sort_keys=True) for value in values)]
