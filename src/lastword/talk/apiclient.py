"""The assistant API from a client's side: one turn as a stream, and what the server remembers of a conversation.

The same bytes travel over HTTP and in process: a `Wire` carries a request and brings back a response, and everything
above it is the same. What does not live here: what a reply asks for (replies.py) and what to do about it
(satellite.py).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from lastword.errors import LastWordError
from lastword.wire import EventTooLarge, SentEvent, read_events

# What a reply may hold besides text: more than this is not a chunk of an answer.
MAX_EVENT_BYTES = 16 * 1024 * 1024


class ConnectionLost(LastWordError):
    """The server could not be reached, or went away before its answer was complete."""


class ApiError(LastWordError):
    """The server answered, and refused."""

    def __init__(self, status: int, code: str, fact: str, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.status = status
        self.code = code


class Response(Protocol):
    """The beginning of a response; its body comes in pieces."""

    status: int
    headers: Mapping[str, str]
    """By name, without regard to its case."""

    def pieces(self) -> AsyncGenerator[bytes]:
        """The body as it arrives. Raises ConnectionLost when it breaks off."""


class Wire(Protocol):
    """A way to the server."""

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request; inside the context is its response. Leaving the context hangs up."""

    async def close(self) -> None:
        """Let go of connections."""


class Api:
    """What a satellite needs of the server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def turn(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """One turn, as the chunks of its answer. It is complete when the generator ends without an exception."""
        data = msgspec.json.encode({**body, "stream": True, "stream_options": {"include_usage": True}})
        async with self._wire.exchange("POST", "/v1/chat/completions", data) as response:
            if response.status != 200:
                raise refusal_of(response.status, await read_all(response))
            done = False
            async with aclosing(read_stream(response, too_large_status=502)) as events:
                async for event in events:
                    if event.data == b"[DONE]":
                        done = True
                        break
                    chunk = decode(event.data)
                    if "error" in chunk:
                        # The answer has begun, so its status is spent; the refusal comes as an event.
                        raise refusal_of(502, event.data)
                    yield chunk
            if not done:
                raise ConnectionLost("the server closed the connection before its answer was complete")

    async def conversation(self, id: str) -> dict[str, Any] | None:
        """What the server remembers of a conversation; None when it knows none of that id."""
        async with self._wire.exchange("GET", f"/v1/conversations/{quote(id, safe='')}", None) as response:
            data = await read_all(response)
        if response.status == 404:
            return None
        if response.status != 200:
            raise refusal_of(response.status, data)
        return decode(data)

    async def rewind(self, id: str, turns: int) -> int:
        """Go back to where there were so many turns; the number of the last turn now."""
        path, body = f"/v1/conversations/{quote(id, safe='')}/rewind", msgspec.json.encode({"turns": turns})
        async with self._wire.exchange("POST", path, body) as response:
            data = await read_all(response)
        if response.status != 200:
            raise refusal_of(response.status, data)
        return int(decode(data)["turns"])

    async def delete(self, id: str) -> None:
        """Let the server forget a conversation; one that it does not know is forgotten already."""
        async with self._wire.exchange("DELETE", f"/v1/conversations/{quote(id, safe='')}", None) as response:
            data = await read_all(response)
        if response.status not in (200, 404):
            raise refusal_of(response.status, data)

    async def models(self) -> list[str]:
        """The names that a request may use; the first is the configured one."""
        async with self._wire.exchange("GET", "/v1/models", None) as response:
            data = await read_all(response)
        if response.status != 200:
            raise refusal_of(response.status, data)
        return [str(entry["id"]) for entry in decode(data)["data"]]

    async def close(self) -> None:
        await self._wire.close()


async def read_all(response: Response) -> bytes:
    """The whole body."""
    async with aclosing(response.pieces()) as pieces:
        return b"".join([piece async for piece in pieces])


async def read_stream(response: Response, *, too_large_status: int) -> AsyncGenerator[SentEvent]:
    """The events of a body. One that is too large is refused with a status that says whether to try again."""
    try:
        async with aclosing(response.pieces()) as pieces, aclosing(read_events(pieces, MAX_EVENT_BYTES)) as events:
            async for event in events:
                yield event
    except EventTooLarge as problem:
        raise ApiError(too_large_status, "too_large", f"the server sent {problem.fact}") from None


def decode(data: bytes) -> dict[str, Any]:
    """A JSON object; nothing else is an answer."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ApiError(502, "garbage", "the server answered with something that is not a JSON object")
    return found


def refusal_of(status: int, data: bytes) -> ApiError:
    """What a server said when it refused, as far as it can be read."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        found = None
    match found:
        case {"error": {"message": str(words), **more}}:
            fact, _, hint = words.partition("\nhint: ")
            code = more.get("code")
            return ApiError(status, code if isinstance(code, str) else "", fact, hint or None)
    return ApiError(status, "", f"the server answered with status {status}")


def may_pass(problem: LastWordError) -> bool:
    """Whether another attempt could succeed: the server is away, busy or stopping.

    Not when the model's server failed. Ours has tried that one again already, and attempts of both would multiply.
    """
    if isinstance(problem, ApiError):
        transient = problem.status in (408, 429, 502, 503, 504) or problem.code == "turn_running"
        return transient and not problem.code.startswith("upstream_") and problem.code not in _LASTING
    return True


# Failures that the next attempt would only repeat, and pay for.
_LASTING = ("no_model", "too_large")
