"""docs/agents.md, as its readers use it: what it says of commands, files and states is what there is."""

import json
import re
from pathlib import Path

from hook.test_installing import FILES, agreed, lastword
from lastword.hook import AGENTS
from lastword.hook.installation import command_for, entries_for
from lastword.mcp.permission_tool import TOOL
from requirements import requirement

PAGE = (Path(__file__).parent.parent.parent / "docs" / "agents.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@requirement("HOOK-4")
def test_every_command_of_the_page_does_what_it_says(tmp_path: Path):
    """A reader who copies them has Claude Code behind the cards, and out again."""
    for kind, text in FENCE.findall(PAGE):
        for line in text.splitlines() if kind == "sh" else ():
            words = line.split()
            if words[:2] == ["lastword", "hook"]:
                done = agreed(tmp_path, *words[1:])
                assert done.returncode == 0, done.stderr
                assert (tmp_path / FILES["claude"]).exists() == (words[2] == "install")
            elif words == ["lastword", "doctor"]:
                assert "ok   hook of Claude Code" in lastword(tmp_path, "doctor").stdout
            elif words == ["lastword", "up"]:
                assert lastword(tmp_path, "up", "--help").returncode == 0
            else:
                assert words[0] == "claude"
                assert words[-1] == f"mcp__lastword__{TOOL}"
    [servers] = [json.loads(text) for kind, text in FENCE.findall(PAGE) if kind == "json"]
    entry = servers["mcpServers"]["lastword"]
    assert lastword(tmp_path, *entry["args"], "--help").returncode == 0


@requirement("HOOK-3")
def test_the_page_says_who_goes_on_without_a_hook_and_what_to_do():
    """Nobody should learn it from an accident. What the agents do is proven by the long tests."""
    assert "**Codex and Gemini CLI go on without asking**" in PAGE
    assert all(command_for(agent).endswith(" || exit 2") for agent in AGENTS.values())
    assert entries_for(AGENTS["claude"], "x")["PreToolUse"]["hooks"][0]["onFailure"] == "block"
    for advice in ("lastword doctor", "deny rules", "the gateway"):
        assert advice in PAGE[PAGE.index("A hook that cannot start") :]


def test_the_tools_and_files_that_the_page_names_are_those_of_the_agents():
    """A list that nobody compares is soon another one."""
    for file in (*FILES.values(), ".claude/settings.local.json"):
        assert file in PAGE
    looks = AGENTS["claude"].looks | AGENTS["gemini"].looks
    assert {"Read", "Glob", "Grep", "read_file", "list_directory"} <= looks
    for agent in ("claude", "gemini"):
        for tool in AGENTS[agent].edits | AGENTS[agent].writes | AGENTS[agent].edit_lists:
            assert f"`{tool}`" in PAGE
