"""The door: the life of one tool call. Chat, scripts, MCP, the command line and tests all come through `carry_out`.

Nothing here knows how a card looks, where records go or how code is run; it knows the order in which these must happen,
and that order is the product's promise. How consent is asked for and spent is told in asking.py; what an earlier
process left behind is the business of recovery.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from lastword import ids, values
from lastword.call.asking import Asking, Consent, Question, Reask
from lastword.call.attempt import Attempt, decline, masked
from lastword.call.desk import Desk
from lastword.call.events import DeniedByRule, Finished
from lastword.call.questions import OnQuestion, QuestionDesk
from lastword.call.setting import Setting
from lastword.call.standing import StandingYes
from lastword.call.waiver import waives
from lastword.consent import (
    ALLOWED,
    SECOND,
    WAIVED,
    Answerer,
    ApprovalRequest,
    Approver,
    Call,
    Forbidden,
    Kind,
    LiveCall,
    LiveRun,
    Nobody,
    Outcome,
    Person,
    Phase,
    Preset,
    Stoppable,
    handed_over_outcome,
    hide,
    outcome,
)
from lastword.display import displayable
from lastword.editor import Preview
from lastword.errors import ArgumentsError, SessionError, StoreError, UnknownTool
from lastword.journal import Life
from lastword.rules import Explanation, Policy, folder_beside
from lastword.store import refuse_if_watched
from lastword.tools import Manifest, Tool
from lastword.tools.guard import mark

log = logging.getLogger("lastword")


class Door:
    """Where every call of a session passes."""

    def __init__(
        self,
        setting: Setting,
        approver: Approver | None,
        watch: Callable[[], None],
        on_question: OnQuestion | None = None,
    ) -> None:
        self._setting = setting
        self.session_id = setting.session_id
        self.registry = setting.registry
        self.journal = setting.journal
        self.state = setting.state
        self.editor = setting.editor
        self.limits = setting.limits
        self.audience = setting.audience
        self.desk = Desk(
            setting.journal,
            setting.audience,
            approver,
            timeout_seconds=setting.limits.approval_timeout_seconds,
            watch=watch,  # Starts listening for answers from other processes.
            watch_after_seconds=setting.limits.watch_after_seconds,
        )
        self.questions = setting.questions = QuestionDesk(
            setting.journal,
            setting.audience,
            on_question,
            timeout_seconds=setting.limits.approval_timeout_seconds,
            watch=watch,
            watch_after_seconds=setting.limits.watch_after_seconds,
            principal=lambda: setting.principal,
        )
        self._asking = Asking(setting, self.desk)
        self.live: dict[str, LiveCall] = {}
        """The calls that are asked about or carried out right now."""
        self.runs: dict[str, LiveRun] = {}
        """The scripts that are carried out right now."""
        mark()

    @property
    def gave(self) -> set[str]:
        """The grants that were given here."""
        return self._setting.gave

    def folder(self, card: ApprovalRequest) -> Path:
        """The folder that its paths and commands are meant from."""
        return folder_beside(card, self._setting.registry, self._setting.editor)

    @property
    def policy(self) -> Policy | None:
        return self._setting.policy

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        self._setting.policy = policy

    @property
    def preset(self) -> Preset:
        return self._setting.preset

    @preset.setter
    def preset(self, preset: Preset) -> None:
        self._setting.preset = preset

    @property
    def principal(self) -> str:
        """Whose session it is; known when it was opened."""
        return self._setting.principal

    @principal.setter
    def principal(self, principal: str) -> None:
        self._setting.principal = principal

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
        refuse_if_watched("call ", name)  # A request function that calls a tool would act before anybody agreed.
        try:
            tool, call = self.admit(call_id, name, arguments, origin)  # unknown tool or bad arguments stop here
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call_id, name, refusal)
        decider = self._setting.decide(tool, call)
        if isinstance(decider, Nobody):
            return self._run_freely(tool, call, resumable)
        if isinstance(decider, Forbidden):
            return self._finish_freely(self._forbidden(tool, call, decider))
        question = Question(tool, call, decider, LiveCall(), problem=problem, earlier=earlier, denials=denials)
        return self._ask_and_run(question, resumable)

    def _forbidden(self, tool: Tool, call: Call, decider: Forbidden) -> Outcome:
        """A rule denies the call. What it was to do is remembered and told: its end alone would not say it."""
        hidden = hide(values.decode(call.arguments), tool.secrets)
        facts = {"tool": call.tool, "arguments": hidden, "origin": call.origin, "rule": decider.rule}
        self.journal.note(self.session_id, "forbidden", call.id, facts)
        if self.audience.listeners:
            shown = masked(call.arguments, tool)
            self.audience.tell(DeniedByRule(call.id, call.tool, shown, call.origin, decider.rule))
        words = outcome.denied_by_rule(call.tool, decider.rule)
        return Outcome(kind="denied", message=words, call_id=call.id, tool=call.tool, approval="rule")

    async def explain(self, name: str, arguments: Any) -> Explanation:
        """Who would decide about a call now, and why."""
        tool, call = self.admit(ids.new(), name, arguments, "")
        return await StandingYes(self._setting).explain(tool, call)

    def turn_down(self, call_id: str, name: str, arguments: Any, words: str | None = None) -> Outcome | None:
        """End a call that a person has denied before it was asked for; None where it needs nobody's yes."""
        try:
            tool, call = self.admit(call_id, name, arguments, "")
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call_id, name, refusal)
        if isinstance(self._setting.decide(tool, call), Nobody):
            return None
        words = words or outcome.denied_with_the_rest(call.tool)
        return self._finish_freely(Outcome(kind="denied", message=words, call_id=call_id, tool=call.tool))

    def admit(self, call_id: str, name: str, arguments: Any, origin: str) -> tuple[Tool, Call]:
        """Find the tool and reduce the arguments to the bytes that will be shown, sealed and run."""
        tool = self.registry.lookup(name)
        if tool.manifest.script_editor_only and self.editor is None:
            raise UnknownTool(
                f"{name} works only on a project in an editor, and there is none here",
                hint="start the session with an editor: lastword edit DIR",
            )
        data = tool.validate({} if arguments is None else arguments)
        return tool, Call(call_id, name, data, origin if origin.isascii() else displayable(origin))

    def _run_freely(self, tool: Tool, call: Call, resumable: bool) -> Outcome | Awaitable[Outcome]:
        """Run what needs nobody's yes. Its records do not wait for the disk: by definition it may run again."""
        self.journal.started_freely(self.session_id, call, tool)
        live = LiveCall(Phase.STARTING)
        self.live[call.id] = live
        try:
            result = Attempt(self._setting, tool, call, live, "not_needed").run()
        except BaseException:
            del self.live[call.id]
            raise
        if not isinstance(result, Outcome):
            return self._finish_when_over(result, call, live, resumable)
        del self.live[call.id]
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
            del self.live[call.id]
        return self._finish_freely(ended, live.contents)

    async def _ask_and_run(self, question: Question, resumable: bool) -> Outcome:
        """Carry out a call that needs a yes, and leave it with an end whoever stops waiting for it."""
        call, live = question.call, question.live
        self.live[call.id] = live
        try:
            live.stops = await self.journal.stops()
            return await self._run_with_consent(await self._unless_waived(question))
        except asyncio.CancelledError:
            # Without an end in the journal its card would wait for ever. One whose end is being written has one.
            if live.phase is not Phase.ENDING and (live.has_begun or not resumable):
                self._finish_freely(_abandoned(call, live))
            raise
        finally:
            del self.live[call.id]

    async def _run_with_consent(self, question: Question) -> Outcome:
        """Ask whoever decides until their yes holds, and then run what they saw."""
        live = question.live
        again: Reask | None = None
        for _ in range(self.limits.times_asked):
            if again is not None:
                asked_again = await self._question_again(question, again)
                if isinstance(asked_again, Outcome):
                    return asked_again
                question = asked_again

            consent = await self._asking.put(question)  # asked is durable before anybody sees it, the answer is once
            if isinstance(consent, Outcome):  # nobody to ask, nobody answered, or no card to show
                return await self._finish(consent, live)
            if isinstance(consent, Reask):  # it was answered, and not by whoever has to answer it now
                again = consent
                continue
            if not consent.action.agrees:
                by = consent.sealed.approver
                denied = await decline(self._setting, consent.tool, consent.call, consent.action, consent.approval, by)
                return await self._finish(denied, live)

            agreed = await self._asking.edited(consent)  # the person is the author of what they changed
            spent = await self._asking.spend(agreed) if isinstance(agreed, Consent) else agreed
            if isinstance(spent, Consent) and spent.tool.carried_out_by is not None:
                return await self._hand_over(spent, spent.tool.carried_out_by)
            if isinstance(spent, Consent):
                # A crash from here on leaves "started" alone: recovery asks, and never reruns.
                return await self._run_started(spent.call, live, self._attempt(spent).run(spent.action))
            if isinstance(spent, Outcome):  # Another process was faster with this very call.
                return spent
            again = spent
        assert again is not None
        words = outcome.stale(question.call.tool, again.why, self.limits.times_asked)
        stale = Outcome(kind="stale", message=words, call_id=question.call.id, tool=question.call.tool)
        return await self._finish(stale, live)

    async def _hand_over(self, consent: Consent, to: str) -> Outcome:
        """Tell another program that it may. The journal has that, and no start: nothing of ours runs."""
        if consent.live.is_cancelled:  # Everything was stopped in the same moment, and nobody was told of a yes yet.
            return await self._finish(_stopped(consent.call, consent.live), consent.live)
        consent.live.phase = Phase.ENDING
        handed = handed_over_outcome(consent.call, to, consent.approval, consent.live.not_asked)
        if self.audience.listeners:
            self.audience.tell(Finished(handed))
        return handed

    def _attempt(self, consent: Consent) -> Attempt:
        request = consent.request
        return Attempt(
            self._setting, consent.tool, consent.call, consent.live, consent.approval, request.preview, request
        )

    async def _unless_waived(self, question: Question) -> Question:
        """The question, unless the tool's own rule says that nobody need be asked about these arguments."""
        decider = question.decider
        if question.tool.needs_approval is None or not isinstance(decider, Person) or decider.is_ruled:
            return question
        waived = await waives(question.tool, question.call, self._setting)
        return msgspec.structs.replace(question, decider=WAIVED) if waived else question

    async def _question_again(self, question: Question, again: Reask) -> Question | Outcome:
        """The same call once more. The tool may have changed since, or be gone, or need no yes any longer."""
        call, live = question.call, question.live
        if await self.journal.stops() != live.stops:
            # Whatever the reason was, nothing that was asked for before a stop is asked for again after it.
            return await self._finish(_stopped(call, live), live)
        try:
            tool, call = self.admit(call.id, call.tool, again.arguments, call.origin)
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call.id, call.tool, refusal)
        decider = self._setting.decide(tool, call)
        if isinstance(decider, Nobody):
            return await self._run_freely_after_all(tool, call, live)
        if isinstance(decider, Forbidden):
            return await self._finish(self._forbidden(tool, call, decider), live)
        asked = Question(tool, call, decider, live, again.author, again.why, again.earlier, question.denials)
        return await self._unless_waived(asked)

    async def _run_freely_after_all(self, tool: Tool, call: Call, live: LiveCall) -> Outcome:
        """Run what needed a yes when it was asked for, and needs none any longer. It stays the same living call."""
        self.journal.started_freely(self.session_id, call, tool)
        live.phase = Phase.STARTING
        result = await _awaited(Attempt(self._setting, tool, call, live, "not_needed").run())
        return self._finish_freely(result, live.contents)

    def forbids(self, tool: Tool, call: Call) -> bool:
        """Whether a rule denies a call at this moment, whoever said yes to it before."""
        return self._setting.forbids(tool, call)

    def still_stands(self, tool: Tool, call: Call, by: Answerer) -> Awaitable[bool]:
        """Whether what stood for a person when a call was started stands for them at this moment, too."""
        return StandingYes(self._setting).still_stands(tool, call, by)

    async def start_again(self, tool: Tool, call: Call, life: Life, why: str) -> Outcome:
        """Run a call in doubt once more, with the same id and the consent it had: a person, or the tool, said so."""
        assert life.started is not None
        if tool.digest != life.started["tool_digest"]:
            raise SessionError("the tool is not the one that was agreed to", place=call.id, hint="ask for a new call")
        if self.forbids(tool, call):
            raise SessionError("a rule denies it by now", place=call.id, hint="lastword policy explain says which")
        live = self.live[call.id] = LiveCall(Phase.STARTING)
        try:
            live.stops = await self.journal.stops()
            if not await self.journal.start_again(self.session_id, call, tool, life, why, live):
                raise decided_already(call.id)
            shown = msgspec.convert((life.asked or {}).get("preview", ()), tuple[Preview, ...])
            attempt = Attempt(self._setting, tool, call, live, life.started["approval"], shown)
            pressed = SECOND if (life.answered or {}).get("acts") else ALLOWED
            return await self._run_started(call, live, attempt.run(pressed))
        finally:
            del self.live[call.id]

    async def _run_started(self, call: Call, live: LiveCall, running: Outcome | Awaitable[Outcome]) -> Outcome:
        """See what the journal has as started through to its end.

        If its end cannot be written down the call is in doubt, and nobody is told otherwise: whoever looks into the
        journal will find it started and not ended, and two who know different ends would act on both.
        """
        result = await _awaited(running)
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
        self.journal.note(self.session_id, "unwritten", unknown.call_id, {"why": why, "by_tool": by_tool})
        if self.audience.listeners:
            self.audience.tell(Finished(unknown))
        return unknown

    def cancel(self, call_id: str) -> bool:
        """Stop a running call, or close the question that waits for it. Between the two, its next step finds out."""
        live = self.live.get(call_id)
        if live is None:
            return False
        if live.phase is Phase.RUNNING:
            assert live.execution is not None
            live.execution.cancel()
        elif not self.desk.close(call_id):
            live.is_cancelled = True
        return True

    def detach(self, call_id: str) -> bool:
        """Stop waiting for an answer, and leave the question to whoever may still give one."""
        if not self.desk.leave(call_id):
            return False
        self.journal.note(self.session_id, "detached", call_id, {})
        return True

    def stop(self, call_ids: Iterable[str], by: Answerer) -> None:
        """Everything was stopped: deny what waits of these calls, and cancel what runs."""
        for call_id in call_ids:
            if by.kind != "person" and (live := self.live.get(call_id)) is not None:
                live.cancelled_by = str(by)
            waiting = self.desk.pending.get(call_id)
            if waiting is None or not self.desk.answer(call_id, waiting.request.deny(outcome.STOPPED), by):
                self.cancel(call_id)

    @property
    def running(self) -> dict[str, Stoppable]:
        """The calls whose code runs right now."""
        return {
            call_id: live.execution
            for call_id, live in list(self.live.items())
            if live.phase is Phase.RUNNING and live.execution is not None
        }

    def _turned_away(self, call_id: str, name: str, problem: UnknownTool | ArgumentsError) -> Outcome:
        kind: Kind = "unknown_tool" if isinstance(problem, UnknownTool) else "invalid_arguments"
        # The name came from a model: it may be a megabyte, or hold lone surrogates that no journal can write.
        words, name = outcome.cut(displayable(str(problem))), displayable(name[: 2 * Manifest.MAX_ID_LENGTH])
        return self._finish_freely(Outcome(kind=kind, message=words, call_id=call_id, tool=name))

    async def _finish(self, result: Outcome, live: LiveCall) -> Outcome:
        """Make the end of a call that needed a yes durable, and then tell it."""
        before, live.phase = live.phase, Phase.ENDING
        try:
            await self.journal.finished(self.session_id, result, live.contents)
        except Exception:
            live.phase = before
            raise
        if self.audience.listeners:
            self.audience.tell(Finished(result))
        return result

    def _finish_freely(self, result: Outcome, contents: tuple[bytes, ...] = ()) -> Outcome:
        """End a call whose records need not wait for the disk."""
        self.journal.finished_freely(self.session_id, result, contents)
        if self.audience.listeners:
            self.audience.tell(Finished(result))
        return result


async def _awaited(result: Outcome | Awaitable[Outcome]) -> Outcome:
    return result if isinstance(result, Outcome) else await result


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
