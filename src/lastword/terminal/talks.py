"""What is on the screen of a chat and waits for its person: a card, or a question of a running tool.

What does not live here: when one begins and what becomes of it (chat.py), what is said on it (dialogue.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from lastword.card import views
from lastword.consent import ApprovalRequest, UserAction
from lastword.terminal.dialogue import CardDialogue, FlatDialogue
from lastword.terminal.inbox import Ask
from lastword.terminal.question import FlatQuestionDialogue, QuestionDialogue, QuestionReply
from lastword.terminal.steps import WindowSteps


class CardTalk:
    """A card that is on the screen, and the conversation about it."""

    def __init__(self, request: ApprovalRequest, dialogue: CardDialogue | FlatDialogue, steps: WindowSteps) -> None:
        self.request = request
        self.dialogue = dialogue
        self.steps = steps
        self.task: asyncio.Task[UserAction] = asyncio.ensure_future(dialogue.hold())

    def is_over(self, cards: Iterable[Ask], *, is_cut: bool) -> bool:
        """Whether the question is not waiting any more, though it was not answered here."""
        asked = {ask.digest for ask in cards}
        return not self.task.done() and (is_cut or self.request.digest not in asked)

    async def end(self) -> None:
        """Stop the dialogue, and wait until the terminal is in order again."""
        self.task.cancel()
        await asyncio.wait({self.task})


class QuestionTalk:
    """A question of a running tool that is on the screen, and the conversation about it."""

    def __init__(self, call: views.CallItem, dialogue: QuestionDialogue | FlatQuestionDialogue) -> None:
        assert call.question is not None
        self.question_id = call.question.id
        self.dialogue = dialogue
        self.task: asyncio.Task[QuestionReply] = asyncio.ensure_future(dialogue.hold())

    def is_over(self, calls: Iterable[views.CallItem], *, is_cut: bool) -> bool:
        """Whether the question is not asked any more, though it was not answered here."""
        asked = {call.question.id for call in calls if call.question is not None}
        return not self.task.done() and (is_cut or self.question_id not in asked)

    async def send_close(self) -> None:
        """Tell the server that the person closed it."""
        await self.dialogue.send(QuestionReply("close"))

    async def end(self) -> None:
        """Stop the dialogue, and wait until the terminal is in order again."""
        self.task.cancel()
        await asyncio.wait({self.task})
