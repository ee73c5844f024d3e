"""The app: the operations behind the checks, with everything they need; and the OpenAPI document of them."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.log import traceback_of
from lastword.server.api_types import ErrorBody, Refusal
from lastword.server.auth import INSIDE, LOCAL_OWNER, Caller, Rates, Tokens
from lastword.server.conversations import Conversations
from lastword.server.metrics import Gathered, Metrics
from lastword.server.middleware import HEADERS, Body, Middleware, Stopping, send_body
from lastword.server.operations import OPERATIONS, ApiOperation, Incoming, Parts
from lastword.server.server_limits import ServerLimits
from lastword.server.turns import Turns
from lastword.server.upstream import ChangingUpstream, HttpUpstream

if TYPE_CHECKING:
    from lastword.server.model_server import Upstream
    from lastword.store import Store

_log = logging.getLogger("lastword.server")

# How often old conversations are looked for while the server runs.
RETENTION_LOOK_SECONDS = 3600.0
ANONYMOUS = Caller("nobody", frozenset())
"""Whoever calls an operation that needs no token."""
WORDS = {
    200: "Done.",
    400: "The request is not one, or the model's server refused it.",
    401: "No token, or not a good one.",
    403: "The token lacks the scope, or a page of another site sent the request.",
    404: "There is no such thing, or it is somebody else's.",
    405: "The path has no such method.",
    408: "The body came too slowly.",
    409: "Another turn is running, or there is nothing new in the request.",
    413: "Too much in one request.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    429: "Too many requests; Retry-After says when to come back.",
    500: "The server failed.",
    502: "The model's server failed.",
    503: "The server is stopping.",
    504: "The model's server was too slow.",
}

# An event of a stream. Its data is a chunk in OpenAI's shape, or the word [DONE].
EVENT = {
    "type": "object",
    "properties": {"data": {"type": "string", "contentMediaType": "application/json"}},
    "required": ["data"],
}
STREAMED = ("chat", "create_response")
"""The operations whose answer may be a stream."""

# Where the answers of an operation name a conversation, and what can be done with one.
LINKS = {
    "chat": "conversation_id",
    "create_response": "conversation_id",
    "list_conversations": "data/0/id",
    "show_conversation": "id",
}
LINKED = ("show_conversation", "delete_conversation")


def build_app(
    store: Store,
    upstream: Upstream,
    *,
    model: str | None = None,
    persona: str | None = None,
    is_reasoning: bool = False,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    log: Callable[[str], Any] | None = None,
    stopping: Stopping | None = None,
    open_to_machine: bool = True,
    retention_days: float | None = None,
) -> ASGIApp:
    """The assistant API over this store and this model. It closes the model; the store is the caller's to close.

    `open_to_machine`: while there are no tokens, whoever reaches the socket may come in. `retention_days`:
    conversations in which nothing was said for so long are deleted.
    """
    limits = limits or ServerLimits()
    metrics = Metrics()
    if isinstance(upstream, HttpUpstream | ChangingUpstream):
        metrics.count_retries = lambda: upstream.retries_made
    conversations = Conversations(store)
    parts = Parts(
        store=store,
        tokens=Tokens(store, conversations.follower, always_needed=not open_to_machine),
        conversations=conversations,
        turns=Turns(
            upstream,
            conversations,
            model=model,
            persona=persona,
            limits=limits,
            metrics=metrics,
            is_reasoning=is_reasoning,
        ),
        limits=limits,
        metrics=metrics,
        stopping=stopping or Stopping(),
    )
    if isinstance(upstream, ChangingUpstream):
        upstream.changed = parts.turns.forget_model
    rates = Rates(limits.requests_per_minute)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        await conversations.finish_deletions()
        if retention_days is not None:
            await _end_unused(conversations, retention_days)
        ending = None if retention_days is None else asyncio.ensure_future(_keep_ending(conversations, retention_days))
        try:
            yield
        finally:
            if ending is not None:
                ending.cancel()
            await upstream.close()

    by_path: dict[str, list[ApiOperation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, []).append(operation)
    endpoints: dict[str, ASGIApp] = {path: Endpoint(path, found, parts, rates) for path, found in by_path.items()}
    endpoints["/openapi.json"] = OpenDocument(limits)
    # The router alone: Starlette's application would turn a refusal into a page of its own. And no redirects: a path
    # with a slash too many is none of ours, and a redirect would repeat the Host header of whoever asked.
    # The name of a model may have slashes in it; nothing else that is named by an address has.
    routes = [Route(path.replace("models/{id}", "models/{id:path}"), endpoint) for path, endpoint in endpoints.items()]
    router = Router(routes, lifespan=lifespan, default=_unknown_path, redirect_slashes=False)
    write = log or Gathered(sys.stderr.write).write
    return Middleware(router, hosts=hosts, origins=origins, metrics=metrics, log=write, shares_with_origins=True)


async def _keep_ending(conversations: Conversations, days: float) -> None:
    while True:
        await asyncio.sleep(RETENTION_LOOK_SECONDS)
        try:
            await _end_unused(conversations, days)
        except Exception as problem:  # A full disk must not end the looking for good.
            _log.error("old conversations could not be ended\n%s", traceback_of(problem))


async def _end_unused(conversations: Conversations, days: float) -> None:
    ended = await conversations.end_unused(time.time_ns() / 1e9 - days * 86_400, keep_pending=True)
    if ended.conversations:
        _log.info("%s: nothing was said in %g days", ended, days)


class Endpoint:
    """The operations of one path: who is calling, may they, how often; then the one for the method."""

    def __init__(self, path: str, operations: Sequence[ApiOperation], parts: Parts, rates: Rates) -> None:
        self._path = path
        self._operations = {operation.method: operation for operation in operations}
        self._parts = parts
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["lastword.route"] = self._path
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise wrong_method(self._operations)
        headers = scope[HEADERS]
        caller = ANONYMOUS
        if operation.scopes:
            authorization = headers.get(b"authorization")
            if scope.get(INSIDE) is True:
                caller = LOCAL_OWNER
            else:
                caller = await self._parts.tokens.identify(authorization.decode("latin-1") if authorization else None)
            scope["lastword.caller"] = caller.id
            caller.require(operation.scopes)
            self._rates.spend(caller.id)
        query = dict(QueryParams(scope["query_string"])) if scope["query_string"] else {}
        incoming = Incoming(caller, scope["path_params"], query, headers, receive, send)
        result = await operation.handle(self._parts, incoming)
        if result is not None:
            await send_body(send, 200, result if isinstance(result, Body) else Body(msgspec.json.encode(result)))


class OpenDocument:
    """The OpenAPI document. Made when somebody asks: it takes longer than everything else at the start together."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._body: Body | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["lastword.route"] = "/openapi.json"
        if scope["method"] != "GET":
            raise wrong_method(["GET"])
        if self._body is None:
            self._body = Body(msgspec.json.encode(document(self._limits)))
        await send_body(send, 200, self._body)


