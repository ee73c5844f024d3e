"""docs/editor.md is true: its example prints what it says, its script checks, its table is complete."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lastword import ProjectEditor, ToolRegistry, check, editor_tools
from lastword.call import changes
from lastword.config import load
from lastword.editor import MAX_FILE_BYTES, diff, lint

TEXT = (Path(__file__).parents[2] / "docs" / "editor.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("program", "printed"), list(zip(blocks("python"), blocks("text"), strict=True)))
def test_an_example_prints_what_the_page_says(tmp_path: Path, program: str, printed: str):
    """Whoever reads it copies it first."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed


def test_the_script_is_one_that_would_run():
    """Checked against the real tools, with nothing to complain about."""
    registry = ToolRegistry()
    editor_tools(registry)
    (script,) = blocks("nuwa")
    assert check(script, registry) == []


def test_the_table_names_every_tool_and_whether_it_asks():
    """In the order in which a model is told of them."""
    registry = ToolRegistry()
    told = re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \|$", TEXT, re.MULTILINE)
    assert told == [(t.name, "yes" if t.manifest.require_approval else "no") for t in editor_tools(registry)]


def test_the_limits_are_the_ones_that_hold():
    """Numbers in a page grow old."""
    assert f"at most {MAX_FILE_BYTES // 1_000_000} MB each" in TEXT
    assert f"{changes.MAX_CALL_BYTES // 1_000_000} MB for one call" in TEXT
    assert f"longer than {lint.LINT_TIMEOUT_SECONDS} seconds" in TEXT
    assert f"larger than {MAX_FILE_BYTES // 1_000_000} MB" in TEXT
    assert f"longer than {diff.MAX_LINE_CHARACTERS:,} characters" in TEXT


def test_the_configuration_is_one_that_counts(tmp_path: Path):
    """When it is named. As it stands it would not be taken from a folder."""
    (text,) = blocks("toml")
    (tmp_path / "mine.toml").write_text(text)
    private = load(tmp_path / "mine.toml", environ={}).editor.private
    why = ProjectEditor(tmp_path, private=private).privacy()
    assert [why(path) is None for path in (".env", ".env.example", "keys/a", "b.secret")] == [False, True, False, False]
