"""Claude Code, Codex and Gemini CLI themselves, with a model of ours on loopback: what they do with what we say.

They are set up by our own installer, in a home of their own. What would happen shows in their folder.
"""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hook.fake_models import FakeModel
from hook.gates import Queue, opened
from hook.installed_agents import NODE, program
from hook.test_installing import FILES, agreed, lastword
from requirements import requirement
from surfaces.screens import clean_environment

pytestmark = pytest.mark.long

# An agent starts in seconds, and gives a model that is away several tries.
PATIENCE_SECONDS = 240.0
AGENTS = ("claude", "codex", "gemini")
SHELLS = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command"}


class Agent:
    """One agent in one home."""

    def __init__(self, home: Path, key: str) -> None:
        self.home = home
        self.key = key
        self.project = home / "proj"
        self.project.mkdir()
        self.environment = clean_environment(home, NO_PROXY="127.0.0.1")
        self.environment["PATH"] = f"{NODE.parent}{os.pathsep}{self.environment['PATH']}"

    def install(self) -> None:
        done = agreed(self.home, "hook", "install", self.key)
        assert done.returncode == 0, done.stderr

    def rewrite(self, old: str, new: str) -> None:
        """Change the command line that stands in its settings."""
        file = self.home / FILES[self.key]
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def shell(self, command: str) -> dict[str, Any]:
        return {"cmd": command} if self.key == "codex" else {"command": command}

    def _prepare(self, address: str) -> list[str]:
        """Point it to our model, and let it ask nobody but the hook."""
        if self.key == "claude":
            self.environment |= {
                "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "fake", "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }  # fmt: skip
            return ["-p", "Do it."]
        if self.key == "codex":
            self.environment["FAKE_KEY"] = "fake"
            config = self.home / ".codex" / "config.toml"
            config.parent.mkdir(exist_ok=True)
            config.write_text(
                'model = "fake"\nmodel_provider = "fake"\napproval_policy = "never"\n'
                'sandbox_mode = "danger-full-access"\n'
                f'[model_providers.fake]\nname = "fake"\nbase_url = "{address}/v1"\nwire_api = "responses"\n'
                'env_key = "FAKE_KEY"\n'
            )
            return ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "Do it."]
        self.environment |= {"GEMINI_API_KEY": "fake", "GOOGLE_GEMINI_BASE_URL": address}
        file = self.home / FILES["gemini"]
        kept = json.loads(file.read_text()) if file.exists() else {}
        kept |= {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(kept))
        return ["-y", "-m", "gemini-2.5-flash", "-p", "Do it."]

    @asynccontextmanager
    async def working(self, tool: str, given: dict[str, Any]) -> AsyncIterator[tuple[Process, FakeModel]]:
        """The agent, while its model asks for this tool."""
        model = FakeModel(tool, given)
        with model.serving() as address:
            process = await asyncio.create_subprocess_exec(
                *program(self.key), *self._prepare(address), cwd=self.project, env=self.environment, stdin=DEVNULL,
                stdout=PIPE, stderr=PIPE,
            )  # fmt: skip
            try:
                yield process, model
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        assert model.told, "the agent never told its model anything"


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Agent:
    return Agent(tmp_path, request.param)


@requirement("HOOK-1")
async def test_what_the_person_allowed_happens_and_is_closed_by_the_agent(agent: Agent, queue: Queue):
    """Handed over, and told afterwards by the agent itself."""
    agent.install()
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")):
        card = await queue.card()
        assert not (agent.project / "made").exists()
        assert card.arguments["command"] == "echo yes > made"
        await queue.answer(card, card.allow())
        await queue.until(card.call_id, "handed_back")
    assert (agent.project / "made").exists()
    assert (await queue.journal.life(card.call_id)).handover_in_words() == "handed over, done"


