"""What the model's message asks for: a tool, several, a script, or nothing.

Pure: a message goes in, a reading comes out. What a stream holds back while it could still ask for something is
decided here too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from lastword.server.conversations import PendingRequest
from lastword.server.intake import SCRIPT, arguments_digest, pending_call, stateless_id
from lastword.server.scripts import ScriptOpening, is_script
from lastword.server.wire import ScriptOut, ToolProtocol, ToolRequestError, ToolRequestOut
from lastword.values import digest
from lastword.wire import NotARequest, Opening, ToolRequest, parse_arguments, parse_tool_request


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
            script=ScriptOut(id, text), pending=[PendingRequest(id, SCRIPT, digest(text.encode()), False, at)]
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


def new_id() -> str:
    """An id for a request that came without one."""
    return "call_" + secrets.token_hex(12)
