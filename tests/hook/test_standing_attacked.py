"""Attacks on the standing yes for agents: by folder and file, by the name of a tool or a call, and by a project."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hook.agent_house import AgentHouse
from hook.gates import CLAUDE_AFTER, CLAUDE_BEFORE, GEMINI_BEFORE, PATIENCE_SECONDS, Gate, Queue
from hook.gates import heard as finished
from hook.test_installing import FILES, agreed, lastword
from hook.test_standing import NO_KEY, status_rule
from lastword import values
from lastword.cli import run
from lastword.consent import Answerer, People
from lastword.errors import ConfigError
from lastword.hook import AGENTS, CLAUDE, Allowed, HookInput, ask, is_denial, probe_for
from lastword.hook.decision import CARRIED_OUT, close
from lastword.hook.event import Refused, answer, read_input
from lastword.hook.gate import is_ruled
from lastword.hook.installation import command_for
from lastword.journal import timeline
from lastword.web import CallItemBuilder
from requirements import requirement
from surfaces.screens import clean_environment


async def heard(house: AgentHouse, said: HookInput) -> Allowed | Refused:
    """What the agent is told where nobody has to be asked."""
    with house.journal.programs.attending():
        return await ask(house.journal, said, 5)


async def told(house: AgentHouse, agent: str = "claude") -> tuple[dict[str, Any], str, str, str]:
    """Of a call that nobody was asked about: what the agent reads, the timeline's line, the page's words, the end."""
    said = house.said(agent=agent)
    verdict = await heard(house, said)
    assert isinstance(verdict, Allowed)
    [handed] = await house.journal.store.read(kind="handed_over", last=1)
    story = CallItemBuilder.begin(handed.subject)
    records = await house.journal.store.read(subject=handed.subject)
    for record in records:
        story.add(record)
    assert story.item.reply is not None
    assert story.item.reply.how == "standing"
    [line] = [line for line in timeline(records) if "handed over" in line]
    assert story.item.end is not None
    return json.loads(answer(said, verdict)), line, story.item.reply.by, story.item.end.message


@requirement("GRANT-3", "GRANT-7", "RULE-7", "HOOK-7")
async def test_agent_timeline_and_page_are_told_each_time_by_whose_word_nobody_was_asked(house: AgentHouse):
    """A yes that nobody gave, and of which nobody hears, is one that nobody can take back."""
    house.turn(claude="exact", gemini="exact")
    house.rules(status_rule(house.project))
    said, line, words, end = await told(house)
    assert words == "the rule status here (policy.toml:2) allows it"
    reason = {"permissionDecision": "allow", "permissionDecisionReason": f"Not asked: {words}."}
    assert said["hookSpecificOutput"] == {"hookEventName": "PreToolUse"} | reason
    assert line.endswith(f"(Not asked: {words}.)")
    assert end.endswith(f"Not asked: {words}.")
    await house.grant(house.said(agent="gemini"), calls=3)
    said, line, words, end = await told(house, "gemini")
    assert words.startswith("your grant of ")
    assert words.endswith(", 1 of 3 calls")
    assert said == {"decision": "allow", "systemMessage": f"Not asked: {words}."}
    assert line.endswith(f"(Not asked: {words}.)")


@requirement("RULE-7", "HOOK-7")
async def test_the_card_of_an_agents_call_names_the_nearest_rule_and_what_misses(house: AgentHouse):
    """In one line, from what another program finds in the journal."""
    house.turn(claude="exact")
    house.rules(status_rule(house.project))
    nearest = "Asked. Nearest rule: status here (policy.toml:2): "
    assert await house.hear(house.said("git status -s")) == f"{nearest}command “git status -s” is not “git status”."
    assert (await house.hear(house.said(cwd="/"))).startswith(f"{nearest}cwd “/” is not “")
    assert await house.hear(house.said(also={"timeout": 5})) == f"{nearest}it says nothing of timeout."


@requirement("HOOK-7")
async def test_a_folder_that_is_gone_is_no_folder_to_run_in(house: AgentHouse):
    """Claude Code refuses by now to run anything in a folder that was deleted. Others go on in another one."""
    house.turn(claude="bounds")
    sub = house.project / "sub"
    sub.mkdir()
    await house.grant(house.said(cwd=str(sub)), calls=10)
    assert await house.hear(house.said(cwd=str(sub))) == "ran"
    sub.rmdir()
    assert await house.hear(house.said(cwd=str(sub))) == "asked"
    sub.write_text("no folder")
    assert await house.offer(house.said(cwd=str(sub))) == NO_KEY


@requirement("HOOK-7", "RULE-9")
async def test_a_file_behind_a_link_takes_no_standing_yes(house: AgentHouse, tmp_path: Path):
    """The name of a link was granted, and what it leads to is somebody else's choice."""
    house.turn(claude="exact")
    note, target = house.project / "note.md", tmp_path / "target"
    write = {"file_path": str(note), "content": "x"}
    await house.grant(house.said(tool_name="Write", tool_input=write), calls=10)
    assert await house.hear(house.said(tool_name="Write", tool_input=write)) == "ran"
    note.symlink_to(target)
    assert await house.hear(house.said(tool_name="Write", tool_input=write)) == "asked"
    assert await house.offer(house.said(tool_name="Write", tool_input=write)) == NO_KEY
    cell = {"notebook_path": str(note), "new_source": "x"}
    assert await house.offer(house.said(tool_name="NotebookEdit", tool_input=cell)) == NO_KEY


