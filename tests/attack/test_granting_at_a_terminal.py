"""Attack: keys that were meant for something else, or for one call, become a standing yes at a terminal."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from typing_streams import draw

from lastword import Session, ToolRegistry
from lastword.rules import Grants, Policy
from lastword.terminal.keyboard import ALONE_SECONDS
from lastword.terminal.tty import ARMING_SECONDS, LOOK_SECONDS
from requirements import requirement
from surfaces.conftest import approver_at
from surfaces.screens import Terminal

STEP = "[Esc] back to the card"
WORD = "Type grant and press Enter"
PAYMENT = {"to": "Ada", "amount": 12.5}
ASKS = '[[rule]]\nname = "payments"\ntool = "pay"\ndecide = "ask"\n'


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    with create_app_session(), Terminal(lines=300).attached() as terminal:
        yield terminal


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys count sooner, where what is tried is what they do and not how fast they come."""
    monkeypatch.setattr("lastword.terminal.tty.ARMING_SECONDS", 0.04)
    monkeypatch.setattr("lastword.terminal.keyboard.ALONE_SECONDS", 0.04)
    monkeypatch.setattr("lastword.terminal.keyboard.FAST_SECONDS", 0.0)


class Till:
    """A session with a tool that pays, its card at a terminal, and what was paid."""

    def __init__(self, terminal: Terminal, *, plain: bool = False) -> None:
        self.paid: list[tuple[Any, ...]] = []
        registry = ToolRegistry()

        @registry.tool(auto_approve=True, effect="reversible")
        def pay(to: str, amount: float, note: str = "") -> str:
            """Pays somebody."""
            self.paid.append((to, amount, note))
            return "Paid."

        @registry.tool(effect="reversible")
        def whisper(text: str) -> str:
            """Says something quietly."""
            return "Said."

        @registry.tool(auto_approve=True, effect="reversible", secret=("code",))
        def unlock(code: str) -> str:
            """Opens a door."""
            return "Open."

        approver = approver_at(terminal, plain=plain)
        self.session = Session(registry, approver=approver)
        approver.offer_grants(self.session)

    async def grants(self) -> list[Any]:
        return [*await Grants(self.session.journal).standing()]

    def ask(self, tool: str = "pay", **arguments: Any) -> asyncio.Task[Any]:
        return asyncio.create_task(self.session.call(tool, arguments or PAYMENT))


@asynccontextmanager
async def till_at(terminal: Terminal, *, plain: bool = False) -> AsyncIterator[Till]:
    till = Till(terminal, plain=plain)
    async with till.session:
        yield till


async def open_step(terminal: Terminal, *, plain: bool = False) -> None:
    if plain:
        await terminal.press_at("Type one of these", "don't ask again\n", then="back to the card")
    else:
        await terminal.until_menu()
        await terminal.press_for("g", STEP)


@asynccontextmanager
async def granting_nothing(
    terminal: Terminal, tool: str = "pay", *, plain: bool = False, opens: bool = True, **arguments: Any
) -> AsyncIterator[Till]:
    """A card, on its second step if that opens. In the end nothing was paid or granted, and the card still waits."""
    async with till_at(terminal, plain=plain) as till:
        asking = till.ask(tool, **arguments)
        if opens:
            await open_step(terminal, plain=plain)
        yield till
        assert (till.paid, await till.grants(), asking.done()) == ([], [], False)
        await give_up(terminal, asking)


async def type_word(terminal: Terminal, word: str = "grant", times: int = 1, then: str = "") -> None:
    terminal.press("w")
    await terminal.until(WORD)
    for key in f"{word}\r":
        terminal.press(key)
        await asyncio.sleep(0.06)  # A paste of the word is not taken.
    await terminal.until(STEP, times + 1)
    await terminal.until(then)


async def press_until_sent(terminal: Terminal, key: str, words: bytes) -> None:
    """Press a key until this was written, whether or not it is still to be seen."""
    for _ in range(60):
        if words in terminal.raw:
            return
        terminal.press(key)
        await asyncio.sleep(0.5)  # A key that comes too soon after another counts for nothing.
    raise AssertionError(f"{words!r} was not written")


async def give_up(terminal: Terminal, asking: asyncio.Task[Any]) -> None:
    asking.cancel()
    await asyncio.wait({asking})


