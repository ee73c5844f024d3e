"""What the memory holds, for the page: the conversation as it was before a restart, and the timeline of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from lastword.card.face import one_line
from lastword.card.items import ExportedRecord, Item, MessageItem, ScriptItem, SessionSpan, SessionTimeline
from lastword.display import visible
from lastword.journal import Journal
from lastword.journal.records import data_of
from lastword.server.scripts import is_script
from lastword.session import Session
from lastword.store import Record
from lastword.talk.apiclient import Api
from lastword.talk.feedback import PROGRAM
from lastword.tools.registry import ToolRegistry
from lastword.web.story import Story
from lastword.wire.protocol import ToolRequest, parse_tool_request

# What is read for a picture that shows the last few hundred calls. What is older is in the timeline, or for `show`.
MAX_RECORDS = 2_000
# What the list of sessions shows. Older ones are there for `lastword show`.
MAX_SESSIONS = 50
# A timeline longer than this is for the export.
MAX_CALLS = 1_000

_OF_CALLS = frozenset({"asked", "answered", "started", "reported", "finished", "changed_file", "undone"})


def stories(records: Iterable[Record], registry: ToolRegistry) -> list[Story]:
    """The calls of a session, in the order in which they began."""
    found: dict[str, Story] = {}
    for record in records:
        if record.kind in _OF_CALLS:
            found.setdefault(record.subject, Story.begin(record.subject)).add(record)
    for story in found.values():
        # The journal has the names of tools that asked; of the others it has ids.
        tool = registry.find(story.item.tool) if story.item.name == story.item.tool else None
        story.introduce(None if tool is None else tool.manifest)
    return [story for story in found.values() if story.item.tool]


def scripts(records: Iterable[Record]) -> list[ScriptItem]:
    """The scripts of a session, in the order in which they began."""
    found: dict[str, ScriptItem] = {}
    for record in records:
        data = data_of(record)
        if record.kind == "run_started" and data:
            name = one_line(data["name"]) if data["name"] else None
            text, at = visible(data["text"]), record.at / 1e6
            found[record.subject] = ScriptItem(id=record.subject, name=name, text=text, status="left", at=at)
        elif record.kind == "run_finished" and data and record.subject in found:
            lines = tuple(visible(line) for line in data["output"])
            found[record.subject] = replace(
                found[record.subject],
                status=data["status"],
                error=visible(data["error"] or ""),
                lines=lines,
                printed=len(lines),
            )
    return list(found.values())


async def remembered(session: Session, api: Api) -> list[Item]:
    """A conversation with its calls and scripts, as a window showed it before the program was started again."""
    records = await session.journal.recent(session.id, MAX_RECORDS)
    if not records:
        return []
    named = [record.subject for record in records if record.kind == "conversation"]
    calls = [story.item for story in stories(records, session.registry)]
    items: list[tuple[float, Item]] = [(call.asked_at or call.started_at or 0, call) for call in calls]
    items += [(script.at, script) for script in scripts(records)]
    conversation = await api.conversation(named[-1] if named else session.id)
    for place, said in enumerate(conversation["messages"] if conversation else ()):
        if (message := _message(said, f"p{place}")) is not None:
            items.append((message.at, message))
    return [item for _, item in sorted(items, key=lambda entry: entry[0])]


async def timeline(session: Session, session_id: str, running: Iterable[str]) -> SessionTimeline:
    """The calls and runs of this or an earlier session with their times. What is `running` is not in doubt."""
    records = await session.journal.history(session_id)
    calls = stories(records, session.registry)
    alive = set(running)
    for story in calls:
        if story.item.status in ("doubt", "left") and story.item.id in alive:
            story.resumed()
    return SessionTimeline(
        session=session_id,
        own=session.id,
        calls=tuple(story.item for story in calls[-MAX_CALLS:]),
        runs=tuple(scripts(records)),
        left_out=max(0, len(calls) - MAX_CALLS),
        sessions=tuple(await sessions(session.journal)),
    )


async def sessions(journal: Journal) -> list[SessionSpan]:
    """The sessions that called something, newest first."""
    found: dict[str, SessionSpan] = {}
    for kind in ("started", "asked"):
        for record in await journal.store.read(kind=kind, last=MAX_RECORDS):
            at = record.at / 1e6
            known = found.get(record.stream, SessionSpan(record.stream, at, at))
            found[record.stream] = SessionSpan(record.stream, min(known.first, at), max(known.last, at))
    return sorted(found.values(), key=lambda span: span.last, reverse=True)[:MAX_SESSIONS]


def exported(records: Sequence[Record]) -> Iterator[ExportedRecord]:
    """The records of a session, whole, for a file."""
    for record in records:
        yield ExportedRecord(
            seq=record.seq,
            session=record.stream,
            kind=record.kind,
            subject=record.subject,
            at=record.at / 1e6,
            data=data_of(record),
            digest=record.digest,
        )


def _message(said: dict[str, Any], id: str) -> MessageItem | None:
    """A message of the conversation, unless it is a request, a script or a result: those are shown as what they are."""
    content = said.get("content")
    if not isinstance(content, str) or not content.strip() or said["role"] == "tool_result":
        return None
    if said["role"] == "user":
        is_ours, text = content.startswith(PROGRAM), visible(content.removeprefix(PROGRAM).strip())
        return MessageItem(id=id, by="lastword" if is_ours else "you", text=text, at=said["created"])
    if isinstance(parse_tool_request(content), ToolRequest) or is_script(content):
        return None
    return MessageItem(id=id, by="assistant", text=visible(content.strip("\n")), at=said["created"] + 0.5)
