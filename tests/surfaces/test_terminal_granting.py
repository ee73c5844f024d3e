"""The second step of a card at a terminal: how it reads, and that it grants in a chat, a command and an inbox."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session

from lastword import ApprovalRequest, Journal, Session, ToolRegistry
from lastword.card import responses
from lastword.consent import People
from lastword.rules import GrantChoice, Grants, SeenStep
from lastword.rules.limits import day_words
from lastword.terminal.grant_dialogue import options_of
from requirements import requirement
from surfaces.conftest import Houses, MakeTool, Run, approver_at
from surfaces.screens import Program, Terminal
from surfaces.test_chat import PARAMETERS, READY, SEND
from surfaces.test_inbox_api import Neighbour
from surfaces.test_page_grants import card_of, step
from surfaces.windows import PATIENCE_SECONDS, House

GOLDEN = Path(__file__).parents[1] / "golden"
STEP = "[Esc] back to the card"
YES = "[a] Allow, and don't ask again"
WORD = "Type grant and press Enter: "


@pytest.fixture
def house(houses: Houses) -> House:
    house = houses()

    @house.session.registry.tool(auto_approve=True, effect="reversible")
    def pay(to: str, amount: float) -> str:
        """Pays somebody."""
        house.effects.append((to, amount))
        return "Paid."

    return house


def grants(house: House) -> list[Any]:
    found: list[Any] = house.do(Grants(house.session.journal).standing())
    return found


def grant(program: Program, *keys: str) -> None:
    """Go through the step: the keys that loosen, the word, the press."""
    program.press_for("g", STEP)
    for shown, key in enumerate(keys, 2):
        program.press_for(key, STEP, shown)
    program.press("w")
    program.type_by_hand("grant", after=WORD)
    program.press_at(YES, "a", then="You chose: Allow, and don't ask again")


@requirement("GRANT-1")
@pytest.mark.parametrize("how", ["100", "40", "plain"])
async def test_the_second_step_reads_as_it_was_agreed(how: str, golden: Callable[[Path, str], None]):
    """Wide, narrow and read aloud: exactly this call first, then what was loosened, and one sentence with all of it."""
    plain = how == "plain"
    columns = 200 if plain else int(how)
    with create_app_session(), Terminal(columns, lines=300).attached() as terminal:
        registry = ToolRegistry()

        @registry.tool(auto_approve=True, effect="irreversible")
        def pay(to: str, amount: float, note: str = "") -> str:
            """Pays somebody from the lunch account."""
            return "Paid."

        approver = approver_at(terminal, plain=plain)
        async with Session(registry, approver=approver) as session:
            approver.offer_grants(session)
            calls = [
                asyncio.create_task(session.call("pay", {"to": "Ada", "amount": amount, "note": "tea"}))
                for amount in (12.5, 4)
            ]
            await terminal.until("Type one of these" if plain else "[Esc] close")
            if plain:
                asks, chosen = "Type it and press Enter.", "back to the card."
                for line, words, times in (
                    ("don't ask again", chosen, 1),
                    ("2", chosen, 2),
                    ("5", asks, 1),
                    ("3", chosen, 3),
                    ("6", asks, 2),
                    ("30", chosen, 4),
                    ("grant", "press Enter to grant it.", 1),
                    ("pay", "You chose: Allow, and don't ask again.", 1),
                ):
                    await terminal.press_for(f"{line}\n", words, times)
            else:
                for key, words, times in (
                    ("g", STEP, 1),
                    ("2", STEP, 2),
                    ("5", "How many calls", 1),
                    ("\x7f\x7f3\r", STEP, 3),
                    ("w", WORD.rstrip(), 1),
                    ("grant\r", YES, 1),
                    ("a", "You chose: Allow, and don't ask again", 1),
                ):
                    await terminal.press_for(key, words, times)
            shown = terminal.text
            assert [(await call).success for call in calls] == [True, True]
            [given] = await Grants(session.journal).standing()
            assert (given.calls, given.where["amount"]) == (3, {"min": 0, "max": 12.5})
    end = shown.index("You chose: Allow, and don't ask again")
    golden(GOLDEN / f"granting_{how}.txt", shown[: shown.find("\n", end) if "\n" in shown[end:] else None] + "\n")


@requirement("GRANT-1", "GRANT-7")
def test_whoever_grants_in_a_chat_is_not_asked_again_and_reads_why(house: House, run: Run):
    """Through the server: the word and the press at the terminal, and the next call says what stood for the person."""
    program = run("chat", "--attach", house.key())
    program.until(READY)
    call = house.call("pay", to="Ada", amount=12.5)
    program.until("[Esc] close")
    grant(program, "2")
    program.until("Allowed, and not asked again: pay, to “Ada”, amount at most 12.5; in this session.")
    assert call.result(PATIENCE_SECONDS).success
    assert house.call("pay", to="Ada", amount=3).result(PATIENCE_SECONDS).approval == "grant"
    program.until("pay (done, not asked: your grant of ")
    assert "1 of 10 calls): Paid." in program.text
    assert [given.where["amount"] for given in grants(house)] == [{"min": 0, "max": 12.5}]


@requirement("GRANT-1")
def test_a_yes_that_the_server_refuses_grants_nothing_and_the_card_comes_back(house: House, run: Run):
    """It had forgotten what it told this window. Nobody who reads that is left without the card."""
    program, window = run("chat", "--attach", house.key()), house.window()
    program.until(READY)
    call = house.call("pay", to="Ada", amount=12.5)
    program.press_at("[Esc] close", "g", then=STEP)
    for calls in range(1, 202):
        step(window, card_of(house), calls=calls)
    program.press("w")
    program.type_by_hand("grant", after=WORD)
    program.press_at(YES, "a", then="this window was not told what would be granted")
    program.until("Nothing was granted, and the card still waits.")
    program.until("[Esc] close", times=2)
    assert "Allowed" not in program.text
    assert (grants(house), house.effects, call.done()) == ([], [], False)
    program.press("d")
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("GRANT-1")
def test_a_card_of_another_program_is_granted_out_of_the_inbox_in_a_terminal(house: House, run: Run, tmp_path: Path):
    """`/answer` shows it in full, and so it has its second step; the grant is for the session that asked."""
    neighbour = Neighbour(house, tmp_path / "done")

    @neighbour.session.registry.tool(auto_approve=True, effect="reversible")
    def lend(book: str) -> str:
        """Lends a book."""
        return "lent"

    program = run("chat", "--attach", house.key())
    program.until(READY)
    call = neighbour.ask("lend", book="Emma")
    program.press_at("/answer shows the card.", "/answer\r", then="[Esc] close")
    grant(program)
    assert call.result(PATIENCE_SECONDS).success
    assert [(given.session_id, given.tool) for given in grants(house)] == [(neighbour.session.id, "lend")]


ANOTHERS = "This card is another person's, and a grant serves only whoever gives it."


@requirement("GRANT-1", "TEAM-3")
def test_a_chat_offers_no_second_step_on_the_card_of_another_person(house: House, run: Run, tmp_path: Path):
    """A key that is offered and then refused is a promise broken. The card says why, as others do."""
    house.session.journal.people = People("ada", {"ada": ("bo",)})
    bo = Neighbour(house, tmp_path / "done", Journal(house.store, people=People("bo")))
    bo.session.registry.add(house.session.registry.lookup("pay"))
    program = run("chat", "--attach", house.key())
    program.until(READY)
    call = bo.ask("pay", to="Ada", amount=5)
    program.press_at("/answer shows the card.", "/answer\r", then="[Esc] close")
    assert ANOTHERS in " ".join(program.text.replace("│", " ").split())
    assert "[g]" not in program.text
    program.press("d")
    assert call.result(PATIENCE_SECONDS).kind == "denied"


@requirement("GRANT-1", "TEAM-3")
@pytest.mark.parametrize("plain", [False, True])
async def test_a_command_offers_no_second_step_on_the_card_of_another_person(plain: bool):
    """`lastword answer` of whoever answers for somebody."""
    with create_app_session(), Terminal(100, lines=300).attached() as terminal:
        approver = approver_at(terminal, plain=plain)
        registry = ToolRegistry()

        @registry.tool(auto_approve=True, effect="reversible")
        def pay(to: str) -> str:
            """Pays somebody."""
            return "Paid."

        async def look(request: ApprovalRequest, choice: GrantChoice) -> SeenStep:
            raise AssertionError("nobody looks")

        async with Session(registry, approver=approver, journal=Journal(people=People("bo"))) as session:
            approver.offer_steps(look, "ada")
            call = asyncio.create_task(session.call("pay", {"to": "Ada"}))
            await terminal.until("Type one of these" if plain else "[Esc] close")
            shown = " ".join(terminal.text.replace("│", " ").split())
            assert ANOTHERS in shown
            assert "don't ask again" not in shown
            terminal.press("deny\n" if plain else "d")
            assert (await call).kind == "denied"


@requirement("GRANT-1")
def test_the_only_time_that_a_card_offers_is_shown_as_chosen():
    """The card of an agent offers no session. An empty mark above a sentence that grants it says two things."""
    shown = responses.GrantStep(event="", scopes=(("until", "in all your sessions until tonight"),), scope="until")
    assert [option.is_chosen for option in dict(options_of(shown, GrantChoice()))["how long"]] == [True]


@requirement("GRANT-1", "GRANT-7")
def test_a_grant_until_tonight_from_one_command_holds_for_the_next(run: Run, make_tool: MakeTool, tmp_path: Path):
    """`lastword call` is a session of its own each time; what holds in all of them says so, and when it was used."""
    make_tool("send", SEND, parameters=PARAMETERS, autoApprove=True, effect="reversible")
    call = ("call", "send", "to=Ann", "amount=5", "--tools", "tools")
    first = run(*call)
    first.until("[Esc] close")
    grant(first, "4")
    assert first.finish() == 0
    said = "Allowed, and not asked again: send, to “Ann”, amount 5; in all your sessions until midnight, the end of "
    assert said in " ".join(first.text.split())
    second = run(*call)
    assert second.finish() == 0
    assert "[a]" not in second.text
    said = f"send, to “Ann”, amount 5: not asked, your grant of {day_words(time.time())}, 1 of 10 calls."
    assert said in " ".join(second.text.split())
    assert (tmp_path / "sent.txt").read_text() == "Ann\nAnn\n"


@requirement("GRANT-1")
def test_lastword_answer_shows_the_card_with_its_second_step(run: Run, make_tool: MakeTool, tmp_path: Path):
    """From anywhere: the grant goes with the answer to the program that waits."""
    make_tool("send", SEND, parameters=PARAMETERS, autoApprove=True, effect="reversible")
    waits = run("call", "send", "to=Ann", "amount=5", "--tools", "tools", "--wait")
    waits.until("lastword answer ")
    call_id = waits.text.partition("lastword answer ")[2].split()[0]
    program = run("answer", call_id)
    program.until("[Esc] close: it does not run")
    grant(program, "4")
    assert program.finish() == 0
    assert "Allowed, and not asked again: send, to “Ann”, amount 5; " in program.text
    assert waits.finish() == 0
    listed = run("grants")
    assert listed.finish() == 0
    assert "send, to “Ann”, amount 5" in listed.text
