"""Attack: keys that were meant for something else answer a card."""

import asyncio
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_streams import judge_all

from lastword import ToolRegistry
from lastword.terminal.keyboard import ALONE_SECONDS, CLOSE, ENTER, Arming
from lastword.terminal.tty import ARMING_SECONDS
from requirements import requirement
from surfaces.conftest import session_at
from surfaces.screens import Program, Terminal, lastword_command

KEYS = frozenset({"a", "d", "r", "e", CLOSE, ENTER})


def heard(keys: list[tuple[float, bytes]], *, wanted: frozenset[str] = KEYS, until: float = 60.0) -> list[str]:
    """The presses that counted, on a clock of our own; every key comes so long after the one before."""
    ear, now, counted = Arming(wanted, 0.0), 0.0, []

    def pass_time(end: float) -> None:
        nonlocal now
        while (due := ear.due) is not None and due <= end:
            now = due
            if press := ear.look(now):
                counted.append(press)
        now = end

    for pause, data in keys:
        pass_time(now + pause)
        ear.hear(data, now)
    pass_time(now + until)
    return counted


def typed(text: str, pace: float, first: float = 1.0) -> list[tuple[float, bytes]]:
    return [(pace if number else first, key.encode()) for number, key in enumerate(text)]


WORDS = ["what is that", "allow", "aa", "add", "a\r", "\x1b]11;rgb:aaaa/aaaa/aaaa\x07"]
# A slow typist is slower than a quarter of a second, and gives themselves away by the first other letter.
SLOW = ["wa", "what a", "xaaaaa", "[a"]


@requirement("TOOL-55")
@pytest.mark.parametrize(
    ("text", "pace"),
    [(text, pace) for texts, paces in ((WORDS, (0.005, 0.05, 0.12, 0.24)), (SLOW, (0.26, 0.49))) for text in texts
     for pace in paces],
)  # fmt: skip
def test_whoever_types_answers_nothing(text: str, pace: float) -> None:
    """A letter of a word is no answer, also where it is the first one that means something here."""
    assert heard(typed(text, pace)) == []


@requirement("TOOL-55")
def test_a_press_that_stands_alone_counts_once_and_only_on_a_card_that_listens() -> None:
    """The rule must not keep out whoever means it."""
    assert heard([(ARMING_SECONDS, b"a")]) == ["a"]
    assert heard([(0.1, b"x"), (ARMING_SECONDS, b"a")]) == ["a"]
    assert heard([(ARMING_SECONDS - 0.01, b"a")]) == []
    assert heard([(1.0, b"a"), (ALONE_SECONDS + 0.01, b"d")]) == ["a"]  # the second came within half a second
    assert heard([(1.0, b"\x1b")]) == [CLOSE]
    assert heard([(1.0, b"aa")]) == heard([(1.0, b"A")]) == heard([(1.0, "ä".encode())]) == []


@requirement("TOOL-55")
def test_random_streams_answer_nothing_in_any_time() -> None:
    """Ten thousand of them on a clock of our own, where no machine is too slow for it."""
    seed = random.SystemRandom().randrange(2**32)
    rng = random.Random(seed)
    for _ in range(10_000):
        keys = [(rng.uniform(0, ALONE_SECONDS - 0.001), rng.choice("aadrex\r").encode()) for _ in range(12)]
        assert heard([(rng.choice((0.1, 1.0)), b"a"), *keys]) == [], f"seed {seed}"


