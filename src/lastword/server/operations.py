"""The operations of the API, each with its scope and types. App and OpenAPI document are both made from OPERATIONS.

An operation takes an `Incoming` and gives back a value for the wire. That of a chat writes its own response, since
that may be a stream.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.types import Receive, Send

from lastword.server.auth import Caller, Scope, Tokens
from lastword.server.chat import CONFIGURED, OpenTurn, Turns
from lastword.server.conversations import Conversation, Conversations, not_found, seconds
from lastword.server.limits import ServerLimits
from lastword.server.metrics import CONTENT_TYPE, Metrics
from lastword.server.perimeter import Body, EventStream, error_event, read_body, send_body
from lastword.server.presence import Attended, Stopping
from lastword.server.refusal import Refusal
from lastword.server.stream import events
from lastword.server.upstream import Upstream
from lastword.server.wire import (
    ChatRequest,
    ChatResponse,
    ConversationList,
    ConversationOut,
    ConversationSummary,
    Deleted,
    Health,
    Model,
    ModelList,
    PendingOut,
    StoredMessage,
    ToolCall,
)
from lastword.store import Store

# A page of conversations, or of a conversation's messages.
PAGE = 100
MAX_PAGE = 1000


class Parts(msgspec.Struct, frozen=True):
    """What the operations work with."""

    store: Store
    tokens: Tokens
    conversations: Conversations
    turns: Turns
    upstream: Upstream
    limits: ServerLimits
    metrics: Metrics
    stopping: Stopping


class Incoming(msgspec.Struct, frozen=True):
    """A request that has passed the checks before its operation."""

    caller: Caller
    path: dict[str, str]
    query: dict[str, str]
    headers: dict[bytes, bytes]
    receive: Receive
    send: Send

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A number from the query."""
        text = self.query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19 and low <= int(text) <= high):
            raise Refusal(400, "invalid_query", f"{name} is a whole number from {low} to {high}", param=name)
        return int(text)


class QueryNumber(msgspec.Struct, frozen=True):
    """A number in the query, for the document."""

    name: str
    default: int
    low: int
    high: int
    description: str


Handle = Callable[[Parts, Incoming], Awaitable[Any]]


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    handle: Handle
    returns: Any
    scopes: tuple[Scope, ...] = ()
    """Any of these will do; none at all is for operations that are open to everybody."""
    takes: Any = None
    query: tuple[QueryNumber, ...] = ()
    refuses: tuple[int, ...] = ()
    """The statuses of this operation alone, besides those that every one has."""
    media: str = "application/json"


OPERATIONS: list[ApiOperation] = []
"""All of them, in the order of this module."""


def operation(method: str, path: str, summary: str, **facts: Any) -> Callable[[Handle], Handle]:
    """Put the function below into OPERATIONS, under its own name."""

    def add(handle: Handle) -> Handle:
        name = handle.__name__
        OPERATIONS.append(ApiOperation(method=method, path=path, name=name, summary=summary, handle=handle, **facts))
        return handle

    return add


_LIMIT = QueryNumber("limit", PAGE, 1, MAX_PAGE, "How many at most.")


@operation(
    "POST",
    "/v1/chat/completions",
    "Carry out one turn: ask the model, and read what its reply asks for.",
    scopes=("chat",),
    takes=ChatRequest,
    returns=ChatResponse,
    refuses=(400, 404, 408, 409, 413, 415, 502, 503, 504),
)
async def chat(parts: Parts, incoming: Incoming) -> None:
    """One turn. Errors before the first piece of an answer have a status; later ones are an event in the stream."""
    body = await read_body(incoming.headers, incoming.receive, parts.limits)
    stream = EventStream(incoming.send)
    try:
        async with Attended(incoming.receive, parts.stopping):
            asked = parts.turns.read(body)
            with parts.turns.slot(asked, incoming.caller):
                turn = await parts.turns.open(asked, incoming.caller)
                answer = None if turn.request.stream else await turn.answer()
                if answer is None:
                    await _stream(parts, turn, stream)
    except Refusal as refusal:
        if not stream.begun:
            raise
        await stream.write(error_event(refusal))
        await stream.end()
        return
    if answer is None:
        await stream.end()
    else:
        await send_body(incoming.send, 200, Body(msgspec.json.encode(answer)))


