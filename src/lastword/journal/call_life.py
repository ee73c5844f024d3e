"""What the records of sessions say: their kinds, their fields, and the life of a call as they tell it.

Nothing here writes or proves anything. That is the journal's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from lastword.consent import Answerer, GrantTerms, Kept, Outcome, Seal, UserAction
from lastword.errors import ArgumentsError, LastWordError, SessionError, Tampered

if TYPE_CHECKING:
    from lastword.store import Entry, Record
    from lastword.tools import Tool

_decode = msgspec.json.Decoder().decode


class OnceKey:
    """The keys that only one record of a store ever takes: what makes an answer, a start and a stop happen once."""

    answer = "answer:{}".format
    """Of a nonce: makes its answer the only one."""
    burn = "burn:{}".format
    """Of a nonce: an approval takes it to be spent."""
    start = "start:{}:{}".format
    """Of a call that has started so often: whoever comes second does not run it."""
    undo = "undo:{}".format
    """Of a call."""
    back = "handed_back:{}".format
    """Of a call: the word of the program that carried it out is heard once."""
    stop = "stop:{}".format
    """Numbers the acts of stopping everything, so that a look at the next one finds it."""


class StartedFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Every call writes one of these and the next: a struct is encoded in half the time of a dict."""

    tool: str
    tool_digest: str
    arguments: msgspec.Raw
    origin: str
    approval: str
    idempotent: bool
    process: str
    """Whose it is to end: the name that the journal of that process holds while it lives."""
    why: str = ""
    """Why nobody was asked, in words; empty where somebody was, or nobody had to be."""


class NotAsked(msgspec.Struct, frozen=True):
    """Why nobody was asked about a call, and what of a standing yes is used by that, in the commit of its start."""

    why: str = ""
    uses: tuple[Entry, ...] = ()


ASKED = NotAsked()
"""Somebody was."""


class HandedOverFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """In the place of a start: another program carries it out."""

    tool: str
    arguments: msgspec.Raw
    origin: str
    approval: str
    to: str
    why: str = ""
    """Why nobody was asked, in words; empty where somebody was."""


class AnsweredFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    primary_confirmed: bool
    secondary_confirmed: bool
    reason: str | None
    arguments: dict[str, Any] | None
    request: str
    approver: Answerer
    answered_at: float
    rest: bool | UnsetType = UNSET
    """Whether it is a no to whatever else the same script would ask for. All other answers do not say it, nor do those
    from before there was such a no."""
    acts: str | None = None
    """`secondary` for a yes by the second button."""
    grant: GrantTerms | None = None
    """What was granted beside the call."""


class FinishedFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    tool: str
    kind: str
    message: str
    value: Any
    gave_value: bool
    approval: str
    content: tuple[Kept, ...] = ()
    """What the record holds: the digests are here, and the bytes beside the record."""


_SAYS: dict[str, frozenset[str]] = {
    "asked": frozenset(["call_id", "session_id", "tool", "arguments", "secrets", "nonce", "digest"]),
    "forbidden": frozenset(["tool", "arguments", "origin", "rule"]),
    "answered": frozenset(AnsweredFacts.__struct_fields__) - {"acts", "rest", "grant"},
    "started": frozenset(StartedFacts.__struct_fields__) - {"why"},
    "granted": frozenset(["id", "tool", "tool_digest", "where", "scope", "session_id"]),
    "grant_used": frozenset(["number", "totals", "call"]),
    "revoked": frozenset(["by", "why"]),
    "policy_loaded": frozenset(["files"]),
    "finished": frozenset(FinishedFacts.__struct_fields__) - {"content"},
    "handed_over": frozenset(HandedOverFacts.__struct_fields__) - {"why"},
    "handed_back": frozenset(["to", "went_well", "message"]),
    "departed": frozenset(["to", "why"]),
    "restarted": frozenset(["why"]),
    "settled": frozenset(["why"]),
    "unwritten": frozenset(["why"]),
    "reported": frozenset(["message"]),
    "question_asked": frozenset(["question"]),
    "question_answered": frozenset(["question", "how", "by"]),
    "changing_file": frozenset(["project", "change"]),
    "changed_file": frozenset(["path"]),
    "undone": frozenset(["by"]),
    "state_set": frozenset(["key", "value"]),
    "state_described": frozenset(["key", "description"]),
    "run_started": frozenset(["text", "name", "variables", "checked", "version"]),
    "run_now": frozenset(["now"]),
    "run_finished": frozenset(["status", "output", "error"]),
}
"""What the records of each kind say at least. One that does not was not written by us."""

