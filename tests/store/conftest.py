"""A store of each kind: whatever a test of the contract demands, every driver must give."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import through

from cutting import CuttingProxy, cutting_proxy
from lastword.store.contract import Store
from lastword.store.memory import MemoryStore
from lastword.store.postgres import PostgresStore
from lastword.store.sqlite import SqliteStore
from postgres_server import PostgresServer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    return tmp_path / "lastword" / "heads"


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """Of a store on a server, which nobody has used yet."""
    return postgres.new_store()


@pytest.fixture
async def opened(heads: Path) -> AsyncIterator[Callable[..., Any]]:
    """Opens the store in a file, or at an address of a server. It is closed when the test is over."""
    stores: list[Store] = []

    def open_one(where: Path | str, **options: Any) -> Store:
        store = PostgresStore(str(where), **{"heads": heads} | options) if "://" in str(where) else SqliteStore(where)
        stores.append(store)
        return store

    yield open_one
    for store in reversed(stores):
        await store.close()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    """A way to the server that a test may cut."""
    with cutting_proxy(postgres.port) as made:
        yield made


@pytest.fixture
async def distant(
    postgres: PostgresServer, proxy: CuttingProxy, address: str, heads: Path
) -> AsyncIterator[PostgresStore]:
    """A store that reaches its server on that way."""
    made = PostgresStore(through(address, postgres.port, proxy.port), heads=heads)
    yield made
    await made.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, path: Path, opened: Callable[..., Any]) -> Store:
    if request.param == "memory":
        return MemoryStore()
    made: Store = opened(path if request.param == "sqlite" else request.getfixturevalue("address"))
    return made
