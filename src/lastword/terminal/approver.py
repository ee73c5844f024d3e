"""Asking the person at this terminal: one card at a time, the number of those that wait, and what a card would grant.

What does not live here: what a card says (card/face.py) and the conversation about it (card_dialogue.py).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from lastword.card import answer_of, one_line, question_view, visible
from lastword.errors import ArgumentsError, LastWordError
from lastword.rules import GrantChoice, SeenStep, folder_beside
from lastword.terminal.card_dialogue import CardDialogue, PlainCardDialogue, card_dialogue
from lastword.terminal.question_dialogue import Form, QuestionReply, question_dialogue
from lastword.terminal.tty import is_dumb

if TYPE_CHECKING:
    from lastword.card import responses
    from lastword.consent import ApprovalRequest, UserAction
    from lastword.session import Session
    from lastword.tools import QuestionAnswer, ToolQuestion

T = TypeVar("T")
_Done = TypeVar("_Done", covariant=True)
Look = Callable[["ApprovalRequest", "GrantChoice"], "Awaitable[SeenStep]"]
"""Says what a choice would grant from a card."""
ENDS_HERE = "This session ends with this program."


class _Dialogue(Protocol[_Done]):
    """What has the terminal while a person is asked something."""

    async def hold(self) -> _Done: ...

    def count(self, waiting: int) -> None: ...

    def say(self, words: str) -> None: ...


class TerminalApprover:
    """Asks the person at this terminal. An approver: `Session(registry, approver=TerminalApprover())`."""

    where = "terminal"
    close_words = "close"
    """What the keys of a card say that Esc does."""

    def __init__(self, *, plain: bool | None = None, stdin: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._stdin = stdin or sys.stdin
        self._screen = screen or sys.stderr
        self.plain = is_dumb() if plain is None else plain
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._dialogue: _Dialogue[Any] | None = None
        self._conversation: asyncio.Task[Any] | None = None
        self._look: Look | None = None
        self._session_ends = ""
        self._me = ""

    def offer_grants(self, session: Session) -> None:
        """Offer the second step on the cards of this session: allow a call, and don't ask again for others like it."""

        async def look(request: ApprovalRequest, choice: GrantChoice) -> SeenStep:
            folder = folder_beside(request, session.registry, session.editor)
            return await SeenStep.of(request, choice, folder, session.pending(), session.journal)

        self.offer_steps(look, session.journal.people.me)
        self._session_ends = ENDS_HERE

    def offer_steps(self, look: Look, me: str) -> None:
        """The same where cards are looked at without their session. `me`: who sits here, if people have names."""
        self._look, self._me, self._session_ends = look, me, ""

    async def __call__(self, request: ApprovalRequest) -> UserAction:
        """Show the card when its turn comes, and return what the person did."""
        async with self._own_turn():
            return await self._converse(self._card(request)) or request.close()

    async def confirms(self, request: ApprovalRequest) -> bool:
        """Show the card of a yes that was given by a command, and whether the person means it: the second act."""
        async with self._own_turn():
            return await self._card(request).confirm()

    async def on_question(self, question: ToolQuestion, *, elsewhere: bool = False) -> QuestionAnswer:
        """Show what a running tool asks when its turn comes, and return what the person said to it."""
        answers: list[QuestionAnswer] = []

        async def send(reply: QuestionReply) -> str | None:
            try:
                answers.append(answer_of(question, reply.action, reply.values))
            except ArgumentsError as problem:
                return visible("; ".join(f"{p.place}: {p.fact}" for p in problem.problems))
            return None

        async with self._own_turn():
            view = question_view(question, elsewhere=elsewhere)
            form = Form(question.tool, one_line(question.display_name), view, send)
            await self._converse(question_dialogue(form, self._stdin, self._screen, plain=self.plain))
        return answers[-1] if answers else answer_of(question, "close", {})

    @asynccontextmanager
    async def _own_turn(self) -> AsyncIterator[None]:
        """Whoever asks has the terminal alone; the others wait, and are counted."""
        self._count(+1)
        try:
            await self._turn.acquire()
        finally:
            self._count(-1)
        try:
            yield
        finally:
            self._dialogue = None
            self._turn.release()

    def close(self) -> bool:
        """Close the card that is shown, as Esc does. False when there is none."""
        if self._conversation is None or self._conversation.done():
            return False
        self._conversation.cancel()
        return True

    def _count(self, change: int) -> None:
        self._waiting += change
        if self._dialogue is not None:
            self._dialogue.count(self._waiting)

    def _card(self, request: ApprovalRequest) -> CardDialogue | PlainCardDialogue:
        steps = None if self._look is None else OwnSteps(request, self._look, self._session_ends, self._me)
        return card_dialogue(
            request, self._stdin, self._screen, plain=self.plain,
            waiting=self._waiting, steps=steps, close_words=self.close_words,
        )  # fmt: skip

    async def _converse(self, dialogue: _Dialogue[T]) -> T | None:
        """What the person did; None when they closed it."""
        self._dialogue = dialogue
        conversation: asyncio.Task[T] = asyncio.ensure_future(dialogue.hold())
        self._conversation = conversation
        try:
            await asyncio.wait({conversation})
        except asyncio.CancelledError:
            # It was answered elsewhere, or the session is over. The terminal is put in order first.
            conversation.cancel()
            await asyncio.wait({conversation})
            dialogue.say("This card waits no longer: it was answered elsewhere, or the call was given up.")
            raise
        if conversation.cancelled():  # by `close`
            dialogue.say("Closed without an answer.")
            return None
        return conversation.result()


class OwnSteps:
    """Of a card that is answered in this program."""

    def __init__(self, request: ApprovalRequest, look: Look, session_ends: str = "", me: str = "") -> None:
        self.why_none = SeenStep.why_none(request, me)
        self.session_ends = session_ends
        self._request = request
        self._look = look
        self._seen: SeenStep | None = None

    async def look(self, choice: GrantChoice) -> responses.GrantStep:
        self._seen = await self._look(self._request, choice)
        return self._seen.step

    def agree(self, step: responses.GrantStep) -> UserAction:
        seen = self._seen
        if seen is None or seen.terms is None or seen.step.digest != step.digest:
            raise LastWordError("this is not what was read last")
        return self._request.allow_with(seen.terms)
