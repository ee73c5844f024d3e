"""What explain says of a call, against what happens to it: for rules, grants, keys and waivers as they may come."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruled_house import EXACT, LUNCH, saying

from lastword import Journal, Preset, Session, ToolRegistry
from lastword.consent import Answerer, People
from lastword.errors import ArgumentsError, UnknownTool
from lastword.rules import Grants, Policy
from lastword.rules.grants import Grant
from lastword.rules.policy import CHANGED_TOOL
from lastword.rules.policy_file import read_rules
from lastword.store import MemoryStore
from lastword.testing import FixedApprover
from requirements import requirement

LIMITED = LUNCH.replace('"small lunches"', '"few lunches"').replace(
    'decide = "allow"', 'decide = "allow"\nlimits = { calls = 2, sum = { amount = 9 } }'
)
RULES = {
    "allow": LUNCH,
    "exact": EXACT.replace('"small lunches"', '"five"'),
    "limited": LIMITED,
    "ask": saying("ask", "ask about Bo", 'to = { is = "Bo" }'),
    "deny": saying("deny", "no Eve", 'to = { is = "Eve" }'),
}
GRANTS = ("exact", "wide", "few", "small", "revoked", "another's", "over", "of another session", "of another tool")
WAIVERS: dict[str, Any] = {
    "none": True,
    "free": False,
    "small": lambda to, amount: amount > 3,
    "fails": lambda to, amount: 1 / 0,
    "no answer": lambda to, amount: None,
}


class Till:
    """A tool that pays, whatever decides about it, and a person who says no each time that they are asked."""

    def __init__(self, key: Any, waiver: str, preset: bool, secret: bool) -> None:
        self.drawn = 0
        self.paid: list[tuple[str, float]] = []
        self.registry = ToolRegistry()
        self.journal = Journal(MemoryStore(), people=People("ada"))
        self.approver = FixedApprover(lambda request: request.deny())
        self.preset = Preset(preset)
        facts: dict[str, Any] = {"secret": ("to",)} if secret else {}

        def drawing(to: str, amount: float) -> dict[str, str]:
            self.drawn += 1
            return {"title": "Pay", "message": "Pay somebody."}

        if waiver != "free":
            facts["request"] = drawing

        @self.registry.tool(auto_approve=key, effect="reversible", require_approval=WAIVERS[waiver], **facts)
        def pay(to: str, amount: float) -> str:
            """Pay somebody."""
            self.paid.append((to, amount))
            return "paid"

        self.tool = self.registry.lookup("pay")

    def policy(self, names: list[str], accepted: str) -> Policy | None:
        if not names:
            return None
        rules = read_rules("\n".join(RULES[name] for name in names), Path("policy.toml"), "user")
        why = {"yes": None, "no file": "the file is not accepted", "no tool": CHANGED_TOOL}[accepted]
        return Policy(rules, lambda rule, tool: why)

    async def grant(self, kind: str, session: Session) -> None:
        now = self.journal.clock()
        grant = Grant(
            id=f"g{kind}",
            tool="pay",
            tool_digest="another" if kind == "of another tool" else self.tool.digest,
            where={"to": {"is": "Ada"}, "amount": {"is": 5} if kind == "exact" else {"min": 0, "max": 8}},
            scope="session" if kind == "of another session" else "until",
            session_id="another" if kind == "of another session" else session.id,
            process=self.journal.process_name(),
            until=None if kind == "of another session" else now - 1 if kind == "over" else now + 1000,
            calls=1 if kind == "few" else None,
            sums={"amount": "7"} if kind == "small" else {},
            by=Answerer("person", "x", "page", "bo" if kind == "another's" else "ada"),
            at=now - 2,
        )
        assert await self.journal.store.commit(Grants(self.journal).entry(grant))
        if kind == "revoked":
            assert await Grants(self.journal).revoke(grant.id, Answerer.person("me"))

    async def happens(self, session: Session, to: str, amount: float) -> str:
        before, paid = len(self.approver.requests), len(self.paid)
        outcome = await session.call("pay", {"to": to, "amount": amount})
        assert (len(self.paid) > paid) is outcome.success
        if len(self.approver.requests) > before:
            return "ask"
        return "allow" if outcome.success else "deny"


calls = st.lists(
    st.tuples(st.sampled_from(["Ada", "Bo", "Eve"]), st.sampled_from([0, 2, 3, 5, 8, 25, 5.0])), min_size=1, max_size=5
)


@requirement("RULE-7")
@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from([False, "exact", True]),
    waiver=st.sampled_from([*WAIVERS]),
    preset=st.booleans(),
    secret=st.booleans(),
    rules=st.lists(st.sampled_from([*RULES]), unique=True, max_size=3),
    accepted=st.sampled_from(["yes", "yes", "no file", "no tool"]),
    grants=st.lists(st.sampled_from(GRANTS), unique=True, max_size=3),
    calls=calls,
)
# Nothing is left of a rule, and the tool's own would have let it pass: a person is asked.
@example(True, "small", False, False, ["limited"], "yes", [], [("Ada", 2)] * 3)
def test_what_explain_says_is_what_happens_then(key, waiver, preset, secret, rules, accepted, grants, calls):
    """Whoever asks what decides plans by the answer. It asks nobody, draws nothing, uses nothing up, writes nothing."""

    async def live() -> None:
        till = Till(key, waiver, preset, secret)
        policy = till.policy(rules, accepted)
        async with Session(
            till.registry, approver=till.approver, journal=till.journal, preset=till.preset, policy=policy
        ) as session:
            for kind in grants:
                await till.grant(kind, session)
            for to, amount in calls:
                before = (await till.journal.store.head()).seq, till.drawn, len(till.paid), len(till.approver.requests)
                told = [await session.explain("pay", {"to": to, "amount": amount}) for _ in range(3)]
                assert before == (
                    (await till.journal.store.head()).seq,
                    till.drawn,
                    len(till.paid),
                    len(till.approver.requests),
                )
                assert told[0] == told[1] == told[2]
                assert str(told[0]) == f"{told[0].saying}. {told[0].why}"
                assert told[0].sentence.endswith(".")
                assert await till.happens(session, to, amount) == told[0].saying, told[0]
                if secret and to != "Ada":
                    assert to not in str(told[0]).replace("ask about Bo", "").replace("no Eve", "")

    asyncio.run(live())


@requirement("RULE-7", "TEAM-3")
async def test_a_session_that_was_not_opened_yet_knows_whose_grants_count():
    """The first thing that a program asks may be this, of a session that is not its own person's."""
    till = Till(True, "none", False, False)
    async with Session(till.registry, id="adas", journal=till.journal) as session:
        await till.grant("exact", session)
        await session.call("pay", {"to": "Bo", "amount": 1})
    bos = Journal(till.journal.store, people=People("bo", {"bo": ("ada",)}))
    session = Session(till.registry, id="adas", journal=bos)
    assert (await session.explain("pay", {"to": "Ada", "amount": 5})).saying == "allow"
    await session.close()


@requirement("RULE-7")
async def test_a_call_that_cannot_be_made_is_not_explained():
    """No tool of that name, and arguments that do not fit: the same words as for the call itself."""
    till = Till(True, "none", False, False)
    async with Session(till.registry, journal=till.journal) as session:
        with pytest.raises(UnknownTool, match="unknown tool pai"):
            await session.explain("pai", {})
        with pytest.raises(ArgumentsError):
            await session.explain("pay", {"to": "Ada"})
        with pytest.raises(ArgumentsError):
            await session.explain("pay", {"to": "Ada", "amount": True})