@requirement("HOOK-7", "RULE-9")
async def test_a_change_that_cannot_be_shown_takes_no_standing_yes(house: AgentHouse):
    """Without a diff nobody knows which file it is: a policy that is binary by now is one all the same."""
    house.turn(claude="exact")
    file = house.project / "notes.md"
    write = {"file_path": str(file), "content": "x"}
    await house.grant(house.said(tool_name="Write", tool_input=write), calls=10)
    file.write_bytes(b"\0\xff")
    assert await house.offer(house.said(tool_name="Write", tool_input=write)) == NO_KEY


@requirement("HOOK-2")
async def test_a_file_in_a_home_that_nobody_knows_is_refused_and_not_guessed(house: AgentHouse):
    """A card would show a folder called ~, and the agent might write into the home."""
    write = {"file_path": "~/.bashrc", "content": "x"}
    assert "Give the whole path" in await house.hear(house.said(tool_name="Write", tool_input=write))


@requirement("HOOK-2")
@pytest.mark.parametrize(("agent", "tool"), [("claude", "Write"), ("gemini", "write_file"), ("claude", "NotebookEdit")])
@pytest.mark.parametrize("way", ["/dev/fd/../../{}/.bashrc", " {}/.bashrc", "{}/.bashrc\u00a0", "link/../.bashrc"])
async def test_a_file_that_agents_and_cards_would_find_in_different_places_is_refused(
    house: AgentHouse, tmp_path: Path, agent: str, tool: str, way: str
):
    """An agent that takes `..` away before it follows links, or trims, writes another file than the card would show."""
    (house.project / "link").symlink_to(tmp_path)
    name = "notebook_path" if tool == "NotebookEdit" else "file_path"
    given = {name: way.format(tmp_path), "content": "evil", "new_source": "evil"}
    verdict = await heard(house, house.said(agent=agent, tool_name=tool, tool_input=given))
    assert isinstance(verdict, Refused)
    assert "depends on who reads it" in verdict.why


@requirement("RULE-3")
@pytest.mark.parametrize("way", ["{}/key", "/dev/fd/../../{}/key", " {}/key", "\ufeff{}/key", "../vault/../vault/key"])
def test_a_deny_over_what_only_looks_holds_however_the_path_is_read(house: AgentHouse, tmp_path: Path, way: str):
    """Nobody is asked about what only looks: a deny is all that there is."""
    vault = tmp_path / "vault"
    vault.mkdir()
    where = f'[rule.where]\npath = {{ under = "{vault}" }}'
    house.rules(f'[[rule]]\nname = "vault"\ntool = "claude:Grep"\ndecide = "deny"\n{where}\n')
    assert is_ruled(house.said(tool_name="Grep", tool_input={"path": way.format(vault), "pattern": "."}))


@requirement("HOOK-7")
async def test_a_server_that_names_its_tool_like_one_of_the_agents_has_no_yes(house: AgentHouse):
    """Gemini CLI says whose it is. Under the same name it looks like the agent's own to every list of names."""
    house.turn(gemini="bounds")
    await house.grant(house.said(agent="gemini"), calls=10)
    assert await house.hear(house.said(agent="gemini")) == "ran"
    foreign = {"mcp_context": {"server_name": "evil"}}
    assert await house.hear(house.said(agent="gemini", **foreign)) == "asked"
    assert await house.offer(house.said(agent="gemini", **foreign)) == NO_KEY