SESSION_KINDS = (_SAYS.keys() - {"granted", "grant_used", "revoked"}) | {
    "burned",
    "detached",
    "ended_late",
    "state_cleared",
    "stop",
    "stop_heard",
    "stop_settled",
    "voided",
}
"""The records that a journal may forget with their session: not those of grants, nor others of a store, such as the
server's."""


class Life(msgspec.Struct):
    """What the journal knows of one call: the last of each kind of record."""

    KINDS: ClassVar = (
        "asked",
        "answered",
        "started",
        "handed_over",
        "handed_back",
        "departed",
        "unwritten",
        "finished",
    )
    """The records that say how a call stands. The others tell its story."""

    call_id: str
    session_id: str = ""
    proposed: dict[str, Any] | None = None
    """The first question: what the model or the script wanted, before a person changed it."""
    asked: dict[str, Any] | None = None
    answered: dict[str, Any] | None = None
    started: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None
    handed_over: dict[str, Any] | None = None
    """What another program was allowed to carry out."""
    handed_back: dict[str, Any] | None = None
    """What that program says became of it."""
    departed: dict[str, Any] | None = None
    """What it did that it had not been allowed to do."""
    starts: int = 0
    unwritten: bool = False
    """Whether whoever ran it said that it is over, and could not say how it ended."""

    @classmethod
    def of(cls, call_id: str, records: Iterable[Record]) -> Life:
        """The life of a call, by all its records, in order."""
        life = cls(call_id)
        for record in records:
            life.add(record)
        return life

    @property
    def in_doubt(self) -> bool:
        """Started with somebody's consent, and nobody knows how it ended."""
        return self.started is not None and self.finished is None and self.started["approval"] != "not_needed"

    def outcome(self) -> Outcome:
        """How it ended, as it was told the first time."""
        assert self.finished is not None
        if not self.finished:
            raise SessionError(
                "how this call ended was pruned from the journal; it is not run again",
                place=self.call_id,
                hint="ask for a new call",
            )
        return Outcome(call_id=self.call_id, **self.finished | {"content": self.content})

    @property
    def content(self) -> tuple[Kept, ...]:
        """What it returned beside its value."""
        return _kept(self.finished or {})

    def kept(self, digest: str) -> Kept:
        """What it returned under this digest."""
        for kept in self.content:
            if kept.digest == digest:
                return kept
        raise SessionError(
            "what this call returned was pruned from the journal"
            if self.finished == {}
            else "this call returned no such content",
            place=self.call_id,
            hint="lastword show says what it returned",
        )

    def add(self, record: Record) -> None:
        """Take one more record of this call, in order."""
        self.session_id = record.stream
        if record.kind not in self.KINDS:
            return
        data = data_of(record)
        if record.kind == "asked":
            self.asked, self.answered = data, None
            self.proposed = self.proposed or data
        elif record.kind == "answered":
            if self.asked is not None and record.once == OnceKey.answer(self.asked.get("nonce", "")):
                self.answered = data
        elif record.kind == "started":
            self.started, self.unwritten = data, False
            self.starts += 1
        elif record.kind == "handed_over":
            self.handed_over = data
        elif record.kind == "handed_back":
            self.handed_back = data
        elif record.kind == "departed":
            self.departed = data
        elif record.kind == "unwritten":
            self.unwritten = True
        else:
            self.finished = data

    def handover_in_words(self) -> str:
        """How a call stands that was handed over, for a list."""
        if self.departed is not None:
            return "departed"
        if self.handed_back is None:
            return "handed over"
        return "handed over, done" if self.handed_back["went_well"] else "handed over, failed"

    @staticmethod
    def content_of(record: Record) -> tuple[Kept, ...]:
        """What a record says that it holds."""
        # Nearly no record holds anything, and decoding all of them is most of what a look at a long journal costs.
        return _kept(data_of(record)) if record.data is not None and b'"content":[' in record.data else ()


