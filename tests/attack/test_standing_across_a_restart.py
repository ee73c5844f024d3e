"""A standing yes, and calls that a dead process left behind: what waited for a person waits for one, and what was taken
back starts nothing again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from left_behind import left_behind

from lastword import Journal, Policy, Preset, Session, ToolRegistry, wait_for_answer
from lastword.call import stop
from lastword.consent import Answerer, ApprovalRequest, UserAction
from lastword.rules import GrantOffer, Grants
from lastword.store import SqliteStore
from requirements import requirement
from sending import until

ALLOW = """
[[rule]]
name = "small"
tool = "pay"
decide = "allow"
LIMITS
[rule.where]
amount = { min = 0, max = 20 }
[rule.tests]
match = [{ amount = 20 }]
not_match = [{ amount = 21 }]
"""
ONCE_A_DAY = ALLOW.replace("LIMITS", 'limits = { calls = 1, per = "day" }')
ONCE = ALLOW.replace("LIMITS", "limits = { calls = 1 }")
ALWAYS = ALLOW.replace("LIMITS", "")
ASK = '[[rule]]\nname = "each time"\ntool = "pay"\ndecide = "ask"\n'
DENY = '[[rule]]\nname = "never"\ntool = "pay"\ndecide = "deny"\n'
DAY_SECONDS = 86_400


class Bank:
    """A program that pays, in what came before and in what comes after. Once told to, it hangs after a payment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.paid, self.hangs = folder, [], asyncio.Event()  # type: ignore[var-annotated]
        self.is_to_hang = False
        self.days = 0
        self.registry = ToolRegistry()

        @self.registry.tool(auto_approve=True, idempotent=True, effect="reversible")
        async def pay(amount: float) -> str:
            """Pay somebody."""
            self.paid.append(amount)
            if self.is_to_hang:
                self.is_to_hang = False
                self.hangs.set()
                await asyncio.Event().wait()
            return "paid"

    def journal(self, name: str) -> Journal:
        journal = Journal(SqliteStore(self.folder / f"{name}.db"))
        now = journal.clock
        journal.clock = lambda: now() + self.days * DAY_SECONDS
        return journal

    @asynccontextmanager
    async def session(self, journal: Journal, rules: str = "", **facts: Any) -> AsyncIterator[Session]:
        policy = Policy.vouched(rules, self.registry) if rules else None
        facts = {"approver": wait_for_answer, **facts}
        async with Session(self.registry, id="s", journal=journal, policy=policy, **facts) as session:
            yield session

    async def dies(
        self,
        there: Callable[[Session], Any],
        rules: str = "",
        before: Callable[[Session], Any] | None = None,
        **facts: Any,
    ) -> Journal:
        """Have a script pay 5, and its program die when it has come that far; what it left."""
        living = self.journal("living")
        async with self.session(living, rules, **facts) as session:
            if before is not None:
                await before(session)
            run = asyncio.create_task(session.run_script("CALL pay { amount: 5 }", run_id="R"))
            await until(lambda: there(session))
            left = await left_behind(living, self.folder / "living.db", "left")
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
        await living.close()
        return self.journal(left.stem)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


async def resumed(session: Session) -> tuple[str, list[ApprovalRequest]]:
    """How the run stands when it has come back, and the cards that wait then. They are denied."""
    run = asyncio.create_task(session.resume("R"))
    await until(lambda: run.done() or session.pending())
    cards = session.pending()
    for card in cards:
        session.answer(card.call_id, card.deny())
    return (await run).status, cards


@requirement("GRANT-6")
@pytest.mark.parametrize("rules", [ALWAYS, ONCE_A_DAY], ids=["without limits", "with limits"])
async def test_a_rule_that_was_loaded_since_answers_no_card_that_waits(bank: Bank, rules: str):
    """Whoever was asked has seen the card and not said yes. A file is no answer to it."""
    left = await bank.dies(lambda session: session.pending())
    async with bank.session(left, rules) as session:
        [facts] = await left.waiting()
        _, [card] = await resumed(session)
        assert (card.nonce, card.digest, card.problem) == (facts["nonce"], facts["digest"], None), "the very card"
        assert bank.paid == []
        assert (await session.call("pay", {"amount": 5})).approval == "rule", "what is asked for now is covered"
    await left.close()


