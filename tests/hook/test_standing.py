"""What need not be asked about an agent's calls: said once, by a rule or from a card, for this very call and folder."""

import asyncio
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from hook.agent_house import AgentHouse
from lastword.consent import Answerer
from lastword.errors import ConfigError
from lastword.hook import AGENTS, ask
from lastword.hook.decision import NOBODY
from lastword.hook.event import Refused
from lastword.hook.gate import is_ruled
from lastword.journal import data_of
from lastword.rules import Grants
from lastword.rules.rule import WITHOUT_FOLDER
from requirements import requirement

NO_KEY = "This tool must be asked about each time"


def status_rule(folder: Path, tool: str = "claude:Bash") -> str:
    return f"""
[[rule]]
name = "status here"
tool = "{tool}"
decide = "allow"
[rule.where]
command = {{ is = "git status" }}
cwd = {{ is = "{folder}" }}
[rule.tests]
match = [{{ command = "git status", cwd = "{folder}" }}]
not_match = [{{ command = "git status; ls", cwd = "{folder}" }}]
"""


def log_rule(folder: Path) -> str:
    return f"""
[[rule]]
name = "log here"
tool = "claude:Bash"
decide = "allow"
[rule.where]
command = {{ command = {{ program = "git", args = ["log", "-[0-9]+"], cwd = "{folder}" }} }}
cwd = {{ under = "{folder}" }}
[rule.tests]
match = [{{ command = "git log -3", cwd = "{folder}" }}]
not_match = [{{ command = "git log", cwd = "{folder}" }}]
"""


@requirement("HOOK-7", "RULE-5")
async def test_git_status_in_this_folder_is_asked_about_once_when_the_person_says_so(house: AgentHouse):
    """The step shows exactly that, and the journal says each time why nobody was asked."""
    house.turn(claude="exact")
    offer = await house.offer(house.said())
    assert not isinstance(offer, str)
    assert offer.bounds == {"command": {"is": "git status"}, "cwd": {"is": str(house.project)}}
    assert (offer.looser, offer.scopes, offer.needs_limit) == ({}, ("until",), True)
    await house.grant(house.said(), calls=3)
    for number in range(3):
        said = house.said(also={"description": f"Look at it, {number}"}, session_id=f"session {number}")
        assert await house.hear(said) == "ran"
    assert "3 calls" in await house.hear(house.said())
    uses = [data_of(record)["words"] for record in await house.journal.store.read(kind="grant_used")]
    assert [words.partition(", ")[2] for words in uses] == ["1 of 3 calls", "2 of 3 calls", "3 of 3 calls"]


@requirement("HOOK-7", "RULE-5")
async def test_a_rule_says_it_for_good(house: AgentHouse):
    """In the person's own file, for the folder that it names."""
    house.turn(claude="exact")
    house.rules(status_rule(house.project))
    assert await house.hear(house.said()) == "ran"
    [handed] = await house.journal.store.read(kind="handed_over")
    assert data_of(handed)["approval"] == "rule"
    assert data_of(handed)["arguments"] == {"command": "git status", "cwd": str(house.project)}


@requirement("RULE-5")
@pytest.mark.parametrize(
    "turned", [{}, {"claude": "never"}, {"gemini": "bounds", "codex": "bounds"}, {"claude": "yes"}]
)
async def test_the_key_of_an_agents_tools_is_the_persons_and_is_never_turned_by_itself(
    house: AgentHouse, turned: dict[str, str]
):
    """A rule stands for the preset's key. Without the tool's it asks, and the card offers nothing."""
    house.turn(**turned)
    house.rules(status_rule(house.project))
    assert "must be asked about each time" in await house.hear(house.said())
    assert await house.offer(house.said()) == NO_KEY


@requirement("RULE-9")
async def test_a_rule_for_agents_counts_once_it_was_accepted(house: AgentHouse):
    """And when the key is turned, it is another tool, which nobody has accepted."""
    house.turn(claude="exact")
    house.rules(status_rule(house.project), accept=False)
    assert "not accepted" in await house.hear(house.said())
    house.rules(status_rule(house.project))
    assert await house.hear(house.said()) == "ran"
    house.turn(claude="bounds")
    assert "not the one that was accepted" in await house.hear(house.said())


NFC, NFD = unicodedata.normalize("NFC", "ä"), unicodedata.normalize("NFD", "ä")

