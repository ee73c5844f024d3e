"""Every example is run: by its own tests, on the command line, and in process."""

import re
import subprocess
import threading
from pathlib import Path

import pytest

from lastword import Limits, Preset, Session, ToolRegistry, UserAction
from lastword.author import run_tool_tests
from lastword.call.events import Event, Reported
from requirements import requirement
from surfaces.screens import clean_environment, lastword_command, piped

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
# The manifest of the document that the first tool comes from, to the letter.
LOCATION_MANIFEST = """\
{
  "displayName": "Request Current Location",
  "id": "request_current_location",
  "description": "Requests the user's current location one time.",
  "icon": "location.fill",
  "color": "systemBlue",
  "parameters": [],
  "requireApproval": true,
  "autoApprove": true,
  "scriptEditorOnly": false
}
"""


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.load(EXAMPLES)
    return registry


@requirement("TOOL-50")
def test_the_examples_pass_their_own_tests() -> None:
    """An example that fails is worse than none."""
    results = run_tool_tests(EXAMPLES)
    assert [result for result in results if not result.passed] == []
    assert {result.tool for result in results} == {"format_json", "request_current_location", "search_notes"}


@requirement("TOOL-1")
def test_the_location_manifest_is_the_original() -> None:
    """Files written for the original mechanism load unchanged."""
    assert (EXAMPLES / "location" / "assistant_tool.json").read_text() == LOCATION_MANIFEST


def test_every_command_of_the_examples_page_works(tmp_path: Path) -> None:
    """What a page says is typed by people."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    block = re.search(r"```\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.DOTALL)
    assert block is not None
    lines = block.group(1).splitlines()
    assert len(lines) == 5
    for line in lines:
        # There is nobody to ask here, so the two that ask are given the other key.
        more = " --auto-approve" if " call " in line else ""
        command = re.sub(r"\blastword (\w+)", " ".join(lastword_command()) + r" \1", line, count=1) + more
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=clean_environment(tmp_path), capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


async def test_a_location_is_given_after_a_yes_and_not_after_a_no(registry: ToolRegistry) -> None:
    """In process, with an approver of the host's own."""
    answers = [UserAction(False, True), UserAction(True, False)]

    async def approver(request: object) -> UserAction:
        return answers.pop(0)

    async with Session(registry, approver=approver) as session:
        denied = await session.call("request_current_location")
        failed = await session.call("request_current_location")
    assert denied.kind == "denied"
    assert "User cancelled the location request." in denied.message
    assert (failed.kind, failed.message) == ("failed", "Failed to retrieve user location.")


def test_a_location_can_be_auto_approved_on_the_command_line(tmp_path: Path) -> None:
    """The tool allows it, and the flag is the other key."""
    arguments = ("call", "request_current_location", "--tools", str(EXAMPLES))
    done = piped(*arguments, "--auto-approve", cwd=tmp_path, LOCATION="52.52,13.4")
    assert done.stdout.splitlines()[1] == "<latitude>52.52</latitude>"
    assert piped(*arguments, cwd=tmp_path, LOCATION="52.52,13.4").returncode == 3


@requirement("TOOL-51", "TOOL-52")
async def test_a_search_that_is_stopped_keeps_what_it_found(
    registry: ToolRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three notes, a disk that hangs on the second, and a person who has seen enough."""
    for name in ("1.md", "2.md", "3.md"):
        (tmp_path / name).write_text("Ada\n")
    stopped = threading.Event()
    execute = registry.lookup("search_notes").execute
    assert execute is not None
    read = execute.__globals__["read"]

    def slow_read(path: Path) -> str:
        if path.name == "2.md":
            stopped.wait(20)
        return str(read(path))

    monkeypatch.setitem(execute.__globals__, "read", slow_read)
    reports: list[Reported] = []
    soon = Limits(cancel_grace_seconds=0.05)
    async with Session(registry, preset=Preset(auto_approve=True), limits=soon) as session:

        def hear(event: Event) -> None:
            if isinstance(event, Reported):
                reports.append(event)
                if event.message.startswith("2.md"):
                    session.cancel(event.call_id)

        session.listen(hear)
        outcome = await session.call("search_notes", {"word": "Ada", "folder": str(tmp_path)})
    stopped.set()
    assert outcome.kind == "outcome_unknown"  # the disk hangs, and so does the thread that reads from it
    assert "“Ada” was found 1 times; 1 of 3 notes searched." in outcome.message
    assert [(report.id, report.fraction) for report in reports] == [("search", 0.0), ("search", pytest.approx(1 / 3))]