@requirement("GRANT-6")
async def test_a_rule_of_which_something_is_left_again_answers_no_card_that_waits(bank: Bank):
    """The day's calls were used up, so somebody was asked. That the next day began is not their answer."""

    async def use_up(session: Session) -> None:
        assert (await session.call("pay", {"amount": 1})).approval == "rule"

    left = await bank.dies(lambda session: session.pending(), ONCE_A_DAY, use_up)
    bank.days = 1
    async with bank.session(left, ONCE_A_DAY) as session:
        _, [card] = await resumed(session)
        assert "used up until midnight" in card.rule_line
        assert bank.paid == [1]
    await left.close()


async def answered_yes(left: Journal, request: ApprovalRequest, facts: dict[str, Any]) -> None:
    assert await left.answer(facts, request.allow(), Answerer.person("page"))


async def answered_otherwise(left: Journal, request: ApprovalRequest, facts: dict[str, Any]) -> None:
    assert await left.answer(facts, request.edit(amount=1), Answerer.person("page"))


@requirement("GRANT-6", "TOOL-45")
@pytest.mark.parametrize("now", [{"rules": ALWAYS}, {"preset": Preset(True)}], ids=["rule", "preset"])
@pytest.mark.parametrize("is_stopped", [False, True], ids=["too late", "stopped"])
@pytest.mark.parametrize("answer", [answered_yes, answered_otherwise])
async def test_what_a_person_answered_in_vain_is_asked_of_them_again_and_answered_by_nothing_else(
    bank: Bank, answer: Any, is_stopped: bool, now: dict[str, Any]
):
    """Their answer came too late, or everything was stopped since. They may even have changed what would run."""
    left = await bank.dies(lambda session: session.pending())
    [facts] = await left.waiting()
    await answer(left, ApprovalRequest.from_facts(facts), facts)
    if is_stopped:
        await stop(left, Answerer.person("page"))
    else:
        bank.days = 1
    async with bank.session(left, **now) as session:
        _, [card] = await resumed(session)
        assert card.arguments == {"amount": 5}
        assert card.problem is not None
    assert bank.paid == []
    await left.close()


@requirement("GRANT-6", "TOOL-45")
async def test_a_program_that_dies_while_a_change_is_written_down_leaves_a_card_for_the_person(bank: Bank):
    """Of the call as they changed it there is a question and no answer. It was a person's question all the same."""
    living = bank.journal("living")
    asked, left = living.asked, []

    async def asked_and_copied(request: ApprovalRequest, *facts: Any) -> bool:
        written = await asked(request, *facts)
        if request.author == "person":
            left.append(await left_behind(living, bank.folder / "living.db", "left"))
        return written

    living.asked = asked_and_copied  # type: ignore[assignment,method-assign]
    async with bank.session(living) as session:
        run = asyncio.create_task(session.run_script("CALL pay { amount: 5 }", run_id="R"))
        await until(session.pending)
        [card] = session.pending()
        session.answer(card.call_id, card.edit(amount=1))
        assert (await run).status == "done"
    await living.close()
    assert bank.paid == [1]
    journal = bank.journal(left[0].stem)
    async with bank.session(journal, ALWAYS) as session:
        _, [card] = await resumed(session)
    assert bank.paid == [1]
    await journal.close()


@requirement("GRANT-6")
async def test_a_preset_that_is_turned_on_answers_what_waits(bank: Bank):
    """Whoever resumes with their own key turned means the card that they left."""
    left = await bank.dies(lambda session: session.pending())
    async with bank.session(left, preset=Preset(True)) as session:
        assert await resumed(session) == ("done", [])
    assert bank.paid == [5]
    await left.close()


@requirement("GRANT-6")
async def test_a_card_that_comes_back_is_not_answered_by_a_rule_whose_day_began_meanwhile(bank: Bank):
    """The person's change did not fit, so they are asked again. In the same program, with the same rules."""
    journal = bank.journal("one")
    async with bank.session(journal, ONCE_A_DAY) as session:
        assert (await session.call("pay", {"amount": 1})).approval == "rule"
        call = asyncio.create_task(session.call("pay", {"amount": 5}))
        await until(session.pending)
        [card] = session.pending()
        bank.days = 1
        session.answer(card.call_id, card.edit(amount="lots"))
        await until(lambda: call.done() or [again for again in session.pending() if again.problem])
        [again] = session.pending()
        session.answer(again.call_id, again.deny())
        assert (await call).kind == "denied"
        assert (await session.call("pay", {"amount": 5})).approval == "rule", "a new call is the rule's again"
    assert bank.paid == [1, 5]
    await journal.close()


