"""Our hook in the settings of an agent: shown first, kept, tried by the doctor, and taken out byte for byte."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hook.gates import PATIENCE_SECONDS
from requirements import requirement
from surfaces.screens import clean_environment
from warm import run_warm

FILES = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
PROJECT_FILES = FILES | {"claude": ".claude/settings.local.json"}

MINE = b'{\n    "model": "opus",\n\n\t"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}\n}'
CONTENTS = {"none": None, "empty": b"", "bare": b"{}", "other": b'{"a": 1}\n', "mine": MINE}
# Each content with one agent, and what people really have with all; the other pairs are in the long tests.
PAIRS = {("claude", "none"), ("codex", "empty"), ("gemini", "bare"), ("claude", "other"), *((a, "mine") for a in FILES)}
AGENTS_AND_CONTENTS = [
    pytest.param(agent, content, id=f"{name}-{agent}", marks=[] if (agent, name) in PAIRS else [pytest.mark.long])
    for name, content in CONTENTS.items()
    for agent in FILES
]


def lastword(home: Path, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_warm(words, cwd or home, clean_environment(home, **environment))


def agreed(home: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same with the digest of what was shown."""
    shown = lastword(home, *words, cwd=cwd)
    digest = re.search(r"--apply ([0-9a-f]{64})", shown.stderr)
    assert digest is not None, shown.stderr
    return lastword(home, *words, "--apply", digest[1], cwd=cwd)


def settings(home: Path, agent: str, content: bytes | None) -> Path:
    file = home / FILES[agent]
    if content is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return file


@requirement("HOOK-4")
@pytest.mark.parametrize(("agent", "content"), AGENTS_AND_CONTENTS)
def test_what_was_installed_is_taken_out_byte_for_byte(tmp_path: Path, agent: str, content: bytes | None):
    """Whatever the file looked like, and whether there was one at all."""
    file = settings(tmp_path, agent, content)
    done = agreed(tmp_path, "hook", "install", agent)
    assert done.returncode == 0, done.stderr
    hooks = json.loads(file.read_bytes())["hooks"]
    [entry] = [group["hooks"][0] for group in hooks[_before(agent)] if "lastword" in group["hooks"][0]["command"]]
    within = float(entry["command"].partition("--within ")[2].split()[0])
    assert within < entry["timeout"] / (1000 if agent == "gemini" else 1)
    if content:
        assert file.with_name(f"{file.name}.before-lastword").read_bytes() == content
    assert agreed(tmp_path, "hook", "uninstall", agent).returncode == 0
    assert (file.read_bytes() if file.exists() else None) == content


def _before(agent: str) -> str:
    return "BeforeTool" if agent == "gemini" else "PreToolUse"


@requirement("HOOK-4")
def test_nothing_is_written_before_somebody_agreed(tmp_path: Path):
    """The change is shown, and that is all."""
    file = settings(tmp_path, "claude", MINE)
    shown = lastword(tmp_path, "hook", "install", "claude")
    assert shown.returncode == 3
    assert "+" in shown.stderr
    assert "lastword hook claude" in shown.stderr
    assert file.read_bytes() == MINE
    other = lastword(tmp_path, "hook", "install", "claude", "--apply", "0" * 64)
    assert other.returncode == 2
    assert file.read_bytes() == MINE


@requirement("HOOK-4")
def test_what_was_edited_since_stays(tmp_path: Path):
    """Agents write into their own settings. What is ours is taken out, and what came is kept."""
    file = settings(tmp_path, "claude", MINE)
    agreed(tmp_path, "hook", "install", "claude")
    edited = json.loads(file.read_bytes()) | {"theme": "dark"}
    file.write_text(json.dumps(edited))
    done = agreed(tmp_path, "hook", "uninstall", "claude")
    assert done.returncode == 0
    left = json.loads(file.read_bytes())
    assert left["theme"] == "dark"
    assert left["hooks"] == json.loads(MINE)["hooks"]


