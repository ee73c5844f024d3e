"""`lastword serve` as a process of its own, and a model for it: for tests of what only processes can show."""

import http.client
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lastword.testing.scripted import Fault, Reply, ScriptedModel
from warm import WarmProgram

CALL = {"id": "c1", "type": "function", "function": {"name": "lookup_weather", "arguments": '{"city": "Lisbon"}'}}
LISBON = '{"tool_request": {"name": "lookup_weather", "arguments": {"city": "Lisbon"}}}'
THINKING = threading.Event()
"""The model was told to think, and will not answer."""


def reply(body: dict[str, Any]) -> Reply:
    said = body["messages"][-1]["content"]
    if said == "What is the weather in Lisbon?":
        return {"tool_calls": [CALL]} if body.get("tools") else LISBON
    if said.startswith("Result of the tool") or body["messages"][-1]["role"] == "tool":
        return "It is 18°C and clear in Lisbon."
    if said == "think":
        THINKING.set()
        return Fault("hang")
    if said.startswith("ask "):
        return '{"tool_request": {"name": "' + said[4:] + '"}}'
    return "Hello." if said == "Say hello." else f"You said {said}"


@contextmanager
def a_model() -> Iterator[str]:
    """The address of a model that replies like that."""
    with ScriptedModel(reply, models=["scripted"]) as model:
        yield model.url


class Served:
    """A running `lastword serve`."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LASTWORD_")}
        near, far = os.pipe()
        with (folder / "serve.log").open("a") as log:
            words = ["serve", "--port", "0", *arguments]
            self.process = WarmProgram(words, folder, environment, printed=far, complaint=log.fileno())
        os.close(far)
        self._printed = os.fdopen(near)
        line = self._printed.readline()
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
        if self.process.returncode is None:
            with suppress(ProcessLookupError):  # It has ended by itself, and nobody has asked yet.
                self.process.send_signal(signal)
        self._printed.close()
        return self.process.wait()


@contextmanager
def served(*arguments: str, folder: Path) -> Iterator[Served]:
    """A server that is stopped at the end, if nobody did before."""
    server = Served(*arguments, folder=folder)
    try:
        yield server
    finally:
        server.end(15)
        server.process.close()
