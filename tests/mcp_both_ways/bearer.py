"""For programs that can send no token: an address on this machine that adds one to each request, and passes it on."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from starlette.requests import Request
from starlette.responses import StreamingResponse

# What belongs to one connection and is not passed on.
OWN = {"connection", "content-length", "keep-alive", "transfer-encoding"}


@asynccontextmanager
async def with_token(port: int, token: str) -> AsyncIterator[int]:
    """The port that leads to this one. Host and Origin arrive as they were sent, but for the number of the port."""
    sock = socket.create_server(("127.0.0.1", 0))
    here = sock.getsockname()[1]
    async with httpx2.AsyncClient(timeout=None) as http:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            request = Request(scope, receive)
            headers = [
                (name, value.replace(f":{here}", f":{port}") if name in ("host", "origin") else value)
                for name, value in request.headers.items()
                if name not in OWN
            ]
            asked = http.build_request(
                request.method,
                f"http://127.0.0.1:{port}{request.url.path}",
                headers=[*headers, ("authorization", f"Bearer {token}")],
                content=await request.body(),
            )
            answer = await http.send(asked, stream=True)
            kept = {name: value for name, value in answer.headers.items() if name not in OWN}
            try:
                await StreamingResponse(answer.aiter_raw(), answer.status_code, kept)(scope, receive, send)
            finally:
                await answer.aclose()

        config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield here
        finally:
            server.should_exit = server.force_exit = True
            await running
