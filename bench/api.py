"""What the assistant API adds to the cost of the bare model's server, in one run on one machine.

    python bench/api.py [--litellm FILE] [--seconds N] [--rounds N] [--json FILE]

A model's server that answers at once is asked directly and through `lastword serve`, by the same client: requests per
second at 1 and 64 connections, the median above the bare one, and 64 streams that come at a steady pace. With
`conversation`, every turn is in a conversation in an SQLite file and on disk before it is answered. `bare proxy` is the
least that the same parts can do: Starlette and aiohttp, passing bytes on. `LiteLLM` is the proxy that most people put
there; it needs an environment of its own (`pip install "litellm[proxy]"`), whose command `--litellm` names.

Model and client are the same for all, and no faster than Python can be: a protocol on uvloop with a canned answer, and
one that counts answers. Everything listens on loopback, in processes of their own. Compare the ratios; the figures
themselves are the machine's. On a machine that others use too, the processor time that a server takes for a request
says more than its rate: all processes of a row share the cores, and the slower row shares them for longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
import uvloop
from figures import Result, arguments
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SECONDS = 2.0
WARM_UP_SECONDS = 0.5
# The best round of each counts: on a machine that others use too, the worst ones measure the others.
ROUNDS = 4
# A conversation grows with every turn; a satellite's has some twenty before a new one begins.
TURNS = 20
STREAMS = 64
# Two and a half seconds, a short answer of a real model.
CHUNKS = 125
PACE_SECONDS = 0.02

TARGETS = {"conversation: times LiteLLM at 64": 25.0, "stateless: times LiteLLM at 64": 45.0, "streams": 0.97}

# A proxy that loads this much needs its time, and more for its first answer: it loads the rest then.
START_SECONDS = 300.0
# On a machine that is busy otherwise a round may pass without an answer. Then it goes on until there are some.
LEAST_ANSWERS = 20
PATIENCE_SECONDS = 120.0
LITELLM = """
model_list:
  - model_name: bench
    litellm_params: {model: openai/bench, api_base: "http://127.0.0.1:%d/v1", api_key: none}
