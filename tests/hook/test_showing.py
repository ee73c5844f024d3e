"""What the card of an agent's call shows: a command as a command, an edit as a diff against the real file."""

import os
from pathlib import Path
from typing import Any

import pytest

from hook.gates import CLAUDE_BEFORE, GEMINI_BEFORE, Gate, Queue, heard
from lastword.card import Face
from lastword.consent import ApprovalRequest
from requirements import requirement

LINES = "one\ntwo\nthree\n"


def edit(path: Path, **fields: Any) -> dict[str, Any]:
    given = {"file_path": str(path), "old_string": "two", "new_string": "2", "replace_all": False} | fields
    return CLAUDE_BEFORE | {"tool_name": "Edit", "tool_input": given, "cwd": str(path.parent)}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    found = tmp_path / "proj" / "notes.md"
    found.parent.mkdir()
    found.write_text(LINES)
    return found


@requirement("HOOK-2")
async def test_a_command_is_shown_whole_and_where_it_would_run(gate: Gate, queue: Queue):
    """As it would be typed: what stands in line forty is part of it."""
    command = "\n".join(f"echo {number}" for number in range(40))
    card, _ = await queue.decide(gate.start(CLAUDE_BEFORE | {"tool_input": {"command": command}}), ApprovalRequest.deny)
    assert [preview.proposed for preview in card.preview] == [command]
    assert "/home/you/proj" in card.message


@requirement("HOOK-2")
@pytest.mark.parametrize(
    "hidden", ["\x1b[2K\x1b[1Aecho nice", "echo \u202enice\u202c; rm -rf /", "rm\u200b -rf \U000e0041/"]
)
async def test_what_cannot_be_seen_in_a_command_is_marked(gate: Gate, queue: Queue, hidden: str):
    """A model that read a hostile page writes what a terminal would show as something else."""
    card, _ = await queue.decide(
        gate.start(CLAUDE_BEFORE | {"tool_input": {"command": hidden, "description": hidden}}), ApprovalRequest.deny
    )
    words = Face.of(card, fold=False)
    shown = [*(passage.text for _, passage in words.arguments), *(row.text for row in words.diff), words.message.text]
    for text in shown:
        assert not set(text) & {"\x1b", "\u202e", "\u200b", "\U000e0041"}
    assert "‹U+" in shown[0]


@requirement("HOOK-2")
async def test_an_edit_is_a_diff_against_the_file(gate: Gate, queue: Queue, notes: Path):
    """Not what the model says of it: the lines that are there, and the ones that would be."""
    process = gate.start(edit(notes))
    card = await queue.card()
    [preview] = card.preview
    assert (preview.path, preview.base, preview.proposed) == (str(notes), LINES, "one\n2\nthree\n")
    await queue.answer(card, card.allow())
    assert (await heard(process)).decided["permissionDecision"] == "allow"
    assert notes.read_text() == LINES  # the agent writes it


