"""What the model's message asks for: a tool, several, a script, or nothing; and what of it may be kept.

Pure: a message goes in, a reading comes out. A script is read here, and never run. What a stream holds back while it
could still ask for something is decided here too.

A message is kept without the secrets that the model wrote. The satellite, which has the tools, says which arguments are
secret; the answer to it carries the values, and what is stored has a mark in their place. So the model sees that mark
in its own history, and a satellite that reads a request from there instead of from the answer knows that the value is
gone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lastword import script, values
from lastword.server.api_types import (
    AssistantMessage,
    PendingRequest,
    ScriptOut,
    ToolProtocol,
    ToolRequestError,
    ToolRequestOut,
    kept_keys,
    text_of,
)
from lastword.wire import NotARequest, Opening, ToolRequest, parse_arguments, parse_tool_request

SCRIPT = "script"
"""The name under which the result of a script is sent."""


class Reading(msgspec.Struct, frozen=True):
    """A model's message, understood."""

    requests: list[ToolRequestOut] = []
    error: ToolRequestError | None = None
    script: ScriptOut | None = None
    pending: list[PendingRequest] = []


def read_reply(message: dict[str, Any], protocol: ToolProtocol, at: int, *, stateless: bool) -> Reading:
    """Say what the message asks for. Native calls speak for themselves; else the whole text is one request or none."""
    if message.get("tool_calls"):
        return _read_calls(message["tool_calls"], at)
    text = message.get("content") or ""
    if protocol == "native":
        return Reading()
    found = parse_tool_request(text)
    if isinstance(found, ToolRequest):
        id = stateless_id(found) if stateless else new_id()
        return Reading(
            requests=[ToolRequestOut(id, found.name, found.arguments)],
            pending=[PendingRequest(id, found.name, arguments_digest(found.arguments), False, at)],
        )
    if found.near:
        return Reading(error=ToolRequestError(found.why, found.reason))
    if protocol == "script" and is_script(text):
        id = stateless_id(text) if stateless else new_id()
        return Reading(
            script=ScriptOut(id, text), pending=[PendingRequest(id, SCRIPT, values.digest(text.encode()), False, at)]
        )
    return Reading()


def _read_calls(calls: list[dict[str, Any]], at: int) -> Reading:
    """Every native call is pending, since each must be answered; only those that can be read are requests."""
    requests: list[ToolRequestOut] = []
    error: ToolRequestError | None = None
    pending: list[PendingRequest] = []
    for call in calls:
        id, name, text = call["id"], call["function"]["name"], call["function"]["arguments"]
        pending.append(pending_call(id, name, text, at))
        arguments = parse_arguments(text)
        if isinstance(arguments, NotARequest):
            error = error or ToolRequestError(arguments.why, f"call {id} of {name}: {arguments.reason}")
        else:
            requests.append(ToolRequestOut(id, name, arguments))
    return Reading(requests=requests, error=error, pending=pending)


def new_id() -> str:
    """An id for a request that came without one."""
    return "call_" + secrets.token_hex(12)


