"""One conversation on two surfaces: `lastword up` in a terminal, its page in Debian's Chromium, another terminal."""

import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lastword.testing.scripted import Pause, ScriptedModel
from requirements import requirement
from surfaces.conftest import MakeTool, Run
from surfaces.screens import Program, lastword_command, piped
from surfaces.test_chat import ASK, MENU, PARAMETERS, READY, SEARCH, SEND, request
from surfaces.windows import ARMED


@pytest.fixture(autouse=True)
def tools(make_tool: MakeTool, tmp_path: Path) -> None:
    (tmp_path / "send.nuwa").write_text('CALL send { to: "Ann", amount: 5 }\n')
    make_tool("send", SEND, parameters=PARAMETERS, effect="reversible")
    make_tool("search", SEARCH, requireApproval=False, effect="none")


def up(run: Run, model: ScriptedModel, port: int = 0, *arguments: str) -> Program:
    program = run("up", "--port", str(port), "--tools", "tools", *arguments, columns=150, LASTWORD_UPSTREAM=model.url)
    program.until("Ctrl+D stops.")
    return program


def key_of(program: Program) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+/enter\?key=[\w-]+", program.text)
    assert found
    return found[0]


def port_of(program: Program) -> int:
    return int(key_of(program).split(":")[2].partition("/")[0])


def attach(run: Run, *arguments: str) -> Program:
    program = run("chat", "--attach", *arguments)
    program.until("Joined the conversation at http://127.0.0.1:")
    return program


def say(page: Page, text: str) -> None:
    page.get_by_label("Message to the assistant").fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


@requirement("API-64")
def test_an_answer_says_in_the_terminal_and_on_the_page_what_was_used_for_it(run: Run, windows: Any):
    """A model says "the light is on" as easily as it switches one on. Only we know which of the two it was."""
    with ScriptedModel(["The kitchen light is now on.", ASK, "Ann has it."]) as model:
        program = up(run, model)
        program.until(READY)
        page = windows(key_of(program))
        program.say("Light on!", "(No tool was used for this answer.)")
        expect(page.locator(".message.assistant").last).to_contain_text("The kitchen light is now on.")
        expect(page.locator(".message.assistant .used")).to_contain_text(["No tool was used for this answer"])
        program.until(READY, times=2)
        program.say("Send Ann 5.")
        program.press_at(MENU, "a", then="(Used: send.)")
        used = ["No tool was used for this answer", "Used: send"]
        expect(page.locator(".message.assistant .used")).to_contain_text(used)
        program.until(READY, times=3)
        assert program.leave() == 0


def test_a_card_is_in_both_and_an_answer_in_the_terminal_clears_the_page(run: Run, windows: Any, tmp_path: Path):
    """Asked for in the terminal, seen on the page, allowed in the terminal; the page says who it was."""
    with ScriptedModel([ASK, "Ann has it."]) as model:
        program = up(run, model)
        program.until(READY)
        page = windows(key_of(program))
        program.say("Send Ann 5.", MENU)
        expect(page.locator(ARMED)).to_contain_text("Send 5 to Ann?")
        expect(page).to_have_title("(1) lastword")
        expect(page.locator(".message.you")).to_contain_text("Send Ann 5.")
        program.press("a")
        expect(page.locator(".card")).to_have_count(0)
        expect(page.locator(".call.good")).to_contain_text("allowed by the terminal")
        expect(page).to_have_title("lastword")
        program.until("┃ Ann has it.")
        expect(page.locator(".message.assistant").last).to_contain_text("Ann has it.")
        assert "You chose: Send" in program.text
        assert (tmp_path / "sent.txt").read_text() == "Ann\n"
        program.until(READY, times=2)
        assert program.leave() == 0


