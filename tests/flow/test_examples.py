"""The example assistants: their tools pass their own tests, their presets load, their scripts run."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flow.conftest import QUICK, MakeStage, Stage, request, served
from lastword import Session, ToolRegistry, open_journal
from lastword.author import run_tool_tests
from lastword.config import load
from lastword.consent import ALLOWED, DENIED, Preset
from lastword.runs import check
from lastword.script import format_script
from lastword.server import HttpUpstream, build_app
from lastword.store import MemoryStore
from lastword.talk import ResolvedPreset
from lastword.testing import FixedApprover
from requirements import requirement

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = {
    "home": "evening.nuwa",
    "clerk": "tidy.nuwa",
    "questions": "best_city.nuwa",
    "payments": "month_end.nuwa",
    "charts": "show_sales.nuwa",
}
GIVEN = {"payments": {"token": "desk-4711"}}
"""The variables that a script is started with."""


@pytest.fixture(params=list(SCRIPTS))
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of an example, and we are in it."""
    shutil.copytree(EXAMPLES / request.param, tmp_path / request.param)
    monkeypatch.chdir(tmp_path / request.param)
    return str(request.param)


def test_its_tools_pass_their_own_tests(example: str):
    results = run_tool_tests("tools")
    assert [(result.tool, result.name, result.problem) for result in results if not result.passed] == []
    assert len(results) >= 12


def test_its_presets_load_and_its_script_is_tidy_and_right(example: str):
    presets = ResolvedPreset.all_of(load(Path("lastword.toml"), environ={}).preset)
    assert len(presets) >= 2
    registry = ToolRegistry()
    registry.load("tools")
    text = Path(SCRIPTS[example]).read_text(encoding="utf-8")
    assert format_script(text) == text
    assert check(text, registry, GIVEN.get(example, {})) == []


@pytest.mark.parametrize("example", ["home"], indirect=True)
async def test_the_house_follows_its_script_and_remembers(example: str):
    """Lights need no person under the preset that allows it; the calendar asks all the same."""
    registry = ToolRegistry()
    registry.load("tools")
    approver = FixedApprover(ALLOWED)
    async with Session(registry, approver=approver, preset=Preset(True, "evening")) as session:
        run = await session.run_script(Path("evening.nuwa").read_text())
        assert run.status == "done", run.error
        assert "living room: on, 40 %" in run.output[0]
        assert [card.tool for card in approver.requests] == ["add_event"]
        assert session.get_state_value("calendar") == {"2026-07-01": {"9": "Walk"}}
        again = await session.call("add_event", {"day": "2026-07-01", "hour": 9, "title": "Dentist"})
        assert "9:00 is taken: Walk" in again.message


@pytest.mark.parametrize("example", ["clerk"], indirect=True)
async def test_the_clerk_files_what_is_allowed_and_leaves_the_rest(example: str):
    """The second card is denied: that document stays where it is."""
    registry = ToolRegistry()
    registry.load("tools")
    async with Session(registry, approver=FixedApprover([ALLOWED, DENIED, ALLOWED])) as session:
        run = await session.run_script(Path("tidy.nuwa").read_text())
    assert run.status == "done", run.error
    assert "2 filed." in run.output
    assert sorted(str(path) for path in Path("archive").rglob("*.txt")) == [
        "archive/invoices/2026-03-gas.txt",
        "archive/letters/letter.txt",
    ]
    assert [path.name for path in Path("inbox").iterdir()] == ["2026-03-water.txt"]


@pytest.mark.parametrize("example", ["questions"], indirect=True)
async def test_a_question_about_the_data_is_answered_and_written_down(example: str):
    registry = ToolRegistry()
    registry.load("tools")
    async with Session(registry, approver=FixedApprover(ALLOWED)) as session:
        run = await session.run_script(Path("best_city.nuwa").read_text())
    assert run.status == "done", run.error
    assert Path("answers/best-city.md").read_text() == "The best city is Lisbon.\n"