def asked_by(message: AssistantMessage, protocol: ToolProtocol | None) -> list[PendingRequest]:
    """What an assistant message that a client sent asks for."""
    if message.tool_calls:
        return [pending_call(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
    # Whatever the protocol is now: a request in a text was one when it was read first.
    read_as: ToolProtocol = "script" if protocol == "script" else "json"
    return read_reply({"content": text_of(message.content)}, read_as, 0, stateless=True).pending


def pending_call(id: str, name: str, arguments: str, created: int = 0) -> PendingRequest:
    """A native call as a pending request."""
    read = parse_arguments(arguments)
    digest = None if isinstance(read, NotARequest) else arguments_digest(read)
    return PendingRequest(id, name, digest, True, created)


def stateless_id(asked: ToolRequest | str) -> str:
    """The id of a request or script that no conversation holds: made from what it says, so it can be made again."""
    said = asked if isinstance(asked, str) else [asked.name, asked.arguments]
    return "call_" + values.digest(values.canonical(said))[:24]


def arguments_digest(arguments: dict[str, Any]) -> str:
    """What was asked for, in 64 characters."""
    return values.digest(values.canonical(arguments))


# A script that a person is to read has some hundred lines. Beyond this a message is text, without a look at it.
MAX_SCRIPT = 200_000

# A stream is looked at again whenever it has grown by this part, so that all looks together cost a few parses.
GROWTH = 1.25
FIRST_LOOK = 16


def is_script(text: str) -> bool:
    """Whether the entire message is a script that does something."""
    return len(text) <= MAX_SCRIPT and script.does_something(text)


class Watch(Protocol):
    """Sees a message arrive and says whether it may still become a request."""

    def feed(self, piece: str) -> bool: ...


def watches(protocol: ToolProtocol) -> list[Watch]:
    """What has to give up on a message before its text may be shown."""
    kinds: dict[ToolProtocol, list[Callable[[], Watch]]] = {
        "native": [],
        "json": [Opening],
        "script": [Opening, ScriptOpening],
    }
    return [kind() for kind in kinds[protocol]]


class ScriptOpening:
    """Watches a message arrive and says whether it could still turn out to be a script."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._next_look: float = FIRST_LOOK
        self._possible = True

    def feed(self, piece: str) -> bool:
        """Take the next piece. True while the message so far may be the beginning of a script."""
        if self._possible:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > MAX_SCRIPT:
                self._possible = False
            elif self._size >= self._next_look:
                self._next_look = self._size * GROWTH
                self._pieces = ["".join(self._pieces)]
                self._possible = script.can_go_on(self._pieces[0])
        return self._possible


SecretArguments = Mapping[str, Sequence[str]]
"""Their names, by tool."""


def without_secrets(
    message: dict[str, Any], pending: list[PendingRequest], protocol: ToolProtocol, secrets: SecretArguments
) -> tuple[dict[str, Any], list[PendingRequest]]:
    """The message and what is pending after it, as they may be stored."""
    names = {name for given in secrets.values() for name in given}
    if not names:
        return message, pending
    before = message
    digests: dict[str, str | None] = {}
    if message.get("tool_calls"):
        calls = []
        for call in message["tool_calls"]:
            function = call["function"]
            text, digests[call["id"]] = _kept_arguments(function["arguments"], secrets.get(function["name"], ()))
            calls.append({**call, "function": {**function, "arguments": text}})
        message = {**message, "tool_calls": calls}
    if content := message.get("content"):
        kept, found = _kept_text(content, protocol, secrets, names)
        message = {**message, "content": kept}
        digests |= {entry.id: found for entry in pending if not entry.native}
    if message != before and (others := kept_keys(message)):
        # What a model thought aloud repeats what it then wrote. It goes whole: nobody needs it without its request.
        # Of the keys that nobody knows, those stay whose value is a text without a space, and has no words in it.
        wordless = {key for key, value in others.items() if isinstance(value, str) and " " not in value}
        message = {key: value for key, value in message.items() if key not in others or key in wordless}
    return message, [
        msgspec.structs.replace(entry, digest=digests[entry.id]) if entry.id in digests else entry for entry in pending
    ]


def _kept_arguments(text: str, secrets: Sequence[str]) -> tuple[str, str | None]:
    """The arguments of a native call, and the digest of what is left of them."""
    arguments = parse_arguments(text)
    if isinstance(arguments, NotARequest):
        return (script.Concealed.scrubbed(text, secrets).text if secrets else text), None
    if secrets and not arguments.keys().isdisjoint(secrets):
        arguments = _hidden(arguments, secrets)
        text = msgspec.json.encode(arguments).decode()
    return text, arguments_digest(arguments)


def _kept_text(text: str, protocol: ToolProtocol, secrets: SecretArguments, names: set[str]) -> tuple[str, str | None]:
    """A message in words, as a request or a script, and the digest of what it asks for when it does."""
    found = parse_tool_request(text)
    if isinstance(found, ToolRequest):
        hidden = secrets.get(found.name, ())
        if not found.arguments.keys().isdisjoint(hidden):
            arguments = _hidden(found.arguments, hidden)
            asked = {"tool_request": {"name": found.name, "arguments": arguments}}
            return msgspec.json.encode(asked).decode(), arguments_digest(arguments)
        return text, arguments_digest(found.arguments)
    kept = script.Concealed(text)
    if protocol == "script":
        kept = script.Concealed.of(text, secrets)
    elif found.near or "tool_request" in text:
        # Also what is too far from a request to be called a near miss has the values of one in it.
        kept = script.Concealed.scrubbed(text, names)
    return kept.text, values.digest(kept.text.encode())


def _hidden(arguments: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    return {name: script.Concealed.NOT_KEPT if name in secrets else value for name, value in arguments.items()}
