"""This terminal as a place to talk, and `lastword chat --attach`: joining a `lastword up` that runs already."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lastword import terminal
from lastword.errors import LastWordError
from lastword.server import is_loopback
from lastword.store import default_path
from lastword.talk import ApiError, HttpWire
from lastword.web import JoinableServer, find_joinable

# How often a key is looked for: it opens once, and another terminal may be quicker each time.
ATTEMPTS = 5


class Seat:
    """The terminal, and whether a person is at it."""

    def __init__(self, *, plain: bool) -> None:
        self.is_attended = terminal.is_interactive()
        self.plain = plain or terminal.is_dumb() or not (sys.stdin.isatty() and sys.stdout.isatty())

    async def talk(
        self,
        window: terminal.Window,
        *,
        words: Iterable[str] = (),
        farewell: Callable[[str], str],
        until: asyncio.Future[None] | None = None,
    ) -> None:
        """Chat in this window until the person leaves, or `until` is done."""
        talk = terminal.TerminalChat(
            window,
            words=words,
            farewell=farewell,
            can_answer=self.is_attended,
            stdin=sys.stdin,
            screen=sys.stdout,
            cards=sys.stderr,
            plain=self.plain,
        )
        if until is not None:
            until.add_done_callback(lambda done: talk.leave())
        await talk.talk(self._composer(talk))

    def _composer(self, talk: terminal.TerminalChat) -> terminal.Composer:
        if not sys.stdin.isatty():
            return terminal.PipeComposer(sys.stdin)
        if self.plain:
            return terminal.PlainComposer(sys.stdin, sys.stdout)
        return terminal.LineComposer(talk.words, data_file().with_name("chat_history"))


def model_file() -> Path:
    """Where a model that was chosen on the page is kept, with its key."""
    return data_file().with_name("model.json")


def data_file() -> Path:
    """The store that is used when none is configured."""
    return default_path(sys.platform, os.environ, Path.home())


def join_folder() -> Path:
    """Where servers that can be joined publish their keys."""
    return data_file().with_name("open")


def check_alone(others: Mapping[str, object]) -> None:
    """Refuse what would be ignored."""
    if unused := [name for name, value in others.items() if value]:
        raise LastWordError(
            "joins a conversation as it is; it takes no tools, preset, session, store or configuration",
            place="--attach",
            hint=f"leave out {', '.join(unused)}",
        )


async def join(named: str, *, plain: bool) -> None:
    """Chat in the conversation of a server that runs already."""
    wire, window = await _enter(named)
    try:
        await Seat(plain=plain).talk(
            window,
            words=[f"Joined the conversation at {wire.url}. What you say and answer shows in its other windows too."],
            farewell=lambda id: "Left. The conversation goes on; `lastword chat --attach` comes back to it.",
        )
    finally:
        await wire.close()


async def _enter(named: str) -> tuple[HttpWire, terminal.Window]:
    parts = urlsplit(named)
    key = parse_qs(parts.query).get("key", [""])[0]
    for attempt in range(ATTEMPTS):
        found = JoinableServer(f"{parts.scheme}://{parts.netloc}", key, "") if key else _find(named)
        wire = HttpWire(found.address)
        host = urlsplit(found.address).hostname or ""
        if parts.scheme != "https" and not is_loopback(host):
            raise LastWordError(f"{host} is another machine, and http would show it everything", place="--attach")
        try:
            return wire, await terminal.Window.enter(wire, found.key)
        except LastWordError as problem:
            await wire.close()
            # Another terminal took the key from under our hands; there is a new one by now.
            if key or attempt == ATTEMPTS - 1 or not isinstance(problem, ApiError) or problem.status != 403:
                raise
    raise AssertionError("the last attempt raises")


def _find(named: str) -> JoinableServer:
    """The server to join: at an address, or of this folder, or the only one."""
    known = find_joinable(join_folder())
    if named:
        known = [found for found in known if found.address == named.rstrip("/").removesuffix("/v1")]
        if not known:
            raise LastWordError(
                f"no `lastword up` of yours runs at {named}",
                place="--attach",
                hint="take the address with a key that the page makes under Settings",
            )
    chosen = find_here(known) or known
    if not chosen:
        raise LastWordError("no `lastword up` of yours runs", place="--attach", hint="start one: lastword up")
    if len(chosen) > 1:
        listed = ", ".join(f"{found.address} ({found.folder})" for found in chosen)
        raise LastWordError(f"several of yours run: {listed}", place="--attach", hint="name one: --attach URL")
    return chosen[0]


def find_here(known: Iterable[JoinableServer]) -> list[JoinableServer]:
    """Those that were started in this folder."""
    return [found for found in known if found.folder == str(Path.cwd())]
