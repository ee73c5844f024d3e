"""What a person at a terminal sees while something runs, and how they stop it.

A running tool's reports are one line each, and the same id changes its line in place. Each is cut to one line of the
screen, so that it is known how far up an earlier line stands; one that has scrolled out of the window is said again at
the bottom. Where nothing can be written over, an id speaks at most once in a while, and its last word is always said.

That the model is being waited for is a line without an end: it comes after a moment, counts the seconds, and goes
without a trace, so it never becomes a part of what was said. For a program or a file nothing is written at all.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Hashable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import msgspec

from lastword.call.events import Answered, Asked, Event, Finished, QuestionAnswered, QuestionAsked, Reported, Started
from lastword.display import displayable, visible
from lastword.lazily import load_later
from lastword.log import trouble
from lastword.rules import SeenStep, call_words
from lastword.terminal.tty import fit, is_dumb, is_interactive, no_echo, size_of

if TYPE_CHECKING:
    from lastword.consent import Outcome
    from lastword.session import Session
    from lastword.terminal import approver as approvers
    from lastword.terminal.approver import TerminalApprover
else:
    # What draws cards and reads keys is loaded only where there is a person.
    approvers = load_later("lastword.terminal.approver")


BAR_WIDTH = 20
# A log or a screen reader needs to know that it moves, and not how smoothly.
SPEAK_EVERY_SECONDS = 1.0
# Of a report, what a line shows.
MAX_LINE = 200

# Most answers begin sooner, and a line that flashes by is only in the way.
SHOW_AFTER_SECONDS = 2.0
SAY_AFTER_SECONDS = 10.0

HOW_TO_STOP = "Ctrl+C stops the turn."

T = TypeVar("T")
ReportLine = tuple[str, str]
"""A call and a report's id."""


