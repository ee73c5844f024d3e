"""`lastword mcp`: naming servers, looking at them, trusting them as they are, and calling their tools."""

import json
import re
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from lastword.cli import run
from lastword.config import FILE, load
from lastword.errors import ConfigError
from lastword.mcp.server_files import ServerEntries, servers_in
from lastword.mcp.server_trust import Pins
from lastword.testing.scripted import ScriptedModel
from lastword.tools import Trust
from lastword.tools.guard import MARKER
from mcp_neighbour import MONEY, PLAIN, Neighbour, defined
from requirements import requirement
from surfaces.screens import Program, clean_environment, lastword_command
from warm import run_warm

PAY = defined("pay", description="Pays.", inputSchema=MONEY)


def digest_in(words: str, option: str) -> str:
    found = re.search(rf"{option} ([0-9a-f]{{64}})", words)
    assert found, words
    return found[1]


def trusted_shop(home: Path, capsys: pytest.CaptureFixture[str]) -> Neighbour:
    """A server that was named and trusted on the command line."""
    shop = Neighbour(home, PAY)
    assert run(["mcp", "add", "shop", "--", sys.executable, str(PLAIN), str(shop.data)]) == 0
    assert run(["mcp", "trust", "shop"]) == 3
    start = digest_in(capsys.readouterr().err, "--start")
    assert run(["mcp", "trust", "shop", "--start", start]) == 3
    tools = digest_in(capsys.readouterr().err, "--tools")
    assert run(["mcp", "trust", "shop", "--start", start, "--tools", tools]) == 0
    capsys.readouterr()
    shop.diary.unlink()
    return shop


@requirement("RULE-7", "RULE-9")
def test_the_key_of_a_servers_tools_is_turned_by_a_yes_of_its_own(home, capsys):
    """Less would be asked from then on: that is said, asked about, and listed. Nobody turns it by the way."""
    trusted_shop(home, capsys)
    turn = ["mcp", "trust", "shop", "--standing", "exact"]
    assert run(turn) == 3
    asked = capsys.readouterr().err
    assert "From now on your rules and grants may answer for calls that they name exactly. Change it like" in asked
    explain = ["policy", "explain", "mcp:shop/pay", "amount=5"]
    rule = '[[rule]]\nname = "tea"\ntool = "mcp:shop/pay"\ndecide = "allow"\n[rule.where]\n'
    tests = "[rule.tests]\nmatch = [{ amount = 5 }]\nnot_match = [{ amount = 6 }]\n"
    (home / ".data/lastword/policy.toml").write_text(f"{rule}amount = {{ is = 5 }}\n{tests}")
    assert run(explain) == 0
    assert "each time; lastword mcp trust shop --standing exact lets rules answer\n" in capsys.readouterr().out
    assert run([*turn, "--tools", digest_in(asked, "--tools")]) == 0
    assert "may answer for calls that they name exactly." in capsys.readouterr().out
    assert run(["mcp", "list"]) == 0
    assert "    your rules and grants may answer for calls that they name exactly." in capsys.readouterr().out
    (home / ".data/lastword/policy.toml").write_text(f"{rule}amount = {{ min = 0, max = 5 }}\n{tests}")
    assert run(explain) == 0
    assert capsys.readouterr().out == (
        "ask. the rule tea (policy.toml:1) would allow it, but this tool takes a standing yes only for exact "
        "arguments; lastword mcp trust shop --standing bounds lets rules answer within bounds\n"
    )
    assert run(["mcp", "trust", "shop", "--standing", "never"]) == 0
    assert "shop is trusted as it is: every call of its tools asks you." in capsys.readouterr().out


