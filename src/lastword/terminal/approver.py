"""Asking the person at this terminal: one card at a time, and the number of those that wait.

What does not live here: what a card says (card/face.py) and the conversation about it (dialogue.py).
"""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO

from lastword.consent.approval import ApprovalRequest, UserAction
from lastword.terminal.dialogue import CardDialogue, FlatDialogue
from lastword.terminal.keys import Keyboard
from lastword.terminal.screen import is_dumb, is_interactive


class TerminalApprover:
    """Asks the person at this terminal. An approver: `Session(registry, approver=TerminalApprover())`."""

    where = "terminal"

    def __init__(self, *, plain: bool | None = None, stdin: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._stdin = stdin or sys.stdin
        self._screen = screen or sys.stderr
        self.plain = is_dumb() if plain is None else plain
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._dialogue: CardDialogue | FlatDialogue | None = None
        self._conversation: asyncio.Task[UserAction] | None = None

    async def __call__(self, request: ApprovalRequest) -> UserAction:
        """Show the card when its turn comes, and return what the person did."""
        self._count(+1)
        try:
            await self._turn.acquire()
        finally:
            self._count(-1)
        try:
            return await self._converse(request)
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

    async def _converse(self, request: ApprovalRequest) -> UserAction:
        dialogue: CardDialogue | FlatDialogue
        if self.plain:
            dialogue = FlatDialogue(request, self._stdin, self._screen, self._waiting)
        else:
            dialogue = CardDialogue(request, Keyboard(self._stdin, self._screen), self._screen, self._waiting)
        self._dialogue = dialogue
        conversation = self._conversation = asyncio.ensure_future(dialogue.hold())
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
            return request.close()
        return conversation.result()


def terminal_approver(*, plain: bool = False) -> TerminalApprover | None:
    """An approver for this terminal; None when there is none with a person at it."""
    return TerminalApprover(plain=plain or None) if is_interactive() else None
