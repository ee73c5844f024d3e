"""What every request passes: Host and Origin, its body, its answer, and whether anybody still waits for that.

A page on another site can make a browser send requests here. It cannot make the browser lie about where the page came
from (Origin), nor about the name under which it found this machine (Host), so both are checked before anything else.

The client may go, and the server may be told to stop. Either way the work for the answer is cancelled where it stands,
and with it the request to the model's server.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lastword.log import traceback_of
from lastword.server.api_types import ClientGone, Refusal
from lastword.server.metrics import LogLine, Metrics
from lastword.wire import MEDIA, write_event

if TYPE_CHECKING:
    from lastword.server.server_limits import ServerLimits

log = logging.getLogger("lastword.server")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
SINGLE = frozenset({b"host", b"origin", b"authorization"})
"""What decides about a request, and therefore may stand in it once."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})

# Request ids: unlike those of any other process, and in order within this one.
_PROCESS = secrets.token_hex(6)
_NUMBERS = itertools.count(1)
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
HEADERS = "lastword.headers"
"""Where the scope has its headers as a table, for whoever is inside."""
BROKEN = "lastword.broken"
"""Where the start of a stream has how it says that it broke off, if not in the usual way."""

# What a browser asks for a page before it sends a request of another origin.
ASKED_METHOD = b"access-control-request-method"
ASKED_HEADERS = b"access-control-request-headers"
MAX_ASKED_HEADERS = 50
_HEADER_NAME = re.compile(rb"[a-z0-9-]{1,64}")
UNMATCHED = "unmatched"
"""The route in log and metrics of a path that is none of ours. The path itself may hold anything, also a secret."""

# A client that leaves sooner than this after its request is noticed this late.
WATCH_AFTER_SECONDS = 0.05