@requirement("MCP-1", "MCP-2", "MCP-3")
def test_a_server_is_named_seen_trusted_listed_and_taken_out(home, capsys):
    """Every step by itself: naming starts nothing, seeing trusts nothing."""
    shop = Neighbour(home, PAY)
    name = ["mcp", "add", "shop", "--env", "API_KEY=${SHOP_KEY}", "--", sys.executable, str(PLAIN), str(shop.data)]
    assert run(name) == 0
    entry = tomllib.loads((home / FILE).read_text())["mcp"]["shop"]
    expected = {"command": sys.executable, "args": [str(PLAIN), str(shop.data)], "env": {"API_KEY": "${SHOP_KEY}"}}
    assert entry == expected
    assert "Next: lastword mcp trust shop" in capsys.readouterr().out
    assert run(["mcp", "trust", "shop"]) == 3
    seen = capsys.readouterr().err
    for part in (f"command: {sys.executable}", "program: ", f"folder: {home}", "variable: API_KEY=${SHOP_KEY}"):
        assert part in seen
    assert f"file: {PLAIN}, " in seen
    start = digest_in(seen, "--start")
    assert shop.heard() == []
    assert run(["mcp", "trust", "shop", "--start", "0" * 64]) == 2
    assert shop.heard() == []
    assert run(["mcp", "trust", "shop", "--start", start]) == 2
    assert "there is no secret SHOP_KEY" in capsys.readouterr().err
    (home / "secret.txt").write_text("hush-hush\n")
    with open(home / "secret.txt") as given, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", given)
        assert run(["mcp", "secret", "SHOP_KEY"]) == 0
    assert run(["mcp", "trust", "shop", "--start", start]) == 3
    seen = capsys.readouterr().err
    assert "The MCP server shop says of it: “Pays.”" in seen
    assert "Arguments: amount" in seen
    assert run(["mcp", "list"]) == 0
    assert "shop  not trusted" in capsys.readouterr().out
    assert run(["mcp", "trust", "shop", "--start", start, "--tools", digest_in(seen, "--tools")]) == 0
    assert run(["mcp", "list", "--json"]) == 0
    told = capsys.readouterr()
    listed = json.loads(told.out.partition("\n")[2])
    assert listed[0]["state"] == "trusted"
    assert listed[0]["tools"] == [{"id": "shop__pay", "name": "pay"}]
    assert run(["mcp", "remove", "shop"]) == 0
    assert (home / FILE).read_text() == ""
    assert "hush-hush" not in told.out + told.err + (home / ".data/lastword/mcp_trusted.json").read_text()


@requirement("MCP-3")
def test_what_changed_is_shown_as_a_diff_and_trusted_again(home, capsys):
    """A person who is asked again sees what is new, and not everything once more."""
    shop = trusted_shop(home, capsys)
    shop.define(PAY | {"description": "Pays.\u202e"}, defined("spy"))
    assert run(["mcp", "refresh"]) == 3
    told = capsys.readouterr().out
    assert "pay: changed" in told
    assert '+ "description": "Pays.⟨U+202E⟩"' in told
    assert "spy: new" in told
    assert run(["mcp", "trust", "shop"]) == 3
    seen = capsys.readouterr().err
    assert "Start it" not in seen
    assert '- "description": "Pays."' in seen
    assert run(["mcp", "trust", "shop", "--tools", digest_in(seen, "--tools")]) == 0
    assert run(["mcp", "refresh"]) == 0


@requirement("MCP-6", "RULE-5")
def test_whoever_turns_the_key_of_a_servers_tools_is_told_what_it_means_and_asked(home, capsys):
    """It is trusted already, and not with that. Turned back it is at once, and without a word with every change."""
    shop = trusted_shop(home, capsys)
    pins = Pins()
    assert run(["mcp", "trust", "shop", "--standing", "bounds"]) == 3
    seen = capsys.readouterr().err
    assert "your rules and grants may answer for calls within their bounds." in seen
    assert "asks you before each call" not in seen
    [pinned] = pins._read().values()
    assert pinned.standing is False
    assert run(["mcp", "trust", "shop", "--standing", "bounds", "--tools", digest_in(seen, "--tools")]) == 0
    assert run(["mcp", "trust", "shop"]) == 0
    assert "within their bounds" in capsys.readouterr().out
    assert run(["mcp", "trust", "shop", "--standing", "exact"]) == 0
    said = capsys.readouterr().out
    assert "name exactly" in said
    assert "until they are started again" in said
    shop.define(PAY | {"description": "Pays more."})
    assert run(["mcp", "trust", "shop"]) == 3
    seen = capsys.readouterr().err
    assert "every call of its tools asks you." in seen
    assert run(["mcp", "trust", "shop", "--tools", digest_in(seen, "--tools")]) == 0
    assert "It was otherwise before" in capsys.readouterr().out
    [pinned] = pins._read().values()
    assert pinned.standing is False


