"""A home with a gate and a queue for every test, and what is left out where it could not be set up."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hook.agent_house import AgentHouse
from hook.gates import Gate, Queue, opened
from hook.installed_agents import INSTALLED

collect_ignore = [] if (INSTALLED / "installed.json").exists() else ["test_real_agents.py"]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    found = Gate(tmp_path)
    yield found
    found.close()


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    async with opened(tmp_path) as found:
        yield found


@pytest.fixture
async def nobody(tmp_path: Path) -> AsyncIterator[Queue]:
    """The same memory, and nobody before it."""
    async with opened(tmp_path, attended=False) as found:
        yield found


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentHouse:
    return AgentHouse(tmp_path, monkeypatch)
