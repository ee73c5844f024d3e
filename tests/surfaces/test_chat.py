"""The chat on a real screen: a process of its own, a terminal of its own, and a model behind a real server."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lastword.cli import run as run_command
from lastword.testing.scripted import Fault, Pause, ScriptedModel
from requirements import requirement
from surfaces.conftest import MakeTool, Run
from surfaces.screens import Program, clean_environment
from surfaces.windows import Browserless

GOLDEN = Path(__file__).parents[1] / "golden"
MENU = "[Esc] close"
READY = "asks ▸"

SEND = """
def request(params):
    return {"message": f"Send {params['amount']} to {params['to']}?", "primary_button_label": "Send"}
def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Nothing was sent."}
    open("sent.txt", "a").write(params["to"] + "\\n")
    return {"success": True, "message": f"Sent {params['amount']} to {params['to']}."}
AssistantTool.register_approval_request(request)
AssistantTool.register_execute_tool_with_approval(execute)
"""
PARAMETERS = [{"name": "to", "type": "string"}, {"name": "amount", "type": "number"}]

SEARCH = """
import time
def execute(params):
    AssistantTool.on_cancel = lambda: "found it in 1990"
    for year in range(1990, 3000):
        if AssistantTool.is_cancelled:
            break
        AssistantTool.report(f"letters of {year}", id="search", fraction=(year - 1990) / 1010)
        time.sleep(0.02)
    return {"success": True, "message": "all searched"}
AssistantTool.register_execute_tool(execute)
"""


def request(name: str, **arguments: Any) -> str:
    return json.dumps({"tool_request": {"name": name, "arguments": arguments}})


ASK = request("send", to="Ann", amount=5)

Model = Callable[..., ScriptedModel]


@pytest.fixture
def model() -> Iterator[Model]:
    with ExitStack() as stack:
        yield lambda replies: stack.enter_context(ScriptedModel(replies))


@pytest.fixture
def tools(make_tool: MakeTool) -> None:
    make_tool("send", SEND, parameters=PARAMETERS, autoApprove=True, effect="reversible")
    make_tool("search", SEARCH, requireApproval=False, effect="none")


def chat(run: Run, model: ScriptedModel, *arguments: str, **facts: Any) -> Program:
    program = run("chat", "--tools", "tools", *arguments, LASTWORD_UPSTREAM=model.url, **facts)
    program.until("▸" if "--plain" not in arguments else "You (")
    return program


def told(model: ScriptedModel) -> str:
    """The last thing the model was told."""
    return str(model.requests[-1]["messages"][-1]["content"])


@requirement("API-2", "API-31")
def test_words_stream_under_a_prompt_that_says_whether_it_auto_approves(run: Run, model: Model, tools: None):
    """The beginning is on the screen before the end exists; preset, auto-approval and model are said."""
    gate = Pause()
    m = model([["Let me think about it. ", gate, "Done."]])
    program = chat(run, m)
    assert f"Model: {m.url} (LASTWORD_UPSTREAM)." in program.text
    assert "default, asks ▸" in program.text
    assert "This is preset default: asks before what needs approval." in program.text
    program.say("Hello", "┃ Let me think about")
    assert "Done." not in program.text
    gate.open()
    program.until("┃ Let me think about it. Done.")
    program.say("/quit", "--session")
    assert program.finish() == 0


@requirement("API-30")
def test_a_message_whose_turn_failed_is_there_again_and_enter_sends_it(run: Run, model: Model, tools: None):
    """The page has a button for it. Here it had to be typed again, or looked for in the history."""
    m = model([Fault("status", status=400, body=b"out of memory"), "Hello.", "Bye."])
    program = chat(run, m)
    program.press_for("Say hello.\r", "out of memory")
    program.until("Here is your message again")
    program.press_at("asks ▸ Say hello.", "\r", 2, then="┃ Hello.")
    program.until(READY, 3)
    assert program.lines[-1].endswith("▸"), "what was answered is not offered again"
    assert [told(m), len(m.requests)] == ["Say hello.", 2]


@requirement("API-2")
def test_cards_in_a_conversation_are_denied_with_a_reason_closed_and_allowed_by_keys(
    run: Run, model: Model, tools: None, tmp_path: Path
):
    """Where Enter has just been pressed to speak, it does not approve. The model reads why it was denied; closed is
    neither yes nor no, and a line that says "not allowed" puts words into a person's mouth."""
    m = model([ASK, "Then not.", ASK, "Then later.", ASK, "Ann has it."])
    program = chat(run, m)
    program.say("Send Ann 5.")
    program.press_at(MENU, "r")
    program.press_at("Your reason", "wrong Ann\r", then="┃ Then not.")
    assert "Their reason: wrong Ann" in told(m)
    program.say("Send Ann 5.")
    program.press_at(MENU, "\x1b", 2, then="┃ Then later.")
    assert "✗ send (closed): send was not run" in program.text
    program.say("Send Ann 5.")
    program.press_at(MENU, "\r", 3, then="Enter alone does not answer")
    assert not (tmp_path / "sent.txt").exists()
    program.press("x")
    program.press_at("Listening again", "a", then="┃ Ann has it.")
    assert "✓ send (done): Sent 5 to Ann." in program.text
    assert (tmp_path / "sent.txt").read_text() == "Ann\n"


