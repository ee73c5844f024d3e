"""Who may come in: the one-time keys, the cookies, the tokens, and the headers of every answer.

`lastword up` prints an address with a key that works once. It becomes a cookie that scripts cannot read and other sites
cannot send. The cookie lets a window read; to change something it also shows a token that only a page of ours could
have read. The store keeps digests of cookies, so that a window outlives the program and a stolen copy of the
store opens nothing. A terminal is a window like any other, and comes in the same way.

Two keys lie in files that only the person can read: one for their own programs, which a `JoinFile` renews whenever it
was used, and one for the browser that is opened for them (`open_browser`). Every account of a machine may read the
command line of every program, so no browser is started with a key in its address.

Host and Origin are checked before anything comes here (server/middleware.py).
"""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import logging
import os
import secrets
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from lastword.consent import Answerer
from lastword.server import Refusal, is_loopback
from lastword.store import Entry, Store, make_private

if TYPE_CHECKING:
    from lastword.card import views


class PageRecord:
    """The kinds of records that the page writes, all in one stream of its own."""

    STREAM = "page"
    WINDOW = "page.window"
    """A cookie that lets a window in."""
    CLOSED = "page.closed"
    """No cookie until now counts any more."""
    SESSION = "page.session"
    """A conversation was opened."""
    SEEN = "page.seen"
    """The same for a chat in a terminal, to which no `up` comes back by itself."""
    TITLE = "page.title"
    REMOVED = "page.removed"


# A window that was not used for a month has to be opened with a new key.
COOKIE_SECONDS = 30 * 24 * 3600
# Keys that were made and not used: the printed one, and one for each further window or phone.
MAX_KEYS = 20
TOKEN_HEADER = "x-lastword-token"


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
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


class Visitor(msgspec.Struct, frozen=True):
    """A window of ours that asks for something."""

    name: str
    """Which one: made of its cookie, and no secret."""
    surface: views.Surface
    token: str
    """What it has to show to change something."""

    @property
    def by(self) -> Answerer:
        return Answerer.person(where=self.surface)


class KnownWindow(msgspec.Struct, frozen=True):
    """What is remembered of a cookie."""

    until: float
    surface: views.Surface


