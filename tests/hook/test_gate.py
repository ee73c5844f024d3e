"""The program that agents start: what it says to recorded events, and that nothing but a yes ever sounds like one."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hook.gates import (
    CLAUDE_AFTER,
    CLAUDE_BEFORE,
    CODEX_BEFORE,
    GEMINI_BEFORE,
    PATIENCE_SECONDS,
    Gate,
    Queue,
    heard,
)
from lastword.journal import attending
from lastword.store import open_store
from requirements import requirement
from surfaces.screens import clean_environment

DENIED = 2


@requirement("HOOK-1")
async def test_a_yes_of_the_person_is_a_yes_in_the_form_of_claude_code(gate: Gate, queue: Queue):
    """The card waits in the same queue as everybody's, and says whose call it is."""
    process = await gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    assert (card.title, card.arguments) == ("Run a command", {"command": "echo hi", "cwd": "/home/you/proj"})
    assert "Claude Code" in card.origin
    await queue.answer(card, card.allow())
    said = (await heard(process)).decided
    assert said == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}


@requirement("HOOK-1")
async def test_a_no_comes_with_the_reason_of_the_person(gate: Gate, queue: Queue):
    """The model reads it, and must not ask again."""
    process = await gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    await queue.answer(card, card.deny("not on a Friday"))
    said = (await heard(process)).decided
    assert said["permissionDecision"] == "deny"
    assert "not on a Friday" in said["permissionDecisionReason"]


@requirement("HOOK-1")
async def test_changed_arguments_reach_claude_code(gate: Gate, queue: Queue):
    """The person is the author of what they changed, and the agent runs that."""
    process = await gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    await queue.answer(card, card.edit(command="echo bye"))
    said = (await heard(process)).decided
    assert (said["permissionDecision"], said["updatedInput"]) == ("allow", {"command": "echo bye"})


@requirement("HOOK-1")
async def test_codex_is_told_of_a_plain_yes_by_silence(gate: Gate, queue: Queue):
    """It takes `allow` without other arguments for a mistake of the hook."""
    process = await gate.start(CODEX_BEFORE, "codex")
    card = await queue.card()
    await queue.answer(card, card.allow())
    answer = await heard(process)
    assert (answer.code, answer.printed) == (0, "")


@requirement("HOOK-1")
async def test_codex_gets_changed_arguments_and_reasons(gate: Gate, queue: Queue):
    """Both are the same shape as for Claude Code."""
    process = await gate.start(CODEX_BEFORE, "codex")
    card = await queue.card()
    await queue.answer(card, card.edit(command="echo bye"))
    assert (await heard(process)).decided["updatedInput"] == {"command": "echo bye"}
    process = await gate.start(CODEX_BEFORE | {"tool_use_id": "call_2"}, "codex")
    card = await queue.card()
    await queue.answer(card, card.deny())
    said = (await heard(process)).decided
    assert said["permissionDecision"] == "deny"
    assert said["permissionDecisionReason"]  # without one it would not count


@requirement("HOOK-1")
async def test_codex_cannot_be_told_of_changed_arguments_where_it_asks_for_permission(gate: Gate, queue: Queue):
    """To say a plain yes would allow what the person changed away."""
    asked = {key: value for key, value in CODEX_BEFORE.items() if key != "tool_use_id"}
    process = await gate.start(asked | {"hook_event_name": "PermissionRequest"}, "codex")
    card = await queue.card()
    await queue.answer(card, card.edit(command="echo bye"))
    decision = (await heard(process)).decided["decision"]
    assert decision["behavior"] == "deny"
    assert "changed" in decision["message"]


@requirement("HOOK-1")
@pytest.mark.parametrize("answer", ["allow", "deny", "edit"])
async def test_gemini_is_answered_in_its_own_form(gate: Gate, queue: Queue, answer: str):
    """Its decision stands at the top, and changed arguments are laid over those of the model."""
    process = await gate.start(GEMINI_BEFORE, "gemini")
    card = await queue.card()
    action = {"allow": card.allow(), "deny": card.deny("no"), "edit": card.edit(command="echo bye")}[answer]
    await queue.answer(card, action)
    said = (await heard(process)).said
    assert said["decision"] == ("deny" if answer == "deny" else "allow")
    if answer == "edit":
        assert said["hookSpecificOutput"]["tool_input"] == {"command": "echo bye"}


