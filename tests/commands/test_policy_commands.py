"""`lastword policy`: what the rules are, what they say of a call, and a person's yes to them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.cli import FAILED, NOT_ALLOWED, WRONG_USAGE, run
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
LS = """
[[rule]]
name = "look"
tool = "codex:Bash"
decide = "allow"
[rule.where]
command = { is = "ls" }
cwd = { is = "/" }
[rule.tests]
match = [{ command = "ls", cwd = "/" }]
not_match = [{ command = "rm", cwd = "/" }]
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
def test_accepting_shows_the_file_and_the_tools_and_lets_them_count(file, says, capsys):
    """Before it: asked, with nobody there to ask. After it: done, and written down why."""
    said = says(["call", "pay", "to=Ada", "amount=5", *TOOLS], NOT_ALLOWED).err
    assert "policy.toml: you have not accepted it as it is, so what it allows is asked about" in said
    digest = digest_in(capsys)
    assert "Accepted." in says(["policy", "accept", *TOOLS, "--digest", digest]).out
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert run(["call", "pay", "to=Mallory", "amount=5", *TOOLS]) == NOT_ALLOWED
    assert "Everything is accepted as it is." in says(["policy", "accept", *TOOLS]).out


@requirement("RULE-9")
def test_a_digest_of_something_else_accepts_nothing(file, capsys):
    """The file changed between the look and the yes."""
    digest = digest_in(capsys)
    file.write_text(POLICY.replace('"Bo"', '"Mallory"').replace('{ to = "Mallory",', '{ to = "Eve",'))
    assert run(["policy", "accept", *TOOLS, "--digest", digest]) == WRONG_USAGE
    assert run(["call", "pay", "to=Mallory", "amount=5", *TOOLS]) == NOT_ALLOWED


@requirement("RULE-9")
def test_changed_code_of_a_tool_is_asked_about_again(file, home, says, capsys):
    """The rule was accepted for the tool that the person saw."""
    assert run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)]) == 0
    code = home / "mine/pay/assistant_tool.py"
    code.write_text(code.read_text() + "\nMORE = 1\n")
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == NOT_ALLOWED
    assert run(["policy", "explain", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert "the tool is not the one that was accepted for it" in capsys.readouterr().out
    assert run(["policy", "check", *TOOLS]) == 0
    assert "small payments (policy.toml:2): it allows nothing of pay: the tool is not" in capsys.readouterr().err
    assert run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)]) == 0
    assert "allows nothing" not in capsys.readouterr().err, "it allows again"
    assert says(["policy", "check", *TOOLS]).err == ""


@requirement("RULE-3")
def test_check_says_of_a_text_that_is_bounded_by_a_folder_that_it_may_be_no_path(file, says):
    """Any text that begins with that folder passes: to whom something is paid, and what else stands in it."""
    file.write_text(POLICY.replace('in = ["Ada", "Bo"]', 'under = "/var"').replace('"Ada"', '"/var/a"'))
    assert "pay does not say that to is a path" in says(["policy", "check", *TOOLS]).err


@requirement("RULE-7")
def test_explain_takes_the_name_that_stands_on_the_card_of_an_agent(file, says):
    """A person reads it there, and asks about it here."""
    by_card = says(["policy", "explain", "claude__Bash", "command=ls", "cwd=/"]).out
    assert says(["policy", "explain", "claude:Bash", "command=ls", "cwd=/"]).out == by_card


@requirement("RULE-7")
def test_explain_loads_no_tool_of_this_folder_for_one_of_an_agent(file, home, says):
    """Its code may be nobody's: what it is asked about does not need it."""
    (home / "mine").rename(home / "tools")
    said = says(["policy", "explain", "claude:Bash", "command=ls", "cwd=/"])
    assert said.out.startswith("ask. ")
    assert said.err == ""


