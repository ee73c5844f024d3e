"""What the memory holds: a conversation as it was before a restart, the timeline of a session, and its tokens.

    stream of the session    tokens_used · went_back (talk/satellite.py)

A count of tokens belongs to the turn that ended with the answer. When a person goes back to an earlier message, the
turns after it do not count any more, and their numbers are given out again: the counts are no longer of answers that
are shown. The tokens were spent all the same, and stay in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from lastword.card import responses, views, visible
from lastword.journal import Journal, data_of
from lastword.server import is_script
from lastword.talk import Api, Ended, Satellite
from lastword.web.call_item import CallItemBuilder
from lastword.web.shared_items import MAX_ITEMS, goes_on, printed_lines, script_begun, script_ended
from lastword.wire import ToolRequest, parse_tool_request

if TYPE_CHECKING:
    from lastword.session import Session
    from lastword.store import Record
    from lastword.tools import ToolRegistry

TOKENS_USED = "tokens_used"

# What the first picture shows: a few screens. It costs the same however long the conversation was.
FIRST_ITEMS = 60
FIRST_RECORDS = 400
# What is read when somebody asks for what was earlier. What is older still is in the timeline, or for `show`.
MAX_RECORDS = 2_000
# What the list of sessions shows. Older ones are there for `lastword show`.
MAX_SESSIONS = 50
# A timeline longer than this is for the export.
MAX_CALLS = 1_000

_OF_CALLS = frozenset(
    {
        "asked", "forbidden", "answered", "started", "handed_over", "reported", "finished", "handed_back", "departed",
        "changed_file", "undone",
    }
)  # fmt: skip


def calls_of(records: Iterable[Record], registry: ToolRegistry) -> list[CallItemBuilder]:
    """The calls of a session, in the order in which they began."""
    found: dict[str, CallItemBuilder] = {}
    for record in records:
        if record.kind in _OF_CALLS:
            found.setdefault(record.subject, CallItemBuilder.begin(record.subject)).add(record)
    for call in found.values():
        # The journal has the names of tools that asked; of the others it has ids.
        tool = registry.find(call.item.tool) if call.item.name == call.item.tool else None
        call.introduce(None if tool is None else tool.manifest)
    return [call for call in found.values() if call.item.tool]


def scripts_of(records: Iterable[Record]) -> list[views.ScriptItem]:
    """The scripts of a session, in the order in which they began."""
    found: dict[str, views.ScriptItem] = {}
    for record in records:
        data = data_of(record)
        if record.kind == "run_started" and data:
            begun = script_begun(record.subject, data["name"], data["text"], record.at / 1e6)
            found[record.subject] = replace(begun, status="left")
        elif record.kind == "run_finished" and data and record.subject in found:
            script = script_ended(found[record.subject], data["status"], data["error"])
            lines = printed_lines(data["output"])
            found[record.subject] = replace(script, lines=lines, printed=len(data["output"]))
    return list(found.values())


class LastPart(NamedTuple):
    """The end of a conversation, and where it begins."""

    items: list[views.Item]
    begins_with: str | None
    """The item before which there was more. None when there was nothing before."""


async def remembered(session: Session, api: Api) -> LastPart:
    """The end of a conversation, as a window showed it before the program was started again, and all that is open."""
    items, is_all = await _conversation(session, api, FIRST_RECORDS)
    older, newest = items[:-FIRST_ITEMS], items[-FIRST_ITEMS:]
    begins_with = None if (is_all and not older) or not newest else newest[0].id
    return LastPart([*(item for item in older if _is_open(item)), *newest], begins_with)


async def earlier(session: Session, api: Api, begins_with: str | None) -> responses.EarlierItems:
    """What was before this item and is over, as far as a window shows it at all."""
    items, _ = await _conversation(session, api, MAX_RECORDS)
    end = next((place for place, item in enumerate(items) if item.id == begins_with), 0)
    return responses.EarlierItems(tuple(item for item in items[:end] if not _is_open(item))[-MAX_ITEMS:])


async def _conversation(session: Session, api: Api, most: int) -> tuple[list[views.Item], bool]:
    """The items of about so many records, in the order of their times, and whether those are all."""
    records = await session.journal.recent(session.id, most)
    if not records:
        return [], True
    named = [record.subject for record in records if record.kind == "conversation"]
    calls = [call.item for call in calls_of(records, session.registry)]
    items: list[views.Item] = [*calls, *scripts_of(records)]
    conversation_id = named[-1] if named else session.id
    conversation = await api.conversation(conversation_id)
    messages = conversation["messages"] if conversation else []
    used = _by_turn(records, conversation_id, Satellite.TOOLS_USED, "tools")
    counted = _by_turn(records, conversation_id, TOKENS_USED, "tokens")
    first = max(0, len(messages) - most)
    for place, said in enumerate(messages[first:], first):
        if (message := _message(said, f"p{place}")) is not None:
            if message.by == "assistant":
                turn = said["turn"]
                words = Ended.used_in_words(used[turn]) if turn in used else ""
                message = replace(message, used=words, tokens=counted.get(turn))
            items.append(message)
    items.sort(key=_time)
    # Where calls of a while were left out, so are the messages of that while: they would stand there without them.
    oldest = min(
        (_time(item) for item in items if not isinstance(item, views.MessageItem) and not _is_open(item)), default=0
    )
    is_all = len(records) < most and first == 0
    return items if is_all else [item for item in items if _is_open(item) or _time(item) >= oldest], is_all


def _is_open(item: views.Item) -> bool:
    """Whether it may go on: also a question whose program is gone, which is put again when the session goes on."""
    return goes_on(item) or (isinstance(item, views.CallItem) and item.status == "left")


def _time(item: views.Item) -> float:
    """When it began. A call that was neither asked about nor started, as one that a rule denied, has only its end."""
    if isinstance(item, views.CallItem):
        return item.asked_at or item.started_at or item.answered_at or item.ended_at or 0
    return item.at


async def timeline(session: Session, session_id: str, running: Iterable[str]) -> responses.SessionTimeline:
    """The calls and runs of this or an earlier session with their times. What is `running` is not in doubt."""
    records = await session.journal.history(session_id)
    calls = calls_of(records, session.registry)
    alive = set(running)
    for call in calls:
        if call.item.status in ("doubt", "left") and call.item.id in alive:
            call.resumed()
    return responses.SessionTimeline(
        session=session_id,
        own=session.id,
        calls=tuple(call.item for call in calls[-MAX_CALLS:]),
        runs=tuple(scripts_of(records)),
        left_out=max(0, len(calls) - MAX_CALLS),
        sessions=tuple(await sessions(session.journal)),
    )


async def sessions(journal: Journal) -> list[responses.SessionSpan]:
    """The sessions that called something, newest first."""
    found: dict[str, responses.SessionSpan] = {}
    for kind in ("started", "asked", "forbidden"):
        for record in await journal.store.read(kind=kind, last=MAX_RECORDS):
            at = record.at / 1e6
            known = found.get(record.stream, responses.SessionSpan(record.stream, at, at))
            found[record.stream] = responses.SessionSpan(record.stream, min(known.first, at), max(known.last, at))
    return sorted(found.values(), key=lambda span: span.last, reverse=True)[:MAX_SESSIONS]


def exported(records: Sequence[Record]) -> Iterator[responses.ExportedRecord]:
    """The records of a session, whole, for a file."""
    for record in records:
        yield responses.ExportedRecord(
            seq=record.seq,
            session=record.stream,
            kind=record.kind,
            subject=record.subject,
            at=record.at / 1e6,
            data=data_of(record),
            digest=record.digest,
        )


def _message(said: dict[str, Any], id: str) -> views.MessageItem | None:
    """A message of the conversation, unless it is a request, a script or a result: those are shown as what they are."""
    content = said.get("content")
    if not isinstance(content, str) or not content.strip() or said["role"] == "tool_result":
        return None
    if said["role"] == "user":
        typed = content.removeprefix(Satellite.PROGRAM).strip()
        text = visible(typed)
        if content.startswith(Satellite.PROGRAM):
            return views.MessageItem(id=id, by="lastword", text=text, at=said["created"])
        raw = None if text == typed else typed
        return views.MessageItem(id=id, by="you", text=text, at=said["created"], turn=said["turn"], raw=raw)
    if isinstance(parse_tool_request(content), ToolRequest) or is_script(content):
        return None
    return views.MessageItem(id=id, by="assistant", text=visible(content.strip("\n")), at=said["created"] + 0.5)


async def keep_tokens(session: Session, conversation_id: str, ended: Ended) -> None:
    """Remember what an answer took, durably: it cannot be counted again. None where the server did not count."""
    facts = {"turn": ended.turn, "tokens": ended.counted}
    session.journal.note(session.id, TOKENS_USED, conversation_id, facts)
    await session.journal.store.commit()


def _by_turn(records: Iterable[Record], conversation_id: str, kind: str, fact: str) -> dict[int, Any]:
    """What is known of the answers of a conversation that still stand, by their turns."""
    standing: dict[int, Any] = {}
    for record in records:
        if record.subject != conversation_id or not (data := data_of(record)):
            continue
        if record.kind == Satellite.WENT_BACK:
            standing = {turn: known for turn, known in standing.items() if turn < data["turn"]}
        elif record.kind == kind and data[fact] is not None:
            standing[data["turn"]] = data[fact]
    return standing


async def token_total(session: Session) -> responses.TokenTotal:
    """The sum for a conversation since it began, whatever was taken back in it."""
    records = await session.journal.history(session.id, kind=(TOKENS_USED, Satellite.WENT_BACK))
    counts = [data["tokens"] for r in records if r.kind == TOKENS_USED and (data := data_of(r))]
    counted = [count for count in counts if count is not None]
    standing = {name: _by_turn(records, name, TOKENS_USED, "tokens") for name in {record.subject for record in records}}
    left = sum(len(turns) for turns in standing.values())
    spent = sum(counted)
    gone = spent - sum(sum(turns.values()) for turns in standing.values())
    return responses.TokenTotal(
        tokens=spent,
        answers=len(counted),
        uncounted=len(counts) - len(counted),
        taken_back=len(counted) - left,
        words=_token_words(counted, len(counts) - len(counted), len(counted) - left, gone),
    )


def _token_words(counted: list[int], uncounted: int, taken_back: int, gone: int) -> str:
    if not counted:
        return "The model's server has counted no tokens here."
    answers = "the only answer" if len(counted) == 1 else f"all {len(counted)} answers"
    said = f"{counted[-1]:,} tokens for the last answer that was counted, {sum(counted):,} for {answers}."
    if taken_back:
        said += f" In the sum are {gone:,} for {taken_back} that you took back: they were spent all the same."
    if uncounted:
        said += f" {uncounted} more {'was' if uncounted == 1 else 'were'} not counted."
    return said