@requirement("HOOK-7")
@pytest.mark.parametrize("also", [{"cursor_version": "3"}, {"workspace_roots": []}, {"permission_mode": None}], ids=str)
async def test_another_program_that_starts_the_hooks_of_claude_code_has_no_yes(house: AgentHouse, also: dict[str, Any]):
    """Cursor and VS Code read its settings. The folder that they name is the window's, not that of the command."""
    house.turn(claude="exact")
    await house.grant(house.said(), calls=10)
    event = CLAUDE_BEFORE | {"cwd": str(house.project), "tool_input": {"command": "git status"}, "tool_use_id": "x"}
    assert isinstance(await heard(house, read_input(CLAUDE, values.written(event))), Allowed)
    event = {name: value for name, value in (event | also | {"tool_use_id": "y"}).items() if value is not None}
    assert await house.hear(read_input(CLAUDE, values.written(event))) == "asked"


@requirement("HOOK-1")
async def test_a_server_that_names_its_tool_like_one_that_only_looks_is_asked_about(gate: Gate, nobody: Queue):
    """`read_file` of a server may do anything."""
    read = GEMINI_BEFORE | {"tool_name": "read_file", "tool_input": {"file_path": "x"}}
    assert (await gate.ask(read, "gemini")).printed == ""
    assert (await gate.ask(read | {"mcp_context": {"server_name": "evil"}}, "gemini")).said["decision"] == "deny"
    assert (await gate.ask(read | {"tool_input": {"cwd": "/"}}, "gemini")).said["decision"] == "deny"


@requirement("HOOK-2", "HOOK-7")
async def test_a_call_that_was_carried_out_is_not_allowed_again_under_its_name(house: AgentHouse):
    """Models behind proxies count their calls from one in every turn. A yes is for one call."""
    house.turn(claude="exact")
    await house.grant(house.said(), calls=10)
    said = house.said(tool_use_id="call_1")
    assert isinstance(await heard(house, said), Allowed)
    assert isinstance(await heard(house, said), Allowed), "the same hook, started again before anything was carried out"
    after = CLAUDE_AFTER | {"cwd": said.cwd, "tool_input": said.arguments, "tool_use_id": "call_1"}
    await close(house.journal, read_input(CLAUDE, values.written(after)))
    assert await heard(house, said) == Refused(CARRIED_OUT)
    assert len(await house.journal.store.read(kind="grant_used")) == 1


DENY = """
[[rule]]
name = "not here"
tool = "{tool}"
decide = "deny"
[rule.where]
{where}
"""


@requirement("RULE-1", "HOOK-7")
async def test_a_command_that_names_its_folder_is_under_the_rules_of_that_folder(house: AgentHouse, tmp_path: Path):
    """Gemini CLI is started beside a project, and tells its shell to run in it."""
    text = DENY.format(tool="gemini:run_shell_command", where='command = { is = "git push" }')
    (house.project / "lastword.policy.toml").write_text(text)
    (house.project / "sub").mkdir()
    for folder in ("project", "project/sub", str(house.project)):
        said = house.said("git push", agent="gemini", cwd=str(tmp_path), also={"dir_path": folder})
        assert "not here" in await house.hear(said), folder
    assert await house.hear(house.said("git push", agent="gemini", cwd=str(tmp_path))) == "asked"


@requirement("RULE-7", "HOOK-7")
def test_who_asks_what_decides_about_an_agents_call_hears_of_the_rules_above_its_folder(
    house: AgentHouse, capsys: pytest.CaptureFixture[str]
):
    """As the hook would: the agent is in a folder of the project, and the person somewhere else."""
    (house.project / "lastword.policy.toml").write_text(DENY.format(tool="claude:*", where='command = { is = "ls" }'))
    sub = house.project / "a" / "b"
    sub.mkdir(parents=True)
    assert run(["policy", "explain", "claude:Bash", "command=ls", f"cwd={sub}"]) == 0
    assert capsys.readouterr().out == "deny. not here (lastword.policy.toml:2)\n"