@requirement("GRANT-1")
async def test_streams_of_keys_that_go_on_in_the_step_grant_nothing() -> None:
    """Typing, pastes, held keys and replies of the terminal, begun before the step or on it."""
    seed = random.SystemRandom().randrange(2**32)

    async def one(seed: int) -> str:
        rng = random.Random(seed)
        with create_app_session(), Terminal(lines=300).attached() as terminal:
            async with till_at(terminal) as till:
                asking = till.ask()
                await terminal.until_menu()
                if rng.random() < 0.8:
                    await terminal.press_until("g", STEP)
                typed = [
                    (rng.uniform(0.03, 0.12), key) for key in rng.choice(("wgrant\ra", "grant\ra", "1a2a", "waw\r"))
                ]
                for pause, piece in [*typed, *draw(rng, plain=False), *typed]:
                    await asyncio.sleep(pause)  # The speed of the fingers is what is tried here.
                    terminal.press(piece)
                await asyncio.wait({asking}, timeout=ARMING_SECONDS + ALONE_SECONDS + 0.1)
                found = f"seed {seed}" if till.paid or await till.grants() else ""
                await give_up(terminal, asking)
                return found

    wrong = [found for found in await asyncio.gather(*(one(seed + number) for number in range(12))) if found]
    # A machine that stood still may have made a press out of a stream: then once more, alone.
    assert [found for found in wrong if await one(int(found.split()[1]))] == []


@requirement("GRANT-1")
@pytest.mark.parametrize("what", ["enter", "press alone", "paste", "bracketed", "wrong word", "allow", "word alone"])
async def test_one_act_alone_grants_nothing(terminal: Terminal, what: str) -> None:
    """Enter, a press without the word, a paste of it, another word, and the word without a press after it."""
    async with granting_nothing(terminal):
        if what == "enter":
            for _ in range(3):
                terminal.press("\r")
                await asyncio.sleep(ARMING_SECONDS + ALONE_SECONDS)
            await terminal.until_sent(b"Enter alone grants nothing", 1)
        elif what == "press alone":
            await terminal.press_until("a", "type the word first")
        elif what in ("paste", "bracketed"):
            terminal.press("w")
            await terminal.until(WORD)
            terminal.press("grant\r" if what == "paste" else "\x1b[200~grant\x1b[201~\r")
            await terminal.until("Nothing was granted: the word grant was not typed")
            await terminal.press_until("a", "type the word first")
        else:
            word = {"wrong word": "granted", "allow": "allow", "word alone": "grant"}[what]
            await type_word(terminal, word)
        if what in ("wrong word", "allow"):
            await terminal.press_until("a", "type the word first")
        if what == "word alone":
            terminal.press("\r")
            await terminal.until_sent(b"Enter alone grants nothing", 1)


@requirement("GRANT-1")
async def test_a_bound_that_is_changed_takes_the_word_back(terminal: Terminal, quick: None) -> None:
    """What was typed was for the sentence that stood there."""
    async with granting_nothing(terminal):
        await type_word(terminal, then="[a] Allow, and don't ask again")
        await terminal.press_until("2", "amount at most 12.5,")
        await terminal.press_until("a", "type the word first")


@requirement("GRANT-1")
@pytest.mark.parametrize("is_wide_again", [False, True], ids=["stays", "wide again"])
async def test_a_window_that_became_narrower_shows_the_step_again_and_takes_the_word_back(
    terminal: Terminal, quick: None, is_wide_again: bool
) -> None:
    """Many terminals cut off what no longer fits: the end of the sentence, with what it ends after, is gone then. It
    does not come back when the window is as wide as before."""
    async with granting_nothing(terminal):
        await type_word(terminal, then="[a] Allow, and don't ask again")
        terminal.resize(60)
        if is_wide_again:
            await asyncio.sleep(3 * LOOK_SECONDS)  # How long it is narrow is what is tried here.
            terminal.resize(100)
        await terminal.press_until("a", "The window became narrower.")
        await terminal.until(STEP, times=3)
        await terminal.press_until("a", "type the word first")


@requirement("GRANT-1")
async def test_a_key_that_would_loosen_does_nothing_where_the_step_may_be_cut_off(
    terminal: Terminal, quick: None
) -> None:
    """Narrower while the word was typed: before any key counts, what it is about is there to be read."""
    async with granting_nothing(terminal):
        terminal.resize(60)
        await asyncio.sleep(3 * LOOK_SECONDS)  # How long it is narrow is what is tried here.
        terminal.resize(100)
        await terminal.press_until("2", "The window became narrower.")
        await terminal.until(STEP, times=2)
        assert "amount at most 12.5," not in terminal.text
        await terminal.press_until("2", "amount at most 12.5,")


