"""Entries to remember, and what many tests of a store do with one."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from lastword.store import Store, sqlite_file
from lastword.store.chain import GENESIS, Entry, link

FORM = "LASTWORD_TEST_FORM"
"""In the environment of a process that shall be one of an earlier version: how many migrations it knows."""


def entry(number: int = 1, **changes: Any) -> Entry:
    """An entry unlike any other number's."""
    given = {
        "stream": f"session-{number % 3}",
        "kind": ("asked", "answered", "finished")[number % 3 - 1],
        "subject": f"call-{number}",
        "at": 1_700_000_000_000_000 + number,
        "data": b'{"number":%d}' % number,
    }
    return Entry(**(given | changes))


def make_old(path: Path, *entries: Entry) -> None:
    """A file as the first form of it was, with these entries in it."""
    raw = apsw.Connection(str(path))
    raw.pragma("journal_mode", "wal")
    raw.execute(sqlite_file.MIGRATIONS[0])
    raw.pragma("application_id", sqlite_file.APPLICATION_ID)
    raw.pragma("user_version", 1)
    last = GENESIS
    for number, said in enumerate(entries, 1):
        record = link(last, number, said)
        last = record.digest
        raw.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(record))
    raw.close()


def held(store: Store, name: str) -> Callable[[], None]:
    """Hold a name that nobody holds; what lets go of it."""
    release = store.hold(name)
    assert release is not None, f"somebody holds {name}"
    return release


async def until(condition):
    """Wait for something that comes by itself, and give it back."""
    for _ in range(6000):
        if found := condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def through(address: str, old: int, new: int) -> str:
    """The same store, by another port."""
    return address.replace(f":{old}/", f":{new}/")