@requirement("HOOK-4")
def test_a_link_to_settings_that_lie_elsewhere_stays_one(tmp_path: Path):
    """People keep such files in a repository of their own."""
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_bytes(MINE)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").symlink_to(real)
    agreed(tmp_path, "hook", "install", "claude")
    assert (tmp_path / ".claude" / "settings.json").is_symlink()
    assert b"lastword" in real.read_bytes()
    agreed(tmp_path, "hook", "uninstall", "claude")
    assert real.read_bytes() == MINE


REFUSED = {
    "not JSON": b"hello",
    "no object": b"[]",
    "comments, with which Claude Code reads none of it": b'{\n  // mine\n  "model": "opus"\n}',
    "a last comma": b'{"model": "opus",}',
    "hooks that are no object": b'{"hooks": []}',
    "an event that is no list": b'{"hooks": {"PreToolUse": {}}}',
    "not UTF-8": b'{"a": "\xff"}',
}


@requirement("HOOK-4")
@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED.keys())
def test_settings_that_the_agent_would_not_read_are_refused(tmp_path: Path, content: bytes):
    """A hook in a file that the agent passes over stops nothing, and looks as if it did."""
    file = settings(tmp_path, "claude", content)
    done = lastword(tmp_path, "hook", "install", "claude")
    assert done.returncode == 2
    assert "settings.json" in done.stderr
    assert file.read_bytes() == content


@requirement("HOOK-4")
def test_gemini_reads_comments_and_keeps_them(tmp_path: Path):
    """Its settings may hold some."""
    content = b'{\n  // mine\n  "general": {}\n}\n'
    file = settings(tmp_path, "gemini", content)
    assert agreed(tmp_path, "hook", "install", "gemini").returncode == 0
    assert b"// mine" in file.read_bytes()
    agreed(tmp_path, "hook", "uninstall", "gemini")
    assert file.read_bytes() == content


@requirement("HOOK-4")
@pytest.mark.parametrize("agent", FILES)
def test_a_project_gets_settings_of_its_own(tmp_path: Path, agent: str):
    """In the file that is for this person, and this machine, where the agent has one."""
    project = tmp_path / "proj"
    project.mkdir()
    assert agreed(tmp_path, "hook", "install", agent, "--project", cwd=project).returncode == 0
    assert (project / PROJECT_FILES[agent]).exists()
    assert not (tmp_path / FILES[agent]).exists()
    assert agreed(tmp_path, "hook", "uninstall", agent, "--project", cwd=project).returncode == 0
    assert not (project / PROJECT_FILES[agent]).exists()


@requirement("HOOK-4")
def test_it_is_not_installed_twice_nor_taken_out_where_it_is_not(tmp_path: Path):
    """Two of them would ask twice."""
    agreed(tmp_path, "hook", "install", "codex")
    again = lastword(tmp_path, "hook", "install", "codex")
    assert (again.returncode, "already" in again.stderr) == (2, True)
    other = lastword(tmp_path, "hook", "uninstall", "gemini")
    assert (other.returncode, "did not put a hook" in other.stderr) == (2, True)


def examined(home: Path) -> dict[str, Any]:
    done = lastword(home, "doctor", "--json", "--store", f"sqlite:///{home / 'm.db'}")
    return {found["what"]: found for found in json.loads(done.stdout)}


@requirement("HOOK-6")
@pytest.mark.parametrize("agent", FILES)
def test_the_doctor_proves_a_gate_by_a_call_that_must_be_denied(tmp_path: Path, agent: str):
    """By running the very line that stands in the settings."""
    name = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}[agent]
    agreed(tmp_path, "hook", "install", agent)
    found = examined(tmp_path)[f"hook of {name}"]
    assert (found["well"], "was denied" in found["found"]) == (True, True)
    assert found["found"].endswith("; every call of its tools asks you")


