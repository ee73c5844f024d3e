"""What waits for its person in a chat: cards and questions of running tools, of which one is on the screen at a time.

What does not live here: what is said on a card (card_dialogue.py, question_dialogue.py), and what else goes on in a
chat (chat.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, TextIO

from lastword.errors import LastWordError
from lastword.talk import ApiError, ConnectionLost
from lastword.terminal.card_dialogue import CLOSED, CardDialogue, PlainCardDialogue, card_dialogue
from lastword.terminal.question_dialogue import (
    Form,
    PlainQuestionDialogue,
    QuestionDialogue,
    QuestionReply,
    question_dialogue,
)
from lastword.terminal.transcript import Transcript, answer_words, marked

if TYPE_CHECKING:
    from lastword.card import responses, views
    from lastword.consent import ApprovalRequest, UserAction
    from lastword.rules import GrantChoice
    from lastword.terminal.window import Replica, Window

TOO_LATE = "Your answer came too late, and does not count."


class Ask(NamedTuple):
    """A question that waits: of which call, and which one of it."""

    id: str
    digest: str


class WindowSteps:
    """The second step of a card that a server asks about. It puts the grant together itself, from what it told."""

    session_ends = ""

    def __init__(self, request: ApprovalRequest, window: Window, why_none: str) -> None:
        self._request = request
        self._window = window
        self.why_none = why_none
        self.agreed: str | None = None
        """The digest of the step that the person said yes to."""
        self.granted = ""
        """What is to be said once the server has granted it."""

    async def look(self, choice: GrantChoice) -> responses.GrantStep:
        return await self._window.grant_step(self._request, choice)

    def agree(self, step: responses.GrantStep) -> UserAction:
        self.agreed, self.granted = step.digest, step.granted
        return self._request.allow()


class _ShownCard:
    """A card that is on the screen, and the conversation about it."""

    def __init__(
        self, request: ApprovalRequest, dialogue: CardDialogue | PlainCardDialogue, steps: WindowSteps
    ) -> None:
        self.request = request
        self.dialogue = dialogue
        self.steps = steps
        self.digest = request.digest
        self.task: asyncio.Task[UserAction] = asyncio.ensure_future(dialogue.hold())


class _ShownQuestion:
    """A question of a running tool that is on the screen, and the conversation about it."""

    def __init__(self, id: str, dialogue: QuestionDialogue | PlainQuestionDialogue) -> None:
        self.dialogue = dialogue
        self.digest = id
        self.task: asyncio.Task[QuestionReply] = asyncio.ensure_future(dialogue.hold())


class ChatCards:
    """The cards and questions of one chat."""

    def __init__(
        self, window: Window, replica: Replica, transcript: Transcript, *, stdin: TextIO, screen: TextIO, plain: bool
    ) -> None:
        self.shown: _ShownCard | _ShownQuestion | None = None
        self._window = window
        self._replica = replica
        self._transcript = transcript
        self._stdin = stdin
        self._screen = screen
        self._plain = plain
        self._settled: set[str] = set()
        """Digests of the cards and ids of the questions that are not shown again here."""
        self._invited: dict[str, None] = {}
        """Calls of other programs whose card the person wants to answer here."""

    def invite(self, call_id: str) -> None:
        """Show the card of another program, and have it answered."""
        self._invited[call_id] = None

    def waiting(self) -> list[Ask]:
        """The cards that are answered here. Those of other programs only when the person asks for them."""
        own = [Ask(call.id, call.card.digest) for call in self._replica.waiting() if call.card is not None]
        inbox = self._replica.inbox
        return [*own, *(Ask(id, inbox[id].digest) for id in self._invited if id in inbox and inbox[id].session)]

    async def begin(self) -> bool:
        """Put on the screen what waits next. False when it could not be, and what waits has to be looked at again."""
        waiting = self.waiting()
        ask = next((ask for ask in waiting if ask.digest not in self._settled), None)
        if ask is None:
            self._begin_question()
            return True
        try:
            request, why_no_step = await self._window.question(ask.id, ask.digest)
        except ConnectionLost:
            return True  # The stream finds out as well, and says so.
        except ApiError as problem:
            # Where another window was quicker, the event that says so is on its way.
            if problem.code not in ("not_waiting", "changed"):
                self._transcript.complain(problem)
            self._settled.add(ask.digest)
            return False
        self._transcript.finish()
        if self._is_of_another(ask.id):
            # What stands on the card about who asked is the program's own word.
            self._transcript.print(f"This card is of another program: {self._replica.inbox[ask.id].program}.")
        steps = WindowSteps(request, self._window, why_no_step)
        dialogue = card_dialogue(
            request, self._stdin, self._screen, plain=self._plain, waiting=len(waiting) - 1, steps=steps
        )
        self.shown = _ShownCard(request, dialogue, steps)
        return True

    def is_over(self, *, is_cut: bool) -> bool:
        """Whether what is shown is not asked any more, though it was not answered here."""
        if self.shown is None or self.shown.task.done():
            return False
        asked = {ask.digest for ask in self.waiting()}
        asked |= {call.question.id for call in self._replica.asking() if call.question is not None}
        return is_cut or self.shown.digest not in asked

    async def take_away(self, *, is_cut: bool) -> None:
        """What is shown was answered in another window, or asks nothing any more."""
        shown = self.shown
        assert shown is not None
        await self.end()
        if isinstance(shown, _ShownQuestion):
            shown.dialogue.say(
                "The question comes back with the server." if is_cut else "This question waits no longer."
            )
            return
        item = self._replica.call(shown.request.call_id)
        if is_cut:
            shown.dialogue.say("The card comes back with the server.")
        elif item is not None and item.reply is not None:
            self._transcript.told.add(item.id)
            words = answer_words(item.reply)
            shown.dialogue.say(words[0].upper() + words[1:])
        elif item is not None and item.card is not None:
            shown.dialogue.say("The question has changed, and is asked again.")
        else:
            shown.dialogue.say("This card waits no longer: it was answered elsewhere, or the call was given up.")

    async def end(self) -> None:
        """Stop the conversation about what is shown, and wait until the terminal is in order again."""
        shown, self.shown = self.shown, None
        if shown is not None:
            shown.task.cancel()
            await asyncio.wait({shown.task})

    async def answer(self) -> bool:
        """The conversation is over: send what the person did, and say what became of it if it is not what they meant.

        False when the terminal is gone. What was shown still waits in other windows then.
        """
        shown, self.shown = self.shown, None
        assert shown is not None
        is_closed = shown.task.cancelled()  # by Ctrl+C, where it is not a key
        if is_closed:
            shown.dialogue.say(CLOSED)
        elif isinstance(shown.task.exception(), OSError):
            return False
        if isinstance(shown, _ShownQuestion):
            # Its dialogue has sent the answer itself, unless Ctrl+C ended it.
            if is_closed:
                await shown.dialogue.form.send(QuestionReply("close"))
            else:
                shown.task.result()
            self._settled.add(shown.digest)
            return True
        action = shown.request.close() if is_closed else shown.task.result()
        await self._send(shown, action, None if is_closed else shown.steps.agreed)
        return True

    async def _send(self, shown: _ShownCard, action: UserAction, granted: str | None) -> None:
        request = shown.request
        is_no_answer = granted is None and not action.agrees and not action.secondary_confirmed
        if is_no_answer and self._is_of_another(request.call_id):
            # Whoever looked at what another program asks, and went away, has not answered it.
            self._invited.pop(request.call_id, None)
            self._transcript.print("It still waits. /inbox lists it.")
            return
        try:
            if granted is None:
                await self._window.answer(request, action, shown.dialogue.edits)
            else:
                await self._window.grant(request, granted)
                self._transcript.print(shown.steps.granted)
        except ApiError as problem:
            # Where the second step would grant something else by now, the card itself may be the same: it comes back.
            if problem.code == "not_waiting" or (problem.code == "changed" and granted is None):
                self._settled.add(request.digest)
                self._transcript.print(TOO_LATE)
            else:
                self._transcript.complain(problem)
                if granted is not None:
                    self._transcript.print("Nothing was granted, and the card still waits.")
        except LastWordError as problem:
            self._transcript.complain(problem)
            self._transcript.print("It is not known whether your answer arrived. If it did not, the card comes back.")
        else:
            self._settled.add(request.digest)
            self._transcript.told.add(request.call_id)

    def _begin_question(self) -> None:
        for call in self._replica.asking():
            if call.question is not None and call.question.id not in self._settled:
                self._transcript.finish()
                self.shown = _ShownQuestion(call.question.id, self._form(call, call.question))
                return

    def _form(self, call: views.CallItem, question: views.QuestionView) -> QuestionDialogue | PlainQuestionDialogue:
        async def send(reply: QuestionReply) -> str | None:
            try:
                await self._window.answer_question(call.id, question.id, reply.action, reply.values)
            except ApiError as problem:
                if problem.code != "not_waiting":
                    return marked(problem)
                self._transcript.print(TOO_LATE)
            except LastWordError as problem:
                return f"It is not known whether your answer arrived. {marked(problem)}"
            self._settled.add(question.id)
            return None

        form = Form(call.tool, call.name, question, send)
        return question_dialogue(form, self._stdin, self._screen, plain=self._plain)

    def _is_of_another(self, call_id: str) -> bool:
        entry = self._replica.inbox.get(call_id)
        return entry is not None and bool(entry.session)
