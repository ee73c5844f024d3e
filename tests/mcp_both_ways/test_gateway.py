"""`lastword mcp wrap` and `unwrap`: a client's servers behind one entry of ours, and back again, byte for byte."""

import json
import re
from pathlib import Path

import pytest

from lastword.cli import run
from lastword.config import load
from requirements import requirement

CLAUDE = """{
    "mcpServers": {
        "GitHub": {"command": "npx", "args": ["-y", "gh"],   "env": {"GITHUB_TOKEN": "ghp_123456"}},
        "files": {"command": "npx", "args": ["files", "."]}
    },
  "globalShortcut" : "x"
}
"""
VSCODE = """{
\t// mine
\t"servers": {
\t\t"far": {"type": "http", "url": "https://example.com/mcp"},
\t},
\t"inputs": []
}"""
CURSOR = '{"mcpServers":{"a b":{"command":"x","cwd":"sub"},"a-b":{"command":"y"}}}'


def agreed(command: str, file: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Look at the change, and agree to exactly that. What was said meanwhile."""
    assert run(["mcp", command, file]) == 3
    seen = capsys.readouterr().err
    found = re.search(r"--apply ([0-9a-f]{64})", seen)
    assert found, seen
    assert run(["mcp", command, file, "--apply", found[1]]) == 0
    told = capsys.readouterr()
    return seen + told.out + told.err


@requirement("MCP-30")
@pytest.mark.parametrize(
    ("name", "text", "servers"),
    [
        ("claude_desktop_config.json", CLAUDE, {"github", "files"}),
        (".mcp.json", CLAUDE, {"github", "files"}),
        (".vscode/mcp.json", VSCODE, {"far"}),
        (".cursor/mcp.json", CURSOR, {"a-b", "a-b-2"}),
    ],
)
def test_a_file_is_wrapped_and_unwrapped_byte_for_byte(home, capsys, name, text, servers):
    """One entry stands where all were; what stood around them stays, and unwrapping leaves no trace."""
    file = home / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    told = agreed("wrap", name, capsys)
    assert "ghp_123456" not in told
    wrapped = file.read_text()
    key = "servers" if "vscode" in name else "mcpServers"
    around = re.sub(r"//.*|,(?=\s*})", "", wrapped)
    [(entry, way)] = json.loads(around)[key].items()
    assert (entry, way["args"][:6]) == ("lastword", ["-P", "-m", "lastword", "mcp", "serve", "--config"])
    assert wrapped.startswith(text.partition(f'"{key}"')[0])
    assert wrapped.endswith(text[-12:].partition("},")[2])
    config = load(Path(way["args"][6]), environ={})
    assert set(config.mcp) == servers
    assert "ghp_123456" not in Path(way["args"][6]).read_text() + wrapped
    assert file.with_name(file.name + ".before-lastword").read_text() == text
    assert run(["mcp", "unwrap", name]) == 0
    assert file.read_text() == text


@requirement("MCP-30")
def test_nothing_is_written_before_somebody_agreed_to_exactly_that(home, capsys):
    """Looking changes nothing, a wrong digest changes nothing, and neither does one for an older file."""
    file = home / ".mcp.json"
    file.write_text(CLAUDE)
    assert run(["mcp", "wrap", ".mcp.json"]) == 3
    digest = re.search(r"--apply ([0-9a-f]{64})", capsys.readouterr().err)
    assert run(["mcp", "wrap", ".mcp.json", "--apply", "0" * 64]) == 2
    assert file.read_text() == CLAUDE
    file.write_text(CLAUDE.replace("files", "other"))
    assert digest
    assert run(["mcp", "wrap", ".mcp.json", "--apply", digest[1]]) == 2
    assert not (home / ".data" / "lastword" / "gateways").exists()


@requirement("MCP-30")
def test_rules_of_the_client_that_would_not_match_any_more_are_in_the_way(home, capsys):
    """A rule that denies a tool would silently deny nothing. Once it is carried over, the file may be wrapped."""
    (home / ".mcp.json").write_text(CLAUDE)
    rules = home / ".claude" / "settings.json"
    rules.parent.mkdir()
    rules.write_text(json.dumps({"permissions": {"deny": ["mcp__GitHub__delete_repo", "mcp__files", "Bash"]}}))
    assert run(["mcp", "wrap", ".mcp.json"]) == 2
    told = capsys.readouterr().err
    assert "mcp__GitHub__delete_repo in permissions.deny" in told
    assert "mcp__lastword__github__delete_repo would be its new name" in told
    assert "mcp__files in permissions.deny" in told
    assert (home / ".mcp.json").read_text() == CLAUDE
    rules.write_text(
        json.dumps(
            {
                "permissions": {
                    "deny": ["mcp__GitHub__delete_repo", "mcp__lastword__github__delete_repo"],
                    "ask": ["mcp__files", "mcp__lastword__files__*"],
                }
            }
        )
    )
    agreed("wrap", ".mcp.json", capsys)


@requirement("MCP-30")
@pytest.mark.parametrize("more", [{"disabledTools": ["rm"]}, {"alwaysAllow": ["x"]}, {"disabled": True}])
def test_what_an_entry_says_beside_the_way_is_not_lost_in_silence(home, capsys, more):
    """It may be a restriction, which would not hold behind us."""
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x"} | more}}))
    assert run(["mcp", "wrap", ".mcp.json"]) == 2
    assert "which would be lost behind lastword" in capsys.readouterr().err


@requirement("MCP-30", "MCP-31")
def test_a_file_that_was_edited_since_is_merged_with_the_change_shown(home, capsys, monkeypatch):
    """What came since stays. And doctor names it, since it stands outside of the gateway."""
    file = home / ".mcp.json"
    file.write_text(CLAUDE)
    agreed("wrap", ".mcp.json", capsys)
    wrapped = json.loads(file.read_text())
    wrapped["mcpServers"]["new"] = {"command": "z"}
    file.write_text(json.dumps(wrapped, indent=2))
    run(["doctor", "--json", "--store", "memory:"])
    found = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert found[f"MCP client {file}"] == {
        "what": f"MCP client {file}",
        "well": False,
        "found": "outside of the gateway: new",
    }
    assert run(["mcp", "unwrap", ".mcp.json"]) == 3
    told = capsys.readouterr().err
    assert "was edited since it was wrapped" in told
    digest = re.search(r"--apply ([0-9a-f]{64})", told)
    assert digest
    assert run(["mcp", "unwrap", ".mcp.json", "--apply", digest[1]]) == 0
    assert json.loads(file.read_text()) == {
        "mcpServers": json.loads(CLAUDE)["mcpServers"] | {"new": {"command": "z"}},
        "globalShortcut": "x",
    }


@requirement("MCP-30")
def test_wrapping_trusts_nothing(home, capsys):
    """Each server still waits to be looked at."""
    (home / ".mcp.json").write_text(CLAUDE)
    told = agreed("wrap", ".mcp.json", capsys)
    config = re.search(r"lastword mcp trust github --config (\S+)", told)
    assert config
    assert run(["mcp", "list", "--config", config[1], "--json"]) == 0
    assert {server["state"] for server in json.loads(capsys.readouterr().out)} == {"not trusted"}


def test_a_file_that_was_never_wrapped_is_not_unwrapped(home, capsys):
    """There is nothing to restore."""
    (home / ".mcp.json").write_text(CLAUDE)
    assert run(["mcp", "unwrap", ".mcp.json"]) == 2
    assert "was not wrapped by lastword" in capsys.readouterr().err


@requirement("MCP-30")
@pytest.mark.parametrize(
    "text",
    [
        '{\r\n  "mcpServers": {\r\n    "a": {"command": "x"}\r\n  }\r\n}\r\n',
        '\ufeff{"mcpServers": {"a": {"command": "x", "args": null, "env": null}}}',
        '{\n  "servers": {\n    "a": {"command": "x"}, // the last\n  }, /* and this */\n}',
        '{ // old\r  "mcpServers": {"a": {"command": "x"}}\r}',
        '{"note": "\\"mcpServers\\": {", /* "mcpServers": { */ "mcpServers"/**/:/*{*/{"a": {"command": "x"}}/*}*/}',
    ],
)
def test_odd_files_are_wrapped_and_unwrapped_byte_for_byte(home, capsys, text):
    """Line ends of Windows and of old, a mark of the encoding, comments in every place, commas before them."""
    file = home / ".mcp.json"
    file.write_bytes(text.encode())
    agreed("wrap", ".mcp.json", capsys)
    wrapped = file.read_bytes().decode()
    assert wrapped != text
    assert "\r\n" not in text or "\n" not in wrapped.replace("\r\n", "")
    assert run(["mcp", "unwrap", ".mcp.json"]) == 0
    assert file.read_bytes() == text.encode()


@requirement("MCP-30")
def test_a_link_stays_a_link(home, capsys):
    """Settings often lie in another folder, with links to them."""
    (home / "real.json").write_text(CLAUDE)
    (home / ".mcp.json").symlink_to(home / "real.json")
    agreed("wrap", ".mcp.json", capsys)
    assert '"lastword"' in (home / "real.json").read_text()
    assert run(["mcp", "unwrap", ".mcp.json"]) == 0
    assert ((home / ".mcp.json").is_symlink(), (home / "real.json").read_text()) == (True, CLAUDE)


@requirement("MCP-30", "MCP-31")
def test_servers_that_the_file_names_elsewhere_are_named(home, capsys):
    """Claude Code keeps those of single projects deep in its file. They would be reached past lastword, unseen."""
    inner = {"mcpServers": {"inner": {"command": "x"}}, "allowedTools": []}
    content = {"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": inner}, "servers": {"b": {"url": "http://x"}}}
    (home / ".claude.json").write_text(json.dumps(content))
    told = agreed("wrap", ".claude.json", capsys)
    assert "Stays outside: inner (projects, /p)" in told
    assert "Stays outside: b (servers)" in told
    run(["doctor"])
    assert "outside of the gateway: b (servers), inner (projects, /p)" in capsys.readouterr().out


@requirement("MCP-30")
def test_folders_of_the_client_are_put_in_and_other_variables_refused(home, capsys):
    """Nobody expands them behind lastword: a server would be given the words themselves."""
    file = home / ".vscode" / "mcp.json"
    file.parent.mkdir()
    entry = {"command": "node", "args": ["${workspaceFolder}/s.js"], "env": {"AT": "${userHome}", "K": "${input:k}"}}
    file.write_text(json.dumps({"servers": {"a": entry}}))
    told = agreed("wrap", ".vscode/mcp.json", capsys)
    way = load(Path(json.loads(file.read_text())["servers"]["lastword"]["args"][6]), environ={}).mcp["a"]
    assert (way.args, way.env) == ([f"{home}/s.js"], {"AT": str(home), "K": "${k}"})
    assert "lastword mcp secret k" in told
    assert run(["mcp", "unwrap", ".vscode/mcp.json"]) == 0
    for other in ({"command": "${BIN:-node}"}, {"command": "x", "args": ["${KEY}"]}, {"url": "http://${HOST}/"}):
        file.write_text(json.dumps({"servers": {"a": other}}))
        assert run(["mcp", "wrap", ".vscode/mcp.json"]) == 2
        assert "would not be put in" in capsys.readouterr().err


@requirement("MCP-30")
@pytest.mark.parametrize(
    ("rule", "new"),
    [
        ("mcp__my_files__read", "mcp__lastword__myfiles_read_"),
        ("mcp__my_files", "mcp__lastword__myfiles_*"),
        ("mcp__my_files__*", "mcp__lastword__myfiles_*"),
        ("mcp__a__b__read", "mcp__lastword__ab_read_"),
    ],
)
def test_rules_are_found_as_the_client_writes_the_names(home, capsys, rule, new):
    """A blank is an underscore there, and a name may hold two of them."""
    servers = {"my files": {"command": "x"}, "a__b": {"command": "x"}}
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": [rule]}}))
    assert run(["mcp", "wrap", ".mcp.json"]) == 2
    assert f"{rule} in permissions.deny" in (told := capsys.readouterr().err)
    assert new in told


@requirement("MCP-30")
def test_a_file_whose_servers_moved_since_is_left_as_it_is(home, capsys):
    """What was behind us has no place to come back to; the person is told where it lies."""
    file = home / "mcp.json"
    file.write_text('{"servers": {"a": {"command": "x"}}}')
    agreed("wrap", "mcp.json", capsys)
    file.write_text('{"mcpServers": {"lastword": {"command": "x"}}}')
    assert run(["mcp", "unwrap", "mcp.json"]) == 2
    assert "mcp.json.before-lastword" in capsys.readouterr().err
