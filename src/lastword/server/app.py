"""The app: the operations, behind the checks, with everything they need."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.log import traceback_of
from lastword.server.auth import LOCAL_OWNER, Caller, Tokens, require
from lastword.server.changing import ChangingUpstream
from lastword.server.chat import Turns
from lastword.server.conversations import Conversations
from lastword.server.limits import ServerLimits
from lastword.server.metrics import Metrics
from lastword.server.openapi import document
from lastword.server.operations import OPERATIONS, ApiOperation, Incoming, Parts
from lastword.server.perimeter import HEADERS, Body, Gathered, Perimeter, access_log, send_body
from lastword.server.presence import Stopping
from lastword.server.refusal import Refusal
from lastword.server.tail import Tail
from lastword.server.upstream import HttpUpstream, Upstream
from lastword.store import Store

_log = logging.getLogger("lastword.server")

# How often old conversations are looked for while the server runs.
RETENTION_LOOK_SECONDS = 3600.0

ANONYMOUS = Caller("nobody", frozenset())
"""Whoever calls an operation that needs no token."""

INSIDE = "lastword.inside"
"""Set in the scope by a program that calls the app object itself. It could read the store as well, so it needs no
token; nothing that comes over a socket can set it."""


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
    tail = Tail(store)
    conversations = Conversations(store, tail)
    parts = Parts(
        store=store,
        tokens=Tokens(store, tail, always_needed=not open_to_machine),
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
        upstream=upstream,
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
    return Perimeter(
        router, hosts=hosts, origins=origins, metrics=metrics, log=access_log(write), shares_with_origins=True
    )


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
            require(caller, operation.scopes)
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


class Rates:
    """How often each caller may come: a bucket that fills evenly and holds a tenth of a minute's worth."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._burst = max(1.0, per_minute / 10)
        self._buckets: dict[str, tuple[float, float]] = {}
        """By caller: what was left, and when."""

    def spend(self, caller: str) -> None:
        """Take one request from the caller's bucket; refuse when it is empty."""
        now = time.monotonic()
        left, then = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        if left < 1:
            self._buckets[caller] = (left, now)
            wait = (1 - left) / self._per_second
            raise Refusal(
                429,
                "too_many_requests",
                f"more than {self._per_second * 60:g} requests a minute",
                hint="wait, or raise requests_per_minute in [server.limits]",
                headers={"Retry-After": str(int(wait) + 1)},
            )
        self._buckets[caller] = (left - 1, now)


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


def wrong_method(allowed: Collection[str]) -> Refusal:
    """The path exists, and the method does not."""
    return Refusal(405, "wrong_method", "this path has no such method", headers={"Allow": ", ".join(sorted(allowed))})


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, "unknown_path", "there is nothing here", hint="/openapi.json lists the paths")