OTHERS = {
    "a second command": "git status; rm -rf ~",
    "and": "git status && x",
    "or": "git status || x",
    "a pipe": "git status | sh",
    "in the background": "git status &",
    "a second line": "git status\nrm -rf ~",
    "a carriage return": "git status\rrm -rf ~",
    "a substitution": "git status $(rm -rf ~)",
    "backticks": "git status `rm -rf ~`",
    "a redirection": "git status > ~/.bashrc",
    "an option before": "git -c core.pager=evil status",
    "another folder by an option": "git -C /tmp status",
    "one argument more": "git status -s",
    "a variable before": "GIT_DIR=/tmp/evil git status",
    "env": "env GIT_DIR=/tmp/evil git status",
    "a program of the same name": "./git status",
    "with its path": "/usr/bin/git status",
    "quotes": "'git' status",
    "an escape": "g\\it status",
    "a tab": "git\tstatus",
    "a space at the end": "git status ",
    "a comment": "git status # ok",
    "what cannot be seen": "git status\u200b",
    "a look-alike": "gіt status",
    "case": "GIT status",
    "a brace": "git {status,push}",
    "a home": "git status ~",
    "a function": "git() { evil; }; git status",
    "an alias": "alias git=evil; git status",
}


@requirement("HOOK-7", "RULE-3")
@pytest.mark.parametrize("bounds", [False, True], ids=["exact", "bounds"])
async def test_every_other_command_is_asked_about(house: AgentHouse, bounds: bool):
    """What looks like the same to a model, or to a shell, is not what the person agreed to."""
    house.turn(claude="bounds" if bounds else "exact")
    command = {"command": {"program": "git", "args": ["status"], "cwd": str(house.project)}}
    await house.grant(house.said(), {"command": command} if bounds else None, calls=1_000)
    assert await house.hear(house.said()) == "ran"
    one_and_the_same = {"quotes", "a space at the end"} if bounds else set()
    for what, line in OTHERS.items():
        said = await house.hear(house.said(line))
        assert (said == "ran") == (what in one_and_the_same), (what, said)


@requirement("HOOK-7", "RULE-3")
async def test_look_alikes_in_arguments_are_other_arguments(house: AgentHouse):
    """Composed and decomposed, a number for a text, and one argument more are other calls."""
    house.turn(claude="exact")
    await house.grant(house.said(f"cat {NFC}.txt", also={"timeout": 1}), calls=100)
    assert await house.hear(house.said(f"cat {NFC}.txt", also={"timeout": 1})) == "ran"
    assert await house.hear(house.said(f"cat {NFC}.txt", also={"timeout": 1.0})) == "ran"  # 1.0 is 1 in JSON.
    for also in ({}, {"timeout": True}, {"timeout": "1"}, {"timeout": 1, "run_in_background": True},
                 {"timeout": 1, "run_in_background": False}, {"timeout": 1, "dangerouslyDisableSandbox": True},
                 {"timeout": 10**20}):  # fmt: skip
        assert await house.hear(house.said(f"cat {NFC}.txt", also=also)) == "asked", also
    assert await house.hear(house.said(f"cat {NFD}.txt", also={"timeout": 1})) == "asked"


@requirement("HOOK-7")
@pytest.mark.parametrize("turned", ["exact", "bounds"])
async def test_the_same_command_in_another_folder_is_another_call(house: AgentHouse, tmp_path: Path, turned: str):
    """`git status` runs what the configuration of its folder names. A link is where it leads, at every look."""
    house.turn(claude=turned)
    await house.grant(house.said(), calls=100)
    evil, link = tmp_path / "evil", tmp_path / "link"
    evil.mkdir()
    link.symlink_to(house.project)
    assert await house.hear(house.said(cwd=str(link))) == "ran"
    link.unlink()
    link.symlink_to(evil)
    for folder in (evil, link, tmp_path, house.project / "sub", house.project / ".." / "evil"):
        assert await house.hear(house.said(cwd=str(folder))) == "asked", folder
    for nowhere in ("", ".", "project", "~/project"):
        assert await house.hear(house.said(cwd=nowhere)) == "asked", nowhere