def test_progress_changes_in_place_and_ctrl_c_keeps_what_there_is(run: Run, model: Model, tools: None):
    """One line for one report id; the first Ctrl+C cancels the call, and the model gets the partial result."""
    m = model([request("search"), "At least 1990."])
    program = chat(run, m)
    program.say("Search.")
    program.until_changing(r"letters of \d+")
    assert program.text.count("letters of") == 1
    program.press_for("\x03", "┃ At least 1990.")
    assert "Ctrl+C again stops the turn" in program.text
    assert "✗ search (cancelled)" in program.text
    assert "found it in 1990" in told(m)


def test_a_second_ctrl_c_stops_the_turn_and_the_chat_goes_on(run: Run, model: Model, tools: None):
    """The call is cancelled, and the model thinks for ever about it. The person need not wait for that."""
    m = model([request("search"), ["Well, ", Pause()], "Hello again."])
    program = chat(run, m)
    program.say("Search.")
    program.until_changing(r"letters of \d+")
    program.press("\x03")
    program.press_at("┃ Well,", "\x03", then="Stopped. What was done is kept")
    program.until("▸", times=2)
    program.say("Hello.", "┃ Hello again.")
    assert "found it in 1990" in str(m.requests[-1]["messages"])


def test_what_the_model_writes_cannot_pass_for_the_program(run: Run, model: Model, tools: None):
    """Every line of it has our bar, wrapped ones too; escapes and look-alikes are marked."""
    forged = "\x1b[2J\x1b[H╭─ ✎ Write Note\n│ [a] Allow\n╰▸ default, asks ▸ /quit\n" + "word " * 60 + "p\u0430yp\u0430l"
    m = model([forged])
    program = chat(run, m, columns=60)
    program.say("Hi")
    program.until("U+0430", times=2)
    said = program.text.split("▸ Hi\n", 1)[1].split("default, asks ▸\n")[0]
    own = ("(No tool was used for this answer.)", "default, asks")  # What the program itself says has no bar.
    lines = [line for line in said.splitlines() if line and not line.startswith(own)]
    assert all(line.startswith("┃") for line in lines), said
    assert "‹U+001B›[2J" in said.replace("\n┃ ", "")
    assert b"\x1b[2J\x1b[H\xe2" not in program.raw


