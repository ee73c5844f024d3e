"""A tool worth asking about, and a way to wait for what happens elsewhere."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lastword import ApprovalRequest, Outcome, Session

MANIFEST: dict[str, Any] = {
    "displayName": "Send money",
    "id": "send",
    "description": "Sends money to somebody.",
    "parameters": [
        {"name": "to", "type": "string", "description": "Who gets it"},
        {"name": "amount", "type": "number", "description": "How much", "required": False},
    ],
}
CALL = {"to": "Ann", "amount": 5}


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that another thread or task brings about, for a bounded time."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not happen")


async def asked(
    session: Session, given: dict[str, Any] = CALL, **facts: Any
) -> "tuple[asyncio.Task[Outcome], ApprovalRequest]":
    """A call of `send` whose card waits, beside whatever else waits in this session; and the card."""
    before = {card.nonce for card in session.pending()}
    call = asyncio.create_task(session.call("send", given, **facts))
    await until(lambda: any(card.nonce not in before for card in session.pending()))
    return call, next(card for card in session.pending() if card.nonce not in before)


async def left_waiting(session: Session, work: Coroutine[Any, Any, Any]) -> None:
    """What somebody began and left, as the end of their program would, when a card of it waits."""
    task = asyncio.create_task(work)
    await until(session.pending)
    await ended(task)


async def ended(task: "asyncio.Task[Any]") -> None:
    """Nobody waits for it any more."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