@requirement("HOOK-7")
async def test_a_link_that_is_turned_while_the_card_waits_allows_nothing(house: AgentHouse, tmp_path: Path):
    """The person saw where it led."""
    link, evil = tmp_path / "link", tmp_path / "evil"
    evil.mkdir()
    link.symlink_to(house.project)
    with house.journal.programs.attending():
        task = asyncio.ensure_future(ask(house.journal, house.said(cwd=str(link)), 60))
        card = await house.card(task)
        assert card is not None
        assert card.arguments["cwd"] == str(house.project)
        link.unlink()
        link.symlink_to(evil)
        [facts] = await house.journal.waiting()
        assert await house.journal.answer(facts, card.allow(), Answerer.person("me"))
        assert "leads elsewhere" in getattr(await task, "why", "")


@requirement("HOOK-7", "RULE-3")
async def test_a_rule_within_bounds_follows_its_folder(house: AgentHouse, tmp_path: Path):
    """A pattern for every argument, in the folder and below it, and with nothing else given."""
    house.turn(claude="bounds")
    house.rules(log_rule(house.project))
    (house.project / "sub").mkdir()
    assert await house.hear(house.said("git log -3")) == "ran"
    assert await house.hear(house.said("git log -3", cwd=str(house.project / "sub"))) == "ran"
    (house.project / "out").symlink_to(tmp_path)
    for said in (
        house.said("git log -3 --output=x"),
        house.said("git log --output=x"),
        house.said("git log -3; ls"),
        house.said("git log -3", cwd=str(tmp_path)),
        house.said("git log -3", cwd=str(house.project / "out")),
        house.said("git log -3", also={"run_in_background": True}),
        house.said("git log -3", also={"shell": "evil"}),
    ):
        assert await house.hear(said) != "ran", said.arguments


@requirement("HOOK-7", "GRANT-1")
@pytest.mark.parametrize("agent", ["claude", "gemini"])
async def test_a_card_offers_the_folder_and_other_ways_to_write_the_command_where_the_key_is_for_bounds(
    house: AgentHouse, agent: str
):
    """Its card is always shown by another program, which knows the folder from what was asked."""
    house.turn(**{agent: "bounds"})
    offer = await house.offer(house.said("git log -3", agent=agent))
    assert not isinstance(offer, str)
    command = {"command": {"program": "git", "args": ["log", "\\-3"], "cwd": str(house.project)}}
    assert offer.looser == {"command": (command,), "cwd": ({"under": str(house.project)},)}
    (house.project / "inside").mkdir()
    await house.grant(house.said("git log -3", agent=agent), {"command": command, "cwd": {"under": str(house.project)}})
    for written in ("git log -3", "git  log  -3", "git log '-3'"):
        assert await house.hear(house.said(written, agent=agent)) == "ran", written
    for written in ("git log -4", "git log -3 -3", "git log -3; id"):
        assert await house.hear(house.said(written, agent=agent)) == "asked", written
    assert await house.hear(house.said("git log -3", agent=agent, cwd=str(house.project.parent))) == "asked"


@requirement("HOOK-7", "GRANT-2")
async def test_a_grant_under_a_folder_does_not_move_with_a_link_in_its_place(house: AgentHouse, tmp_path: Path):
    """Checking out a branch is enough to make a folder a link. The person granted the folder that they saw."""
    house.turn(claude="bounds")
    sub, other = house.project / "sub", tmp_path / "other"
    sub.mkdir()
    other.mkdir()
    await house.grant(house.said("make test", cwd=str(sub)), {"cwd": {"under": str(sub)}})
    assert await house.hear(house.said("make test", cwd=str(sub))) == "ran"
    sub.rmdir()
    for target in (other, Path("/")):
        sub.symlink_to(target)
        for folder in (sub, other, tmp_path):
            assert await house.hear(house.said("make test", cwd=str(folder))) == "asked", (target, folder)
        sub.unlink()
    sub.mkdir()
    assert await house.hear(house.said("make test", cwd=str(sub))) == "ran"


@requirement("HOOK-7")
async def test_a_shell_with_arguments_that_nobody_knows_takes_exact_ones(house: AgentHouse):
    """Another shell, or a folder by another name, would make something else of the same command."""
    house.turn(claude="bounds")
    offer = await house.offer(house.said(also={"timeout": 5}))
    assert not isinstance(offer, str)
    assert offer.looser["timeout"] == ({"min": 0, "max": 5},)
    unknown = await house.offer(house.said(also={"timeout": 5, "workdir": "/tmp"}))
    assert not isinstance(unknown, str)
    assert unknown.looser == {}


