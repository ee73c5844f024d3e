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
from lastword.server.reply_shape import CallsInPieces, OtherKeys, new_answer_id
from lastword.server.wire import Extras
from lastword.wire import write_event

_encode = msgspec.json.Encoder().encode

DONE = write_event(b"[DONE]")


async def events(turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    """The answer to a turn, from the chunks of the model's server."""
    reply = StreamedReply(turn)
    async for chunk in chunks:
        choice = reply.take(chunk)
        if choice is not None:
            yield write_event(_encode({**reply.head, "choices": [choice]}))

    extras = msgspec.to_builtins(await reply.finish())
    delta = {"content": "".join(reply.held)} if reply.held else {}
    choice = {"index": 0, "delta": delta, "finish_reason": reply.finish_reason}
    yield write_event(_encode({**reply.head, "choices": [choice], **extras}))
    options = turn.request.stream_options
    if options is not None and options.include_usage and reply.usage is not None:
        yield write_event(_encode({**reply.head, "choices": [], "usage": reply.usage, **extras}))
    yield DONE


class StreamedReply:
    """A model's message while it comes, whatever the form is in which it goes out again."""

    def __init__(self, turn: OpenTurn) -> None:
        self.head: dict[str, Any] = {}
        self.held: list[str] = []
        """Text that nobody has seen, because it may still be a request."""
        self.finish_reason = "stop"
        self.usage: dict[str, Any] | None = None
        self.message: dict[str, Any] = {}
        """The whole of it, once it is finished."""
        self._turn = turn
        self._watching = watches(turn.protocol)
        self._text: list[str] = []
        self._size = 0
        self._calls = CallsInPieces()
        self._others = OtherKeys()
        self._called = False

    def take(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        """The next chunk of the model's server; of its choice, what may go out now."""
        if not self.head:
            self.head = _head(chunk)
        if isinstance(chunk.get("usage"), dict):
            self.usage = chunk["usage"]
        if not chunk["choices"]:
            return None
        choice = chunk["choices"][0]
        delta = {key: value for key, value in choice["delta"].items() if value is not None}
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        if "tool_calls" in delta:
            self._called = True
            self._size += self._calls.add(delta["tool_calls"])
        self._size += self._others.add(delta) + len(delta.get("content") or "")
        if self._size > self._turn.limits.reply_bytes:
            raise Refusal(502, "upstream_too_large", "the model's answer is longer than fits")
        if piece := delta.get("content"):
            self._text.append(piece)
            self._watching = [watch for watch in self._watching if watch.feed(piece)]
            if self._watching:
                self.held.append(piece)
                del delta["content"]
            elif self.held:
                delta["content"] = "".join(self.held) + piece
                self.held.clear()
        if not delta:
            return None
        out = {"index": 0, "delta": delta, "finish_reason": None}
        if choice.get("logprobs") is not None:
            out["logprobs"] = choice["logprobs"]
        return out

    async def finish(self) -> Extras:
        """It is complete: read and remembered. After this the client may know of it."""
        self.head = self.head or _head({})
        self.message = {**self._others.whole(), "role": "assistant", "content": "".join(self._text) or None}
        if self._called:
            self.message["tool_calls"] = self._calls.whole()
        extras = await self._turn.finish(self.message)
        self._turn.counted(self.usage)
        return extras


def _head(chunk: dict[str, Any]) -> dict[str, Any]:
    id, created, model = chunk.get("id"), chunk.get("created"), chunk.get("model")
    return {
        "id": id if isinstance(id, str) and id else new_answer_id(),
        "object": "chat.completion.chunk",
        "created": created if type(created) is int else int(time.time()),
        "model": model if isinstance(model, str) else "unknown",
    }