@requirement("RULE-3", "HOOK-7")
def test_a_no_to_a_folder_holds_for_an_agent_that_does_not_say_where_it_runs(house: AgentHouse, tmp_path: Path):
    """Codex names the folder of its session. A path from there may be one from anywhere."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    text = DENY.format(tool="codex:read_file", where=f'path = {{ under = "{secrets}" }}')
    (house.project / "lastword.policy.toml").write_text(text)
    assert is_ruled(house.said(agent="codex", tool_name="read_file", tool_input={"path": "key"}))
    assert not is_ruled(house.said(agent="codex", tool_name="read_file", tool_input={"path": "/etc/hosts"}))


@requirement("HOOK-3", "HOOK-7")
@pytest.mark.parametrize("agent", FILES)
def test_the_installed_line_takes_nothing_from_variables_that_a_project_sets(tmp_path: Path, agent: str):
    """Agents read `.env` and settings of the folder they are in. Those say neither which code it is, nor who is asked,
    nor whose keys count. Nor do modules that lie there."""
    assert agreed(tmp_path, "hook", "install", agent).returncode == 0
    hooks = json.loads((tmp_path / FILES[agent]).read_bytes())["hooks"]
    line = hooks["BeforeTool" if agent == "gemini" else "PreToolUse"][0]["hooks"][0]["command"]
    project = tmp_path / "proj"
    project.mkdir()
    for name in ("lastword", "msgspec", "usercustomize", "sitecustomize", "json", "signal"):
        (project / f"{name}.py").write_text("print('{}'); import os; os._exit(0)")
    here = "/proc/self/cwd"
    env = clean_environment(
        tmp_path, HOME=here, XDG_DATA_HOME=f"{here}/evil", LASTWORD_STORE="sqlite:///evil.db", PYTHONPATH="."
    )
    done = subprocess.run(
        ["sh", "-c", line], input=probe_for(AGENTS[agent]), cwd=project, env=env, capture_output=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert is_denial(AGENTS[agent], done.returncode, done.stdout), done.stderr
    assert b"probe" in done.stdout
    assert sorted(path.name for path in project.iterdir() if path.suffix != ".py") == []
    assert (tmp_path / ".data" / "lastword" / "lastword.db").exists()
    # What a rule calls ~ is there, and on some systems all the rest as well.
    assert line.startswith(f"HOME={tmp_path} ")


@requirement("HOOK-4")
def test_no_password_is_written_into_the_settings_of_an_agent(monkeypatch: pytest.MonkeyPatch):
    """The memory is named in the line. Whoever keeps its password in a variable is told where to put it."""
    monkeypatch.setenv("LASTWORD_STORE", "postgresql://me:hush@db/lastword")
    with pytest.raises(ConfigError, match="holds a password") as refused:
        command_for(CLAUDE)
    assert "hush" not in str(refused.value)
    monkeypatch.setenv("LASTWORD_STORE", "postgresql://me@db/lastword")
    assert "--store postgresql://me@db/lastword ||" in command_for(CLAUDE)
    assert "--store sqlite:////m.db ||" in command_for(CLAUDE, "sqlite:////m.db")


@requirement("TEAM-3", "HOOK-7")
async def test_on_a_shared_memory_an_agents_card_is_its_persons_and_so_is_the_grant(
    house: AgentHouse, monkeypatch: pytest.MonkeyPatch
):
    """The line says whose it is. Without that it was everybody's to answer, and nobody's grant served it."""
    monkeypatch.setenv("LASTWORD_PERSON", "ada")
    line = command_for(CLAUDE, None, People("ada", {"bo": ("ada",), "cy": ("dan",), "eve": ("*",)}))
    assert " --person ada --answerer bo --answerer eve ||" in line
    assert "--person" not in command_for(CLAUDE, None, People("", {"bo": ("*",)}))
    house.turn(claude="exact")
    house.journal.people = People("ada", {"bo": ("ada",)})
    await house.grant(house.said(), calls=10)
    assert await house.hear(house.said()) == "ran"
    house.journal.people = People("dan")
    assert await house.hear(house.said(session_id="of Dan")) == "asked"


@requirement("TEAM-3", "HOOK-1")
async def test_the_gate_takes_the_persons_name_from_its_line(gate: Gate, queue: Queue):
    """And who else may answer."""
    hook = gate.start(CLAUDE_BEFORE, "claude", "--person", "ada", "--answerer", "bo")
    card = await queue.card()
    assert card.principal == "ada"
    for name in ("eve", "bo"):
        queue.journal.people = People(name, {name: ("ada",)})  # As their own configurations have it.
        assert await queue.journal.answer(card.facts(), card.allow(), Answerer("person", "page"))
        if name == "eve":
            card = await queue.card(but=card.digest)
            assert card.problem is not None
            assert "may not answer for ada" in card.problem
    assert (await finished(hook)).decided["permissionDecision"] == "allow"


@requirement("RULE-5", "HOOK-7")
def test_what_becomes_of_the_key_is_said_before_anybody_agrees(tmp_path: Path):
    """A second hook, or one that is taken out, turns the key back for all of the agent's."""
    project = tmp_path / "proj"
    project.mkdir()
    assert agreed(tmp_path, "hook", "install", "claude", "--standing", "bounds").returncode == 0
    for command in (("install", "claude", "--project"), ("uninstall", "claude")):
        shown = lastword(tmp_path, "hook", *command, cwd=project)
        assert "Claude Code: every call of its tools asks you." in shown.stderr
