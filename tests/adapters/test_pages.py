"""The pages about other frameworks say what their programs print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from requirements import requirement
from warm import run_python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
COMPARISON = (ROOT / "docs" / "compare.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FRAMEWORKS = ["pydantic_ai", "openai_agents", "langchain"]


def run(*arguments: str) -> str:
    done = run_python(*arguments, cwd=ROOT, loads=["frameworks"])
    assert done.returncode == 0, done.stderr
    return done.stdout


@requirement("TOOL-70")
@pytest.mark.parametrize("place", range(len(FRAMEWORKS) + 1))
def test_every_program_of_the_page_prints_what_the_page_says(place, tmp_path):
    """Whoever copies one has an agent that asks."""
    assert len(PROGRAMS) == PAGE.count("```python") == len(FRAMEWORKS) + 1
    program, printed = PROGRAMS[place]
    (tmp_path / "program.py").write_text(program)
    assert run(str(tmp_path / "program.py")) == printed


@pytest.mark.parametrize("place", range(len(FRAMEWORKS)))
def test_the_examples_are_the_programs_of_the_page(place):
    """One text in two places, so that neither falls behind."""
    example = ROOT / "examples" / "frameworks" / f"with_{FRAMEWORKS[place]}.py"
    assert PROGRAMS[place][0] == example.read_text()


@requirement("TOOL-70")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_comparison_has_what_the_bench_prints(framework):
    """Without us the tool runs twice, and with us once: seen, and not claimed."""
    printed = run(f"bench/compare/with_{framework}.py")
    table = printed.split("\n\n", 1)[1]
    assert f"`python bench/compare/with_{framework}.py`" in COMPARISON
    assert table in COMPARISON