class PageGate:
    """The keys, the cookies and the checks."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._keys: list[str] = []
        self._used: list[str] = []
        """Digests of keys that have opened the page. Nothing is decided by them but words."""
        self._standing: dict[str, Callable[[], None]] = {}
        """Keys that lie where only the person's own programs find them, and who replaces one that was used."""
        self._windows: dict[str, KnownWindow] = {}
        """By the digests of their cookies."""
        self.closed = asyncio.Event()
        """Set when the windows that are in now are let in no longer. Who comes in afterwards gets another one."""

    async def open(self) -> None:
        """Remember the windows of earlier runs. Tampered when the store did not write them."""
        records = await self._store.current(PageRecord.WINDOW, stream=PageRecord.STREAM)
        await self._store.prove(records)  # Whoever wrote one into the file would come in with a cookie of their own.
        for record in records:
            # Those of earlier versions do not say what they are: they are pages.
            surface: views.Surface = "terminal" if b'"terminal"' in (record.data or b"") else "page"
            self._windows[record.subject] = KnownWindow(record.at / 1e6 + COOKIE_SECONDS, surface)

    def make_key(self) -> str:
        """A key that opens the page once."""
        key = secrets.token_urlsafe(24)
        self._keys = [*self._keys[-MAX_KEYS + 1 :], _digest(key)]
        return key

    def make_standing_key(self, used: Callable[[], None]) -> str:
        """A key that opens once as well, is not crowded out by others, and says when it was used."""
        key = secrets.token_urlsafe(24)
        self._standing[_digest(key)] = used
        return key

    def withdraw(self, key: str) -> None:
        """Let a standing key that nobody used open nothing any more."""
        self._standing.pop(_digest(key), None)

    async def enter(self, key: str, surface: views.Surface = "page") -> str | None:
        """Turn a key into a cookie; None when it was used, or never was one."""
        given = _digest(key)
        found = [known for known in (*self._keys, *self._standing) if hmac.compare_digest(known, given)]
        if not found:
            return None
        self._used = [*self._used[-MAX_KEYS + 1 :], found[0]]
        if (used := self._standing.pop(found[0], None)) is not None:
            used()
        else:
            self._keys.remove(found[0])
        cookie = secrets.token_urlsafe(32)
        now = self._clock()
        facts = msgspec.json.encode({"surface": surface})
        await self._store.commit(Entry(PageRecord.STREAM, PageRecord.WINDOW, _digest(cookie), int(now * 1e6), facts))
        self._windows[_digest(cookie)] = KnownWindow(now + COOKIE_SECONDS, surface)
        return cookie

    def was_used(self, key: str) -> bool:
        """Whether this opened the page before, in this run, as far as that is remembered."""
        given = _digest(key)
        return any(hmac.compare_digest(known, given) for known in self._used)

    def admit(self, surface: views.Surface) -> str:
        """A cookie for a window of this very program. It ends with the program, so no store needs to know it."""
        cookie = secrets.token_urlsafe(32)
        self._windows[_digest(cookie)] = KnownWindow(self._clock() + COOKIE_SECONDS, surface)
        return f"{INSIDE}={cookie}"

    async def close_windows(self) -> None:
        """Let no cookie count any more, in this run and in later ones."""
        await self._store.commit(Entry(PageRecord.STREAM, PageRecord.CLOSED, "", int(self._clock() * 1e6), b"{}"))
        self._windows.clear()
        self.closed.set()
        self.closed = asyncio.Event()

    def knows(self, request: Request) -> bool:
        """Whether this is one of our windows."""
        return self._visitor(request) is not None

    def check_reading(self, request: Request) -> Visitor:
        """Let a window of ours read; says which one it is, and the token that it needs for changing something."""
        if is_from_elsewhere(request):
            raise Refusal(403, "site_refused", "other sites may not talk to the page")
        visitor = self._visitor(request)
        if visitor is None:
            raise Refusal(
                401,
                "no_key",
                "this window has no key to the page",
                hint="open the address that `lastword up` printed, or let an open window make a new one",
            )
        return visitor

    def check_changing(self, request: Request) -> Visitor:
        """Let a window of ours change something, when our own page asks."""
        visitor = self.check_reading(request)
        if not hmac.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), visitor.token.encode()):
            raise Refusal(
                403, "no_token", "the request does not carry this window's token", hint="reload the page and try again"
            )
        return visitor

    def _visitor(self, request: Request) -> Visitor | None:
        cookie = request.cookies.get(cookie_name(request))
        known = None if cookie is None else self._windows.get(_digest(cookie))
        if cookie is None or known is None or known.until <= self._clock():
            return None
        return Visitor(_digest(f"name of {cookie}")[:12], known.surface, _token(cookie))

    def set_cookie(self, request: Request, cookie: str) -> str:
        """The header that gives a window its cookie.

        Under another name than this machine's own it came through a proxy, and over a network goes by TLS alone. The
        proxy's word for that is not needed: a browser that came without TLS does not keep such a cookie.
        """
        secure = "" if is_loopback(request.url.hostname or "") else "; Secure"
        return f"{cookie_name(request)}={cookie}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}"


INSIDE = "lastword_0"
"""The cookie's name where no port is in between."""


def is_from_elsewhere(request: Request) -> bool:
    """Whether another site, or a file, led a browser here: it then holds our cookie back until we lead it on."""
    return request.headers.get("sec-fetch-site", "none").encode() not in _OWN


def cookie_name(request: Request) -> str:
    """Browsers keep cookies by host and not by port: two programs on one machine must not take each other's."""
    server = request.scope.get("server")
    return f"lastword_{server[1]}" if server else INSIDE


def check_surface(named: str) -> views.Surface:
    """The kind of window that a request names."""
    if named == "page":
        return "page"
    if named == "terminal":
        return "terminal"
    raise Refusal(400, "no_such_window", "a window is a page or a terminal", param="as")


