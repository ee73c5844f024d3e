"""A running server for the tests: real sockets, a scripted model behind it, everything in this process."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import openai

from lastword.server.app import build_app
from lastword.server.http_server import Serving
from lastword.server.middleware import Stopping
from lastword.server.server_limits import ServerLimits
from lastword.server.upstream import HttpUpstream
from lastword.store import MemoryStore, Store
from lastword.testing.scripted import ScriptedModel

# Nothing in a test should have to wait long for what is not there. Where nobody listens, that is known at once;
# somebody who does may take seconds to say so on a busy machine.
QUICK = {"retry_seconds": 0.01, "connect_seconds": 60.0, "stop_seconds": 0.2}


class Answer:
    """A response to a raw request."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def chunks(self) -> list[Any]:
        """The events of a stream, except the last word."""
        events = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [json.loads(event) for event in events if event != "[DONE]"]


class Running:
    """A server on a loopback port, in a thread."""

    def __init__(
        self, answers: ScriptedModel | None, store: Store, upstream: str | None = None, **options: Any
    ) -> None:
        self.store = store
        self.log: list[str] = []
        limits = ServerLimits(**{**QUICK, **options.pop("limits", {})})
        key = options.pop("key", None)
        url = upstream or (answers.url if answers else "http://127.0.0.1:9/v1")
        self.stopping = stopping = Stopping()
        app = build_app(
            store,
            HttpUpstream(url, key=key, limits=limits),
            limits=limits,
            log=self.log.append,
            stopping=stopping,
            **options,
        )
        self._socket = Serving.bind("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.serving = Serving(app, stopping, limits, self._socket)
        self._thread = threading.Thread(target=self.serving.run_here)

    def start(self) -> "Running":
        self._thread.start()
        return self

    def stop(self) -> None:
        self.serving.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive()

    def client(self, token: str = "none", **options: Any) -> openai.OpenAI:
        """The official client, unchanged."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=token, max_retries=0, timeout=20, **options)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """A request as it is written, without a client that knows better."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", "Content-Length": str(len(data))}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in sent.items() if v is not None)
        return exchange(self.port, head.encode("latin-1") + b"\r\n" + data)

    def chat(self, *messages: Any, token: str | None = None, **fields: Any) -> Answer:
        """One turn; a message that is a string is the user's."""
        body = {"messages": [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages], **fields}
        return self.send("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"} if token else None)


def exchange(port: int, data: bytes) -> Answer:
    """Send bytes, and read until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(data)
        return read_answer(sock)


def read_answer(sock: socket.socket) -> Answer:
    """The response on a connection that the server closes after it."""
    received = b""
    while piece := sock.recv(65536):
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _unchunk(body)
    return Answer(int(first.split(" ")[1]), headers, body)


def _unchunk(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return whole


class House:
    """Starts models and servers, and stops them after the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def model(self, replies: Any, **options: Any) -> ScriptedModel:
        return self._stack.enter_context(ScriptedModel(replies, **options))

    def server(self, answers: Any = ("Hello.",), *, store: Store | None = None, **options: Any) -> Running:
        """A server over this model, or over one with these replies."""
        if answers is not None and not isinstance(answers, ScriptedModel):
            answers = self.model(answers)
        return self._stack.enter_context(_running(Running(answers, store or MemoryStore(), **options)))


@contextmanager
def _running(server: Running) -> Iterator[Running]:
    server.start()
    try:
        yield server
    finally:
        # uvicorn takes a fifth of a second to stop; the next test need not wait for it.
        server.serving.should_exit = True
        LEAVING.append(server)


LEAVING: list[Running] = []
"""Servers that were told to stop."""
