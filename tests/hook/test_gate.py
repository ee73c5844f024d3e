"""The program that agents start: what it says to recorded events, and that nothing but a yes ever sounds like one."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from lastword.consent import ApprovalRequest, UserAction
from lastword.journal.programs import Programs
from lastword.store import StoreAddress
from requirements import requirement
from surfaces.screens import clean_environment

DENIED = 2

EVENTS: dict[str, dict[str, Any]] = {
    "claude": CLAUDE_BEFORE,
    "codex": CODEX_BEFORE,
    "codex asks for permission": {name: value for name, value in CODEX_BEFORE.items() if name != "tool_use_id"}
    | {"hook_event_name": "PermissionRequest"},
    "gemini": GEMINI_BEFORE,
    "gemini with more": GEMINI_BEFORE | {"tool_input": {"command": "echo hi", "is_background": True}},
}


def no(card: ApprovalRequest) -> UserAction:
    return card.deny("not on a Friday")


def change(card: ApprovalRequest) -> UserAction:
    return card.edit(command="echo bye")


def take_out(card: ApprovalRequest) -> UserAction:
    left = {name: value for name, value in card.arguments.items() if name != "is_background"}
    return UserAction(True, False, arguments=left, answers=card.digest)


def of_tool(**said: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse"} | said}


DENIAL = (
    "{} was not run: the person denied it.\n"
    "Their reason: not on a Friday\n"
    "That settles it, unless they ask for it again."
)
WORDS = "The person changed the arguments, and Codex does not take changed ones here. Nothing was allowed."
DECISION = {"behavior": "deny", "message": WORDS}
NOT_TAKEN = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": DECISION}}
GONE = "The person took is_background out, and Gemini CLI would put it back. Nothing was allowed."
PUT_BACK = {"decision": "deny", "reason": GONE}
BYE = {"command": "echo bye"}
FORMS: list[tuple[str, Callable[[ApprovalRequest], UserAction], Any]] = [
    ("claude", ApprovalRequest.allow, of_tool(permissionDecision="allow")),
    ("claude", no, of_tool(permissionDecision="deny", permissionDecisionReason=DENIAL.format("claude__Bash"))),
    ("claude", change, of_tool(permissionDecision="allow", updatedInput=BYE)),
    # It takes `allow` without other arguments for a mistake of the hook.
    ("codex", ApprovalRequest.allow, None),
    ("codex", no, of_tool(permissionDecision="deny", permissionDecisionReason=DENIAL.format("codex__Bash"))),
    ("codex", change, of_tool(permissionDecision="allow", updatedInput=BYE)),
    # To say a plain yes would allow what the person changed away.
    ("codex asks for permission", change, NOT_TAKEN),
    # Its decision stands at the top, and changed arguments are laid over those of the model.
    ("gemini", ApprovalRequest.allow, {"decision": "allow"}),
    ("gemini", no, {"decision": "deny", "reason": DENIAL.format("gemini__run_shell_command")}),
    ("gemini", change, {"decision": "allow", "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": BYE}}),
    # Its hooks can add and change arguments, and cannot take any away.
    ("gemini with more", take_out, PUT_BACK),
]


@requirement("HOOK-1")
@pytest.mark.parametrize(("event", "choose", "said"), FORMS)
async def test_the_answer_of_the_person_is_told_in_the_form_of_the_agent(
    gate: Gate, queue: Queue, event: str, choose: Callable[[ApprovalRequest], UserAction], said: Any
):
    """A yes, a no with its reason for the model, changed arguments; and a no where it cannot be told of those."""
    _, answer = await queue.decide(gate.start(EVENTS[event], event.split()[0]), choose)
    assert (answer.code, json.loads(answer.printed or "null")) == (0, said)


@requirement("HOOK-1")
async def test_the_card_waits_in_the_same_queue_as_everybodys_and_says_whose_call_it_is(gate: Gate, queue: Queue):
    """The person sees a command, its folder and the agent."""
    card, _ = await queue.decide(gate.start(CLAUDE_BEFORE))
    assert (card.title, card.arguments) == ("Run a command", {"command": "echo hi", "cwd": "/home/you/proj"})
    assert "Claude Code" in card.origin


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
    "more than anybody reads": json.dumps(CLAUDE_BEFORE | {"tool_input": {"command": "x" * 16_100_000}}).encode(),
}
WRONG: dict[str, dict[str, Any]] = {
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


OPTIONS = [
    ["--within", "soon"],
    ["--within", "0"],
    ["--within"],
    ["--within", "1e9"],
    ["--quietly"],
    ["--store", "ftp://x"],
]


@requirement("HOOK-3")
async def test_what_is_not_understood_is_a_no(gate: Gate, queue: Queue):
    """Garbage, an event with something missing, a line that somebody edited by hand: what cannot be shown is not
    allowed. Only 2 is a no to these agents; whatever else this program ended with would let the call through."""
    events: dict[str, Any] = GARBAGE | {name: CLAUDE_BEFORE | wrong for name, wrong in WRONG.items()}
    for what, said in events.items():
        answer = await gate.ask(said)
        assert (answer.code, answer.printed) == (DENIED, ""), what
        assert "nothing was allowed" in answer.complaint, what
        assert "itself failed" not in answer.complaint, what
    for options in OPTIONS:
        assert (await gate.ask(CLAUDE_BEFORE, "claude", *options)).code == DENIED, options
    assert await queue.journal.waiting() == []


@requirement("HOOK-3")
async def test_a_memory_that_cannot_be_opened_is_a_no(gate: Gate, tmp_path: Path):
    """Our own crash is a no, whatever it is about; and what cannot be written down afterwards is not passed over."""
    address = f"sqlite:///{tmp_path / 'broken.db'}"
    (tmp_path / "broken.db").write_bytes(b"this is no database at all, and it never was one, and never will be" * 50)
    with Programs(StoreAddress(address).open()).attending():
        for said in (CLAUDE_BEFORE, CLAUDE_AFTER):
            answer = await gate.ask(said, "claude", "--store", address)
            assert (answer.code, answer.printed) == (DENIED, "")


@requirement("HOOK-3")
async def test_the_program_is_ours_or_says_no(gate: Gate, nobody: Queue, tmp_path: Path):
    """A module in the agent's folder is not the gate: who may write files in a project must not get to answer. And an
    installation that an upgrade left half done raises while it is imported, where Python would end with 1."""
    for name in ("json", "msgspec", "lastword"):
        (tmp_path / f"{name}.py").write_text("print('{}'); raise SystemExit(0)")
    assert "lastword up" in (await gate.ask_cold(CLAUDE_BEFORE)).decided["permissionDecisionReason"]
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise RuntimeError('half an installation')")
    gate.environment["PYTHONPATH"] = str(tmp_path / "broken")
    answer = await gate.ask_cold(CLAUDE_BEFORE)
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
async def test_an_agent_that_breaks_off_gets_a_no_and_its_card_is_gone(gate: Gate, queue: Queue):
    """Somebody pressed Escape. Nobody should answer a question that nobody asks any more."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        hook = gate.start(CLAUDE_BEFORE | {"tool_use_id": number.name})
        card = await queue.card()
        hook.send_signal(number)
        assert (await heard(hook)).decided["permissionDecision"] == "deny"
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
MAX_LOADED = 48


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


@requirement("HOOK-1")
async def test_a_rule_that_denies_is_heard_by_the_agent_and_nobody_is_asked(gate: Gate, queue: Queue):
    """Whatever a project's own file says of an agent's tool, unless it would allow: a hook has no key to that."""
    (gate.home / "lastword.policy.toml").write_text(
        '[[rule]]\nname = "no shell"\ntool = "claude:Bash"\ndecide = "deny"\n'
    )
    answer = await gate.ask(CLAUDE_BEFORE | {"cwd": str(gate.home)})
    assert answer.decided["permissionDecision"] == "deny"
    assert "no shell (lastword.policy.toml:1)" in answer.decided["permissionDecisionReason"]
