"""What the records of sessions say: their kinds, their fields, and the life of a call as they tell it.

Nothing here writes or proves anything. That is the journal's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from lastword.consent.answerer import Answerer, read_answerer
from lastword.consent.approval import Seal, UserAction, hide
from lastword.consent.outcome import Outcome
from lastword.errors import SessionError, Tampered
from lastword.journal.keys import answer_key
from lastword.store import Record

_decode = msgspec.json.Decoder().decode


class StartedFacts(msgspec.Struct, frozen=True, gc=False):
    """Every call writes one of these and the next: a struct is encoded in half the time of a dict."""

    tool: str
    tool_digest: str
    arguments: msgspec.Raw
    origin: str
    approval: str
    idempotent: bool
    process: str
    """Whose it is to end: the name that the journal of that process holds while it lives."""


class AnsweredFacts(msgspec.Struct, frozen=True, gc=False):
    primary_confirmed: bool
    secondary_confirmed: bool
    reason: str | None
    arguments: dict[str, Any] | None
    request: str
    approver: Answerer
    answered_at: float


class FinishedFacts(msgspec.Struct, frozen=True, gc=False):
    tool: str
    kind: str
    message: str
    value: Any
    gave_value: bool
    approval: str


SESSION_KINDS = frozenset(
    [
        "asked",
        "answered",
        "burned",
        "started",
        "restarted",
        "settled",
        "unwritten",
        "finished",
        "ended_late",
        "reported",
        "changing_file",
        "changed_file",
        "undone",
        "state_set",
        "state_described",
        "state_cleared",
        "run_started",
        "run_now",
        "run_finished",
        "stop",
        "stop_heard",
        "stop_settled",
        "voided",
    ]
)
"""The records of sessions. A store may hold others, of the server, which are not a journal's to forget."""


LIFE_KINDS = ("asked", "answered", "started", "unwritten", "finished")
"""The records that say how a call stands. The others tell its story."""


class Life(msgspec.Struct):
    """What the journal knows of one call: the last of each kind of record."""

    call_id: str
    session_id: str = ""
    proposed: dict[str, Any] | None = None
    """The first question: what the model or the script wanted, before a person changed it."""
    asked: dict[str, Any] | None = None
    answered: dict[str, Any] | None = None
    started: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None
    starts: int = 0
    unwritten: bool = False
    """Whether whoever ran it said that it is over, and could not say how it ended."""

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
        return Outcome(call_id=self.call_id, **self.finished)

    def add(self, record: Record) -> None:
        """Take one more record of this call, in order."""
        self.session_id = record.stream
        if record.kind not in LIFE_KINDS:
            return
        data = data_of(record)
        if record.kind == "asked":
            self.asked, self.answered = data, None
            self.proposed = self.proposed or data
        elif record.kind == "answered":
            if self.asked is not None and record.once == answer_key(self.asked.get("nonce", "")):
                self.answered = data
        elif record.kind == "started":
            self.started, self.unwritten = data, False
            self.starts += 1
        elif record.kind == "unwritten":
            self.unwritten = True
        else:
            self.finished = data


_decode_started = msgspec.json.Decoder(StartedFacts).decode
_decode_finished = msgspec.json.Decoder(FinishedFacts).decode


def value_of(records: Sequence[Record], tool: str, arguments: bytes) -> Any:
    """What a call gave, by its records, if it is this one, started once, and gave a value; UNSET if it is not so plain.

    A replay asks this for every CALL. It decodes a tenth of what a `Life` does.
    """
    if len(records) != 2:
        return UNSET
    start, end = records
    if start.kind != "started" or end.kind != "finished" or start.data is None or end.data is None:
        return UNSET
    try:
        started, finished = _decode_started(start.data), _decode_finished(end.data)
    except ValueError:
        return UNSET
    if started.tool != tool or bytes(started.arguments) != arguments:
        return UNSET
    return finished.value if finished.kind == "succeeded" and finished.gave_value else UNSET


def answer_facts(
    action: UserAction, request: str, approver: Answerer, answered_at: float, secrets: frozenset[str] = frozenset()
) -> AnsweredFacts:
    arguments = None if action.arguments is None else hide(action.arguments, secrets)
    return AnsweredFacts(
        action.primary_confirmed, action.secondary_confirmed, action.reason, arguments, request, approver, answered_at
    )


def read_answer(nonce: str, data: dict[str, Any]) -> tuple[UserAction, Seal]:
    """An answer as it was written down, bound to the request that its author saw."""
    action = UserAction(
        data["primary_confirmed"], data["secondary_confirmed"], data["reason"], data["arguments"], data["request"]
    )
    return action, Seal(data["request"], nonce, read_answerer(data["approver"]), data["answered_at"])


_SAYS: dict[str, frozenset[str]] = {
    "asked": frozenset(["call_id", "session_id", "tool", "arguments", "secrets", "nonce", "digest"]),
    "answered": frozenset(AnsweredFacts.__struct_fields__),
    "started": frozenset(StartedFacts.__struct_fields__),
    "finished": frozenset(FinishedFacts.__struct_fields__),
    "restarted": frozenset(["why"]),
    "settled": frozenset(["why"]),
    "unwritten": frozenset(["why"]),
    "reported": frozenset(["message"]),
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
