"""Whole conversations: a scripted model behind the real server, a satellite with real tools in front of it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lastword import Preset, Session, ToolRegistry
from lastword.commands.chat import Beside
from lastword.journal import Journal, data_of
from lastword.server import HttpUpstream, ServerLimits, Serving, Stopping, build_app
from lastword.store import MemoryStore, Store
from lastword.talk import Api, ConnectionLost, Heard, InProcessWire, Said, Satellite, satellite
from lastword.testing import FixedApprover
from lastword.testing.scripted import ScriptedModel
from lastword.tools import ToolContext

MODELS = Path(
    os.environ.get("LASTWORD_TEST_MODELS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lastword-models"
)
TINY = MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf"
# Where they could not be fetched, `./test` says so in its last lines.
collect_ignore = [] if TINY.exists() and find_spec("xllamacpp") else ["test_real_model.py"]

QUICK = ServerLimits(retry_seconds=0.01, connect_seconds=2.0, retries=0)


def request(name: str, **arguments: Any) -> str:
    """A tool request as a model writes it."""
    return json.dumps({"tool_request": {"name": name, "arguments": arguments}})


def native(*calls: tuple[str, str, str]) -> dict[str, Any]:
    """A native answer: (id, name, the text of the arguments)."""
    return {
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text}} for id, name, text in calls
        ]
    }


class Stage:
    """One conversation: the model, the server, the satellite, the tools and what they did."""

    def __init__(self, model: ScriptedModel, store: Store, app: Any, journal: Journal) -> None:
        self.model = model
        self.store = store
        self.app = app
        self.journal = journal
        self.did: list[Any] = []
        self.heard: list[Heard] = []
        self.registry = ToolRegistry()
        self.running = asyncio.Event()
        self._add_tools()

    def _add_tools(self) -> None:
        did, running = self.did, self.running

        @self.registry.tool(require_approval=False, effect="none")
        def lookup_weather(city: str) -> str:
            """Says what the weather is like."""
            did.append(("lookup_weather", city))
            return f"{city} is 18°C and clear."

        @self.registry.tool(effect="irreversible")
        def send(to: str, amount: int = 1) -> str:
            """Sends money to somebody."""
            did.append(("send", to, amount))
            return f"Sent {amount} to {to}."

        @self.registry.tool(require_approval=False, effect="none")
        async def search(word: str, context: ToolContext) -> str:
            """Searches for a long time."""
            context.on_cancel = lambda: f"{word} in 1990"
            context.report("letters of 1990", "search", fraction=0.5)
            running.set()
            await asyncio.sleep(3600)
            return "everything"

    def satellite(self, answer: Any = None, *, wire: Any = None, id: str | None = None, **options: Any) -> Satellite:
        """A satellite; `answer` is what the person does with every card."""
        approver = None if answer is None else FixedApprover(answer)
        session = Session(
            self.registry, id=id, approver=approver, journal=self.journal, preset=options.pop("preset", Preset())
        )
        api = Api(wire or InProcessWire(self.app))
        return Satellite(session, api, hear=self.heard.append, **options)

    @property
    def text(self) -> str:
        """Everything the person read."""
        return "".join(heard.text for heard in self.heard if isinstance(heard, Said))

    def sent(self, turn: int = -1) -> list[dict[str, Any]]:
        """The messages of a request to the model, without the prompt."""
        return [m for m in self.model.requests[turn]["messages"] if m["role"] != "system"]

    async def records(self, satellite: Satellite, *kinds: str) -> list[dict[str, Any]]:
        """What the journal holds of these kinds."""
        found = await self.journal.history(satellite.session.id)
        return [data_of(record) for record in found if record.kind in kinds]


MakeStage = Callable[..., Any]


async def cut_short(saying: Coroutine[Any, Any, Any], when: asyncio.Event) -> None:
    """Let a turn begin, and stop it at a moment."""
    turn = asyncio.ensure_future(saying)
    await when.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeStage]:
    """Starts a model with these replies and a server in this process. Nobody waits before they try again."""
    monkeypatch.setattr(satellite, "RETRY_SECONDS", 0.0)
    async with AsyncExitStack() as stack:

        async def make(
            replies: Any,
            *,
            store: Store | None = None,
            journal: Journal | None = None,
            limits: ServerLimits = QUICK,
            is_reasoning: bool = False,
            **about: Any,
        ) -> Stage:
            model = stack.enter_context(ScriptedModel(replies, **about))
            kept = store or MemoryStore()
            upstream = HttpUpstream(model.url, limits=limits)
            app = build_app(kept, upstream, is_reasoning=is_reasoning, limits=limits, log=lambda line: None)
            await stack.enter_async_context(InProcessWire.alive(app))
            return Stage(model, kept, app, journal or Journal())

        yield make


class Cut:
    """A wire that breaks at chosen turns: before the request leaves, in the middle of the answer, or after all of it.

    `at` maps the number of a POST, counted from 0, to one of these. Each breaks once.
    """

    def __init__(self, wire: Any, at: dict[int, str]) -> None:
        self._wire = wire
        self._at = dict(at)
        self.posts = 0

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Any]:
        how = None
        if method == "POST":
            how = self._at.pop(self.posts, None)
            self.posts += 1
        if how == "before":
            raise ConnectionLost("cut before the request left")
        async with self._wire.exchange(method, path, body, headers) as response:
            if how == "after":
                async with aclosing(response.pieces()) as pieces:
                    async for _ in pieces:
                        pass
                raise ConnectionLost("cut after the server had answered")
            if how == "within":
                async with aclosing(response.pieces()) as pieces:
                    async for _ in pieces:
                        raise ConnectionLost("cut in the middle of the answer")
            yield response

    async def close(self) -> None:
        await self._wire.close()


@asynccontextmanager
async def served(app: Any, port: int = 0) -> AsyncIterator[int]:
    """An app on a loopback port; gives the port. It is gone, connections and all, when the context ends."""
    limits = ServerLimits(stop_seconds=0.05)
    sock = Serving.bind("127.0.0.1", port)
    # The socket listens before the app is ready: whoever connects in between waits a moment.
    sock.listen()
    serving = Beside(app, Stopping(), limits, sock)
    running = asyncio.ensure_future(serving.serve_here())
    try:
        yield sock.getsockname()[1]
    finally:
        serving.should_exit = True
        await running