"""

COMPLETION = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
).encode()


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


class Model(asyncio.Protocol):
    """The fastest model's server that Python can be: no framework, a canned answer."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n")[0]) if place >= 0 else 0
            if len(self.received) < end + 4 + length:
                return
            body = self.received[end + 4 : end + 4 + length]
            self.received = self.received[end + 4 + length :]
            if b'"stream":true' in body:
                asyncio.get_running_loop().create_task(self.stream())
            else:
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                self.transport.write(head % len(COMPLETION) + COMPLETION)

    async def stream(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        start = time.perf_counter()
        for number in range(CHUNKS):
            self.write(chunk({"content": "word "}))
            await asyncio.sleep(max(0.0, start + (number + 1) * PACE_SECONDS - time.perf_counter()))
        self.write(chunk({}, "stop"))
        self.write(b"data: [DONE]\n\n")
        self.transport.write(b"0\r\n\r\n")

    def write(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


async def be_the_model() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def be_a_bare_proxy(model: int) -> None:
    session = aiohttp.ClientSession()

    async def passed_on(request: Request) -> Response:
        url = f"http://127.0.0.1:{model}/v1/chat/completions"
        async with session.post(url, data=await request.body()) as answer:
            return Response(await answer.read(), media_type="application/json")

    app = Starlette(routes=[Route("/v1/chat/completions", passed_on, methods=["POST"])])
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    print(sock.getsockname()[1], flush=True)
    config = uvicorn.Config(app, access_log=False, log_config=None, http="httptools", loop="uvloop")
    await uvicorn.Server(config).serve(sockets=[sock])


class Client(asyncio.Protocol):
    """One connection that waits for the end of each answer before it asks again."""

    def __init__(self) -> None:
        self.done: asyncio.Future[bytes] | None = None
        self.received = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, blank, body = self.received.partition(b"\r\n\r\n")
        if not blank or self.done is None:
            return
        lower = head.lower()
        place = lower.find(b"content-length:")
        if len(body) >= int(lower[place + 15 :].split(b"\r\n")[0]) if place >= 0 else body.endswith(b"0\r\n\r\n"):
            done, self.done = self.done, None
            done.set_result(self.received)

    def connection_lost(self, problem: Exception | None) -> None:
        if self.done is not None:
            self.done.set_exception(problem or ConnectionError("the server went away in the middle of an answer"))

    async def ask(self, request: bytes) -> bytes:
        self.received = b""
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        answer = await self.done
        assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
        return answer


def request(port: int, fields: dict[str, Any]) -> bytes:
    body = {"model": "bench", "messages": [{"role": "user", "content": "Say hello."}], **fields}
    data = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def load(port: int, connections: int, remembered: bool, seconds: float) -> tuple[float, float]:
    """Requests per second, and the median in milliseconds."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    begin = time.perf_counter() + WARM_UP_SECONDS
    end, last = begin + seconds, begin + PATIENCE_SECONDS
    run = os.urandom(4).hex()

    def goes_on(now: float) -> bool:
        return now < end or (len(times) < LEAST_ANSWERS and now < last)

    async def work(number: int) -> None:
        transport, client = await loop.create_connection(Client, "127.0.0.1", port)
        plain = request(port, {})
        turn = 0
        while goes_on(start := time.perf_counter()):
            if remembered:
                await client.ask(request(port, {"conversation_id": f"{run}-{number}-{turn // TURNS}"}))
                turn += 1
            else:
                await client.ask(plain)
            if start >= begin:
                times.append(time.perf_counter() - start)
        transport.close()

    async with asyncio.timeout(PATIENCE_SECONDS * 2):
        await asyncio.gather(*(work(number) for number in range(connections)))
    # What was answered after the end was asked for before it, and took its time too.
    return len(times) / (time.perf_counter() - begin), statistics.median(times) * 1000


async def answers(port: int) -> None:
    """Wait until a server gives its first answer, however long it takes to load what it needs for that."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(START_SECONDS):
        transport, client = await loop.create_connection(Client, "127.0.0.1", port)
        await client.ask(request(port, {}))
        transport.close()


async def streams(port: int) -> float:
    """Seconds until all paced streams are complete."""
    loop = asyncio.get_running_loop()

    async def one() -> None:
        transport, client = await loop.create_connection(Client, "127.0.0.1", port)
        answer = await client.ask(request(port, {"stream": True}))
        assert answer.count(b"word ") == CHUNKS, answer.count(b"word ")
        transport.close()

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(STREAMS)))
    return time.perf_counter() - start


def processor_seconds(process: int) -> float:
    """What a process has taken so far, in all its threads; nothing where the system does not say."""
    try:
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e9
    except OSError:
        return 0.0


