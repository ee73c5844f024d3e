"""The flat mode: a card that can be read aloud, answered with words."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lastword.call.events import Event
from lastword.editor import ProjectEditor
from requirements import requirement
from surfaces.screens import Terminal
from surfaces.test_card import Bench

QUESTION = "Type one of these and press Enter:"


def bench_at(terminal: Terminal, **facts: Any) -> Bench:
    bench = Bench(terminal, plain=True)
    bench.tool(**facts)
    return bench


@requirement("TOOL-44")
async def test_the_flat_card_has_no_boxes_and_says_everything(terminal: Terminal) -> None:
    """A screen reader says every line of a box. This card is sentences, one thing a line."""
    bench = bench_at(terminal)
    bench.said = {"title": "A note", "message": "It will\nbe short.", "primary_button_label": "Write file"}
    asking = bench.ask(path="a.md", count=3)
    await terminal.until(QUESTION)
    assert terminal.lines[:-2] == [
        "Approval needed.",
        "Tool: Write Note (write_note).",
        "What it does: Writes a note.",
        "Can be undone.",
        "Asked for by line 3 of tidy.nuwa.",
        "Arguments:",
        "  path: a.md",
        "  count: 3",
        "The tool says:",
        "  > A note",
        "  > It will",
        "  > be short.",
    ]
    words = "".join(terminal.lines[-2:])
    assert words == f"{QUESTION} allow (Write file), deny, deny because REASON, edit NAME=VALUE, exactly."
    assert b"\x1b" not in terminal.raw
    terminal.press("allow\n")
    assert (await asking).kind == "succeeded"
    assert bench.ran == [{"path": "a.md", "count": 3}]


@requirement("TOOL-49")
@pytest.mark.parametrize("typed", ["", "yes", "y", "a", "allow it", "alow"])
async def test_only_the_word_itself_approves(terminal: Terminal, typed: str) -> None:
    """An empty line asks again, and so does everything that is not one of the words."""
    bench = bench_at(terminal)
    asking = bench.ask()
    await terminal.press_at(QUESTION, typed + "\n")
    await terminal.until(QUESTION, times=2)
    assert not asking.done()
    terminal.press("deny\n")
    assert (await asking).kind == "denied"
    assert bench.ran == []


@requirement("TOOL-47")
@pytest.mark.parametrize("typed", ["deny because wrong folder", "DENY Because wrong folder", "deny wrong folder"])
async def test_a_reason_reaches_the_assistant(terminal: Terminal, typed: str) -> None:
    """The same reason, however it is said."""
    asking = bench_at(terminal).ask()
    await terminal.press_at(QUESTION, typed + "\n")
    assert "Their reason: wrong folder" in (await asking).message


@requirement("TOOL-47")
async def test_words_edit_and_words_approve(terminal: Terminal) -> None:
    """An edit is not yet a yes; the question says what a yes would mean now."""
    bench = bench_at(terminal)
    asking = bench.ask()
    await terminal.press_at(QUESTION, "edit cuont=3\n", then="did you mean count?")
    await terminal.press_at(QUESTION, "edit count=3\n", 2, then="count: (not given) → 3")
    await terminal.until("allow (with your changes)")
    assert not asking.done()
    terminal.press("allow\n")
    await asking
    assert bench.ran == [{"path": "a.md", "count": 3}]


async def test_what_was_typed_before_the_question_answers_nothing(terminal: Terminal) -> None:
    """Lines typed ahead were meant for something else."""
    bench = bench_at(terminal)
    terminal.press("allow\n")
    asking = bench.ask()
    await terminal.press_at(QUESTION, "deny\n")
    assert (await asking).kind == "denied"
    assert bench.ran == []


@requirement("TOOL-40")
async def test_the_end_of_the_input_closes_the_card(terminal: Terminal) -> None:
    """Ctrl+D on an empty line is neither yes nor no."""
    asking = bench_at(terminal).ask()
    await terminal.press_at(QUESTION, "\x04")
    assert "closed the question" in (await asking).message
    await terminal.until("Closed without an answer.")


async def test_preview_and_all_show_what_is_folded(terminal: Terminal, tmp_path: Path) -> None:
    """Nothing is cut without a word on how to see it."""
    bench = Bench(terminal, plain=True, editor=ProjectEditor(tmp_path))
    bench.tool()
    bench.said = {"message": "m" * 700}
    asking = bench.ask()
    await terminal.until("100 more characters: answer all to see them.")
    await terminal.press_at(", all.", "all\n")
    await terminal.until(QUESTION, times=2)
    assert terminal.raw.count(b"m" * 80) >= 8
    terminal.press("deny\n")
    await asking


async def test_a_dumb_terminal_gets_the_flat_card_by_itself(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be drawn, nothing is tried."""
    from lastword.terminal.approver import TerminalApprover

    monkeypatch.setenv("TERM", "dumb")
    assert TerminalApprover(stdin=terminal.stdin, screen=terminal.screen_file).plain
    monkeypatch.setenv("TERM", "xterm")
    assert not TerminalApprover(stdin=terminal.stdin, screen=terminal.screen_file).plain


async def test_several_flat_cards_are_counted(terminal: Terminal) -> None:
    """Who listens to one card must know that it is not the last."""
    bench = bench_at(terminal)
    asked: asyncio.Queue[Event] = asyncio.Queue()
    bench.session.listen(asked.put_nowait)
    tasks = [bench.ask(path=f"{n}.md") for n in range(3)]
    while len(bench.session.pending()) < 3:
        await asked.get()
    for n in range(3):
        await terminal.press_at(QUESTION, "deny\n", n + 1)
    assert {task.kind for task in await asyncio.gather(*tasks)} == {"denied"}
    assert "Approval needed. 1 more waiting." in terminal.text


@requirement("NUWA-80")
async def test_after_three_denials_in_a_row_the_words_deny_the_rest_end_the_asking(terminal: Terminal) -> None:
    """The same offer, in words. Before it is made they are a reason like any other."""
    bench = bench_at(terminal)
    text = 'FOR n IN RANGE(200) DO LET r = TRY CALL write_note { path: "a.md", count: n } END STOP "told"'
    run = asyncio.create_task(bench.session.run_script(text))
    for number in range(4):
        await terminal.until(f"count: {number}")
        await terminal.until("deny because REASON", number + 1)
        assert ("deny because REASON, deny the rest," in terminal.text) is (number == 3)
        terminal.press("deny the rest\n")
        await terminal.until("so is the rest of the script." if number == 3 else "Denied: the rest", number % 3 + 1)
    ended = await run
    assert (ended.output, bench.ran) == (["told"], [])