@requirement("TOOL-55")
async def test_streams_of_keys_approve_nothing_in_a_terminal_and_a_deliberate_press_does() -> None:
    """Typing, pastes, held keys and replies of the terminal, begun before a card or on it. The soak draws 200."""
    seed = random.SystemRandom().randrange(2**32)
    wrong = await judge_all([seed + number for number in range(20)], side_by_side=20)
    assert wrong == [], f"python tests/attack/typing_soak.py 20 {seed}"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A program with a card at its terminal, for a tool that leaves a file behind."""
    (tmp_path / "ask.py").write_text(
        "import asyncio, pathlib\n"
        "from lastword import Session, ToolRegistry\n"
        "from lastword.terminal.approver import TerminalApprover\n"
        "registry = ToolRegistry()\n"
        "@registry.tool(effect='reversible')\n"
        "def leave_trace(name: str) -> str:\n"
        "    '''Leaves a file behind.'''\n"
        "    pathlib.Path('trace').write_text(name)\n"
        "    return 'Left.'\n"
        "async def main():\n"
        "    async with Session(registry, approver=TerminalApprover()) as session:\n"
        "        print((await session.call('leave_trace', {'name': 'x'})).kind)\n"
        "asyncio.run(main())\n"
    )
    program = Program(lastword_command()[0], "ask.py", cwd=tmp_path)
    yield program
    program.close()


@requirement("TOOL-55")
def test_a_program_of_its_own_says_that_it_waits_and_listens_again(program: Program, tmp_path: Path) -> None:
    """The whole way, in another process: words typed at a card, what the screen says, and one press that is meant."""
    program.until("[Esc] close")
    for key in "what is that":
        program.press(key)
        time.sleep(0.05)  # The speed of the fingers is what is tried here.
    program.until("╰▸ Listening again: press one key.")
    assert not (tmp_path / "trace").exists()
    program.press("a")
    assert program.finish() == 0
    assert "╰▸ You chose: Allow" in program.lines
    assert program.lines[-1] == "succeeded"
    assert "Waiting until the keys are quiet." in program.raw.decode()


def test_whoever_types_while_code_is_asked_about_has_not_agreed_to_it(tmp_path: Path) -> None:
    """The question about found code is answered in words; those typed before it stood there were meant for another."""
    folder = tmp_path / "tools" / "hello"
    folder.mkdir(parents=True)
    manifest = {"displayName": "Hi", "id": "hello", "description": "Hi.", "parameters": []}
    (folder / "assistant_tool.json").write_text(json.dumps(manifest))
    (folder / "assistant_tool.py").write_text("import pathlib\npathlib.Path('trace').write_text('ran')\n")
    program = Program(*lastword_command(), "call", "hello", cwd=tmp_path)
    try:
        program.press("yes\ryes\r")  # Before it can have asked, however slow either of us is.
        program.until("Run it?")
        program.press("no\r")
        assert program.finish() != 0
    finally:
        program.close()
    assert not (tmp_path / "trace").exists()


@requirement("TOOL-55")
@pytest.mark.parametrize("plain", [False, True], ids=["card", "plain"])
async def test_what_cannot_be_undone_is_allowed_only_when_all_of_it_was_shown(plain: bool) -> None:
    """Sixty thousand folded characters may hold anything; who allows them unseen has not seen what will happen."""
    with Terminal(lines=200).attached() as terminal:
        registry = ToolRegistry()
        ran: list[str] = []

        @registry.tool(effect="irreversible")
        def send(text: str) -> str:
            """Sends a letter."""
            ran.append(text)
            return "Sent."

        async with session_at(terminal, registry, plain=plain) as session:
            asking = asyncio.create_task(session.call("send", {"text": "x" * 2_000}))
            question = "Type one of these" if plain else "[Esc] close"
            await terminal.until(question)
            terminal.press("allow\n" if plain else "a")
            await terminal.until("Not all of this is shown: ")
            if plain:
                await terminal.until(question, times=2)
                terminal.press("all\n")
                await terminal.until(question, times=3)
                terminal.press("allow\n")
                await terminal.until("Type the name of the tool, send, and press Enter")
                terminal.press("send\n")
            else:
                await terminal.press_until("v", "[v] show all", times=2)
                terminal.press("a")
                await terminal.until("Type allow and press Enter")
                for key in "allow\r":
                    terminal.press(key)
                    await asyncio.sleep(0.06)  # A paste of the word is not taken.
            assert (await asking).kind == "succeeded"
    assert ran == ["x" * 2_000]


@requirement("TOOL-55")
@pytest.mark.parametrize(
    "pieces",
    [["allow\r"], ["\x1b[200~allow\x1b[201~\r"], ["a", "llow\r"]],
    ids=["unbracketed", "bracketed", "to a busy program"],
)
async def test_the_word_for_what_cannot_be_undone_is_typed_and_not_pasted(pieces: list[str]) -> None:
    """Two different acts: a clipboard that holds the word, or a text that does, is not the second of them.

    A program that is busy with the first letter finds the rest there when it looks again, later than fingers are.
    """
    with Terminal().attached() as terminal:
        registry = ToolRegistry()

        @registry.tool(effect="irreversible")
        def send(to: str) -> str:
            """Sends a letter."""
            raise AssertionError("it was sent")

        async with session_at(terminal, registry) as session:
            asking = asyncio.create_task(session.call("send", {"to": "Ada"}))
            await terminal.until_menu()
            terminal.press("a")
            await terminal.until("Type allow and press Enter")
            for piece in pieces:
                terminal.press(piece)
                if piece != pieces[-1]:
                    await terminal.until(f"go on: {piece}")
                    await asyncio.sleep(0.3)  # as long as the program is busy, which is longer than a paste may take
            await terminal.until("Not approved: the word allow was not typed")
            await terminal.until_menu(2)
            terminal.press("d")
            assert (await asking).kind == "denied"
