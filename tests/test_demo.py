"""The demo: six calls through the real door, in seconds, without a keypress."""

import io
from pathlib import Path

import pytest

from lastword.demo import play
from requirements import requirement
from surfaces.screens import Terminal, piped


@requirement("TOOL-41", "TOOL-45", "TOOL-47", "TOOL-52")
async def test_the_demo_plays_what_it_promises() -> None:
    """Each scene ends in the outcome it explains; an unplayed key would fail an assertion of its own."""
    screen = io.StringIO()
    await play(screen)
    told = screen.getvalue()
    endings = [line for line in told.splitlines() if line.startswith("→")]
    assert endings == [
        f"→ {kind} (approval: {approval}). The assistant reads:"
        for kind, approval in [
            ("succeeded", "person"),
            ("succeeded", "auto"),
            ("denied", "person"),
            ("succeeded", "person"),
            ("denied", "person"),
            ("cancelled", "not_needed"),
        ]
    ]
    assert "notes.md now ends with '- call Ada'." in told
    assert "Their reason: wrong index, use the test one" in told
    assert '{"what":"call Ada","hour":10}' in told
    assert "│ Asked again: notes.md changed while the question waited." in told
    assert "notes.md still ends with '- feed the cat'." in told
    assert "later years were not searched." in told
    assert told.rstrip().endswith("Your turn: lastword new tool hello, lastword test, lastword call hello.")
    assert "\x1b" not in told


def test_the_demo_needs_no_terminal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """In a pipe, in a container, in a log."""
    done = piped("demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


async def test_the_demo_on_a_terminal_draws_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With colour, and twenty reports of the search on one line."""
    monkeypatch.setattr("lastword.demo.PAUSE_SECONDS", 0.01)
    with Terminal(lines=250).attached() as terminal:
        await play(terminal.screen_file)
        await terminal.until("Your turn:")
        assert "██████████░░░░░░░░░░" in terminal.text
        assert sum("letters of" in line for line in terminal.lines) == 1
        assert b"\x1b[32m" in terminal.raw