def wrong_method(allowed: Collection[str]) -> Refusal:
    """The path exists, and the method does not."""
    return Refusal(405, "wrong_method", "this path has no such method", headers={"Allow": ", ".join(sorted(allowed))})


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, "unknown_path", "there is nothing here", hint="/openapi.json lists the paths")


def document(limits: ServerLimits) -> dict[str, Any]:
    """The whole document."""
    kinds = [kind for operation in OPERATIONS for kind in (operation.takes, operation.returns) if kind is not None]
    template = "#/components/schemas/{name}"
    _, schemas = msgspec.json.schema_components([*kinds, ErrorBody], ref_template=template)
    schemas["ChatRequest"]["properties"]["messages"]["maxItems"] = limits.messages
    for form in schemas["ResponsesRequest"]["properties"]["input"]["anyOf"]:
        if form["type"] == "array":
            form["maxItems"] = limits.messages
    # Clients leave out what a message is, and it is put in before the types are looked at.
    schemas["InputMessage"]["required"].remove("type")
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lastword: the assistant API",
            "version": "1",
            "description": "Chat completions with tools that somebody else runs. The server never runs one.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: ApiOperation) -> dict[str, Any]:
    # Whoever has to say who they are is also counted: app.py.
    refuses = {*operation.refuses, 403, 421, 500, *((401, 429) if operation.scopes else ())}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            "200": _response(operation),
            **{str(status): _refusal(status, operation.method) for status in sorted(refuses)},
        },
    }
    if operation.scopes:
        described["security"] = [{"token": []}]
        described["description"] = f"Needs the scope {' or '.join(f'`{scope}`' for scope in operation.scopes)}."
    if operation.takes is not None:
        schema = _schema(operation.takes)
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _parameters(operation: ApiOperation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": _schema(operation.id_kind)})
    for number in operation.query:
        schema = {"type": "integer", "minimum": number.low, "maximum": number.high, "default": number.default}
        parameters.append({"name": number.name, "in": "query", "schema": schema, "description": number.description})
    return parameters


def _response(operation: ApiOperation) -> dict[str, Any]:
    if operation.method == "HEAD":
        return {"description": WORDS[200]}
    content: dict[str, Any] = {operation.media: {"schema": _schema(operation.returns)}}
    if operation.name in STREAMED:
        content["text/event-stream"] = {"schema": EVENT}
    described: dict[str, Any] = {"description": WORDS[200], "content": content}
    if operation.name in LINKS:
        found = {"id": f"$response.body#/{LINKS[operation.name]}"}
        described["links"] = {name: {"operationId": name, "parameters": found} for name in LINKED}
    if operation.name == "create_response":
        itself = {"operationId": "show_response", "parameters": {"id": "$response.body#/id"}}
        described["links"]["show_response"] = itself
    return described


def _refusal(status: int, method: str) -> dict[str, Any]:
    described: dict[str, Any] = {"description": WORDS[status]}
    if method != "HEAD":
        described["content"] = {"application/json": {"schema": _schema(ErrorBody)}}
    if status == 401:
        described["headers"] = {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}
    if status == 429:
        described["headers"] = {"Retry-After": {"required": True, "schema": {"type": "string"}}}
    return described


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return schema
