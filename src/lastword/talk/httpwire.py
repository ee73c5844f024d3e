"""The server at a URL: the way over HTTP for what apiclient.py has to say."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp

from lastword.errors import ConfigError
from lastword.talk.apiclient import ConnectionLost

# Reaching a server on this machine or in the same house. A server that is further away has a network in between.
CONNECT_SECONDS = 10.0
# Between two pieces of an answer. The server itself waits three minutes for a slow model, and then says so.
IDLE_SECONDS = 200.0
# A body with images in it. It is sent in pieces, so that the loop can do something else in between.
LARGE_BODY = 2**20


class HttpWire:
    """The server at a URL."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of a server", hint="write it like http://127.0.0.1:8811")
        self.url = url.rstrip("/").removesuffix("/v1")
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[_HttpResponse]:
        sent = {"Content-Type": "application/json", **(headers or {})} if body is not None else dict(headers or {})
        try:
            # A redirect could carry the token to another host.
            data = body if body is None or len(body) < LARGE_BODY else BytesIO(body)
            request = self._open().request(method, self.url + path, data=data, headers=sent, allow_redirects=False)
            async with request as response:
                yield _HttpResponse(response)
        except (TimeoutError, aiohttp.ClientError, OSError) as problem:
            raise ConnectionLost(
                f"{self.url} does not answer ({type(problem).__name__})", hint="is the server running?"
            ) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"User-Agent": "lastword"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS)
            self._session = aiohttp.ClientSession(headers=headers, timeout=timeout)
        return self._session


class _HttpResponse:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    async def pieces(self) -> AsyncGenerator[bytes]:
        while piece := await self._response.content.readany():
            yield piece
