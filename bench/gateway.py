"""How much longer a call of an MCP server's tool takes through lastword than from a bare client. Through lastword it
has a card, a journal on the disk, and one delivery.

    python bench/gateway.py [--json FILE] [CALLS]

The server answers at once and does nothing. In the first rows client, lastword and the answering of cards share one
process, so that what is measured is what lastword adds: the request, the card, a yes that is given as soon as the card
is there, the server's own answer and its delivery, with five commits that wait for the disk. In the last row lastword
is the program that a client starts, and a third one answers as soon as it sees the card, as the page does: what two
programs take to hear of each other by the memory comes on top. All are measured by turns.

It is not called mcp.py: beside the other benches that would be found in place of the SDK.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from figures import Result, arguments
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from lastword import Journal, Preset, Session, ToolRegistry, UserAction, open_journal
from lastword.config import McpConfig
from lastword.consent import Answerer
from lastword.mcp import McpServers, Pins, SecretFile, ToolServer
from lastword.mcp.connection import McpConnection
from lastword.mcp.server_files import written
from lastword.mcp.server_trust import launch_of

SERVER = """
import json, sys
tool = {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}}
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "echo", "version": "1"}},
    "tools/list": {"tools": [tool]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = results.get(message["method"])
        rest = {"result": found} if found else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | rest), flush=True)
"""
TARGET_MS = 30.0


async def allow(request: object) -> UserAction:
    return UserAction(True, False)


async def behind(folder: Path, journal: Journal, after: AsyncExitStack) -> Client:
    """A client of lastword, with the server behind it."""
    config = McpConfig(command=sys.executable, args=["-S", str(folder / "server.py")])
    pins, secrets, place = Pins(folder / "pins.json"), SecretFile(folder / "secrets.json"), folder / "lastword.toml"
    launch = launch_of("echo", config, folder)
    link = McpConnection(launch, secrets)
    pins.keep(place, launch, await link.listed())
    await link.close()
    servers = await after.enter_async_context(McpServers({"echo": config}, place, pins, secrets))
    registry = ToolRegistry()
    servers.offer(registry)

    async def open_session(id: str, preset: Preset | None) -> Session:
        return await Session(registry, id=id, approver=allow, journal=journal, preset=preset).open()

    server = ToolServer(open_session, b"k" * 32)
    after.push_async_callback(server.close)
    return await after.enter_async_context(Client(server.protocol, mode="legacy", cache=None))


async def apart(folder: Path, after: AsyncExitStack) -> Client:
    """The same with lastword as a program of its own, and somebody else who answers."""
    own = folder / "apart"
    place, store = own / "lastword.toml", f"sqlite:///{own}/memory.db"
    config = McpConfig(command=sys.executable, args=["-S", str(folder / "server.py")])
    own.mkdir()
    place.write_text(written("echo", config))
    launch = launch_of("echo", config, own)
    link = McpConnection(launch, SecretFile(own / "secrets.json"))
    Pins(own / "data" / "lastword" / "mcp_trusted.json").keep(place, launch, await link.listed())
    await link.close()
    journal = open_journal(store)
    after.push_async_callback(journal.close)
    answering = asyncio.ensure_future(answer_all(journal))
    after.callback(answering.cancel)
    where = StdioServerParameters(
        command=sys.executable,
        args=["-m", "lastword", "mcp", "serve", "--config", str(place), "--store", store],
        env={"HOME": str(own), "XDG_DATA_HOME": str(own / "data"), "PATH": os.environ["PATH"]},
        cwd=own,
    )
    silence = after.enter_context(os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))  # It says there what waits.
    return await after.enter_async_context(Client(stdio_client(where, errlog=silence), mode="legacy", cache=None))


async def answer_all(journal: Journal) -> None:
    while True:
        head = await journal.store.head()
        for facts in await journal.waiting():
            await journal.answer(facts, UserAction(True, False), Answerer.person("bench"))
        await journal.store.changed(head.seq)


async def timed(call: Callable[[int], Awaitable[object]], times: list[float], number: int) -> None:
    start = time.perf_counter()
    await call(number)
    times.append((time.perf_counter() - start) * 1000)


async def measure(result: Result, calls: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server.py").write_text(SERVER)
        async with AsyncExitStack() as after:
            where = StdioServerParameters(command=sys.executable, args=["-S", str(folder / "server.py")])
            bare = await after.enter_async_context(Client(where, mode="legacy", cache=None))
            journals = [open_journal(f"sqlite:///{folder}/memory.db"), Journal()]
            durable, forgetful = [await behind(folder, journal, after) for journal in journals]
            program = await apart(folder, after)
            ways: dict[str, tuple[Callable[[int], Awaitable[object]], list[float]]] = {
                "a bare client": (lambda number: bare.call_tool("echo", {"n": number}), []),
                "through lastword, durable": (lambda number: durable.call_tool("echo__echo", {"n": number}), []),
                "through lastword, in memory": (lambda number: forgetful.call_tool("echo__echo", {"n": number}), []),
                "three programs, durable": (lambda number: program.call_tool("echo__echo", {"n": number}), []),
            }
            for number in range(calls):
                for call, times in ways.values():
                    await timed(call, times, number)
            result.table("", "p50 ms", "p95 ms", "added p50 ms", "target")
            beside = statistics.median(ways["a bare client"][1])
            for words, (_, times) in ways.items():
                times = sorted(times[len(times) // 10 :])
                p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
                added = None if words == "a bare client" else p50 - beside
                target = f"≤ {TARGET_MS:.0f}" if "durable" in words else None
                result.row(words, p50, p95, added, target)
        await journals[0].close()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=300)
    wanted = parser.parse_args()
    result = Result(__doc__, peers=("mcp",))
    asyncio.run(measure(result, wanted.calls))
    result.keep(wanted.json)


if __name__ == "__main__":
    main()
