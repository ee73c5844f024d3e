"""Another process with a store of its own on the same file, or at the same server."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warm import WarmProgram

HERE = Path(__file__).parent
# What such a process needs; a fork of one that has it is begun at once.
LOADS = ("samples", "lastword.store.address", "lastword.store.postgres", "lastword.store.postgres_connection")


class OtherProcess:
    """A long-lived process with a store of its own on the same file. It does one thing a line: see `other.py`."""

    def __init__(self, path: Path | str, environment: dict[str, str] | None = None) -> None:
        (given, near), (answers, printed) = os.pipe(), os.pipe()
        self._process = WarmProgram(
            [str(HERE / "other.py"), str(path)], HERE, os.environ | (environment or {}), given, LOADS, printed
        )
        for far in (given, printed):
            os.close(far)
        self._said, self._answers = os.fdopen(near, "w"), os.fdopen(answers)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, do: str, **what: Any) -> None:
        self._said.write(json.dumps({"do": do, **what}) + "\n")
        self._said.flush()

    def receive(self) -> Any:
        return json.loads(self._answers.readline())

    def ask(self, do: str, **what: Any) -> Any:
        self.send(do, **what)
        return self.receive()

    def kill(self) -> None:
        """End it as the system would that is out of memory."""
        self._process.close()
        self._said.close()
        self._answers.close()

    def end(self) -> None:
        if self._process.returncode is None:
            self._said.close()
            self._answers.close()
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
