"""Who said what, and which request is pending: folds over the records of the store.

A turn is one group of records: the results and messages that came in, the model's reply, and what is pending after
it. The group claims the number of its turn, so of two processes that carry out the same turn one commits, and a
process that dies leaves the whole turn or none of it.

    stream conversation/ID    opened · message · settled · pending · deleted
    stream conversations/OWNER    listed, one for each conversation

What does not live here: which messages count (intake.py), and what the model gets to see of them (prompt.py).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from assent.server.refusal import Refusal
from assent.store import Entry, Record, Store
from assent.values import canonical

# Conversations kept folded in memory, by number and by size; the others are read again when somebody comes back.
CACHED_CONVERSATIONS = 512
CACHED_BYTES = 64 * 1024 * 1024


class Pending(msgspec.Struct, frozen=True):
    """A request that waits for its result. The digest is None when the model's arguments could not be read."""

    id: str
    name: str
    digest: str | None
    native: bool
    created: int


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. A result that answers a native call says so, since it goes to the model in another role."""

    role: Literal["user", "assistant", "tool_result"]
    content: Any = None
    name: str | None = None
    id: str | None = None
    native: bool = False
    tool_calls: list[dict[str, Any]] | None = None


class Line(msgspec.Struct, frozen=True):
    """A message in its place in the history."""

    said: Said
    turn: int
    at: int
    weight: int
    """Its size in bytes, roughly."""


class Turn(msgspec.Struct, frozen=True):
    """What one turn adds."""

    said: list[Said]
    settled: dict[str, Literal["answered", "abandoned"]]
    pending: list[Pending]


class Conversation:
    """The fold of one conversation's records, up to `seq`."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.owner: str | None = None
        self.created = 0
        self.deleted = False
        self.turns = 0
        self.lines: list[Line] = []
        self.pending: dict[str, Pending] = {}
        self.seq = 0
        self.weight = 0
        self.seqs: list[int] = []
        """Of the records whose data goes when the conversation does."""

    def apply(self, record: Record) -> None:
        """Take the next record. One that was seen already changes nothing: two readers may catch up at once."""
        if record.seq <= self.seq:
            return
        self.seq = record.seq
        kind = record.kind.removeprefix("conversation.")
        if kind == "deleted":
            self.deleted = True
            self.lines.clear()
            self.pending.clear()
            return
        if record.data is None:
            return
        data = msgspec.json.decode(record.data)
        if kind == "opened":
            self.owner = data["owner"]
            self.created = record.at
            return
        self.seqs.append(record.seq)
        if kind == "message":
            self.turns = data["turn"]
            weight = len(record.data)
            self.lines.append(Line(msgspec.convert(data["said"], Said), self.turns, record.at, weight))
            self.weight += weight
        elif kind == "pending":
            self.pending[record.subject] = msgspec.convert(data, Pending)
        elif kind == "settled":
            self.pending.pop(record.subject, None)


