"""Who said what, and which request is pending: folds over the records of the store.

A turn is one group of records: the results and messages that came in, the model's reply, and what is pending after
it. The group claims the number of its turn, so of two processes that carry out the same turn one commits, and a
process that dies leaves the whole turn or none of it.

    stream conversation/ID    opened · message · settled · pending · rewound · deleted
    stream conversations/OWNER    listed, one for each conversation

What does not live here: which messages count (request_messages.py), and what the model is shown of them (history.py).
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword.errors import MayNotForget
from lastword.server.api_types import UNNAMED, PendingRequest, Refusal
from lastword.server.history import Chains, ChatMessage, HistoryLine
from lastword.server.store_follower import StoreFollower
from lastword.store import Entry, Record, Store
from lastword.values import canonical

if TYPE_CHECKING:
    from lastword.server.auth import Caller

STREAM = "conversation/"

_log = logging.getLogger("lastword")

# Conversations kept folded in memory, by number and by size; the others are read again when somebody comes back.
CACHED_CONVERSATIONS = 512
CACHED_BYTES = 64 * 1024 * 1024
# Conversations looked at together when old ones are ended.
UNUSED_PAGE = 100


class Turn(msgspec.Struct, frozen=True):
    """What one turn adds."""

    said: list[ChatMessage]
    settled: dict[str, Literal["answered", "abandoned"]]
    pending: list[PendingRequest]
    after: int = 0
    """How many turns there were when the model was asked. The conversation may know of more by now."""


class EndedUnused(msgspec.Struct, frozen=True):
    """What went because nobody had used it."""

    conversations: int
    messages: int

    def __str__(self) -> str:
        what = "1 conversation" if self.conversations == 1 else f"{self.conversations} conversations"
        said = "1 message" if self.messages == 1 else f"{self.messages} messages"
        return f"{what} with {said} {'was' if self.conversations == 1 else 'were'} deleted"


class Conversation:
    """The fold of one conversation's records, up to `seq`. It may grow while a turn runs: other processes write too."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.owner: str | None = None
        self.created = 0
        self.deleted = False
        self.turns = 0
        self.lines: list[HistoryLine] = []
        self.chains = Chains()
        self.pending: dict[str, PendingRequest] = {}
        self.seq = 0
        self.weight = 0
        self.seqs: list[int] = []
        """Of the records whose data goes when the conversation does."""
        self.written_after = -1
        """How many looks at the store's end had begun when this process wrote last: those have not seen it."""

    def apply(self, record: Record) -> None:
        """Take the next record. One that was seen already changes nothing: two readers may catch up at once."""
        if record.seq <= self.seq:
            return
        self.seq = record.seq
        kind = record.kind
        if kind == "conversation.deleted":
            self.deleted = True
            self.lines.clear()
            self.chains = Chains()
            self.pending.clear()
            return
        data = record.data
        if data is None:
            return
        if kind == "conversation.rewound":
            self._rewind(msgspec.json.decode(data, type=_Rewound))
            return
        if kind == "conversation.opened":
            self.owner = msgspec.json.decode(data)["owner"]
            self.created = record.at
            return
        self.seqs.append(record.seq)
        if kind == "conversation.message":
            message = _decode_message(data)
            self.turns = message.turn
            line = HistoryLine.of(message.said, message.turn, record.at, len(data))
            self.lines.append(line)
            self.chains.add(line)
            self.weight += len(data)
        elif kind == "conversation.pending":
            self.pending[record.subject] = msgspec.json.decode(data, type=PendingRequest)
        elif kind == "conversation.settled":
            self.pending.pop(record.subject, None)

    def _rewind(self, rewound: _Rewound) -> None:
        """Go on from an earlier turn. What came after it stays in the store, and the model does not see it again."""
        self.turns = rewound.turn
        self.lines = [line for line in self.lines if line.turn <= rewound.to]
        self.chains = Chains()
        for line in self.lines:
            self.chains.add(line)
        self.weight = sum(line.weight for line in self.lines)
        self.pending.clear()


