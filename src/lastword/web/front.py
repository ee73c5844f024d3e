"""The page and the API behind one address."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword.server import Middleware, Refusal
from lastword.web.routes import Page


class Front:
    """The page and the API behind one address. Each is checked by itself."""

    def __init__(
        self,
        api: ASGIApp,
        page: Page,
        *,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        log: Callable[[str], Any] | None = None,
    ) -> None:
        self._api = api
        self.page = page
        router = Router(page.routes(), default=_unknown_path, redirect_slashes=False)
        self._checked = Middleware(router, hosts=hosts, origins=origins, log=log or (lambda line: None))

    def end_streams(self) -> None:
        """Let every window go: a server that stops waits for its connections."""
        self.page.end_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = scope["type"] == "http" and (path in ("/", "/enter") or path.startswith(("/page/", "/assets/")))
        await (self._checked if is_page else self._api)(scope, receive, send)


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal(404, "unknown_path", "there is nothing here")