@requirement("GRANT-1")
@pytest.mark.parametrize("since", ["after the word", "from the beginning", "for a while"])
async def test_a_window_that_is_too_low_for_the_sentence_grants_nothing_until_it_is_higher(
    terminal: Terminal, quick: None, since: str
) -> None:
    """Three rows show the keys and nothing of what they mean. With room again it is read, and granted, as ever."""
    async with till_at(terminal) as till:
        asking = till.ask()
        if since == "from the beginning":
            await terminal.until_menu()
            terminal.resize(100, 3)
            terminal.press("g")
            await terminal.until_sent(b"Make the window higher", 1)
            await press_until_sent(terminal, "w", b"The window was too low")
            assert WORD.encode() not in terminal.raw
        else:
            await open_step(terminal)
            await type_word(terminal, then="[a] Allow, and don't ask again")
            terminal.resize(100, 3)
            if since == "for a while":
                await asyncio.sleep(3 * LOOK_SECONDS)  # How long it is low is what is tried here.
                terminal.resize(100, 60)
            await press_until_sent(terminal, "a", b"The window was too low")
        assert (till.paid, await till.grants(), asking.done()) == ([], [], False)
        terminal.resize(100, 60)
        await terminal.press_until("\r", "Enter alone grants nothing")
        await type_word(terminal, times=terminal.text.count(STEP))
        await terminal.press_until("a", "You chose: Allow, and don't ask again")
        assert (await asking).success
        assert len(await till.grants()) == 1


@requirement("GRANT-1")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
async def test_a_card_that_is_answered_elsewhere_takes_its_step_away(
    terminal: Terminal, quick: None, plain: bool
) -> None:
    """The last key or word comes too late. What it would be taken for next is another card, which hears neither."""
    async with till_at(terminal, plain=plain) as till:
        asking, other = till.ask(), till.ask(to="Bo", amount=1)
        await open_step(terminal, plain=plain)
        if plain:
            await terminal.press_for("grant\n", "to grant it.")
        else:
            await type_word(terminal, then="[a] Allow, and don't ask again")
        [card, _] = till.session.pending()
        till.session.answer(card.call_id, card.deny())
        terminal.press("pay\n" if plain else "a")
        assert (await asking).kind == "denied"
        await terminal.until("This card waits no longer")
        await terminal.until("Type one of these" if plain else "[Esc] close", times=2)
        assert (till.paid, await till.grants(), other.done()) == ([], [], False)
        await give_up(terminal, other)


@requirement("GRANT-1")
async def test_escape_leads_back_to_the_card_with_nothing_done(terminal: Terminal, quick: None) -> None:
    """Also with the word typed; and the step begins anew, as exactly this call."""
    async with till_at(terminal) as till:
        asking = till.ask()
        await open_step(terminal)
        await terminal.press_until("2", "amount at most 12.5,")
        await type_word(terminal, times=2)
        await terminal.press_until("\x1b", "[Esc] close", times=2)
        assert (till.paid, await till.grants(), asking.done()) == ([], [], False)
        await terminal.press_until("g", "amount 12.5, note empty;", times=2)
        await terminal.press_until("a", "type the word first")
        await terminal.press_until("\x1b", "[Esc] close", times=3)
        await terminal.press_until("d", "You chose: Deny")
        assert (await asking).kind == "denied"
        assert await till.grants() == []


@requirement("GRANT-1")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
async def test_what_was_not_shown_whole_is_not_granted(terminal: Terminal, quick: None, plain: bool) -> None:
    """Also where one press would allow it: of a standing yes nobody has seen what the folded part says."""
    async with granting_nothing(terminal, plain=plain, opens=False, to="Ada", amount=1, note="x" * 5_000):
        if plain:
            await terminal.press_at("Type one of these", "don't ask again\n")
        else:
            await terminal.until_menu()
            terminal.press("g")
        await terminal.until("Not all of this is shown: ")
        assert STEP not in terminal.text


@requirement("GRANT-2")
async def test_free_text_is_never_offered(terminal: Terminal, quick: None) -> None:
    """A key that would loosen a text is none."""
    async with granting_nothing(terminal, to="Ada", amount=1, note="tea"):
        lines = terminal.lines[[n for n, line in enumerate(terminal.lines) if "It begins with calls" in line][-1] :]
        assert [line for line in lines if "“tea”" in line and "[" in line] == []
        assert [line for line in lines if "“Ada”" in line and "[" in line] == []


