"""`lastword new tool`: what it writes runs at once, whoever runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lastword import ToolRegistry
from lastword.author import run_tool_tests
from lastword.author.scaffold import NewTool
from lastword.cli import run
from lastword.tools.folder import ToolFolder
from lastword.tools.manifest import Effect
from requirements import requirement
from surfaces.screens import clean_environment, piped

VARIANTS = {
    "free": NewTool("hello", "Greets.", False, "none"),
    "approval": NewTool("hello", "Greets.", True, None),
    "editor": NewTool("hello", "Adds a line.", True, "reversible", editor=True),
}


@requirement("TOOL-10")
def test_three_commands_from_nothing_to_a_running_tool(tmp_path: Path) -> None:
    """The newcomer's first minute, as it also happens in a pipe: new, test, call."""
    made = piped("new", "tool", "hello", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "lastword call hello" in made.stdout
    tested = piped("test", cwd=tmp_path)
    assert (tested.returncode, tested.stderr) == (0, "")
    called = piped("call", "hello", cwd=tmp_path)
    assert (called.returncode, called.stdout) == (3, "")
    assert "it needs a person's approval, and there is nobody to ask" in called.stderr


@requirement("TOOL-10")
@pytest.mark.parametrize("flags", [[], ["--yes"], ["--effect", "irreversible"], ["--description", "Reads."]])
def test_a_new_tool_asks_unless_its_author_says_otherwise(flags: list[str], tmp_path: Path) -> None:
    """Also where no terminal is there to answer the question: what somebody makes of it later may do anything."""
    assert piped("new", "tool", "hello", *flags, cwd=tmp_path).returncode == 0
    assert ToolFolder(tmp_path / "tools" / "hello").manifest().require_approval


@requirement("TOOL-10")
def test_a_tool_that_asks_nobody_is_made_by_saying_so(tmp_path: Path) -> None:
    """And runs in a pipe."""
    made = piped("new", "tool", "hello", "--no-approval", cwd=tmp_path)
    assert "It runs without asking anybody." in made.stdout
    called = piped("call", "hello", cwd=tmp_path)
    assert (called.returncode, called.stdout, called.stderr) == (0, "Hello, world!\n", "")


@requirement("TOOL-10")
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_passes_its_own_tests(variant: str, tmp_path: Path) -> None:
    """A tool that begins broken teaches nothing."""
    files = VARIANTS[variant].write(tmp_path)
    assert [file.name for file in files] == ["assistant_tool.json", "assistant_tool.py", "test_hello.py"]
    results = run_tool_tests(tmp_path)
    assert [result for result in results if not result.passed] == []
    assert sum(result.name.startswith("test_") for result in results) >= 2
    [tool] = ToolRegistry().load(tmp_path)
    assert tool.manifest.require_approval == VARIANTS[variant].approval
    assert tool.manifest.script_editor_only == VARIANTS[variant].editor


@requirement("TOOL-10", "TOOL-50")
def test_the_tests_of_two_tools_also_pass_in_one_run_of_pytest(tmp_path: Path) -> None:
    """Two files called assistant_tool.py must not be taken for one."""
    VARIANTS["free"].write(tmp_path)
    NewTool("second", "Greets.", True, None).write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "5 passed" in done.stdout, done.stdout


@requirement("TOOL-10")
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_code_explains_when_approval_is_required(variant: str, tmp_path: Path) -> None:
    """The rule belongs where the author is when the tool begins to do more."""
    VARIANTS[variant].write(tmp_path)
    assert NewTool.WHEN_APPROVAL in (tmp_path / "hello" / "assistant_tool.py").read_text()
    for reason in ("private data", "permission", "deletes files", "cannot be undone", "understand first"):
        assert reason in NewTool.WHEN_APPROVAL


@pytest.mark.parametrize(
    ("flags", "approval", "effect"),
    [
        ([], True, None),
        (["--approval"], True, None),
        (["--approval", "--effect", "irreversible"], True, "irreversible"),
        (["--no-approval"], False, "none"),
        (["--editor"], True, "reversible"),
    ],
)
def test_flags_answer_the_questions(
    flags: list[str], approval: bool, effect: Effect | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a script says with flags a person is asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run(["new", "tool", "hello", "--yes", "--description", "Does it.", *flags]) == 0
    manifest = ToolFolder(tmp_path / "tools" / "hello").manifest()
    assert (manifest.require_approval, manifest.effect, manifest.description) == (approval, effect, "Does it.")


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is taken is refused, and what is there stays as it is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools" / "hello").mkdir(parents=True)
    (tmp_path / "tools" / "hello" / "mine.txt").write_text("mine")
    assert run(["new", "tool", "hello", "--yes"]) == 2
    assert [path.name for path in (tmp_path / "tools" / "hello").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "2x", "tidy-notes", "x" * 65, "naïve", "a b", "END", "true"])
def test_a_name_that_cannot_be_an_id_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it would leave the folder."""
    monkeypatch.chdir(tmp_path)
    assert run(["new", "tool", name, "--yes"]) == 2
    assert list(tmp_path.rglob("*.json")) == []


def test_a_description_with_quotation_marks_is_still_a_manifest(tmp_path: Path) -> None:
    """What a person types goes into JSON, not into text around it."""
    NewTool("hello", 'Says "hi" {braces}\nand more', False, "none").write(tmp_path)
    assert json.loads((tmp_path / "hello" / "assistant_tool.json").read_text())["description"].startswith('Says "hi"')
    assert all(result.passed for result in run_tool_tests(tmp_path))
