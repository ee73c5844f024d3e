"""A model that says what it was told to: an OpenAI-compatible server on loopback, for tests.

    with ScriptedModel(["Hello.", '{"tool_request": {"name": "t"}}']) as model:
        …point something at model.url…
        model.requests[0]["messages"]

A reply is a text, a list of pieces (streamed one by one; a `Pause` among them waits until the test opens it), a message
as a dict (for native tool calls), or a `Fault`. Instead of a list, a function of the request may choose. It runs in a
thread of its own, and really speaks HTTP: what it does wrong is wrong on the wire.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from types import TracebackType
from typing import Any, Literal

from aiohttp import web

# How long a fault that hangs, hangs; the client is expected to give up first.
HANG_SECONDS = 300.0


@dataclass(eq=False)
class Fault:
    """Something that goes wrong on the model's side."""

    kind: Literal["reset", "hang", "die", "garbage", "status", "huge", "error_event", "whole", "short"]
    _: KW_ONLY
    after: Sequence[str] = ()
    status: int = 500
    retry_after: str | None = None
    location: str | None = None
    body: bytes = b"<html>oops</html>"
    code: str | int | None = None
    size: int = 10 * 1024 * 1024


class Pause:
    """A point in a reply where the model waits."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._is_open = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Let the reply go on. From any thread."""
        self._is_open.set()
        for loop, event in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Wait until it is open."""
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        if not self._is_open.is_set():
            await event.wait()


Reply = str | Sequence[str | Pause] | dict[str, Any] | Fault
Script = Iterable[Reply] | Callable[[dict[str, Any]], Reply]


class ScriptedModel:
    """The model. Use it as a context manager; `url` is its address."""

    def __init__(
        self,
        replies: Script,
        *,
        models: Sequence[str] = ("scripted",),
        owned_by: str = "scripted",
        context: int | None = None,
        key: str | None = None,
        port: int = 0,
    ) -> None:
        """`owned_by` and `context` are what it says of its models: whose server it is, and how much they see."""
        if callable(replies):
            self._choose: Callable[[dict[str, Any]], Reply] = replies
        else:
            left = iter(replies)
            self._choose = lambda _: next(left, Fault("status", status=500, body=b"the script has ended"))
        self._models = models
        self._about = {"owned_by": owned_by, **({} if context is None else {"meta": {"n_ctx": context}})}
        self._key = key
        self._port = port
        self.requests: list[dict[str, Any]] = []
        """The bodies of the chat requests so far."""
        self.cancelled = threading.Event()
        """Set when a client went away before its answer was complete."""
        self.url = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _list(self, request: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "created": 0, **self._about} for name in self._models]
        return web.json_response({"object": "list", "data": data})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if self._key is not None and request.headers.get("Authorization") != f"Bearer {self._key}":
            said = f"Incorrect API key provided: {request.headers.get('Authorization')}"
            return web.json_response({"error": {"message": said}}, status=401)
        body = await request.json()
        self.requests.append(body)
        reply = self._choose(body)
        try:
            if isinstance(reply, Fault):
                return await self._fail(request, body, reply)
            if body.get("stream"):
                return await self._stream(request, body, reply)
            return web.json_response(_completion(body, await _message(reply)))
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled.set()
            raise

    async def _stream(self, request: web.Request, body: dict[str, Any], reply: Reply) -> web.StreamResponse:
        response = await _begin(request)
        calls: list[dict[str, Any]] = []
        others: dict[str, Any] = {}
        pieces: Iterable[str | Pause]
        if isinstance(reply, dict):
            others = {key: value for key, value in reply.items() if key not in ("role", "content", "tool_calls")}
            pieces = [reply["content"]] if reply.get("content") else []
            calls = reply.get("tool_calls") or []
        elif isinstance(reply, str):
            pieces = re.findall(r"\S+\s*|^\s+", reply)
        else:
            assert not isinstance(reply, Fault)
            pieces = reply
        await _send(response, _chunk(body, {"role": "assistant", "content": ""}))
        for key, value in others.items():
            # Thoughts come in pieces too, before the words.
            half = len(value) // 2 if isinstance(value, str) else 0
            for part in (value[:half], value[half:]) if half else (value,):
                await _send(response, _chunk(body, {key: part}))
        for piece in pieces:
            if isinstance(piece, Pause):
                await piece.wait()
            else:
                await _send(response, _chunk(body, {"content": piece}))
        for index, call in enumerate(calls):
            # As OpenAI does it: the name first, then the arguments in pieces.
            function = call["function"]
            half = len(function["arguments"]) // 2
            opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
            await _send(response, _chunk(body, {"tool_calls": [opening]}))
            for part in (function["arguments"][:half], function["arguments"][half:]):
                await _send(response, _chunk(body, {"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
        await _send(response, _chunk(body, {}, "tool_calls" if calls else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            await _send(response, {**_chunk(body, {}), "choices": [], "usage": USAGE})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _fail(self, request: web.Request, body: dict[str, Any], fault: Fault) -> web.StreamResponse:
        assert request.transport is not None
        if fault.kind == "status":
            named = {"Retry-After": fault.retry_after, "Location": fault.location}
            headers = {name: value for name, value in named.items() if value}
            said = {"error": {"message": fault.body.decode(), "type": "scripted", "code": fault.code}}
            return web.json_response(said, status=fault.status, headers=headers)
        if fault.kind == "garbage":
            media = "text/event-stream" if body.get("stream") else "application/json"
            text = b"data: " + fault.body + b"\n\n" if body.get("stream") else fault.body
            return web.Response(body=text, content_type=media)
        if fault.kind == "whole":
            # Asked for a stream, it answers in one piece all the same.
            return web.json_response(_completion(body, {"role": "assistant", "content": "".join(fault.after)}))
        if fault.kind == "huge":
            word = "x" * 10_000
            if not body.get("stream"):
                return web.json_response(
                    _completion(body, {"role": "assistant", "content": word * (fault.size // 10_000)})
                )
            return await self._stream(request, body, [word] * (fault.size // 10_000))
        if fault.kind == "reset" or (fault.kind == "die" and not body.get("stream")):
            request.transport.abort()
            return web.Response()
        if fault.kind == "hang" and not fault.after:
            await asyncio.sleep(HANG_SECONDS)
            return web.Response()
        response = await _begin(request)
        for piece in fault.after:
            await _send(response, _chunk(body, {"content": piece}))
        if fault.kind == "hang":
            await asyncio.sleep(HANG_SECONDS)
        elif fault.kind == "error_event":
            await _send(response, {"error": {"message": fault.body.decode()}})
        elif fault.kind == "die":
            request.transport.abort()
        return response


USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


async def _begin(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    return response


async def _send(response: web.StreamResponse, chunk: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


async def _message(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, dict):
        return {"role": "assistant", "content": None, **reply}
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    assert not isinstance(reply, Fault)
    for piece in reply:
        if isinstance(piece, Pause):
            await piece.wait()
    return {"role": "assistant", "content": "".join(piece for piece in reply if isinstance(piece, str))}


def _completion(body: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": USAGE,
    }


def _chunk(body: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body.get("model", "scripted"),
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }
