"""A model's message as it is kept: without the secrets it wrote.

The satellite, which has the tools, says which arguments are secret; the answer to it carries the values, and what is
stored has a mark in their place. So the model sees that mark in its own history, and a satellite that reads a request
from there instead of from the answer knows that the value is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lastword.script import NOT_KEPT, Concealed, conceal, scrub
from lastword.server.conversations import PendingRequest
from lastword.server.intake import arguments_digest
from lastword.server.reply_shape import kept_keys
from lastword.server.wire import ToolProtocol
from lastword.values import digest
from lastword.wire import NotARequest, ToolRequest, parse_arguments, parse_tool_request

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
        message = {key: value for key, value in message.items() if key not in others or not _may_quote(value)}
    return message, [
        msgspec.structs.replace(entry, digest=digests[entry.id]) if entry.id in digests else entry for entry in pending
    ]


def _kept_arguments(text: str, secrets: Sequence[str]) -> tuple[str, str | None]:
    """The arguments of a native call, and the digest of what is left of them."""
    arguments = parse_arguments(text)
    if isinstance(arguments, NotARequest):
        return (scrub(text, secrets).text if secrets else text), None
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
    kept = Concealed(text)
    if protocol == "script":
        kept = conceal(text, secrets)
    elif found.near or "tool_request" in text:
        # Also what is too far from a request to be called a near miss has the values of one in it.
        kept = scrub(text, names)
    return kept.text, digest(kept.text.encode())


def _may_quote(value: Any) -> bool:
    """Whether a value of an unknown key may have words in it: a text with a space, or anything that is no text."""
    return not isinstance(value, str) or " " in value


def _hidden(arguments: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    return {name: NOT_KEPT if name in secrets else value for name, value in arguments.items()}
