"""What a model's server sends, whole or in pieces: checked, filled up, and refused when it is no answer.

Servers differ: some leave out ids, roles or whole fields. What is needed is made sure of here, once; what is not
needed is kept as it came.

Reasoning is not the answer: what a model thinks aloud before it replies is set aside. Some servers send it apart, as
`reasoning_content`; others leave it in the text, between `<think>` and `</think>`. Here both become the first, so that
whoever reads the reply finds nothing in its text but the reply. Only one block counts, and only at the very beginning;
and only for models that are known or said to reason, since to all others these are words like any.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.server.api_types import Refusal, kept_keys

if TYPE_CHECKING:
    from lastword.server.reply import Watch

_CALL_KEYS = frozenset({"id", "type", "function", "index"})
# What a call costs by being there, in characters: a million empty ones are long as well.
CALL_SIZE = 40


class Completion(msgspec.Struct, frozen=True):
    """A whole answer. `body` is the server's own, made whole; `message` is the one in it."""

    body: dict[str, Any]
    message: dict[str, Any]

    @classmethod
    def checked(cls, found: Any) -> Completion:
        """An answer that can be relied on, or a refusal."""
        match found:
            case {"choices": [{"message": dict()}, *_]}:
                choice: dict[str, Any] = found["choices"][0]
                message: dict[str, Any] = choice["message"]
            case _:
                raise garbage()
        message = {**message, "role": "assistant", "content": read_content(message.get("content"))}
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
        return cls(body, message)

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


def read_content(content: Any) -> str | None:
    """The text of a message or a piece of one. Some servers send a list of parts, of which text is one kind."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise garbage()
    texts = [part["text"] for part in content if part.get("type") in ("text", "output_text") and "text" in part]
    if not all(isinstance(text, str) for text in texts):
        raise garbage()
    return "".join(texts)


def check_calls(calls: Any) -> list[dict[str, Any]]:
    """Native tool calls with everything in its place. One without an id gets one: its result has to name it."""
    if not isinstance(calls, list):
        raise garbage()
    checked = []
    seen: set[str] = set()
    for call in calls:
        match call:
            case {"function": {"name": str(name)}} if name:
                function = call["function"]
            case _:
                raise garbage()
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            # Some servers send the object itself where OpenAI sends its text.
            arguments = msgspec.json.encode(arguments).decode()
        if arguments is None:
            arguments = ""
        if not isinstance(arguments, str):
            raise garbage()
        id = _text(call.get("id"))
        if not id or id in seen:
            id = "call_" + secrets.token_hex(12)
        seen.add(id)
        # Keys that we do not know stay: a signature that is missing next time makes the provider refuse the turn.
        others = {key: value for key, value in call.items() if key not in _CALL_KEYS}
        checked.append(
            {**others, "id": id, "type": "function", "function": {**function, "name": name, "arguments": arguments}}
        )
    return checked


def check_chunk(found: Any, redact: Callable[[str], str]) -> dict[str, Any]:
    """A chunk of a stream that can be relied on, or a refusal."""
    match found:
        case {"error": {"message": str(said)} | str(said)}:
            raise Refusal(502, "upstream_failed", f"the model's server failed in the middle: {redact(said)}")
        case {"choices": list(choices)} if all(isinstance(choice, dict) for choice in choices):
            pass
        case _:
            raise garbage()
    # One answer was asked for. What a server sends of another one beside it is no part of it.
    first = [choice for choice in choices if choice.get("index") in (None, 0)][:1]
    for choice in first:
        if not isinstance(choice.get("delta"), dict):
            if not isinstance(choice.get("finish_reason"), str):
                raise garbage()
            choice["delta"] = {}
        if "content" in choice["delta"]:
            choice["delta"]["content"] = read_content(choice["delta"]["content"])
        calls = choice["delta"].get("tool_calls")
        if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
            raise garbage()
    return {**found, "choices": first}


def says_something(chunk: dict[str, Any]) -> bool:
    """Whether a chunk adds to the answer. One that does not, such as the count of tokens, has wrapping and no words."""
    return any(
        choice.get("finish_reason") or any(value for key, value in choice["delta"].items() if key != "role")
        for choice in chunk["choices"]
    )


def garbage() -> Refusal:
    """What the model's server sent cannot be read."""
    return Refusal(502, "upstream_garbage", "the model's server sent an answer in a form we do not know")


def new_answer_id() -> str:
    """An id for an answer that came without one."""
    return "chatcmpl-" + secrets.token_hex(12)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class StreamedReply:
    """A model's message while it comes, whatever the form is in which it goes out again."""

    def __init__(self, watching: list[Watch], max_bytes: int) -> None:
        """`watching`: what has to give up on the message before its text may be shown."""
        self.head: dict[str, Any] = {}
        self.held: list[str] = []
        """Text that nobody has seen, because it may still be a request."""
        self.finish_reason = "stop"
        self.usage: dict[str, Any] | None = None
        self.message: dict[str, Any] = {}
        """The whole of it, once it is finished."""
        self._max_bytes = max_bytes
        self._watching = watching
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
        if self._size > self._max_bytes:
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

    def finish(self) -> dict[str, Any]:
        """It is complete: the whole message."""
        self.head = self.head or _head({})
        self.message = {**self._others.whole(), "role": "assistant", "content": "".join(self._text) or None}
        if self._called:
            self.message["tool_calls"] = self._calls.whole()
        return self.message