class Conversations:
    """All conversations of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folded: OrderedDict[str, Conversation] = OrderedDict()
        self._weight = 0
        self._running: set[str] = set()

    async def find(self, id: str) -> Conversation | None:
        """The conversation as it is now, or None when there never was one or it was deleted."""
        conversation = await self._caught_up(id)
        return None if conversation.owner is None or conversation.deleted else conversation

    async def begin(self, id: str, owner: str) -> Conversation:
        """The conversation for a new turn of its owner; a fresh one when the id is unknown."""
        conversation = await self._caught_up(id)
        if conversation.deleted:
            raise Refusal(
                404,
                "conversation_deleted",
                "this conversation was deleted",
                param="conversation_id",
                hint="use a new id",
            )
        if conversation.owner not in (None, owner):
            raise not_found()
        return conversation

    @contextmanager
    def running(self, id: str) -> Iterator[None]:
        """One turn at a time. Another process is held off by the number of the turn, when it commits."""
        if id in self._running:
            raise turn_is_running()
        self._running.add(id)
        try:
            yield
        finally:
            self._running.discard(id)

    async def commit(self, conversation: Conversation, owner: str, turn: Turn) -> None:
        """Remember a turn, whole; refuse it when another process was faster."""
        at = time.time_ns() // 1000
        stream = _stream(conversation.id)
        number = conversation.turns + 1
        entries: list[Entry] = []

        def add(kind: str, subject: str, data: Any, once: str | None = None) -> None:
            entries.append(Entry(stream, f"conversation.{kind}", subject, at, canonical(data), once))

        if conversation.owner is None:
            add("opened", conversation.id, {"owner": owner}, once=f"conversation/{conversation.id}")
            entries.append(
                Entry(f"conversations/{owner}", "conversation.listed", conversation.id, at, canonical({"at": at}))
            )
        for id, how in turn.settled.items():
            add("settled", id, {"how": how})
        once: str | None = _turn_key(conversation.id, number)
        for said in turn.said:
            entries.append(
                Entry(stream, "conversation.message", conversation.id, at, _message_data(number, said), once)
            )
            once = None
        for pending in turn.pending:
            add("pending", pending.id, msgspec.to_builtins(pending))
        if not await self._store.commit(*entries):
            raise turn_is_running()

    async def delete(self, conversation: Conversation) -> None:
        """Forget what was said. That there was a conversation, and whose, stays in the chain."""
        with self.running(conversation.id):
            at = time.time_ns() // 1000
            # The key of the turn that would come next: a turn that runs in another process cannot commit after this.
            once = _turn_key(conversation.id, conversation.turns + 1)
            data = canonical({"at": at})
            gone = Entry(_stream(conversation.id), "conversation.deleted", conversation.id, at, data, once)
            if not await self._store.commit(gone):
                raise turn_is_running()
            await self._forget(await self._caught_up(conversation.id))

    async def finish_deletions(self) -> None:
        """Forget what a crash between deleting and forgetting left behind."""
        for record in await self._store.read(kind="conversation.deleted"):
            await self._forget(await self._caught_up(record.subject))

    async def page(self, owner: str | None, after: int, limit: int) -> tuple[list[Record], int | None]:
        """The next conversations of an owner, or of everybody, and the cursor of the page that follows."""
        stream = None if owner is None else f"conversations/{owner}"
        records = await self._store.read(stream=stream, kind="conversation.listed", after=after, limit=limit + 1)
        more = records[limit - 1].seq if len(records) > limit else None
        return [record for record in records[:limit] if record.data is not None], more

    async def _caught_up(self, id: str) -> Conversation:
        conversation = self._folded.get(id)
        if conversation is None:
            conversation = Conversation(id)
        before = conversation.weight
        for record in await self._store.read(stream=_stream(id), after=conversation.seq):
            conversation.apply(record)
        self._keep(conversation, before)
        return conversation

    def _keep(self, conversation: Conversation, before: int) -> None:
        kept = self._folded.get(conversation.id)
        if kept is None:
            if conversation.seq == 0:
                return
            before = 0
        elif kept is not conversation:
            return
        self._folded[conversation.id] = conversation
        self._folded.move_to_end(conversation.id)
        self._weight += conversation.weight - before
        while len(self._folded) > CACHED_CONVERSATIONS or (self._weight > CACHED_BYTES and len(self._folded) > 1):
            _, dropped = self._folded.popitem(last=False)
            self._weight -= dropped.weight

    async def _forget(self, conversation: Conversation) -> None:
        listed = await self._store.read(
            stream=f"conversations/{conversation.owner}", kind="conversation.listed", subject=conversation.id
        )
        await self._store.forget([*conversation.seqs, *(record.seq for record in listed)])
        conversation.seqs.clear()


def not_found() -> Refusal:
    """Also for what belongs to somebody else: that it exists is not for this caller to know."""
    return Refusal(404, "conversation_not_found", "there is no such conversation", param="conversation_id")


def turn_is_running() -> Refusal:
    """One turn at a time, whoever asks first."""
    return Refusal(
        409,
        "turn_running",
        "another turn of this conversation is running or has just ended",
        param="conversation_id",
        hint="read the conversation, and send again what is not in it",
    )


def seconds(at: int) -> int:
    """The store's microseconds as OpenAI's seconds."""
    return at // 1_000_000


def _stream(id: str) -> str:
    return f"conversation/{id}"


class _Message(msgspec.Struct, frozen=True):
    said: Said
    turn: int


_encode = msgspec.json.Encoder(order="sorted").encode


def _message_data(turn: int, said: Said) -> bytes:
    """A message as canonical JSON. Most are plain text, and need no walk over their values to be that."""
    message = _Message(said, turn)
    if said.tool_calls is None and (said.content is None or isinstance(said.content, str)):
        return _encode(message)
    return canonical(msgspec.to_builtins(message))


def _turn_key(id: str, number: int) -> str:
    return f"turn/{id}/{number}"


def settle(pending: Iterable[Pending], answered: Iterable[str]) -> dict[str, Literal["answered", "abandoned"]]:
    """How everything that was pending ends with this turn."""
    answered = set(answered)
    return {entry.id: "answered" if entry.id in answered else "abandoned" for entry in pending}