@requirement("HOOK-7")
async def test_a_tool_of_another_agent_has_another_yes(house: AgentHouse):
    """Codex calls its shell Bash, too."""
    house.turn(claude="exact", codex="exact", gemini="exact")
    await house.grant(house.said(), calls=100)
    house.rules(status_rule(house.project))
    codex = house.said(agent="codex")
    assert codex.tool == house.said().tool == "Bash"
    assert await house.hear(codex) == "asked"
    assert await house.hear(house.said(agent="gemini")) == "asked"
    assert await house.hear(house.said(tool_name="bash")) == "asked"


@requirement("HOOK-7")
async def test_nothing_stands_for_a_person_with_an_agent_that_does_not_say_the_folder(house: AgentHouse):
    """Codex tells its hook the command, and not the folder that the model named with it."""
    house.turn(codex="bounds")
    house.rules(status_rule(house.project, "codex:Bash"))
    heard = await house.hear(house.said(agent="codex"))
    assert heard.endswith("would allow it, but Codex does not tell its hooks in which folder a command runs.")
    why = "Codex does not tell its hooks in which folder a command runs, so it is asked about each time"
    assert await house.offer(house.said(agent="codex")) == why
    assert {agent.name for agent in AGENTS.values() if not agent.says_folder} == WITHOUT_FOLDER


@requirement("HOOK-7")
async def test_gemini_runs_where_its_argument_says(house: AgentHouse, tmp_path: Path):
    """The folder that is shown and bounded is the one that the command runs in."""
    house.turn(gemini="exact")
    await house.grant(house.said(agent="gemini"), calls=100)
    assert await house.hear(house.said(agent="gemini", also={"description": "Look"})) == "ran"
    for folder in ("..", str(tmp_path), ".", ""):
        assert await house.hear(house.said(agent="gemini", also={"dir_path": folder})) == "asked", folder
    offer = await house.offer(house.said(agent="gemini", also={"dir_path": ".."}))
    assert not isinstance(offer, str)
    assert offer.bounds["cwd"] == {"is": str(tmp_path)}


@requirement("HOOK-7", "GRANT-2")
async def test_a_standing_yes_over_free_text_is_not_to_be_had(house: AgentHouse):
    """A prompt for a page, or the text of a file, is granted as it stands or not at all."""
    house.turn(claude="bounds")
    fetch = {"url": "https://example.org/", "prompt": "Summarise it"}
    offer = await house.offer(house.said(tool_name="WebFetch", tool_input=fetch))
    assert not isinstance(offer, str)
    assert set(offer.looser) == {"cwd"}
    for open_bound in ({"any": True}, {"length": 80}, {"matches": ".*"}, {"under": str(house.project)}):
        with pytest.raises(Exception, match="prompt"):
            offer.terms(offer.bounds | {"prompt": open_bound}, "until", calls=1)


@requirement("HOOK-7")
@pytest.mark.parametrize("tool", ["mcp__bank__pay", "Task", "SlashCommand", "BrandNew"])
async def test_a_tool_that_may_be_anybodys_is_asked_about_each_time(house: AgentHouse, tool: str):
    """A server's tool may be another one tomorrow, and its hook would not be told. The gateway pins it."""
    house.turn(claude="bounds")
    assert await house.offer(house.said(tool_name=tool, tool_input={"to": "DE12"})) == NO_KEY


@requirement("HOOK-7")
async def test_what_the_agents_own_rules_ask_is_asked(house: AgentHouse):
    """Its own question, say because it would leave its sandbox, is another one than ours."""
    house.turn(claude="exact")
    await house.grant(house.said(), calls=100)
    assert await house.hear(house.said(hook_event_name="PermissionRequest")) == "asked"


@requirement("HOOK-7")
async def test_an_argument_under_our_name_for_the_folder_passes_no_rule(house: AgentHouse):
    """A command that brings its own `cwd` along could look like one of another folder."""
    house.turn(claude="exact")
    await house.grant(house.said(), calls=100)
    said = await house.hear(house.said(cwd="/", also={"cwd": str(house.project)}))
    assert "takes no argument cwd" in said


