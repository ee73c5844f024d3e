"""The README is true: its example prints what it says, and its commands work as given."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from contextlib import closing
from pathlib import Path

from surfaces.screens import Program
from warm import run_python

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
    done = run_python("-c", example, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout == printed


def commands() -> list[list[str]]:
    return [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]


def environment(folder: Path, **more: str) -> dict[str, str]:
    return os.environ | {"XDG_DATA_HOME": str(folder / "data"), "NO_COLOR": "1"} | more


def test_every_command_works_as_it_stands(tmp_path):
    """In one folder, in the order of the page, with nobody at a terminal. `./test` is what runs this test."""
    assert ["./test"] in commands()
    assert {command[0] for command in commands()} == {"pip", "lastword", "./run", "./test"}
    ran = [command for command in commands() if command[0] == "./run"]
    assert len(ran) == 3
    for command in ran:
        done = subprocess.run(
            [ROOT / "run", *command[1:]],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        # The tool is behind a card, and here nobody can be asked.
        code = 3 if command[1] == "call" else 0
        assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
    assert "it needs a person's approval, and there is nobody to ask" in done.stderr


def test_the_first_tool_shows_its_card_and_runs_after_a_yes(tmp_path):
    """The same commands, at a terminal, as a newcomer types them."""
    _, made, called = [command for command in commands() if command[0] == "./run"]
    assert [made[1:3], called[1:2]] == [["new", "tool"], ["call"]]
    for words in (made[1:], ["test"]):
        there = environment(tmp_path)
        subprocess.run([ROOT / "run", *words], cwd=tmp_path, env=there, capture_output=True, check=True)
    data = str(tmp_path / "data")
    with closing(Program(str(ROOT / "run"), *called[1:], cwd=tmp_path, XDG_DATA_HOME=data)) as program:
        program.until("The assistant wants to greet world.")
        program.until("[a] Greet")
        program.press("a")
        # What it does is still to be written, so it does not say whether that can be undone.
        program.type_by_hand("allow", "Type allow and press Enter to go on: ")
        program.until("Hello, world!")
        assert program.finish() == 0


def test_a_tool_made_in_the_clone_is_not_checked_with_it(tmp_path):
    """The page says to make one, in this very folder, and to run `./test`. A newcomer's style is their own."""
    for name in (".gitignore", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".git").mkdir()  # Ruff goes by the names that git leaves out only where there is a repository.
    theirs = tmp_path / "tools" / "hello" / "assistant_tool.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("import os ; x = open('a')\n")
    for check in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *check, "."]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_command_is_there_after_installing_from_a_clone(tmp_path):
    """In an environment of its own, which borrows the dependencies from the present one: nothing is fetched."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text("\n".join(place for place in sys.path if place.endswith("site-packages")))
    pip = python.with_name("pip")
    pip.write_text(f"#!{python}\nfrom pip._internal.cli.main import main\nraise SystemExit(main())\n")
    pip.chmod(0o755)
    # The setting is the opposite of its name: a zero builds with what is there.
    alone = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    there = environment(tmp_path, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}", **alone)
    ran = [command for command in commands() if command[0] in ("pip", "lastword")]
    assert ran[0] == ["pip", "install", "."]
    assert len(ran) >= 2
    for command in ran:
        assert shutil.which(command[0], path=there["PATH"]) == str(python.parent / command[0])
        done = subprocess.run(
            [python.parent / command[0], *command[1:]], cwd=ROOT, env=there, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    where = subprocess.run([python, "-c", "import lastword; print(lastword.__file__)"], capture_output=True, text=True)
    assert where.stdout.startswith(str(site))


def test_the_versions_that_were_tried_are_those_of_the_package():
    """A version that is claimed in one place only was not tried."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(package["classifiers"]))
    (sentence,) = re.findall(r"pass with\s+CPython (.*?) on Linux", TEXT)
    assert re.findall(r"(3\.\d+)\.\d+", sentence) == claimed
    assert package["requires-python"] == f">={claimed[0]}"
    assert f"Python {claimed[0]} or newer" in TEXT