_decode_started = msgspec.json.Decoder(StartedFacts).decode
_decode_finished = msgspec.json.Decoder(FinishedFacts).decode


class RunPast(msgspec.Struct, eq=False):
    """What the journal holds of an interrupted run, and what a person has said no to just before it."""

    ENDED: ClassVar = ("run_started", "run_now", "run_finished", "started", "finished")
    """The records to replay what has ended. What was asked and answered about it is seldom needed, and is most of what
    a run has written."""
    GOING_ON: ClassVar = Life.KINDS
    """The records of the call that was going on."""

    denied: set[tuple[str, bytes]]
    began: dict[str, Any] = {}
    """What was written when the run began; empty when there is no such run."""
    calls: dict[str, list[Record]] = {}
    nows: list[int] = []
    ended: bool = False
    """Whether the run came to its end before; replaying it changes nothing."""
    is_whole: bool = True
    """Whether nothing of it was hidden. Who replays needs only what they read; who goes on needs to know this."""

    def add(self, record: Record, run_id: str) -> None:
        """Take one more record of this run, in order."""
        if record.subject != run_id:
            self.calls.setdefault(record.subject, []).append(record)
        elif record.data is None:
            raise SessionError(
                "what this run did was pruned from the journal, so it cannot go on",
                place=run_id,
                hint="start a new run",
            )
        elif record.kind == "run_started":
            self.began = data_of(record)
        elif record.kind == "run_now":
            self.nows.append(data_of(record)["now"])
        elif record.kind == "run_finished":
            self.ended = True

    @staticmethod
    def value_of(records: Sequence[Record], tool: Tool, arguments: dict[str, Any]) -> Any:
        """What a call gave, by its records, if it is this one, started once, and gave a value; UNSET if it is not so
        plain.

        A replay asks this for every CALL. It decodes a tenth of what a `Life` does.
        """
        if len(records) != 2:
            return UNSET
        start, end = records
        if start.kind != "started" or end.kind != "finished" or start.data is None or end.data is None:
            return UNSET
        try:
            started, finished = _decode_started(start.data), _decode_finished(end.data)
            if started.tool != tool.name or bytes(started.arguments) != tool.validate(arguments):
                return UNSET
        except (ValueError, ArgumentsError):
            return UNSET
        return finished.value if finished.kind == "succeeded" and finished.gave_value else UNSET


def read_answer(nonce: str, data: dict[str, Any]) -> tuple[UserAction, Seal]:
    """An answer as it was written down, bound to the request that its author saw."""
    action = UserAction(
        data["primary_confirmed"],
        data["secondary_confirmed"],
        data["reason"],
        data["arguments"],
        data["request"],
        data.get("rest", False),
        data.get("acts"),
        _terms(data.get("grant")),
    )
    return action, Seal(data["request"], nonce, Answerer.read(data["approver"]), data["answered_at"])


def _terms(written: Any) -> GrantTerms | None:
    """What was granted beside a call, as a record has it. What is not understood grants nothing."""
    try:
        return None if written is None else msgspec.convert(written, GrantTerms)
    except (msgspec.ValidationError, LastWordError):
        return None


def asked_by(records: Sequence[Record]) -> str:
    """The principal of a call, by its last question; empty where nobody was named."""
    return next((str(data_of(r).get("principal", "")) for r in reversed(records) if r.kind == "asked"), "")


def _kept(finished: dict[str, Any]) -> tuple[Kept, ...]:
    return msgspec.convert(finished.get("content", ()), tuple[Kept, ...])


def data_of(record: Record) -> dict[str, Any]:
    """What a record says; empty when it was pruned."""
    if record.data is None:
        return {}
    try:
        said: dict[str, Any] = _decode(record.data)
        lacks = "it is no object" if type(said) is not dict else _SAYS.get(record.kind, frozenset()) - said.keys()
        problem = lacks if isinstance(lacks, str) else f"it lacks {', '.join(sorted(lacks))}"
    except ValueError as found:
        lacks = problem = str(found)
    if lacks:
        raise Tampered(
            f"record {record.seq} ({record.kind}) was changed after it was written: {problem}",
            place=record.subject or record.stream,
            hint="lastword journal verify finds the first such record",
        )
    return said
