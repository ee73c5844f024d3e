"""The conversations of the page: which there are, what they are called, and which was open last.

A conversation is a session with its own state; what was said in it is the server's, and what was done in it is the
journal's. Here is only that the page had it open, in which folder, and under what title. Deleting one forgets the words
and the title. What was called in it stays in the journal, as everything that was agreed to does.

    stream page    session or seen, each time one is opened · title · removed
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lastword.card import one_line, responses
from lastword.errors import LastWordError, MayNotForget, did_you_mean
from lastword.journal import Journal, is_visible
from lastword.server import Refusal
from lastword.talk import ApiError, ConnectionLost, Satellite
from lastword.web import history
from lastword.web.endpoints import EmptyBody, Endpoints, PageBody, content
from lastword.web.page_gate import PageRecord

if TYPE_CHECKING:
    from lastword.consent import People
    from lastword.store import Record, Store
    from lastword.web.conversation import ConversationView
    from lastword.web.page_gate import Visitor

_log = logging.getLogger("lastword")

# What a list shows. Older ones are there for `--session`.
MAX_LISTED = 100
# Openings that are read for it. Somebody who opens the same two in turn has fewer conversations than openings.
MAX_READ = 2_000
# Conversations whose words are asked of the server at once, and then so many a second: it counts requests, and those of
# the conversation that is going on must not be refused because somebody searches.
MAX_ASKED = 60
ASKED_PER_SECOND = 5
# What of their words is kept for the next search. Whoever types one letter more asks for the same again.
MAX_KEPT_CHARACTERS = 4_000_000
# A title is a line in a list.
MAX_TITLE = 80
UNNAMED = "Without a title"
# A first word that is longer than this much of a title is cut anywhere.
LEAST_TITLE = 20


class ConversationBody(PageBody, frozen=True):
    """One conversation."""

    id: str


class RenameBody(PageBody, frozen=True):
    """A conversation and its new title."""

    id: str
    title: str


class PageConversations:
    """The list, kept in the store, and what people do with it."""

    def __init__(self, view: ConversationView, folder: str) -> None:
        self._view = view
        self._journal = view.session.journal
        self._store = self._journal.store
        self._api = view.assistant.api
        self._folder = folder
        self._said: dict[tuple[str, float], list[str]] = {}
        """The lines of conversations that were searched, as they were when each was opened last."""
        self._may_ask, self._asked_at = float(MAX_ASKED), time.monotonic()

    def routes(self, at: Endpoints) -> list[Route]:
        view = self._view
        return [
            at.reading("/page/timeline", self._timeline),
            at.reading("/page/earlier", lambda *_: history.earlier(view.session, view.assistant.api, view.begins_with)),
            at.reading("/page/export", self._export),
            at.reading("/page/tokens", lambda *_: history.token_total(view.session)),
            at.reading("/page/content", self._content),
            at.reading("/page/conversations", self._found),
            at.changing("/page/new", EmptyBody, lambda *_: self._go_to(None)),
            at.changing("/page/open", ConversationBody, self._open),
            at.changing("/page/rename", RenameBody, self._rename),
            at.changing("/page/delete", ConversationBody, self._delete),
        ]

    async def _timeline(self, request: Request, visitor: Visitor) -> responses.SessionTimeline:
        own = self._view.session.id
        session_id = await self._visible(request.query_params.get("session") or own)
        running = self._view.alive() if session_id == own else ()
        return await history.timeline(self._view.session, session_id, running)

    async def _export(self, request: Request, visitor: Visitor) -> Response:
        session_id = await self._visible(request.query_params.get("session") or self._view.session.id)
        records = await self._journal.history(session_id)
        if not records:
            raise _unknown_session()
        encode = msgspec.json.Encoder().encode
        lines = b"".join(encode(entry) + b"\n" for entry in history.exported(records))
        name = "".join(char for char in session_id if char.isalnum() or char in "-_")[:60]
        headers = {"Content-Disposition": f'attachment; filename="lastword-{name}.jsonl"'}
        return Response(lines, media_type="application/x-ndjson", headers=headers)

    async def _content(self, request: Request, visitor: Visitor) -> Response:
        call_id, digest = request.query_params.get("call_id", ""), request.query_params.get("digest", "")
        for record in await self._journal.store.read(subject=call_id, limit=1):
            await self._visible(record.stream)
        return await content(self._journal, call_id, digest)

    async def _visible(self, session_id: str) -> str:
        """A session that the person here may look at: their own, nobody's, or of one for whom they may answer."""
        if session_id != self._view.session.id and not await is_visible(self._journal, session_id):
            raise _unknown_session()
        return session_id

    async def _found(self, request: Request, visitor: Visitor) -> responses.ConversationsFound:
        words = request.query_params.get("words", "")[:200]
        return await self.find(words, self._view.session.id)

    async def _open(self, body: ConversationBody, visitor: Visitor) -> None:
        await self.check_known(body.id)
        if body.id != self._view.session.id:
            await self.check_free(body.id)
            await self._go_to(body.id)

    async def _go_to(self, id: str | None) -> None:
        self._view.check_idle()
        session = self._view.session.beside(id)
        await session.open()
        await self._view.go_to(session)
        self.opened(session.id)

    async def _rename(self, body: RenameBody, visitor: Visitor) -> None:
        await self.check_known(body.id)
        self.entitle(body.id, body.title)

    async def _delete(self, body: ConversationBody, visitor: Visitor) -> None:
        await self.check_finished(body.id)
        if body.id == self._view.session.id:
            await self._go_to(None)
        await self.remove(body.id)

    def opened(self, id: str) -> None:
        """A conversation is open from now on."""
        self._note(PageRecord.SESSION if self._folder else PageRecord.SEEN, id, {"folder": self._folder})

    def entitle(self, id: str, title: str) -> None:
        """Give it a title."""
        title = " ".join(title.split())[:MAX_TITLE]
        if not title:
            raise Refusal(400, "no_title", "the title is empty", param="title")
        self._note(PageRecord.TITLE, id, {"title": title})

    async def begin(self, id: str, said: str) -> None:
        """Something is said in it. The first words are its title, until a person gives it another."""
        if not await self._titles(id):
            self.entitle(id, _beginning(said.strip().split("\n", 1)[0]))

    async def find(self, words: str, open_id: str) -> responses.ConversationsFound:
        """Those that there are, newest first; with words, those that have them in their title or in what was said."""
        found: list[responses.ConversationEntry] = []
        wanted = words.casefold().strip()
        unsearched = 0
        for id, at in (await self._times()).items():
            if len(found) >= MAX_LISTED:
                break
            if not await is_visible(self._journal, id):
                continue
            titles = await self._titles(id)
            title = str(msgspec.json.decode(titles[-1].data or b"{}").get("title", "")) if titles else ""
            if not title and id != open_id and not await self._store.read(stream=id, limit=1):
                continue  # Nothing was said or done in it.
            line = ""
            if wanted and wanted not in title.casefold():
                lines = await self._lines(id, at, is_open=id == open_id)
                unsearched += lines is None
                line = _line_with(lines or (), wanted)
                if not line:
                    continue
            shown = one_line(title or UNNAMED, MAX_TITLE)
            found.append(responses.ConversationEntry(id=id, title=shown, at=at, is_open=id == open_id, found=line))
        return responses.ConversationsFound(tuple(found), unsearched)

    async def check_known(self, id: str) -> None:
        """Refuse one that is not in the list."""
        if id not in await self._times() or not await is_visible(self._journal, id):
            raise Refusal(404, "unknown_conversation", "there is no such conversation", param="id")

    async def remove(self, id: str) -> None:
        """Forget what was said, and the title."""
        await self.check_finished(id)
        for record in await self._journal.standing("conversation", id):
            await self._api.delete(record.subject)
        await self._api.delete(id)
        self._note(PageRecord.REMOVED, id, {})
        await self._store.commit()
        try:
            await self._store.forget([record.seq for record in await self._titles(id)])
        except MayNotForget as problem:
            _log.warning("the title of a removed conversation stays in the journal: %s", problem)

    async def check_finished(self, id: str) -> None:
        """Refuse while something of it waits or is in doubt."""
        await self.check_known(id)
        if await _is_unfinished(self._journal, id):
            hint = "open it, and answer what waits"
            raise Refusal(409, "unfinished", "something in this conversation is not finished", hint=hint)

    async def check_free(self, id: str) -> None:
        """Refuse while another program is at work in it: a turn that it goes on with must not be taken back here."""
        if await self._journal.is_used_elsewhere(id):
            hint = "answer its card in the inbox, or wait until it has ended"
            raise Refusal(409, "busy", "another program is at work in this conversation", hint=hint)

    async def _times(self) -> dict[str, float]:
        """When each was opened last, newest first."""
        records = await self._store.read(
            stream=PageRecord.STREAM, kind=(PageRecord.SESSION, PageRecord.SEEN, PageRecord.REMOVED), last=MAX_READ
        )
        times: dict[str, float] = {}
        for record in records:
            times.pop(record.subject, None)
            if record.kind != PageRecord.REMOVED:
                times[record.subject] = record.at / 1e6
        return dict(reversed(times.items()))

    async def _titles(self, id: str) -> list[Record]:
        records = await self._store.read(stream=PageRecord.STREAM, kind=PageRecord.TITLE, subject=id)
        return [record for record in records if record.data is not None]

    async def _lines(self, id: str, at: float, *, is_open: bool) -> list[str] | None:
        """What was said in it; None when the server does not tell now, or was asked enough."""
        if not is_open and (known := self._said.get((id, at))) is not None:
            return known
        now = time.monotonic()
        self._may_ask = min(MAX_ASKED, self._may_ask + (now - self._asked_at) * ASKED_PER_SECOND)
        self._asked_at = now
        if self._may_ask < 1 and not is_open:
            return None
        self._may_ask -= 1
        names = [record.subject for record in await self._journal.standing("conversation", id)]
        try:
            conversation = await self._api.conversation(names[-1] if names else id)
        except (ApiError, ConnectionLost):
            return None
        lines: list[str] = []
        for said in conversation["messages"] if conversation else ():
            content = said.get("content")
            if isinstance(content, str) and said["role"] != "tool_result" and not content.startswith(Satellite.PROGRAM):
                lines += content.split("\n")
        self._said[id, at] = lines
        while self._said and sum(sum(map(len, kept)) for kept in self._said.values()) > MAX_KEPT_CHARACTERS:
            del self._said[next(iter(self._said))]
        return lines

    def _note(self, kind: str, id: str, data: dict[str, str]) -> None:
        self._journal.note(PageRecord.STREAM, kind, id, data)


