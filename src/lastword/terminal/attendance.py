"""A person at the terminal while something runs: they see how it goes, and can stop it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from lastword import values
from lastword.call import Answered, Asked, Event, Finished, QuestionAnswered, QuestionAsked, Reported, Started
from lastword.consent import Outcome
from lastword.display import visible
from lastword.log import trouble
from lastword.rules import call_words, granted_words
from lastword.session import Session
from lastword.terminal.progress import Progress
from lastword.terminal.quiet import no_echo
from lastword.terminal.screen import is_dumb

if TYPE_CHECKING:
    from lastword.terminal.approver import TerminalApprover

T = TypeVar("T")


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
                    self.progress.say(granted_words(self._asked.get(call_id, ""), action.grant))
                self._answered(call_id)
            case QuestionAnswered(call_id):
                self._answered(call_id)
            case Started(call_id):
                self._running.add(call_id)
                if event.not_asked:
                    call = call_words(event.tool, values.decode(event.arguments))
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
            words = f"{what} changed. To take it back: lastword undo {outcome.call_id}"
            self.progress.show(Reported(outcome.call_id, words, None, None))

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
