"""A tool worth asking about, and a way to wait for what happens elsewhere."""

import asyncio
from collections.abc import Callable
from typing import Any

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
