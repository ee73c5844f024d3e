"""Where the programs of these tests keep their journal: in a file of their folder, or on a server they are told of."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import asyncpg

from lastword.store import SqliteStore
from lastword.store.postgres import PostgresStore

SERVER = "LASTWORD_TEST_SERVER"
"""The address of a database of their own, in the environment of every process of a test; without it there are files."""


def address_in(folder: Path) -> str:
    """A store of its own for every folder."""
    return f"{os.environ[SERVER]}?store=world_{sha256(str(folder).encode()).hexdigest()[:16]}"


def store_in(folder: Path) -> SqliteStore | PostgresStore:
    if SERVER in os.environ:
        return PostgresStore(address_in(folder), heads=folder / "heads")
    return SqliteStore(folder / "journal.db")


def wait_until_alone() -> None:
    """Wait until the server has noticed that the processes before are gone. For a file that is so at once."""
    if SERVER in os.environ:
        asyncio.run(_wait_until_alone())


async def _wait_until_alone() -> None:
    connection = await asyncpg.connect(os.environ[SERVER])
    sql = """
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'lastword%' AND datname = current_database()
    """
    try:
        for _ in range(12_000):
            if not await connection.fetchval(sql):
                return
            await asyncio.sleep(0.005)
    finally:
        await connection.close()
    raise AssertionError("a process of before still has a session")