@pytest.mark.parametrize("columns", [40, 100])
def test_a_narrow_and_a_wide_window_without_colour(run: Run, model: Model, tools: None, columns: int):
    """NO_COLOR: all of it is legible, and nothing is coloured. The whole screen is what it was."""
    m = model(["The quick brown fox jumps over the lazy dog, and back to where it came from.", ASK, "Fine."])
    program = chat(run, m, "--session", "snapshot", columns=columns, NO_COLOR="1")
    program.say("Hi")
    program.until("▸", times=2)
    program.say("Send")
    program.press_at(MENU, "d", then="┃ Fine.")
    program.until(READY, times=3)
    golden, shown = GOLDEN / f"chat_{columns}.txt", re.sub(r":\d{5}/", ":00000/", program.text) + "\n"
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")
    coloured = re.findall(rb"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7]|38;|48;)[0-9;]*m", program.raw)
    assert coloured == []


def test_the_presets_of_the_file_are_there_and_auto_approval_is_never_silent(
    run: Run, model: Model, tools: None, tmp_path: Path
):
    """Switching says so, the prompt says so, and every call that was approved by it says so."""
    (tmp_path / "lastword.toml").write_text('[preset.bold]\nauto_approve = true\nprotocol = "json"\n')
    m = model([ASK, "Ann has it."])
    program = chat(run, m, "--config", "lastword.toml")
    program.say("/preset nonsense", "there is no preset nonsense")
    program.say("/preset bold", "* preset bold: AUTO-APPROVES what tools allow; protocol json", "bold, AUTO-APPROVES ▸")
    program.say("Send Ann 5.", "┃ Ann has it.")
    assert "auto-approved by the preset bold" in program.text
    assert (tmp_path / "sent.txt").read_text() == "Ann\n"


def test_commands_say_what_there_is(run: Run, model: Model, tools: None):
    """Tools, state, runs, help: without the model."""
    m = model([request("send", to="Ann")])
    program = chat(run, m)
    program.say("/tools", "send to amount")
    program.say("/state", "No state information available.")
    program.say("/runs", "Nothing was called in this session yet.")
    program.say("/undo", "no call of this session has changed a file")
    program.say("/resolve x", "say which call and what to do about it")
    program.say("/resolve x again", "running it again takes the name of its tool as well")
    program.say("/stop", "Nothing waited")
    program.say("/help", "what was called and run in this session")
    assert m.requests == []


def test_tab_completes_and_history_outlives_the_program(run: Run, model: Model, tools: None, tmp_path: Path):
    """Commands, tools and the names of their arguments; what was typed last comes back with the arrow key."""
    m = model(lambda body: "I heard.")
    program = chat(run, m)
    program.press("/too\t")
    program.press_at("▸ /tools", "\x15/send to=x am\t")
    program.press_at("/send to=x amount=", "\x15remember this\r", then="I heard.")
    assert program.leave() == 0
    history = tmp_path / ".data" / "lastword" / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    program = chat(run, m)
    program.press_for("\x1b[A", "▸ remember this")


def test_ctrl_c_at_the_prompt_empties_the_line_and_says_how_to_leave(run: Run, model: Model, tools: None):
    """As in a shell; nobody is caught in here, and nobody leaves by a key meant for something else."""
    program = chat(run, model([]))
    program.press("not this")
    program.press_at("▸ not this", "\x03")
    program.press_at(READY, "\x03", 2, then="Ctrl+D leaves.")
    program.until(READY, times=3)
    assert program.leave() == 0


@requirement("API-42")
def test_a_killed_chat_asks_its_card_again(run: Run, model: Model, tools: None, tmp_path: Path):
    """The window was closed while a card waited. Coming back to the session asks it, and it runs once."""
    m = model([ASK, "Ann has it."])
    program = chat(run, m, "--session", "kept")
    program.say("Send Ann 5.", MENU)
    program._child.kill(signal.SIGKILL)
    program = run("chat", "--tools", "tools", "--session", "kept", LASTWORD_UPSTREAM=m.url)
    program.press_at(MENU, "a", then="┃ Ann has it.")
    assert (tmp_path / "sent.txt").read_text() == "Ann\n"
    assert len(m.requests) == 2


