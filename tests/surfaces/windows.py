"""A page to look at: a server with tools of every kind on a thread of its own, and raw requests to it."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page
from starlette.routing import Route

from lastword import Session, ToolRegistry
from lastword.call import Limits, wait_for_answer
from lastword.commands.chat import Beside
from lastword.consent import Outcome, People, Preset
from lastword.editor import ProjectEditor, editor_tools
from lastword.errors import ConfigError
from lastword.journal import Journal
from lastword.mcp import McpServers
from lastword.server import (
    ChangingUpstream,
    Completion,
    HttpUpstream,
    ServerLimits,
    Serving,
    Stopping,
    Upstream,
    build_app,
)
from lastword.store import MemoryStore, Store
from lastword.talk import Api, InProcessWire, KeptModel, ResolvedPreset, Wire
from lastword.talk.rehearsal import Rehearsal
from lastword.talk.turn import Bounds
from lastword.tools import ToolContext
from lastword.web import AssistantSetup, ModelForm, PageApp, PageGate, PageSetup, open_page
from warm import WarmProgram

# What a person waits for at most before they would call it broken.
PATIENCE_SECONDS = 60.0

# Resolved in a frame of the browser's own, also while the clock of the page stands still. By then everything that
# watches the layout has been told of what was done before.
FRAME = "new Promise(done => new IntersectionObserver(done).observe(document.documentElement))"


# A card on the page that can be answered.
ARMED = ".card[data-armed=true]"


def settled(page: Page, armed: str = ARMED) -> None:
    """Wait until this can be answered, and nothing that was done before will still put it off.

    What moves the buttons disarms a card one frame later. A hand that presses in between presses too early.
    """
    page.evaluate(FRAME)
    page.wait_for_selector(armed)


def deny(page: Page, call: "Future[Outcome]") -> None:
    """Say no to the card that waits, and see that this is what became of the call."""
    settled(page)
    page.locator(ARMED).get_by_role("button", name="Deny", exact=True).click()
    assert call.result(PATIENCE_SECONDS).kind == "denied"


# Press "Read on" of a card until it is gone, or what leads back to what was passed by. It may go between a look and a
# press.
READ_ON = """async (card) => {
  const words = ["Read on", "Go back to it"];
  const more = () => [...card.querySelectorAll("button")].find((each) => words.includes(each.textContent.trim()));
  for (let pages = 0; pages < 200 && more(); pages++) {
    more().click();
    await new Promise((done) => new IntersectionObserver(done).observe(document.documentElement));
  }
}"""


def read_to_end(page: Page, card: str = ".card") -> None:
    """Read on until nothing of a card lies behind its buttons."""
    page.evaluate(FRAME)
    page.locator(card).first.evaluate(READ_ON)
    settled(page, f"{card}[data-armed=true]")


HELLO = '''def greet(name):
    """Say hello."""
    message = "Hello, " + name
    print(message)
    return message


if __name__ == "__main__":
    greet("world")
'''
WELCOME = '''def greet(name):
    """Say hello."""
    message = f"Welcome, {name}!"
    return message


if __name__ == "__main__":
    print(greet("world"))
'''


def tools_of_every_kind(effects: list[Any]) -> ToolRegistry:
    """Tools for every kind of card; `effects` is what really happened."""
    registry = ToolRegistry()
    editor_tools(registry)

    @registry.tool(icon="paperplane", color="orange", effect="irreversible", display_name="Publish release")
    def publish(version: str, index: str) -> str:
        """Uploads the built files to a package index."""
        effects.append(("publish", version, index))
        return f"Published {version} to {index}."

    @registry.tool(icon="number", color="purple", effect="none", display_name="Add up", auto_approve=True)
    def add_up(numbers: list[float], factor: int, rounded: bool) -> float:
        """Adds numbers."""
        effects.append(("add_up", numbers, factor, rounded))
        return sum(numbers) * factor

    @registry.tool(icon="timer", color="teal", require_approval=False, effect="none", display_name="Count")
    async def count(context: ToolContext, to: int = 600) -> str:
        """Counts slowly."""
        reached = 0
        context.on_cancel = lambda: f"It had counted to {reached}."
        for reached in range(1, to + 1):
            context.report(f"counting, {reached} of {to}", "count", fraction=reached / to)
            await asyncio.sleep(0.05)
        return f"Counted to {to}."

    def post_letter(arguments: dict[str, Any], context: Any) -> str:
        effects.append(("post_letter", arguments))
        return "Posted."

    parameters = [
        {"name": "to", "type": "string"},
        {"name": "copies", "type": "number", "required": False, "description": "how many"},
        {"name": "urgent", "type": "boolean", "required": False},
        {"name": "note", "type": "string", "required": False},
    ]
    schema = {"description": "Posts a letter.", "parameters": parameters}
    registry.register("post_letter", schema, post_letter, require_approval=True)

    @registry.tool(icon="key", color="red", effect="reversible", display_name="Sign in", secret=("password",))
    def sign_in(user: str, password: str) -> str:
        """Signs in to a service."""
        effects.append(("sign_in", user, password))
        return "Signed in."

    return registry


class Scripted(Rehearsal):
    """A model that says what it was told to, one reply after the other."""

    def __init__(self, *replies: str | dict[str, Any]) -> None:
        self._replies: list[str | dict[str, Any] | None] = list(replies)

    async def complete(self, body: dict[str, Any]) -> Completion:
        reply = self._replies.pop(0)
        text = reply if isinstance(reply, str) else json.dumps({"tool_request": reply})
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Completion.checked({"model": "scripted", "choices": [choice], "usage": usage})


class Prompt(Beside):
    """A server that ends as soon as it is told to. uvicorn looks ten times a second, and then waits as long again."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.over = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.begin()
        self._stopping.tell()
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.001)
        await self.lifespan.shutdown()