def _head(chunk: dict[str, Any]) -> dict[str, Any]:
    id, created, model = chunk.get("id"), chunk.get("created"), chunk.get("model")
    return {
        "id": id if isinstance(id, str) and id else new_answer_id(),
        "object": "chat.completion.chunk",
        "created": created if type(created) is int else int(time.time()),
        "model": model if isinstance(model, str) else "unknown",
    }


class CallsInPieces:
    """Native tool calls put together from the pieces of a stream."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[str, list[str], list[str]]] = {}
        """By index: id, the pieces of the name, the pieces of the arguments."""
        self._taken: set[str] = set()
        self._others: dict[int, dict[str, Any]] = {}
        """By index: keys that we do not know, as they came last."""

    def add(self, pieces: list[dict[str, Any]]) -> int:
        """Take the next pieces; how many characters they are, about.

        A call that begins without an id of its own gets one, in the piece itself too.
        """
        size = 0
        for piece in pieces:
            index = piece.get("index")
            if type(index) is not int:
                index = piece["index"] = len(self._calls)
            if index not in self._calls:
                if not _text(piece.get("id")) or piece["id"] in self._taken:
                    piece["id"] = "call_" + secrets.token_hex(12)
                self._taken.add(piece["id"])
                self._calls[index] = (piece["id"], [], [])
                size += CALL_SIZE + len(piece["id"])
            _, names, arguments = self._calls[index]
            others = {key: value for key, value in piece.items() if key not in _CALL_KEYS and value is not None}
            self._others.setdefault(index, {}).update(others)
            size += len(msgspec.json.encode(others)) if others else 0
            function = piece.get("function")
            if isinstance(function, dict):
                names.append(_text(function.get("name")))
                arguments.append(_text(function.get("arguments")))
                size += len(names[-1]) + len(arguments[-1])
        return size

    def whole(self) -> list[dict[str, Any]]:
        """All calls, checked."""
        calls = [
            {**self._others[index], "id": id, "function": {"name": "".join(names), "arguments": "".join(arguments)}}
            for index, (id, names, arguments) in sorted(self._calls.items())
        ]
        return check_calls(calls)


class OtherKeys:
    """The keys of a message that we do not know, from the pieces of a stream: texts grow, others change."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._values: dict[str, Any] = {}

    def add(self, delta: dict[str, Any]) -> int:
        """Take what is there of them in a piece; how many characters that is."""
        size = 0
        for key, value in (kept_keys(delta) or {}).items():
            if isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
                size += len(value)
                continue
            size += len(msgspec.json.encode(value))
            if isinstance(value, list) and isinstance(self._values.get(key), list):
                self._values[key] += value
            else:
                self._values[key] = value
        return size

    def whole(self) -> dict[str, Any]:
        """All of them."""
        return {**self._values, **{key: "".join(texts) for key, texts in self._texts.items()}}


OPENING, CLOSING = "<think>", "</think>"


class Thoughts:
    """Watches a reply arrive, and tells thoughts from text."""

    def __init__(self) -> None:
        self._held = ""
        self._is_inside: bool | None = None
        """None until the beginning has shown whether there is a block at all."""
        self._is_over = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Take the next piece; gives back what of it is thought, and what is text."""
        if self._is_over:
            return "", piece
        held = self._held + piece
        if self._is_inside is None:
            seen = held.lstrip()
            if not seen.startswith(OPENING):
                if OPENING.startswith(seen):
                    self._held = held
                    return "", ""
                self._is_over, self._held = True, ""
                return "", held
            self._is_inside, held = True, seen[len(OPENING) :]
        thought, closing, text = held.partition(CLOSING)
        if closing:
            self._is_over, self._held = True, ""
            return thought, text.lstrip()
        # The end may hold the first letters of the closing mark.
        safe = next((n for n in range(len(CLOSING) - 1, 0, -1) if held.endswith(CLOSING[:n])), 0)
        self._held = held[len(held) - safe :]
        return held[: len(held) - safe], ""

    def end(self) -> tuple[str, str]:
        """What was held back. A block that never ended is thought to its end."""
        held, self._held = self._held, ""
        return (held, "") if self._is_inside else ("", held)


def set_aside(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message with its leading thoughts apart."""
    text = message.get("content")
    if not isinstance(text, str):
        return message
    thoughts = Thoughts()
    first, last = thoughts.feed(text), thoughts.end()
    thought = first[0] + last[0]
    if not thought and first[1] + last[1] == text:
        return message
    before = message.get("reasoning_content")
    return {
        **message,
        "content": first[1] + last[1],
        "reasoning_content": f"{before if isinstance(before, str) else ''}{thought}".strip(),
    }


def set_aside_piece(chunk: dict[str, Any], thoughts: Thoughts) -> dict[str, Any]:
    """A chunk of a stream, likewise. Its last one brings out what was held back."""
    for choice in chunk["choices"][:1]:
        delta = choice["delta"]
        thought, text = thoughts.feed(delta.get("content") or "")
        if choice.get("finish_reason"):
            late = thoughts.end()
            thought, text = thought + late[0], text + late[1]
        if "content" in delta or text:
            delta["content"] = text
        if thought:
            delta["reasoning_content"] = (delta.get("reasoning_content") or "") + thought
    return chunk
