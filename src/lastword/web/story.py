"""One call as the page tells it: asked, answered, started, reported, finished, with times.

The same story comes about in two ways: from events, as they happen, and from the journal's records, afterwards.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from lastword import values
from lastword.call.events import Reported
from lastword.card.face import literal, one_line
from lastword.consent.answerer import Answerer, read_answerer
from lastword.consent.approval import ApprovalRequest, UserAction, mask
from lastword.consent.outcome import IN_A_WORD, Kind, Outcome
from lastword.display import color_name, glyph, visible
from lastword.journal import data_of
from lastword.store import Record
from lastword.tools.manifest import Manifest
from lastword.web.card import card_of

# Lines of progress that a window is shown. The journal keeps a few more, and the screen has no use for them.
MAX_REPORTS = 30
# What a row shows of a result. The model got all of it, and the export has it.
MAX_MESSAGE = 4_000

Status = Literal["waiting", "running", "ended", "doubt", "left"]

# The button that cancels is called Stop on the page.
WORDS: dict[Kind, str] = IN_A_WORD | {"cancelled": "stopped"}


class Told(msgspec.Struct, frozen=True):
    """A line of progress."""

    id: str | None
    text: str
    fraction: float | None
    number: int = 0
    """Counts the reports of a call, so that a window that has seen some of them knows which are new."""


class Reply(msgspec.Struct, frozen=True):
    """What was answered, by whom."""

    how: Literal["allowed", "edited", "denied", "closed", "auto"]
    by: str
    reason: str


class End(msgspec.Struct, frozen=True):
    """How it ended."""

    kind: Kind
    words: str
    message: str
    hidden: int
    success: bool


class Story(msgspec.Struct, kw_only=True):
    """One call."""

    id: str
    kind: Literal["call"] = "call"
    tool: str = ""
    name: str = ""
    glyph: str = "◆"
    color: str | None = None
    origin: str = ""
    run: str | None = None
    session: str | None = None
    """Of a call that another program made."""
    status: Status = "waiting"
    arguments: list[tuple[str, str]] = []
    card: dict[str, Any] | None = None
    reply: Reply | None = None
    reports: list[Told] = []
    reported_so_far: int = 0
    stopping: bool = False
    end: End | None = None
    changed: list[str] = []
    undone_by: str | None = None
    times_asked: int = 0
    asked_at: float | None = None
    answered_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None

    def asked(self, request: ApprovalRequest, at: float, *, still: bool = True) -> None:
        """A card waits, or once did."""
        self.introduce(request.manifest)
        self.tool = request.tool
        self.origin = one_line(request.origin)
        self.arguments = _rows(request.shown_arguments)
        self.card, self.status = (card_of(request), "waiting") if still else (None, "left")
        self.times_asked += 1
        self.asked_at = self.asked_at or at
        self.reply = None if self.reply is None or self.reply.how != "edited" else self.reply

    def introduce(self, manifest: Manifest | None) -> None:
        """Take name, sign and colour from the tool's manifest."""
        if manifest is not None:
            self.name = one_line(manifest.display_name)
            self.glyph = glyph(manifest.icon)
            self.color = color_name(manifest.color)

    def answered(self, action: UserAction, by: Answerer, at: float) -> None:
        """The card was answered, and is not shown any more."""
        self.reply = Reply(_how(action, by), one_line(str(by)), visible(action.reason or ""))
        self.answered_at = at
        self.card = None
        self.status = "running" if action.primary_confirmed else "ended"

    def started(self, tool: str, arguments: dict[str, Any], origin: str, at: float) -> None:
        """The tool's code runs."""
        self.tool, self.origin = tool, one_line(origin)
        self.name = self.name or one_line(tool)
        self.arguments = _rows(arguments)
        self.card = None
        self.started_at, self.status = at, "running"

    def reported(self, report: Told) -> None:
        """A line of progress; the same id replaces the earlier one."""
        self.reported_so_far += 1
        report = msgspec.structs.replace(report, number=self.reported_so_far)
        if report.id is not None:
            for place, known in enumerate(self.reports):
                if known.id == report.id:
                    self.reports = [*self.reports[:place], report, *self.reports[place + 1 :]]
                    return
        self.reports = [*self.reports, report][-MAX_REPORTS:]

    def finished(self, tool: str, kind: Kind, message: str, at: float) -> None:
        """It came to its end."""
        self.tool = tool
        self.name = self.name or one_line(tool)
        kept = message[:MAX_MESSAGE]
        self.end = End(kind, WORDS[kind], visible(kept), len(message) - len(kept), kind == "succeeded")
        self.ended_at, self.status, self.card = at, "ended", None

    def ended(self, outcome: Outcome, at: float) -> None:
        """The same, from an event."""
        self.finished(one_line(outcome.tool, 80), outcome.kind, outcome.message, at)
        self.changed = [one_line(path) for path in outcome.changed]

    def add(self, record: Record) -> None:
        """Take one more record of this call from the journal, in order."""
        data, at = data_of(record), record.at / 1e6
        if not data:
            return
        match record.kind:
            case "asked":
                self.asked(ApprovalRequest.from_facts(data), at, still=False)
            case "answered":
                action = UserAction(
                    data["primary_confirmed"], data["secondary_confirmed"], data["reason"], data["arguments"]
                )
                self.answered(action, read_answerer(data["approver"]), at)
                self.status = "left"
            case "started":
                self.started(data["tool"], _unhidden(data["arguments"]), data["origin"], at)
                self.status = "left" if data["approval"] == "not_needed" else "doubt"
            case "reported":
                self.reported(Told(data["id"], visible(data["message"]), data["fraction"]))
            case "finished":
                self.finished(data["tool"], data["kind"], data["message"], at)
            case "changed_file" if data.get("path") and one_line(data["path"]) not in self.changed:
                self.changed = [*self.changed, one_line(data["path"])]
            case "undone":
                self.undone_by = one_line(str(data.get("by", "somebody")))


def told(event: Reported) -> Told:
    """A report as the page shows it."""
    return Told(event.id, visible(event.message), event.fraction)


def run_of(call_id: str) -> str | None:
    """The run whose script made this call."""
    run, dot, number = call_id.rpartition(".")
    return run if dot and number.isdigit() else None


def _how(action: UserAction, by: Answerer) -> Literal["allowed", "edited", "denied", "closed", "auto"]:
    if action.primary_confirmed:
        if by.kind != "person":
            return "auto"
        return "allowed" if action.arguments is None else "edited"
    return "denied" if action.secondary_confirmed else "closed"


def _rows(arguments: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one_line(name), one_line(literal(value), 300)) for name, value in arguments.items()]


def _unhidden(arguments: dict[str, Any]) -> dict[str, Any]:
    """Secrets, which the journal has as digests, as dots: a digest says nothing to a person."""
    hidden = frozenset(name for name, value in arguments.items() if type(value) is dict and list(value) == ["secret"])
    return mask(arguments, hidden)


def brief(arguments: bytes) -> dict[str, Any]:
    """Canonical arguments of an event, decoded."""
    decoded: dict[str, Any] = values.decode(arguments)
    return decoded
