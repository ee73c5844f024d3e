"""Opening the page over a session: the room, the gate and what goes on behind them, until it is closed again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from lastword.journal import Journal
from lastword.server.limits import ServerLimits
from lastword.session import Session
from lastword.store import Entry, Store
from lastword.talk.apiclient import Api
from lastword.talk.presets import Way
from lastword.talk.satellite import Satellite
from lastword.web import past
from lastword.web.elsewhere import Elsewhere
from lastword.web.events import Feed
from lastword.web.gate import STREAM, Gate
from lastword.web.room import Room
from lastword.web.routes import Front, Page

SESSION = "page.session"


@asynccontextmanager
async def open_page(
    app: ASGIApp,
    session: Session,
    api: Api,
    ways: Mapping[str, Way],
    chosen: str,
    *,
    model: str,
    is_rehearsal: bool,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    log: Callable[[str], Any] | None = None,
    watches_others: bool = True,
) -> AsyncIterator[tuple[Front, Gate]]:
    """The page beside the API app, and the gate that makes its keys. `watches_others`: shows their questions too."""
    journal = session.journal
    gate = Gate(journal.store)
    await gate.open()
    satellite = Satellite(session, api, hear=lambda heard: room.hear(heard))
    room = Room(satellite, ways, chosen, Feed(), model=model, is_rehearsal=is_rehearsal, clock=journal.clock)
    for item in await past.remembered(session, api):
        room.items[item.id] = item
    elsewhere = watching = None
    if watches_others:
        elsewhere = Elsewhere(room, journal)
        journal.store.append(Entry(STREAM, SESSION, session.id, int(time.time() * 1e6), b"{}"))
        watching = asyncio.ensure_future(elsewhere.watch())
    try:
        page = Page(room, journal, gate, elsewhere, limits=limits)
        yield Front(app, page, hosts=hosts, origins=origins, log=log), gate
    finally:
        if watching is not None:
            watching.cancel()
        await room.close()


async def left_unfinished(store: Store) -> str | None:
    """The last session of the page, when it still has a card that waits or a call in doubt, and nobody is in it."""
    last = await store.read(stream=STREAM, kind=SESSION)
    if not last:
        return None
    id = last[-1].subject
    journal = Journal(store)
    if any(facts["session_id"] == id for facts in await journal.waiting()) or await journal.in_doubt(id):
        return id
    return None
