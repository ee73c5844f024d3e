"""docs/benchmarks.md says what the benches found, and nothing that they did not."""

import asyncio
import json
import os
import re
import runpy
from pathlib import Path

import pytest

import lastword
from requirements import requirement
from warm import run_python

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
# Parts of other benches, not programs of their own.
PARTS = {"engine", "figures", "habits", "obedient", "peers", "report", "tasks", "version", "workloads"}


@pytest.fixture
def bench(monkeypatch):
    """The modules of the folder, found as they find each other when they are run."""
    monkeypatch.syspath_prepend(BENCH)
    return lambda name: runpy.run_path(str(BENCH / f"{name}.py"))


def test_the_page_is_what_the_results_say(bench):
    """Generated, committed, compared. `python bench/report.py` writes it again, and so does LASTWORD_WRITE_GOLDEN=1."""
    page = bench("report")["generate"]()
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        PAGE.write_text(page)
    assert page == PAGE.read_text()


def test_every_bench_has_a_result_and_a_section(bench):
    """A bench that nobody ran proves nothing; a result without its bench cannot be repeated."""
    programs = {path.stem for path in BENCH.glob("*.py")} - PARTS
    assert {path.stem for path in (BENCH / "results").glob("*.json")} == programs
    assert set(bench("report")["TITLES"]) == programs


def test_every_result_says_where_it_was_measured():
    """A figure without its machine, its Python and its load is hearsay. Whose machine it was is nobody's business."""
    for path in (BENCH / "results").glob("*.json"):
        kept = json.loads(path.read_text())
        assert re.fullmatch(r"CPython 3\.\d+\.\d+, \w+ \w+, \d+ cores \(.+\)", kept["where"]), path
        assert len(kept["load"]) == 2
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
        assert any("rows" in part and part["rows"] for part in kept["parts"])
        assert "/home/" not in path.read_text()
        assert "/tmp/" not in path.read_text()


def test_what_a_bench_keeps_is_what_it_printed(bench, tmp_path, capsys):
    """One door for both, so that they cannot differ."""
    result = bench("figures")["Result"]("What it measures,\nin one run.\n\nMore.", peers=("pytest", "no-such-package"))
    result.table("", "µs", "target")
    result.row("a call", 12.345, "≤ 15")
    result.row("another", 1234.5, None)
    result.note("And so on.")
    result.keep(tmp_path / "new" / "kept.json")
    kept = json.loads((tmp_path / "new" / "kept.json").read_text())
    assert kept["says"] == "What it measures, in one run."
    assert kept["peers"] == {"pytest": pytest.__version__}
    assert kept["missing"] == ["no-such-package"]
    assert kept["parts"] == [
        {"columns": ["", "µs", "target"], "rows": [["a call", 12.345, "≤ 15"], ["another", 1234.5, None]]},
        {"note": "And so on."},
    ]
    printed = capsys.readouterr().out
    for words in ("12.3", "≤ 15", "1,234", "And so on.", "not measured: no-such-package", kept["where"]):
        assert words in printed


@requirement("API-73")
def test_the_bench_of_models_tells_right_from_nearly_right(bench):
    """What it counts as right is what a person would: the wanted calls, once each, and nothing besides."""
    models = bench("models")
    judge, tasks = models["judge"], {task.say: task for task in (*models["PUBLIC"], *models["LATER"])}
    assert len(tasks) == 40
    light = tasks["Turn on the kitchen light."]
    on = ("set_light", {"room": "kitchen", "on": True})
    assert judge(light, [on], "json") == "right"
    assert judge(light, [("set_light", {**on[1], "brightness": 100})], "json") == "right"
    assert judge(light, [("set_light", {**on[1], "brightness": 10})], "json") == "arguments"
    assert judge(light, [("set_light", {**on[1], "on": 1})], "json") == "arguments"
    assert judge(light, [("unlock_door", {})], "json") == "wrong"
    assert judge(light, [on, on], "script") == "arguments"
    assert judge(light, [], "json") == "none"
    both = tasks["Turn off the lights in the hall and in the bedroom."]
    hall, bedroom = (("set_light", {"room": room, "on": False}) for room in ("hall", "bedroom"))
    assert judge(both, [bedroom], "json") == "right"
    assert judge(both, [bedroom], "script") == "arguments"
    assert judge(both, [bedroom, hall], "script") == "right"
    lunch = tasks["Add lunch with Ana on Thursday at 1 pm."]
    event = {"day": "2026-11-19", "hour": 13, "title": "Lunch with Ana"}
    assert judge(lunch, [("add_event", event)], "json") == "right"
    assert judge(lunch, [("add_event", {**event, "title": "Lunch"})], "json") == "arguments"
    assert judge(tasks["What is 17 times 3?"], [], "json") == "right"
    assert judge(tasks["What is 17 times 3?"], [on], "json") == "wrong"


def test_an_older_version_is_measured_by_what_both_have(bench, tmp_path):
    """What compares two versions must go on working in each: with this one alone, here, and its package by its name."""
    version = bench("version")
    source = Path(str(lastword.__file__)).parents[1]
    assert version["name_in"](source) == "lastword"
    assert version["name_in"](tmp_path) is None
    for tool in ("asynchronous", "approved"):
        assert asyncio.run(version["call"](lastword, tool, 1)) > 0


def test_without_a_file_nothing_is_kept(bench, tmp_path, monkeypatch):
    """Trying a bench must not change the page's results."""
    monkeypatch.chdir(tmp_path)
    bench("figures")["Result"]("Nothing.").keep(None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("figure", "words"),
    [(1234567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.0471, "0.047"), (None, "")],
)
def test_a_figure_has_the_digits_that_mean_something(bench, figure, words):
    """A benchmark with six digits pretends to a precision that it does not have."""
    assert bench("figures")["shown"](figure) == words


@pytest.mark.parametrize("name", sorted({path.stem for path in BENCH.glob("*.py")} - PARTS))
def test_every_bench_says_how_it_is_used(name):
    """It starts, on the code as it is today, and takes a file for its result."""
    done = run_python(str(BENCH / f"{name}.py"), "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "--json FILE" in done.stdout
