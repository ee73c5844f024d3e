"""The tools over streamable HTTP: for this machine, with a token that has the scope `tools`.

Host and Origin are looked at before anything else, so that no page of a browser reaches it by a name of its own. A
session of the older protocol belongs to the token that began it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.lazily import brought_by
from lastword.mcp.serving import ToolServer
from lastword.server import Refusal, Tokens

with brought_by("mcp", "mcp", "mcp_types"):
    from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken
    from mcp.server.transport_security import TransportSecuritySettings

PATH = "/mcp"
MAX_BODY_BYTES = 8 * 2**20


def http_app(server: ToolServer, tokens: Tokens, port: int) -> ASGIApp:
    """The application that listens on this port of this machine."""
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=MAX_BODY_BYTES
    )
    return _WithToken(AuthContextMiddleware(app), tokens, frozenset(hosts))


def principal_of(context: Any) -> str:
    """Whose token a request came with."""
    user = context.request.scope["user"]
    assert isinstance(user, AuthenticatedUser)
    return user.access_token.client_id


class _WithToken:
    """Lets nobody through without a token for tools."""

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The parser leaves what may stand around a value where it is; whoever compares the values below wants it gone.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            if headers.get("host", "") not in self._hosts:
                raise Refusal(421, "wrong_host", "this address is not served here")
            if "origin" in headers and headers["origin"] not in {f"http://{host}" for host in self._hosts}:
                raise Refusal(403, "wrong_origin", "pages of other origins are not served here")
            caller = await self._tokens.identify(headers.get("authorization"))
            caller.require(["tools"])
        except Refusal as refusal:
            body = msgspec.to_builtins(refusal.body())
            await JSONResponse(body, refusal.status, headers=refusal.headers)(scope, receive, send)
            return
        # The token itself goes no further: what stands behind us never sees it.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
        token = AccessToken(token="", client_id=caller.id, scopes=sorted(caller.scopes))
        scope["user"] = AuthenticatedUser(token)
        await self._app(scope, receive, send)