@requirement("HOOK-1")
async def test_gemini_would_put_back_what_a_person_took_out_so_it_is_denied(gate: Gate, queue: Queue):
    """Its hooks can add and change arguments, and cannot take any away."""
    said = GEMINI_BEFORE | {"tool_input": {"command": "echo hi", "is_background": True}}
    process = await gate.start(said, "gemini")
    card = await queue.card()
    left = {name: value for name, value in card.arguments.items() if name != "is_background"}
    await queue.answer(card, type(card.allow())(True, False, None, left, card.digest))
    answer = (await heard(process)).said
    assert answer["decision"] == "deny"
    assert "is_background" in answer["reason"]


@requirement("HOOK-1")
async def test_a_tool_that_only_looks_is_left_to_the_agents_own_rules(gate: Gate, nobody: Queue):
    """Nobody wants to be asked a hundred times, and nothing is loosened: silence is no yes."""
    answer = await gate.ask(CLAUDE_BEFORE | {"tool_name": "Read", "tool_input": {"file_path": "/etc/hosts"}})
    assert (answer.code, answer.printed) == (0, "")
    assert await nobody.journal.waiting() == []


@requirement("HOOK-3")
async def test_without_anybody_who_could_answer_it_is_denied_with_the_words_to_start_one(gate: Gate, nobody: Queue):
    """A question that nobody sees would make the agent wait for an hour."""
    said = (await gate.ask(CLAUDE_BEFORE)).decided
    assert said["permissionDecision"] == "deny"
    assert "lastword up" in said["permissionDecisionReason"]
    assert await nobody.journal.waiting() == []


GARBAGE = {
    "nothing": b"",
    "no JSON": b"hello",
    "half a JSON": b'{"hook_event_name": "PreToolUse"',
    "bytes": b"\xff\xfe\x00",
    "a list": b"[]",
    "null": b"null",
    "a key twice": json.dumps(CLAUDE_BEFORE).encode()[:-1] + b', "tool_name": "Read"}',
    "nested too deeply": b"[" * 100_000,
}


@requirement("HOOK-3")
@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_on_standard_input_is_a_no(gate: Gate, queue: Queue, data: bytes):
    """Only 2 is a no to these agents; whatever else this program ended with would let the call through."""
    answer = await gate.ask(data)
    assert (answer.code, answer.printed) == (DENIED, "")
    assert "nothing was allowed" in answer.complaint


@requirement("HOOK-3")
async def test_more_than_anybody_reads_is_a_no(gate: Gate, queue: Queue):
    """A call of megabytes must not be let through because it could not be read."""
    said = CLAUDE_BEFORE | {"tool_input": {"command": "x" * 16_100_000}}
    answer = await gate.ask(said)
    assert answer.code == DENIED
    assert await queue.journal.waiting() == []


WRONG = {
    "no event": {"hook_event_name": None},
    "another event": {"hook_event_name": "Stop"},
    "no tool": {"tool_name": ""},
    "a tool that is no text": {"tool_name": ["Bash"]},
    "no input": {"tool_input": None},
    "an input that is no object": {"tool_input": "echo hi"},
    "no session": {"session_id": 7},
    "an endless session": {"session_id": "x" * 5000},
    "an id that is no text": {"tool_use_id": 5},
    "an empty id": {"tool_use_id": ""},
    "no folder at all": {"cwd": "/a\0b"},
    "a folder without end": {"cwd": "/" + "a" * 5000},
}


@requirement("HOOK-3")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
async def test_an_event_with_something_missing_is_a_no(gate: Gate, queue: Queue, wrong: dict):
    """What cannot be understood cannot be shown, and what cannot be shown is not allowed."""
    answer = await gate.ask(CLAUDE_BEFORE | wrong)
    assert (answer.code, answer.printed) == (DENIED, "")
    assert "itself failed" not in answer.complaint
    assert await queue.journal.waiting() == []


