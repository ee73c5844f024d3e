"""A conversation in a terminal: the person writes, the model's words stream, cards are answered, progress is shown.

The conversation lives in a server, and this is one window on it: what is said and answered in another window shows
here too. At the prompt, whatever happens elsewhere puts the line aside and brings it back. Ctrl+C closes a card or
cancels the running call and keeps what it has; a second one stops the turn.

What does not live here: the API (window.py), reading a line (composer.py), the commands that begin with a slash
(slash.py), and the conversation about a card (dialogue.py).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Any, TextIO

from assent.apiclient import ApiError, ConnectionLost
from assent.approval import ApprovalRequest, UserAction
from assent.display import visible
from assent.errors import AssentError
from assent.events import Reported
from assent.outcome import Kind
from assent.terminal.card import MIN_WIDTH, wrap
from assent.terminal.composer import Composer, Left
from assent.terminal.dialogue import CLOSED, CardDialogue, FlatDialogue
from assent.terminal.keys import Keyboard, no_echo
from assent.terminal.picture import Call, Change, Item, Message, Picture, Reply, Run
from assent.terminal.progress import Progress, fit
from assent.terminal.screen import is_dumb, size_of
from assent.terminal.slash import COMMANDS, Slash
from assent.terminal.speech import Speech
from assent.terminal.window import Cut, Window

# What stands before words that a script wrote, or that came with an error.
OUTPUT = "┊ "
SAID = "  "
# Of a result, what a line on the screen shows. The model gets all of it, and /runs has it too.
MAX_RESULT = 200
# What a window that comes later is shown of the conversation so far. The page and the journal have all of it.
MAX_PAST = 8

_WORDS: dict[Kind, str] = {
    "succeeded": "done",
    "failed": "failed",
    "raised": "failed",
    "invalid_arguments": "wrong arguments",
    "unknown_tool": "no such tool",
    "denied": "not allowed",
    "no_approver": "nobody to ask",
    "expired": "nobody answered",
    "stale": "out of date",
    "refused": "no card",
    "cancelled": "cancelled",
    "timed_out": "took too long",
    "outcome_unknown": "outcome unknown",
}
_HOW = {"allowed": "allowed", "edited": "changed and allowed", "denied": "denied", "closed": "closed without an answer"}

Act = Callable[[], None]


class Chat:
    """One person at one terminal."""

    def __init__(
        self,
        window: Window,
        *,
        words: Iterable[str] = (),
        farewell: Callable[[str], str],
        can_answer: bool,
        stdin: TextIO,
        screen: TextIO,
        plain: bool,
    ) -> None:
        """`words` come first; `farewell` says what is left, given the session's id."""
        self.window = window
        self.picture = Picture()
        self._opening_words = tuple(words)
        self._farewell = farewell
        self._can_answer = can_answer
        self._stdin = stdin
        self._screen = screen
        self._plain = plain
        self._speech = Speech(screen, plain=plain)
        in_place = sys.stderr.isatty() and not plain and not is_dumb()
        self._progress = Progress(sys.stderr, in_place=in_place, is_marked=True)
        self._slash = Slash(self)
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._changes: deque[Change | str] = deque()
        """What has happened and was not shown yet. A card has the screen to itself while it is answered."""
        self._is_cut = False
        self._talk: _Conversation | None = None
        self._settled: set[str] = set()
        """Digests of the questions that nobody is asked again here."""
        self._told: set[str] = set()
        """Calls of whose answer this window knows already."""
        self._interrupts = 0
        self._leaving = False
        self._errands: set[asyncio.Task[None]] = set()

    async def talk(self, composer: Composer) -> None:
        """Hear the person and the model, in turn, until the person leaves."""
        loop = asyncio.get_running_loop()
        with ExitStack() as after:
            for number, act in ((signal.SIGINT, self._interrupt), (signal.SIGTERM, self.leave)):
                loop.add_signal_handler(number, act)
                after.callback(loop.remove_signal_handler, number)
            self._following = loop.create_task(self._follow())
            self._following.add_done_callback(lambda done: self._news.set())
            try:
                while not self.picture.is_known:
                    await self._hear_news()
                self._greet()
                while await self._next(composer):
                    pass
            except Left:
                pass
            finally:
                self._following.cancel()
                await asyncio.wait({self._following, *self._errands})
        self.print(self._farewell(self.picture.session))

    def leave(self) -> None:
        """Let `talk` come to its end, whatever it is at."""
        self._leaving = True
        self._news.set()

    def print(self, *lines: str) -> None:
        """Lines of our own, between the model's words."""
        self._speech.finish()
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1)
        for line in lines:
            for piece in [line] if self._plain else wrap(line, width):
                self._screen.write(f"{piece}\n")
        self._screen.flush()

    def quote(self, text: str) -> None:
        """Marked words that are not ours, each line behind a bar, so that none can pass for one of ours."""
        bar = SAID if self._plain else OUTPUT
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1 - len(bar))
        for line in text.split("\n"):
            self.print(*(f"{bar}{piece}" for piece in ([line] if self._plain else wrap(line, width))))

    def words(self) -> dict[str, Iterable[str]]:
        """What can be typed after a slash, and what may follow it."""
        known: dict[str, Iterable[str]] = {f"/{name}": () for name in COMMANDS}
        known["/preset"] = [way.name for way in self.picture.settings.presets]
        for tool in self.picture.settings.tools:
            known.setdefault(f"/{tool.tool}", [f"{name}=" for name in tool.parameters])
        return known

    async def until_seen(self, event: str) -> None:
        """Wait until an event has come of which the server spoke."""
        while not self.window.has_seen(event):
            await self._hear_news()

    # Following the conversation.

    async def _follow(self) -> None:
        async with aclosing(self.window.events()) as events:
            async for event in events:
                if isinstance(event, Cut):
                    if not self._is_cut:
                        self._changes.append("The server does not answer. Trying again until it does; Ctrl+D leaves.")
                    self._is_cut = True
                else:
                    if self._is_cut:
                        self._changes.append("The server is back.")
                    self._is_cut = False
                    is_first = not self.picture.is_known
                    changes = self.picture.take(event)
                    self._changes += [] if is_first else changes
                self._news.set()

    async def _hear_news(self) -> None:
        """Wait until something has happened. What ended the stream ends the conversation."""
        await self._news.wait()
        self._news.clear()
        self._check()

    def _check(self) -> None:
        if self._following is not None and self._following.done():
            self._following.result()
        if self._leaving:
            raise Left

    @property
    def _is_at_work(self) -> bool:
        # Nobody knows what goes on in a server that does not answer, and nobody has to wait for it.
        return not self._is_cut and (self.picture.busy or bool(self.picture.waiting()))

    # The prompt.

    async def _next(self, composer: Composer) -> bool:
        self._check()
        self._show_changes()
        if self._is_at_work:
            await self._attend()
            return True
        typed = await self._read(composer)
        if not typed:
            return True
        name, _, rest = typed.removeprefix("/").partition(" ")
        try:
            if typed.startswith("/") and name in COMMANDS:
                return await self._slash.obey(name, rest.strip())
            await self.until_seen(await self.window.say(typed))
        except AssentError as problem:
            self.quote(visible(str(problem)))
            if not composer.keep(typed):
                self.print("Your message was not sent.")
        return True

    async def _read(self, composer: Composer) -> str | None:
        """What the person says; None when something else happened first, with what they had typed put aside."""
        mark = self.picture.settings.way.mark()
        reading = asyncio.ensure_future(composer.read(mark))
        try:
            while True:
                news = asyncio.ensure_future(self._news.wait())
                await asyncio.wait({reading, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                self._news.clear()
                if reading.done():
                    return reading.result().strip()
                self._check()
                if self._is_at_work or mark != self.picture.settings.way.mark() or any(map(self._acts, self._changes)):
                    return None
        finally:
            if not reading.done():
                composer.put_aside()
                reading.cancel()
                await asyncio.wait({reading})

    # While the model or a tool works, or a card waits.

    async def _attend(self) -> None:
        self._interrupts = 0
        with ExitStack() as after:
            if self._can_answer and not self._plain:
                after.enter_context(no_echo(self._stdin))
            try:
                while True:
                    self._check()
                    if self._talk is None:
                        self._show_changes()
                        if not self._is_at_work:
                            break
                        await self._begin_card()
                    elif self._talk.is_over(self.picture, is_cut=self._is_cut):
                        await self._take_card_away(self._talk)
                        continue
                    else:
                        self._talk.dialogue.count(len(self.picture.waiting()) - 1)
                    await self._wait_in_turn()
            finally:
                if self._talk is not None:
                    await self._talk.end()
                    self._talk = None
                self._progress.release()
        self._speech.finish()

    async def _wait_in_turn(self) -> None:
        """Until something happens, or the card is answered."""
        news: asyncio.Future[Any] = asyncio.ensure_future(self._news.wait())
        waited = {news} if self._talk is None else {news, self._talk.task}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        self._news.clear()
        if self._talk is not None and self._talk.task.done():
            talk, self._talk = self._talk, None
            await self._answer(talk)

    async def _begin_card(self) -> None:
        waiting = self.picture.waiting()
        call = next((call for call in waiting if call.card and call.card.digest not in self._settled), None)
        if call is None or call.card is None or not self._can_answer or self._is_cut:
            return
        try:
            request = await self.window.question(call.id, call.card.digest)
        except ConnectionLost:
            return  # The stream finds out as well, and says so.
        except ApiError as problem:
            # Where somebody was quicker, the event that says so is on its way.
            if problem.code not in ("not_waiting", "changed"):
                self.quote(visible(str(problem)))
            self._settled.add(call.card.digest)
            self._news.set()
            return
        self._speech.finish()
        self._progress.release()
        self._talk = _Conversation(request, self._dialogue(request, len(waiting) - 1))

    def _dialogue(self, request: ApprovalRequest, others: int) -> CardDialogue | FlatDialogue:
        if self._plain:
            return FlatDialogue(request, self._stdin, sys.stderr, others)
        return CardDialogue(request, Keyboard(self._stdin, sys.stderr), sys.stderr, others)

    async def _answer(self, talk: _Conversation) -> None:
        """Send what the person did, and say what became of it if that is not what they meant."""
        if talk.task.cancelled():  # by Ctrl+C, where it is not a key
            talk.dialogue.say(CLOSED)
        action = talk.request.close() if talk.task.cancelled() else talk.task.result()
        try:
            await self.window.answer(talk.request, action, talk.dialogue.edits)
        except ApiError as problem:
            if problem.code in ("not_waiting", "changed"):
                self._settled.add(talk.request.digest)
                self.print("Your answer came too late, and does not count.")
            else:
                self.quote(visible(str(problem)))
        except AssentError as problem:
            self.quote(visible(str(problem)))
            self.print("Your answer was not sent. The card comes back with the server.")
        else:
            self._settled.add(talk.request.digest)
            self._told.add(talk.request.call_id)

    async def _take_card_away(self, talk: _Conversation) -> None:
        """The card was answered in another window, or asks nothing any more."""
        self._talk = None
        await talk.end()
        item = self.picture.items.get(talk.request.call_id)
        if self._is_cut:
            talk.dialogue.say("The card comes back with the server.")
        elif isinstance(item, Call) and item.reply is not None:
            self._told.add(item.id)
            words = _answered(item.reply)
            talk.dialogue.say(words[0].upper() + words[1:])
        elif isinstance(item, Call) and item.card is not None:
            talk.dialogue.say("The question has changed, and is asked again.")
        else:
            talk.dialogue.say("This card waits no longer: the call was given up.")

    # Ctrl+C.

    def _interrupt(self) -> None:
        if self._talk is not None:
            self._talk.task.cancel()
            return
        if not self._is_at_work:
            self.leave()
            return
        self._interrupts += 1
        running = self.picture.running()
        if self._interrupts == 1 and running:
            self._progress.say("Stopping; what is done so far is kept. Ctrl+C again stops the turn.")
            for call in running:
                self._send(self.window.cancel(call.id))
        elif self._interrupts <= 2:
            self._interrupts = 2
            self._send(self.window.stop())
        else:
            # Nobody listens on the other side.
            self.leave()

    def _send(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else. That it came too late is no news."""

        async def do() -> None:
            try:
                await work
            except AssentError as problem:
                if not (isinstance(problem, ApiError) and problem.code == "not_running"):
                    self._changes.append(visible(str(problem)))
                    self._news.set()

        errand = asyncio.ensure_future(do())
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    # Showing.

    def _greet(self) -> None:
        picture = self.picture
        self.print(
            *self._opening_words,
            f"This is {picture.settings.way.status()}.",
            f"{len(picture.settings.tools)} tools; session {picture.session}. /help says what else can be typed.",
        )
        past = [item for item in picture.items.values() if not isinstance(item, Call) or item.card is None]
        for item in past[-MAX_PAST:]:
            for act in self._acts((None, item), is_past=True):
                act()

    def _show_changes(self) -> None:
        while self._changes:
            for act in self._acts(self._changes.popleft()):
                act()

    def _acts(self, change: Change | str, *, is_past: bool = False) -> list[Act]:
        """What there is to show of a change: nothing of most."""
        if isinstance(change, str):
            return [lambda: self.print(change)]
        before, after = change
        match after:
            case Message():
                return self._acts_of_message(before, after, is_past=is_past)
            case Run():
                printed = before.printed if isinstance(before, Run) else 0
                new = () if is_past or after.printed <= printed else after.lines[printed - after.printed :]
                return [partial(self.quote, line) for line in new]
            case Call():
                return self._acts_of_call(before if isinstance(before, Call) else None, after, is_past=is_past)
        return [self._speech.finish] if isinstance(before, Message) and before.open else []

    def _acts_of_message(self, before: Item | None, message: Message, *, is_past: bool) -> list[Act]:
        if message.by == "assistant":
            if message.open:
                return [lambda: self._speech.say(message.text)]
            # One that was not complete when it was last looked at is finished, and any other is said whole.
            is_new = before is None or (isinstance(before, Message) and before.open)
            return [lambda: self._speech.finish(message.text)] if is_new else []
        if before is not None:
            return []
        if message.by == "assent":
            return [lambda: self.quote(message.text) if message.problem else self.print(message.text)]
        if message.window == self.picture.window and not is_past:
            return []
        words = "You said" if is_past else "You, in another window"
        return [lambda: self._show_said(words, message.text)]

    def _show_said(self, words: str, text: str) -> None:
        if "\n" in text:
            self.print(f"{words}:")
            self.quote(text)
        else:
            self.print(f"{words}: {text}" if self._plain else f"{words} ▸ {text}")

    def _acts_of_call(self, before: Call | None, call: Call, *, is_past: bool) -> list[Act]:
        acts: list[Act] = []
        if call.session is not None:
            if call.card is not None and (before is None or before.card != call.card):
                words = f"Another program asks: {call.name} ({call.tool})."
                acts.append(lambda: self.print(f"{words} Answer it on the page, or with: assent answer {call.id}"))
            return acts
        if before is None or before.status != call.status:
            acts.append(self._speech.finish)
        if call.card is not None and (before is None or before.card != call.card) and not self._can_answer:
            acts.append(lambda: self.print(f"{call.name} ({call.tool}) waits for an answer in another window."))
        if not is_past and call.reply is not None and (before is None or before.reply != call.reply):
            acts += self._acts_of_reply(call, call.reply)
        seen = before.reported_so_far if before is not None else 0
        for report in () if is_past else call.reports:
            if report.number > seen:
                told = Reported(call.id, report.text, report.id, report.fraction)
                acts.append(partial(self._report, told))
        if call.end is not None and (before is None or before.end is None):
            acts.append(lambda: self.print(self._ended(call)))
            if call.changed and not is_past:
                acts.append(lambda: self._tell_undo(call))
        return acts

    def _acts_of_reply(self, call: Call, reply: Reply) -> list[Act]:
        if reply.how == "auto" or call.id in self._told:
            return []
        return [lambda: self.print(f"{call.name}: {_answered(reply)}")]

    def _report(self, report: Reported) -> None:
        self._speech.finish()
        self._progress.show(report)

    def _ended(self, call: Call) -> str:
        assert call.end is not None
        how = _WORDS[call.end.kind]
        if call.reply is not None and call.reply.how == "auto":
            how += f", auto-approved by {call.reply.by}"
        first = call.end.message.split("\n", 1)[0]
        words = f"{call.tool} ({how}): {first[:MAX_RESULT]}{'…' if len(first) > MAX_RESULT else ''}"
        if self._plain:
            return words
        return fit(f"{'✓' if call.end.success else '✗'} {words}", size_of(self._screen)[0] - 1)

    def _tell_undo(self, call: Call) -> None:
        """Say how to take the changes back: nobody can type an id that they have not seen."""
        first, more = call.changed[0], len(call.changed) - 1
        what = f"{first} and {more} more" if more else first
        self._progress.show(Reported(call.id, f"{what} changed. To take it back: /undo {call.id}", None, None))


class _Conversation:
    """A card that is on the screen, and the conversation about it."""

    def __init__(self, request: ApprovalRequest, dialogue: CardDialogue | FlatDialogue) -> None:
        self.request = request
        self.dialogue = dialogue
        self.task: asyncio.Task[UserAction] = asyncio.ensure_future(dialogue.hold())

    def is_over(self, picture: Picture, *, is_cut: bool) -> bool:
        """Whether the question is not waiting any more, though nobody answered it here."""
        asked = {call.card.digest for call in picture.waiting() if call.card is not None}
        return not self.task.done() and (is_cut or self.request.digest not in asked)

    async def end(self) -> None:
        """Put the terminal in order before anybody goes on."""
        self.task.cancel()
        await asyncio.wait({self.task})


def _answered(reply: Reply) -> str:
    words = f"answered by {reply.by}: {_HOW.get(reply.how, reply.how)}"
    return f"{words}, because: {reply.reason}" if reply.reason else f"{words}."
