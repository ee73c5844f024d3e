"""One call as the page tells it: asked, answered, started, reported, finished, with times.

The same item comes about in two ways: from events, as they happen, and from the journal's records, afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from lastword import values
from lastword.card import Face, card_of, one_line, question_view, script_line, shortened, views, visible
from lastword.consent import Answerer, ApprovalRequest, Kept, Kind, Outcome, Secrets, UserAction, outcome
from lastword.journal import Life, data_of
from lastword.rules import SeenStep

if TYPE_CHECKING:
    from lastword.store import Record
    from lastword.tools import Manifest, ToolQuestion

# Lines of progress that a window is shown. The journal keeps a few more, and the screen has no use for them.
MAX_REPORTS = 30
# Of one such line. The screen shows a row of it.
MAX_REPORT = 2_000
# Of the words why nobody was asked: a rule's name is as long as its author wants.
MAX_WHY = 300
# What a row shows of a result. The model got all of it, and the export has it.
MAX_MESSAGE = 4_000

# The button that cancels is called Stop on the page.
WORDS: dict[Kind, str] = Outcome.IN_A_WORD | {"cancelled": "stopped"}
# Ends that nobody has to look at. What was handed over is well until something else is heard of it.
_WELL = ("succeeded", "handed_over")
# Whoever closes a card has not said no.
CLOSED = "closed"


class CallItemBuilder:
    """Puts an item together. `item` is what windows get of it so far."""

    def __init__(self, item: views.CallItem) -> None:
        self.item = item
        self._action: UserAction | None = None

    @classmethod
    def begin(cls, call_id: str, session: str | None = None) -> CallItemBuilder:
        """A call of which nothing is known yet; `session` is that of another program."""
        return cls(views.CallItem(id=call_id, run=run_of(call_id), session=session))

    def asked(self, request: ApprovalRequest, at: float, *, still: bool = True, me: str | None = None) -> None:
        """A card waits, or once did. `me`: who looks at it, where it need not be their own."""
        item = self.item
        self.introduce(request.manifest)
        self._change(
            tool=request.tool,
            **self._origin(request.origin),
            arguments=Face.rows(request.shown_arguments),
            card=card_of(request, SeenStep.why_none(request, request.principal if me is None else me))
            if still
            else None,
            status="waiting" if still else "left",
            times_asked=item.times_asked + 1,
            asked_at=item.asked_at or at,
            reply=item.reply if item.reply is not None and item.reply.how == "edited" else None,
        )

    def introduce(self, tool: Manifest | ToolQuestion | None) -> None:
        """Take name, sign and colour of the tool, from its manifest or from what it asks."""
        if tool is not None:
            self._change(**Face.looks(tool))

    def answered(self, action: UserAction, by: Answerer, at: float) -> None:
        """The card was answered, and is not shown any more."""
        self._action = action
        reply = views.CallReply(_how(action, by), one_line(str(by)), visible(action.reason or ""), _surface_of(by))
        if by.kind == "grant":
            # Its name says nothing to anybody, and of which day it is comes with the start.
            reply = views.CallReply("standing", "your grant")
        status = "running" if action.agrees else "ended"
        self._change(reply=reply, answered_at=at, card=None, status=status)

    def started(self, tool: str, arguments: dict[str, Any], origin: str, at: float, not_asked: str = "") -> None:
        """The tool's code runs. `not_asked`: why nobody was asked, where a rule or a grant stood for a person."""
        if not_asked:
            self._change(reply=views.CallReply("standing", one_line(not_asked, MAX_WHY)))
        self._called(tool, arguments, origin, started_at=at, status="running")

    def denied_by_rule(self, tool: str, arguments: dict[str, Any], origin: str, rule: str, at: float) -> None:
        """A rule said no, and nobody was asked. Its end follows."""
        reply = views.CallReply("ruled", one_line(f"the rule {rule}", MAX_WHY))
        self._called(tool, arguments, origin, reply=reply, answered_at=at, status="ended")

    def reported(self, id: str | None, message: str, fraction: float | None) -> None:
        """A line of progress; the same id replaces the earlier one."""
        number = self.item.reported_so_far + 1
        report = views.CallReport(id, shortened(message, MAX_REPORT), fraction, number)
        reports = self.item.reports
        place = None if id is None else next((n for n, known in enumerate(reports) if known.id == id), None)
        if place is None:
            reports = (*reports, report)[-MAX_REPORTS:]
        else:
            reports = (*reports[:place], report, *reports[place + 1 :])
        self._change(reports=reports, reported_so_far=number)

    def questioned(self, question: ToolQuestion, *, elsewhere: bool = False) -> None:
        """It asks something while it runs."""
        self.introduce(question)
        self._change(tool=question.tool, question=question_view(question, elsewhere=elsewhere), status="running")

    def question_over(self) -> None:
        """What it asked was answered, or is not asked any more."""
        self._change(question=None)

    def stopping(self) -> None:
        """It was told to stop."""
        self._change(stopping=True)

    def ended(self, outcome: Outcome, at: float) -> None:
        """It came to its end."""
        self._finished(outcome.tool, outcome.kind, outcome.message, outcome.content, at)
        self._change(changed=tuple(one_line(path) for path in outcome.changed))

    def undone(self, by: str) -> None:
        """What it changed was taken back."""
        self._change(undone_by=one_line(by), undone_on=_surface_of(by))

    def resumed(self) -> None:
        """Its program lives: what looked interrupted in the journal is still going on."""
        self._change(status="running" if self.item.started_at else "waiting")

    def gone(self, max_message: int) -> views.InboxGone:
        """What became of its card, which waits no longer, with so much of how the call ended."""
        end = self.item.end
        end = None if end is None else replace(end, message=shortened(end.message, max_message))
        return views.InboxGone(self.item.id, self.item.reply, end, None if end is None else self.item.ended_at)

    def add(self, record: Record) -> None:
        """Take one more record of this call from the journal, in order."""
        data, at = data_of(record), record.at / 1e6
        if not data:
            return
        match record.kind:
            case "asked":
                self.asked(ApprovalRequest.from_facts(data), at, still=False)
            case "forbidden":
                self.denied_by_rule(data["tool"], Secrets.unhidden(data["arguments"]), data["origin"], data["rule"], at)
            case "answered":
                action = UserAction(
                    data["primary_confirmed"],
                    data["secondary_confirmed"],
                    data["reason"],
                    data["arguments"],
                    acts=data.get("acts"),
                )
                self.answered(action, Answerer.read(data["approver"]), at)
                self._change(status="left")
            case "started":
                self.started(data["tool"], Secrets.unhidden(data["arguments"]), data["origin"], at, data.get("why", ""))
                self._change(status="left" if data["approval"] == "not_needed" else "doubt")
            case "handed_over":
                if why := data.get("why"):
                    self._change(reply=views.CallReply("standing", one_line(why, MAX_WHY)))
                self._change(arguments=Face.rows(data["arguments"]), started_at=at)
            case "handed_back":
                how = "done" if data["went_well"] else "failed"
                words = f"{data['to']} says: {how}. {data['message']}".strip()
                self._heard(f"handed over, {how}", words, well=data["went_well"])
            case "departed":
                given = values.written(data["arguments"]).decode() if "arguments" in data else ""
                self._heard("departed", f"{data['to']}: {data['why']}. {given}".strip(), well=False)
            case "reported":
                self.reported(data["id"], data["message"], data["fraction"])
            case "finished":
                self._finished(data["tool"], data["kind"], data["message"], Life.content_of(record), at)
            case "changed_file" if data.get("path") and one_line(data["path"]) not in self.item.changed:
                self._change(changed=(*self.item.changed, one_line(data["path"])))
            case "undone":
                self.undone(str(data.get("by", "somebody")))

    def _finished(self, tool: str, kind: Kind, message: str, content: tuple[Kept, ...], at: float) -> None:
        # What a window shows or offers need not be told in words as well.
        message = message.removesuffix(Kept.in_words(content)).removesuffix("\n") if content else message
        kept = message[:MAX_MESSAGE]
        end = views.CallEnd(
            kind=kind,
            words=CLOSED if self.item.reply is not None and self.item.reply.how == "closed" else WORDS[kind],
            message=visible(kept),
            hidden=len(message) - len(kept),
            success=kind in _WELL,
            own_words=visible(self._own_words(message, tool)[:MAX_MESSAGE]) if kind == "denied" else "",
        )
        # A model may have made the name up: it is shown like any other text that is not ours.
        name = one_line(tool, 80)
        self._change(
            tool=name,
            name=self.item.name or name,
            end=end,
            content=tuple(map(_shown, content)),
            ended_at=at,
            status="ended",
            card=None,
            question=None,
        )

    def _own_words(self, message: str, tool: str) -> str:
        ruled = self.item.reply is not None and self.item.reply.how == "ruled"
        return "" if ruled else own_words(message, tool, self._action)  # The tool has not heard of a rule's no.

    def _heard(self, words: str, message: str, *, well: bool) -> None:
        """What another program says of a call that was handed over to it, beside what was known by then."""
        end = self.item.end or views.CallEnd(kind="handed_over", words="", message="", hidden=0, success=True)
        told = f"{end.message}\n{visible(message)}".strip()[:MAX_MESSAGE]
        words = end.words if end.words == "departed" else words
        end = replace(end, words=words, message=told, success=end.success and well)
        self._change(end=end, status="ended", card=None)

    def _called(self, tool: str, arguments: dict[str, Any], origin: str, **changes: Any) -> None:
        """Whose call it is, with what, and that no card of it waits."""
        name, rows = self.item.name or one_line(tool), Face.rows(arguments)
        self._change(tool=tool, name=name, **self._origin(origin), arguments=rows, card=None, **changes)

    def _origin(self, origin: str) -> dict[str, Any]:
        return {"origin": one_line(origin), "line": None if self.item.run is None else script_line(origin)}

    def _change(self, **changes: Any) -> None:
        self.item = replace(self.item, **changes)