@requirement("HOOK-2")
@pytest.mark.parametrize(
    ("tool", "given", "proposed"),
    [
        ("Write", {"content": "all new\n"}, "all new\n"),
        ("Edit", {"old_string": "o", "new_string": "0", "replace_all": True}, "0ne\ntw0\nthree\n"),
        ("MultiEdit", {"edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "1\n", "new_string": ""}]},
         "two\nthree\n"),
    ],
)  # fmt: skip
async def test_every_way_to_change_a_file_shows_what_it_would_become(gate, queue, notes, tool, given, proposed):
    """Several edits of one file count one after the other, as the agent makes them."""
    said = CLAUDE_BEFORE | {"tool_name": tool, "tool_input": {"file_path": str(notes)} | given}
    card, _ = await queue.decide(gate.start(said), ApprovalRequest.deny)
    assert [preview.proposed for preview in card.preview] == [proposed]


@requirement("HOOK-2")
async def test_gemini_edits_are_diffs_too(gate: Gate, queue: Queue, notes: Path):
    """Its tools have other names, and paths that may be relative to its folder."""
    given = {"file_path": "notes.md", "old_string": "two", "new_string": "2"}
    said = GEMINI_BEFORE | {"tool_name": "replace", "tool_input": given, "cwd": str(notes.parent)}
    card, _ = await queue.decide(gate.start(said, "gemini"), ApprovalRequest.deny)
    assert [preview.proposed for preview in card.preview] == ["one\n2\nthree\n"]


@requirement("HOOK-2")
async def test_a_file_that_windows_wrote_keeps_its_line_ends(gate: Gate, queue: Queue, notes: Path):
    """Agents quote it without them."""
    notes.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    card, _ = await queue.decide(
        gate.start(edit(notes, old_string="one\ntwo", new_string="1\n2")), ApprovalRequest.deny
    )
    assert card.preview[0].proposed == "1\r\n2\r\nthree\r\n"


MISFITS: dict[str, dict[str, Any]] = {
    "not there": {"old_string": "four"},
    "there twice": {"old_string": "e"},
    "empty in a file that is not": {"old_string": ""},
    "no text": {"old_string": 7},
}


@requirement("HOOK-2")
@pytest.mark.parametrize("fields", MISFITS.values(), ids=MISFITS.keys())
async def test_an_edit_whose_end_is_not_certain_is_denied_with_what_to_do(gate, queue, notes, fields):
    """Nobody is shown a guess. The agent's own tool may find a place that we would not."""
    said = (await gate.ask(edit(notes, **fields))).decided
    assert said["permissionDecision"] == "deny"
    assert "old_string" in said["permissionDecisionReason"]
    assert await queue.journal.waiting() == []


@requirement("HOOK-2")
async def test_a_file_that_changes_while_the_card_waits_is_asked_about_again(gate: Gate, queue: Queue, notes: Path):
    """Consent covers what was shown. The new card shows the file as it is now."""
    process = gate.start(edit(notes))
    first = await queue.card()
    notes.write_text("zero\n" + LINES)
    await queue.answer(first, first.allow())
    second = await queue.card(but=first.digest)
    assert "changed" in (second.problem or "")
    assert second.preview[0].proposed == "zero\none\n2\nthree\n"
    await queue.answer(second, second.allow())
    assert (await heard(process)).decided["permissionDecision"] == "allow"


@requirement("HOOK-2")
async def test_a_file_that_no_longer_has_the_old_lines_is_denied(gate: Gate, queue: Queue, notes: Path):
    """The yes was to a change that cannot be made any more."""
    process = gate.start(edit(notes))
    card = await queue.card()
    notes.write_text("something else\n")
    await queue.answer(card, card.allow())
    assert (await heard(process)).decided["permissionDecision"] == "deny"


@requirement("HOOK-2")
async def test_a_link_is_followed_and_named(gate: Gate, queue: Queue, notes: Path):
    """The agent writes through it, so the person sees where."""
    link = notes.parent / "harmless.md"
    link.symlink_to(notes)
    card, _ = await queue.decide(gate.start(edit(link)), ApprovalRequest.deny)
    assert (card.title, card.preview[0].path) == (f"Change {notes}", str(notes))
    assert f"{link}, a link to {notes}" in card.message


@requirement("HOOK-2")
async def test_a_link_that_is_turned_elsewhere_while_the_card_waits_is_asked_about_again(gate, queue, notes):
    """The same text in another file is another change."""
    other = notes.parent / "other.md"
    other.write_text(LINES)
    link = notes.parent / "harmless.md"
    link.symlink_to(notes)
    process = gate.start(edit(link))
    first = await queue.card()
    link.unlink()
    link.symlink_to(other)
    await queue.answer(first, first.allow())
    second = await queue.card(but=first.digest)
    assert second.preview[0].path == str(other)
    await queue.answer(second, second.deny())
    assert (await heard(process)).decided["permissionDecision"] == "deny"


@requirement("HOOK-2")
@pytest.mark.parametrize("kind", ["binary", "pipe", "folder", "huge"])
async def test_where_no_diff_can_be_drawn_the_card_says_so(gate: Gate, queue: Queue, notes: Path, kind: str):
    """It is not passed over, and a pipe is not waited for."""
    place = notes.parent / kind
    if kind == "binary":
        place.write_bytes(b"\0\1\2")
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_bytes(b"x" * 4_000_001)
    said = CLAUDE_BEFORE | {"tool_name": "Write", "tool_input": {"file_path": str(place), "content": "x"}}
    card, _ = await queue.decide(gate.start(said), ApprovalRequest.deny)
    assert "No diff can be shown" in card.message
    assert card.preview == ()


@requirement("HOOK-2")
async def test_any_other_tool_is_shown_with_its_arguments(gate: Gate, queue: Queue):
    """An MCP server's tool, say, or one that a later version brings: what is not known is asked about."""
    said = CLAUDE_BEFORE | {"tool_name": "mcp__bank__pay", "tool_input": {"to": "DE12", "cents": 100}}
    card, _ = await queue.decide(gate.start(said), ApprovalRequest.deny)
    assert card.arguments == {"to": "DE12", "cents": 100, "cwd": "/home/you/proj"}
    assert card.manifest.display_name == "Claude Code: mcp__bank__pay"


@requirement("HOOK-2")
async def test_the_file_of_an_edit_is_not_changed_on_the_card(gate: Gate, queue: Queue, notes: Path):
    """The diff is kept in step with one file. Another one needs a call of its own."""
    process = gate.start(edit(notes))
    first = await queue.card()
    await queue.answer(first, first.edit(file_path="/etc/passwd"))
    second = await queue.card(but=first.digest)
    assert second.arguments["file_path"] == str(notes)
    await queue.answer(second, second.deny())
    assert (await heard(process)).decided["permissionDecision"] == "deny"
