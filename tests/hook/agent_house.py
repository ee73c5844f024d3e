"""A home with agents in it, without their programs: what a hook is told, rules, keys, and a person at the queue."""

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from hook.gates import CLAUDE_BEFORE, GEMINI_BEFORE
from lastword import Journal, values
from lastword.config import trusted
from lastword.consent import Answerer, ApprovalRequest, GrantTerms
from lastword.hook import AGENTS, AgentKeys, Allowed, HookInput, agents_tools, ask
from lastword.hook.event import Refused, read_input
from lastword.mcp import write_private
from lastword.rules import GrantOffer, Grants
from lastword.tools import Trust

_numbers = itertools.count(1)

MISSES = " does not cover it: "


class AgentHouse:
    """What a person has around the agents that they use."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
            patch.delenv(name, raising=False)
        self.project = home / "project"
        self.project.mkdir()
        self.journal = Journal()
        self.patch = patch

    def turn(self, **standing: str) -> None:
        """What `lastword hook install AGENT --standing WORD` leaves behind."""
        write_private(AgentKeys().file, standing)

    def said(self, command: Any = "git status", agent: str = "claude", **facts: Any) -> HookInput:
        """A command that an agent wants to run; any other call by `tool_name` and `tool_input`."""
        base = GEMINI_BEFORE if agent == "gemini" else CLAUDE_BEFORE
        base = base | {"cwd": str(self.project), "tool_use_id": f"use-{next(_numbers)}"}
        extra = facts.pop("also", {})
        event = base | {"tool_input": {"command": command} | extra} | facts
        return read_input(AGENTS[agent], values.written(event))

    def rules(self, text: str, *, accept: bool = True) -> None:
        """The person's own policy, and what `lastword policy accept` does after they have looked."""
        said = self.said()
        file = said.places().user
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        policy = said.policy()
        assert policy is not None
        if accept:
            trust = trusted(os.environ)
            trust.remember_file(file, text)
            tools = list(agents_tools(policy.rules))
            trust.remember_rules(
                {Trust.rule_name(r.key, tool.name): tool.digest for r in policy.rules for tool in tools}
            )

    async def hear(self, said: HookInput) -> str:
        """`ran` when nobody was asked, the line of the card, which is then denied, or why it was refused."""
        return await self._hear(said, None)

    async def _hear(self, said: HookInput, terms: Any) -> str:
        with self.journal.programs.attending():
            task = asyncio.ensure_future(ask(self.journal, said, 60))
            card = await self.card(task)
            if card is None:
                found = task.result()
                assert found is not None
                if isinstance(found, Refused):
                    return found.why
                assert values.equal(found.arguments, said.arguments)
                return "ran"
            facts = next(f for f in await self.journal.waiting() if f["call_id"] == card.call_id)
            if terms is None:
                assert await self.journal.answer(facts, card.deny(), Answerer.person("me"))
                assert isinstance(await task, Refused)
                # Which grant comes nearest is said on the card, and changes nothing: tests/rules/test_grants.py.
                return "asked" if MISSES in card.rule_line else card.rule_line or "asked"
            assert await Grants(self.journal).answer_elsewhere(
                facts, card.allow_with(terms(card)), Answerer.person("me")
            )
            assert isinstance(await task, Allowed)
            return "granted"

    async def card(self, task: asyncio.Future[Any]) -> ApprovalRequest | None:
        """The card that a hook waits for; None when it has its answer without one."""
        store = self.journal.store
        while not task.done():
            head = await store.head()
            if waiting := await self.journal.waiting():
                return ApprovalRequest.from_facts(waiting[0])
            changed = asyncio.ensure_future(store.changed(head.seq))
            await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
        return None

    async def grant(self, said: HookInput, bounds: dict[str, Any] | None = None, **terms: Any) -> GrantTerms:
        """Allow a call, and others like it until tonight."""
        given: list[GrantTerms] = []

        def choose(card: ApprovalRequest) -> GrantTerms:
            offer = GrantOffer.of(card, Path())
            assert isinstance(offer, GrantOffer), offer
            given.append(offer.terms(bounds, "until", **{"calls": 10} | terms))
            return given[0]

        assert await self._hear(said, choose) == "granted"
        return given[0]

    async def offer(self, said: HookInput) -> GrantOffer | str:
        """What the card of a call offers."""
        with self.journal.programs.attending():
            task = asyncio.ensure_future(ask(self.journal, said, 60))
            card = await self.card(task)
            assert card is not None
            facts = next(f for f in await self.journal.waiting() if f["call_id"] == card.call_id)
            assert await self.journal.answer(facts, card.deny(), Answerer.person("me"))
            await task
            return GrantOffer.of(card, Path(facts.get("folder", "")))
