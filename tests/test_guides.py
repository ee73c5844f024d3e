"""The guides, as their readers use them: every block is written to its file or run, and says what the page says.

A block after a line that ends in a file's name and a colon is that file. Any other Python block is a program by itself,
a shell block is run line by line; a text block right behind either is what it prints. A page has one folder.
"""

import json
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from lastword import cli
from lastword.tools.declaration import ToolFacts
from lastword.tools.guard import MARKER
from lastword.tools.manifest import parse_manifest
from requirements import requirement
from warm import run_warm

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = ["tools.md", "embedding.md", "cookbook.md", "rules.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LOADS = ["lastword.session", "lastword.testing", "lastword.store.sqlite"]
NAMED = re.compile(r"`([\w./-]+\.\w+)`:\s*\Z")


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    file: str | None
    prints: str | None


def blocks(page: str) -> list[Block]:
    """Every block of a page, in order, with the file it is or what it prints."""
    source = (DOCS / page).read_text()
    found = list(FENCE.finditer(source))
    result = []
    for number, match in enumerate(found):
        kind, text = match[1], match[2]
        if kind == "text":
            continue
        follows = found[number + 1] if number + 1 < len(found) else None
        is_output = follows is not None and follows[1] == "text" and not source[match.end() : follows.start()].strip()
        named = NAMED.search(source[: match.start()].rstrip())
        line = source.count("\n", 0, match.start()) + 1
        result.append(
            Block(line, kind, text, named[1] if named else None, follows[2] if is_output and follows else None)
        )
    return result


def run(command: list[str], folder: Path) -> str:
    """What a command prints. Its folder is new, and so is its memory."""
    environment = {name: value for name, value in os.environ.items() if name != MARKER}
    environment["XDG_DATA_HOME"] = str(folder / ".data")
    is_ours = command[0] == "lastword"
    done = run_warm(command[1:] if is_ours else command, folder, environment, loads=None if is_ours else LOADS)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@requirement("TOOL-72")
@pytest.mark.parametrize("page", GUIDES)
def test_every_example_runs_and_prints_what_the_page_says(page: str, tmp_path: Path):
    """A reader who copies an example gets what they read. One that does not run is not there."""
    there = blocks(page)
    assert there
    for block in there:
        place = f"{page}:{block.line}"
        if block.file is not None:
            (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.file).write_text(block.text)
            continue
        if block.kind == "python":
            (tmp_path / "example.py").write_text(block.text)
            printed = run(["-W", "error", "example.py"], tmp_path)
        else:
            assert block.kind == "sh", f"{place}: nobody knows how to try a {block.kind} block"
            lines = [re.sub(r"^pytest", "-m pytest", line.split("  #")[0]) for line in block.text.splitlines()]
            printed = "".join(run(line.split(), tmp_path) for line in lines)
        if block.prints is not None:
            assert printed == block.prints, place


def test_a_guide_names_every_fact_of_a_tool():
    """What can be said about a tool and is not taught is found by nobody."""
    guide = (DOCS / "tools.md").read_text()
    assert [name for name in ToolFacts.__annotations__ if f"`{name}`" not in guide and name != "id"] == []


@requirement("TOOL-72")
def test_a_parameter_that_the_guide_calls_a_path_is_one():
    """Written as the guide says, its folder can be granted; a text that is not said to be a path has none."""
    [written] = re.findall(r'`(\{"name".*"format": "path".*\})`', (DOCS / "tools.md").read_text())
    told = [json.loads(written), {"name": "note", "type": "string"}]
    manifest = parse_manifest(json.dumps({"id": "tidy", "displayName": "Tidy", "description": "x", "parameters": told}))
    assert [manifest.is_path(name) for name in ("folder", "note")] == [True, False]


ROOT = DOCS.parent
ALL = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Which test runs the blocks of a page and compares what they print.
RUN_BY = {
    "README.md": "tests/test_readme.py",
    "docs/agents.md": "tests/hook/test_agents_page.py",
    "docs/adapters.md": "tests/adapters/test_pages.py",
    "docs/api.md": "tests/server/test_serve.py",
    "docs/cookbook.md": "tests/test_guides.py",
    "docs/editor.md": "tests/editor/test_page.py",
    "docs/embedding.md": "tests/test_guides.py",
    "docs/faq.md": "tests/test_cli.py",
    "docs/journal.md": "tests/commands/test_memory_commands.py",
    "docs/mcp.md": "tests/mcp_both_ways/test_mcp_page.py",
    "docs/nuwascript.md": "tests/script/test_docs.py",
    "docs/operate.md": "tests/test_operate.py",
    "docs/page.md": "tests/test_operate.py",
    "docs/reference.md": "tests/test_public_names.py",
    "docs/rules.md": "tests/test_guides.py",
    "docs/satellites.md": "tests/flow/test_examples.py",
    "docs/tools.md": "tests/test_guides.py",
    "examples/README.md": "tests/test_examples.py",
}
# Those that no test can run as they stand, by their first words. Their commands are read all the same, see below.
NOT_RUN = {
    ("ARCHITECTURE.md", " who asks"): "a drawing",
    ("docs/adapters.md", "pip install"): "fetches packages; that there are such extras is looked at below",
    (
        "docs/api.md",
        "lastword serve",
    ): "a server that does not end; the test of the page starts one with the same options",
    ("docs/api.md", "lastword token"): "an id of their own for everybody",
    ("docs/editor.md", "lastword undo"): "an id of their own for everybody",
    ("docs/operate.md", "lastword token"): "a folder of the system's",
    ("docs/operate.md", "podman"): "a container, which needs another program",
    ("docs/page.md", "$ lastword up"): "what a terminal shows, cut short",
    ("docs/page.md", "$ lastword chat"): "what a terminal shows, cut short",
    ("docs/page.md", "ssh"): "another machine",
    ("docs/satellites.md", "lastword chat"): "chats, which do not end",
}


def every_block() -> list[tuple[str, str, str]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    found = [(str(page.relative_to(ROOT)), page.read_text()) for page in sorted(pages)]
    return [(page, match[1], match[2]) for page, text in found for match in ALL.finditer(text)]


def test_every_block_of_every_page_is_run_or_says_why_not():
    """A block that nobody tries is a promise that nobody keeps. What cannot be run is named, and nothing else is."""
    not_run = set()
    for page, _, text in every_block():
        found = [place for place in NOT_RUN if place[0] == page and text.startswith(place[1])]
        not_run.update(found)
        assert found or page in RUN_BY, f"{page}: nobody runs\n{text}"
    assert set(NOT_RUN) == not_run
    for page, test in RUN_BY.items():
        assert Path(page).name in (ROOT / test).read_text() or page == "docs/reference.md", page


COMMAND = re.compile(r"^(?:\$ |[A-Z_]+=\S+ )*(?:\./run|lastword) (.*?)(?:  +#.*)?$", re.MULTILINE)


@pytest.mark.parametrize(
    "line", sorted({found for _, kind, text in every_block() if kind in ("", "sh") for found in COMMAND.findall(text)})
)
def test_every_command_of_every_page_is_one_that_there_is(line: str):
    """Also those that are not run: a flag that was renamed is found here."""
    words = shlex.split(line, comments=True)
    command: click.Command = cli.lastword
    while isinstance(command, click.Group):
        context = click.Context(command)
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no {words[0]}"
        command, words = found, words[1:]
    command.make_parser(click.Context(command)).parse_args(words)


def test_every_extra_that_a_page_names_is_one_of_the_package():
    """`pip install 'lastword[…]'` must not fail for a name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {name for _, _, text in every_block() for name in re.findall(r"'lastword\[([\w-]+)\]'", text)}
    assert len(named) >= 3
    assert named <= set(extras)
