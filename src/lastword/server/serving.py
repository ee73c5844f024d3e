"""Sockets: where the app listens, how long a request may take to arrive, and how the server stops.

uvicorn has limits on neither the time nor the size of headers, nor on the time of a body; the protocol below adds
them. When the server is told to stop it takes no new connections, lets running turns finish for a while, and then
tells their clients.
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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from lastword.errors import ConfigError
from lastword.server.auth import Tokens
from lastword.server.connections import OpenConnections, network_of
from lastword.server.limits import ServerLimits
from lastword.server.presence import Stopping
from lastword.store import Store

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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def check_address(host: str, store: Store) -> None:
    """Refuse to listen where others can reach us, unless they need a token."""
    if is_loopback(host):
        return
    if not any(not token.revoked for token in await Tokens(store).all()):
        raise ConfigError(
            f"{host} can be reached from other machines, and there is no token to keep them out",
            hint="make one with `lastword token create NAME`, or listen on 127.0.0.1",
        )


class Serving(uvicorn.Server):
    """A server that tells its clients when it stops."""

    def __init__(self, app: ASGIApp, stopping: Stopping, limits: ServerLimits, sock: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_protocol(limits),
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
        self._stop_seconds = limits.stop_seconds
        self._socket = sock

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
        telling = asyncio.get_running_loop().call_later(self._stop_seconds, self._stopping.tell)
        try:
            await super().shutdown(sockets)
        finally:
            telling.cancel()


def allow_descriptors(limits: ServerLimits) -> None:
    """Let the process have the connections that its limits promise. Many systems begin with a thousand descriptors."""
    wanted = limits.connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def tune_gc() -> None:
    """For a process that does nothing but serve: exempt what is allocated by now, and collect rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)


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


def _protocol(limits: ServerLimits) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol with limits on connections, and on the time and size of headers."""
    open_connections = OpenConnections(limits)

    class Limited(HttpToolsProtocol):
        def __init__(
            self,
            config: uvicorn.Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self._header_timer: TimerHandle | None = None
            self._body_timer: TimerHandle | None = None
            self._header_bytes = 0
            self._in_headers = True
            self.address = ""
            self.since = self.loop.time()

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
            super().connection_made(transport)
            self.address = network_of(self.client[0]) if self.client else ""
            if (full := open_connections.admit(self)) is not None:
                self._refuse(503, "too_many_connections", full)
            else:
                self._start_timer()

        def rank(self) -> int | None:
            if self.cycle is not None and not self.cycle.response_complete:
                return 1 if self.cycle.more_body else None
            return 1 if self._header_bytes or not self._in_headers else 0

        def show_out(self) -> None:
            self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            open_connections.forget(self)
            self._stop_timer()
            self._stop_body_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            if self._in_headers:
                self._header_bytes += len(data)
            super().data_received(data)
            # Only what is still unfinished counts: most requests come whole, in one packet.
            if not self._in_headers:
                if self._body_timer is None:
                    self._body_timer = self.loop.call_later(limits.body_seconds, self._body_too_slow)
            elif self._header_bytes > limits.header_bytes:
                self._refuse(431, "headers_too_large", f"the headers are larger than {limits.header_bytes} bytes")
            elif self._header_bytes and self._header_timer is None:
                self._start_timer()

        def on_headers_complete(self) -> None:
            self._stop_timer()
            self._in_headers = False
            if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > limits.header_bytes:
                self._refuse(431, "headers_too_large", f"the headers are larger than {limits.header_bytes} bytes")
                return
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._in_headers = True
            self._header_bytes = 0
            self._stop_body_timer()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            self.since = self.loop.time()
            super().on_response_complete()

        def _start_timer(self) -> None:
            self._header_timer = self.loop.call_later(limits.header_seconds, self._too_slow)

        def _stop_timer(self) -> None:
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

        def _too_slow(self) -> None:
            self._header_timer = None
            self._refuse(408, "headers_too_slow", f"the headers took longer than {limits.header_seconds:g} seconds")

        def _stop_body_timer(self) -> None:
            if self._body_timer is not None:
                self._body_timer.cancel()
                self._body_timer = None

        def _body_too_slow(self) -> None:
            self._body_timer = None
            if self.cycle is None or not self.cycle.response_started:
                words = f"the body did not arrive within {limits.body_seconds:g} seconds"
                self._refuse(408, "body_too_slow", words)
            else:
                # An answer was given without waiting for the rest.
                self.transport.close()

        def _refuse(self, status: int, code: str, words: str) -> None:
            self._stop_timer()
            if self.transport.is_closing():
                return
            body = b'{"error":{"message":"%b","type":"invalid_request_error","code":"%b","param":null}}' % (
                words.encode(),
                code.encode(),
            )
            head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(head % (status, len(body)) + body)
            self.transport.close()

    return Limited