@requirement("HOOK-3")
@pytest.mark.parametrize(
    "options",
    [["--within", "soon"], ["--within", "0"], ["--within"], ["--within", "1e9"], ["--quietly"], ["--store", "ftp://x"]],
    ids=str,
)
async def test_a_command_line_that_is_not_understood_is_a_no(gate: Gate, queue: Queue, options: list[str]):
    """Somebody edited the settings by hand. That must not open the gate."""
    assert (await gate.ask(CLAUDE_BEFORE, "claude", *options)).code == DENIED


@requirement("HOOK-3")
async def test_a_memory_that_cannot_be_opened_is_a_no(gate: Gate, tmp_path: Path):
    """Our own crash is a no, whatever it is about."""
    address = f"sqlite:///{tmp_path / 'broken.db'}"
    (tmp_path / "broken.db").write_bytes(b"this is no database at all, and it never was one, and never will be" * 50)
    with attending(open_store(address)):
        answer = await gate.ask(CLAUDE_BEFORE, "claude", "--store", address)
    assert (answer.code, answer.printed) == (DENIED, "")


@requirement("HOOK-3")
async def test_a_program_that_cannot_even_load_itself_says_no(gate: Gate, tmp_path: Path):
    """An installation that an upgrade left half done raises while it is imported, and Python would end with 1."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise RuntimeError('half an installation')")
    gate.environment["PYTHONPATH"] = str(tmp_path / "broken")
    answer = await gate.ask(CLAUDE_BEFORE)
    assert answer.code == DENIED
    assert "half an installation" in answer.complaint


@requirement("HOOK-3")
async def test_nobody_answers_in_time_and_it_is_denied_before_the_agent_gives_up(gate: Gate, queue: Queue):
    """A hook that its agent has given up on stops nothing. And the card does not wait for ever."""
    answer = await gate.ask(CLAUDE_BEFORE, "claude", "--within", "0.2")
    assert answer.decided["permissionDecision"] == "deny"
    assert "nobody answered" in answer.decided["permissionDecisionReason"]
    assert await queue.journal.waiting() == []


@requirement("HOOK-3")
async def test_an_agent_that_never_closes_standard_input_is_denied(gate: Gate, queue: Queue, tmp_path: Path):
    """Reading without end would outlast the agent's patience."""
    command = [sys.executable, "-c", _IMPATIENT]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=gate.environment, cwd=tmp_path
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await process.wait() == DENIED
    assert process.stdin is not None
    process.stdin.close()
    assert process.stderr is not None
    assert b"nothing was allowed" in await process.stderr.read()


_IMPATIENT = """
from lastword.hook import gate
gate.LAST_RESORT_SECONDS = 0.1
gate.main(["claude", "--within", "0.1"])
"""


@requirement("HOOK-3")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
async def test_an_agent_that_breaks_off_gets_a_no_and_its_card_is_gone(
    gate: Gate, queue: Queue, number: signal.Signals
):
    """Somebody pressed Escape. Nobody should answer a question that nobody asks any more."""
    process = await gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    process.send_signal(number)
    said = (await heard(process)).decided
    assert said["permissionDecision"] == "deny"
    assert await queue.journal.waiting() == []
    assert (await queue.kinds(card.call_id))[-1] == "finished"


_LISTING = """
import os, sys
def end(code): print(code, *sys.modules, sep="\\n", file=sys.__stderr__, flush=True); sys.exit(code)
os._exit = end
sys.argv = ["lastword", "hook", *sys.argv[1:]]
from lastword.__main__ import main
main()
"""
HEAVY = {"click", "rich", "mcp", "mcp_types", "prompt_toolkit", "starlette", "uvicorn", "httpx", "tomllib"}
# A no to an agent because nobody is there needs the memory, and next to nothing else.
MAX_LOADED = 56


