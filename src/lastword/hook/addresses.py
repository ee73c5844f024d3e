"""The tools of agents by the names that rules have for them: `claude:Bash`, or all of one agent, `claude:*`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from lastword.hook.agents import AGENTS
from lastword.hook.keys import AgentKeys
from lastword.hook.showing import known_tool
from lastword.rules import PolicyRule, speaks_of
from lastword.tools import Tool


def agents_tool(address: str, folder: str | None = None) -> Tool | None:
    """The tool that an address names, as the calls of that agent in a folder have it; None when it names none."""
    key, colon, name = address.partition(":")
    agent = AGENTS.get(key)
    if agent is None or not colon or not name or name == "*":
        return None
    where = os.path.realpath(folder) if folder else os.sep
    return known_tool(agent, name, AgentKeys().of(agent), where)


def agents_tools(rules: Iterable[PolicyRule]) -> Iterator[Tool]:
    """The tools of agents that rules speak of."""
    rules = list(rules)
    if not rules:
        return
    keys = AgentKeys()
    for agent in AGENTS.values():
        turned = keys.of(agent)
        named = {rule.tool.removeprefix(f"{agent.key}:") for rule in rules if rule.tool.startswith(f"{agent.key}:")}
        for name in sorted(agent.own_tools | agent.looks | named - {"*"}):
            tool = known_tool(agent, name, turned)
            if any(speaks_of(rule, tool) for rule in rules):
                yield tool
