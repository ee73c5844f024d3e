"""What most tests need: a registry, a place where effects would show, and tools that leave a trace there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lastword import ToolRegistry
from lastword.journal import Journal
from lastword.journal.records import data_of
from lastword.tools.manifest import parse_manifest
from lastword.tools.tool import Tool
from lastword.values import canonical
from sending import MANIFEST

# No test is timed, and the drawing of examples is none either: a machine may stop for a second at any moment.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


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


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with the one that is kept. LASTWORD_WRITE_GOLDEN=1 keeps the new one: look at the difference."""

    def compare(path: Path, text: str) -> None:
        if os.environ.get("LASTWORD_WRITE_GOLDEN"):
            path.write_text(text)
        assert text == path.read_text()

    return compare
