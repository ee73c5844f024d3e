"""A rule's limit is counted in a memory. What a tool started names another one, where nothing is used up yet."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.paying import MANIFEST, PAY
from lastword.tools import Trust
from lastword.tools.guard import MARKER
from requirements import requirement
from surfaces.screens import PATIENCE_SECONDS, clean_environment, lastword_command, piped, started

POLICY = """
[[rule]]
name = "once"
tool = "pay"
decide = "allow"
limits = { calls = 1 }
[rule.where]
to = { is = "Ada" }
amount = { is = 5 }
[rule.tests]
match = [{ to = "Ada", amount = 5 }]
not_match = [{ to = "Bo", amount = 5 }]

[[rule]]
name = "never"
tool = "pay"
decide = "deny"
[rule.where]
to = { is = "Mallory" }
"""
CALL = ("call", "pay", "to=Ada", "amount=5", "--tools", "mine")
BELOW = {MARKER: "1"}
WHY = "a tool or an agent started this on another memory than yours"

proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/environ"), reason="nobody says what a program was started with"
)


def furnished(folder: Path) -> Path:
    """A folder with a tool and its key, and the rules above."""
    (folder / "mine/pay").mkdir(parents=True)
    (folder / "mine/pay/assistant_tool.json").write_text(json.dumps(MANIFEST | {"autoApprove": True}))
    (folder / "mine/pay/assistant_tool.py").write_text(PAY)
    (folder / ".data/lastword").mkdir(parents=True)
    (folder / ".data/lastword/policy.toml").write_text(POLICY)
    return folder


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a person sees who accepts these rules for this tool; the same in every folder."""
    asked = piped("policy", "accept", "--tools", "mine", cwd=furnished(tmp_path_factory.mktemp("seen"))).stderr
    return asked.split("--digest ")[1].split()[0]


@pytest.fixture
def home(tmp_path: Path, digest: str) -> Path:
    """Such a folder, with the rules accepted."""
    accepted = piped("policy", "accept", "--tools", "mine", "--digest", digest, cwd=furnished(tmp_path))
    assert accepted.returncode == 0, accepted.stderr
    return tmp_path


def paid(home: Path) -> int:
    file = home / "paid"
    return len(file.read_text().splitlines()) if file.exists() else 0


@proc
@requirement("GRANT-4", "CONF-2")
def test_another_memory_below_a_tool_is_no_new_limit(home):
    """One call for good would be one call for each name of a file that somebody can think of."""
    call = [*lastword_command(), *CALL]
    (home / "own.toml").write_text('[server]\nstore = "sqlite:///config.db"\n')
    tries = [
        call,
        [*call, "--store", "sqlite:///1.db"],
        [*call, "--store", "memory:"],
        ["env", "LASTWORD_STORE=sqlite:///2.db", *call],
        ["env", "LASTWORD_CONFIG=own.toml", *call],
    ]
    assert called_below(home, call, *tries) == [0] + [3] * len(tries)
    assert paid(home) == 1


@proc
@requirement("GRANT-4", "CONF-2")
@pytest.mark.parametrize("how", ["cp -r", "ln -s"])
def test_another_data_folder_below_a_tool_is_no_new_limit(home, how):
    """With the rules and what was accepted in it, copied or linked, and a memory in which nothing is used up."""
    call = [*lastword_command(), *CALL]
    bring = (
        f'mkdir -p new/lastword && {how} "$PWD"/.data/lastword/*.toml "$PWD"/.data/lastword/*.json new/lastword && "$@"'
    )
    elsewhere = ["env", f"XDG_DATA_HOME={home}/new", *call]
    assert called_below(home, call, ["sh", "-c", bring, "", *elsewhere]) == [0, 3]
    assert (home / "new/lastword/trusted.json").exists()
    assert paid(home) == 1