@requirement("HOOK-7", "GRANT-5")
async def test_a_grant_that_is_taken_back_before_the_hand_over_hands_nothing_over(house: AgentHouse):
    """It takes the number of the next use, so one of the two wins."""
    house.turn(claude="exact")
    given = await house.grant(house.said(), calls=10)
    store, commit = house.journal.store, house.journal.store.commit
    revoked: list[bool] = []

    async def commit_after_revoking(*entries: Any) -> bool:
        if not revoked and any(entry.kind == "handed_over" for entry in entries):
            revoked.append(await Grants(house.journal).revoke(given.id, Answerer.person("me")))
        return await commit(*entries)

    house.patch.setattr(store, "commit", commit_after_revoking)
    said = await house.hear(house.said())
    assert revoked == [True]
    assert said != "ran"
    assert len(await store.read(kind="handed_over")) == 1


@requirement("HOOK-7", "GRANT-4")
async def test_hooks_at_the_last_use_win_it_once(house: AgentHouse):
    """Agents start several at the same moment."""
    house.turn(claude="exact")
    await house.grant(house.said(), calls=2)
    with house.journal.programs.attending():
        tasks = [asyncio.ensure_future(ask(house.journal, house.said(), 0.3)) for _ in range(6)]
        answers = await asyncio.gather(*tasks)
    assert sum(not isinstance(answer, Refused) for answer in answers) == 2


@requirement("HOOK-3", "HOOK-7")
async def test_without_a_queue_nothing_is_allowed_whatever_stands(house: AgentHouse):
    """Who closed the page has nobody to stop what goes wrong. What a rule denies is told as that."""
    house.turn(claude="exact")
    house.rules(status_rule(house.project) + '[[rule]]\nname = "no push"\ntool = "claude:Bash"\ndecide = "deny"\n'
                '[rule.where]\ncommand = { is = "git push" }\n')  # fmt: skip
    assert await ask(house.journal, house.said(), 5) == Refused(NOBODY)
    denied = await ask(house.journal, house.said("git push"), 5)
    assert isinstance(denied, Refused)
    assert "no push" in denied.why


@requirement("RULE-2", "HOOK-7")
async def test_the_guides_rule_that_denies_a_command_holds_in_every_folder(house: AgentHouse, tmp_path: Path):
    """The lines of docs/rules.md, as somebody copies them: they need no key, and nobody has to accept them."""
    guide = (Path(__file__).parents[2] / "docs/rules.md").read_text()
    [rule] = [block for block in guide.split("```toml\n")[1:] if block.startswith('[[rule]]\nname = "no rm"')]
    house.rules(rule.partition("```")[0], accept=False)
    for line in ("rm notes.md", "rm -rf /", "sudo rm -r x", "ls && rm x"):
        assert "the rule no rm (policy.toml:1) denies it" in await house.hear(house.said(line)), line
    assert "denies it" in await house.hear(house.said("rm x", cwd=str(tmp_path)))
    assert await house.hear(house.said("ls")) == "asked"


def deny_secrets(folder: Path) -> str:
    return f"""
[[rule]]
name = "no secrets"
tool = "claude:Read"
decide = "deny"
[rule.where]
file_path = {{ under = "{folder}" }}
"""


