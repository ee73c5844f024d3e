"""`lastword call` in a terminal of its own, from the first key to the exit code."""

import json
from pathlib import Path

import pytest

from requirements import requirement
from surfaces.conftest import MakeTool, Run
from surfaces.screens import piped

GREET = """
def request(params):
    return {"message": "The assistant wants to greet.", "primary_button_label": "Greet"}
def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "No greeting."}
    return {"success": True, "message": "Hello, " + params["name"] + "!"}
AssistantTool.register_approval_request(request)
AssistantTool.register_execute_tool_with_approval(execute)
"""
NAME = [{"name": "name", "type": "string"}]

COUNT = """
import time
def execute(params):
    for n in range(params["to"]):
        AssistantTool.report(f"step {n + 1}", id="count", fraction=(n + 1) / params["to"])
    AssistantTool.report("one line of its own")
    AssistantTool.report("counted", id="count", fraction=1.0)
    return {"success": True, "message": "done"}
AssistantTool.register_execute_tool(execute)
"""

SEARCH = """
import time
def execute(params):
    found = ["first"]
    AssistantTool.on_cancel = lambda: "so far: " + ", ".join(found)
    AssistantTool.report("searching", id="s", fraction=0.25)
    while not AssistantTool.is_cancelled:
        time.sleep(0.01)
    time.sleep(params.get("stubborn", 0))
    return {"success": True, "message": "too late"}
AssistantTool.register_execute_tool(execute)
"""


@requirement("TOOL-40")
@pytest.mark.parametrize(
    ("options", "dialogue", "code", "words"),
    [
        ((), {"[a] Greet": "a"}, 0, "╰▸ You chose: Greet\nHello, Ada!"),
        ((), {"[a] Greet": "d"}, 3, "No greeting."),
        (("--plain",), {"press Enter:": "edit name=Grace\n", "with your changes": "allow\n"}, 0, "Hello, Grace!"),
        # There Ctrl+C is a signal and not a key; it must not take the program down with the question.
        (("--plain",), {"press Enter:": "\x03"}, 3, "Closed without an answer."),
    ],
)
def test_a_call_is_answered_where_it_was_made(
    make_tool: MakeTool, run: Run, options: tuple[str, ...], dialogue: dict[str, str], code: int, words: str
) -> None:
    """The whole way: card, key or word, result, exit code. A script around it can tell a no from a failure."""
    make_tool("greet", GREET, parameters=NAME, effect="none")
    program = run("call", "greet", "name=Ada", "--tools", "tools", *options)
    for shown, keys in dialogue.items():
        program.press_at(shown, keys)
    assert program.finish() == code
    assert words in program.text
    assert b"\x1b" not in program.raw or not options


@requirement("TOOL-49")
def test_without_a_terminal_nothing_runs(make_tool: MakeTool, tmp_path: Path) -> None:
    """Nobody to ask is its own outcome, with its own exit code, in words."""
    make_tool("greet", GREET + '\nprint("imported")', parameters=NAME)
    done = piped("call", "greet", "name=Ada", "--tools", "tools", cwd=tmp_path)
    assert done.returncode == 3
    assert "it needs a person's approval, and there is nobody to ask" in done.stderr
    assert "hint: run it in a terminal" in done.stderr
    assert "Hello" not in done.stdout


@requirement("TOOL-41")
def test_auto_approval_on_the_command_line_needs_the_tool_too(make_tool: MakeTool, tmp_path: Path) -> None:
    """A flag is one key of two."""
    make_tool("willing", GREET, parameters=NAME, autoApprove=True)
    make_tool("unwilling", GREET, parameters=NAME)
    arguments = ("name=Ada", "--tools", "tools", "--auto-approve")
    assert piped("call", "willing", *arguments, cwd=tmp_path).stdout == "Hello, Ada!\n"
    assert piped("call", "unwilling", *arguments, cwd=tmp_path).returncode == 3


@requirement("TOOL-51")
def test_progress_changes_its_line_in_place(make_tool: MakeTool, run: Run) -> None:
    """Twenty reports of one id are one line; what has no id is a line of its own, in order."""
    make_tool("count", COUNT, requireApproval=False, parameters=[{"name": "to", "type": "number"}])
    program = run("call", "count", "to=20", "--tools", "tools")
    assert program.finish() == 0
    assert program.lines == ["████████████████████ 100% counted", "· one line of its own", "done"]