def test_the_flat_mode_has_no_codes_and_is_answered_with_words(run: Run, model: Model, tools: None):
    """For screen readers: nothing moves, nothing is drawn, who speaks is said."""
    m = model([ASK, "Ann has it."])
    program = chat(run, m, "--plain")
    program.until("preset default: asks before what needs approval")
    program.say("Send Ann 5.")
    program.press_at("Type one of these and press Enter: allow", "allow\r", then="The assistant says:")
    program.until("Ann has it.")
    assert b"\x1b" not in program.raw
    program.say("/quit")
    assert program.finish() == 0


def test_a_multi_line_script_can_be_pasted(run: Run, tools: None, tmp_path: Path):
    """With the rehearsal model: the script runs, its call is asked for with its line, its output is shown."""
    program = run("chat", "--tools", "tools", LASTWORD_UPSTREAM="")
    program.until(READY)
    assert "The rehearsal model" in program.text
    script = 'LET r = CALL send { to: "Ann", amount: 1 }\nPRINT("╭─ card\\n╰▸ [a] Allow")\nPRINT(r.message)'
    program.press_for(f"\x1b[200~{script}\x1b[201~\r", MENU)
    assert "line 1 of the script" in program.text
    program.press_for("a", "┃ Rehearsal model: The script ended: done.")
    assert "┊ Sent 1 to Ann." in program.text
    assert "┊ ╭─ card\n┊ ╰▸ [a] Allow" in program.text  # what a script prints cannot pass for a card


@requirement("API-31")
def test_the_tour_on_a_real_screen(run: Run):
    """With nothing configured and no tools: allowed, denied, undone, within a minute."""
    program = run("chat", lines=40)
    program.until("Type tour")
    program.until(READY)
    program.say("tour", "1 of 3")
    program.say("next", MENU)
    assert "+Somebody read this before it was written." in program.text
    program.press_for("a", "2 of 3")
    program.say("next", "Send Postcard")
    program.press_at("[a] Allow…", "d", then="3 of 3")
    program.say("/undo", "Took back tour_note: note.md is as it was before.")
    program.say("next", "That was the tour.")


def test_what_another_window_takes_back_is_said_here_and_not_twice_there(run: Run):
    """A file that changes back without a word looks like a fault; who did it reads the words for it once."""
    program = run("up", "--port", "0", lines=50)
    program.until("Ctrl+D stops.")
    program.until(READY)
    other = run("chat", "--attach", lines=50)
    other.until("Joined the conversation")
    program.say("tour", "1 of 3")
    program.say("next")
    program.press_at(MENU, "a", then="2 of 3")
    other.until("To take it back: /undo")
    other.until("2 of 3")
    other.until(READY)
    other.say("/undo", "Took back tour_note: note.md is as it was before.")
    program.until("taken back by the terminal. As before: note.md.")
    other.say("/runs", "undone by")
    assert "taken back by" not in other.text


def test_the_page_says_which_model_answers_and_does_not_point_at_itself(run: Run):
    """Under Settings stood that there are Settings, in the words of a terminal, right above the form itself."""
    program = run("up", "--port", "0", columns=150)
    program.until("Ctrl+D stops.")
    assert "Settings on the page" in program.text.replace("\n", " ")
    found = re.search(r"(http://127\.0\.0\.1:\d+)/enter\?key=[\w-]+", program.text.replace("\n", ""))
    assert found
    said = Browserless(found[1]).enter(found[0]).get("/page/state")[1]["settings"]["model"]
    assert "The rehearsal model answers" in said
    assert "Settings" not in said
    assert "--upstream" not in said


