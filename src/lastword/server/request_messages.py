"""The messages of a request: which of them count, and which results are honoured.

A result is evidence that somebody ran a tool. It is passed to the model only while the request it answers is pending:
a result that nobody asked for is either a mistake or a forgery, and is named in the answer instead.

Pure decisions, without the store and the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from lastword.server.api_types import (
    AssistantMessage,
    ChatRequest,
    DeveloperMessage,
    IgnoredResult,
    Message,
    PendingRequest,
    Refusal,
    SystemMessage,
    ToolMessage,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from lastword.server.history import ChatMessage
from lastword.server.reply import asked_by

if TYPE_CHECKING:
    from lastword.server.server_limits import ServerLimits

# Named once: a union written inside a function is built anew at each call.
_RESULTS = (ToolResultMessage, ToolMessage)
_PROMPTS = (SystemMessage, DeveloperMessage)


class ParsedRequest(msgspec.Struct, frozen=True):
    """A request as we understand it, and as it came."""

    request: ChatRequest
    raw: dict[str, Any]
    after: int | None = None
    """The turn of its conversation that it goes on from, where it says so."""
    brings_history: bool = False
    """Whether a conversation that begins with it begins with what the client says was said before."""


Asked = TypeVar("Asked")


def decode_body(
    body: bytes, kind: type[Asked], prepare: Callable[[Any], Any] = lambda raw: raw
) -> tuple[Asked, dict[str, Any]]:
    """A request as its type and as it came, or a refusal that names the parameter."""
    try:
        raw = prepare(msgspec.json.decode(body))
        return msgspec.convert(raw, kind), raw
    except msgspec.ValidationError as problem:
        fact, _, place = str(problem).partition(" - at `$.")
        param = place.rstrip("`").split("[")[0].split(".")[0] or None
        if param is None and "unknown field" in fact:
            param = fact.split("`")[1]
            raise Refusal(400, "unknown_parameter", f"there is no parameter {param} here", param=param) from None
        words = f"{place.rstrip('`')}: {fact}" if place else fact
        raise Refusal(400, "invalid_request", words, param=param) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Refusal(400, "invalid_json", f"the body is not JSON: {problem}") from None


def went_on() -> Refusal:
    """A conversation is a line, not a tree."""
    fact = "the conversation has gone on since that response"
    hint = "go on from its newest response, or send the history and no previous_response_id for a new conversation"
    return Refusal(409, "conversation_went_on", fact, param="previous_response_id", hint=hint)


class Intake(msgspec.Struct, frozen=True):
    """The messages of a request in a conversation, sorted: results before the person's words."""

    prompt: str
    results: list[ChatMessage]
    users: list[ChatMessage]
    answered: list[str]
    ignored: list[IgnoredResult]
    earlier: list[ChatMessage] = []
    """What the client says was said before, for a conversation that begins with it."""


def take_in(
    request: ChatRequest, pending: Iterable[PendingRequest], limits: ServerLimits, *, has_history: bool = False
) -> Intake:
    """Sort the messages of a request in a conversation. The client's assistant messages are dropped: we know better.

    Many clients send their whole history every time. Once there is one here, what stands before the last thing that
    the assistant said is a repetition, and only what comes after it is new.
    """
    open_requests = {entry.id: entry for entry in pending}
    answered: list[str] = []
    results: list[ChatMessage] = []
    users: list[ChatMessage] = []
    ignored: list[IgnoredResult] = []
    for message in _new(request.messages) if has_history else request.messages:
        if isinstance(message, UserMessage):
            users.append(ChatMessage("user", message.content, repairs=message.repairs))
        elif isinstance(message, _RESULTS):
            found = match(message, open_requests, answered)
            if isinstance(found, IgnoredResult):
                ignored.append(found)
            else:
                del open_requests[found.id]
                answered.append(found.id)
                results.append(_result(message, found))
    if not users and not results:
        fact = "the request holds neither a user message nor a result that is waited for"
        hint = _name_ignored(ignored) or "send a message with the role user"
        raise Refusal(409, "nothing_new", fact, param="messages", hint=hint)
    return Intake(satellite_prompt(request, limits), results, users, answered, ignored)


def _result(message: ToolResultMessage | ToolMessage, asked: PendingRequest) -> ChatMessage:
    content = text_of(message.content)
    return ChatMessage("tool_result", content, name=asked.name, id=asked.id, native=asked.native)