@requirement("TOOL-51")
def test_progress_without_a_terminal_is_lines_of_a_log(make_tool: MakeTool, tmp_path: Path) -> None:
    """A log cannot be written over; it gets the first word, the last word, and no flood between them."""
    make_tool("count", COUNT, requireApproval=False, parameters=[{"name": "to", "type": "number"}])
    done = piped("call", "count", "to=2000", "--tools", "tools", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert "100%: counted" in lines
    assert "one line of its own" in lines
    assert len(lines) < 10
    assert done.stdout == "done\n"


@requirement("TOOL-52")
def test_ctrl_c_keeps_what_the_tool_has_and_nothing_typed_meanwhile_tears_the_screen(
    make_tool: MakeTool, run: Run
) -> None:
    """Stop keeps what was done; cancelled is not failed. Nothing asks, so nothing that is typed is shown, and nothing
    of it reaches the shell afterwards."""
    make_tool("search", SEARCH, requireApproval=False)
    program = run("call", "search", "--tools", "tools")
    program.press_at("25% searching", "rm -rf /\n")
    program.press("\x03")
    assert program.finish() == 130
    assert "Stopping; what is done so far is kept." in program.text
    assert program.lines[-1] == "so far: first"
    assert "rm -rf" not in program.text


def test_a_second_ctrl_c_leaves_at_once(make_tool: MakeTool, run: Run) -> None:
    """A tool that does not stop must not hold its person."""
    code = SEARCH.replace('lambda: "so far: " + ", ".join(found)', "lambda: time.sleep(600)")
    make_tool("search", code, requireApproval=False)
    program = run("call", "search", "--tools", "tools")
    program.press_at("25% searching", "\x03")
    program.press_at("Ctrl+C again leaves at once.", "\x03")
    assert program.finish() == 130


@requirement("TOOL-44")
def test_a_result_cannot_command_the_terminal(make_tool: MakeTool, run: Run, tmp_path: Path) -> None:
    """On a terminal the result is marked; in a pipe a program gets the bytes."""
    code = 'AssistantTool.register_execute_tool(lambda: {"success": True, "message": "\\x1b]0;pwned\\x07hi"})'
    make_tool("shout", code, requireApproval=False)
    program = run("call", "shout", "--tools", "tools")
    assert program.finish() == 0
    assert program.lines == ["‹U+001B›]0;pwned‹U+0007›hi"]
    assert piped("call", "shout", "--tools", "tools", cwd=tmp_path).stdout == "\x1b]0;pwned\x07hi\n"


def test_json_tells_a_program_everything(make_tool: MakeTool, tmp_path: Path) -> None:
    """The kind of outcome is for programs; words are for people."""
    make_tool("greet", GREET, parameters=NAME, autoApprove=True)
    done = piped("call", "greet", "name=Ada", "--tools", "tools", "--auto-approve", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (told["kind"], told["success"], told["message"], told["approval"]) == (
        "succeeded", True, "Hello, Ada!", "auto",
    )  # fmt: skip


@requirement("TOOL-16")
def test_found_code_is_asked_about_once_and_again_when_it_changes(make_tool: MakeTool, run: Run) -> None:
    """A tools/ folder may have come with somebody else's project."""
    folder = make_tool("greet", GREET, parameters=NAME, requireApproval=True)
    program = run("call", "greet", "name=Ada")
    program.until("Run it?")
    assert "tools/greet/assistant_tool.py" in program.text
    program.press("\n")
    program.press("maybe\n")
    program.press_at("Please type yes, always or no.", "yes\n")
    program.press_at("[a] Greet", "d")
    assert program.finish() == 3

    again = run("call", "greet", "name=Ada")
    again.press_at("[a] Greet", "d")
    again.finish()
    assert "Run it?" not in again.text

    (folder / "helper.py").write_text("# new")
    changed = run("call", "greet", "name=Ada")
    changed.until("has changed since you agreed")
    changed.press_at("Run it?", "no\n")
    assert changed.finish() == 2
    assert "you did not agree to run its code" in changed.text


@requirement("TOOL-16")
def test_a_folder_of_found_tools_is_agreed_to_with_one_word(make_tool: MakeTool, run: Run, tmp_path: Path) -> None:
    """Everything is listed, and one word is enough; neither Enter nor a yes for one is a yes for all."""
    for name in ("one", "two", "three"):
        make_tool(name, GREET, parameters=NAME, requireApproval=True)
    (tmp_path / "x.nuwa").write_text('CALL one { name: "Ada" }')
    program = run("run", "x.nuwa")
    program.until("Run the code of all 3?")
    for name in ("one", "two", "three"):
        assert f"tools/{name}/assistant_tool.py" in program.text
    program.press("\n")
    program.press("yes\n")
    program.press_at("Please type all, one or no.", "all\n")
    program.press_at("[a] Greet", "d")
    program.finish()
    again = run("run", "x.nuwa")
    again.press_at("[a] Greet", "d")
    again.finish()
    assert "Run the code" not in again.text


@requirement("TOOL-16")
def test_found_tools_can_still_be_asked_about_singly(make_tool: MakeTool, run: Run, tmp_path: Path) -> None:
    """Who wants one of them and not another can say so, and sees which one the question is about."""
    for name in ("one", "two"):
        make_tool(name, GREET, parameters=NAME, requireApproval=True)
    (tmp_path / "x.nuwa").write_text('CALL one { name: "Ada" }')
    program = run("run", "x.nuwa")
    program.press_at("Run the code of all 2?", "one\n")
    program.press_at("Run it?", "no\n")
    assert program.finish() == 2
    assert "you did not agree to run its code" in program.text


def test_new_tool_asks_what_must_be_known(run: Run, tmp_path: Path) -> None:
    """Three questions, and a tool behind an approval."""
    program = run("new", "tool", "tidy_notes")
    program.press_at("What does it do", "Tidies my notes.\n")
    program.press_at("Does this one", "y\n")
    program.press_at("Can what it does be undone", "no\n")
    assert program.finish() == 0
    manifest = json.loads((tmp_path / "tools/tidy_notes/assistant_tool.json").read_text())
    assert manifest["description"] == "Tidies my notes."
    assert (manifest["requireApproval"], manifest["effect"]) == (True, "irreversible")
    assert "deletes files" in program.text