@requirement("HOOK-1")
async def test_what_the_person_denied_does_not_happen_and_the_model_hears_why(agent: Agent, queue: Queue):
    """The reason is for the model, so that it does something else."""
    agent.install()
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")) as (_, model):
        card = await queue.card()
        await queue.answer(card, card.deny("not on a Friday"))
    assert not (agent.project / "made").exists()
    assert "not on a Friday" in " ".join(model.told)


@requirement("HOOK-1")
async def test_what_the_person_changed_is_what_happens(agent: Agent, queue: Queue):
    """And is not told as a departure: the agent did what it was told."""
    agent.install()
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")):
        card = await queue.card()
        await queue.answer(card, card.edit(command="echo yes > changed"))
        await queue.until(card.call_id, "handed_back")
    assert (agent.project / "changed").exists()
    assert not (agent.project / "made").exists()
    assert (await queue.journal.life(card.call_id)).handover_in_words() == "handed over, done"


@requirement("HOOK-3")
async def test_nobody_there_means_no(agent: Agent, tmp_path: Path):
    """And the model is told how the person starts it."""
    agent.install()
    async with (
        opened(tmp_path, attended=False),
        agent.working(SHELLS[agent.key], agent.shell("echo yes > made")) as (_, model),
    ):
        pass
    assert not (agent.project / "made").exists()
    assert "lastword up" in " ".join(model.told)


@requirement("HOOK-3")
async def test_our_crash_means_no(agent: Agent, queue: Queue, tmp_path: Path):
    """An installation that cannot load itself."""
    agent.install()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "msgspec.py").write_text("raise RuntimeError('half an installation')")
    agent.rewrite(f"{sys.executable} -E", f"env PYTHONPATH={tmp_path / 'broken'} {sys.executable}")
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")):
        pass
    assert not (agent.project / "made").exists()


@requirement("HOOK-3")
async def test_our_deadline_means_no(agent: Agent, queue: Queue):
    """Before the agent's own, after which it would go on."""
    agent.install()
    agent.rewrite("--within 3540", "--within 1")
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")) as (_, model):
        pass
    assert not (agent.project / "made").exists()
    assert re.search("nobody answered", " ".join(model.told))


@requirement("HOOK-3")
@pytest.mark.parametrize("gone", ["python", "lastword"])
async def test_a_hook_whose_program_is_gone_means_no(agent: Agent, queue: Queue, gone: str):
    """An upgrade took it away. The agents would pass over that, and the shell between us does not."""
    agent.install()
    if gone == "python":
        agent.rewrite(sys.executable, "/nowhere/python")
    else:
        agent.rewrite("-m lastword ", "-m lastword_that_was_here ")
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")):
        pass
    assert not (agent.project / "made").exists()


@requirement("HOOK-3")
async def test_without_the_shell_between_us_the_docs_are_right_about_who_goes_on(agent: Agent, queue: Queue):
    """The docs say plainly which of them passes over a hook that cannot start. Claude Code has our onFailure."""
    agent.install()
    agent.rewrite(" || exit 2", "")
    agent.rewrite("-m lastword ", "-m lastword_that_was_here ")
    async with agent.working(SHELLS[agent.key], agent.shell("echo yes > made")):
        pass
    assert (agent.project / "made").exists() == (agent.key != "claude")


STANDING = """
[[rule]]
name = "this very command"
tool = "{tool}"
decide = "allow"
[rule.where]
command = {{ is = "echo yes > made" }}
cwd = {{ is = "{project}" }}
[rule.tests]
match = [{{ command = "echo yes > made", cwd = "{project}" }}]
not_match = [{{ command = "echo yes > made; ls", cwd = "{project}" }}]
"""