def test_a_card_is_in_both_and_an_answer_on_the_page_clears_the_terminal(run: Run, windows: Any, tmp_path: Path):
    """Asked for on the page while somebody types in the terminal. Their line comes back when it is over."""
    with ScriptedModel([ASK, "Ann has it.", "Indeed."]) as model:
        program = up(run, model)
        program.until(READY)
        page = windows(key_of(program))
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        program.press_for("my half a line", "▸ my half a line")
        say(page, "Send Ann 5.")
        program.until("You, in another window ▸ Send Ann 5.")
        program.until(MENU)
        page.locator(ARMED).get_by_role("button", name="Deny with a reason").click()
        page.keyboard.type("Wrong Ann")
        page.get_by_role("button", name="Deny, and say so").click()
        program.until("╰▸ Answered by the page: denied, because: Wrong Ann")
        program.until("✗ send (not allowed)")
        program.until("┃ Ann has it.")
        program.until("▸ my half a line")
        assert not (tmp_path / "sent.txt").exists()
        program.press_for(" goes on\r", "┃ Indeed.")
        expect(page.locator(".message.you").last).to_contain_text("my half a line goes on")


def test_two_terminals_show_the_same_card_and_the_second_hears_who_answered(run: Run, tmp_path: Path):
    """`lastword chat --attach` finds the server of its folder; what one says and answers, the other shows."""
    with ScriptedModel([ASK, "Ann has it."]) as model:
        first = up(run, model)
        first.until(READY)
        second = attach(run)
        second.until(READY)
        second.say("Send Ann 5.", MENU)
        first.until("You, in another window ▸ Send Ann 5.")
        first.press_at(MENU, "a")
        second.until("╰▸ Answered by the terminal: allowed.")
        for program in (first, second):
            program.until("✓ send (done): Sent 5 to Ann.")
            program.until("┃ Ann has it.")
            assert "send: answered by" not in program.text  # it was said on the card already
        assert (tmp_path / "sent.txt").read_text() == "Ann\n"
        # Who comes later is shown what was said.
        third = attach(run, f"http://127.0.0.1:{port_of(first)}")
        third.until("You said ▸ Send Ann 5.")
        third.until("┃ Ann has it.")
        third.until(READY)
        third.say("/quit", "Left. The conversation goes on")
        assert third.finish() == 0
        # Who begins a chat of their own hears that there is one to join.
        own = run("chat", "--tools", "tools", LASTWORD_UPSTREAM=model.url)
        own.until("`lastword up` of this folder runs at http://127.0.0.1:")


@requirement("API-42")
def test_a_terminal_comes_back_after_its_server_was_killed_with_a_card_waiting(run: Run, tmp_path: Path):
    """It waits for the server, says nothing twice, has the card again, and what it allows runs once."""
    with ScriptedModel(["Hello to you.", ASK, "Ann has it."]) as model:
        server = up(run, model)
        server.until(READY)
        terminal = attach(run)
        terminal.until(READY)
        terminal.say("Hello.", "┃ Hello to you.")
        terminal.until(READY, times=2)
        terminal.say("Send Ann 5.", MENU)
        server._child.kill(signal.SIGKILL)
        terminal.until("The server does not answer.")
        terminal.until(READY, times=3)
        terminal.say("Are you there?", "It is not known whether your message arrived. Here it is again.")
        terminal.until("▸ Are you there?", times=2)
        again = up(run, model, port_of(server))
        terminal.until("The server is back.")
        terminal.until("Going on with what was interrupted.")
        terminal.until(MENU, times=2)
        again.until(MENU)
        terminal.press_for("a", "┃ Ann has it.")
        again.until("Answered by the terminal: allowed.")
        again.until("┃ Ann has it.")
        assert (tmp_path / "sent.txt").read_text() == "Ann\n"
        assert terminal.text.count("┃ Hello to you.") == 1
        assert terminal.text.count("Send Ann 5.") == 1
        assert len(model.requests) == 3


def test_stopping_in_one_terminal_stops_for_all_and_a_stopped_turn_stays_stopped(run: Run, tmp_path: Path):
    """The partial result is kept; the second Ctrl+C stops the turn; no later process goes on with it by itself."""
    with ScriptedModel([request("search"), ["Well, ", Pause()]]) as model:
        first = up(run, model, 0, "--session", "stopped")
        first.until(READY)
        second = attach(run)
        second.until(READY)
        first.say("Search.")
        second.press_at("letters of ", "\x03", then="Ctrl+C again stops the turn")
        first.until("✗ search (cancelled)")
        second.press_at("┃ Well,", "\x03")
        for program in (first, second):
            program.until("Stopped. What was done is kept")
        first.until(READY, times=2)
        assert first.leave() == 0
        again = up(run, model, 0, "--session", "stopped")
        again.until(READY)
        again.say("/runs", "search: cancelled")
        assert "Going on with what was interrupted." not in again.text
        assert len(model.requests) == 2


