"""Progress lines: in place, in order, and out of the way of a card."""

import io

from lastword.call import Reported
from lastword.terminal import Progress
from lastword.terminal.progress import SPEAK_EVERY_SECONDS
from requirements import requirement
from surfaces.screens import Emulator, Terminal


def report(message: str, id: str | None = None, fraction: float | None = None, call: str = "c") -> Reported:
    return Reported(call, message, id, fraction)


@requirement("TOOL-51")
async def test_lines_keep_their_order_and_change_where_they_stand(terminal: Terminal) -> None:
    """Two tools that report at once do not write over each other."""
    progress = Progress(terminal.screen_file, in_place=True)
    progress.show(report("first", "x"))
    progress.show(report("other tool", "x", call="d"))
    progress.show(report("loose"))
    progress.show(report("first, changed", "x", 0.5))
    progress.show(report("other, changed", "x", 1.0, call="d"))
    await terminal.until("other, changed")
    assert terminal.lines == [
        "██████████░░░░░░░░░░  50% first, changed",
        "████████████████████ 100% other, changed",
        "· loose",
    ]


@requirement("TOOL-51")
async def test_a_long_report_stays_on_its_line(narrow: Terminal) -> None:
    """One that broke into two would move everything below it."""
    progress = Progress(narrow.screen_file, in_place=True)
    progress.show(report("x" * 100, "a"))
    progress.show(report("漢" * 100, "b"))
    progress.show(report("short", "a"))
    await narrow.until("short")
    assert narrow.lines[0] == "· short"
    assert narrow.lines[1].endswith("…")
    assert len(narrow.lines) == 2


@requirement("TOOL-51")
async def test_a_line_that_scrolled_away_is_said_again() -> None:
    """What is out of the window cannot be written over."""
    with Terminal(columns=40, lines=5).attached() as terminal:
        progress = Progress(terminal.screen_file, in_place=True)
        progress.show(report("far", "far"))
        for n in range(8):
            progress.show(report(f"line {n}"))
        progress.show(report("far again", "far"))
        await terminal.until("far again")
        assert terminal.lines[-1] == "· far again"


@requirement("TOOL-44", "TOOL-51")
async def test_a_report_cannot_command_the_terminal(terminal: Terminal) -> None:
    """It comes from a tool, like everything else that is marked; a line break in it is shown, not made."""
    progress = Progress(terminal.screen_file, in_place=True)
    progress.show(report("a\x1b[2Jb\nc\ud83d"))
    await terminal.until("· a‹U+001B›[2Jb⏎c‹U+FFFD›")


async def test_nothing_is_drawn_while_a_card_has_the_screen() -> None:
    """A report in the middle of a card would tear it; afterwards everything is told, below the card."""
    screen = io.StringIO()
    progress = Progress(screen, in_place=True)
    progress.show(report("before", "x"))
    progress.hold()
    progress.show(report("meanwhile", "x"))
    assert screen.getvalue() == "· before\n"
    screen.write("CARD\n")
    progress.release()
    emulator = Emulator(80, 10)
    emulator.feed(screen.getvalue().replace("\n", "\r\n").encode())
    assert emulator.lines == ["· before", "CARD", "· meanwhile"]


@requirement("TOOL-51")
def test_a_log_gets_the_first_word_and_the_last() -> None:
    """An id speaks at most once in a while; what it said last is never lost."""
    now = 0.0
    screen = io.StringIO()
    progress = Progress(screen, in_place=False, clock=lambda: now)
    for n in range(100):
        progress.show(report(f"step {n}", "x", n / 100))
    now += SPEAK_EVERY_SECONDS
    progress.show(report("step 100", "x", 1.0))
    progress.show(report("step 101", "x", 1.0))
    progress.release()
    assert screen.getvalue().splitlines() == ["0%: step 0", "100%: step 100", "100%: step 101"]
