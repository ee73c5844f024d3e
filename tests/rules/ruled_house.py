"""A house with policies: three files, what a person accepted, and one tool that pays."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lastword import Journal, Preset, Session, ToolRegistry
from lastword.consent import Answerer
from lastword.rules import Grants, Policy, PolicyPlaces
from lastword.rules.grants import Grant
from lastword.store import Entry, MemoryStore
from lastword.testing import FixedApprover
from lastword.tools import Trust

LUNCH = """
[[rule]]
name = "small lunches"
tool = "pay"
decide = "allow"
[rule.where]
to = { in = ["Ada", "Bo"] }
amount = { min = 0, max = 20 }
[rule.tests]
match = [{ to = "Ada", amount = 20 }]
not_match = [{ to = "Ada", amount = 20.01 }]
"""
EXACT = LUNCH.replace("{ min = 0, max = 20 }", "{ is = 5 }").replace("20.01", "6").replace("20", "5")


def saying(decide: str, name: str = "payments", where: str = "") -> str:
    """A rule about all payments, or about some."""
    return f'[[rule]]\nname = "{name}"\ntool = "pay"\ndecide = "{decide}"\n[rule.where]\n{where}\n'


class Commits(MemoryStore):
    """A memory that knows what was written together."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[list[str]] = []

    async def commit(self, *entries: Entry) -> bool:
        done = await super().commit(*entries)
        self.commits.append([entry.kind for entry in entries])
        return done


class PolicyHouse:
    """Where policies lie, and a registry with one tool."""

    def __init__(self, folder: Path, key: Any = True) -> None:
        for name in ("etc", "home", "project"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.places = PolicyPlaces(
            organisation=folder / "etc/policy.toml",
            user=folder / "home/policy.toml",
            project=folder / "project/lastword.policy.toml",
            owner=os.getuid(),
        )
        self.trust = Trust(folder / "home/trusted.json")
        self.paid: list[tuple[str, float]] = []
        self.registry = ToolRegistry()
        self.journal = Journal()
        self.register(key)

    def register(self, key: Any = True, **facts: Any) -> None:
        if self.registry.is_registered("pay"):
            self.registry.unregister("pay")

        @self.registry.tool(auto_approve=key == "bounds" or key, effect="reversible", **facts)
        def pay(to: str, amount: float) -> str:
            """Pay somebody."""
            self.paid.append((to, amount))
            return "paid"

        if key == "bounds":  # Which only a person says, of another program's tool.
            tool = self.registry.lookup("pay")
            self.registry.unregister("pay")
            manifest = msgspec.structs.replace(tool.manifest, auto_approve=key)
            self.registry.add(replace(tool, manifest=manifest, address="mcp:bank/pay"))

    def write(self, layer: str, text: str) -> None:
        getattr(self.places, layer).write_text(text)

    def accept(self) -> None:
        """What `lastword policy accept` does, after a person has looked."""
        policy = Policy.load(self.places, self.trust)
        assert policy is not None
        for file in policy.files:
            self.trust.remember_file(file.path, file.text)
        self.trust.remember_rules(
            {Trust.rule_name(rule.key, tool.name): tool.digest for rule in policy.rules for tool in self.registry.all()}
        )

    def policy(self) -> Policy | None:
        return Policy.load(self.places, self.trust)

    def session(self, approver: Any = None, **facts: Any) -> Session:
        return Session(self.registry, approver=approver, policy=self.policy(), **{"journal": self.journal} | facts)

    async def grant(self, amount: dict[str, Any]) -> None:
        """A grant as a record says it, whether the tool lets anybody have one or not."""
        tool = self.registry.lookup("pay")
        grant = Grant(
            id="g",
            tool="pay",
            tool_digest=tool.digest,
            where={"to": {"is": "Ada"}, "amount": amount},
            scope="until",
            session_id="another",
            until=self.journal.clock() + 1000,
            by=Answerer.person("me"),
            at=self.journal.clock(),
        )
        assert await self.journal.store.commit(Grants(self.journal).entry(grant))

    async def pay(self, amount: float = 5, to: str = "Ada", *, preset: bool = False) -> str:
        """Who was asked about a payment: `ran`, `asked`, or `denied`. Whoever is asked says no."""
        asked = FixedApprover(lambda request: request.deny())
        async with self.session(asked, preset=Preset(preset)) as session:
            outcome = await session.call("pay", {"to": to, "amount": amount})
        if asked.requests:
            assert not self.paid
            return "asked"
        assert bool(self.paid) == outcome.success
        return "ran" if outcome.success else outcome.kind
