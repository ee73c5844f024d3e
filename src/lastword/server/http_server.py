"""Sockets: where the app listens, how long a request may take to arrive, who has to go, and how the server stops.

uvicorn has limits on neither the time nor the size of headers, nor on the time of a body; the protocol below adds
them. When the server is told to stop it takes no new connections, lets running turns finish for a while, and then
tells their clients.

Who may hold a connection when there are too many: whoever is being answered, then whoever came last. A connection that
asks for nothing costs a place and nothing else, and a thousand of them are made in a moment. So the full house does not
turn away who comes; it shows out who has waited longest without asking. First from the address that is over its share,
since others should not pay for it. Only a house full of people who are being answered is full.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import resource
import signal
import socket
import threading
from asyncio.events import TimerHandle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from lastword.errors import ConfigError

if TYPE_CHECKING:
    from lastword.server.middleware import Stopping
    from lastword.server.server_limits import ServerLimits

# Idle connections are kept this long for the client's next request.
KEEP_ALIVE_SECONDS = 30
# Connections that wait until they are accepted.
BACKLOG = 2048
# After the clients were told, what their connections get to take the words in.
TOLD_SECONDS = 2.0
# Allocations between two runs of the collector of reference cycles. The default of 700 is reached within one or two
# turns, whose objects are all alive: under load the collector took a sixth of the server's time.
GARBAGE_THRESHOLD = 20_000
# Besides those of clients: the pool to the model's server, the store, its logs, the page's files.
SPARE_DESCRIPTORS = 1024


class Serving(uvicorn.Server):
    """A server that tells its clients when it stops."""

    def __init__(self, app: ASGIApp, stopping: Stopping, limits: ServerLimits, sock: socket.socket) -> None:

        class Connection(LimitedConnection):
            pass

        Connection.limits, Connection.others = limits, OpenConnections(limits)
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                loop="uvloop",
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                # Who is calling is what the token says, never what a header claims.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                # The last resort, for turns that do not end when they are told to.
                timeout_graceful_shutdown=int(limits.stop_seconds + TOLD_SECONDS + 3),
            )
        )
        self._stopping = stopping
        self._limits = limits
        self._socket = sock

    @staticmethod
    def bind(host: str, port: int) -> socket.socket:
        """A socket that listens; port 0 takes any free one."""
        try:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            # From here on nobody is turned away, however long the rest of the start takes.
            sock.listen(BACKLOG)
        except OSError as problem:
            raise ConfigError(
                f"cannot listen on {host} port {port}: {problem.strerror}",
                hint="choose another with --port, or 0 for any free one",
            ) from None
        sock.set_inheritable(False)
        return sock

    def allow_descriptors(self) -> None:
        """Let the process have the connections that its limits promise. Many systems begin with a thousand."""
        wanted = self._limits.connections + SPARE_DESCRIPTORS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

    @staticmethod
    def tune_gc() -> None:
        """For a process that does nothing but serve: exempt what is allocated by now, and collect rarely."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's own, but the signal is not raised again afterwards: there is a store to close."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def run_here(self) -> None:
        """Serve until a signal, on this thread."""
        self.run(sockets=[self._socket])

    async def serve_here(self) -> None:
        """Serve until `should_exit`, on the running loop."""
        await self.serve(sockets=[self._socket])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.begin()
        telling = asyncio.get_running_loop().call_later(self._limits.stop_seconds, self._stopping.tell)
        try:
            await super().shutdown(sockets)
        finally:
            telling.cancel()