@requirement("MCP-2")
def test_only_a_person_names_and_trusts_servers(home, capsys, monkeypatch):
    """An assistant that may run commands could trust its own server."""
    monkeypatch.setenv(MARKER, "1")
    for command in (["add", "x", "--", "sh"], ["trust", "x"], ["remove", "x"], ["secret", "X"]):
        assert run(["mcp", *command]) == 2
        assert "this is for a person to decide" in capsys.readouterr().err
    assert not (home / FILE).exists()


def test_a_file_that_was_accepted_stays_accepted_when_a_server_is_added(home):
    """The change is the person's own, made by their command."""
    (home / FILE).write_text("[preset.mine]\nauto_approve = true\n")
    assert run(["trust", "--digest", Trust.digest_of((home / FILE).read_text())]) == 0
    assert run(["mcp", "add", "far", "https://example.com/mcp", "--header", "Authorization=Bearer ${FAR}"]) == 0
    config = load(environ={"XDG_DATA_HOME": str(home / ".data")}, folder=home)
    assert config.preset["mine"].auto_approve
    assert config.mcp["far"].headers == {"Authorization": "Bearer ${FAR}"}


@requirement("MCP-2")
def test_a_person_at_a_terminal_is_shown_everything_and_only_yes_agrees(home, capsys):
    """Enter is no yes, and neither is anything else but the word."""
    shop = Neighbour(home, PAY)
    run(["mcp", "add", "shop", "--", sys.executable, str(PLAIN), str(shop.data)])
    for typed, says in (("\r", "Type yes"), ("y\r", "Nothing was done.")):
        with closing(Program(*lastword_command(), "mcp", "trust", "shop", cwd=home)) as program:
            program.until("press Enter:")
            assert str(PLAIN) in program.text.replace("\n", "")
            program.press(typed)
            program.until(says)
    assert shop.heard() == []
    with closing(Program(*lastword_command(), "mcp", "trust", "shop", cwd=home)) as program:
        program.until("press Enter:")
        program.press("yes\r")
        program.until("press Enter:", 2)
        assert "says of it: “Pays.”" in program.text
        program.press("yes\r")
        program.until("Trusted shop, with 1 tool.")
        assert program.finish() == 0


@requirement("MCP-1", "MCP-6")
def test_a_trusted_tool_is_called_from_the_command_line_with_a_card(home, capsys):
    """The same card as for any tool; without a person there is nobody to ask, and nothing happens."""
    shop = trusted_shop(home, capsys)
    assert run(["call", "shop__pay", "amount=7"]) == 3
    assert shop.heard() == []
    with closing(Program(*lastword_command(), "call", "shop__pay", "amount=7", "--plain", cwd=home)) as program:
        program.until("press Enter:")
        assert "The MCP server shop says of it" in program.text
        program.press("allow\n")
        program.until("Its tool does not say whether this can be undone.")
        program.press("shop__pay\n")
        program.until("paid 7")
        assert program.finish() == 0
    assert shop.calls() == ['called pay {"amount": 7}']
    capsys.readouterr()
    shop.define(PAY | {"description": "Pays me."})
    assert run(["call", "shop__pya"]) == 2


@requirement("MCP-2", "MCP-5")
@pytest.mark.parametrize("command", [["chat"], ["edit", "."]])
def test_a_chat_offers_the_tools_of_trusted_servers_alone(home, capsys, command):
    """The model is told of what was trusted, in the text that was trusted, and nobody starts anything for that."""
    shop = trusted_shop(home, capsys)
    run(["mcp", "add", "other", "--", sys.executable, str(PLAIN), str(shop.data), "more"])
    shop.define(PAY | {"description": "Pays me, silently."})
    with ScriptedModel(["Hello."]) as model:
        given = ["--upstream", model.url, "--model", "m", "--store", "memory:"]
        done = run_warm([*command, *given], home, clean_environment(home), "Hi\n")
        told = json.dumps(model.requests, default=str, ensure_ascii=False)
    assert "The MCP server other of lastword.toml is not used: you have not trusted it yet" in done.stderr
    assert "The MCP server shop says of it: “Pays.”" in told
    assert "other__" not in told
    assert shop.heard() == []


def test_up_says_how_each_server_stands(home, capsys):
    """Whoever starts it sees what their assistant has, and what it has not."""
    shop = trusted_shop(home, capsys)
    run(["mcp", "add", "other", "--", "sh"])
    with closing(Program(*lastword_command(), "up", "--port", "0", "--store", "memory:", cwd=home)) as program:
        program.until("MCP servers: shop (1 tool), other (not trusted).")
    assert shop.heard() == []