@requirement("RULE-7", "CONF-2")
def test_it_is_said_why_the_rule_does_not_count(home):
    """Whoever reads the card wonders about a rule that they have accepted."""
    explain = ("policy", "explain", "pay", "to=Ada", "amount=5", "--tools", "mine", "--store", "sqlite:///1.db")
    assert (
        f"ask. the rule once (policy.toml:2) would allow it, but {WHY}" in started(*explain, cwd=home, **BELOW).stdout
    )
    assert piped(*explain, cwd=home).stdout.startswith("allow. once")


@requirement("RULE-2", "CONF-2")
def test_a_deny_holds_on_every_memory(home):
    """Only what loosens has to be counted."""
    done = started("call", "pay", "to=Mallory", "amount=5", "--tools", "mine", "--store", "memory:", cwd=home, **BELOW)
    assert "the rule never (policy.toml:14) denies it" in done.stderr


def test_a_person_names_any_memory(home):
    """It is their limit, and their second memory."""
    assert piped(*CALL, "--store", "sqlite:///1.db", cwd=home).returncode == 0


@proc
@requirement("GRANT-4", "CONF-2")
def test_the_memory_of_an_accepted_configuration_is_the_persons_own(home):
    """There the limit is counted, also for what a tool starts, by whatever name and from whichever folder."""
    call = [*lastword_command(), *CALL[:-1], str(home / "mine")]
    text = '[server]\nstore = "sqlite:///team.db"\n'
    (home / "lastword.toml").write_text(text)
    assert piped("trust", "--digest", Trust.digest_of(text), cwd=home).returncode == 0
    by_its_path = [*call, "--store", f"sqlite:///{home}/mine/../team.db"]
    usual = [*call, "--store", f"sqlite:///{home}/.data/lastword/lastword.db"]
    (home / "fresh").mkdir()
    from_there = ["sh", "-c", 'cd fresh && "$@"', "", "env", f"LASTWORD_CONFIG={home}/lastword.toml", *call]
    assert called_below(home, by_its_path, call, usual, from_there) == [0, 3, 3, 3]
    assert not (home / "fresh/team.db").exists(), "its path is meant from the folder of the configuration"
    assert paid(home) == 1


@proc
@requirement("GRANT-4", "CONF-2")
def test_a_variable_with_half_a_path_names_another_memory_in_every_folder(home):
    """So below it nothing is allowed by rules with it, wherever that is."""
    call = [*lastword_command(), *CALL[:-1], str(home / "mine")]
    named = {"LASTWORD_STORE": "sqlite:///team.db"}
    (home / "fresh").mkdir()
    assert called_below(home, ["sh", "-c", 'cd fresh && "$@"', "", *call], call, **named) == [3, 3]
    assert paid(home) == 0


PROGRAM = """
import json, subprocess, sys, lastword.tools.guard.ancestry as ancestry
ancestry.mark()
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(json.dumps([subprocess.run(command, **quiet).returncode for command in json.loads(sys.argv[1])]))
"""


def called_below(home: Path, *commands: list[str], **environment: str) -> Any:
    """The exit codes of commands, one after the other below a program that runs tools and was started with this
    environment."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        cwd=home, env=clean_environment(home, **environment), capture_output=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return json.loads(done.stdout)


@proc
@requirement("GRANT-4", "CONF-2")
def test_a_memory_that_a_variable_names_is_the_persons_where_their_program_was_started_with_it(home):
    """A team names its store in the profile of each shell. What a shell below sets is the model's."""
    call = [*lastword_command(), *CALL]
    named = {"LASTWORD_STORE": f"sqlite:///{home}/team.db"}
    set_below = ["env", f"LASTWORD_STORE=sqlite:///{home}/1.db", "sh", "-c", '"$@"; exit', "", *call]
    assert called_below(home, set_below) == [3]
    assert called_below(home, ["env", "-u", "LASTWORD_STORE", *call], call, **named) == [3, 0]
    assert paid(home) == 1