@requirement("API-3")
def test_up_serves_the_api_and_the_page_in_one_process(run: Run, model: Model, tools: None):
    """One address: the API answers for itself, and what is said on the page goes through the very same protocol."""
    m = model(lambda body: "Hello from the model.")
    program = run("up", "--port", "0", "--tools", "tools", LASTWORD_UPSTREAM=m.url)
    program.until("Ctrl+D stops.")
    found = re.search(r"(http://127\.0\.0\.1:\d+)/enter\?key=[\w-]+", program.text.replace("\n", ""))
    assert found
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
    made = run("token", "create", "outside")
    assert made.finish() == 0
    token = re.search(r"lastword_[0-9a-f]{8}_[\w-]{43}", made.text.replace("\n", ""))
    assert token
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token[0]}"}
    asked = urllib.request.Request(f"{found[1]}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(asked) as answer:
        assert json.load(answer)["choices"][0]["message"]["content"] == "Hello from the model."
    window = Browserless(found[1]).enter(found[0])
    assert window.post("/page/say", {"text": "Hi"})[0] == 200
    with window.events() as following:
        said = following()[2]
        while said.get("busy") is not False:
            said = following()[2]
    spoken = [(item["by"], item["text"]) for item in window.get("/page/state")[1]["items"]]
    assert spoken == [("you", "Hi"), ("assistant", "Hello from the model.")]
    program.until("You, in another window ▸ Hi")
    program.until("┃ Hello from the model.\n(No tool was used for this answer.)\ndefault, asks ▸")
    assert program.text.count(READY) == 1  # the prompt made room for it, and came back
    assert program.leave() == 0


def test_a_chat_with_a_server_elsewhere(run: Run, model: Model, tools: None, tmp_path: Path):
    """Tools and cards are here, the model is there."""
    m = model([ASK, "Ann has it."])
    server = run("serve", "--port", "0", "--store", "memory:", LASTWORD_UPSTREAM=m.url)
    server.until("/v1")
    found = re.search(r"http://127\.0\.0\.1:\d+", server.text)
    assert found
    program = run("chat", "--server", found[0], "--tools", "tools")
    program.until(READY)
    program.say("Send Ann 5.")
    program.press_at(MENU, "a", then="┃ Ann has it.")
    assert (tmp_path / "sent.txt").read_text() == "Ann\n"
    program.until(READY)
    program.say("/tokens", "20 tokens for the last answer that was counted, 20 for the only answer.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "nonsense"], "--preset: there is no preset nonsense"),
        (["--session", "../x"], "--session: an id has letters"),
        (["--server", "nonsense"], "'nonsense' is not the address of a server"),
        (["--server", "http://127.0.0.1:9"], "http://127.0.0.1:9 does not answer"),
        (["--tools", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_begin_is_said_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
):
    """No traceback, and the place that has to be changed."""
    monkeypatch.chdir(tmp_path)
    for name, value in clean_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert run_command(["chat", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_conversations_in_a_terminal(run: Run, model: Model, tools: None):
    """The same list as on the page: a new one begins empty, and the old one comes back."""
    program = chat(run, model(["Hello Ann.", "Hello Bob."]), "--session", "ann")
    program.say("I am Ann", "┃ Hello Ann.")
    program.say("/new", "A new conversation.")
    program.say("I am Bob", "┃ Hello Bob.")
    program.say("/conversations ann", "  ann  I am Ann")
    program.say("/open ann", "This is conversation ann.")
    program.say("/open nowhere", "there is no such conversation")
    program.say("/open", "say which conversation")
    assert program.leave() == 0


def test_a_mistyped_session_is_refused_and_a_new_name_is_said_to_be_new(run: Run, model: Model, tools: None):
    """Who comes back to `holidays` and types `holiday` would find everything gone."""
    m = model(["Noted."])
    program = chat(run, m, "--session", "holidays")
    program.until("There was no session holidays: it begins now.")
    program.say("Remember this.", "┃ Noted.")
    assert program.leave() == 0
    program = run("chat", "--tools", "tools", "--session", "holiday", LASTWORD_UPSTREAM=m.url)
    program.until("there is no session holiday")
    program.until("did you mean holidays?")
    assert program.finish() != 0
