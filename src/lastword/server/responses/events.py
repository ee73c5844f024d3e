"""An answer in the Responses form, piece by piece.

Items are opened when their first piece comes and closed after the turn was remembered: a client may run what it was
asked for as soon as that item is closed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from lastword.server.chat import OpenTurn
from lastword.server.refusal import Refusal
from lastword.server.responses.answer import (
    call_item,
    count,
    how_it_ended,
    message_item,
    output_items,
    place_of,
    respond,
    text_part,
)
from lastword.server.responses.wire import ResponseOut, ResponsesRequest
from lastword.server.stream import StreamedReply
from lastword.wire import write_event

_encode = msgspec.json.Encoder().encode


class ResponseEvents:
    """The events of one answer."""

    def __init__(self, request: ResponsesRequest) -> None:
        self._request = request
        self._number = 0
        self._items: dict[str, OpenItem] = {}
        """Those that were opened, by the id of the request they are, or nothing for the message."""
        self._calls: dict[int, CallBeginning] = {}
        """Calls by the index that the model's server gives them."""

    async def write(self, turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
        """The answer to a turn, from the chunks of the model's server."""
        self._place = place_of(turn)
        reply = StreamedReply(turn)
        begun = False
        async for chunk in chunks:
            choice = reply.take(chunk)
            if not begun:
                begun = True
                yield self._begin(reply)
            if choice is not None:
                for event in self._take(choice["delta"]):
                    yield event
        extras = await reply.finish()
        if not begun:
            yield self._begin(reply)
        status, details = how_it_ended(reply.finish_reason)
        for item in output_items(self._place, reply.message, extras.tool_requests, status):
            for event in self._close(item):
                yield event
        output = [entry.item for entry in self._items.values()]
        response = respond(
            self._request,
            self._place,
            reply.head,
            status=status,
            output=output,
            usage=count(reply.usage),
            incomplete_details=details,
            extras=extras,
        )
        yield self._event(f"response.{status}", response=response)

    def broken(self, refusal: Refusal) -> bytes:
        """What a client is told when the stream breaks off in the middle: documents have one form, servers another."""
        error = refusal.body().error
        return self._event("error", code=error.code, message=error.message, param=error.param, error=error)

    def _begin(self, reply: StreamedReply) -> bytes:
        response: ResponseOut = respond(self._request, self._place, reply.head, status="in_progress", output=[])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def _take(self, delta: dict[str, Any]) -> Iterator[bytes]:
        if text := delta.get("content"):
            if "" not in self._items:
                yield from self._open_message(text_part(""))
            yield self._say(self._items[""], text)
        for piece in delta.get("tool_calls", ()):
            beginning = self._calls.setdefault(piece["index"], CallBeginning(len(self._calls)))
            yield from self._argue(beginning, piece)

    def _argue(self, beginning: CallBeginning, piece: dict[str, Any]) -> Iterator[bytes]:
        """A piece of a call. Its item is opened with its name, which may come in pieces, before its arguments."""
        beginning.id = beginning.id or piece.get("id") or ""
        function = piece.get("function")
        if not isinstance(function, dict):
            return
        name, arguments = function.get("name"), function.get("arguments")
        beginning.name += name if isinstance(name, str) else ""
        if isinstance(arguments, str) and arguments and beginning.name:
            if beginning.id not in self._items:
                item = call_item(self._place, beginning.number, beginning.id, beginning.name, "", "in_progress")
                yield self._open(beginning.id, item)
            yield self._grow(self._items[beginning.id], arguments)

    def _open_message(self, part: dict[str, Any]) -> Iterator[bytes]:
        yield self._open("", {**message_item(self._place, {}, "in_progress"), "content": []})
        yield self._of(self._items[""], "response.content_part.added", content_index=0, part=part)

    def _open(self, key: str, item: dict[str, Any]) -> bytes:
        entry = self._items[key] = OpenItem(item, len(self._items))
        return self._event("response.output_item.added", output_index=entry.index, item=item)

    def _say(self, entry: OpenItem, text: str) -> bytes:
        entry.sent += len(text)
        return self._of(entry, "response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def _grow(self, entry: OpenItem, arguments: str) -> bytes:
        entry.sent += len(arguments)
        return self._of(entry, "response.function_call_arguments.delta", delta=arguments)

    def _close(self, item: dict[str, Any]) -> Iterator[bytes]:
        """Say what has not been said of an item, and that it is all."""
        if item["type"] == "message":
            yield from self._close_message(item)
        else:
            yield from self._close_call(item)

    def _close_message(self, item: dict[str, Any]) -> Iterator[bytes]:
        (part,) = item["content"]
        if "" not in self._items:
            yield from self._open_message({**part, "refusal": ""} if part["type"] == "refusal" else text_part(""))
        entry = self._items[""]
        if part["type"] == "refusal":
            words = part["refusal"]
            yield self._of(entry, "response.refusal.delta", content_index=0, delta=words)
            yield self._of(entry, "response.refusal.done", content_index=0, refusal=words)
        else:
            if rest := part["text"][entry.sent :]:
                yield self._say(entry, rest)
            yield self._of(entry, "response.output_text.done", content_index=0, text=part["text"], logprobs=[])
        yield self._of(entry, "response.content_part.done", content_index=0, part=part)
        yield self._done(entry, item)

    def _close_call(self, item: dict[str, Any]) -> Iterator[bytes]:
        id, arguments = item["call_id"], item["arguments"]
        if id not in self._items:
            yield self._open(id, {**item, "status": "in_progress", "arguments": ""})
        entry = self._items[id]
        item["id"] = entry.item["id"]
        if rest := arguments[entry.sent :]:
            yield self._grow(entry, rest)
        named = {"name": item["name"], "arguments": arguments}
        yield self._of(entry, "response.function_call_arguments.done", **named)
        yield self._done(entry, item)

    def _done(self, entry: OpenItem, item: dict[str, Any]) -> bytes:
        entry.item = item
        return self._event("response.output_item.done", output_index=entry.index, item=item)

    def _of(self, entry: OpenItem, kind: str, **facts: Any) -> bytes:
        return self._event(kind, item_id=entry.item["id"], output_index=entry.index, **facts)

    def _event(self, kind: str, **facts: Any) -> bytes:
        data = _encode({"type": kind, "sequence_number": self._number, **facts})
        self._number += 1
        return write_event(data, kind=kind)


class OpenItem:
    """An item of which something went out."""

    def __init__(self, item: dict[str, Any], index: int) -> None:
        self.item = item
        self.index = index
        self.sent = 0
        """How many characters."""


class CallBeginning:
    """What is known of a call before its arguments come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
