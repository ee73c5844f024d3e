"""`lastword serve` and a model as processes of their own, for tests of what only processes can show."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent


@contextmanager
def model_process() -> Iterator[tuple[str, IO[str]]]:
    """A model: its address, and what it prints after that."""
    command = [sys.executable, str(HERE / "model_process.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.stdout
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


class Served:
    """A running `lastword serve`."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LASTWORD_")}
        self._errors = (folder / "serve.log").open("a")
        self.process = subprocess.Popen(
            [str(BIN / "lastword"), "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Listening on http://"), (folder / "serve.log").read_text()
        self.url = line.removeprefix("Listening on ").strip().removesuffix("/v1")
        self.port = int(self.url.rpartition(":")[2])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A request; raises OSError or http.client.HTTPException when the server dies under it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def chat(self, *said: Any, conversation: str | None = None) -> tuple[int, Any]:
        messages = [{"role": "user", "content": words} if isinstance(words, str) else words for words in said]
        return self.ask("POST", "/v1/chat/completions", {"messages": messages, "conversation_id": conversation})

    def end(self, signal: int) -> int:
        """Send a signal to it, and give back how it ended."""
        if self.process.poll() is None:
            self.process.send_signal(signal)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()
        return code


@contextmanager
def served(*arguments: str, folder: Path) -> Iterator[Served]:
    """A server that is stopped at the end, if nobody did before."""
    server = Served(*arguments, folder=folder)
    try:
        yield server
    finally:
        server.end(15)