class Middleware:
    """The outermost layer of the app."""

    def __init__(
        self,
        inside: ASGIApp,
        *,
        hosts: Collection[str],
        origins: Collection[str],
        log: Callable[[str], Any],
        metrics: Metrics | None = None,
        shares_with_origins: bool = False,
    ) -> None:
        """`shares_with_origins`: pages of the named origins may read answers. They send tokens, and never cookies."""
        self._inside = inside
        self._shares = shares_with_origins
        # An IPv6 address stands in brackets in a Host header, and without them in a configuration.
        self._hosts = LOOPBACK | {f"[{host.strip('[]')}]" if ":" in host else host for host in map(str.lower, hosts)}
        self._origins = frozenset(origins)
        self._metrics = metrics or Metrics()
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inside(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        start = time.perf_counter()
        answer = OutgoingResponse(send)
        failure: str | None = None
        try:
            headers = scope[HEADERS] = dict(scope["headers"])
            if len(headers) != len(scope["headers"]):
                _check_repeated(scope["headers"])
            origin = headers.get(b"origin")
            if self._shares and origin is not None and origin.decode("latin-1").lower() in self._origins:
                answer.shared_with = origin
            self._check(headers)
            if answer.shared_with is not None and scope["method"] == "OPTIONS" and ASKED_METHOD in headers:
                scope["lastword.route"] = "preflight"
                await answer.permit(headers.get(ASKED_HEADERS, b""))
            else:
                await self._inside(scope, receive, answer.send)
        except Refusal as refusal:
            failure = refusal.code
            if answer.is_open_stream:
                self._metrics.count_broken(failure)
            await answer.refuse(refusal)
        except ClientGone:
            failure = "client_gone"
            if answer.is_open_stream:
                self._metrics.count_broken(failure)
        except Exception as problem:
            # The text of an unforeseen error may hold anything, so neither client nor log gets it: where it happened
            # and of which class it is are enough to find it, and the id is where to look.
            failure = f"{type(problem).__name__} at {_where(problem)}"
            if answer.is_open_stream:
                self._metrics.count_broken("internal_error")
            log.error("request %s failed: %s %s\n%s", answer.id, *_named(scope), traceback_of(problem))
            words = f"something went wrong inside the server; its log says more about request {answer.id}"
            await answer.refuse(Refusal(500, "internal_error", words))
        finally:
            seconds = time.perf_counter() - start
            method, route = _named(scope)
            self._metrics.count_request(route, method, answer.status, seconds)
            line = LogLine(
                method=method,
                route=route,
                status=answer.status,
                milliseconds=round(seconds * 1000, 1),
                caller=scope.get("lastword.caller"),
                request=answer.id,
                problem=failure,
                at=datetime.now(UTC),
            )
            self._log(str(line))

    def _check(self, headers: dict[bytes, bytes]) -> None:
        host, name = _host(headers.get(b"host", b""))
        if name not in self._hosts:
            hint = "add the name to hosts in [server] if it is yours"
            raise Refusal(421, "host_refused", "this server does not answer to that name", hint=hint)
        origin = headers.get(b"origin")
        if origin is None:
            return
        text = origin.decode("latin-1").lower()
        if text not in self._origins and urlsplit(text).netloc != host:
            hint = "add the origin to origins in [server] if the page is yours"
            raise Refusal(403, "origin_refused", "pages of other sites may not talk to this server", hint=hint)


def _check_repeated(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request that names itself twice: whoever stands in front of us may have believed the other one."""
    for name, count in Counter(name for name, _ in headers).items():
        if count > 1 and name in SINGLE:
            raise Refusal(400, "repeated_header", f"the header {name.decode().title()} stands more than once")


def _named(scope: Scope) -> tuple[str, str]:
    """Method and route, in words of ours alone."""
    return scope["method"] if scope["method"] in METHODS else "OTHER", scope.get("lastword.route", UNMATCHED)


@lru_cache(maxsize=64)
def _host(header: bytes) -> tuple[str, str]:
    """The Host header, and the name in it without a port. The same few come again and again."""
    host = header.decode("latin-1").lower()
    return host, host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host


def _where(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{frames[-1].filename.rpartition('lastword/')[2]}:{frames[-1].lineno}" if frames else "?"


class OutgoingResponse:
    """A response on its way out: what was sent so far, and the headers that every one gets."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 499
        """Of a request whose client left before there was one."""
        self.id = f"{_PROCESS}-{next(_NUMBERS):x}"
        self.shared_with: bytes | None = None
        """The origin of a page that may read it."""
        self._started = False
        self.is_open_stream = False
        """Whether it is a stream that has begun and has not ended. What goes wrong now breaks it."""
        self._broken: Callable[[Refusal], bytes] = error_event
        """What such a stream says then."""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            self._broken = message.pop(BROKEN, error_event)
            self.is_open_stream = (b"content-type", MEDIA) in message.get("headers", ())
            given = message.get("headers", ())
            named = {name for name, _ in given}
            # What may be kept says so itself; nothing else is.
            always = [header for header in _ALWAYS if header[0] not in named]
            message["headers"] = [*given, (b"x-request-id", self.id.encode()), *always, *self._sharing()]
        elif not message.get("more_body", False):
            self.is_open_stream = False
        await self._send(message)

    def _sharing(self) -> list[tuple[bytes, bytes]]:
        if self.shared_with is None:
            return []
        return [
            (b"access-control-allow-origin", self.shared_with),
            (b"access-control-expose-headers", b"x-request-id, retry-after"),
            (b"vary", b"origin"),
        ]

    async def permit(self, wanted: bytes) -> None:
        """Answer a browser that asks for a page whether it may send a request."""
        # Official clients send headers of their own, whose names change; a name is all that is repeated here.
        names = [name.strip() for name in wanted.lower().split(b",")][:MAX_ASKED_HEADERS]
        headers = [
            (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"),
            (b"access-control-allow-headers", b", ".join(name for name in names if _HEADER_NAME.fullmatch(name))),
            (b"access-control-max-age", b"600"),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with an error; in a stream that has begun, as its last event. Any other answer breaks off."""
        if self.is_open_stream:
            await self.send({"type": "http.response.body", "body": self._broken(refusal)})
        elif not self._started:
            headers = dict(refusal.headers)
            if refusal.status in (408, 413):
                # The rest of the body is still coming, and nobody will read it.
                headers["Connection"] = "close"
            await send_body(self.send, refusal.status, Body(msgspec.json.encode(refusal.body())), headers)


class Body(msgspec.Struct, frozen=True):
    """Bytes for the wire that are not JSON, or are already."""

    data: bytes
    media: str = "application/json"


async def read_body(headers: dict[bytes, bytes], receive: Receive, limits: ServerLimits) -> bytes:
    """The body of a request that promises JSON, within its size. Its time is the socket's business: http_server.py."""
    media = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if media != b"application/json":
        raise Refusal(
            415, "not_json", "the body has to be JSON", hint="send the header `Content-Type: application/json`"
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body_bytes:
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("the client has gone")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.body_bytes:
            raise _too_large(limits)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(limits: ServerLimits) -> Refusal:
    hint = "send a conversation_id, and only what is new"
    return Refusal(413, "body_too_large", f"the body is larger than {limits.body_bytes} bytes", hint=hint)


async def send_body(send: Send, status: int, body: Body, headers: dict[str, str] | None = None) -> None:
    """A whole response."""
    sent = [(b"content-type", body.media.encode()), (b"content-length", str(len(body.data)).encode())]
    if headers:
        sent += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body.data})


class EventStream:
    """A stream of events. It begins with its first piece, so that an error before it still has a status of its own."""

    def __init__(self, send: Send, broken: Callable[[Refusal], bytes] | None = None) -> None:
        """`broken`: its last event when it breaks off, where that has a form of its own."""
        self._send = send
        self._broken = broken
        self.begun = False

    async def write(self, piece: bytes) -> None:
        """Send a piece."""
        if not self.begun:
            self.begun = True
            headers = [(b"content-type", MEDIA)]
            start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
            if self._broken is not None:
                start[BROKEN] = self._broken
            await self._send(start)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """There is no more."""
        await self._send({"type": "http.response.body", "body": b""})


def error_event(refusal: Refusal) -> bytes:
    """What a client is told when a stream breaks off in the middle."""
    return write_event(msgspec.json.encode(refusal.body()))


class Stopping:
    """The end of the server: first no new turns, then running ones are told."""

    def __init__(self) -> None:
        self.begun = False
        self._told: set[Callable[[], None]] = set()

    def begin(self) -> None:
        """Take no new turns."""
        self.begun = True

    def tell(self) -> None:
        """Break off the turns that still run."""
        for end in list(self._told):
            end()

    def register(self, end: Callable[[], None]) -> None:
        """Remember how to break off a turn."""
        self._told.add(end)

    def forget(self, end: Callable[[], None]) -> None:
        """The turn is over."""
        self._told.discard(end)


def stopping() -> Refusal:
    """What whoever still waits is told."""
    return Refusal(
        503, "server_stopping", "the server is stopping; nothing of this turn was stored", headers={"Retry-After": "5"}
    )


class CancelledWhenGone:
    """Does what is inside while the client is there and the server runs; else ClientGone, or a refusal."""

    def __init__(self, receive: Receive, server: Stopping) -> None:
        self._receive = receive
        self._server = server
        self._why: ClientGone | Refusal | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._server.begun:
            raise stopping()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._server.register(self._stop)
        # Most refusals, and the answers of a fast model, are over before it is worth a task to see whether anybody
        # left.
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, self._watch)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._server.forget(self._stop)
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._why is not None and isinstance(error, asyncio.CancelledError):
            self._task.uncancel()
            raise self._why from None
        # A watcher that was a moment late must not cancel what comes after.
        self._why = ClientGone("the answer is complete")

    def _watch(self) -> None:
        self._watcher = asyncio.ensure_future(_until_gone(self._receive))
        self._watcher.add_done_callback(self._gone)

    def _gone(self, watcher: asyncio.Task[None]) -> None:
        if not watcher.cancelled():
            self._end(ClientGone("the client has gone"))

    def _stop(self) -> None:
        self._end(stopping())

    def _end(self, why: ClientGone | Refusal) -> None:
        if self._why is None:
            self._why = why
            self._task.cancel()


async def _until_gone(receive: Receive) -> None:
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            return
