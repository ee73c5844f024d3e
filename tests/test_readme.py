"""The README is true: its example prints what it says, its commands work as given, its links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return [
        body
        for fence, body in re.findall(r"^```(.*?)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
        if fence == language
    ]


def test_the_example_prints_what_the_readme_says(tmp_path):
    """A newcomer copies it first."""
    (example,) = blocks("python")
    (printed,) = blocks("")
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr == ""
    assert done.stdout == printed


def test_every_command_works_as_it_stands(tmp_path):
    """In one folder, in the order of the page, with nobody at a terminal. `./test` is what runs this test."""
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "data"), "NO_COLOR": "1"}
    commands = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    assert ["./test"] in commands
    ran = [command for command in commands if command != ["./test"]]
    assert len(ran) >= 4
    for command in ran:
        assert command[0] == "./run"
        done = subprocess.run(
            [ROOT / "run", *command[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert "Hello, world!" in done.stdout


def test_every_link_of_the_pages_leads_to_a_file():
    """A page that points nowhere was not read by who wrote it."""
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