@requirement("RULE-2", "HOOK-7")
async def test_rules_are_asked_before_a_tool_that_only_looks_is_let_through(house: AgentHouse, tmp_path: Path):
    """What a rule denies is denied, and what it does not speak of is left to the agent."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (house.project / "way").symlink_to(secrets)
    (house.project / "lastword.policy.toml").write_text(deny_secrets(secrets))

    def read(path: str, **facts: Any) -> bool:
        return is_ruled(house.said(tool_name="Read", tool_input={"file_path": path}, **facts))

    for path in (f"{secrets}/key", "way/key", f"{house.project}/way/key", "../secrets/key", "~/secrets/key"):
        assert read(path), path
    assert not read(f"{house.project}/notes.md")
    said = house.said(tool_name="Read", tool_input={"file_path": f"{secrets}/key"})
    assert "no secrets" in await house.hear(said)


@requirement("RULE-1", "HOOK-7")
async def test_a_projects_rules_hold_in_its_folders_and_where_the_agent_was_started(house: AgentHouse, tmp_path: Path):
    """An agent that goes down a folder, or somewhere else, does not leave them behind."""
    (house.project / "lastword.policy.toml").write_text(
        '[[rule]]\nname = "no push"\ntool = "claude:*"\ndecide = "deny"\n[rule.where]\ncommand = { is = "git push" }\n'
    )
    sub = house.project / "a" / "b"
    sub.mkdir(parents=True)
    assert "no push" in await house.hear(house.said("git push", cwd=str(sub)))
    assert await house.hear(house.said("git push", cwd=str(tmp_path))) == "asked"
    house.patch.setenv("CLAUDE_PROJECT_DIR", str(house.project))
    assert "no push" in await house.hear(house.said("git push", cwd=str(tmp_path)))


@requirement("RULE-1", "HOOK-7")
async def test_a_project_loosens_nothing_for_an_agent(house: AgentHouse):
    """Its file may only ask and deny; with an allow in it nothing is answered at all."""
    house.turn(claude="exact")
    (house.project / "lastword.policy.toml").write_text(status_rule(house.project))
    with pytest.raises(ConfigError, match="may only ask or deny"):
        await house.hear(house.said())
    with pytest.raises(ConfigError, match="may only ask or deny"):
        is_ruled(house.said(tool_name="Read", tool_input={"file_path": "x"}))


@requirement("RULE-9", "HOOK-7")
async def test_an_agent_that_would_write_a_policy_file_is_asked_about_whatever_stands(house: AgentHouse):
    """Rules are changed by people alone."""
    house.turn(claude="exact")
    write = {"file_path": str(house.project / "lastword.policy.toml"), "content": "x = 1\n"}
    await house.grant(house.said(tool_name="Write", tool_input=write), calls=10)
    assert "rules are changed by people alone" in await house.hear(house.said(tool_name="Write", tool_input=write))
    other = {"file_path": str(house.project / "notes.md"), "content": "x = 1\n"}
    await house.grant(house.said(tool_name="Write", tool_input=other), calls=10)
    assert await house.hear(house.said(tool_name="Write", tool_input=other)) == "ran"


@requirement("RULE-9", "HOOK-7")
@pytest.mark.parametrize("is_below", [True, False], ids=["in a folder of it", "gone elsewhere"])
async def test_an_agent_is_asked_about_the_hooks_of_its_project_wherever_it_works(
    house: AgentHouse, tmp_path: Path, is_below: bool
):
    """The folder of its settings may be a link, and so lies under another name."""
    house.turn(claude="exact")
    dot, here = tmp_path / "dot", (house.project if is_below else tmp_path) / "sub"
    dot.mkdir()
    here.mkdir()
    (house.project / ".claude").symlink_to(dot)
    house.patch.setenv("CLAUDE_PROJECT_DIR", "" if is_below else str(house.project))

    def write(name: str) -> Any:
        given = {"file_path": str(dot / name), "content": "{}"}
        return house.said(tool_name="Write", tool_input=given, cwd=str(here))

    await house.grant(write("settings.json"), calls=10)
    assert "and hooks are changed by people alone" in await house.hear(write("settings.json"))
    await house.grant(write("notes.json"), calls=10)
    assert await house.hear(write("notes.json")) == "ran"


@requirement("RULE-9", "HOOK-7")
@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("x.txt", "rules"),
        ("rules/all.toml", "rules"),
        ("lastword.toml", "settings"),
        (".claude/settings.json", "hooks"),
        (".gemini/settings.json", "hooks"),
        ("../.claude/settings.json", "hooks"),
        ("../.codex/hooks.json", "hooks"),
    ],
)
async def test_an_agent_that_would_change_what_is_asked_is_asked_about_whatever_stands(
    house: AgentHouse, name: str, has: str
):
    """It writes in place: what it writes into a hard link of the policy is in the policy. And with its own hooks it
    could take the gate away."""
    house.turn(claude="exact")
    (house.project / "lastword.policy.toml").write_text(deny_secrets(house.project / "secrets"))
    os.link(house.project / "lastword.policy.toml", house.project / "x.txt")
    above = house.project.parent / "lastword.policy.toml"
    (house.project / "rules").mkdir()
    (house.project / "rules/all.toml").write_text(deny_secrets(house.project / "more secrets"))
    above.symlink_to(house.project / "rules/all.toml")
    write = {"file_path": os.path.normpath(house.project / name), "content": "x = 1\n"}
    await house.grant(house.said(tool_name="Write", tool_input=write), calls=10)
    told = await house.hear(house.said(tool_name="Write", tool_input=write))
    assert f"and {has} are changed by people alone" in told
