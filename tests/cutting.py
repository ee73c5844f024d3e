"""A proxy between a store and its server that cuts where it hurts: after a COMMIT was passed on, before its answer."""

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

HOST = "127.0.0.1"
PROTOCOL = bytes([0, 3, 0, 0])


class CuttingProxy:
    """Passes everything on, until it is told to cut."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.cut: Callable[[bool], bool] | None = None
        """Hears of each message of a client whether it lets the server commit. True: it is passed on or not, and the
        connection is cut."""
        self.watches = b"try_append"
        """A word in the statements at whose end the server commits."""
        self.openings: list[bytes] = []
        """With which words each came."""
        self._silent: set[asyncio.StreamWriter] = set()
        self.passes_on = True
        """Whether the message at which it cuts still reaches the server."""
        self.cuts = 0
        self.refuses = False
        """Whether new connections are turned away."""
        self._streams: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.refuses:
            to_client.close()
            return
        server, to_server = await asyncio.open_connection(HOST, self._server_port)
        self._streams |= {to_client, to_server}
        answers = asyncio.ensure_future(self._answers(server, to_client))
        try:
            await self._questions(client, server, to_client, to_server, answers)
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)
            # Where a network has forgotten a connection, the server does not hear that the client has given it up.
            for stream in (to_client, *(() if to_client in self._silent else (to_server,))):
                self._streams.discard(stream)
                stream.transport.abort()

    async def _questions(
        self,
        client: asyncio.StreamReader,
        server: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        to_server: asyncio.StreamWriter,
        answers: "asyncio.Future[None]",
    ) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            # The first messages have no letter: whether there is TLS, then who comes.
            opening = b""
            while opening[:4] != PROTOCOL:
                size = await client.readexactly(4)
                opening = await client.readexactly(struct.unpack("!I", size)[0] - 4)
                to_server.write(size + opening)
            self.openings.append(opening)
            watched = _Watched(self.watches)
            while True:
                head = await client.readexactly(5)
                body = await client.readexactly(struct.unpack("!I", head[1:])[0] - 4)
                if to_client in self._silent:
                    continue
                is_commit = watched.commits(head[:1] + body)
                if self.cut is not None and self.cut(is_commit):
                    self.cuts += 1
                    answers.cancel()
                    if self.passes_on:
                        to_server.write(head + body)
                        await to_server.drain()
                        # In order: the server reads the COMMIT before it reads that nobody is there any more. What it
                        # answers is read to its end: a socket that is closed before that may take the COMMIT with it.
                        to_server.write_eof()
                        await asyncio.gather(answers, return_exceptions=True)
                        while await server.read(65536):
                            pass
                    return
                to_server.write(head + body)

    async def _answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await server.read(65536):
                if to_client not in self._silent:
                    to_client.write(data)
                    await to_client.drain()
        to_client.close()

    def fall_silent(self) -> None:
        """Pass nothing on any more of what is open now, and tell nobody."""
        self._loop.call_soon_threadsafe(lambda: self._silent.update(self._streams))

    def cut_all(self) -> None:
        """Cut whatever is open, both ways at once."""
        self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        for stream in self._streams:
            stream.transport.abort()

    def run(self, started: Event) -> None:
        """Serve until it is stopped. On a thread of its own: who is cut off here may stand still while it waits."""
        asyncio.set_event_loop(self._loop)
        serving = self._loop.run_until_complete(asyncio.start_server(self.serve, HOST, 0))
        self.port = serving.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        serving.close()
        self._abort()
        # Each ends by itself, since what it reads from is cut.
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    """A proxy in front of the server at this port."""
    proxy, started = CuttingProxy(port), Event()
    thread = Thread(target=proxy.run, args=(started,))
    thread.start()
    started.wait(30)
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(30)


class _Watched:
    """What one client says: which of its messages lets the server commit."""

    def __init__(self, word: bytes) -> None:
        self._word = word
        self._names: set[bytes] = set()
        self._is_bound = False

    def commits(self, message: bytes) -> bool:
        """A COMMIT in plain text; or the end of a question that was prepared as a commit in one step."""
        kind, body = message[:1], message[1:]
        if kind == b"P" and self._word in body:
            self._names.add(body.split(b"\0")[0])
        elif kind == b"B":
            self._is_bound = body.split(b"\0")[1] in self._names
        elif kind == b"S" and self._is_bound:
            self._is_bound = False
            return True
        return message == b"QCOMMIT\0"
