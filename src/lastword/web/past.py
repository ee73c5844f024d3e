"""What the memory holds, for the page: the conversation as it was before a restart, and the timeline of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lastword.card.face import one_line
from lastword.display import visible
from lastword.journal import Journal, data_of
from lastword.server.scripts import is_script
from lastword.session import Session
from lastword.store import Record
from lastword.talk.apiclient import Api
from lastword.talk.feedback import PROGRAM
from lastword.tools.registry import ToolRegistry
from lastword.web.conversation import Item, Message, Script
from lastword.web.story import Story, run_of
from lastword.wire.protocol import ToolRequest, parse_tool_request

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
            story = found.setdefault(record.subject, Story(id=record.subject, run=run_of(record.subject)))
            story.add(record)
    for story in found.values():
        # The journal has the names of tools that asked; of the others it has ids.
        tool = registry.find(story.tool) if story.name == story.tool else None
        story.introduce(None if tool is None else tool.manifest)
    return [story for story in found.values() if story.tool]


def scripts(records: Iterable[Record]) -> list[Script]:
    """The scripts of a session, in the order in which they began."""
    found: dict[str, Script] = {}
    for record in records:
        data = data_of(record)
        if record.kind == "run_started" and data:
            name = one_line(data["name"] or "a script")
            found[record.subject] = Script(
                id=record.subject, name=name, text=visible(data["text"]), status="left", at=record.at / 1e6
            )
        elif record.kind == "run_finished" and data and record.subject in found:
            script = found[record.subject]
            script.status, script.error = data["status"], visible(data["error"] or "")
            script.lines = [visible(line) for line in data["output"]]
            script.printed = len(script.lines)
    return list(found.values())


async def remembered(session: Session, api: Api) -> list[Item]:
    """A conversation with its calls and scripts, as a window showed it before the program was started again."""
    records = await session.journal.history(session.id)
    if not records:
        return []
    named = [record.subject for record in records if record.kind == "conversation"]
    items: list[tuple[float, Item]] = [
        (story.asked_at or story.started_at or 0, story) for story in stories(records, session.registry)
    ]
    items += [(script.at, script) for script in scripts(records)]
    conversation = await api.conversation(named[-1] if named else session.id)
    for place, said in enumerate(conversation["messages"] if conversation else ()):
        if (message := _message(said, f"p{place}")) is not None:
            items.append((message.at, message))
    return [item for _, item in sorted(items, key=lambda entry: entry[0])]


async def timeline(session: Session, session_id: str, running: Iterable[str]) -> dict[str, Any]:
    """The calls and runs of this or an earlier session with their times. What is `running` is not in doubt."""
    records = await session.journal.history(session_id)
    calls = stories(records, session.registry)
    alive = set(running)
    for story in calls:
        if story.status in ("doubt", "left") and story.id in alive:
            story.status = "running" if story.started_at else "waiting"
    return {"session": session_id, "calls": calls[-MAX_CALLS:], "left_out": max(0, len(calls) - MAX_CALLS),
            "runs": scripts(records)}  # fmt: skip


async def sessions(journal: Journal) -> list[dict[str, Any]]:
    """The sessions that called something, newest first."""
    found: dict[str, dict[str, Any]] = {}
    for kind in ("started", "asked"):
        for record in await journal.store.read(kind=kind):
            known = found.setdefault(record.stream, {"id": record.stream, "from": record.at / 1e6, "to": 0.0})
            known["from"] = min(known["from"], record.at / 1e6)
            known["to"] = max(known["to"], record.at / 1e6)
    return sorted(found.values(), key=lambda entry: entry["to"], reverse=True)[:MAX_SESSIONS]


def exported(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The records of a session, whole, for a file."""
    return [
        {
            "seq": record.seq,
            "session": record.stream,
            "kind": record.kind,
            "subject": record.subject,
            "at": record.at / 1e6,
            "data": data_of(record),
            "digest": record.digest,
        }
        for record in records
    ]


def _message(said: dict[str, Any], id: str) -> Message | None:
    """A message of the conversation, unless it is a request, a script or a result: those are shown as what they are."""
    content = said.get("content")
    if not isinstance(content, str) or not content.strip() or said["role"] == "tool_result":
        return None
    if said["role"] == "user":
        by, text = ("lastword", content.removeprefix(PROGRAM)) if content.startswith(PROGRAM) else ("you", content)
        return Message(id=id, by="you" if by == "you" else "lastword", text=visible(text.strip()), at=said["created"])
    if isinstance(parse_tool_request(content), ToolRequest) or is_script(content):
        return None
    return Message(id=id, by="assistant", text=visible(content.strip("\n")), at=said["created"] + 0.5)
