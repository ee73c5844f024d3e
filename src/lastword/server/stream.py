"""A turn piece by piece, as server-sent events in OpenAI's shape.

Text goes out as it comes. What may still turn out to be a request is held back until that is decided, and then goes
out whole: as text, or beside the request it is. The turn is remembered before the chunk that says it is complete.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from lastword.server.chat import OpenTurn
from lastword.server.refusal import Refusal
from lastword.server.reply import watches
from lastword.server.reply_shape import CallsInPieces, new_answer_id
from lastword.wire.sse import write_event

_encode = msgspec.json.Encoder().encode

DONE = write_event(b"[DONE]")


async def events(turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    """The answer to a turn, from the chunks of the model's server."""
    watching = watches(turn.protocol)
    held: list[str] = []
    text: list[str] = []
    size = 0
    calls = CallsInPieces()
    called = False
    finish_reason = "stop"
    usage: dict[str, Any] | None = None
    head: dict[str, Any] = {}
    async for chunk in chunks:
        if not head:
            head = _head(chunk)
        if isinstance(chunk.get("usage"), dict):
            usage = chunk["usage"]
        for choice in chunk["choices"][:1]:
            delta = {key: value for key, value in choice["delta"].items() if value is not None}
            if isinstance(choice.get("finish_reason"), str):
                finish_reason = choice["finish_reason"]
            if "tool_calls" in delta:
                called = True
                calls.add(delta["tool_calls"])
            if piece := delta.get("content"):
                text.append(piece)
                size += len(piece)
                if size > turn.limits.reply_bytes:
                    raise Refusal(502, "upstream_too_large", "the model's answer is longer than fits")
                watching = [watch for watch in watching if watch.feed(piece)]
                if watching:
                    held.append(piece)
                    del delta["content"]
                elif held:
                    delta["content"] = "".join(held) + piece
                    held.clear()
            if delta:
                out = {"index": 0, "delta": delta, "finish_reason": None}
                if choice.get("logprobs") is not None:
                    out["logprobs"] = choice["logprobs"]
                yield write_event(_encode({**head, "choices": [out]}))

    message: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
    if called:
        message["tool_calls"] = calls.whole()
    extras = msgspec.to_builtins(await turn.finish(message))
    turn.metrics.count_tokens(usage)
    delta = {"content": "".join(held)} if held else {}
    head = head or _head({})
    last = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **extras}
    yield write_event(_encode(last))
    options = turn.request.stream_options
    if options is not None and options.include_usage and usage is not None:
        yield write_event(_encode({**head, "choices": [], "usage": usage, **extras}))
    yield DONE


def _head(chunk: dict[str, Any]) -> dict[str, Any]:
    id, created, model = chunk.get("id"), chunk.get("created"), chunk.get("model")
    return {
        "id": id if isinstance(id, str) and id else new_answer_id(),
        "object": "chat.completion.chunk",
        "created": created if type(created) is int else int(time.time()),
        "model": model if isinstance(model, str) else "unknown",
    }