def _token(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"lastword page token", sha256).hexdigest()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


_log = logging.getLogger("lastword")


class JoinableServer(msgspec.Struct, frozen=True):
    """A server that can be joined."""

    address: str
    key: str
    folder: str
    """Where it was started."""


class JoinFile:
    """The file of one server."""

    def __init__(self, join_folder: Path, address: str, gate: PageGate, folder: Path) -> None:
        self._file = join_folder / f"{address.rpartition(':')[2]}.json"
        self._address = address
        self._gate = gate
        self._folder = folder
        self._held: int | None = None

    @contextmanager
    def published(self) -> Iterator[None]:
        """Publish the file, with a key in it. Where it cannot be written, the page has addresses all the same."""
        self._renew()
        try:
            yield
        finally:
            if self._held is not None:
                with suppress(OSError):
                    self._file.unlink()
                os.close(self._held)

    def _renew(self) -> None:
        key = self._gate.make_standing_key(self._renew)
        try:
            self._write(key)
        except OSError as problem:
            _log.warning("`lastword chat --attach` will not find this server: %s", problem)

    def _write(self, key: str) -> None:
        make_private(self._file.parent)
        # Complete and locked before it gets the name under which it is looked for.
        new = self._file.with_suffix(".new")
        new.unlink(missing_ok=True)
        held = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        os.write(held, msgspec.json.encode(JoinableServer(self._address, key, str(self._folder))))
        os.replace(new, self._file)
        if self._held is not None:
            os.close(self._held)
        self._held = held


def find_joinable(join_folder: Path) -> list[JoinableServer]:
    """The servers of this person that live now."""
    files = sorted(join_folder.glob("*.json")) if join_folder.is_dir() else []
    return [found for file in files if (found := _read_join_file(file)) is not None]


def _read_join_file(file: Path) -> JoinableServer | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as opened:
        facts = os.fstat(fd)
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            return None  # Another user could have written it, or read its key.
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(msgspec.MsgspecError):
                return msgspec.json.decode(opened.read(), type=JoinableServer)
    return None


# A browser that has not come by then was closed again, or never came up.
KEY_SECONDS = 120
# They would draw over the chat, and could not run the page.
IN_TERMINALS = ("www-browser", "links", "elinks", "lynx", "w3m", "browsh")


class NoBrowser(Exception):
    """There is no browser that could show the page."""


@contextmanager
def open_browser(gate: PageGate, address: str, folder: Path, failed: Callable[[], None]) -> Iterator[None]:
    """Open the page of this server in a browser. Raises NoBrowser when there is none; `failed` if it will not start."""
    browser = _find_browser()
    file = folder / f"enter-{secrets.token_hex(8)}.html"

    def remove() -> None:
        file.unlink(missing_ok=True)

    def expire() -> None:
        gate.withdraw(key)
        remove()

    key = gate.make_standing_key(remove)
    _write_entry_page(file, f"{address}/enter?key={key}")
    loop = asyncio.get_running_loop()
    overdue = loop.call_later(KEY_SECONDS, expire)

    def start() -> None:
        # Some browsers come back when they are closed, so this has a thread for itself, which keeps nothing alive.
        try:
            is_started = browser.open(file.resolve().as_uri())
        except (webbrowser.Error, OSError):
            is_started = False
        if not is_started and not loop.is_closed():
            loop.call_soon_threadsafe(failed)

    threading.Thread(target=start, daemon=True, name="lastword browser").start()
    try:
        yield
    finally:
        overdue.cancel()
        expire()


def _find_browser() -> webbrowser.BaseBrowser:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        raise NoBrowser from None
    if Path(getattr(browser, "name", "")).name in IN_TERMINALS:
        raise NoBrowser
    return browser


def _write_entry_page(file: Path, address: str) -> None:
    make_private(file.parent)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    # The address is ours: a number for the port, and a key of letters, digits, - and _.
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened_file:
        opened_file.write(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={address}"><title>lastword</title></head>'
            f'<body><p><a href="{address}">Open the page</a></p></body></html>'
        )
