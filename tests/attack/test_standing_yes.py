"""Attacks on what a person allowed beforehand: to use it once more, for more, for longer, or for something else."""

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from granted_program import no, registry_with_pay, use

import lastword
from lastword import Journal, Policy, Session, ToolRegistry
from lastword.consent import Answerer, ApprovalRequest, UserAction
from lastword.journal import data_of
from lastword.rules import GrantOffer, Grants
from lastword.rules.grants import REVOKED
from lastword.rules.limits import STREAM, USED
from lastword.store import Store
from requirements import requirement
from warm import run_python

PROGRAM = Path(__file__).with_name("granted_program.py")


async def granted(journal: Journal, registry: ToolRegistry, amount: float, at_most: float, **terms: Any) -> str:
    """Allow one payment in a session of its own, and others like it until tonight; the grant's id."""
    given: list[str] = []

    async def approve(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, Path("/"))
        assert isinstance(offer, GrantOffer)
        chosen = offer.terms({"amount": {"min": 0, "max": at_most}}, "until", **terms)
        given.append(chosen.id)
        return request.allow_with(chosen)

    async with Session(registry, approver=approve, journal=journal) as session:
        assert (await session.call("pay", {"amount": amount})).success
    return given[0]


class Payer:
    """A memory with a clock of its own, a tool that pays, and what was paid."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.paid: list[float] = []
        self.registry = registry_with_pay(self.paid)
        self.journal = Journal(clock=lambda: self.now)

    async def granted(self, amount: float = 1, at_most: float = 5, **terms: Any) -> str:
        return await granted(self.journal, self.registry, amount, at_most, **{"calls": 50, **terms})

    async def pays(self, amount: float = 2, times: int = 1, registry: ToolRegistry | None = None, **facts: Any) -> str:
        """Who agreed to calls in a session of their own, with a person who says no; the one word for all of them."""
        async with Session(registry or self.registry, approver=no, journal=self.journal, **facts) as session:
            outcomes = [await session.call("pay", {"amount": amount}) for _ in range(times)]
        [said] = {outcome.approval if outcome.success else outcome.kind for outcome in outcomes}
        return said


@pytest.fixture
def payer() -> Payer:
    return Payer()


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


async def _program(store: str, count: str, amount: str) -> int:
    """Another program that pays so often; how often nobody was asked."""
    done = await asyncio.to_thread(run_python, str(PROGRAM), store, count, amount, cwd=PROGRAM.parent)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


async def uses(journal: Journal) -> list[dict[str, Any]]:
    return [data_of(record) for record in await journal.store.read(stream=STREAM, kind=USED)]


@requirement("GRANT-4")
async def test_several_programs_at_the_last_uses_win_each_of_them_once(store: str):
    """Four programs, twenty tries each, seven uses: seven payments, whoever makes them."""
    journal = lastword.open_journal(store)
    await granted(journal, registry_with_pay([]), 1, 5, calls=7)
    found = await asyncio.gather(*(_program(store, "20", "1") for _ in range(4)))
    assert sum(found) == 7
    assert [use["number"] for use in await uses(journal)] == [1, 2, 3, 4, 5, 6, 7]
    assert len({use["call"] for use in await uses(journal)}) == 7
    await journal.close()


@requirement("GRANT-4")
async def test_several_programs_never_exceed_a_sum(store: str):
    """Amounts that do not fit evenly: what is left at the end is less than one of them, and never less than nothing."""
    journal = lastword.open_journal(store)
    await granted(journal, registry_with_pay([]), 1, 10, sums={"amount": "50"})
    found = await asyncio.gather(*(_program(store, "12", amount) for amount in ("7.1", "3.3")))
    total = found[0] * 71 + found[1] * 33
    assert 500 - 71 < total <= 500
    assert (await uses(journal))[-1]["totals"] == {"amount": f"{total // 10}.{total % 10}"}
    await journal.close()


@requirement("GRANT-4")
async def test_one_payment_split_into_many_comes_to_no_more(store: str):
    """A model that may pay at most 20 at once pays 0.5 as often as it can."""
    journal = lastword.open_journal(store)
    await granted(journal, registry_with_pay([]), 1, 20, sums={"amount": "10"})
    assert sum(await use(store, 40, 0.5)) == 10
    await journal.close()


@requirement("GRANT-4")
async def test_a_flood_of_calls_at_once_gets_no_more_than_there_is(store: str):
    """All of them look at what is left before any has taken it."""
    journal = lastword.open_journal(store)
    await granted(journal, registry_with_pay([]), 1, 20, calls=10)
    assert len(await use(store, 80, 1, at_once=True)) == 10
    assert len(await uses(journal)) == 10
    await journal.close()


@requirement("GRANT-5")
async def test_a_grant_taken_back_while_the_card_is_drawn_starts_nothing():
    """It covered the call when it was asked for. When it would start, it does not."""
    drawing, may_go_on, paid = threading.Event(), threading.Event(), []
    registry = ToolRegistry()

    def request(amount: float) -> dict[str, str]:
        drawing.set()
        may_go_on.wait(60)
        return {"message": "Pay?"}

    @registry.tool(auto_approve=True, effect="reversible", request=request)
    def pay(amount: float) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    journal = Journal()
    may_go_on.set()
    id = await granted(journal, registry, 1, 5)
    drawing.clear()
    may_go_on.clear()
    async with Session(registry, approver=no, journal=journal) as session:
        calling = asyncio.create_task(session.call("pay", {"amount": 2}))
        assert await asyncio.to_thread(drawing.wait, 60)
        assert await Grants(journal).revoke(id, Answerer.person("me"))
        may_go_on.set()
        assert (await calling).kind == "denied"
    assert paid == [1]


@requirement("GRANT-5")
async def test_a_revocation_wins_or_loses_against_a_start_and_never_both(store: str):
    """Each takes the same number. After the end of a grant there is no use of it, and every use is a payment."""
    chance = random.Random()
    for _ in range(8):
        journal = lastword.open_journal(store)
        id = await granted(journal, registry_with_pay([]), 1, 5, calls=50)
        before = len(await uses(journal))
        using = asyncio.create_task(use(store, 10, 1, at_once=True))
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)
        assert await Grants(journal).revoke(id, Answerer.person("me"))
        paid = await using
        records = await journal.store.read(stream=STREAM, subject=id)
        assert records[-1].kind == REVOKED
        assert len(await uses(journal)) - before == len(paid)
        await journal.close()


@requirement("GRANT-5")
async def test_the_clock_set_back_revives_no_grant(payer: Payer):
    """Until tonight was over, and it is noon again. What was written in the night says that it was, whatever is written
    after it: every call that is asked about leaves records with the time of noon."""
    await payer.granted(until=1_000_100.0)
    async with Session(payer.registry, approver=no, journal=payer.journal) as session:
        said = []
        for payer.now in (1_000_000.0, 1_000_101.0, *[1_000_050.0] * 3):
            said.append((await session.call("pay", {"amount": 2})).kind)
        assert said == ["succeeded", *["denied"] * 4]
        [grant] = await Grants(payer.journal).standing()
        assert await Grants(payer.journal).why_over(grant) == "its time is over"
    assert payer.paid == [1, 2]


@requirement("GRANT-5")
async def test_a_clock_before_the_time_of_a_grant_ends_it(payer: Payer):
    """It is known to be wrong, and so nobody knows how long the grant would live."""
    await payer.granted(until=1_000_100.0)
    payer.now = 900_000.0
    assert await payer.pays(times=3) == "denied"
    assert payer.paid == [1]


@requirement("GRANT-5")
async def test_the_clock_set_back_revives_no_grant_for_a_program_that_starts_later(store: str):
    """Another program wrote in the night and more at noon, and this one has seen none of it: more than a page of it."""
    now = [1_000_000.0]
    paid: list[float] = []
    journal = lastword.open_journal(store)
    journal.clock = lambda: now[0]
    registry = registry_with_pay(paid)
    await granted(journal, registry, 1, 5, calls=50, until=1_000_100.0)
    for at in (1_000_101.0, *[1_000_050.0] * (Store.PAGE_RECORDS + 1)):
        now[0] = at
        journal.note("elsewhere", "note", "n", {})
    await journal.close()
    later = lastword.open_journal(store)
    later.clock = lambda: now[0]
    async with Session(registry, approver=no, journal=later) as session:
        assert (await session.call("pay", {"amount": 2})).kind == "denied"
    await later.close()
    assert paid == [1]


@requirement("GRANT-5")
async def test_a_clock_that_was_ahead_before_a_grant_does_not_end_it(payer: Payer):
    """Only what was written since the grant says how late it is: the person has corrected the clock and then granted,
    though an older grant made us look at what was written before."""
    await payer.granted(1, 1, until=1_000_100.0)
    payer.now = 9_000_000.0
    payer.journal.note("elsewhere", "note", "n", {})
    payer.now = 1_000_010.0
    assert await payer.pays(1) == "denied"
    await payer.granted(5, 5, until=1_000_100.0)
    assert await payer.pays(2) == "grant"
    assert payer.paid == [1, 5, 2]


@requirement("GRANT-2")
async def test_a_tool_that_was_redefined_is_not_the_one_that_was_granted(payer: Payer):
    """The same name, the same parameters, other code."""
    await payer.granted()
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, effect="reversible")
    def pay(amount: float) -> str:
        """Pays."""
        payer.paid.append(-amount)
        return "paid"

    assert await payer.pays(registry=registry) == "denied"
    assert payer.paid == [1]


@requirement("GRANT-3")
@pytest.mark.parametrize(
    "change",
    [
        {"where": {"amount": {"any": True}}},
        {"where": {}},
        {"where": {"amount": {"matches": ".*"}}},
        {"calls": None, "sums": {}},
        {"tool_digest": "0" * 64},
        {"scope": "for ever"},
        {"where": "everything"},
        {"sums": {"amount": "NaN"}},
    ],
    ids=repr,
)
async def test_a_record_that_grants_what_cannot_be_granted_grants_nothing(payer: Payer, change: dict[str, Any]):
    """A program of another version, or of somebody else, wrote it. Each use looks at everything anew."""
    id = await payer.granted()
    [record] = await payer.journal.store.read(stream=STREAM, kind="granted")
    await Grants(payer.journal).revoke(id, Answerer.person("me"))
    forged = data_of(record) | {"id": "forged"} | change
    assert await payer.journal.claim(STREAM, "granted", "forged", forged, once="granted:forged")
    assert await payer.pays() == "denied"
    assert payer.paid == [1]


@requirement("RULE-2")
async def test_a_rule_that_asks_or_denies_wins_over_a_grant(payer: Payer):
    """A project, or the organisation, has become stricter since."""
    await payer.granted()
    for word in ("ask", "deny"):
        policy = Policy.vouched(f'[[rule]]\nname = "r"\ntool = "pay"\ndecide = "{word}"\n', payer.registry)
        assert await payer.pays(policy=policy) == "denied"
    assert payer.paid == [1]
    assert len(await Grants(payer.journal).standing()) == 1


LIMITED = """
[[rule]]
name = "small payments"
tool = "pay"
decide = "allow"
limits = { calls = 5, sum = { amount = 8 }, per = "day" }
where = { amount = { min = 0, max = 5 } }
tests = { match = [{ amount = 5 }], not_match = [{ amount = 6 }] }
"""


@requirement("GRANT-4")
async def test_the_limits_of_a_rule_hold_for_all_sessions_and_begin_anew_each_day_in_utc(payer: Payer):
    """By the same records as those of grants. A clock that is set back does not give a day twice."""
    payer.now = 1_700_000_000.0
    policy = Policy.vouched(LIMITED, payer.registry)

    async def pay(amount: float) -> str:
        async with Session(payer.registry, approver=no, journal=payer.journal, policy=policy) as session:
            return (await session.call("pay", {"amount": amount})).approval

    assert [await pay(3), await pay(5)] == ["rule", "rule"]
    assert await pay(0.01) == "person", "the sum of the day is reached"
    payer.now += 86_400
    assert [await pay(1) for _ in range(5)] == ["rule"] * 5
    assert await pay(0) == "person", "the calls of the day are used up"
    payer.now -= 2 * 86_400
    for _ in range(3):
        assert await pay(1) == "person", "it is still the day that was counted last, whatever was written since"
    assert payer.paid == [3, 5, 1, 1, 1, 1, 1]
    started = [data_of(r).get("why", "") for r in await payer.journal.store.read(kind="started")]
    assert started[1] == "the rule small payments (policy.toml:2), 2 of 5 calls, 8 of 8"


@requirement("GRANT-4")
@pytest.mark.parametrize("is_kept", [True, False], ids=["in one session", "in sessions of their own"])
async def test_a_clock_that_goes_back_and_forth_over_midnight_gives_each_day_once(payer: Payer, is_kept: bool):
    """Two calls in the evening, two after midnight, then evening and morning again."""
    policy = Policy.vouched(LIMITED.replace("calls = 5, sum = { amount = 8 }", "calls = 1"), payer.registry)
    evening = 86_400 * 20_000 - 100.0
    facts: dict[str, Any] = {"approver": no, "journal": payer.journal, "policy": policy}
    sessions = [Session(payer.registry, **facts) for _ in range(1 if is_kept else 7)]
    said = []
    for number, seconds in enumerate((0, 0, 500, 500, 0, 0, 500)):
        payer.now = evening + seconds
        said.append((await sessions[number % len(sessions)].call("pay", {"amount": 2})).approval)
    for session in sessions:
        await session.close()
    assert said == ["rule", "person", "rule", "person", "person", "person", "person"]


async def nine_more(request: ApprovalRequest) -> UserAction:
    """Allow it, and nine calls of its session."""
    offer = GrantOffer.of(request, Path("/"))
    assert isinstance(offer, GrantOffer)
    return request.allow_with(offer.terms(calls=9))


@requirement("GRANT-5")
async def test_a_grant_for_a_session_dies_with_its_program(store: str):
    """The program was killed and could not end it. A session of the same name in another one starts without it."""
    paid: list[float] = []
    journal = lastword.open_journal(store)
    registry = registry_with_pay(paid)

    session = Session(registry, id="chat", approver=nine_more, journal=journal)
    await session.open()
    await session.call("pay", {"amount": 1})
    assert (await session.call("pay", {"amount": 1})).approval == "grant"
    await journal.close()  # What a dead program leaves: it holds nothing, and has ended nothing.
    again = lastword.open_journal(store)
    assert len(await Grants(again).standing()) == 1
    async with Session(registry, id="chat", approver=no, journal=again) as later:
        assert (await later.call("pay", {"amount": 1})).kind == "denied"
    await again.close()
    assert paid == [1, 1]


@requirement("GRANT-5")
async def test_a_grant_for_a_session_is_not_for_another_program_that_calls_its_session_the_same(store: str):
    """Both programs live. The person sat at one of them."""
    journal, other = lastword.open_journal(store), lastword.open_journal(store)
    paid: list[float] = []
    registry = registry_with_pay(paid)

    async with (
        Session(registry, id="chat", approver=nine_more, journal=journal) as session,
        Session(registry, id="chat", approver=no, journal=other) as beside,
    ):
        assert (await session.call("pay", {"amount": 1})).approval == "person"
        assert (await beside.call("pay", {"amount": 1})).kind == "denied"
        assert (await session.call("pay", {"amount": 1})).approval == "grant"
    await journal.close()
    await other.close()
    assert paid == [1, 1]