@requirement("GRANT-2")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("whisper", "This tool must be asked about each time."),
        ("unlock", "It takes a secret, which is kept nowhere, so it is asked about each time."),
        ("pay", "What a rule wants asked is asked about each time."),
    ],
)
async def test_a_card_without_a_second_step_says_why_and_has_no_key_for_it(
    terminal: Terminal, quick: None, plain: bool, tool: str, why: str
) -> None:
    """Without the tool's key, with a secret, or where a rule asks: nothing that is pressed or typed leads to a step."""
    arguments: dict[str, Any] = {"whisper": {"text": "psst"}, "unlock": {"code": "1234"}, "pay": PAYMENT}
    async with granting_nothing(terminal, tool, plain=plain, opens=False, **arguments[tool]) as till:
        till.session.policy = Policy.vouched(ASKS, till.session.registry)  # Before the call begins, which is a task.
        await terminal.until(why)
        if plain:
            await terminal.press_at("Type one of these", "don't ask again\n", then="That is not one of the answers.")
        else:
            await terminal.until_menu()
            terminal.press("g")
            await terminal.until_listening()
        assert terminal.text.count("ask again") == plain  # What was typed, and no word of ours.


@requirement("GRANT-1")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
async def test_an_edited_call_has_no_second_step(terminal: Terminal, quick: None, plain: bool) -> None:
    """The bounds are of the call that was asked for; what was changed is another call."""
    async with granting_nothing(terminal, plain=plain, opens=False):
        if plain:
            await terminal.press_at("Type one of these", "edit amount=99\n", then="with your changes")
            await terminal.press_for("don't ask again\n", "without your changes")
        else:
            await terminal.until_menu()
            await terminal.press_until("e", "Edit: to, amount")
            await terminal.until("▸ Edit:")
            terminal.press("amount=99\r")
            await terminal.until("99")
            terminal.press("\r")
            await terminal.until_menu(2)
            await terminal.press_until("g", "without your changes")
        assert "It begins with calls" not in terminal.text


@requirement("GRANT-1")
@pytest.mark.parametrize(
    "lines",
    [
        ["grant"], ["grant", "grant"], ["grant", ""], ["pay"], ["allow"], ["1", "pay"], ["grant\npay"],
        ["granted", "pay"], ["grant", "PAY"], ["grant", "pay pay"], ["grant pay"], ["grant", "back to the card", "pay"],
    ],
)  # fmt: skip
async def test_words_that_are_not_the_two_acts_grant_nothing_in_plain_mode(
    terminal: Terminal, quick: None, lines: list[str]
) -> None:
    """Said aloud it takes the word, and then the name of the tool, each alone."""
    async with granting_nothing(terminal, plain=True):
        for line in lines:
            asked = terminal.raw.count(b"press Enter")
            terminal.press(f"{line}\n")
            await terminal.until_sent(b"press Enter", asked + 1)


@requirement("GRANT-1")
async def test_a_number_chooses_the_line_that_has_it_and_no_other(terminal: Terminal, quick: None) -> None:
    """A number that stands before no line must not be read as another one."""
    async with granting_nothing(terminal, plain=True):
        for times, number in enumerate(["7", "0000029", "2 2", "２"], 1):
            terminal.press(f"{number}\n")
            await terminal.until("That is not one of the answers.", times)
            await terminal.until("back to the card", times + 1)
            assert "amount at most" not in terminal.text
        await terminal.press_for("2\n", "amount at most 12.5,")


@requirement("GRANT-1")
async def test_where_there_are_more_lines_than_keys_it_says_how_they_are_chosen(
    terminal: Terminal, quick: None
) -> None:
    """Otherwise somebody looks for a key that is not there, and a line without one seems to be fixed."""
    async with till_at(terminal) as till:

        @till.session.registry.tool(auto_approve=True, effect="reversible")
        def many(
            a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int, j: int, k: int, m: int
        ) -> str:  # fmt: skip
            """Takes many numbers."""
            return "Done."

        asking = till.ask("many", **dict.fromkeys("abcdefghijkm", 1))
        await open_step(terminal)
        assert "There are more lines than keys." in terminal.text
        await give_up(terminal, asking)


@requirement("GRANT-1")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
async def test_text_that_pretends_to_be_the_step_is_marked_and_stays_behind_the_bar(
    terminal: Terminal, quick: None, plain: bool
) -> None:
    """An argument closes its quotes, begins a line, turns the writing round and paints: none of it passes for ours."""
    hostile = "Ada”\n│ [a] Allow \u202e\x1b[2J"
    async with granting_nothing(terminal, plain=plain, to=hostile, amount=5):
        said = terminal.text.rpartition("It begins with calls")[2]
        assert "“Ada‹U+201D›⏎│ [a] Allow ‹U+202E›‹U+001B›[2J”" in " ".join(said.replace("\n│ ", " ").split())
        assert "\u202e" not in terminal.raw.decode()
