"""Opening the page over a session: its view of the conversation, its gate and its tasks, until it is closed again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from lastword.consent import People
from lastword.journal import Journal, is_visible
from lastword.mcp import McpServers
from lastword.server import ServerLimits
from lastword.session import Session
from lastword.store import Store
from lastword.talk import Api, ResolvedPreset, Satellite
from lastword.web import past
from lastword.web.conversation import ConversationView
from lastword.web.events import Feed
from lastword.web.front import Front
from lastword.web.gate import STREAM, PageGate
from lastword.web.model_form import ModelForm
from lastword.web.other_sessions import OtherSessions
from lastword.web.routes import Page
from lastword.web.servers import ServerDesk
from lastword.web.shelf import SESSION, Shelf


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
    folder: str = "",
    model_form: ModelForm | None = None,
    servers: McpServers | None = None,
) -> AsyncIterator[tuple[Front, PageGate]]:
    """The page beside the API app, and the gate that makes its keys. `watches_others`: shows their questions too.

    `folder` is where it was started: the conversation that was open there last is open again the next time.
    `model_form`: for choosing another model, where that is possible. `servers`: the MCP servers that it shows.
    """
    journal = session.journal
    gate = PageGate(journal.store)
    await gate.open()
    satellite = Satellite(session, api, hear=lambda heard: view.hear(heard))
    view = ConversationView(
        satellite, presets, chosen, Feed(), model=model, is_rehearsal=is_rehearsal, clock=journal.clock
    )
    view.model_form = model_form
    view.has_servers = servers is not None
    begun = await past.remembered(session, api)
    view.picture.begin(begun.items)
    view.begins_with = begun.begins_with
    shelf = Shelf(journal, api, folder)
    shelf.opened(session.id)
    others = watching = None
    desk = None if servers is None else ServerDesk(servers, view, journal, gate)
    if watches_others:
        others = OtherSessions(view, journal)
        watching = asyncio.ensure_future(others.watch())
    try:
        page = Page(view, journal, gate, others, api, shelf, limits=limits, desk=desk)
        yield Front(app, page, hosts=hosts, origins=origins, log=log), gate
    finally:
        if watching is not None:
            watching.cancel()
        if desk is not None:
            desk.close()
        await view.close()


async def left_unfinished(store: Store, people: People | None = None) -> str | None:
    """The last session of the page, when it still has a card that waits or a call in doubt."""
    last = await store.standing(SESSION, stream=STREAM)
    if not last:
        return None
    id = last[0].subject
    journal = Journal(store, people=people)
    if not await is_visible(journal, id):
        return None
    if any(facts["session_id"] == id for facts in await journal.waiting()) or await journal.in_doubt(id):
        return id
    return None
