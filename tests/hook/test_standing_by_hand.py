"""The way that a person takes to say once that `git status` in a folder need not ask: their commands, and the gate."""

import re
from pathlib import Path

import pytest

from hook.gates import CLAUDE_BEFORE, Gate, Queue
from hook.test_installing import agreed, lastword
from lastword.errors import ConfigError
from lastword.hook import CLAUDE, AgentKeys
from requirements import requirement

RULES = """
[[rule]]
name = "status here"
tool = "claude:Bash"
decide = "allow"
[rule.where]
command = {{ is = "git status" }}
cwd = {{ is = "{project}" }}
[rule.tests]
match = [{{ command = "git status", cwd = "{project}" }}]
not_match = [{{ command = "git status -s", cwd = "{project}" }}]

[[rule]]
name = "no keys"
tool = "claude:Read"
decide = "deny"
[rule.where]
file_path = {{ under = "{project}/keys" }}
"""


@requirement("HOOK-7", "RULE-7", "RULE-9")
async def test_the_person_turns_the_key_writes_a_rule_accepts_it_and_the_agent_is_told(
    tmp_path: Path, gate: Gate, queue: Queue
):
    """Nothing that is here was reached by a way around the commands."""
    project = tmp_path / "project"
    project.mkdir()
    policy = tmp_path / ".data" / "lastword" / "policy.toml"
    policy.write_text(RULES.format(project=project))
    assert agreed(tmp_path, "hook", "install", "claude").returncode == 0
    said = CLAUDE_BEFORE | {"cwd": str(project), "tool_input": {"command": "git status", "description": "Look"}}
    explain = ("policy", "explain", "claude:Bash", "command=git status", f"cwd={project}")
    said_first = lastword(tmp_path, *explain).stdout
    assert "must be asked about each time; lastword hook install claude --standing exact lets rules" in said_first
    turned = agreed(tmp_path, "hook", "install", "claude", "--standing", "exact")
    assert "name exactly, folder included" in turned.stdout
    assert "not accepted as it is" in lastword(tmp_path, *explain).stdout

    shown = lastword(tmp_path, "policy", "accept")
    assert "status here (policy.toml:2) allows claude__Bash" in shown.stderr
    digest = re.search(r"--digest ([0-9a-f]{64})", shown.stderr)
    assert digest is not None, shown.stderr
    assert lastword(tmp_path, "policy", "accept", "--digest", digest[1]).returncode == 0
    assert lastword(tmp_path, *explain).stdout == "allow. status here (policy.toml:2)\n"
    assert (await gate.ask(said)).decided["permissionDecision"] == "allow"
    assert await queue.journal.waiting() == []

    read = said | {"tool_name": "Read", "tool_input": {"file_path": "keys/id_rsa"}, "tool_use_id": "2"}
    denied = (await gate.ask(read)).decided
    assert denied["permissionDecision"] == "deny"
    assert "no keys" in denied["permissionDecisionReason"]
    other = await gate.ask(read | {"tool_input": {"file_path": "notes.md"}, "tool_use_id": "3"})
    assert (other.code, other.printed) == (0, "")


@requirement("HOOK-7")
def test_the_key_goes_with_the_hook(tmp_path: Path):
    """Whoever takes the hook out, and puts it in again without a word, is asked about everything."""
    keys = AgentKeys(tmp_path / ".data" / "lastword" / "agent_keys.json")
    assert agreed(tmp_path, "hook", "install", "claude", "--standing", "bounds").returncode == 0
    assert keys.of(CLAUDE) == "bounds"
    assert agreed(tmp_path, "hook", "uninstall", "claude").returncode == 0
    assert keys.of(CLAUDE) is False
    keys.file.chmod(0o666)
    with pytest.raises(ConfigError, match="others could have written"):
        keys.of(CLAUDE)


@requirement("HOOK-7")
def test_no_key_is_turned_for_an_agent_that_does_not_say_the_folder(tmp_path: Path):
    """The reason is told where the person asks for it."""
    refused = lastword(tmp_path, "hook", "install", "codex", "--standing", "exact")
    assert refused.returncode == 2
    assert "in which folder a command runs" in refused.stderr
