"""What happened, as lines a person can read: the life of a call, a run or a session, with times."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.consent import Answerer, GrantTerms, Secrets
from lastword.display import visible
from lastword.journal.call_life import data_of

if TYPE_CHECKING:
    from lastword.store import Record

# Arguments and messages longer than this are cut in a list; `--json` and `export` have all of it.
MAX_WORDS = 160


def timeline(records: Iterable[Record], of: str = "") -> list[str]:
    """One line a record: when, how long after the one before, and what, in words.

    `of` is the call or run whose life it is: of its own records it need not be said, and its calls are called .0, .1.
    """
    lines = []
    before: int | None = None
    for record in records:
        words = _words(record)
        if words is None:
            continue
        moment = datetime.datetime.fromtimestamp(record.at / 1e6).astimezone()
        since = 0 if before is None else record.at - before
        passed = "" if before is None else f"+{_duration(max(0, since) / 1e6)}"
        set_back = f" (clock set back {_duration(-since / 1e6)})" if since < 0 else ""
        lines.append(f"{moment:%Y-%m-%d %H:%M:%S}  {passed:>9}  {_call(record, of)}{visible(words)}{set_back}")
        before = record.at
    return lines


def _call(record: Record, of: str) -> str:
    name = record.subject.removeprefix(of) if of else record.subject
    return f"[{name}] " if name else ""


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _words(record: Record) -> str | None:
    data = data_of(record)
    if record.data is None:
        return f"{record.kind} (its contents were pruned)"
    told = _TOLD.get(record.kind)
    return f"{record.kind} {_short(data)}" if told is None else told(data)


def _asked(data: dict[str, Any]) -> str:
    again = f", again because {data['problem']}" if data.get("problem") else ""
    by_person = " as the person changed it" if data.get("author") == "person" else ""
    return f"asked for {_call_in(data)}{by_person}{again}"


def _call_in(data: dict[str, Any]) -> str:
    return f"{data['tool']} {_short(data['arguments'])}"


_APPROVALS = {
    "not_needed": "no approval needed",
    "auto": "auto-approved",
    "waived": "the tool's own rule asks nobody for this",
    "rule": "allowed by a rule",
    "grant": "allowed by a grant",
    "person": "approved by a person",
}


def _by_whom(data: dict[str, Any]) -> str:
    """Whose yes a call began with; where nobody was asked, why."""
    return f"Not asked: {data['why']}." if data.get("why") else _APPROVALS.get(data["approval"], data["approval"])


def _answer(data: dict[str, Any]) -> str:
    by = Answerer.read(data["approver"])
    if data["primary_confirmed"]:
        granted = ", with a grant for calls like it" if data.get("grant") else ""
        return f"allowed by {by}" + (" with changed arguments" if data["arguments"] is not None else "") + granted
    if data.get("acts"):
        return f"allowed by {by}, with the second button"
    reason = f": {data['reason']}" if data["reason"] else ""
    return f"{'denied' if data['secondary_confirmed'] else 'closed'} by {by}{reason}"


_QUESTION_ENDS = {"given": "its question was answered", "declined": "an answer was declined"}


def _question_answer(data: dict[str, Any]) -> str:
    by = Answerer.read(data["by"])
    if data["how"] in _QUESTION_ENDS:
        given = f": {_short(_dotted(data['values']))}" if data.get("values") else ""
        return f"{_QUESTION_ENDS[data['how']]} by {by}{given}"
    return "its question was closed" + (f": {cut(data['why'])}" if data.get("why") else f" by {by}")


def _dotted(given: dict[str, Any]) -> dict[str, Any]:
    """Secrets, which the journal has as digests, as dots."""
    return {k: Secrets.MASK if type(v) is dict and list(v) == ["secret"] else v for k, v in given.items()}


def _stop_heard(data: dict[str, Any]) -> str:
    count = len(data["calls"])
    return f"everything was stopped; here {count} call{'' if count == 1 else 's'}"


def _stop_settled(data: dict[str, Any]) -> str | None:
    return f"told to stop, and still at work: {', '.join(data['working'])}" if data["working"] else None


def _handed_back(data: dict[str, Any]) -> str:
    said = f": {cut(data['message'])}" if data["message"] else ""
    return f"{data['to']} says: {'done' if data['went_well'] else 'failed'}{said}"


def _departed(data: dict[str, Any]) -> str:
    given = f": {_short(data['arguments'])}" if "arguments" in data else ""
    return f"{data['to']} departed from what was allowed: {cut(data['why'])}{given}"


def _granted(data: dict[str, Any]) -> str:
    whose = Answerer.read(data.get("by")).whose
    run = data.get("run", "")
    how_long = GrantTerms.holding_words(data["scope"], data.get("until"), data["session_id"], run, whose=whose)
    calls = "" if data.get("calls") is None else f"; calls: {data['calls']}"
    return f"granted: don't ask again for {data['tool']} {_short(data['where'])}, {how_long}{calls}"


def _revoked(data: dict[str, Any]) -> str:
    return f"the grant ended: {data['why']}" if data["why"] else f"taken back by {Answerer.read(data['by'])}"


def _unwritten(data: dict[str, Any]) -> str:
    what = "it does not know how it ended" if data.get("by_tool") else "its end could not be written down"
    return f"{what}: {cut(data['why'])}"


def _finished(data: dict[str, Any]) -> str | None:
    if data["kind"] == "handed_over":
        return None  # The record before it says more.
    return f"{data['tool']} {data['kind'].replace('_', ' ')}: {cut(data['message'])}"


def _run_finished(data: dict[str, Any]) -> str:
    return f"run {data['status']}" + (f": {cut(data['error'])}" if data["error"] else "")


def _short(value: Any) -> str:
    return cut(values.written(value).decode())


def cut(text: str) -> str:
    """A text on one line, of bearable length."""
    text = " ".join(text.split())
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}…"


_TOLD: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "asked": _asked,
    "forbidden": lambda data: f"asked for {_call_in(data)}, which the rule {data['rule']} denies",
    "answered": _answer,
    "burned": lambda data: "the approval was spent",
    "voided": lambda data: f"the approval was taken back: {data['why']}",
    "stop": lambda data: f"everything was stopped by {Answerer.read(data['by'])}",
    "stop_heard": _stop_heard,
    "stop_settled": _stop_settled,
    "started": lambda data: f"started {_call_in(data)} ({_by_whom(data)})",
    "handed_over": lambda data: f"handed over to {data['to']}: {_call_in(data)} ({_by_whom(data)})",
    "handed_back": _handed_back,
    "departed": _departed,
    "granted": _granted,
    "grant_used": lambda data: f"a grant was used: {data.get('words') or data['number']}",
    "revoked": _revoked,
    "policy_loaded": lambda data: f"rules were read: {', '.join(file['path'] for file in data['files'])}",
    "restarted": lambda data: f"started once more: {data['why']}",
    "settled": lambda data: f"settled: {data['why']}",
    "unwritten": _unwritten,
    "detached": lambda data: "nobody waits for the answer any more; the question stays",
    "reported": lambda data: f"reported: {cut(data['message'])}",
    "question_asked": lambda data: f"{data['question']['tool']} asked: {cut(data['question']['message'])}",
    "question_answered": _question_answer,
    "finished": _finished,
    "ended_late": lambda data: f"its code, which had run on, {data['how']} at last",
    "state_set": lambda data: f"state {data['key']} = {_short(data['value'])}",
    "state_described": lambda data: f"state {data['key']} means: {cut(data['description'])}",
    "state_cleared": lambda data: "state cleared",
    "run_started": lambda data: f"run of {data['name'] or 'a script'} began",
    "run_now": lambda data: None,
    "run_finished": _run_finished,
    "changing_file": lambda data: f"about to change {data['change']['path']}",
    "changed_file": lambda data: f"changed {data.get('path')}",
    "undone": lambda data: f"its changes to files were taken back by {data['by']}",
}
"""What a record of each kind tells; None where another one says more."""
