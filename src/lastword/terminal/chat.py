"""A conversation in a terminal: the person writes, the model's words stream, cards are answered, progress is shown.

The conversation lives in a server, and this is one window on it: what is said and answered in another window shows
here too. At the prompt, whatever happens elsewhere puts the line aside and brings it back. Ctrl+C closes a card or
cancels the running call and keeps what it has; a second one stops the turn.

What does not live here: the API (window.py), what is written of all this (transcript.py), reading a line (composer.py),
the commands that begin with a slash (slash.py), and the conversation about a card (dialogue.py).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack, aclosing
from typing import Any, TextIO

from lastword.card import views
from lastword.consent import ApprovalRequest
from lastword.display import visible
from lastword.errors import LastWordError
from lastword.log import trouble
from lastword.talk import ApiError, ConnectionLost
from lastword.terminal.composer import Composer, Left
from lastword.terminal.dialogue import CLOSED, CardDialogue, FlatDialogue
from lastword.terminal.inbox import Ask, News
from lastword.terminal.keys import Keyboard
from lastword.terminal.picture import ItemChange, Pending, Picture
from lastword.terminal.progress import Progress
from lastword.terminal.question import FlatQuestionDialogue, QuestionDialogue, QuestionReply
from lastword.terminal.quiet import no_echo
from lastword.terminal.screen import is_dumb
from lastword.terminal.slash import COMMANDS, Slash
from lastword.terminal.steps import WindowSteps
from lastword.terminal.talks import CardTalk, QuestionTalk
from lastword.terminal.thinking import Thinking
from lastword.terminal.transcript import Transcript, answer_words, preset_mark, preset_status
from lastword.terminal.window import Cut, Window, WindowEvent


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
        self.picture = Picture()
        self._opening_words = tuple(words)
        self._farewell = farewell
        self._can_answer = can_answer
        self._stdin = stdin
        self._screen = cards
        self._plain = plain
        in_place = cards.isatty() and not plain and not is_dumb()
        progress = Progress(cards, in_place=in_place, is_marked=True)
        self._thinking = Thinking(cards, in_place=in_place, is_seen=can_answer and cards.isatty())
        self.transcript = Transcript(self.picture, screen, progress, plain=plain, can_answer=can_answer)
        self._slash = Slash(self)
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._changes = Pending()
        """What has happened and was not shown yet. A card has the screen to itself while it is answered."""
        self._is_cut = False
        self._talk: CardTalk | QuestionTalk | None = None
        self._settled: set[str] = set()
        """Digests of the questions that are not shown again here."""
        self._invited: dict[str, None] = {}
        """Calls of other programs whose card the person wants to answer here."""
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
                while not self.picture.is_known:
                    await self._hear_news()
                    if not self.picture.is_known:
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
        self.transcript.print(self._farewell(self.picture.session))

    def leave(self) -> None:
        """Let `talk` come to its end, whatever it is at."""
        self._leaving = True
        self._news.set()

    def words(self) -> dict[str, Iterable[str]]:
        """What can be typed after a slash, and what may follow it."""
        known: dict[str, Iterable[str]] = {f"/{name}": () for name in COMMANDS}
        known["/preset"] = [preset.name for preset in self.picture.settings.presets]
        for tool in self.picture.settings.tools:
            known.setdefault(f"/{tool.tool}", [f"{name}=" for name in tool.parameters])
        return known

    def invite(self, call_id: str) -> None:
        """Show the card of another program, and have it answered."""
        self._invited[call_id] = None

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
        is_first, preset = not self.picture.is_known, self.picture.settings.preset
        changes = self.picture.take(event)
        if is_first:
            return []  # What was there before is said in the greeting.
        settings = self.picture.settings
        # Also when it was chosen in another window: auto-approval is never silent.
        return [*changes, *([f"From now on: {preset_status(settings.chosen)}."] if settings.preset != preset else [])]

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
        return not self._is_cut and (self.picture.busy or bool(self._cards()))

    def _cards(self) -> list[Ask]:
        """The questions that are answered here. Those of other programs only when the person asks for them."""
        own = [Ask(call.id, call.card.digest) for call in self.picture.waiting() if call.card is not None]
        inbox = self.picture.inbox
        return [*own, *(Ask(id, inbox[id].digest) for id in self._invited if id in inbox and inbox[id].session)]

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
                return await self._slash.obey(name, rest.strip())
            await self.until_seen(await self.window.say(typed))
            self._said = typed
        except LastWordError as problem:
            self.transcript.quote(visible(str(problem)))
            is_known = not isinstance(problem, ConnectionLost)
            sent = "Your message was not sent." if is_known else "It is not known whether your message arrived."
            self.transcript.print(sent + (" Here it is again." if composer.keep(typed) else ""))
        return True

    def _offer_again(self, composer: Composer) -> None:
        """Have the person's message there again when its turn failed. Only a line that can be edited first: a pipe
        would send it for ever.
        """
        last, said = next(reversed(self.picture.items.values()), None), self._said
        self._said = ""
        failed = isinstance(last, views.MessageItem) and last.problem
        if said and failed and self._can_answer and not self._plain and composer.keep(said):
            self.transcript.print("Here is your message again; Enter sends it once more, Ctrl+C empties the line.")

    async def _read(self, composer: Composer) -> str | None:
        """What the person says; None when something else happened first, with what they had typed put aside."""
        mark = preset_mark(self.picture.settings.chosen)
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
                if self._is_at_work or mark != preset_mark(self.picture.settings.chosen) or self._has_news():
                    return None
        finally:
            if not reading.done():
                composer.put_aside()
                reading.cancel()
                await asyncio.wait({reading})

    def _has_news(self) -> bool:
        return self._news_of_others() is not None or any(map(self.transcript.has_to_show, self._changes))

    def _news_of_others(self) -> str | None:
        return self._told_of_others.line(self.picture.waiting_elsewhere())

    def _show_changes(self) -> None:
        while self._changes:
            self.transcript.show(self._changes.take())
        if (line := self._news_of_others()) is not None:
            self.transcript.print(line)
            self._told_of_others.say(self.picture.waiting_elsewhere())

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
                    elif self._is_over(self._talk):
                        await self._take_card_away(self._talk)
                        continue
                    else:
                        self._talk.dialogue.count(len(self._cards()) - 1)
                    await self._wait_in_turn()
            finally:
                if self._talk is not None:
                    await self._talk.end()
                    self._talk = None
                self._thinking.clear()
                self.transcript.finish()

    def _is_over(self, talk: CardTalk | QuestionTalk) -> bool:
        if isinstance(talk, QuestionTalk):
            return talk.is_over(self.picture.asking(), is_cut=self._is_cut)
        return talk.is_over(self._cards(), is_cut=self._is_cut)

    async def _wait_in_turn(self) -> None:
        """Until something happens, or the card is answered."""
        news: asyncio.Future[Any] = asyncio.ensure_future(self._news.wait())
        waited = {news} if self._talk is None else {news, self._talk.task}
        is_theirs = self._talk is None and not self._is_cut and not self.transcript.is_in_line
        patience = self._thinking.look(self.picture.sign_of_life() if is_theirs else None)
        done, _ = await asyncio.wait(waited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        if not done and not self._news.is_set():
            return
        self._thinking.clear()
        self._news.clear()
        if self._talk is not None and self._talk.task.done():
            talk, self._talk = self._talk, None
            await self._answer(talk)

    async def _begin_card(self) -> None:
        waiting = self._cards()
        ask = next((ask for ask in waiting if ask.digest not in self._settled), None)
        if not self._can_answer or self._is_cut:
            return
        if ask is None:
            asking = [c for c in self.picture.asking() if c.question and c.question.id not in self._settled]
            if asking:
                self.transcript.finish()
                self._talk = QuestionTalk(asking[0], self._form(asking[0]))
            return
        try:
            request, why_no_step = await self.window.question(ask.id, ask.digest)
        except ConnectionLost:
            return  # The stream finds out as well, and says so.
        except ApiError as problem:
            # Where another window was quicker, the event that says so is on its way.
            if problem.code not in ("not_waiting", "changed"):
                self.transcript.quote(visible(str(problem)))
            self._settled.add(ask.digest)
            self._news.set()
            return
        self.transcript.finish()
        if self._is_of_another(ask.id):
            # What stands on the card about who asked is the program's own word.
            self.transcript.print(f"This card is of another program: {self.picture.inbox[ask.id].program}.")
        steps = WindowSteps(request, self.window, why_no_step)
        self._talk = CardTalk(request, self._dialogue(request, len(waiting) - 1, steps), steps)

    def _form(self, call: views.CallItem) -> QuestionDialogue | FlatQuestionDialogue:
        question = call.question
        assert question is not None

        async def send(reply: QuestionReply) -> str | None:
            try:
                await self.window.answer_question(call.id, question.id, reply.action, reply.values)
            except ApiError as problem:
                if problem.code != "not_waiting":
                    return visible(str(problem))
                self.transcript.print("Your answer came too late, and does not count.")
            except LastWordError as problem:
                return f"It is not known whether your answer arrived. {visible(str(problem))}"
            self._settled.add(question.id)
            return None

        if self._plain:
            return FlatQuestionDialogue(call, self._stdin, self._screen, send)
        return QuestionDialogue(call, Keyboard(self._stdin, self._screen), self._screen, send)

    def _dialogue(self, request: ApprovalRequest, others: int, steps: WindowSteps) -> CardDialogue | FlatDialogue:
        if self._plain:
            return FlatDialogue(request, self._stdin, self._screen, others, steps)
        return CardDialogue(request, Keyboard(self._stdin, self._screen), self._screen, others, steps)

    async def _answer(self, talk: CardTalk | QuestionTalk) -> None:
        """Send what the person did, and say what became of it if that is not what they meant."""
        if isinstance(talk, QuestionTalk):
            await self._end_form(talk)
            return
        if talk.task.cancelled():  # by Ctrl+C, where it is not a key
            talk.dialogue.say(CLOSED)
        try:
            action = talk.request.close() if talk.task.cancelled() else talk.task.result()
        except OSError:
            raise Left from None  # The terminal is gone. The card still waits in other windows.
        granted = None if talk.task.cancelled() else talk.steps.agreed
        is_closed = granted is None and not action.agrees and not action.secondary_confirmed
        if is_closed and self._is_of_another(talk.request.call_id):
            # Whoever looked at what another program asks, and went away, has not answered it.
            self._invited.pop(talk.request.call_id, None)
            self.transcript.print("It still waits. /inbox lists it.")
            return
        try:
            if granted is None:
                await self.window.answer(talk.request, action, talk.dialogue.edits)
            else:
                await self.window.grant(talk.request, granted)
                self.transcript.print(talk.steps.granted)
        except ApiError as problem:
            # Where the second step would grant something else by now, the card itself may be the same: it comes back.
            if problem.code == "not_waiting" or (problem.code == "changed" and granted is None):
                self._settled.add(talk.request.digest)
                self.transcript.print("Your answer came too late, and does not count.")
            else:
                self.transcript.quote(visible(str(problem)))
                if granted is not None:
                    self.transcript.print("Nothing was granted, and the card still waits.")
        except LastWordError as problem:
            self.transcript.quote(visible(str(problem)))
            self.transcript.print("It is not known whether your answer arrived. If it did not, the card comes back.")
        else:
            self._settled.add(talk.request.digest)
            self.transcript.told.add(talk.request.call_id)

    def _is_of_another(self, call_id: str) -> bool:
        entry = self.picture.inbox.get(call_id)
        return entry is not None and bool(entry.session)

    async def _end_form(self, talk: QuestionTalk) -> None:
        """The dialogue about a question is over. It has sent the answer itself, unless Ctrl+C ended it."""
        if talk.task.cancelled():
            talk.dialogue.say(CLOSED)
            await talk.send_close()
        else:
            try:
                talk.task.result()
            except OSError:
                raise Left from None  # The terminal is gone. The question still waits in other windows.
        self._settled.add(talk.question_id)

    async def _take_card_away(self, talk: CardTalk | QuestionTalk) -> None:
        """The card was answered in another window, or asks nothing any more."""
        self._talk = None
        await talk.end()
        if isinstance(talk, QuestionTalk):
            gone = "The question comes back with the server." if self._is_cut else "This question waits no longer."
            talk.dialogue.say(gone)
            return
        item = self.picture.items.get(talk.request.call_id)
        if self._is_cut:
            talk.dialogue.say("The card comes back with the server.")
        elif isinstance(item, views.CallItem) and item.reply is not None:
            self.transcript.told.add(item.id)
            words = answer_words(item.reply)
            talk.dialogue.say(words[0].upper() + words[1:])
        elif isinstance(item, views.CallItem) and item.card is not None:
            talk.dialogue.say("The question has changed, and is asked again.")
        else:
            talk.dialogue.say("This card waits no longer: it was answered elsewhere, or the call was given up.")

    # Ctrl+C.

    def _interrupt(self) -> None:
        if self._talk is not None:
            self._talk.task.cancel()
            return
        if not self._is_at_work:
            self.leave()
            return
        self._interrupts += 1
        self._thinking.clear()
        running = self.picture.running()
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
                    self._changes.add([visible(str(problem))])
                    self._news.set()
            except Exception as problem:
                self._changes.add([trouble("What runs could not be told to stop", problem)])
                self._news.set()

        errand = asyncio.ensure_future(do())
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)