class Conversations:
    """All conversations of a store."""

    def __init__(self, store: Store, follower: StoreFollower | None = None) -> None:
        self._store = store
        self.follower = follower or StoreFollower(store)
        self.follower.follow(self._take, self._lose)
        self._folded: OrderedDict[str, Conversation] = OrderedDict()
        self._weight = 0
        self._running: set[str] = set()

    async def find(self, id: str) -> Conversation | None:
        """The conversation as it is now, or None when there never was one or it was deleted."""
        conversation = await self._caught_up(id)
        return None if conversation.owner is None or conversation.deleted else conversation

    async def visible(self, id: str, caller: Caller, *, to_change: bool) -> Conversation:
        """The conversation, for one who may look at it or change it. Whoever may not is told that there is none."""
        conversation = await self.find(id)
        others = caller.may("admin") if to_change else caller.sees_all()
        if conversation is None or not (others or conversation.owner == caller.id):
            raise _not_found()
        return conversation

    async def begin(self, id: str, owner: str) -> Conversation:
        """The conversation for a new turn of its owner; a fresh one when the id is unknown."""
        conversation = await self._caught_up(id)
        if conversation.deleted:
            fact = "this conversation was deleted"
            raise Refusal(404, "conversation_deleted", fact, param="conversation_id", hint="use a new id")
        if conversation.owner not in (None, owner):
            raise _not_found()
        if conversation.id not in self._folded:
            self._keep(conversation)
        return conversation

    @contextmanager
    def running(self, id: str) -> Iterator[None]:
        """One turn at a time. Another process is held off by the number of the turn, when it commits."""
        if id in self._running:
            raise _turn_is_running()
        self._running.add(id)
        try:
            yield
        finally:
            self._running.discard(id)

    async def commit(self, conversation: Conversation, owner: str, turn: Turn) -> None:
        """Remember a turn, whole; refuse it when another process was faster."""
        at = time.time_ns() // 1000
        stream = _stream(conversation.id)
        number = turn.after + 1
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
        await self._commit(conversation, *entries)

    async def rewind(self, conversation: Conversation, turns: int) -> None:
        """Go back to where there were so many turns. It is a turn itself: two programs cannot go on differently."""
        with self.running(conversation.id):
            at, number = time.time_ns() // 1000, conversation.turns + 1
            data, once = canonical({"to": turns, "turn": number}), _turn_key(conversation.id, number)
            stream = _stream(conversation.id)
            await self._commit(conversation, Entry(stream, "conversation.rewound", conversation.id, at, data, once))
            await self._caught_up(conversation.id)

    async def delete(self, conversation: Conversation) -> None:
        """Forget what was said. That there was a conversation, and whose, stays in the chain."""
        with self.running(conversation.id):
            at = time.time_ns() // 1000
            # The key of the turn that would come next: a turn that runs in another process cannot commit after this.
            once = _turn_key(conversation.id, conversation.turns + 1)
            data = canonical({"at": at})
            gone = Entry(_stream(conversation.id), "conversation.deleted", conversation.id, at, data, once)
            await self._commit(conversation, gone)
            try:
                await self._forget(await self._caught_up(conversation.id))
            except MayNotForget as problem:
                _left_to_others(problem)

    async def end_unused(self, before: float, keep: Collection[str] = (), *, keep_pending: bool = False) -> EndedUnused:
        """Delete the conversations in which nothing was said since a time, except those that are to be kept.

        `keep_pending`: also those in which a request still waits for its result: somewhere a card may.
        """
        ended = messages = after = 0
        while True:
            records, more = await self.page(None, after, UNUSED_PAGE)
            # One that began later cannot have ended before, so its messages need not be read.
            old = [record.subject for record in records if record.at < before * 1_000_000]
            for id in old:
                # After a loss a conversation has the id of its session with an ending.
                if id in keep or id.partition(".")[0] in keep or id in self._running:
                    continue
                said = await self._store.read(stream=_stream(id), kind="conversation.message")
                if not said or said[-1].at >= before * 1_000_000:
                    continue
                conversation = await self.find(id)
                # Clients that repeat their history begin a new one with every result, and leave the old one pending.
                is_waiting = keep_pending and not id.startswith(UNNAMED)
                if conversation is not None and not (is_waiting and conversation.pending):
                    await self.delete(conversation)
                    ended, messages = ended + 1, messages + len(said)
            if more is None:
                return EndedUnused(ended, messages)
            after = more

    async def finish_deletions(self) -> None:
        """Forget what a crash between deleting and forgetting left behind, or who may delete and not forget."""
        try:
            for record in await self._store.read(kind="conversation.deleted"):
                await self._forget(await self._caught_up(record.subject))
        except MayNotForget as problem:
            _left_to_others(problem)

    async def page(self, owner: str | None, after: int, limit: int) -> tuple[list[Record], int | None]:
        """The next conversations of an owner, or of everybody, and the cursor of the page that follows."""
        stream = None if owner is None else f"conversations/{owner}"
        records = await self._store.read(stream=stream, kind="conversation.listed", after=after, limit=limit + 1)
        more = records[limit - 1].seq if len(records) > limit else None
        return [record for record in records[:limit] if record.data is not None], more

    async def _commit(self, conversation: Conversation, *entries: Entry) -> None:
        done = await self._store.commit(*entries)
        conversation.written_after = self.follower.looks
        if not done:
            raise _turn_is_running()

    async def _caught_up(self, id: str) -> Conversation:
        conversation = self._folded.get(id)
        if conversation is not None and conversation.written_after == self.follower.looks:
            self.follower.forget_look()
        await self.follower.look()
        conversation = self._folded.get(id)
        if conversation is not None:
            self._folded.move_to_end(id)
            return conversation
        conversation = Conversation(id)
        while True:
            seen = self.follower.seq
            for record in await self._store.read(stream=_stream(id), after=conversation.seq):
                conversation.apply(record)
            # Records that came while the store yielded to the loop are not in this fold, so it is asked again.
            if self.follower.seq == seen:
                break
        # Somebody who was faster may have a turn running on theirs. Both are the same fold.
        if (faster := self._folded.get(id)) is not None:
            return faster
        # Ids that are only asked for must not push out conversations: what never began is not kept.
        if conversation.seq:
            self._keep(conversation)
        return conversation

    def _keep(self, conversation: Conversation) -> None:
        self._folded[conversation.id] = conversation
        self._weight += conversation.weight
        self._make_room()

    def _make_room(self) -> None:
        while len(self._folded) > CACHED_CONVERSATIONS or (self._weight > CACHED_BYTES and len(self._folded) > 1):
            _, dropped = self._folded.popitem(last=False)
            self._weight -= dropped.weight

    def _take(self, record: Record) -> None:
        """Add a record to the conversation it belongs to, if that is at hand."""
        conversation = self._folded.get(record.stream.removeprefix(STREAM))
        if conversation is not None and record.stream.startswith(STREAM):
            before = conversation.weight
            conversation.apply(record)
            self._weight += conversation.weight - before
            self._make_room()

    def _lose(self) -> None:
        self._folded.clear()
        self._weight = 0

    async def _forget(self, conversation: Conversation) -> None:
        listed = await self._store.read(
            stream=f"conversations/{conversation.owner}", kind="conversation.listed", subject=conversation.id
        )
        await self._store.forget([*conversation.seqs, *(record.seq for record in listed)])
        conversation.seqs.clear()