class LimitedConnection(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits on connections, and on the time and size of headers and bodies."""

    limits: ServerLimits
    others: OpenConnections
    """Given by each server to a class of its own: uvicorn makes the connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._timers: dict[str, TimerHandle] = {}
        """Those that run, by what they wait for."""
        self._header_bytes = 0
        self._in_headers = True
        self.address = ""
        self.since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self.address = network_of(self.client[0]) if self.client else ""
        if (full := self.others.admit(self)) is not None:
            self._refuse(503, "too_many_connections", full)
        else:
            self._start_timer("headers", self.limits.header_seconds)

    def rank(self) -> int | None:
        if self.cycle is not None and not self.cycle.response_complete:
            return 1 if self.cycle.more_body else None
        return 1 if self._header_bytes or not self._in_headers else 0

    def show_out(self) -> None:
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.others.forget(self)
        self._stop_timer("headers")
        self._stop_timer("body")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        # Only what is still unfinished counts: most requests come whole, in one packet.
        if not self._in_headers:
            self._start_timer("body", self.limits.body_seconds)
        elif self._header_bytes > self.limits.header_bytes:
            self._refuse(431, "headers_too_large", f"the headers are larger than {self.limits.header_bytes} bytes")
        elif self._header_bytes:
            self._start_timer("headers", self.limits.header_seconds)

    def on_headers_complete(self) -> None:
        self._stop_timer("headers")
        self._in_headers = False
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > self.limits.header_bytes:
            self._refuse(431, "headers_too_large", f"the headers are larger than {self.limits.header_bytes} bytes")
            return
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_headers = True
        self._header_bytes = 0
        self._stop_timer("body")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        super().on_response_complete()

    def _start_timer(self, what: str, seconds: float) -> None:
        if what not in self._timers:
            self._timers[what] = self.loop.call_later(seconds, self._too_slow, what, seconds)

    def _stop_timer(self, what: str) -> None:
        if timer := self._timers.pop(what, None):
            timer.cancel()

    def _too_slow(self, what: str, seconds: float) -> None:
        del self._timers[what]
        if what == "headers":
            self._refuse(408, "headers_too_slow", f"the headers took longer than {seconds:g} seconds")
        elif self.cycle is None or not self.cycle.response_started:
            self._refuse(408, "body_too_slow", f"the body did not arrive within {seconds:g} seconds")
        else:
            # An answer was given without waiting for the rest.
            self.transport.close()

    def _refuse(self, status: int, code: str, words: str) -> None:
        self._stop_timer("headers")
        if self.transport.is_closing():
            return
        body = b'{"error":{"message":"%b","type":"invalid_request_error","code":"%b","param":null}}' % (
            words.encode(),
            code.encode(),
        )
        head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()


class Holder(Protocol):
    """A connection, as far as this room is concerned."""

    address: str
    since: float
    """When it last began to wait: for its first request, for the next, or for the rest of one."""

    def rank(self) -> int | None:
        """How soon it may be shown out: 0 asks for nothing, 1 is still asking; None is being answered."""

    def show_out(self) -> None:
        """Close it."""


class OpenConnections:
    """All connections of a server."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._holders: dict[Holder, None] = {}
        self._by_address: Counter[str] = Counter()

    def admit(self, holder: Holder) -> str | None:
        """Take a connection in, making room if need be; says why not when there is none to make."""
        here = self._by_address[holder.address]
        if here >= self._limits.connections_per_address and not self._make_room(holder.address):
            return f"more than {self._limits.connections_per_address} connections of one address are in use"
        if len(self._holders) >= self._limits.connections and not self._make_room(None):
            return f"more than {self._limits.connections} connections are in use"
        self._holders[holder] = None
        self._by_address[holder.address] += 1
        return None

    def forget(self, holder: Holder) -> None:
        """The connection is closed, or about to be."""
        if holder in self._holders:
            del self._holders[holder]
            self._by_address[holder.address] -= 1
            if not self._by_address[holder.address]:
                del self._by_address[holder.address]

    def _make_room(self, address: str | None) -> bool:
        """Show out the one that has waited longest for nothing; of the largest crowd when the whole house is full."""
        best: tuple[int, int, float] | None = None
        chosen: Holder | None = None
        for holder in self._holders:
            if address is not None and holder.address != address:
                continue
            rank = holder.rank()
            if rank is None:
                continue
            value = (rank, -self._by_address[holder.address], holder.since)
            if best is None or value < best:
                best, chosen = value, holder
        if chosen is None:
            return False
        self.forget(chosen)
        chosen.show_out()
        return True


@lru_cache(maxsize=1024)
def network_of(host: str) -> str:
    """Whom an address counts for. A household has 2^64 addresses of the newer kind, and is one neighbour."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
