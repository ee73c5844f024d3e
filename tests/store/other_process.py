"""Another process with a store of its own on the same file, or at the same server."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warm import WarmDialogue

HERE = Path(__file__).parent
# What such a process needs; a fork of one that has it is begun at once.
LOADS = ("samples", "lastword.store.address", "lastword.store.postgres", "lastword.store.postgres_connection")


class OtherProcess:
    """A long-lived process with a store of its own on the same file. It does one thing a line: see `other.py`."""

    def __init__(self, path: Path | str, environment: dict[str, str] | None = None) -> None:
        self._process = WarmDialogue([str(HERE / "other.py"), str(path)], HERE, os.environ | (environment or {}), LOADS)
        self.pid = self._process.pid

    def send(self, do: str, **what: Any) -> None:
        self._process.say(json.dumps({"do": do, **what}))

    def receive(self) -> Any:
        return json.loads(self._process.hear())

    def ask(self, do: str, **what: Any) -> Any:
        self.send(do, **what)
        return self.receive()

    def kill(self) -> None:
        """End it as the system would that is out of memory."""
        self._process.close()

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.hang_up()
            code, (_, complaint) = self._process.wait(), self._process.said()
            self._process.close()
            assert code == 0, complaint.decode()


@contextmanager
def other_process(path: Path | str, environment: dict[str, str] | None = None) -> Iterator[OtherProcess]:
    other = OtherProcess(path, environment)
    try:
        yield other
    finally:
        other.end()