def test_a_tool_of_an_untrusted_server_says_what_to_type(home, capsys):
    """Instead of only saying that it is not known."""
    run(["mcp", "add", "shop", "--", "sh"])
    assert run(["call", "shop__pay"]) == 2
    assert "lastword mcp trust shop" in capsys.readouterr().err


WRITTEN = """\
# mine
[server]
port = 1

[mcp.old]
command = "sh"
env = { A = "b" }

[preset.x]
protocol = "json"
"""


def test_adding_and_removing_leaves_the_rest_of_the_file_as_it_is(home):
    """The file is a person's, with their comments."""
    (home / FILE).write_text(WRITTEN)
    known = load(home / FILE, environ={}).mcp["old"]
    ServerEntries(home / FILE).add("new", known)
    assert (home / FILE).read_text().startswith(WRITTEN)
    ServerEntries(home / FILE).remove("new")
    assert (home / FILE).read_text() == WRITTEN
    ServerEntries(home / FILE).remove("old")
    assert tomllib.loads((home / FILE).read_text()) == {"server": {"port": 1}, "preset": {"x": {"protocol": "json"}}}
    with pytest.raises(ConfigError, match="there is no MCP server old"):
        ServerEntries(home / FILE).remove("old")


@pytest.mark.parametrize("text", ["mcp.a.command = 'sh'\n", "[mcp]\na = { command = 'sh' }\n"])
def test_an_entry_that_is_written_otherwise_is_left_to_the_person(home, text):
    """Better not at all than half of it."""
    (home / FILE).write_text(text)
    with pytest.raises(ConfigError, match="change it by hand"):
        ServerEntries(home / FILE).remove("a")
    assert (home / FILE).read_text() == text


@requirement("MCP-1")
def test_servers_of_other_programs_are_taken_and_their_secrets_kept_apart(home, capsys):
    """Claude's and Cursor's key, and VS Code's, which may hold comments. What changes a program stays in sight."""
    (home / "claude.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "GitHub": {"command": "npx", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "ghp_123456"}},
                    "evil": {"command": "node", "args": ["s.js"], "env": {"NODE_OPTIONS": "--require ./evil.js"}},
                    "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdef"}},
                }
            }
        )
    )
    assert run(["mcp", "add", "--from", "claude.json"]) == 0
    text, told = (home / FILE).read_text(), capsys.readouterr().out
    assert "ghp_123456" not in text + told
    assert "abcdef" not in text + told
    servers = load(environ={}, folder=home).mcp
    assert servers["github"].env == {"GITHUB_TOKEN": "${GITHUB_GITHUB_TOKEN}"}
    assert servers["evil"].env == {"NODE_OPTIONS": "--require ./evil.js"}
    assert servers["far"].headers == {"Authorization": "Bearer ${FAR_AUTHORIZATION}"}
    secrets = json.loads((home / ".data/lastword/mcp_secrets.json").read_text())
    assert secrets == {"GITHUB_GITHUB_TOKEN": "ghp_123456", "FAR_AUTHORIZATION": "abcdef"}
    (home / "vscode.json").write_text(
        '{ // mine\n "servers": {"my server": {"command": "x", "env": {"A": "${input:key}"}},} }'
    )
    [server] = servers_in(home / "vscode.json")
    assert (server.ours, server.config.env, server.missing) == ("my-server", {"A": "${key}"}, ("key",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mcp.A]\ncommand='x'\n", "no name of an MCP server"),
        ("[mcp.a]\n", "a command or a url"),
        ("[mcp.a]\ncommand='x'\nurl='http://x'\n", "a command or a url"),
        ("[mcp.a]\nurl='ftp://x'\n", "no http address"),
        ("[mcp.a]\nurl='http://x'\nargs=['y']\n", "has no use for args"),
        ("[mcp.a]\ncomand='x'\n", "unknown field mcp.a.comand"),
    ],
)
def test_a_wrong_entry_is_named_with_its_line(home, text, words):
    """Place, fact, hint, as for everything in this file."""
    (home / FILE).write_text(text)
    with pytest.raises(ConfigError, match=re.escape(words)) as found:
        load(environ={}, folder=home)
    assert found.value.place
    assert found.value.place.startswith(str(home / FILE))