def _line_with(lines: Iterable[str], wanted: str) -> str:
    """The first line that has these words."""
    for line in lines:
        if (place := line.casefold().find(wanted)) >= 0:
            return one_line(line[max(0, place - 40) : place + 80].strip())
    return ""


async def open_last(store: Store, folder: str, people: People | None = None) -> str | None:
    """The conversation that the page of this folder had open last, unless it was deleted."""
    journal = Journal(store, people=people)
    records = await store.read(stream=PageRecord.STREAM, kind=(PageRecord.SESSION, PageRecord.REMOVED), last=MAX_READ)
    removed = {record.subject for record in records if record.kind == PageRecord.REMOVED}
    for record in reversed(records):
        is_here = (
            record.kind == PageRecord.SESSION and msgspec.json.decode(record.data or b"{}").get("folder") == folder
        )
        if is_here and await is_visible(journal, record.subject):
            return None if record.subject in removed else record.subject
    return None


async def left_unfinished(store: Store, people: People | None = None) -> str | None:
    """The last session of the page, when it still has a card that waits or a call in doubt."""
    last = await store.current(PageRecord.SESSION, stream=PageRecord.STREAM)
    journal = Journal(store, people=people)
    if not last or not await is_visible(journal, last[0].subject):
        return None
    return last[0].subject if await _is_unfinished(journal, last[0].subject) else None