@pytest.mark.parametrize("example", ["payments"], indirect=True)
async def test_the_desk_pays_what_is_agreed_to_and_keeps_its_token_to_itself(example: str):
    """The first bill is paid, the second denied, and no file of the journal has the token."""
    registry = ToolRegistry()
    registry.load("tools")
    journal = open_journal("sqlite:///journal.db")
    approver = FixedApprover([ALLOWED, ALLOWED, DENIED])
    async with Session(registry, approver=approver, journal=journal) as session:
        run = await session.run_script(Path("month_end.nuwa").read_text(), GIVEN["payments"])
    await journal.close()
    assert run.status == "done", run.error
    assert run.output == [
        "Signed in at the example bank.",
        "Paid 950.00 to Landlord.",
        "power 2026-11: not paid",
        "950.00 to Landlord (rent 2026-11)\n1550.00 is left.",
    ]
    assert approver.requests[0].shown_arguments == {"token": "••••••"}
    assert [card.manifest.effect for card in approver.requests] == ["reversible", "irreversible", "irreversible"]
    assert not any(b"desk-4711" in path.read_bytes() for path in Path.cwd().glob("journal.db*") if path.is_file())


@pytest.mark.parametrize("example", ["charts"], indirect=True)
async def test_the_data_clerk_shows_a_picture_and_writes_one_only_when_allowed(example: str):
    """Looking asks nobody. The same bytes are shown, kept and written."""
    registry = ToolRegistry()
    registry.load("tools")
    approver = FixedApprover(ALLOWED)
    async with Session(registry, approver=approver) as session:
        run = await session.run_script(Path("show_sales.nuwa").read_text())
        drawn = await session.call("draw_chart", {"file": "sales.csv", "column": "sales"})
        shown = await session.content(drawn.call_id, drawn.content[0].digest)
    assert run.status == "done", run.error
    assert "the highest is Jun with 2104" in run.output[1]
    assert [card.arguments["save_as"] for card in approver.requests] == ["sales.png"]
    assert (drawn.content[0].media_type, drawn.content[1].media_type) == ("image/png", "text/csv")
    assert Path("sales.png").read_bytes() == shown


async def spoken(s: Stage, program: Path, *arguments: str) -> str:
    """What a program says that is given the address of a server in front of the stage's model."""
    app = build_app(MemoryStore(), HttpUpstream(s.model.url, limits=QUICK), limits=QUICK, log=lambda line: None)
    async with served(app) as port:
        running = await asyncio.create_subprocess_exec(
            sys.executable, str(program), f"http://127.0.0.1:{port}", *arguments, stdout=subprocess.PIPE
        )
        said, _ = await running.communicate()
    return said.decode()


FLOW = [request("lookup_weather", city="Lisbon"), "It is 18 degrees and clear in Lisbon."]


async def test_the_satellite_of_the_docs_does_what_the_docs_say(stage: MakeStage, tmp_path: Path):
    """Whoever copies it has a satellite."""
    text = (EXAMPLES.parent / "docs" / "satellites.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "satellite.py").write_text(found, encoding="utf-8")
    s = await stage(FLOW)
    assert await spoken(s, tmp_path / "satellite.py") == "It is 18 degrees and clear in Lisbon.\n2 steps\n"


def test_the_presets_of_the_docs_load(tmp_path: Path):
    """And mean what the page says."""
    text = (EXAMPLES.parent / "docs" / "satellites.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "lastword.toml").write_text(found, encoding="utf-8")
    (tmp_path / "persona.md").write_text("Be brief.")
    presets = ResolvedPreset.all_of(load(tmp_path / "lastword.toml", environ={}).preset)
    assert (presets["careful"].bounds.steps, presets["careful"].persona) == (6, "Be brief.")
    assert presets["quick"].preset.auto_approve


@requirement("API-2", "API-25")
async def test_a_satellite_of_thirty_lines_completes_the_flow(stage: MakeStage):
    """Written from the docs alone, with nothing but urllib: question, request, execution, result, answer."""
    program = EXAMPLES / "satellite_30_lines.py"
    assert sum(bool(line.strip()) for line in program.read_text().splitlines()) <= 30
    assert set(re.findall(r"^(?:import|from) (\w+)", program.read_text(), re.MULTILINE)) == {
        "json",
        "os",
        "sys",
        "urllib",
    }
    s = await stage(FLOW)
    said = await spoken(s, program, "What is the weather in Lisbon?")
    assert said == "It is 18 degrees and clear in Lisbon.\n"
    assert "Lisbon is 18°C and clear." in s.sent()[-1]["content"]
