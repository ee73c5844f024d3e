"""A conversation in a terminal: the person writes, the model's words stream, cards are answered, progress is shown.

The conversation lives in a server, and this is one window on it: what is said and answered in another window shows
here too. At the prompt, whatever happens elsewhere puts the line aside and brings it back. Ctrl+C closes a card or
cancels the running call and keeps what it has; a second one stops the turn.

What does not live here: the API (window.py), what is written of all this (transcript.py), reading a line (composer.py),
the commands that begin with a slash (chat_commands.py), and the cards that wait (chat_cards.py).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, aclosing
from typing import Any, TextIO

from lastword.errors import LastWordError
from lastword.log import trouble
from lastword.talk import ApiError, ConnectionLost
from lastword.terminal.chat_cards import ChatCards
from lastword.terminal.chat_commands import COMMANDS, ChatCommands, News
from lastword.terminal.composer import Composer, Left
from lastword.terminal.progress import Progress, Thinking
from lastword.terminal.transcript import Pending, Transcript, marked, preset_mark, preset_status
from lastword.terminal.tty import is_dumb, no_echo
from lastword.terminal.window import Cut, ItemChange, Replica, Window, WindowEvent


class TerminalChat:
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
        cards: TextIO,
        plain: bool,
    ) -> None:
        """`words` come first; `farewell` says what is left, given the session's id. Progress goes where cards go."""
        self.window = window
        self.replica = Replica()
        self._opening_words = tuple(words)
        self._farewell = farewell
        self._can_answer = can_answer
        self._stdin = stdin
        self._screen = cards
        self._plain = plain
        in_place = cards.isatty() and not plain and not is_dumb()
        progress = Progress(cards, in_place=in_place, is_marked=True)
        self._thinking = Thinking(cards, in_place=in_place, is_seen=can_answer and cards.isatty())
        self.transcript = Transcript(self.replica, screen, progress, plain=plain, can_answer=can_answer)
        self._cards = ChatCards(window, self.replica, self.transcript, stdin=stdin, screen=cards, plain=plain)
        self._commands = ChatCommands(self)
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._changes = Pending()
        """What has happened and was not shown yet. A card has the screen to itself while it is answered."""
        self._is_cut = False
        self._told_of_others = News()
        self._interrupts = 0
        self._said = ""
        """What was said here last, until its turn is over."""
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
                while not self.replica.is_known:
                    await self._hear_news()
                    if not self.replica.is_known:
                        self._show_changes()  # That the server does not answer, or why it fails.
                self.transcript.greet(self._opening_words)
                while await self._next(composer):
                    pass
            except Left:
                pass
            finally:
                self._following.cancel()
                await asyncio.wait({self._following, *self._errands})
            if not self._following.cancelled() and (problem := self._following.exception()) is not None:
                # The person left in the same moment, and did not wait for it.
                self.transcript.print(trouble("The conversation could not be followed to its end", problem))
        self.transcript.print(self._farewell(self.replica.session))

    def leave(self) -> None:
        """Let `talk` come to its end, whatever it is at."""
        self._leaving = True
        self._news.set()

    def words(self) -> dict[str, Iterable[str]]:
        """What can be typed after a slash, and what may follow it."""
        known: dict[str, Iterable[str]] = {f"/{name}": () for name in COMMANDS}
        known["/preset"] = [preset.name for preset in self.replica.settings.presets]
        for tool in self.replica.settings.tools:
            known.setdefault(f"/{tool.tool}", [f"{name}=" for name in tool.parameters])
        return known

    def invite(self, call_id: str) -> None:
        """Show the card of another program, and have it answered."""
        self._cards.invite(call_id)

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
                        what = f"answers with a failure: {event.failure}" if event.failure else "does not answer"
                        self._changes.add([f"The server {what}. Trying again until it does; Ctrl+D leaves."])
                    self._is_cut = True
                else:
                    if self._is_cut:
                        self._changes.add(["The server is back."])
                    self._is_cut = False
                    self._changes.add(self._take(event))
                self._news.set()

    def _take(self, event: WindowEvent) -> list[ItemChange | str]:
        is_first, before = not self.replica.is_known, self.replica.preset.name
        changes = self.replica.take(event)
        if is_first:
            return []  # What was there before is said in the greeting.
        now = self.replica.preset
        # Also when it was chosen in another window: auto-approval is never silent.
        return [*changes, *([f"From now on: {preset_status(now)}."] if now.name != before else [])]

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
        # What goes on in a server that does not answer is not known, and not waited for.
        return not self._is_cut and (self.replica.busy or bool(self._cards.waiting()))

    # The prompt.

    async def _next(self, composer: Composer) -> bool:
        self._check()
        self._show_changes()
        if self._is_at_work:
            await self._attend()
            return True
        self._offer_again(composer)
        typed = await self._read(composer)
        if not typed:
            return True
        name, _, rest = typed.removeprefix("/").partition(" ")
        try:
            if typed.startswith("/") and name in COMMANDS:
                return await self._commands.obey(name, rest.strip())
            await self.until_seen(await self.window.say(typed))
            self._said = typed
        except LastWordError as problem:
            self.transcript.complain(problem)
            is_known = not isinstance(problem, ConnectionLost)
            sent = "Your message was not sent." if is_known else "It is not known whether your message arrived."
            self.transcript.print(sent + (" Here it is again." if composer.keep(typed) else ""))
        return True

    def _offer_again(self, composer: Composer) -> None:
        """Have the person's message there again when its turn failed. Only a line that can be edited first: a pipe
        would send it for ever.
        """
        said, self._said = self._said, ""
        if said and self.replica.has_failed() and self._can_answer and not self._plain and composer.keep(said):
            self.transcript.print("Here is your message again; Enter sends it once more, Ctrl+C empties the line.")

    async def _read(self, composer: Composer) -> str | None:
        """What the person says; None when something else happened first, with what they had typed put aside."""
        mark = preset_mark(self.replica.preset)
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
                has_news = self._news_of_others() is not None or any(map(self.transcript.has_to_show, self._changes))
                if self._is_at_work or mark != preset_mark(self.replica.preset) or has_news:
                    return None
        finally:
            if not reading.done():
                composer.put_aside()
                reading.cancel()
                await asyncio.wait({reading})

    def _news_of_others(self) -> str | None:
        return self._told_of_others.line(self.replica.waiting_elsewhere())

    def _show_changes(self) -> None:
        while self._changes:
            self.transcript.show(self._changes.take())
        if (line := self._news_of_others()) is not None:
            self.transcript.print(line)
            self._told_of_others.say(self.replica.waiting_elsewhere())

    # While the model or a tool works, or a card waits.

    async def _attend(self) -> None:
        self._interrupts = 0
        with ExitStack() as after:
            if self._can_answer and not self._plain:
                after.enter_context(no_echo(self._stdin))
            try:
                while True:
                    self._check()
                    if self._cards.shown is None:
                        self._show_changes()
                        if not self._is_at_work:
                            break
                        if self._can_answer and not self._is_cut and not await self._cards.begin():
                            self._news.set()
                    elif self._cards.is_over(is_cut=self._is_cut):
                        await self._cards.take_away(is_cut=self._is_cut)
                        continue
                    else:
                        self._cards.shown.dialogue.count(len(self._cards.waiting()) - 1)
                    await self._wait_in_turn()
            finally:
                await self._cards.end()
                self._thinking.clear()
                self.transcript.finish()

    async def _wait_in_turn(self) -> None:
        """Until something happens, or the card is answered."""
        news: asyncio.Future[Any] = asyncio.ensure_future(self._news.wait())
        shown = self._cards.shown
        waited = {news} if shown is None else {news, shown.task}
        is_theirs = shown is None and not self._is_cut and not self.transcript.is_in_line
        patience = self._thinking.look(self.replica.sign_of_life() if is_theirs else None)
        done, _ = await asyncio.wait(waited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        if not done and not self._news.is_set():
            return
        self._thinking.clear()
        self._news.clear()
        if shown is not None and shown.task.done() and not await self._cards.answer():
            raise Left

    # Ctrl+C.

    def _interrupt(self) -> None:
        if self._cards.shown is not None:
            self._cards.shown.task.cancel()
            return
        if not self._is_at_work:
            self.leave()
            return
        self._interrupts += 1
        self._thinking.clear()
        running = self.replica.running()
        if self._interrupts == 1 and running:
            self.transcript.progress.say("Stopping; what is done so far is kept. Ctrl+C again stops the turn.")
            for call in running:
                self._send(self.window.cancel(call.id))
        elif self._interrupts <= 2:
            self._interrupts = 2
            self._send(self.window.stop())
        else:
            # The server does not react.
            self.leave()

    def _send(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else. That it came too late is no news."""

        async def do() -> None:
            try:
                await work
            except LastWordError as problem:
                if not (isinstance(problem, ApiError) and problem.code == "not_running"):
                    self._changes.add([marked(problem)])
                    self._news.set()
            except Exception as problem:
                self._changes.add([trouble("What runs could not be told to stop", problem)])
                self._news.set()

        errand = asyncio.ensure_future(do())
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)
