"""`lastword policy`: what the rules are, what they say of a call, and a person's yes to them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.cli import NOT_ALLOWED, WRONG_USAGE, run
from requirements import requirement

POLICY = """
[[rule]]
name = "small payments"
tool = "pay"
decide = "allow"
[rule.where]
to = { in = ["Ada", "Bo"] }
amount = { min = 0, max = 20 }
[rule.tests]
match = [{ to = "Ada", amount = 5 }]
not_match = [{ to = "Mallory", amount = 5 }]
"""
TOOLS = ["--tools", "mine"]


@pytest.fixture
def file(home: Path) -> Path:
    """The user's policy, and a tool that has its key."""
    path = home / "data/lastword/policy.toml"
    path.parent.mkdir(parents=True)
    path.write_text(POLICY)
    manifest = home / "mine/pay/assistant_tool.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"autoApprove": True}))
    return path


def digest_in(capsys: pytest.CaptureFixture[str]) -> str:
    """What a script has to name to accept what is shown."""
    assert run(["policy", "accept", *TOOLS]) == NOT_ALLOWED
    return capsys.readouterr().err.split("--digest ")[1].split()[0]


@requirement("RULE-9")
def test_accepting_shows_the_file_and_the_tools_and_lets_them_count(file, capsys):
    """Before it: asked, with nobody there to ask. After it: done, and written down why."""
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == NOT_ALLOWED
    said = capsys.readouterr().err
    assert "policy.toml: you have not accepted it as it is, so what it allows is asked about" in said
    digest = digest_in(capsys)
    assert run(["policy", "accept", *TOOLS, "--digest", digest]) == 0
    assert "Accepted." in capsys.readouterr().out
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert run(["call", "pay", "to=Mallory", "amount=5", *TOOLS]) == NOT_ALLOWED
    assert run(["policy", "accept", *TOOLS]) == 0
    assert "Everything is accepted as it is." in capsys.readouterr().out


@requirement("RULE-9")
def test_a_digest_of_something_else_accepts_nothing(file, capsys):
    """The file changed between the look and the yes."""
    digest = digest_in(capsys)
    file.write_text(POLICY.replace('"Bo"', '"Mallory"').replace('{ to = "Mallory",', '{ to = "Eve",'))
    assert run(["policy", "accept", *TOOLS, "--digest", digest]) == WRONG_USAGE
    assert run(["call", "pay", "to=Mallory", "amount=5", *TOOLS]) == NOT_ALLOWED


@requirement("RULE-9")
def test_changed_code_of_a_tool_is_asked_about_again(file, home, capsys):
    """The rule was accepted for the tool that the person saw."""
    assert run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)]) == 0
    code = home / "mine/pay/assistant_tool.py"
    code.write_text(code.read_text() + "\nMORE = 1\n")
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == NOT_ALLOWED
    assert run(["policy", "explain", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert "the tool is not the one that was accepted for it" in capsys.readouterr().out


@requirement("RULE-7")
def test_explain_names_rule_file_and_line(file, capsys):
    """Or the nearest, and what misses."""
    run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)])
    capsys.readouterr()
    assert run(["policy", "explain", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert capsys.readouterr().out == "allow. small payments (policy.toml:2)\n"
    assert run(["policy", "explain", "pay", "to=Eve", "amount=5", *TOOLS]) == 0
    said = capsys.readouterr().out
    assert said == "ask. Nearest: small payments (policy.toml:2): to “Eve” is none of “Ada”, “Bo”\n"


@requirement("RULE-7")
def test_check_lists_the_rules_and_what_may_not_be_meant(file, capsys):
    """A rule for a tool that is not there, or that has no key, allows nothing; whoever wrote it should know."""
    other = POLICY.replace("small payments", "other").replace('"pay"', '"gone"')
    file.write_text(POLICY + other)
    assert run(["policy", "check", *TOOLS]) == 0
    said = capsys.readouterr()
    assert "policy.toml (user, not accepted)\n" in said.out
    assert "  allow  small payments (policy.toml:2): pay, to one of “Ada”, “Bo”, amount at most 20\n" in said.out
    assert "other (policy.toml:13): there is no tool gone here" in said.err
    assert run(["policy", "check", *TOOLS, "--json"]) == 0
    assert [rule["line"] for rule in json.loads(capsys.readouterr().out)["rules"]] == [2, 13]


@requirement("RULE-7")
def test_check_says_where_files_would_be(home, capsys):
    """For somebody who has none yet."""
    assert run(["policy", "check"]) == 0
    assert "lastword.policy.toml" in capsys.readouterr().out


@requirement("RULE-4")
@pytest.mark.parametrize(
    "command", [["call", "pay", "to=Ada", "amount=5", *TOOLS], ["policy", "check"], ["run", "x.nuwa"]]
)
def test_nothing_starts_with_a_broken_policy(file, home, capsys, command):
    """In words: file, line, fact, hint."""
    (home / "x.nuwa").write_text("LET x = 1\n")
    file.write_text(POLICY.replace("decide", "decides"))
    assert run(command) == WRONG_USAGE
    said = capsys.readouterr().err
    assert "policy.toml:5: unknown field decides of rule\nhint: did you mean decide?" in said


@requirement("RULE-1")
def test_a_project_that_denies_is_heard_without_a_question(home, capsys):
    """Stricter is always believed."""
    (home / "lastword.policy.toml").write_text('[[rule]]\nname = "never"\ntool = "pay"\ndecide = "deny"\n')
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS, "--auto-approve"]) == NOT_ALLOWED
    assert "the rule never (lastword.policy.toml:1) denies it" in capsys.readouterr().err


@requirement("CONF-2")
def test_a_tool_cannot_accept_a_policy(file, home):
    """An assistant that may run commands would accept whatever it wrote."""
    program = f"{sys.executable} -m lastword policy accept --tools mine --digest 00"
    environ = os.environ | {"LASTWORD_BELOW": "1"}
    done = subprocess.run(program.split(), env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert "this is for a person to decide" in done.stderr
    assert done.returncode == WRONG_USAGE
