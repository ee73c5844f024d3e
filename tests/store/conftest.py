"""A store of each kind: whatever a test of the contract demands, every driver must give."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lastword.store.contract import Store
from lastword.store.memory import MemoryStore
from lastword.store.postgres import PostgresStore
from lastword.store.sqlite import SqliteStore
from postgres_server import PostgresServer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = SqliteStore(path)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        opened = PostgresStore(server.new_store(), heads=path.parent / "heads")
    yield opened
    await opened.close()
