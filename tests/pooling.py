"""A pooler of the tests' own, which gives one session of the server to everybody who comes, a transaction at a time."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HOST = "127.0.0.1"


async def _message(stream: asyncio.StreamReader) -> bytes:
    head = await stream.readexactly(5)
    return head + await stream.readexactly(struct.unpack("!I", head[1:])[0] - 4)


class Pooler:
    """What stands between: one session, and who has it for the time of a transaction."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._turn = asyncio.Lock()
        self._session: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._greeting = b""

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            opening = await client.readexactly(8)
            while opening[4:] != bytes([0, 3, 0, 0]):  # Whether there is TLS. There is not.
                to_client.write(b"N")
                opening = await client.readexactly(8)
            opening += await client.readexactly(struct.unpack("!I", opening[:4])[0] - 8)
            async with self._turn:
                if self._session is None:
                    self._session = await asyncio.open_connection(HOST, self._server_port)
                    self._session[1].write(opening)
                    self._greeting = await self._answer(None)
                to_client.write(self._greeting)
            while True:
                message = await _message(client)
                async with self._turn:
                    # Whoever has begun a transaction keeps the session until its end.
                    while await self._pass_on(message, to_client):
                        message = await _message(client)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            to_client.transport.abort()

    async def _pass_on(self, message: bytes, to_client: asyncio.StreamWriter) -> bool:
        assert self._session is not None
        if message[:1] == b"X":
            raise ConnectionResetError
        self._session[1].write(message)
        if message[:1] in (b"Q", b"S"):
            return not (await self._answer(to_client)).endswith(b"I")
        if message[:1] == b"H":  # Whoever says this wants to hear at once what there is so far.
            await self._answer(to_client, (b"n", b"T", b"E"))
        return True

    async def _answer(self, to_client: asyncio.StreamWriter | None, last: tuple[bytes, ...] = (b"Z",)) -> bytes:
        assert self._session is not None
        answer, message = b"", b""
        while message[:1] not in last:
            message = await _message(self._session[0])
            answer += message
        if to_client is not None:
            to_client.write(answer)
        return answer

    def end(self) -> None:
        if self._session is not None:
            self._session[1].transport.abort()


@asynccontextmanager
async def pooler(server_port: int) -> AsyncIterator[int]:
    """The port of a pooler in front of the server at this port."""
    between = Pooler(server_port)
    serving = await asyncio.start_server(between.serve, HOST, 0)
    try:
        yield serving.sockets[0].getsockname()[1]
    finally:
        serving.close()
        between.end()
