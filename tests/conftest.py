"""What most tests need: a registry, a place where effects would show, and tools that leave a trace there."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assent import ToolRegistry
from assent.journal import Journal, data_of
from assent.manifest import parse_manifest
from assent.tools import Tool
from assent.values import canonical

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


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


@pytest.fixture
def effects() -> list[Any]:
    """What really happened. Empty when nothing did."""
    return []


@pytest.fixture
def effect_file(tmp_path: Path) -> Path:
    """A file that no request function and no denied tool may bring into being."""
    return tmp_path / "effect.txt"


@pytest.fixture
def assistant(registry: ToolRegistry, effects: list[Any]) -> Callable[..., Tool]:
    """Register a tool as its author would in a folder: a request function, an execute function, a manifest."""

    def make(request: Any = None, execute: Any = None, **fields: Any) -> Tool:
        def send(params: dict[str, Any], user_action: Any) -> dict[str, Any]:
            if not user_action.primary_confirmed:
                return {"success": False, "message": "Then not."}
            effects.append(params)
            return {"success": True, "message": f"Sent to {params['to']}."}

        manifest = parse_manifest(canonical(MANIFEST | fields))
        return registry.add(Tool(manifest, "assistant", execute or send, request=request))

    return make


@pytest.fixture
def send(assistant: Callable[..., Tool]) -> Tool:
    """The tool above, with its default card."""
    return assistant()


@pytest.fixture
def history() -> Callable[..., Any]:
    """The records of a journal as (kind, data), or only the kinds."""

    async def read(journal: Journal, session_id: str) -> list[tuple[str, dict[str, Any]]]:
        return [(record.kind, data_of(record)) for record in await journal.history(session_id)]

    return read


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that another thread or task brings about, for a bounded time."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not happen")
