"""A store of each kind: whatever a test of the contract demands, every driver must give."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lastword.store import Store
from lastword.store.memory import MemoryStore
from lastword.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Store]:
    opened: Store = MemoryStore() if request.param == "memory" else SqliteStore(path)
    yield opened
    await opened.close()