async def _stream(parts: Parts, turn: OpenTurn, stream: EventStream) -> None:
    with parts.metrics.streaming():
        async with aclosing(parts.upstream.stream(turn.body)) as chunks, aclosing(events(turn, chunks)) as pieces:
            async for piece in pieces:
                await stream.write(piece)


@operation(
    "GET",
    "/v1/conversations",
    "List conversations, oldest first.",
    scopes=("chat", "read"),
    query=(_LIMIT, QueryNumber("after", 0, 0, 2**53, "The `next` of the page before.")),
    returns=ConversationList,
    refuses=(400,),
)
async def list_conversations(parts: Parts, incoming: Incoming) -> ConversationList:
    """The caller's conversations; those of everybody with the scope read."""
    owner = None if incoming.caller.sees_all() else incoming.caller.id
    limit = incoming.number("limit", PAGE, 1, MAX_PAGE)
    records, more = await parts.conversations.page(owner, incoming.number("after", 0, 0, 2**53), limit)
    return ConversationList([ConversationSummary(record.subject, seconds(record.at)) for record in records], more)


@operation(
    "GET",
    "/v1/conversations/{id}",
    "Read a conversation: its newest messages, and what is pending.",
    scopes=("chat", "read"),
    query=(_LIMIT,),
    returns=ConversationOut,
    refuses=(400, 404),
)
async def show_conversation(parts: Parts, incoming: Incoming) -> ConversationOut:
    """The newest messages of a conversation, and what is pending in it."""
    conversation = await _visible(parts, incoming, to_change=False)
    limit = incoming.number("limit", PAGE, 1, MAX_PAGE)
    lines = conversation.lines[-limit:]
    return ConversationOut(
        id=conversation.id,
        created=seconds(conversation.created),
        turns=conversation.turns,
        messages=[
            StoredMessage(
                role=line.said.role,
                content=line.said.content,
                turn=line.turn,
                created=seconds(line.at),
                name=line.said.name,
                id=line.said.id,
                tool_calls=msgspec.convert(line.said.tool_calls, list[ToolCall] | None),
            )
            for line in lines
        ],
        has_more=len(lines) < len(conversation.lines),
        pending=[
            PendingOut(entry.id, entry.name, entry.digest, seconds(entry.created))
            for entry in conversation.pending.values()
        ],
    )


@operation(
    "DELETE",
    "/v1/conversations/{id}",
    "Delete a conversation.",
    scopes=("chat",),
    returns=Deleted,
    refuses=(404, 409),
)
async def delete_conversation(parts: Parts, incoming: Incoming) -> Deleted:
    """Forget what was said. The id stays used."""
    conversation = await _visible(parts, incoming, to_change=True)
    await parts.conversations.delete(conversation)
    return Deleted(conversation.id)


async def _visible(parts: Parts, incoming: Incoming, *, to_change: bool) -> Conversation:
    conversation = await parts.conversations.find(incoming.path["id"])
    caller = incoming.caller
    others = caller.may("admin") if to_change else caller.sees_all()
    if conversation is None or not (others or conversation.owner == caller.id):
        raise not_found()
    return conversation


@operation("GET", "/v1/models", "List the models that a request may name.", scopes=("chat",), returns=ModelList)
async def list_models(parts: Parts, incoming: Incoming) -> ModelList:
    """Our name for the configured model, and the names of the model's server if it answers."""
    try:
        found = await parts.upstream.models()
    except Refusal:
        found = []
    return ModelList([Model(CONFIGURED, owned_by="lastword"), *(Model(name) for name in found if name != CONFIGURED)])


@operation("GET", "/healthz", "Say that the process answers.", returns=Health)
async def health(parts: Parts, incoming: Incoming) -> Health:
    """The process answers."""
    return Health()


@operation("GET", "/readyz", "Say that the server takes turns.", returns=Health, refuses=(503,))
async def ready(parts: Parts, incoming: Incoming) -> Health:
    """The store answers, and the server is not stopping."""
    if parts.stopping.begun:
        raise Refusal(503, "server_stopping", "the server is stopping")
    await parts.store.head()
    return Health()


@operation("GET", "/metrics", "Counters for Prometheus.", scopes=("read",), returns=str, media="text/plain")
async def metrics(parts: Parts, incoming: Incoming) -> Body:
    """Counters for Prometheus."""
    return Body(parts.metrics.exposition(), CONTENT_TYPE)