@requirement("RULE-7")
def test_explain_names_rule_file_and_line(file, says, capsys):
    """Or the nearest, and what misses."""
    run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)])
    capsys.readouterr()
    assert run(["policy", "explain", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    assert capsys.readouterr().out == "allow. small payments (policy.toml:2)\n"
    said = says(["policy", "explain", "pay", "to=Eve", "amount=5", *TOOLS]).out
    assert said == "ask. Nearest: small payments (policy.toml:2): to “Eve” is none of “Ada”, “Bo”\n"


@requirement("RULE-7")
def test_check_lists_the_rules_and_what_may_not_be_meant(file, says, capsys):
    """A rule for a tool that is not there, or that has no key, allows nothing; whoever wrote it should know."""
    other = POLICY.replace("small payments", "other").replace('"pay"', '"gone"')
    file.write_text(POLICY + other)
    said = says(["policy", "check", *TOOLS])
    assert "policy.toml (user, not accepted: it can only ask and deny)\n" in said.out
    assert "  allow  small payments (policy.toml:2): pay, to one of “Ada”, “Bo”, amount at most 20\n" in said.out
    assert "other (policy.toml:13): there is no tool gone here" in said.err
    assert run(["policy", "check", *TOOLS, "--json"]) == 0
    assert [rule["line"] for rule in json.loads(capsys.readouterr().out)["rules"]] == [2, 13]


@requirement("RULE-7", "HOOK-7")
def test_check_sends_nobody_to_turn_a_key_that_does_not_turn(file, says):
    """For Codex there is none, and the command for the other agents would be refused."""
    file.write_text(LS)
    said = says(["policy", "check"]).err
    assert "this tool must be asked about each time; Codex does not tell its hooks in which folder" in said
    assert "--standing" not in said


@requirement("RULE-7")
def test_check_says_of_a_rule_that_sums_a_secret_that_it_allows_nothing(file, home, says):
    """Each use would write down what the secret comes to."""
    manifest = home / "mine/pay/assistant_tool.json"
    facts = json.loads(manifest.read_text())
    for parameter in facts["parameters"]:
        parameter["secret"] = parameter["name"] == "amount"
    manifest.write_text(json.dumps(facts))
    file.write_text(POLICY.replace("[rule.where]", "limits = { sum = { amount = 50 } }\n[rule.where]"))
    said = says(["policy", "check", *TOOLS]).err
    assert "allows nothing of pay: it sums amount, which is secret, and the sum would tell it" in said


@requirement("RULE-7")
def test_check_finds_an_argument_that_no_tool_has(file, home, says):
    """Somebody who denies large payments and mistypes the argument would deny nothing, and rely on it."""
    slip = '[[rule]]\nname = "never large"\ntool = "pay"\ndecide = "deny"\nwhere = { amout = { min = 100 } }\n'
    file.write_text(slip + slip.replace("large", "there").replace('"pay"', '"pey"'))
    said = says(["policy", "check", *TOOLS]).err
    assert "never large (policy.toml:1): it never matches: pay has no argument amout; did you mean amount?" in said
    assert "never there (policy.toml:6): there is no tool pey here; did you mean pay?" in said
    file.write_text(slip.replace("amout", "amount"))
    assert says(["policy", "check", *TOOLS]).err == ""


@requirement("RULE-7")
def test_explain_counts_what_is_used_up_and_uses_nothing(file, says, capsys):
    """An allow that has nothing left is a question, and whoever asks about it hears so."""
    file.write_text(POLICY.replace('decide = "allow"', 'decide = "allow"\nlimits = { calls = 1 }'))
    assert run(["policy", "accept", *TOOLS, "--digest", digest_in(capsys)]) == 0
    explain = ["policy", "explain", "pay", "to=Ada", "amount=5", *TOOLS]
    for _ in range(2):
        assert says(explain).out.endswith("allow. small payments (policy.toml:2)\n")
    # Nor is anything written down.
    assert "there is nothing in this journal" in says(["journal", "verify"], WRONG_USAGE).err
    assert run(["call", "pay", "to=Ada", "amount=5", *TOOLS]) == 0
    capsys.readouterr()
    assert says(explain).out == "ask. the rule small payments (policy.toml:2) was for 1 call, and it is used up\n"


@requirement("RULE-9")
def test_what_a_rule_will_not_do_is_said_before_the_yes(file, home, says, capsys):
    """A person who agrees to a rule that allows nothing would be asked all the same, and wonder."""
    manifest = home / "mine/pay/assistant_tool.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"autoApprove": "exact"}))
    said = says(["policy", "accept", *TOOLS], NOT_ALLOWED).err
    note = "small payments (policy.toml:2): it allows nothing of pay: this tool takes a standing yes only for exact"
    assert 0 < said.index(note) < said.index("What these rules allow will happen without asking you.")
    digest = said.split("--digest ")[1].split()[0]
    assert run(["policy", "accept", *TOOLS, "--digest", digest]) == 0
    assert capsys.readouterr().out.endswith("Accepted. When a file or a tool changes, you are asked again.\n")


@requirement("RULE-7")
@pytest.mark.parametrize("text", ["", "# To come.\n"])
def test_check_says_of_an_empty_file_that_there_are_no_rules_in_it(file, text, says):
    """Nothing of it waits to be accepted."""
    file.write_text(text)
    assert says(["policy", "check", *TOOLS]).out == f"{file} (user, no rules in it)\n"


@requirement("RULE-9")
def test_a_file_that_allows_nothing_is_not_said_to(file, says):
    """A person who reads that something will happen without a question should not look for it in vain."""
    file.write_text('[[rule]]\nname = "never"\ntool = "pay"\ndecide = "deny"\n')
    said = says(["policy", "accept", *TOOLS], NOT_ALLOWED).err
    assert "These rules allow nothing: they ask and deny, and hold already." in said
    assert "without asking you" not in said


@requirement("RULE-7")
def test_check_says_where_files_would_be(home, says):
    """For somebody who has none yet."""
    assert "lastword.policy.toml" in says(["policy", "check"]).out


@requirement("RULE-4")
@pytest.mark.parametrize(
    "command", [["call", "pay", "to=Ada", "amount=5", *TOOLS], ["policy", "check"], ["run", "x.nuwa"]]
)
def test_nothing_starts_with_a_broken_policy(file, home, says, command):
    """In words: file, line, fact, hint."""
    (home / "x.nuwa").write_text("LET x = 1\n")
    file.write_text(POLICY.replace("decide", "decides"))
    assert "policy.toml:5: unknown field decides of rule\nhint: did you mean decide?" in says(command, WRONG_USAGE).err


@requirement("RULE-4", "RULE-9")
def test_the_doctor_names_the_rules_and_a_broken_file(file, capsys):
    """Nothing starts with it, and this is where somebody looks who does not know why."""
    rules = lambda: next(each for each in json.loads(capsys.readouterr().out) if each["what"] == "rules")  # noqa: E731
    run(["doctor", "--json"])
    assert rules() == {
        "what": "rules",
        "well": True,
        "found": f"{file}: 1 rule, not accepted: it can only ask and deny",
    }
    file.write_text(POLICY.replace("decide", "decides"))
    assert run(["doctor", "--json"]) == FAILED
    broken = rules()
    assert not broken["well"]
    assert "policy.toml:5: unknown field decides of rule; hint: did you mean decide?" in broken["found"]


@requirement("RULE-1")
def test_a_project_that_denies_is_heard_without_a_question(home, says, capsys):
    """Stricter is always believed."""
    (home / "lastword.policy.toml").write_text('[[rule]]\nname = "never"\ntool = "pay"\ndecide = "deny"\n')
    said = says(["call", "pay", "to=Ada", "amount=5", *TOOLS, "--auto-approve"], NOT_ALLOWED).err
    assert "the rule never (lastword.policy.toml:1) denies it. Asking again changes nothing" in said
    # What was asked for is remembered, as it is of a call that somebody was asked about.
    assert run(["calls", "--json"]) == 0
    [call] = json.loads(capsys.readouterr().out)
    assert (call["tool"], call["arguments"], call["status"]) == ("pay", {"to": "Ada", "amount": 5}, "denied")
    assert run(["show", call["call_id"]]) == 0
    assert 'asked for pay {"to":"Ada","amount":5}, which the rule never (lastword.policy.toml:1) denies\n' in (
        capsys.readouterr().out
    )


@requirement("CONF-2")
def test_a_tool_cannot_accept_a_policy(file, home):
    """An assistant that may run commands would accept whatever it wrote."""
    program = f"{sys.executable} -m lastword policy accept --tools mine --digest 00"
    environ = os.environ | {"LASTWORD_BELOW": "1"}
    done = subprocess.run(program.split(), env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert "this is for a person to decide" in done.stderr
    assert done.returncode == WRONG_USAGE


@requirement("RULE-7", "RULE-9")
def test_the_guides_walk_with_files_prints_what_the_guide_says(file, home, says, capsys):
    """docs/rules.md shows a check, a yes, a call and an explanation. They are run here, in that order."""
    guide = (Path(__file__).parents[2] / "docs/rules.md").read_text()
    walk = guide.split("## The same with files")[1].split("```text\n")[1].split("```")[0]
    commands = re.findall(r"^\$ lastword (.*)\n((?:(?!\$ ).*\n)*)", walk, re.MULTILINE)
    assert [command.split()[0] for command, _ in commands] == ["policy", "policy", "call", "policy"]
    file.write_text(guide.split('RULES = """\n')[1].split('"""')[0])
    code = home / "mine/pay/assistant_tool.py"
    code.write_text(code.read_text().replace("{params['to']}.", "{params['to']}"))
    digest = digest_in(capsys)
    for command, shown in commands:
        accepts = command == "policy accept"
        said = "".join(says([*command.split(), *TOOLS, *(["--digest", digest] if accepts else [])]))
        for line in shown.replace("/home/you/.local/share/lastword/policy.toml", str(file)).splitlines():
            if line != "…" and not line.startswith(("What these", "Type yes")):  # at a terminal
                assert re.sub(r"\([0-9a-f]{12}\)", "", line) in re.sub(r"\([0-9a-f]{12}\)", "", said)
