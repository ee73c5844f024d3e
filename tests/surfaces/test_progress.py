"""Progress lines: in place, in order, out of the way of a card. And the line that counts while a model works."""

import io

import pytest

from lastword.call.events import Reported
from lastword.card import views
from lastword.terminal import Progress
from lastword.terminal.progress import SAY_AFTER_SECONDS, SHOW_AFTER_SECONDS, SPEAK_EVERY_SECONDS, Thinking
from lastword.terminal.window import Replica
from lastword.testing.scripted import Pause, ScriptedModel
from requirements import requirement
from surfaces.conftest import Run
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


LINE = "· Waiting for the model: {}. Ctrl+C stops the turn."


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@requirement("API-31")
async def test_it_comes_after_a_moment_counts_in_place_and_goes_without_a_trace(terminal: Terminal, clock: Clock):
    """What was said before and after it stands on the screen as if it had never been there."""
    screen = terminal.screen_file
    thinking = Thinking(screen, in_place=True, is_seen=True, clock=clock)
    screen.write("before\n")
    assert thinking.look("asked") == SHOW_AFTER_SECONDS
    clock.now += 65.25
    assert thinking.look("asked") == 0.75
    await terminal.until(LINE.format("1 min 05 s"))
    clock.now += 1
    thinking.look("asked")
    await terminal.until(LINE.format("1 min 06 s"))
    assert terminal.lines == ["before", LINE.format("1 min 06 s")]
    thinking.clear()
    screen.write("after\n")
    screen.flush()
    await terminal.until("after")
    assert terminal.lines == ["before", "after"]


async def test_every_sign_of_life_begins_the_count_anew(terminal: Terminal, clock: Clock):
    """A model that has just said a word is not one that was silent for a minute."""
    thinking = Thinking(terminal.screen_file, in_place=True, is_seen=True, clock=clock)
    thinking.look("asked")
    clock.now += 60
    assert thinking.look("a word") == SHOW_AFTER_SECONDS
    clock.now += 3
    thinking.look("a word")
    await terminal.until(LINE.format("3 s"))
    assert thinking.look(None) is None, "nobody waits for it any more"
    terminal.screen_file.write("x\n")
    terminal.screen_file.flush()
    await terminal.until("x")
    assert terminal.lines == ["x"]


async def test_it_never_takes_more_than_one_row(narrow: Terminal, clock: Clock):
    """Of two rows only one could be taken away again."""
    thinking = Thinking(narrow.screen_file, in_place=True, is_seen=True, clock=clock)
    thinking.look(1)
    clock.now += 3
    thinking.look(1)
    await narrow.until("· Waiting")
    assert len(narrow.lines) == 1


def test_in_plain_sentences_it_is_said_once_and_later(clock: Clock):
    """A screen reader reads every line aloud."""
    screen = io.StringIO()
    thinking = Thinking(screen, in_place=False, is_seen=True, clock=clock)
    assert thinking.look(1) == SAY_AFTER_SECONDS
    for _ in range(3):
        clock.now += SAY_AFTER_SECONDS
        assert thinking.look(1) is None
    assert screen.getvalue() == "Waiting for the model, for 10 s so far. Ctrl+C stops the turn.\n"


def test_for_a_program_nothing_is_written(clock: Clock):
    """A log of a night would hold nothing else."""
    screen = io.StringIO()
    thinking = Thinking(screen, in_place=False, is_seen=False, clock=clock)
    thinking.look(1)
    clock.now += 100
    assert thinking.look(1) is None
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("last", "is_awaited"),
    [
        (views.MessageItem(id="m", by="you", text="Hi"), True),
        (views.MessageItem(id="m", by="assistant", text="Hel", open=True), True),
        (views.CallItem(id="c", status="waiting"), False),
        (views.CallItem(id="c", status="running"), False),
        (views.CallItem(id="c", status="running", session="another program's"), True),
        (views.CallItem(id="c", status="ended"), True),
        (views.CallItem(id="c", status="doubt"), True),
        (views.ScriptItem(id="r", status="running"), False),
        (views.ScriptItem(id="r", status="done"), True),
    ],
)
def test_while_a_card_a_tool_or_a_script_is_at_work_it_is_not_the_model(last, is_awaited):
    """The card has the screen to itself, and a tool reports for itself."""
    picture = Replica()
    picture.items = {last.id: last}
    assert picture.sign_of_life() is None, "nothing is going on"
    picture.busy = True
    assert (picture.sign_of_life() is not None) == is_awaited


@requirement("API-31")
def test_a_slow_model_is_seen_to_be_waited_for_and_ctrl_c_stops_it(run: Run):
    """In the real chat: between the message and the first word nothing moved, and nothing said how to stop."""
    gate, never = Pause(), Pause()
    with ScriptedModel([["One ", "line.\n\n", gate, "Two."], [never, "three"]]) as model:
        program = run("chat", LASTWORD_UPSTREAM=model.url)
        program.press_at("asks ▸", "Count.\r", then="┃ One line.")
        program.until(LINE.format("2 s"))
        gate.open()
        program.until("asks ▸", 2)
        assert "Waiting for the model" not in program.text
        shown = [line for line in program.lines if line.startswith("┃")]
        assert [line.rstrip() for line in shown] == ["┃ One line.", "┃", "┃ Two."]
        program.press("Go on.\r")
        program.press_at(LINE.format("2 s"), "\x03")
        program.until("asks ▸", 3)
        assert "Waiting for the model" not in program.text
        program.press("/quit\r")
        assert program.finish() == 0
