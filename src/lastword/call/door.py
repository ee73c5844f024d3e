"""The door: the life of one tool call. Chat, scripts, MCP, the command line and tests all come through `carry_out`.

Nothing here knows how a card looks, where records go or how code is run; it knows the order in which these must happen,
and that order is the product's promise. How consent is asked for and spent is told in approval_round.py; what an
earlier process left behind is the business of recovery.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.call.approval_round import ApprovalRound, AskAgain, CallEnds, Consent, Question
from lastword.call.authority import Authority
from lastword.call.desk import Desk
from lastword.call.draw import decline, waives
from lastword.call.events import DeniedByRule, Finished
from lastword.call.execution import Attempt
from lastword.consent import ALLOWED, Call, Kind, LiveCall, Outcome, Phase, Secrets, UserAction, deciders, outcome
from lastword.display import displayable
from lastword.editor import Preview
from lastword.errors import ArgumentsError, SessionError, StoreError, UnknownTool
from lastword.rules import decide
from lastword.store import read_only_guard
from lastword.tools import Manifest
from lastword.tools.guard import mark

if TYPE_CHECKING:
    from lastword.call.desk import OnQuestion
    from lastword.call.setting import Setting
    from lastword.consent import Approver
    from lastword.journal import Life
    from lastword.rules import Decision
    from lastword.tools import Tool

log = logging.getLogger("lastword")

# Found in an eighth of the time that a member of an enumeration takes, and every call comes by.
_STARTING, _ENDING = Phase.STARTING, Phase.ENDING


class Door:
    """Where every call of a session passes."""

    def __init__(
        self,
        setting: Setting,
        approver: Approver | None,
        on_question: OnQuestion | None,
        watch: Callable[[], None],
    ) -> None:
        self.setting = setting
        self.journal = setting.journal
        self.desk = Desk(setting, approver, on_question, watch)
        self.authority = Authority(setting)
        self._round = ApprovalRound(setting, self.desk, self.authority)
        mark()

    def carry_out(
        self,
        call_id: str,
        name: str,
        arguments: Any,
        origin: str = "",
        earlier: Life | None = None,
        *,
        resumable: bool = False,
        problem: str | None = None,
        denials: int = 0,
    ) -> Outcome | Awaitable[Outcome]:
        """Live the whole life of one tool call. Scripts and MCP clients come through here too.

        What asks nobody and waits for nothing is over when this returns; anything else is to be awaited. When whoever
        awaits it leaves, the call ends, but for the card of a `resumable` one, which goes on waiting. `problem` is for
        the card: why the same is asked again. A script says how many of its calls were denied before this one.
        """
        if (guard := read_only_guard.get()) is not None:
            raise guard.refuse(f"call {name}")  # A request function that calls a tool would act before anybody agreed.
        try:
            tool, call = self.admit(call_id, name, arguments, origin)  # unknown tool or bad arguments stop here
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call_id, name, refusal)
        if not tool.manifest.require_approval and self.setting.policy is None:
            return self._run_freely(tool, call, resumable)  # As it would be decided below.
        decider = self._decide(tool, call)
        if not isinstance(decider, deciders.Person):
            if isinstance(decider, deciders.Nobody):
                return self._run_freely(tool, call, resumable)
            if isinstance(decider, deciders.Forbidden):
                return self._finish_freely(self._forbidden(tool, call, decider))
        question = Question(tool, call, decider, LiveCall(), problem=problem, earlier=earlier, denials=denials)
        return self._ask_and_run(question, resumable)

    def _decide(self, tool: Tool, call: Call) -> Decision:
        """Whose yes a call needs, as preset and rules are at this moment."""
        setting = self.setting
        return decide(tool, setting.preset, setting.policy, call, setting.folder)

    def _forbidden(self, tool: Tool, call: Call, decider: deciders.Forbidden) -> Outcome:
        """A rule denies the call. What it was to do is remembered and told: its end alone would not say it."""
        hidden = Secrets.hide(values.decode(call.arguments), tool.secrets)
        facts = {"tool": call.tool, "arguments": hidden, "origin": call.origin, "rule": decider.rule}
        self.journal.note(self.setting.session_id, "forbidden", call.id, facts)
        if self.setting.audience.listeners:
            shown = Secrets.masked(call.arguments, tool.secrets)
            self.setting.audience.tell(DeniedByRule(call.id, call.tool, shown, call.origin, decider.rule))
        words = outcome.denied_by_rule(call.tool, decider.rule)
        return Outcome(kind="denied", message=words, call_id=call.id, tool=call.tool, approval="rule")

    def turn_down(self, call_id: str, name: str, arguments: Any, *, before: bool = False) -> Outcome | None:
        """End a call that a person has denied before it was asked for, with the rest of its script or as one that asked
        for the same; None where it needs nobody's yes."""
        try:
            tool, call = self.admit(call_id, name, arguments, "")
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call_id, name, refusal)
        if isinstance(self._decide(tool, call), deciders.Nobody):
            return None
        words = outcome.denied_before(call.tool) if before else outcome.denied_with_the_rest(call.tool)
        return self._finish_freely(Outcome(kind="denied", message=words, call_id=call_id, tool=call.tool))

    def admit(self, call_id: str, name: str, arguments: Any, origin: str) -> tuple[Tool, Call]:
        """Find the tool and reduce the arguments to the bytes that will be shown, sealed and run."""
        tool = self.setting.registry.lookup(name)
        if tool.manifest.script_editor_only and self.setting.editor is None:
            raise UnknownTool(
                f"{name} works only on a project in an editor, and there is none here",
                hint="start the session with an editor: lastword edit DIR",
            )
        data = tool.validate({} if arguments is None else arguments)
        return tool, Call(call_id, name, data, origin if origin.isascii() else displayable(origin))

    def _run_freely(self, tool: Tool, call: Call, resumable: bool) -> Outcome | Awaitable[Outcome]:
        """Run what needs nobody's yes. Its records do not wait for the disk: by definition it may run again."""
        setting = self.setting
        self.journal.started_freely(setting.session_id, call, tool)
        live = setting.live[call.id] = LiveCall(_STARTING)
        try:
            result = Attempt(setting, self.desk, tool, call, live, "not_needed").run()
        except BaseException:
            del setting.live[call.id]
            raise
        if not isinstance(result, Outcome):
            return self._finish_when_over(result, call, live, resumable)
        del setting.live[call.id]
        return self._finish_freely(result, live.contents)

    async def _finish_when_over(
        self, result: Awaitable[Outcome], call: Call, live: LiveCall, resumable: bool
    ) -> Outcome:
        try:
            ended = await result
        except asyncio.CancelledError:
            if not resumable:
                self._finish_freely(_abandoned(call, None))
            raise
        finally:
            del self.setting.live[call.id]
        return self._finish_freely(ended, live.contents)

    async def _ask_and_run(self, question: Question, resumable: bool) -> Outcome:
        """Carry out a call that needs a yes, and leave it with an end whoever stops waiting for it."""
        call, live = question.call, question.live
        self.setting.live[call.id] = live
        try:
            live.stops = await self.journal.stops()
            return await self._run_with_consent(question)
        except asyncio.CancelledError:
            # Without an end in the journal its card would wait for ever. A call whose end is being written has one.
            if live.phase is not _ENDING and (live.has_begun or not resumable):
                self._finish_freely(_abandoned(call, live))
            raise
        finally:
            del self.setting.live[call.id]
            live.phase = _ENDING  # Also where it is not known whether its start was written.

    async def _run_with_consent(self, question: Question) -> Outcome:
        """Ask whoever decides until their yes holds, and then run what they saw."""
        live = question.live
        again: AskAgain | None = None
        if question.tool.needs_approval is not None:
            question = await self._unless_waived(question)
        for _ in range(self.setting.limits.times_asked):
            try:
                if again is not None:
                    question = await self._question_again(question, again)
                consent = await self._round.ask(question)  # asked is durable before anybody sees it, the answer is once
                if not consent.action.agrees:
                    return await self._finish(await self._declined(consent), live)
                if consent.action.arguments is not None:
                    consent = await self._round.edited(consent)  # the person is the author of what they changed
                await self._round.spend(consent)  # of another request, late, or for what has changed: asked again
            except CallEnds as end:  # nobody to ask, nobody answered, no card to show; or somebody was faster
                return end.outcome if end.is_told else await self._finish(end.outcome, live)
            except AskAgain as why:
                again = why
                continue
            # A crash from here on leaves "started" alone: recovery asks, and never reruns.
            return await self._run_spent(consent)
        assert again is not None
        words = outcome.stale(question.call.tool, again.why, self.setting.limits.times_asked)
        stale = Outcome(kind="stale", message=words, call_id=question.call.id, tool=question.call.tool)
        return await self._finish(stale, live)

    def _declined(self, consent: Consent) -> Awaitable[Outcome]:
        question, by = consent.question, consent.sealed.approver
        return decline(self.setting, question.tool, question.call, consent.action, consent.approval, by)

    async def _run_spent(self, consent: Consent) -> Outcome:
        """Run what was agreed to, or tell another program that it may. Then nothing of ours runs."""
        question, live = consent.question, consent.question.live
        tool, call, request = question.tool, question.call, consent.request
        if tool.carried_out_by is None:
            attempt = Attempt(self.setting, self.desk, tool, call, live, consent.approval, request.preview, request)
            return await self._run_started(call, live, attempt.run(consent.action))
        if live.is_cancelled:  # Everything was stopped in the same moment, and nobody was told of a yes yet.
            return await self._finish(_stopped(call, live), live)
        live.phase = _ENDING  # The journal has that it was handed over, and no start.
        return self._told(Outcome.handed_over(call, tool.carried_out_by, consent.approval, live.not_asked))

    async def _unless_waived(self, question: Question) -> Question:
        """The question, unless the tool's own rule says that nobody need be asked about these arguments."""
        decider = question.decider
        if question.tool.needs_approval is None or not isinstance(decider, deciders.Person) or decider.is_ruled:
            return question
        waived = await waives(question.tool, question.call, self.setting)
        return msgspec.structs.replace(question, decider=deciders.WAIVED) if waived else question

    async def _question_again(self, question: Question, again: AskAgain) -> Question:
        """The same call once more. The tool may have changed since, or be gone, or need no yes any longer."""
        call, live = question.call, question.live
        if await self.journal.stops() != live.stops:
            # Whatever the reason was, nothing that was asked for before a stop is asked for again after it.
            raise CallEnds(_stopped(call, live))
        try:
            tool, call = self.admit(call.id, call.tool, again.arguments, call.origin)
        except (UnknownTool, ArgumentsError) as refusal:
            raise CallEnds(self._turned_away(call.id, call.tool, refusal), is_told=True) from None
        decider = self._decide(tool, call)
        if isinstance(decider, deciders.Nobody):
            raise CallEnds(await self._run_freely_after_all(tool, call, live), is_told=True)
        if isinstance(decider, deciders.Forbidden):
            raise CallEnds(self._forbidden(tool, call, decider))
        asked = Question(tool, call, decider, live, again.author, again.why, again.earlier, question.denials)
        return await self._unless_waived(asked)

    async def _run_freely_after_all(self, tool: Tool, call: Call, live: LiveCall) -> Outcome:
        """Run what needed a yes when it was asked for, and needs none any longer. It stays the same living call."""
        self.journal.started_freely(self.setting.session_id, call, tool)
        live.phase = _STARTING
        running = Attempt(self.setting, self.desk, tool, call, live, "not_needed").run()
        return self._finish_freely(running if isinstance(running, Outcome) else await running, live.contents)

    async def start_again(self, tool: Tool, call: Call, life: Life, why: str) -> Outcome:
        """Run a call in doubt once more, with the same id and the consent it had: a person, or the tool, said so."""
        assert life.started is not None
        if tool.digest != life.started["tool_digest"]:
            raise SessionError("the tool is not the one that was agreed to", place=call.id, hint="ask for a new call")
        if self.authority.forbids(tool, call):
            raise SessionError("a rule denies it by now", place=call.id, hint="lastword policy explain says which")
        live = self.setting.live[call.id] = LiveCall(_STARTING)
        try:
            live.stops = await self.journal.stops()
            if not await self.journal.start_again(self.setting.session_id, call, tool, life, why, live):
                raise decided_already(call.id)
            shown = msgspec.convert((life.asked or {}).get("preview", ()), tuple[Preview, ...])
            attempt = Attempt(self.setting, self.desk, tool, call, live, life.started["approval"], shown)
            pressed = UserAction.SECOND if (life.answered or {}).get("acts") else ALLOWED
            return await self._run_started(call, live, attempt.run(pressed))
        finally:
            del self.setting.live[call.id]
            live.phase = _ENDING

    async def _run_started(self, call: Call, live: LiveCall, running: Outcome | Awaitable[Outcome]) -> Outcome:
        """See what the journal has as started through to its end.

        If its end cannot be written down the call is in doubt, and nobody is told otherwise: whoever looks into the
        journal will find it started and not ended, and two who know different ends would act on both.
        """
        result = running if isinstance(running, Outcome) else await running
        if result.kind == "outcome_unknown" and not result.still_acts:
            # The tool itself does not know. It is left in doubt exactly as a crash would leave it.
            return self._left_in_doubt(result, result.message, by_tool=True)
        try:
            return await self._finish(result, live)
        except StoreError as problem:
            log.info("call %s: %s ran, and its end could not be written: %s", call.id, call.tool, problem)
            words = outcome.unwritten(call.tool, problem.fact, call.id)
            unknown = Outcome(
                kind="outcome_unknown", message=words, call_id=call.id, tool=call.tool, approval=result.approval
            )
            return self._left_in_doubt(unknown, problem.fact)

    def _left_in_doubt(self, unknown: Outcome, why: str, *, by_tool: bool = False) -> Outcome:
        """Tell of a call that is over and has no end in the journal: a person has to decide about it."""
        self.journal.note(self.setting.session_id, "unwritten", unknown.call_id, {"why": why, "by_tool": by_tool})
        return self._told(unknown)

    def _turned_away(self, call_id: str, name: str, problem: UnknownTool | ArgumentsError) -> Outcome:
        kind: Kind = "unknown_tool" if isinstance(problem, UnknownTool) else "invalid_arguments"
        # The name came from a model: it may be a megabyte, or hold lone surrogates that no journal can write.
        words, name = outcome.cut(displayable(str(problem))), displayable(name[: 2 * Manifest.MAX_ID_LENGTH])
        return self._finish_freely(Outcome(kind=kind, message=words, call_id=call_id, tool=name))

    async def _finish(self, result: Outcome, live: LiveCall) -> Outcome:
        """Make the end of a call that needed a yes durable, and then tell it."""
        before, live.phase = live.phase, _ENDING
        try:
            await self.journal.finished(self.setting.session_id, result, live.contents)
        except Exception:
            live.phase = before
            raise
        return self._told(result)

    def _finish_freely(self, result: Outcome, contents: tuple[bytes, ...] = ()) -> Outcome:
        """End a call whose records need not wait for the disk."""
        self.journal.finished_freely(self.setting.session_id, result, contents)
        return self._told(result)

    def _told(self, result: Outcome) -> Outcome:
        if self.setting.audience.listeners:
            self.setting.audience.tell(Finished(result))
        return result


def _abandoned(call: Call, live: LiveCall | None) -> Outcome:
    """Whoever asked for the call stopped waiting. What needed a yes and still runs may still act."""
    if live is not None and live.execution is not None and not live.execution.is_over:
        words = outcome.left_behind(call.tool)
        return Outcome(kind="outcome_unknown", message=words, call_id=call.id, tool=call.tool, still_acts=True)
    return Outcome(kind="cancelled", message=outcome.abandoned(call.tool), call_id=call.id, tool=call.tool)


def _stopped(call: Call, live: LiveCall) -> Outcome:
    """Everything was stopped between the question and the start."""
    words = outcome.called_off(call.tool, live.cancelled_by)
    return Outcome(kind="cancelled", message=words, call_id=call.id, tool=call.tool)


def decided_already(call_id: str) -> SessionError:
    """Two decide about one call in doubt, and the other was faster."""
    return SessionError(
        "somebody else has just decided about this call", place=call_id, hint="lastword show says how it stands"
    )