def test_a_preset_that_one_window_chooses_is_said_in_the_others(run: Run, tmp_path: Path):
    """Auto-approval is never silent, wherever it was switched on."""
    (tmp_path / "lastword.toml").write_text("[preset.bold]\nauto_approve = true\n")
    with ScriptedModel([]) as model:
        first = up(run, model, 0, "--config", "lastword.toml")
        first.until(READY)
        second = attach(run)
        second.until(READY)
        second.say("/preset bold")
        for program in (first, second):
            program.until("From now on: preset bold: AUTO-APPROVES what tools allow.")
            program.until("bold, AUTO-APPROVES ▸")


def test_commands_in_a_joined_terminal_are_those_of_the_chat(run: Run):
    """Tools, state, presets, runs: asked of the server."""
    with ScriptedModel([]) as model:
        first = up(run, model)
        first.until(READY)
        terminal = attach(run)
        terminal.until(READY)
        for typed, words in (
            ("/tools", "send to amount"),
            ("/state", "No state information available."),
            ("/preset", "* preset default: asks before what needs approval; protocol"),
            ("/runs", "Nothing was called in this session yet."),
            ("/undo", "no call of this session has changed a file"),
            ("/resolve nothing done", "nothing"),
        ):
            terminal.say(f"{typed}", words)
        assert model.requests == []


def test_the_card_of_another_program_is_told_of_and_answered_on_request(run: Run, tmp_path: Path):
    """`lastword run --wait` in a second terminal asks; nobody's prompt is taken away for it, and `/answer` shows it."""
    with ScriptedModel([]) as model:
        server = up(run, model)
        server.until(READY)
        server.say("/answer", "no other program asks for anything")
        other = run("run", "--tools", "tools", "--wait", "send.nuwa")
        server.until("Another program asks: send (send). /answer shows the card.")
        server.say("/answer", "Send 5 to Ann?")
        server.press_at(MENU, "a", then="You chose: Send")
        assert other.finish() == 0
        assert (tmp_path / "sent.txt").read_text() == "Ann\n"
        server.say("/answer")
        server.until("no other program asks for anything", times=2)


def test_words_piped_into_a_joined_chat_are_said_there(run: Run, tmp_path: Path):
    """A program speaks in the conversation; the card is answered where a person sits."""
    with ScriptedModel([ASK, "Ann has it."]) as model:
        server = up(run, model)
        server.until(READY)
        command = f"echo Send Ann 5. | {shlex.join(lastword_command())} chat --attach"
        program = Program("sh", "-c", command, cwd=tmp_path)
        server.until("You, in another window ▸ Send Ann 5.")
        server.until(MENU)
        program.until("send (send) waits for an answer in another window.")
        server.press("a")
        program.until("send: answered by the terminal: allowed.")
        program.until("Ann has it.")
        assert program.finish() == 0
        program.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no `lastword up` of yours runs"),
        (["http://127.0.0.1:9"], "no `lastword up` of yours runs at http://127.0.0.1:9"),
        (["http://127.0.0.1:9/enter?key=x"], "http://127.0.0.1:9 does not answer"),
        (["http://192.0.2.1/enter?key=x"], "192.0.2.1 is another machine"),
        (["nonsense?key=x"], "is not the address of a server"),
        (["--tools", "tools"], "leave out --tools"),
        (["--session", "s", "--store", "memory:"], "leave out --session, --store"),
        (["--config", "lastword.toml"], "leave out --config"),
    ],
)
def test_what_cannot_be_joined_is_said_in_words(tmp_path: Path, arguments: list[str], said: str):
    """No traceback, and what to do."""
    done = piped("chat", "--attach", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