def _shown(kept: Kept) -> views.CallContent:
    return views.CallContent(
        kind=kept.kind,
        digest=kept.digest,
        name=visible(kept.name),
        media_type=kept.media_type,
        size=Kept.size_in_words(kept.size),
        alt=visible(kept.alt),
    )


def run_of(call_id: str) -> str | None:
    """The run whose script made this call."""
    run, dot, number = call_id.rpartition(".")
    return run if dot and number.isdigit() else None


def own_words(message: str, tool: str, action: UserAction | None) -> str:
    """Of the message about a no: what the tool said, without what is said of every no.

    Taken off is exactly what would be said had the tool no words. A message that was put in another way stays whole.
    """
    if action is None:
        return message
    head, newline, last = outcome.denied(tool, action.reason, None, closed=not action.secondary_confirmed).rpartition(
        "\n"
    )
    head, last = head + newline, newline + last
    return message[len(head) : -len(last)] if message.startswith(head) and message.endswith(last) else message


def _surface_of(by: Answerer | str) -> views.Surface | None:
    """The kind of window that somebody sat at; None when it was none of ours. Of an undo only the words are kept."""
    if isinstance(by, Answerer):
        return "page" if by.where == "page" else "terminal" if by.where == "terminal" else None
    surfaces: tuple[views.Surface, ...] = ("page", "terminal")
    return next((surface for surface in surfaces if str(Answerer.person(where=surface)) == by), None)


def _how(action: UserAction, by: Answerer) -> Literal["allowed", "second", "edited", "denied", "closed", "auto"]:
    if action.agrees:
        if by.kind != "person":
            return "auto"
        if action.acts is not None:
            return "second"
        return "allowed" if action.arguments is None else "edited"
    return "denied" if action.secondary_confirmed else "closed"


def brief(arguments: bytes) -> dict[str, Any]:
    """Canonical arguments of an event, decoded."""
    decoded: dict[str, Any] = values.decode(arguments)
    return decoded
