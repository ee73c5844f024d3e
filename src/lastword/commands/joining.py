"""`lastword chat --attach`: finding a `lastword up` that runs, and coming in by the same door as a browser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lastword.commands.seat import Seat, data_file
from lastword.errors import LastWordError
from lastword.server import is_loopback
from lastword.talk import ApiError, HttpWire
from lastword.terminal import Window
from lastword.web import JoinableServer, find_joinable

# How often a key is looked for: it opens once, and another terminal may be quicker each time.
ATTEMPTS = 5


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


async def _enter(named: str) -> tuple[HttpWire, Window]:
    parts = urlsplit(named)
    key = parse_qs(parts.query).get("key", [""])[0]
    for attempt in range(ATTEMPTS):
        found = JoinableServer(f"{parts.scheme}://{parts.netloc}", key, "") if key else _find(named)
        wire = HttpWire(found.address)
        host = urlsplit(found.address).hostname or ""
        if parts.scheme != "https" and not is_loopback(host):
            raise LastWordError(f"{host} is another machine, and http would show it everything", place="--attach")
        try:
            return wire, await Window.enter(wire, found.key)
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
