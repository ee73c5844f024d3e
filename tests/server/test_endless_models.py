"""A model's server that never comes to an end. It may be broken, or somebody else's: ours goes on serving everybody."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from house import Running

from requirements import requirement
from tries import mostly_long

WORD = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
EMPTY = b'data: {"choices": []}\n\n'
ROLE = b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}], "long": "%b"}\n\n' % (b"x" * 1000)
NOTHING = {
    "no choices": EMPTY * 1000,
    "a role": ROLE * 10,
    "comments": b": still here\n\n" * 1000,
    "blank lines": b"\n" * 10_000,
    "empty events": b"data:\n\n" * 1000,
    "names": b"id: 7\nevent: none\n\n" * 1000,
    "one line": b"x" * 10_000,
    "one event": b"data: " + b"x" * 10_000,
}
PATIENCE_SECONDS = 60.0

Pieces = Callable[[], AsyncIterator[bytes]]


@contextmanager
def endless(pieces: Pieces, media: str = "text/event-stream") -> Iterator[tuple[str, threading.Event]]:
    """A model's server that sends these pieces: its address, and when whoever read them had gone."""
    gone, ready, addresses = threading.Event(), threading.Event(), []
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["messages"][-1]["content"] == "Still there?":
            return web.json_response({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
        response = web.StreamResponse(headers={"Content-Type": media})
        await response.prepare(request)
        try:
            async for piece in pieces():
                await response.write(piece)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise
        return response

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        addresses.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    try:
        yield addresses[0], gone
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def over_and_over(piece: bytes, pause_seconds: float = 0.0) -> AsyncIterator[bytes]:
    while True:
        yield piece
        await asyncio.sleep(pause_seconds)


def on_its_way() -> int:
    """What the system keeps between two sockets at most: sent, and read by nobody. It may be 10 MB, or 36."""
    kept = [Path(f"/proc/sys/net/ipv4/tcp_{which}mem") for which in "rw"]
    return sum(int(each.read_text().split()[-1]) if each.exists() else 8 * 2**20 for each in kept)


def refused(server: Running, **fields: Any) -> str:
    answer = server.chat("Hi", model="m", conversation_id="c", **fields)
    error: dict[str, Any] = answer.chunks[-1]["error"] if answer.status == 200 else answer.json["error"]
    return str(error["code"])


@requirement("API-30", "API-53")
@pytest.mark.parametrize("name", mostly_long(NOTHING, "no choices", "comments", "one line", "one event"))
def test_a_stream_of_nothing_ends_after_as_many_bytes_as_an_answer_may_have(house, name):
    """Wrapping may be many times as long as the words in it; without words there is nothing to wrap."""
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        yield WORD * 1000
        async for each in over_and_over(NOTHING[name]):
            sent += len(each)
            yield each

    with endless(pieces) as (url, gone):
        server = house.server(None, upstream=url, limits={"reply_bytes": 2_000_000})
        assert refused(server, stream=True) == "upstream_too_large"
        assert gone.wait(PATIENCE_SECONDS), "nobody reads on"
        assert server.send("GET", "/v1/conversations/c").status == 404
        assert server.chat("Still there?", model="m", conversation_id="c").status == 200
    assert sent < 4 * 2**20 + on_its_way()


@requirement("API-30", "API-53")
@pytest.mark.parametrize("stream", [True, False])
def test_reply_seconds(house, stream):
    """One byte now and then is never silence. It would hold the conversation, and a turn of the caller, for ever."""
    piece = WORD if stream else b" "
    media = "text/event-stream" if stream else "application/json"
    with endless(lambda: over_and_over(piece, 0.05), media) as (url, gone):
        server = house.server(None, upstream=url, limits={"reply_seconds": 1.0, "idle_seconds": 50.0})
        assert refused(server, stream=stream) == "upstream_slow"
        assert gone.wait(PATIENCE_SECONDS), "nobody reads on"
        assert server.send("GET", "/v1/conversations/c").status == 404
        assert server.chat("Still there?", model="m", conversation_id="c").status == 200
