"""The operations of the API, each with its scope and types. App and OpenAPI document are both made from OPERATIONS.

An operation takes an `Incoming` and gives back a value for the wire. That of a chat writes its own response, since
that may be a stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from starlette.types import Receive, Send

from lastword.server import api_types as api
from lastword.server.api_types import CONFIGURED, Health, Model, Refusal, seconds
from lastword.server.middleware import Body, CancelledWhenGone, EventStream, error_event, read_body, send_body
from lastword.server.responses_form import ResponseId, ResponseOut, ResponsesRequest
from lastword.server.responses_turn import AskedResponse, KeptTurn
from lastword.wire import write_event

if TYPE_CHECKING:
    from lastword.server.auth import Caller, Scope, Tokens
    from lastword.server.conversations import Conversations
    from lastword.server.metrics import Metrics
    from lastword.server.middleware import Stopping
    from lastword.server.request_messages import ParsedRequest
    from lastword.server.server_limits import ServerLimits
    from lastword.server.turns import OpenTurn, Turns
    from lastword.store import Store

# A page of conversations, or of a conversation's messages.
PAGE = 100
MAX_PAGE = 1000
DONE = write_event(b"[DONE]")

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Parts:
    """What the operations work with."""

    store: Store
    tokens: Tokens
    conversations: Conversations
    turns: Turns
    limits: ServerLimits
    metrics: Metrics
    stopping: Stopping


@dataclass(slots=True)
class Incoming:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
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
    id_kind: Any = api.ConversationId
    """What the `{id}` of the path is, where there is one."""


OPERATIONS: list[ApiOperation] = []
"""All of them, in the order of this module."""


def operation(method: str, path: str, summary: str, **facts: Any) -> Callable[[Handle], Handle]:
    """Put the function below into OPERATIONS, under its own name."""

    def add(handle: Handle) -> Handle:
        known = {"name": handle.__name__, **facts}
        OPERATIONS.append(ApiOperation(method=method, path=path, summary=summary, handle=handle, **known))
        return handle

    return add


_TURN: dict[str, Any] = {"scopes": ("chat",), "refuses": (400, 404, 408, 409, 413, 415, 502, 503, 504)}
"""Of a turn, in whichever form."""
_LIMIT = QueryNumber("limit", PAGE, 1, MAX_PAGE, "How many at most.")


@operation(
    "POST",
    "/v1/chat/completions",
    "Carry out one turn: ask the model, and read what its reply asks for.",
    takes=api.ChatRequest,
    returns=api.ChatResponse,
    **_TURN,
)
async def chat(parts: Parts, incoming: Incoming) -> None:
    """One turn, in the form of chat completions."""

    async def read(body: bytes) -> AskedTurn:
        return AskedChat(parts.turns.read(body))

    await _carry_out(parts, incoming, read)


@operation(
    "POST",
    "/v1/responses",
    "Carry out one turn in the newer form: the model's words and requests as items.",
    takes=ResponsesRequest,
    returns=ResponseOut,
    **_TURN,
)
async def create_response(parts: Parts, incoming: Incoming) -> None:
    """One turn, in the form of responses."""

    async def read(body: bytes) -> AskedTurn:
        return await AskedResponse.read(body, parts.turns, parts.conversations, incoming.caller)

    await _carry_out(parts, incoming, read)


class AskedTurn(Protocol):
    """A turn that somebody asks for, in the form in which they want its answer."""

    parsed: ParsedRequest

    def whole(self, turn: OpenTurn, body: dict[str, Any], extras: api.Extras) -> Any:
        """The whole answer: that of the model's server, and our fields."""

    def stream(self, turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
        """The answer as events, from the chunks of the model's server."""

    def broken(self, refusal: Refusal) -> bytes:
        """What a client is told when the stream breaks off in the middle."""


class AskedChat:
    """In the form of chat completions."""

    def __init__(self, parsed: ParsedRequest) -> None:
        self.parsed = parsed
        self.broken = error_event

    def whole(self, turn: OpenTurn, body: dict[str, Any], extras: api.Extras) -> dict[str, Any]:
        return {**body, **msgspec.to_builtins(extras)}

    async def stream(self, turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
        reply = turn.streamed()
        async for chunk in chunks:
            choice = reply.take(chunk)
            if choice is not None:
                yield write_event(_encode({**reply.head, "choices": [choice]}))

        extras = msgspec.to_builtins(await turn.finish(reply.finish(), reply.usage))
        delta = {"content": "".join(reply.held)} if reply.held else {}
        choice = {"index": 0, "delta": delta, "finish_reason": reply.finish_reason}
        yield write_event(_encode({**reply.head, "choices": [choice], **extras}))
        options = turn.request.stream_options
        if options is not None and options.include_usage and reply.usage is not None:
            yield write_event(_encode({**reply.head, "choices": [], "usage": reply.usage, **extras}))
        yield DONE


async def _carry_out(parts: Parts, incoming: Incoming, read: Callable[[bytes], Awaitable[AskedTurn]]) -> None:
    """One turn. Errors before the first piece of an answer have a status; later ones are an event in the stream."""
    body = await read_body(incoming.headers, incoming.receive, parts.limits)
    async with CancelledWhenGone(incoming.receive, parts.stopping):
        asked = await read(body)
        stream = EventStream(incoming.send, asked.broken)
        with parts.turns.slot(asked.parsed, incoming.caller), parts.metrics.failing():
            turn = await parts.turns.open(asked.parsed, incoming.caller)
            answer = None if turn.request.stream else await turn.answer()
            if answer is None:
                await _stream(parts, asked, turn, stream)
    if answer is None:
        await stream.end()
    else:
        await send_body(incoming.send, 200, Body(msgspec.json.encode(asked.whole(turn, *answer))))


async def _stream(parts: Parts, asked: AskedTurn, turn: OpenTurn, stream: EventStream) -> None:
    with parts.metrics.streaming():
        async with aclosing(turn.chunks()) as chunks, aclosing(asked.stream(turn, chunks)) as pieces:
            async for piece in pieces:
                await stream.write(piece)


@operation(
    "GET",
    "/v1/responses/{id}",
    "Read the answer of a turn again.",
    scopes=("chat",),
    returns=ResponseOut,
    id_kind=ResponseId,
    refuses=(404,),
)
async def show_response(parts: Parts, incoming: Incoming) -> ResponseOut:
    """What the model said and asked for in a turn that is kept."""
    found = await KeptTurn.find(incoming.path["id"], parts.conversations, incoming.caller)
    if found is None or found.place.response_id != incoming.path["id"]:
        raise Refusal(404, "response_not_found", "there is no such response", param="id")
    return found.response(CONFIGURED)


@operation(
    "GET",
    "/v1/conversations",
    "List conversations, oldest first.",
    scopes=("chat", "read"),
    query=(_LIMIT, QueryNumber("after", 0, 0, 2**53, "The `next` of the page before.")),
    returns=api.ConversationList,
    refuses=(400,),
)
async def list_conversations(parts: Parts, incoming: Incoming) -> api.ConversationList:
    """The caller's conversations; those of everybody with the scope read."""
    owner = None if incoming.caller.sees_all() else incoming.caller.id
    limit = incoming.number("limit", PAGE, 1, MAX_PAGE)
    records, more = await parts.conversations.page(owner, incoming.number("after", 0, 0, 2**53), limit)
    return api.ConversationList(
        [api.ConversationSummary(record.subject, seconds(record.at)) for record in records], more
    )


@operation(
    "GET",
    "/v1/conversations/{id}",
    "Read a conversation: its newest messages, and what is pending.",
    scopes=("chat", "read"),
    query=(_LIMIT,),
    returns=api.ConversationOut,
    refuses=(400, 404),
)
async def show_conversation(parts: Parts, incoming: Incoming) -> api.ConversationOut:
    """The newest messages of a conversation, and what is pending in it."""
    conversation = await parts.conversations.visible(incoming.path["id"], incoming.caller, to_change=False)
    limit = incoming.number("limit", PAGE, 1, MAX_PAGE)
    lines = conversation.lines[-limit:]
    return api.ConversationOut(
        id=conversation.id,
        created=seconds(conversation.created),
        turns=conversation.turns,
        messages=[
            api.StoredMessage(
                role=line.said.role,
                content=line.said.content,
                turn=line.turn,
                created=seconds(line.at),
                name=line.said.name,
                id=line.said.id,
                tool_calls=msgspec.convert(line.said.tool_calls, list[api.ToolCall] | None),
            )
            for line in lines
        ],
        has_more=len(lines) < len(conversation.lines),
        pending=[entry.shown() for entry in conversation.pending.values()],
    )


@operation(
    "POST",
    "/v1/conversations/{id}/rewind",
    "Go on from an earlier turn: the model no longer sees those after it.",
    scopes=("chat",),
    takes=api.RewindRequest,
    returns=api.Rewound,
    refuses=(400, 404, 408, 409, 413, 415),
)
async def rewind_conversation(parts: Parts, incoming: Incoming) -> api.Rewound:
    """Leave out the turns after a certain one. They stay remembered, as everything that happened does."""
    conversation = await parts.conversations.visible(incoming.path["id"], incoming.caller, to_change=True)
    body = await read_body(incoming.headers, incoming.receive, parts.limits)
    try:
        asked = msgspec.json.decode(body, type=api.RewindRequest)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise Refusal(400, "invalid_request", str(problem)) from None
    if asked.turns > conversation.turns:
        raise Refusal(400, "invalid_request", f"there are {conversation.turns} turns", param="turns")
    await parts.conversations.rewind(conversation, asked.turns)
    return api.Rewound(conversation.id, conversation.turns)


@operation(
    "DELETE",
    "/v1/conversations/{id}",
    "Delete a conversation.",
    scopes=("chat",),
    returns=api.Deleted,
    refuses=(404, 409),
)
async def delete_conversation(parts: Parts, incoming: Incoming) -> api.Deleted:
    """Forget what was said. The id stays used."""
    conversation = await parts.conversations.visible(incoming.path["id"], incoming.caller, to_change=True)
    await parts.conversations.delete(conversation)
    return api.Deleted(conversation.id)


@operation("GET", "/v1/models", "List the models that a request may name.", scopes=("chat",), returns=api.ModelList)
async def list_models(parts: Parts, incoming: Incoming) -> api.ModelList:
    """The models that a request may name."""
    return api.ModelList(await parts.turns.models())


@operation(
    "GET",
    "/v1/models/{id}",
    "Say whether a request may name this model.",
    scopes=("chat",),
    returns=Model,
    id_kind=api.ModelName,
    refuses=(404, 429, 502, 504),
)
async def show_model(parts: Parts, incoming: Incoming) -> Model:
    """One model, by the name that a request would use."""
    return await parts.turns.model(incoming.path["id"])


@operation("GET", "/healthz", "Say that the process answers.", returns=Health)
async def health(parts: Parts, incoming: Incoming) -> Health:
    """The process answers."""
    return Health()


operation("HEAD", "/healthz", "The same without words, as some supervisors ask.", name="health_head", returns=Health)(
    health
)


@operation("GET", "/readyz", "Say that the server takes turns.", returns=Health, refuses=(503,))
async def ready(parts: Parts, incoming: Incoming) -> Health:
    """The store answers, and the server is not stopping."""
    if parts.stopping.begun:
        raise Refusal(503, "server_stopping", "the server is stopping")
    await parts.store.head()
    return Health()


operation("HEAD", "/readyz", "The same without words.", name="ready_head", returns=Health, refuses=(503,))(ready)


@operation("GET", "/metrics", "Counters for Prometheus.", scopes=("read",), returns=str, media="text/plain")
async def metrics(parts: Parts, incoming: Incoming) -> Body:
    """Counters for Prometheus."""
    return Body(parts.metrics.exposition(), parts.metrics.CONTENT_TYPE)