def _left_to_others(problem: MayNotForget) -> None:
    """A deleted conversation is gone for everybody who asks for it. Its words go when somebody prunes who may."""
    _log.warning("what was said in deleted conversations stays until the journal is pruned: %s", problem)


def _not_found() -> Refusal:
    """Also for what belongs to somebody else: that it exists is not for this caller to know."""
    return Refusal(404, "conversation_not_found", "there is no such conversation", param="conversation_id")


def _turn_is_running() -> Refusal:
    """One turn at a time, whoever asks first."""
    fact = "another turn of this conversation is running or has just ended"
    hint = "read the conversation, and send again what is not in it"
    return Refusal(409, "turn_running", fact, param="conversation_id", hint=hint)


def _stream(id: str) -> str:
    return STREAM + id


class _Rewound(msgspec.Struct, frozen=True):
    to: int
    turn: int


class _Message(msgspec.Struct, frozen=True):
    said: ChatMessage
    turn: int


_encode = msgspec.json.Encoder(order="sorted").encode
_decode_message = msgspec.json.Decoder(_Message).decode


def _message_data(turn: int, said: ChatMessage) -> bytes:
    """A message as canonical JSON. Most are plain text, and need no walk over their values to be that."""
    message = _Message(said, turn)
    if said.tool_calls is None and said.others is None and (said.content is None or isinstance(said.content, str)):
        return _encode(message)
    return canonical(msgspec.to_builtins(message))


def _turn_key(id: str, number: int) -> str:
    return f"turn/{id}/{number}"


def settle(pending: Iterable[PendingRequest], answered: Iterable[str]) -> dict[str, Literal["answered", "abandoned"]]:
    """How everything that was pending ends with this turn."""
    answered = set(answered)
    return {entry.id: "answered" if entry.id in answered else "abandoned" for entry in pending}