@requirement("GRANT-6", "RULE-2")
async def test_a_rule_that_denies_by_now_ends_a_card_that_waits(bank: Bank):
    """It needs nobody: a no starts nothing."""
    left = await bank.dies(lambda session: session.pending())
    async with bank.session(left, DENY) as session:
        status, cards = await resumed(session)
        assert (status, cards, bank.paid) == ("failed", [], [])
    await left.close()


@requirement("RULE-6")
@pytest.mark.parametrize(
    ("before", "since", "runs"),
    [
        ({"rules": ALWAYS}, {"rules": ALWAYS}, True),
        # What it used was counted when it started. It is the same call.
        ({"rules": ONCE}, {"rules": ONCE}, True),
        ({"rules": ALWAYS}, {}, False),
        ({"rules": ALWAYS}, {"rules": ALWAYS + ASK}, False),
        ({"rules": ALWAYS}, {"rules": ALWAYS + DENY}, False),
        ({"preset": Preset(True)}, {"preset": Preset(True)}, True),
        ({"preset": Preset(True)}, {"preset": Preset(False)}, False),
        # Another yes than the one that it was started by has not been counted for it.
        ({"preset": Preset(True)}, {"rules": ONCE}, False),
        ({"preset": Preset(True)}, {"preset": Preset(True), "rules": ASK}, False),
    ],
)
async def test_a_call_in_doubt_is_run_again_by_its_tool_only_while_what_stood_for_a_person_stands(
    bank: Bank, before: dict[str, Any], since: dict[str, Any], runs: bool
):
    """It calls itself idempotent, and so may run again; whether anybody still agrees is another matter."""
    bank.is_to_hang = True
    left = await bank.dies(lambda session: bank.hangs.is_set(), **before)
    async with bank.session(left, **since) as session:
        status, cards = await resumed(session)
        assert (status, cards) == ("done" if runs else "waiting", [])
        assert bank.paid == ([5, 5] if runs else [5])
        if not runs and DENY not in since.get("rules", ""):
            assert (await session.resolve("R.0", "again")).success, "a person may say so"
    await left.close()


@requirement("GRANT-5")
@pytest.mark.parametrize("is_revoked", [False, True], ids=["stands", "taken back"])
async def test_a_call_in_doubt_is_not_run_again_by_a_grant_that_was_taken_back(bank: Bank, is_revoked: bool):
    """Nothing more starts by it. As long as it stands, its last use counts for this very call."""

    async def grant(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, Path("/"))
        assert isinstance(offer, GrantOffer)
        return request.allow_with(offer.terms(None, "until", calls=1))

    async def pay_first(session: Session) -> None:
        assert (await session.call("pay", {"amount": 5})).approval == "person"
        bank.is_to_hang = True

    left = await bank.dies(lambda session: bank.hangs.is_set(), before=pay_first, approver=grant)
    [given] = await Grants(left).standing()
    assert not is_revoked or await Grants(left).revoke(given.id, Answerer.person("terminal"))
    async with bank.session(left) as session:
        status, cards = await resumed(session)
        assert (status, cards) == ("waiting" if is_revoked else "done", [])
        assert len(bank.paid) == (2 if is_revoked else 3)
    await left.close()


@requirement("GRANT-5")
async def test_a_grant_for_a_run_ends_with_the_run_that_another_program_brought_to_its_end(bank: Bank):
    """It was given in a program that died. Whoever resumes the run ends it, and what was granted for it."""
    script = "CALL pay { amount: 5 }\nCALL pay { amount: 5 }\nCALL pay { amount: 6 }"
    living = bank.journal("living")
    async with bank.session(living) as session:
        run = asyncio.create_task(session.run_script(script, run_id="R"))
        await until(session.pending)
        [card] = session.pending()
        offer = session.grant_offer(card.call_id)
        assert isinstance(offer, GrantOffer)
        session.answer(card.call_id, card.allow_with(offer.terms(None, "run")))
        await until(lambda: [card for card in session.pending() if card.arguments == {"amount": 6}])
        left = bank.journal((await left_behind(living, bank.folder / "living.db", "left")).stem)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    await living.close()
    async with bank.session(left) as session:
        assert len(await Grants(left).standing()) == 1
        await resumed(session)
        assert await Grants(left).standing() == []
    await left.close()