async def _is_unfinished(journal: Journal, id: str) -> bool:
    """Whether something of it waits or is in doubt."""
    return any(facts["session_id"] == id for facts in await journal.waiting()) or bool(await journal.in_doubt(id))


async def begins_session(store: Store, id: str) -> bool:
    """Whether a session of this name would be a new one. Refused when there is one with nearly the same name."""
    opened = await store.read(stream=PageRecord.STREAM, kind=(PageRecord.SESSION, PageRecord.SEEN), last=MAX_READ)
    called = await store.read(kind="conversation", last=MAX_READ)
    known = {record.subject for record in opened} | {record.stream for record in called}
    if id in known or await store.read(stream=id, limit=1):
        return False
    if (hint := did_you_mean(id, known)) is not None:
        raise LastWordError(f"there is no session {id}", place="--session", hint=hint)
    return True


def _beginning(said: str) -> str:
    """What was said, or as many of its words as a title holds, and a sign that there were more."""
    said = " ".join(said.split())
    if len(said) <= MAX_TITLE:
        return said
    kept = said[: MAX_TITLE - 1]
    if said[len(kept)] != " ":
        whole = kept.rpartition(" ")[0]
        kept = whole if len(whole) >= LEAST_TITLE else kept
    return f"{kept.rstrip(' ,;:.')}…"


def _unknown_session() -> Refusal:
    """Also what is said of another person's: whether there is one is nobody else's business."""
    return Refusal(404, "unknown_session", "nothing is remembered of this session")
