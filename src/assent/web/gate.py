"""Who may come in, and what every answer says about itself.

`assent up` prints an address with a key that works once. It becomes a cookie that scripts cannot read and other sites
cannot send. Whoever has the cookie can read; who wants to change something also shows a token that only a page of ours
could have read. The store keeps digests of cookies, so that a window outlives the program and a stolen copy of the
store opens nothing.

Host and Origin are checked before anything comes here (server/door.py).
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from starlette.requests import Request

from assent.server.refusal import Refusal
from assent.store import Entry, Store

STREAM = "page"
WINDOW = "page.window"
CLOSED = "page.closed"

# A window that nobody looked into for a month is somebody else's by now.
COOKIE_SECONDS = 30 * 24 * 3600
# Keys that were made and not used: the printed one, and one for each further window or phone.
MAX_KEYS = 20
TOKEN_HEADER = "x-assent-token"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

# Other sites, other ports of this machine, and frames. A browser says so, and a page cannot make it lie.
_OWN = (b"same-origin", b"none")


class Gate:
    """The keys, the cookies and the checks."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._keys: list[str] = []
        self._windows: dict[str, float] = {}
        """The digests of cookies, and until when they are good."""

    async def open(self) -> None:
        """Remember the windows of earlier runs."""
        for record in await self._store.read(stream=STREAM):
            if record.kind == CLOSED:
                self._windows.clear()
            elif record.kind == WINDOW:
                self._windows[record.subject] = record.at / 1e6 + COOKIE_SECONDS

    def make_key(self) -> str:
        """A key that opens the page once."""
        key = secrets.token_urlsafe(24)
        self._keys = [*self._keys[-MAX_KEYS + 1 :], _digest(key)]
        return key

    async def enter(self, key: str) -> str | None:
        """Turn a key into a cookie; None when it was used, or never was one."""
        given = _digest(key)
        found = [known for known in self._keys if hmac.compare_digest(known, given)]
        if not found:
            return None
        self._keys.remove(found[0])
        cookie = secrets.token_urlsafe(32)
        now = self._clock()
        await self._store.commit(Entry(STREAM, WINDOW, _digest(cookie), int(now * 1e6), b"{}"))
        self._windows[_digest(cookie)] = now + COOKIE_SECONDS
        return cookie

    async def close_windows(self) -> None:
        """Let no cookie count any more, in this run and in later ones."""
        await self._store.commit(Entry(STREAM, CLOSED, "", int(self._clock() * 1e6), b"{}"))
        self._windows.clear()

    def knows(self, request: Request) -> bool:
        """Whether this is one of our windows."""
        cookie = request.cookies.get(cookie_name(request))
        return cookie is not None and self._windows.get(_digest(cookie), 0) > self._clock()

    def check_reading(self, request: Request) -> str:
        """Let a window of ours read; gives back the token that it needs for changing something."""
        _check_site(request)
        if not self.knows(request):
            raise Refusal(
                401,
                "no_key",
                "this window has no key to the page",
                hint="open the address that `assent up` printed, or let an open window make a new one",
            )
        return _token(request.cookies[cookie_name(request)])

    def check_changing(self, request: Request) -> None:
        """Let a window of ours change something, when our own page asks."""
        expected = self.check_reading(request)
        if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), expected.encode()):
            raise Refusal(
                403, "no_token", "the request does not carry this window's token", hint="reload the page and try again"
            )

    def set_cookie(self, request: Request, cookie: str) -> str:
        """The header that gives a window its cookie."""
        return f"{cookie_name(request)}={cookie}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict"


def cookie_name(request: Request) -> str:
    """Browsers keep cookies by host and not by port: two programs on one machine must not take each other's."""
    server = request.scope.get("server")
    return f"assent_{server[1] if server else 0}"


def _check_site(request: Request) -> None:
    site = request.headers.get("sec-fetch-site")
    if site is not None and site.encode() not in _OWN:
        raise Refusal(403, "site_refused", "other sites may not talk to the page")


def _token(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"assent page token", sha256).hexdigest()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