class Progress:
    """The lines of the calls that run. Hand `show` to `session.listen`."""

    def __init__(
        self,
        screen: TextIO,
        *,
        in_place: bool,
        is_marked: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_marked`: what cannot be seen in the reports has been marked by the server."""
        self._screen = screen
        self._is_marked = is_marked
        self._in_place = in_place
        self._clock = clock
        self._rows: dict[ReportLine, int] = {}
        self._printed = 0
        self._spoke: dict[ReportLine, float] = {}
        self._unsaid: dict[ReportLine, Reported] = {}
        self._is_held = False
        self._held: list[Reported] = []

    def show(self, event: Event) -> None:
        """Draw the event if it is a report."""
        if not isinstance(event, Reported):
            return
        if not self._is_marked:
            event = msgspec.structs.replace(event, message=visible(displayable(event.message)))
        if self._is_held:
            self._held.append(event)
        else:
            self._tell(event)

    def report(self, call_id: str, message: str, id: str | None = None, fraction: float | None = None) -> None:
        """The same of a report that came in another way."""
        self.show(Reported(call_id, message, id, fraction))

    def say(self, words: str) -> None:
        """A line of our own between the reports."""
        self._print(words)

    def hold(self) -> None:
        """Draw nothing until `release`: a card has the screen."""
        self._is_held = True

    def release(self) -> None:
        """Draw what was held back, below whatever was drawn meanwhile, and say every last word."""
        if self._is_held:
            self._is_held = False
            self._rows.clear()
            held, self._held = self._held, []
            for report in held:
                self._tell(report)
        for report in self._unsaid.values():
            self._print(words(report))
        self._unsaid.clear()

    def _tell(self, report: Reported) -> None:
        if self._in_place:
            self._draw(report)
        else:
            self._speak(report)

    def _draw(self, report: Reported) -> None:
        columns, height = size_of(self._screen)
        line = fit(drawn(report), columns - 1)
        row = None if report.id is None else self._rows.get((report.call_id, report.id))
        up = 0 if row is None else self._printed - row
        if 0 < up < height:
            self._screen.write(f"\x1b[{up}A\r\x1b[2K{line}\x1b[{up}B\r")
            self._screen.flush()
            return
        if report.id is not None:
            self._rows[report.call_id, report.id] = self._printed
        self._print(line)

    def _speak(self, report: Reported) -> None:
        if report.id is None:
            self._print(words(report))
            return
        line = (report.call_id, report.id)
        now = self._clock()
        if now - self._spoke.get(line, float("-inf")) >= SPEAK_EVERY_SECONDS:
            self._spoke[line] = now
            self._unsaid.pop(line, None)
            self._print(words(report))
        else:
            self._unsaid[line] = report

    def _print(self, line: str) -> None:
        self._screen.write(line + "\n")
        self._screen.flush()
        self._printed += 1


def drawn(report: Reported) -> str:
    """A report as one line for the eye, with a bar when it says how far it is."""
    if report.fraction is None:
        return f"· {_message(report)}"
    full = round(report.fraction * BAR_WIDTH)
    return f"{'█' * full}{'░' * (BAR_WIDTH - full)} {report.fraction:4.0%} {_message(report)}"


def words(report: Reported) -> str:
    """A report as one line for the ear and for a log."""
    return _message(report) if report.fraction is None else f"{report.fraction:.0%}: {_message(report)}"


def _message(report: Reported) -> str:
    first = report.message.replace("\n", "⏎")
    return first if len(first) <= MAX_LINE else f"{first[:MAX_LINE]}… ({len(first) - MAX_LINE} more characters)"


class Thinking:
    """The line."""

    def __init__(
        self, screen: TextIO, *, in_place: bool, is_seen: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`is_seen`: a person looks at this screen."""
        self._screen = screen
        self._in_place = in_place
        self._is_seen = is_seen
        self._clock = clock
        self._sign: Hashable = None
        self._since = 0.0
        self._is_drawn = self._is_said = False

    def look(self, sign: Hashable) -> float | None:
        """Draw what there is to say now; returns after how many seconds to look again, None when there is no need.

        `sign` is another one after each sign of life, and None while nobody waits for the model.
        """
        if sign is None or not self._is_seen:
            self.clear()
            self._sign = None
            return None
        now = self._clock()
        if sign != self._sign:
            self._sign, self._since, self._is_said = sign, now, False
        waited = now - self._since
        if not self._in_place:
            return self._say(waited)
        if waited < SHOW_AFTER_SECONDS:
            return SHOW_AFTER_SECONDS - waited
        words = fit(f"· Waiting for the model: {in_words(int(waited))}. {HOW_TO_STOP}", size_of(self._screen)[0] - 1)
        self._screen.write(f"\r\x1b[2K{words}")
        self._screen.flush()
        self._is_drawn = True
        return 1.0 - waited % 1.0

    def clear(self) -> None:
        """Take the line away: something else is about to be written."""
        if self._is_drawn:
            self._is_drawn = False
            self._screen.write("\r\x1b[2K")
            self._screen.flush()

    def _say(self, waited: float) -> float | None:
        if self._is_said:
            return None
        if waited < SAY_AFTER_SECONDS:
            return SAY_AFTER_SECONDS - waited
        self._is_said = True
        self._screen.write(f"Waiting for the model, for {in_words(int(waited))} so far. {HOW_TO_STOP}\n")
        self._screen.flush()
        return None


def in_words(seconds: int) -> str:
    """A time as a person reads it."""
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02} s"


async def attend(
    session: Session,
    work: Coroutine[Any, Any, T],
    *,
    approver: TerminalApprover | None,
    plain: bool = False,
) -> T:
    """Do the work while its progress is shown. Ctrl+C closes the card, or cancels what runs; twice, it leaves."""
    if approver is not None:
        approver.offer_grants(session)
    watcher = _Watcher(session, approver, in_place=sys.stderr.isatty() and not plain and not is_dumb())
    loop = asyncio.get_running_loop()
    with ExitStack() as after:
        after.callback(session.listen(watcher.hear))
        if not plain and approver is not None and not approver.plain:
            after.enter_context(no_echo(sys.stdin))
        task = loop.create_task(work)
        loop.add_signal_handler(signal.SIGINT, watcher.interrupt, task)
        after.callback(loop.remove_signal_handler, signal.SIGINT)
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            watcher.progress.release()


class _Watcher:
    """What runs and what is asked, as far as the events tell."""

    def __init__(self, session: Session, approver: TerminalApprover | None, *, in_place: bool) -> None:
        self.progress = Progress(sys.stderr, in_place=in_place)
        self._session = session
        self._approver = approver
        self._asked: dict[str, str] = {}
        """The tools of the calls that ask something, by the calls."""
        self._running: set[str] = set()
        self._stopping = False

    def hear(self, event: Event) -> None:
        """Show an event. What cannot be shown of it must not stop what runs, nor the rest from being shown."""
        try:
            self._take(event)
        except Exception as problem:
            self.progress.say(trouble("Something happened that cannot be shown", problem))

    def _take(self, event: Event) -> None:
        match event:
            case Asked(request):
                # A report in the middle of a card would tear it; it waits until the card is answered.
                self._asked[request.call_id] = request.tool
                self.progress.hold()
            case QuestionAsked(question):
                self._asked[question.call_id] = question.tool
                self.progress.hold()
            case Answered(call_id, action):
                if action.grant is not None:
                    self.progress.say(SeenStep.granted_words(self._asked.get(call_id, ""), action.grant))
                self._answered(call_id)
            case QuestionAnswered(call_id):
                self._answered(call_id)
            case Started(call_id):
                self._running.add(call_id)
                if event.not_asked:
                    call = call_words(event.tool, event.arguments)
                    self.progress.say(f"{call}: not asked, {visible(event.not_asked)}.")
            case Finished(outcome):
                self._running.discard(outcome.call_id)
                self._answered(outcome.call_id)
                self._tell_undo(outcome)
        self.progress.show(event)

    def _tell_undo(self, outcome: Outcome) -> None:
        """Say how to take the changes back: the id has to be seen to be typed."""
        if outcome.changed:
            first, more = outcome.changed[0], len(outcome.changed) - 1
            what = f"{first} and {more} more" if more else first
            self.progress.report(outcome.call_id, f"{what} changed. To take it back: lastword undo {outcome.call_id}")

    def interrupt(self, task: asyncio.Task[Any]) -> None:
        if self._approver is not None and self._approver.close():
            return
        if self._running and not self._stopping:
            self._stopping = True
            self.progress.say("Stopping; what is done so far is kept. Ctrl+C again leaves at once.")
            for call_id in self._running:
                self._session.cancel(call_id)
        else:
            task.cancel()

    def _answered(self, call_id: str) -> None:
        self._asked.pop(call_id, None)
        if not self._asked:
            self.progress.release()


def terminal_approver(*, plain: bool = False) -> TerminalApprover | None:
    """An approver for this terminal; None when there is none with a person at it."""
    return approvers.TerminalApprover(plain=plain or None) if is_interactive() else None