def take_in_history(request: ChatRequest, raw: list[dict[str, Any]], limits: ServerLimits) -> Intake:
    """Sort the messages of a request that begins a conversation with a history of the client's own.

    It is read as that of a request without a conversation is: a result in it counts if what stands before it asked.
    """
    new = len(_new(request.messages))
    cut = len(raw) - new
    if not cut:
        return take_in(request, (), limits)
    before = msgspec.structs.replace(request, messages=request.messages[:cut])
    kept, ignored = as_they_are(before, raw[:cut])
    last = request.messages[cut - 1]
    assert isinstance(last, AssistantMessage)
    asked = asked_by(last, request.tool_protocol)
    intake = take_in(msgspec.structs.replace(request, messages=request.messages[cut:]), asked, limits)
    earlier = [said for entry in kept if (said := _as_said(entry)) is not None]
    prompt = satellite_prompt(request, limits)
    return msgspec.structs.replace(intake, earlier=earlier, prompt=prompt, ignored=[*ignored, *intake.ignored])


def _as_said(entry: dict[str, Any] | ChatMessage) -> ChatMessage | None:
    """A message of a client as a conversation keeps it. Prompts are not kept."""
    if isinstance(entry, ChatMessage):
        return entry
    if entry["role"] in ("system", "developer"):
        return None
    if entry["role"] == "tool":
        return ChatMessage("tool_result", entry["content"], id=entry["tool_call_id"], native=True)
    return ChatMessage(entry["role"], entry["content"], tool_calls=entry.get("tool_calls"))


def _new(messages: Sequence[Message]) -> Sequence[Message]:
    spoken = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return messages[spoken[-1] + 1 :] if spoken else messages


def satellite_prompt(request: ChatRequest, limits: ServerLimits) -> str:
    """What the satellite adds to the persona, as one text."""
    parts = [text_of(m.content) for m in request.messages if isinstance(m, _PROMPTS)]
    prompt = "\n\n".join(part for part in parts if part)
    if len(prompt) > limits.prompt_characters:
        fact = f"the system messages hold {len(prompt)} characters; at most {limits.prompt_characters} fit"
        hint = "shorten them, or raise prompt_characters in [server.limits]"
        raise Refusal(400, "prompt_too_long", fact, param="messages", hint=hint)
    return prompt


def match(
    message: ToolResultMessage | ToolMessage, open_requests: dict[str, PendingRequest], answered: Sequence[str]
) -> PendingRequest | IgnoredResult:
    """The pending request that this result answers: by id when it has one, else by name."""
    name = message.name if isinstance(message, ToolResultMessage) else None
    id = message.id if isinstance(message, ToolResultMessage) else message.tool_call_id
    if id is not None:
        found = open_requests.get(id)
        if found is not None and name in (None, found.name):
            return found
    else:
        for entry in open_requests.values():
            if entry.name == name:
                return entry
    reason: Literal["nothing_pending", "other_request", "duplicate"]
    if id in answered or (id is None and not open_requests and answered):
        reason = "duplicate"
    else:
        reason = "other_request" if open_requests else "nothing_pending"
    return IgnoredResult(reason, name, id)


def as_they_are(
    request: ChatRequest, raw: list[dict[str, Any]]
) -> tuple[list[dict[str, Any] | ChatMessage], list[IgnoredResult]]:
    """The messages of a request without a conversation: the client's own, except results that nobody asked for.

    What is pending is what the assistant message before them asked for. Native results that are honoured stay as the
    client wrote them; the others become `ChatMessage`, since the model's server does not know their role.
    """
    open_requests: dict[str, PendingRequest] = {}
    answered: list[str] = []
    kept: list[dict[str, Any] | ChatMessage] = []
    ignored: list[IgnoredResult] = []
    for message, original in zip(request.messages, raw, strict=True):
        if isinstance(message, _RESULTS):
            found = match(message, open_requests, answered)
            if isinstance(found, IgnoredResult):
                ignored.append(found)
                continue
            del open_requests[found.id]
            answered.append(found.id)
            kept.append(original if isinstance(message, ToolMessage) and found.native else _result(message, found))
            continue
        if isinstance(message, AssistantMessage):
            open_requests = {entry.id: entry for entry in asked_by(message, request.tool_protocol)}
            answered = []
        elif isinstance(message, UserMessage):
            open_requests = {}
        kept.append(original)
    if not kept:
        fact = "the request holds nothing but results that nobody waits for"
        raise Refusal(409, "nothing_new", fact, param="messages", hint=_name_ignored(ignored))
    return kept, ignored


def _name_ignored(ignored: list[IgnoredResult]) -> str | None:
    if not ignored:
        return None
    names = ", ".join(f"{entry.id or entry.name} ({entry.reason})" for entry in ignored[:5])
    return f"ignored: {names}"
