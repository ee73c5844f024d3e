"""Opening the page in a browser, without its key where others could read it.

Every account of a machine may read the command line of every program. So a browser is not started with the address,
which has the key in it, but with a file that only this person can read and that leads there. The file is gone as soon
as its key was used, when nobody used it for a while, and when the server ends.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lastword.store import make_private
from lastword.web.gate import PageGate

# A browser that has not come by then was closed again, or never came up.
KEY_SECONDS = 120
# They would draw over the chat, and could not run the page.
IN_TERMINALS = ("www-browser", "links", "elinks", "lynx", "w3m", "browsh")


class NoBrowser(Exception):
    """There is no browser that could show the page."""


@contextmanager
def opened(gate: PageGate, address: str, folder: Path, failed: Callable[[], None]) -> Iterator[None]:
    """Open the page of this server in a browser. Raises NoBrowser when there is none; `failed` if it will not start."""
    browser = _find()
    file = folder / f"enter-{secrets.token_hex(8)}.html"

    def remove() -> None:
        file.unlink(missing_ok=True)

    def expire() -> None:
        gate.withdraw(key)
        remove()

    key = gate.make_standing_key(remove)
    _write(file, f"{address}/enter?key={key}")
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


def _find() -> webbrowser.BaseBrowser:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        raise NoBrowser from None
    if Path(getattr(browser, "name", "")).name in IN_TERMINALS:
        raise NoBrowser
    return browser


def _write(file: Path, address: str) -> None:
    make_private(file.parent)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    # The address is ours: a number for the port, and a key of letters, digits, - and _.
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened_file:
        opened_file.write(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={address}"><title>lastword</title></head>'
            f'<body><p><a href="{address}">Open the page</a></p></body></html>'
        )
