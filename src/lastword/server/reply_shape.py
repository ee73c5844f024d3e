"""The shape of what a model's server sends: checked, filled up, and refused when it is none.

Servers differ: some leave out ids, roles or whole fields. What is needed is made sure of here, once; what is not
needed is kept as it came.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from lastword.server.refusal import Refusal


class Completion(msgspec.Struct, frozen=True):
    """A whole answer. `body` is the server's own, made whole; `message` is the one in it."""

    body: dict[str, Any]
    message: dict[str, Any]

    def as_chunks(self) -> Iterator[dict[str, Any]]:
        """The same as a short stream."""
        choice = self.body["choices"][0]
        calls = [{"index": i, **call} for i, call in enumerate(self.message.get("tool_calls") or ())]
        delta = {"role": "assistant", "content": self.message.get("content")}
        if calls:
            delta["tool_calls"] = calls
        head = {"id": self.body["id"], "created": self.body["created"], "model": self.body["model"]}
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": choice.get("finish_reason")}]}
        if self.body.get("usage"):
            yield {**head, "choices": [], "usage": self.body["usage"]}


def check_completion(found: Any) -> Completion:
    """An answer that can be relied on, or a refusal."""
    match found:
        case {"choices": [{"message": dict()}, *_]}:
            choice: dict[str, Any] = found["choices"][0]
            message: dict[str, Any] = choice["message"]
        case _:
            raise _garbage()
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise _garbage()
    message = {**message, "role": "assistant", "content": content}
    if message.get("tool_calls"):
        message["tool_calls"] = check_calls(message["tool_calls"])
    else:
        message.pop("tool_calls", None)
    finish = choice.get("finish_reason")
    body = {
        **found,
        "id": _text(found.get("id")) or new_answer_id(),
        "object": "chat.completion",
        "created": found["created"] if type(found.get("created")) is int else int(time.time()),
        "model": _text(found.get("model")) or "unknown",
        "choices": [{**choice, "index": 0, "message": message, "finish_reason": _text(finish) or "stop"}],
        "usage": found.get("usage") if isinstance(found.get("usage"), dict) else None,
    }
    return Completion(body, message)


def check_calls(calls: Any) -> list[dict[str, Any]]:
    """Native tool calls with everything in its place. One without an id gets one: its result has to name it."""
    if not isinstance(calls, list):
        raise _garbage()
    checked = []
    seen: set[str] = set()
    for call in calls:
        match call:
            case {"function": {"name": str(name)}} if name:
                function = call["function"]
            case _:
                raise _garbage()
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            # Some servers send the object itself where OpenAI sends its text.
            arguments = msgspec.json.encode(arguments).decode()
        if arguments is None:
            arguments = ""
        if not isinstance(arguments, str):
            raise _garbage()
        id = _text(call.get("id"))
        if not id or id in seen:
            id = "call_" + secrets.token_hex(12)
        seen.add(id)
        checked.append({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    return checked


def check_chunk(found: Any, redact: Callable[[str], str]) -> dict[str, Any]:
    """A chunk of a stream that can be relied on, or a refusal."""
    match found:
        case {"error": {"message": str(said)}}:
            raise Refusal(502, "upstream_failed", f"the model's server failed in the middle: {redact(said)}")
        case {"choices": []} | {"choices": [{"delta": {}}, *_]}:
            pass
        case {"choices": [{"finish_reason": str()}, *_]}:
            found["choices"][0]["delta"] = {}
        case _:
            raise _garbage()
    for choice in found["choices"]:
        content = choice["delta"].get("content")
        if content is not None and not isinstance(content, str):
            raise _garbage()
        calls = choice["delta"].get("tool_calls")
        if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
            raise _garbage()
    chunk: dict[str, Any] = found
    return chunk


class CallsInPieces:
    """Native tool calls put together from the pieces of a stream."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[str, list[str], list[str]]] = {}
        """By index: id, the pieces of the name, the pieces of the arguments."""

    def add(self, pieces: list[dict[str, Any]]) -> None:
        """Take the next pieces. A call that begins without an id of its own gets one, in the piece itself too."""
        for piece in pieces:
            index = piece.get("index")
            if type(index) is not int:
                index = piece["index"] = len(self._calls)
            if index not in self._calls:
                taken = {id for id, _, _ in self._calls.values()}
                if not _text(piece.get("id")) or piece["id"] in taken:
                    piece["id"] = "call_" + secrets.token_hex(12)
                self._calls[index] = (piece["id"], [], [])
            _, names, arguments = self._calls[index]
            function = piece.get("function")
            if isinstance(function, dict):
                names.append(_text(function.get("name")))
                arguments.append(_text(function.get("arguments")))

    def whole(self) -> list[dict[str, Any]]:
        """All calls, checked."""
        calls = [
            {"id": id, "function": {"name": "".join(names), "arguments": "".join(arguments)}}
            for _, (id, names, arguments) in sorted(self._calls.items())
        ]
        return check_calls(calls)


def new_answer_id() -> str:
    """An id for an answer that came without one."""
    return "chatcmpl-" + secrets.token_hex(12)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _garbage() -> Refusal:
    return Refusal(502, "upstream_garbage", "the model's server sent an answer in a form we do not know")