@requirement("HOOK-6", "HOOK-7")
def test_the_doctor_says_whether_rules_and_grants_may_answer_for_an_agent(tmp_path: Path):
    """Nobody remembers for months which way a key was turned. A list that others could write is said to be one."""
    agreed(tmp_path, "hook", "install", "claude", "--standing", "exact")
    found = examined(tmp_path)["hook of Claude Code"]
    assert found["well"] is True
    assert found["found"].endswith(
        "; your rules and grants may answer for calls that they name exactly, folder included"
    )
    (tmp_path / ".data" / "lastword" / "agent_keys.json").chmod(0o666)
    found = examined(tmp_path)["hook of Claude Code"]
    assert found["well"] is False
    assert "others could have written this list of keys" in found["found"]


def _broken(file: Path, kept: Path, how: str) -> None:
    text = file.read_text()
    if how == "taken out":
        file.write_text("{}")
    elif how == "gone":
        file.unlink()
    elif how == "turned off":
        file.write_text(json.dumps(json.loads(text) | {"disableAllHooks": True}))
    elif how == "unreadable":
        file.write_text("// " + text)
    else:
        other = {
            "opens": "echo {}",
            "cannot start": "/nowhere/lastword",
            "exits 1": "exit 1",
            "exits 2": "echo why >&2; exit 2",
        }
        for each in (file, kept):
            facts = each.read_text()
            line = re.search(r'"command": "([^"]*lastword hook[^"]*)"', text)
            assert line is not None
            each.write_text(facts.replace(line[1], other[how]))


@requirement("HOOK-6")
def test_the_doctor_finds_a_gate_that_does_not_close(tmp_path: Path):
    """Each of these lets every call through, but for the last, which lets none."""
    agreed(tmp_path, "hook", "install", "claude")
    file, kept = tmp_path / FILES["claude"], next((tmp_path / ".data" / "lastword" / "hooks").glob("*.json"))
    whole = {each: each.read_text() for each in (file, kept)}
    for how in ("taken out", "gone", "turned off", "unreadable", "opens", "cannot start", "exits 1", "exits 2"):
        _broken(file, kept, how)
        assert examined(tmp_path)["hook of Claude Code"]["well"] is False, how
        for each, text in whole.items():
            each.write_text(text)
    assert examined(tmp_path)["hook of Claude Code"]["well"] is True


# An agent of a few lines: it starts its hook, and then commands, all as its children.
AGENT = """
import json, subprocess, sys
event, hook, *commands = sys.argv[1:]
subprocess.run(["sh", "-c", hook], input=event.encode(), capture_output=True)
for command in commands:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    print(done.returncode, json.dumps(done.stdout + done.stderr))
"""
BUTTONS = ("answer x --allow", "hook uninstall claude", "hook install codex", "token create mine", "mcp trust x")


@requirement("CONF-2")
def test_the_shell_of_a_hooked_agent_does_not_press_our_buttons(tmp_path: Path):
    """What is a person's to decide is refused below the process that the hook was started by. Which process is an
    agent stands in the person's folder: naming another one before a command leads nowhere."""
    line = f"{sys.executable} -P -m lastword"
    event = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
                        "tool_input": {"command": "x"}, "tool_use_id": "t"})  # fmt: skip
    store = f"--store sqlite:///{tmp_path / '.data' / 'lastword' / 'lastword.db'}"
    homes = ("XDG_DATA_HOME=/nowhere", "HOME=/nowhere XDG_DATA_HOME=", "env -i")
    commands = [f"{line} {button}" for button in BUTTONS]
    commands += [f"{home} {line} answer x --allow {store}" for home in homes]
    done = subprocess.run(
        [sys.executable, "-c", AGENT, event, f"{line} hook claude", *commands], cwd=tmp_path,
        env=clean_environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True,
    )  # fmt: skip
    for command, told in zip(commands, done.stdout.splitlines(), strict=True):
        assert "for a person to decide" in told, command
    for button in BUTTONS:  # Beside the agent, and not below it.
        assert "for a person to decide" not in lastword(tmp_path, *button.split()).stderr