@requirement("HOOK-7", "GRANT-7")
@pytest.mark.parametrize("key", ["claude", "gemini"])
async def test_what_a_rule_allows_happens_in_its_folder_without_a_card(tmp_path: Path, queue: Queue, key: str):
    """The agent takes the yes with its reason, and says itself that it was carried out as allowed."""
    agent = Agent(tmp_path, key)
    assert agreed(tmp_path, "hook", "install", key, "--standing", "exact").returncode == 0
    policy = tmp_path / ".data" / "lastword" / "policy.toml"
    policy.write_text(STANDING.format(tool=f"{key}:{SHELLS[key]}", project=agent.project))
    digest = re.search(r"--digest ([0-9a-f]{64})", lastword(tmp_path, "policy", "accept").stderr)
    assert digest is not None
    assert lastword(tmp_path, "policy", "accept", "--digest", digest[1]).returncode == 0
    async with agent.working(SHELLS[key], agent.shell("echo yes > made")):
        pass
    assert (agent.project / "made").exists()
    [handed] = await queue.journal.store.read(kind="handed_over")
    life = await queue.journal.life(handed.subject)
    assert life.handover_in_words() == "handed over, done"
    assert life.handed_over is not None
    assert life.handed_over["why"] == "the rule this very command (policy.toml:2) allows it"


@requirement("HOOK-3", "HOOK-7")
@pytest.mark.parametrize("key", ["claude", "gemini"])
async def test_variables_of_the_project_lead_to_no_other_gate(tmp_path: Path, queue: Queue, key: str):
    """Both take them from files of the folder that they are started in, and give them to their hooks."""
    agent = Agent(tmp_path, key)
    agent.install()
    del agent.environment["XDG_DATA_HOME"]  # Most people have none.
    here = "/proc/self/cwd"
    variables = {"PYTHONPATH": here, "XDG_DATA_HOME": f"{here}/evil", "LASTWORD_STORE": "sqlite:///evil.db"}
    if key == "claude":
        (agent.project / ".claude").mkdir()
        (agent.project / ".claude" / "settings.json").write_text(json.dumps({"env": variables}))
    else:
        (agent.project / ".env").write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    (agent.project / "lastword.py").write_text("import os; os._exit(0)")
    shell = agent.shell("echo $PYTHONPATH $XDG_DATA_HOME $LASTWORD_STORE > made")
    async with agent.working(SHELLS[key], shell):
        card = await queue.card()
        assert not (agent.project / "made").exists()
        await queue.answer(card, card.allow())
        await queue.until(card.call_id, "handed_back")
    taken = (agent.project / "made").read_text().split()
    assert {here, "sqlite:///evil.db"} <= set(taken), "the agent does take them from there"


@requirement("HOOK-2")
async def test_an_edit_of_claude_code_is_shown_as_a_diff_and_is_what_it_writes(tmp_path: Path, queue: Queue):
    """What was seen is what the file becomes."""
    agent = Agent(tmp_path, "claude")
    agent.install()
    given = {"file_path": str(agent.project / "new.md"), "content": "one\n"}
    async with agent.working("Write", given):
        card = await queue.card()
        [preview] = card.preview
        assert (preview.base, preview.proposed) == (None, "one\n")
        await queue.answer(card, card.allow())
        await queue.until(card.call_id, "handed_back")
    assert (agent.project / "new.md").read_text() == preview.proposed
    assert (await queue.journal.life(card.call_id)).handover_in_words() == "handed over, done"


@requirement("HOOK-4")
@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_claude_code_asks_its_permission_tool(tmp_path: Path, queue: Queue, answer: str):
    """`lastword mcp approver`, for sessions without a hook."""
    agent = Agent(tmp_path, "claude")
    line = [sys.executable, "-P", "-m", "lastword", "mcp", "approver"]
    servers = {"mcpServers": {"lastword": {"command": line[0], "args": line[1:]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers))
    prepare = agent._prepare
    more = ["--mcp-config", str(tmp_path / "mcp.json"), "--permission-prompt-tool", "mcp__lastword__approve"]
    agent._prepare = lambda address: [*prepare(address), *more]  # type: ignore[method-assign]
    async with agent.working("Bash", {"command": "touch made"}):
        card = await queue.card()
        await queue.answer(card, card.allow() if answer == "allow" else card.deny())
    assert (agent.project / "made").exists() == (answer == "allow")