# Of houses that are closed. At an address that it knows, a browser has the page's code already.
PORTS: list[int] = []


def listening() -> socket.socket:
    """A socket for a house: at the port of one that is closed, unless somebody else has taken it."""
    while PORTS:
        with suppress(ConfigError):
            return Serving.bind("127.0.0.1", PORTS.pop())
    return Serving.bind("127.0.0.1", 0)


class House:
    """`lastword up` without the command line: the same parts, on a thread, with a registry of one's own."""

    def __init__(
        self,
        folder: Path,
        store: Store | None = None,
        *,
        id: str | None = None,
        model: Upstream | None = None,
        clock: Callable[[], float] = time.time,
        api: Callable[[Wire], Api] = Api,
        model_file: Path | None = None,
        hosts: tuple[str, ...] = (),
        limits: Limits | None = None,
        servers: McpServers | None = None,
        people: People | None = None,
    ) -> None:
        self.limits = limits
        self.servers = servers
        self.people = people
        self.hosts = hosts
        self.model_file = model_file
        self.folder = folder
        self._api = api
        self.model = model or Rehearsal()
        self.clock = clock
        self.id = id
        self.effects: list[Any] = []
        self.store = store or MemoryStore()
        self.presets = (Preset(), Preset(True, "trusting"))
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="house", daemon=True)
        self.session: Session
        self.gate: PageGate
        self.front: PageApp
        self.address = ""
        self._failure: BaseException | None = None

    def open(self) -> "House":
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)
        if self._failure is not None:
            raise self._failure
        return self

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        PORTS.append(urlsplit(self.address).port or 0)

    def key(self) -> str:
        """An address that opens the page once."""
        return f"{self.address}/enter?key={self.do(self._make_key())}"

    def window(self) -> "Browserless":
        """One more window, without a browser."""
        return Browserless(self.address).enter(self.key())

    def page_routes(self) -> list[Route]:
        """The paths of the page."""
        return self.front.page.routes()

    def do(self, work: Awaitable[Any]) -> Any:
        """Wait for something on the house's own loop."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, None), self.loop).result(PATIENCE_SECONDS)

    def call(self, tool: str, **arguments: Any) -> Future[Outcome]:
        """Ask for a tool, as a model would."""
        work = self.session.call(tool, arguments, origin="the assistant")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def waiting(self, count: int = 1) -> list[Any]:
        """The cards that wait, once there are so many."""

        async def look() -> list[Any]:
            happened = asyncio.Event()
            stop = self.session.listen(lambda event: happened.set())
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while len(self.session.pending()) != count:
                        await happened.wait()
                        happened.clear()
            finally:
                stop()
            return self.session.pending()

        found: list[Any] = self.do(look())
        return found

    async def _make_key(self) -> str:
        return self.gate.make_key()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._live())
        except BaseException as problem:
            self._failure = problem
            self._ready.set()
        finally:
            self.loop.close()

    async def _live(self) -> None:
        self._over = asyncio.Event()
        stopping, limits = Stopping(), ServerLimits(stop_seconds=0.1)
        models = ChangingUpstream(self.model)
        app = build_app(self.store, models, limits=limits, log=lambda line: None, stopping=stopping)
        presets = {
            preset.name: ResolvedPreset(
                preset=preset, protocol="script", model="lastword", persona=None, bounds=Bounds()
            )
            for preset in self.presets
        }

        def use(kept: KeptModel) -> None:
            models.change(HttpUpstream(kept.upstream, key=kept.key, limits=limits), kept.model)

        is_rehearsal = type(self.model) is Rehearsal
        form = self.model_file and ModelForm(self.model_file, use, presets, limits, is_rehearsal=is_rehearsal)
        self.session = Session(
            tools_of_every_kind(self.effects),
            id=self.id,
            approver=wait_for_answer,
            journal=Journal(self.store, self.clock, self.people),
            editor=ProjectEditor(self.folder, "project"),
            limits=self.limits,
        )
        async with AsyncExitStack() as after:
            if self.servers is not None:
                await after.enter_async_context(self.servers)
                self.servers.offer(self.session.registry)
            await after.enter_async_context(self.session)
            wire = self._api(InProcessWire(app))
            self.front, self.gate = await after.enter_async_context(
                open_page(
                    app,
                    self.session,
                    wire,
                    AssistantSetup(
                        presets, "default", "Model: the one that these tests bring.", is_rehearsal, form or None
                    ),
                    PageSetup(hosts=self.hosts, folder=str(self.folder), servers=self.servers),
                )
            )
            sock = listening()
            self.address = f"http://127.0.0.1:{sock.getsockname()[1]}"
            serving = Prompt(self.front, stopping, limits, sock)
            running = asyncio.ensure_future(serving.serve_here())
            self._ready.set()
            await self._over.wait()
            self.front.end_streams()
            serving.over.set()
            await running
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Browserless:
    """A window without a browser: raw requests, with a cookie and a token."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cookie = ""
        self.token = ""

    def enter(self, key: str) -> "Browserless":
        status, headers, _ = self.raw("GET", key.removeprefix(self.address))
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.token = self.get("/page/state")[1]["token"]
        return self

    def raw(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Exactly this request, with nothing added but what HTTP needs. Bytes go as they are, the rest as JSON."""
        place = urlsplit(self.address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_SECONDS)
        try:
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, path, sent, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, Any]:
        status, _, data = self.raw("GET", path, headers={"Cookie": self.cookie})
        return status, json.loads(data)

    def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        given = {"Cookie": self.cookie, "X-Lastword-Token": self.token, "Content-Type": "application/json"}
        status, _, data = self.raw("POST", path, {} if body is None else body, given | headers)
        return status, json.loads(data)

    @contextmanager
    def events(self, last_seen: str | None = None) -> Iterator[Callable[[], tuple[str, str, Any]]]:
        """The stream; calling it gives the next event as id, kind and data."""
        place = urlsplit(self.address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_SECONDS)
        headers = {"Cookie": self.cookie} | ({"Last-Event-ID": last_seen} if last_seen else {})
        connection.request("GET", "/page/events", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200

        def following() -> tuple[str, str, Any]:
            fields: dict[str, str] = {}
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                # Heartbeats come for ever.
                assert time.monotonic() < deadline, "no event came"
                line = answer.readline().decode()
                if not line:
                    raise EOFError("the stream is over")
                line = line.rstrip("\n")
                if not line and "data" in fields:
                    return fields["id"], fields["event"], json.loads(fields["data"])
                name, _, value = line.partition(": ")
                fields[name] = value

        try:
            yield following
        finally:
            answer.close()
            connection.close()


def told(data: Any) -> Any:
    """The fields of an item that an event tells: all of a new one, and of a known one those that changed."""
    return data.get("fields", data)


class Up:
    """`lastword up` as a process that can be killed."""

    def __init__(self, folder: Path, port: int = 0, *options: str) -> None:
        environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)}
        near, far = os.pipe()
        self._program = WarmProgram(["up", "--port", str(port), *options], folder, environment, printed=far)
        os.close(far)
        self._printed = os.fdopen(near)
        self.said = ""
        for line in self._printed:
            self.said += line
            if found := re.search(r"(http://\S+)/enter\?key=(\S+)", line):
                self.address, self.key = found[1], found[0]
                return
        self.kill()
        raise AssertionError(f"lastword up ended: {self.said}")

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def kill(self) -> None:
        self._program.close()
        self._printed.close()

    def stop(self) -> int:
        self._program.send_signal(signal.SIGTERM)
        code = self._program.wait()
        self.kill()
        return code
