"""Opening the page over a session: its view of the conversation, its gate and its tasks, until it is closed again."""

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
from lastword.talk.presets import ResolvedPreset
from lastword.talk.satellite import Satellite
from lastword.web import past
from lastword.web.conversation import ConversationView
from lastword.web.events import Feed
from lastword.web.gate import STREAM, PageGate
from lastword.web.other_sessions import OtherSessions
from lastword.web.routes import Front, Page

SESSION = "page.session"


@asynccontextmanager
async def open_page(
    app: ASGIApp,
    session: Session,
    api: Api,
    presets: Mapping[str, ResolvedPreset],
    chosen: str,
    *,
    model: str,
    is_rehearsal: bool,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
    log: Callable[[str], Any] | None = None,
    watches_others: bool = True,
) -> AsyncIterator[tuple[Front, PageGate]]:
    """The page beside the API app, and the gate that makes its keys. `watches_others`: shows their questions too."""
    journal = session.journal
    gate = PageGate(journal.store)
    await gate.open()
    satellite = Satellite(session, api, hear=lambda heard: view.hear(heard))
    view = ConversationView(
        satellite, presets, chosen, Feed(), model=model, is_rehearsal=is_rehearsal, clock=journal.clock
    )
    for item in await past.remembered(session, api):
        view.items[item.id] = item
    others = watching = None
    if watches_others:
        others = OtherSessions(view, journal)
        journal.store.append(Entry(STREAM, SESSION, session.id, int(time.time() * 1e6), b"{}"))
        watching = asyncio.ensure_future(others.watch())
    try:
        page = Page(view, journal, gate, others, limits=limits)
        yield Front(app, page, hosts=hosts, origins=origins, log=log), gate
    finally:
        if watching is not None:
            watching.cancel()
        await view.close()


async def left_unfinished(store: Store) -> str | None:
    """The last session of the page, when it still has a card that waits or a call in doubt."""
    last = await store.standing(SESSION, stream=STREAM)
    if not last:
        return None
    id = last[0].subject
    journal = Journal(store)
    if any(facts["session_id"] == id for facts in await journal.waiting()) or await journal.in_doubt(id):
        return id
    return None
