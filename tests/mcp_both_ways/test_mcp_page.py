"""docs/mcp.md, as its readers use it: its server is named, trusted and called, and everything else is tried."""

import json
import os
import re
import shlex
import tomllib
from contextlib import closing
from pathlib import Path

from lastword.config import load
from requirements import requirement
from surfaces.screens import Program, lastword_command, piped
from warm import warm_command

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "mcp.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def with_python(folder: Path) -> str:
    """A path on which `python` is one that has loaded the SDK."""
    python = folder / "bin" / "python"
    if not python.exists():
        python.parent.mkdir()
        command = shlex.join(warm_command("--loads=mcp.server.mcpserver,mcp.server.stdio"))
        python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        python.chmod(0o700)
    return f"{python.parent}:{os.environ['PATH']}"


def told(*words: str, cwd: Path) -> str:
    """What a command of the page prints, on a terminal's two streams together."""
    done = piped(*words, cwd=cwd, PATH=with_python(cwd))
    return done.stdout + done.stderr


def agreed(*words: str, cwd: Path) -> str:
    """The same command until it is satisfied, with each digest that it asks for."""
    given: list[str] = []
    for _ in range(3):
        said = told(*words, *given, cwd=cwd)
        found = re.search(r"(--\w+) ([0-9a-f]{64})", said)
        if found is None:
            return said
        given += [found[1], found[2]]
    raise AssertionError(said)


@requirement("MCP-1")
def test_every_example_of_the_page_works(tmp_path):
    """A reader who copies them has a server behind a card after three commands."""
    blocks = [(match[1], match[2]) for match in FENCE.finditer(PAGE)]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "sh"}}}')
    tried = 0
    for kind, text in blocks:
        for line in text.splitlines() if kind == "sh" else ():
            words = line.split()
            tried += 1
            if words[0] == "pip":
                assert words[2].strip("'").removeprefix("lastword[").removesuffix("]") in extras
            elif words[1] == "call":
                command = [*lastword_command(), *words[1:], "--plain"]
                with closing(Program(*command, cwd=tmp_path, PATH=with_python(tmp_path))) as program:
                    program.until("press Enter:")
                    assert "The MCP server clock says of it: “Rings at a time of day.”" in program.text
                    program.press("allow\n")
                    program.until("Its tool does not say whether this can be undone.")
                    program.press("clock__set_alarm\n")
                    program.until("the alarm rings at 07:30.")
            elif words[2] in ("trust", "wrap"):
                said = agreed(*words[1:], cwd=tmp_path)
                assert f"{words[2].capitalize().replace('Wrap', 'Wrappe')}" in said, said
            else:
                said = told(*words[1:], cwd=tmp_path)
                assert "clock" in said, said
        if kind == "python":
            (tmp_path / "clock.py").write_text(text)
        elif kind == "toml":
            (tmp_path / "other.toml").write_text(text)
            assert load(tmp_path / "other.toml", environ={}).mcp["github"].env == {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}
        elif kind == "json":
            args = json.loads(text)["mcpServers"]["lastword"]["args"]
            assert piped(*args[:2], "--help", cwd=tmp_path).returncode == 0
    assert tried == 6


def test_the_page_names_every_command():
    """What is not on it is found by nobody."""
    shown = piped("mcp", "--help", cwd=ROOT).stdout
    commands = re.findall(r"^  ([a-z]+)  ", shown, re.MULTILINE)
    assert len(commands) >= 9
    assert [name for name in commands if f"lastword mcp {name}" not in PAGE] == []