def loaded_by(home: Path, said: dict, *arguments: str) -> set[str]:
    """Which modules a hook loads to answer this."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LISTING, *arguments], input=json.dumps(said).encode(), capture_output=True,
        env=clean_environment(home), cwd=home, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    return set(done.stderr.decode().split("\n"))


def rooms_of(loaded: set[str]) -> set[str]:
    return {name.split(".")[1] for name in loaded if name.startswith("lastword.")}


@requirement("HOOK-6")
async def test_a_hook_that_asks_loads_neither_a_terminal_nor_the_sdk(queue: Queue, tmp_path: Path):
    """It starts for every call of every tool, and somebody waits each time."""
    loaded = await asyncio.to_thread(loaded_by, tmp_path, CLAUDE_BEFORE, "claude", "--within", "0.1")
    assert {"lastword.hook.gate", "lastword.session"} <= loaded
    assert loaded & HEAVY == set()
    assert rooms_of(loaded) & {"terminal", "web", "server", "commands", "talk", "script", "mcp"} == set()
    assert "lastword.config.loader" not in loaded


@requirement("HOOK-6")
@pytest.mark.parametrize(
    ("agent", "said"), [("claude", CLAUDE_BEFORE), ("codex", CODEX_BEFORE), ("gemini", GEMINI_BEFORE)]
)
def test_that_nobody_is_there_is_found_out_before_the_door_is_loaded(tmp_path: Path, agent: str, said: dict):
    """Every call of every tool is denied then, and an agent tries many."""
    loaded = loaded_by(tmp_path, said, agent)
    assert {"lastword.hook.gate", "lastword.journal"} <= loaded
    assert loaded & (HEAVY | {"lastword.session", "lastword.call.door", "lastword.rules.policy"}) == set()
    assert len([name for name in loaded if name.startswith("lastword")]) <= MAX_LOADED


@requirement("HOOK-6")
def test_what_only_looks_is_let_through_before_the_memory_is_loaded(tmp_path: Path):
    """An agent reads a hundred files a minute."""
    program = (
        "import sys\nfrom lastword.hook import gate\nimport io\n"
        "print(repr(gate.run(['claude'], io.BytesIO(sys.stdin.buffer.read()))), *sys.modules, sep='\\n')\n"
    )
    said = CLAUDE_BEFORE | {"tool_name": "Read", "tool_input": {"file_path": "/etc/hosts"}}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], input=json.dumps(said).encode(), capture_output=True,
        env=clean_environment(tmp_path), cwd=tmp_path, timeout=PATIENCE_SECONDS, check=True,
    )  # fmt: skip
    answer, *loaded = done.stdout.decode().split("\n")
    assert answer == "''"
    assert {"lastword.journal", "lastword.session", "asyncio", "apsw"} & set(loaded) == set()


@requirement("HOOK-3")
async def test_a_module_in_the_agents_folder_is_not_the_gate(gate: Gate, queue: Queue, tmp_path: Path):
    """Who may write files in a project must not get to answer in its person's place."""
    for name in ("json", "msgspec", "lastword"):
        (tmp_path / f"{name}.py").write_text("print('{}'); raise SystemExit(0)")
    process = await gate.start(CLAUDE_BEFORE)
    card = await queue.card()
    await queue.answer(card, card.deny())
    assert (await heard(process)).decided["permissionDecision"] == "deny"


@requirement("HOOK-3")
async def test_trouble_after_the_call_is_told_too(gate: Gate, tmp_path: Path):
    """What cannot be written down afterwards is not passed over in silence."""
    (tmp_path / "broken.db").write_bytes(b"this is no database at all" * 100)
    answer = await gate.ask(CLAUDE_AFTER, "claude", "--store", f"sqlite:///{tmp_path / 'broken.db'}")
    assert answer.code == DENIED


@requirement("HOOK-1")
async def test_a_rule_that_denies_is_heard_by_the_agent_and_nobody_is_asked(gate: Gate, queue: Queue):
    """Whatever a project's own file says of an agent's tool, unless it would allow: a hook has no key to that."""
    (gate.home / "lastword.policy.toml").write_text(
        '[[rule]]\nname = "no shell"\ntool = "claude:Bash"\ndecide = "deny"\n'
    )
    answer = await gate.ask(CLAUDE_BEFORE | {"cwd": str(gate.home)})
    assert answer.decided["permissionDecision"] == "deny"
    assert "no shell (lastword.policy.toml:1)" in answer.decided["permissionDecisionReason"]
