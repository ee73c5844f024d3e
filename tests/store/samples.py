"""Entries to remember, and another process that remembers them too."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from lastword.store import Store, sqlite_file
from lastword.store.chain import GENESIS, Entry, link

HERE = Path(__file__).parent
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


class OtherProcess:
    """A long-lived process with a store of its own on the same file. It does one thing a line: see `other.py`."""

    def __init__(self, path: Path | str, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "other.py"), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, do: str, **what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, do: str, **what: Any) -> Any:
        self.send(do, **what)
        return self.receive()

    def kill(self) -> None:
        """End it as the system would that is out of memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait(20)
        self._process.stdin.close()
        self._process.stdout.close()

    def end(self) -> None:
        if self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(20) == 0


@contextmanager
def other_process(path: Path | str, environment: dict[str, str] | None = None) -> Iterator[OtherProcess]:
    other = OtherProcess(path, environment)
    try:
        yield other
    finally:
        other.end()


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
