"""`lastword grants`: what was allowed from cards, how much is left of it, and taking it back."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lastword
from commands.paying import JOURNAL
from lastword.cli import FAILED, WRONG_USAGE, run
from lastword.consent import ApprovalRequest, UserAction
from lastword.rules import GrantOffer
from requirements import requirement
from sending import until


@pytest.fixture
def grant_id(home: Path) -> str:
    """A grant until tonight, used once, in the journal of this person."""
    given: list[str] = []

    async def approve(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, home)
        assert isinstance(offer, GrantOffer)
        terms = offer.terms({"amount": {"min": 0, "max": 20}}, "until", calls=10, sums={"amount": "100"})
        given.append(terms.id)
        return request.allow_with(terms)

    async def live() -> None:
        registry = lastword.ToolRegistry()

        @registry.tool(auto_approve=True)
        def pay(to: str, amount: float) -> str:
            """Pay."""
            return "paid"

        journal = lastword.open_journal(f"sqlite:///{JOURNAL.absolute()}")
        async with lastword.Session(registry, approver=approve, journal=journal) as session:
            for amount in (5, 12.5):
                assert (await session.call("pay", {"to": "Ada", "amount": amount})).success
        await journal.close()

    asyncio.run(live())
    return given[0]


@requirement("GRANT-5")
def test_grants_are_listed_with_what_is_left(grant_id: str, says, capsys):
    """Who gave one a week ago should find it, and know what it is still good for."""
    for command in (["grants"], ["grants", "list"]):
        said = says(command).out
        assert said.startswith(f"{grant_id}  pay, to “Ada”, amount at most 20\n  your grant of ")
        assert said.endswith("; 1 of 10 calls, 12.50 of 100 amount\n")
    assert run(["grants", "--json"]) == 0
    [facts] = json.loads(capsys.readouterr().out)
    assert (facts["id"], facts["used"], facts["totals"], facts["over"]) == (grant_id, 1, {"amount": "12.5"}, None)


@requirement("GRANT-7")
def test_the_life_of_a_grant_and_of_its_call_say_that_it_was_given(grant_id: str, says, capsys):
    """Whoever looks later at either finds the other in words."""
    said = says(["show", grant_id]).out
    assert "granted: don't ask again for pay {" in said
    assert ", in all your sessions until midnight, the end of " in said
    assert "; calls: 10\n" in said
    assert run(["grants", "--json"]) == 0
    [facts] = json.loads(capsys.readouterr().out)
    assert run(["show", facts["call_id"]]) == 0
    assert ", with a grant for calls like it\n" in capsys.readouterr().out


@requirement("GRANT-5")
async def test_a_grant_for_a_session_names_it_and_says_when_it_is_used_up(home: Path, capsys):
    """Read in another terminal, "this session" would be the wrong one."""
    registry = lastword.ToolRegistry()

    @registry.tool(auto_approve=True)
    def pay(to: str) -> str:
        """Pay."""
        return "paid"

    async def approve(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, home)
        assert isinstance(offer, GrantOffer)
        return request.allow_with(offer.terms({}, "session", calls=1))

    journal = lastword.open_journal(f"sqlite:///{JOURNAL.absolute()}")
    async with lastword.Session(registry, id="monday", approver=approve, journal=journal) as session:
        for left in ("; 0 of 1 calls\n", "; 1 of 1 calls, used up\n"):
            assert (await session.call("pay", {"to": "Ada"})).success
            assert await asyncio.to_thread(run, ["grants"]) == 0
            assert capsys.readouterr().out.endswith(f", in the session monday, until its program ends{left}")
    await journal.close()


@requirement("GRANT-5", "GRANT-7")
async def test_a_grant_for_a_run_is_said_to_end_with_it(home: Path, capsys):
    """Neither list is read in that run, and the run may end long before its program."""
    registry = lastword.ToolRegistry()

    @registry.tool(auto_approve=True)
    def pay(to: str) -> str:
        """Pay."""
        return "paid"

    journal = lastword.open_journal(f"sqlite:///{JOURNAL.absolute()}")
    async with lastword.Session(registry, approver=lastword.wait_for_answer, journal=journal) as session:
        running = asyncio.create_task(session.run_script('CALL pay { to: "Ada" }\nCALL pay { to: "Bo" }\n'))
        await until(session.pending)
        [card] = session.pending()
        offer = session.grant_offer(card.call_id)
        assert isinstance(offer, GrantOffer)
        terms = offer.terms(scope="run", calls=1)
        session.answer(card.call_id, card.allow_with(terms))
        await until(lambda: [request for request in session.pending() if request.arguments == {"to": "Bo"}])
        run_id = card.call_id.rpartition(".")[0]
        for command in (["grants"], ["show", terms.id]):
            assert await asyncio.to_thread(run, command) == 0
            assert f", in the run {run_id}, until it ends; " in capsys.readouterr().out
        [second] = session.pending()
        session.answer(second.call_id, second.deny())
        await running
    await journal.close()


@requirement("GRANT-5")
def test_a_grant_is_taken_back_by_its_id_or_with_all_others(grant_id: str, says):
    """And a second time there is nothing to take back."""
    assert run(["grants", "revoke"]) == WRONG_USAGE
    assert "there is no such grant" in says(["grants", "revoke", "nothing"], WRONG_USAGE).err
    assert run(["grants", "revoke", grant_id]) == 0
    assert "had ended before" in says(["grants", "revoke", grant_id], FAILED).out
    assert "You have no grants." in says(["grants"]).out
    assert run(["grants", "revoke", "--all"]) == 0


@requirement("GRANT-5")
@requirement("CONF-2")
def test_a_tool_cannot_take_grants_back(grant_id: str):
    """Nor press any other of our buttons."""
    program = f"{sys.executable} -m lastword grants revoke {grant_id}"
    environ = os.environ | {"LASTWORD_BELOW": "1"}
    done = subprocess.run(program.split(), env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert "this is for a person to decide" in done.stderr
    assert run(["grants", "revoke", grant_id]) == 0


@requirement("GRANT-5")
def test_stop_names_the_grants_that_it_took_back(grant_id: str, says):
    """One act for everything."""
    assert "revoked: pay, to “Ada”, amount at most 20: your grant of " in says(["stop"]).out