@contextlib.contextmanager
def litellm(command: Path, model: int, folder: str) -> Iterator[tuple[int, int]]:
    """Port and process of LiteLLM's proxy, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Path(folder, "litellm.yaml").write_text(LITELLM % model)
    words = [str(command), "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    # It is on loopback for a few minutes and has no key; and it must not fetch a list of prices.
    settings = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment = {**os.environ, **settings, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    with Path(folder, "litellm.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, env=environment)
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, Path(folder, "litellm.log").read_text()[-2000:]
                    assert time.monotonic() < end, "LiteLLM does not answer"
                    time.sleep(0.2)
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def processes(peer: Path | None) -> Iterator[dict[str, tuple[int, int]]]:
    """Port and process of the model's server, and of a bare proxy, the peer and ours in front of it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "model"]
        model = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert model.stdin is not None
        assert model.stdout is not None
        port = int(model.stdout.readline())
        command = [sys.executable, __file__, "proxy", str(port)]
        proxy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert proxy.stdout is not None
        bare = int(proxy.stdout.readline())
        Path(folder, "lastword.toml").write_text(
            "[server.limits]\nrequests_per_minute = 1000000000\nstreams_per_token = 1000\n"
        )
        ours = subprocess.Popen(
            [
                *[str(Path(sys.executable).parent / "lastword"), "serve", "--port", "0", "--model", "bench"],
                *["--upstream", f"http://127.0.0.1:{port}/v1", "--store", f"sqlite:///{folder}/bench.db"],
                # Named, since a file that is only found counts for nothing before it was accepted.
                *["--config", f"{folder}/lastword.toml"],
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        assert ours.stdout is not None
        try:
            served = int(ours.stdout.readline().split(":")[-1].split("/")[0])
            places = {"raw": (port, model.pid), "bare proxy": (bare, proxy.pid), "ours": (served, ours.pid)}
            with contextlib.ExitStack() as beside:
                if peer is not None:
                    places["LiteLLM"] = beside.enter_context(litellm(peer.absolute(), port, folder))
                yield places
        finally:
            for process in (proxy, ours):
                process.terminate()
                process.wait(30)
            model.stdin.close()
            model.wait(10)


class Row:
    """The best of the rounds: most requests, shortest median, least processor time."""

    def __init__(self) -> None:
        self.rate = 0.0
        self.median = self.cost = float("inf")

    def add(self, rate: float, median: float, cost: float) -> None:
        self.rate = max(self.rate, rate)
        self.median = min(self.median, median)
        self.cost = min(self.cost, cost)


async def measure(places: dict[str, tuple[int, int]], result: Result, seconds: float, rounds: int) -> int:
    """Take the figures; 1 when a target was missed."""
    ways = {"raw": "raw", "bare proxy": "bare proxy", "stateless": "ours", "conversation": "ours"}
    if "LiteLLM" in places:
        ways["LiteLLM"] = "LiteLLM"
    for port, _ in places.values():
        await answers(port)
    figures = {(name, connections): Row() for name in ways for connections in (1, 64)}
    result.table("", "requests/s", "ms p50", "µs of processor")
    for connections in (1, 64):
        for _ in range(rounds):
            for name, place in ways.items():
                port, process = places[place]
                before, since = processor_seconds(process), time.perf_counter()
                rate, median = await load(port, connections, name == "conversation", seconds)
                # The warm-up was work too, at the same rate.
                requests = rate * (time.perf_counter() - since)
                cost = (processor_seconds(process) - before) / requests * 1e6
                figures[name, connections].add(rate, median, cost)
        for name in ways:
            row = figures[name, connections]
            result.row(
                f"{name}, {connections} connection{'s' if connections > 1 else ''}", row.rate, row.median, row.cost
            )
    raw, ours = places["raw"][0], places["ours"][0]
    alone = min([await streams(raw) for _ in range(rounds)])
    through = min([await streams(ours) for _ in range(rounds)])
    result.table("", "s, raw", "s, ours")
    result.row(f"{STREAMS} paced streams", alone, through)

    reached = {"streams": alone / through}
    if "LiteLLM" in ways:
        for name in ("conversation", "stateless"):
            reached[f"{name}: times LiteLLM at 64"] = figures[name, 64].rate / figures["LiteLLM", 64].rate
    result.table("", "reached", "target", "")
    missed = 0
    for name, value in reached.items():
        better = value >= TARGETS[name]
        missed += not better
        result.row(name, value, TARGETS[name], "reached" if better else "missed")
    for name in ("conversation", "stateless", "bare proxy"):
        result.row(f"{name}: of raw at 64", figures[name, 64].rate / figures["raw", 64].rate, None, None)
        result.row(f"{name}: added p50 at 1, ms", figures[name, 1].median - figures["raw", 1].median, None, None)
    return 1 if missed else 0


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--litellm", type=Path, metavar="FILE", help="the command of an environment that has LiteLLM")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each is asked in a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often; the best counts")
    wanted = parser.parse_args()
    result = Result(__doc__, peers=("starlette", "uvicorn", "aiohttp", "uvloop"))
    if wanted.litellm is None:
        result.note("LiteLLM was not measured: --litellm names its command.")
    else:
        said = subprocess.run([wanted.litellm, "--version"], capture_output=True, text=True, check=True).stdout
        result.note(f"{said.strip().splitlines()[-1]}.")
    with processes(wanted.litellm) as places:
        code = uvloop.run(measure(places, result, wanted.seconds, wanted.rounds))
    result.keep(wanted.json)
    return code


if __name__ == "__main__":
    if sys.argv[1:] == ["model"]:
        uvloop.run(be_the_model())
    elif sys.argv[1:2] == ["proxy"]:
        uvloop.run(be_a_bare_proxy(int(sys.argv[2])))
    else:
        sys.exit(main())
