"""The door: the life of one tool call. Chat, scripts, MCP, the command line and tests all come through `carry_out`.

Nothing here knows how a card looks, where records go or how code is run; it knows the order in which these must happen,
and that order is the product's promise. Cards wait on the desk (desk.py); what an earlier process left behind is the
business of recovery.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from lastword import ids, values
from lastword.call import draw
from lastword.call.changes import ChangeLog
from lastword.call.desk import Desk
from lastword.call.draw import Undrawable
from lastword.call.events import Answered, Audience, Finished, Started
from lastword.call.execution import CANCEL_GRACE_SECONDS, Ended, Execution, verdict
from lastword.call.reports import Reports
from lastword.consent import outcome
from lastword.consent.approval import (
    ALLOWED,
    ApprovalRequest,
    Approver,
    Author,
    Auto,
    Nobody,
    Person,
    Preset,
    Seal,
    UserAction,
    flaw,
    keep_secrets,
    mask,
    seal,
    who_decides,
)
from lastword.consent.outcome import Approval, Kind, Outcome
from lastword.display import displayable
from lastword.editor import Preview, ScriptEditorProvider
from lastword.editor.recording import RecordingEditor, SealedEditor, still_current
from lastword.errors import ArgumentsError, SessionError, StoreError, UnknownTool
from lastword.journal import Call, Journal, Life, read_answer
from lastword.tools.context import ToolContext
from lastword.tools.guard import Guard, refuse_if_watched
from lastword.tools.manifest import MAX_ID_LENGTH
from lastword.tools.registry import ToolRegistry
from lastword.tools.state import State
from lastword.tools.tool import Tool

log = logging.getLogger("lastword")


# How the journal calls an approver that is a setting and not somebody.
PRESET = "preset "


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how often they are tried."""

    answer_valid_seconds: float = 60.0
    """An answer must start its call within this time: a yes given to yesterday's world is not consent to today's."""
    approval_timeout_seconds: float | None = None
    """A question waits for ever unless this is set."""
    draw_timeout_seconds: float = draw.DRAW_TIMEOUT_SECONDS
    call_timeout_seconds: float | None = None
    """For tools that declare no timeout of their own, and an upper bound for those that do."""
    cancel_grace_seconds: float = CANCEL_GRACE_SECONDS
    times_asked: int = 3
    """How often the same call is asked again when an approval did not hold."""
    watch_after_seconds: float = 0.05
    """Approvers in the same process mostly answer at once; only when they do not, other processes are listened for."""


class Consent(msgspec.Struct, frozen=True):
    """A person's or the preset's answer, with the request it was given to."""

    request: ApprovalRequest
    action: UserAction
    sealed: Seal
    approval: Approval
    is_written: bool = True
    """False for a plain yes that was given here: it goes to the disk in one step with the start of its call."""


class Reask(msgspec.Struct, frozen=True):
    """The person's change cannot run as it stands; they are asked again."""

    why: str
    arguments: Any
    author: Author


class Door:
    """What the one door needs to know of its session."""

    def __init__(
        self,
        session_id: str,
        registry: ToolRegistry,
        journal: Journal,
        state: State,
        approver: Approver | None,
        preset: Preset,
        editor: ScriptEditorProvider | None,
        limits: Limits,
        watch: Callable[[], None],
    ) -> None:
        self.session_id = session_id
        self.registry = registry
        self.journal = journal
        self.state = state
        self.preset = preset
        self.editor = editor
        self.limits = limits
        self.audience = Audience()
        self.desk = Desk(
            journal,
            self.audience,
            approver,
            timeout_seconds=limits.approval_timeout_seconds,
            watch=watch,  # Starts listening for answers from other processes.
            watch_after_seconds=limits.watch_after_seconds,
        )
        self.running: dict[str, Execution] = {}
        self.begun: set[str] = set()
        """Approved calls that may have started and have no end in the journal yet."""
        self._ending: set[str] = set()
        """Calls whose end is on its way to the disk."""
        self._asking: dict[str, bool] = {}
        """Calls that need a yes and have not come to their end, and whether somebody has cancelled them."""

    def carry_out(
        self, call_id: str, name: str, arguments: Any, origin: str = "", earlier: Life | None = None
    ) -> Outcome | Awaitable[Outcome]:
        """Live the whole life of one tool call. Scripts and MCP clients come through here too.

        What asks nobody and waits for nothing is over when this returns; anything else is to be awaited.
        """
        refuse_if_watched("call ", name)  # A request function that calls a tool would act before anybody agreed.
        try:
            tool, call = self.admit(call_id, name, arguments, origin)  # unknown tool or bad arguments stop here
        except (UnknownTool, ArgumentsError) as refusal:
            return self._turned_away(call_id, name, refusal)
        decider = who_decides(tool.manifest, self.preset)
        if isinstance(decider, Nobody):
            return self._run_freely(tool, call)
        return self._ask_and_run(tool, call, decider, origin, earlier)

    def _run_freely(self, tool: Tool, call: Call) -> Outcome | Awaitable[Outcome]:
        self.journal.started_freely(self.session_id, call, tool)
        result = self._execute(tool, call, "not_needed")
        return self._end(result) if isinstance(result, Outcome) else self._end_later(result)

    async def _ask_and_run(
        self, tool: Tool, call: Call, decider: Auto | Person, origin: str, earlier: Life | None
    ) -> Outcome:
        self._asking[call.id] = False
        try:
            return await self._run_with_consent(tool, call, decider, origin, earlier)
        finally:
            self._asking.pop(call.id, None)

    async def _run_with_consent(
        self, tool: Tool, call: Call, decider: Auto | Person, origin: str, earlier: Life | None
    ) -> Outcome:
        """Ask whoever decides until their yes holds, and then run what they saw."""
        problem: str | None = None
        author: Author = "model"
        arguments: Any = None
        for times in range(self.limits.times_asked):
            if times:  # Asked again: the tool may have changed since, or be gone.
                try:
                    tool, call = self.admit(call.id, call.tool, arguments, origin)
                except (UnknownTool, ArgumentsError) as refusal:
                    return self._turned_away(call.id, call.tool, refusal)
                now_decides = who_decides(tool.manifest, self.preset)
                if isinstance(now_decides, Nobody):
                    return await _awaited(self._run_freely(tool, call))
                decider = now_decides

            consent = await self._consent(tool, call, decider, author, problem, earlier)
            earlier = None
            if isinstance(consent, Outcome):  # nobody to ask, nobody answered, or no card to show
                return await self._finish(consent)
            if not consent.action.primary_confirmed:
                return await self._finish(await self._declined(tool, call, consent))
            if consent.action.arguments is not None:  # the person is the author of what they changed
                edited = await self._edited(tool, call, consent)
                if isinstance(edited, Reask):
                    problem, author, arguments = edited.why, edited.author, edited.arguments
                    continue
                call, consent = edited

            # Another request's answer, a late one, a changed tool, a changed file, a second spending.
            problem = await self._flaw(tool, consent)
            if problem is None:
                problem = await self._burn_and_start(tool, call, consent)
                if problem is None:
                    # A crash from here on leaves "started" alone: recovery asks, and never reruns.
                    return await self._run_started(tool, call, consent.approval, consent.request.preview, consent)
                self.begun.discard(call.id)
                life = await self.journal.life(call.id)
                if life.finished is not None:  # Somebody was faster with this very call.
                    return life.outcome()
                if life.started is not None:  # And it is theirs to end.
                    words = outcome.still_running(call.tool)
                    return Outcome(kind="outcome_unknown", message=words, call_id=call.id, tool=call.tool)
            if not consent.is_written:
                earlier = await self._write_late(consent)
            # What is asked again is what was shown, whatever the caller has done to its own copy since.
            arguments, author = values.decode(call.arguments), consent.request.author
        words = outcome.stale(call.tool, problem or "it changed", self.limits.times_asked)
        return await self._finish(Outcome(kind="stale", message=words, call_id=call.id, tool=call.tool))

    def abandon(self, call_id: str, name: str) -> None:
        """Whoever asked for the call stopped waiting. Without an end in the journal its card would wait for ever."""
        if call_id in self._ending:
            # It has come to an end of its own, which is being written. A second one would contradict it.
            self._ending.discard(call_id)
            self.begun.discard(call_id)
            return
        self._end(Outcome(kind="cancelled", message=outcome.abandoned(name), call_id=call_id, tool=name))

    def cancel(self, call_id: str) -> bool:
        """Stop a running call, or close the question that waits for it. Between the two, its next step finds out."""
        if execution := self.running.get(call_id):
            execution.cancel()
            return True
        if self.desk.close(call_id):
            return True
        if call_id not in self._asking:
            return False
        self._asking[call_id] = True
        return True

    def is_busy_with(self, call_id: str) -> bool:
        """Whether this call is asked about or carried out here right now."""
        return call_id in self.running or call_id in self._asking

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

    def _turned_away(self, call_id: str, name: str, problem: UnknownTool | ArgumentsError) -> Outcome:
        kind: Kind = "unknown_tool" if isinstance(problem, UnknownTool) else "invalid_arguments"
        # The name came from a model: it may be a megabyte, or hold half characters that no journal can write.
        words, name = outcome.cut(displayable(str(problem))), displayable(name[: 2 * MAX_ID_LENGTH])
        return self._end(Outcome(kind=kind, message=words, call_id=call_id, tool=name))

    async def _consent(
        self,
        tool: Tool,
        call: Call,
        decider: Auto | Person,
        author: Author,
        problem: str | None,
        earlier: Life | None,
    ) -> Consent | Outcome:
        """Draw the card, put it before whoever decides, and write down what they said."""
        missing = () if isinstance(decider, Auto) else decider.missing
        request = await self._draw(tool, call, author, problem, missing)
        if isinstance(request, Undrawable):
            kind: Kind = "failed" if request.for_model else "refused"
            words = outcome.cut(request.why) if request.for_model else outcome.refused(tool.name, request.why)
            return Outcome(kind=kind, message=words, call_id=call.id, tool=tool.name)
        if isinstance(decider, Auto):
            # Drawing took its time, and the user may have taken their key back meanwhile.
            decides_now = who_decides(tool.manifest, self.preset)
            if isinstance(decides_now, Person):
                decider = decides_now
                request = msgspec.structs.replace(request, missing=decider.missing)
        if earlier is not None and earlier.asked is not None:
            same = msgspec.structs.replace(request, nonce=earlier.asked.get("nonce", request.nonce))
            if same.digest == earlier.asked.get("digest"):
                # The very question that was put before a restart. It may even have been answered since.
                request = same
                if earlier.answered is not None:
                    action, sealed = read_answer(request.nonce, earlier.answered)
                    was_auto = sealed.approver.startswith(PRESET)
                    # A preset's yes is no person's: if one of the two keys is gone since, somebody is asked.
                    if isinstance(decider, Auto) or not was_auto:
                        return self._told(Consent(request, action, sealed, "auto" if was_auto else "person"))
                    request = msgspec.structs.replace(request, nonce=ids.ordered(16))
        if earlier is None or earlier.asked is None or request.digest != earlier.asked.get("digest"):
            await self.journal.asked(request)

        approval: Approval = "auto"
        action = ALLOWED
        by: str | Seal
        if self._asking.get(call.id):
            approval, action, by = "person", request.close(), "cancel"
        elif isinstance(decider, Auto):
            by = f"{PRESET}{self.preset.name}"
        else:
            answer = await self.desk.ask(request)
            if isinstance(answer, Outcome):
                return answer
            approval, (action, by) = "person", answer
        if isinstance(by, Seal):
            return self._told(Consent(request, action, by, approval))
        sealed = seal(request, action, by, self.journal.clock())
        if action.primary_confirmed and action.arguments is None:
            return Consent(request, action, sealed, approval, is_written=False)
        if not await self.journal.answered(request, action, sealed):
            # Somebody was faster, in another window or another process. Theirs is the answer.
            action, sealed = await self.journal.answer_to(request)
        return self._told(Consent(request, action, sealed, approval))

    def _told(self, consent: Consent) -> Consent:
        """The answer stands in the journal now, so whoever listens may hear of it."""
        if self.audience.listeners:
            self.audience.tell(Answered(consent.request.call_id, consent.action, consent.sealed.approver))
        return consent

    async def _write_late(self, consent: Consent) -> Life | None:
        """Write down a yes that started nothing; the life of its call, when somebody else's answer stands instead."""
        if await self.journal.answered(consent.request, consent.action, consent.sealed):
            self._told(consent)
            return None
        return await self.journal.life(consent.request.call_id)

    def _draw(
        self, tool: Tool, call: Call, author: Author, problem: str | None = None, missing: tuple[str, ...] = ()
    ) -> Awaitable[ApprovalRequest | Undrawable]:
        return draw.draw(
            tool,
            call,
            session_id=self.session_id,
            state=self.state,
            editor=self.editor,
            timeout_seconds=self.limits.draw_timeout_seconds,
            author=author,
            problem=problem,
            missing=missing,
        )

    async def _edited(self, tool: Tool, call: Call, consent: Consent) -> tuple[Call, Consent] | Reask:
        """The call as the person changed it, drawn and sealed anew. What they have not seen is put to them first."""
        given = consent.action.arguments
        if why := await self._flaw(tool, consent):
            # An edit cannot make up for an answer that belongs to another request, or that came too late.
            return Reask(why, values.decode(call.arguments), consent.request.author)
        try:
            given = keep_secrets(given or {}, values.decode(call.arguments), tool.manifest.secrets)
            arguments = tool.validate(given)
        except ArgumentsError as problem:
            why = f"the edited arguments do not fit: {'; '.join(p.fact for p in problem.problems)}"
            return Reask(why, values.decode(call.arguments), consent.request.author)
        if arguments == call.arguments:
            return call, consent
        edited = Call(call.id, call.tool, arguments, call.origin)
        request = await self._draw(tool, edited, "person")
        if isinstance(request, Undrawable):
            why = f"the edited call could not be shown: {request.why}"
            if request.for_model:  # The tool says what is wrong with the change, so they see the call without it.
                return Reask(why, values.decode(call.arguments), consent.request.author)
            return Reask(why, given, "person")
        content = tool.manifest.content_parameter
        wrote = request.arguments.get(content) if content else None
        seen = {(preview.path, preview.base_digest) for preview in consent.request.preview}
        if any(p.proposed != wrote or (p.path, p.base_digest) not in seen for p in request.preview):
            return Reask("you changed the arguments, and this is what would happen now", given, "person")
        await self.journal.asked(request)
        sealed = seal(request, ALLOWED, consent.sealed.approver, consent.sealed.answered_at)
        if not await self.journal.answered(request, ALLOWED, sealed):
            return Reask("somebody else answered while you edited", given, "person")
        return edited, Consent(request, ALLOWED, sealed, consent.approval)

    async def _flaw(self, tool: Tool, consent: Consent) -> str | None:
        """Why this consent may not start the call now, or None."""
        request = consent.request
        registered = self.registry.find(request.tool)
        found = flaw(
            consent.sealed,
            request,
            # The same description with other code behind it is another tool.
            tool_digest=registered.digest if registered is tool else None,
            now=self.journal.clock(),
            valid_seconds=self.limits.answer_valid_seconds,
        )
        if found is None and self.editor is not None and request.reads:
            changed = await still_current(self.editor, dict(request.reads))
            if changed:
                found = f"{', '.join(changed)} changed while the question waited"
        return found

    async def _burn_and_start(self, tool: Tool, call: Call, consent: Consent) -> str | None:
        """Spend the approval and mark the call as started, durably and together; why not, otherwise."""
        self.begun.add(call.id)
        if consent.is_written:
            spent = await self.journal.burn_and_start(self.session_id, call, tool, consent.sealed, consent.approval)
            return None if spent else "the approval was already spent"
        if not await self.journal.answer_and_start(
            consent.request, consent.action, call, tool, consent.sealed, consent.approval
        ):
            return "it was answered elsewhere in the same moment"
        self._told(consent)
        return None

    async def _declined(self, tool: Tool, call: Call, consent: Consent) -> Outcome:
        """The answer is no. A tool that takes the answer may word it, under the guard."""
        action = consent.action
        own_words: str | None = None
        overstepped: str | None = None
        if tool.takes_answer:
            guard = Guard(f"{tool.name}, after the answer was no,")
            recorder = None if self.editor is None else RecordingEditor(self.editor)
            context = ToolContext(self.state, call.id, tool.manifest, self.session_id, guard)
            given = {"user_action": action, "editor": recorder, "context": context}
            execution = Execution(tool, context)
            ended = execution.begin(call.arguments, given, guard) or await execution.wait(
                self.limits.draw_timeout_seconds
            )
            tried = guard.violations + ([] if recorder is None else [displayable(what) for what in recorder.attempts])
            if tried:
                overstepped = tried[0]
                log.error("call %s: %s tried to %s although it was denied", call.id, tool.name, overstepped)
                own_words = outcome.overstepped(tool.name, overstepped)
            else:
                said = verdict(tool, call.id, consent.approval, ended)
                own_words = said.message if said.kind in ("succeeded", "failed") else None
        closed = not action.secondary_confirmed
        words = outcome.denied(tool.name, action.reason, own_words, closed=closed)
        return Outcome(
            kind="denied",
            message=words,
            call_id=call.id,
            tool=tool.name,
            approval=consent.approval,
            overstepped=overstepped,
        )

    async def start_again(self, tool: Tool, call: Call, life: Life, why: str) -> Outcome:
        """Run a call in doubt once more, with the same id and the consent it had: a person, or the tool, said so."""
        assert life.started is not None
        if tool.digest != life.started["tool_digest"]:
            raise SessionError("the tool is not the one that was agreed to", place=call.id, hint="ask for a new call")
        if not await self.journal.start_again(self.session_id, call, tool, life, why):
            raise decided_already(call.id)
        shown = msgspec.convert((life.asked or {}).get("preview", ()), tuple[Preview, ...])
        return await self._run_started(tool, call, life.started["approval"], shown)

    async def _run_started(
        self,
        tool: Tool,
        call: Call,
        approval: Approval,
        previews: tuple[Preview, ...],
        consent: Consent | None = None,
    ) -> Outcome:
        """Carry out what the journal has as started.

        If its end cannot be written down the call is in doubt, and nobody is told otherwise: whoever looks into the
        journal will find it started and not ended, and two who know different ends would act on both.
        """
        result = await _awaited(self._execute(tool, call, approval, previews, consent))
        try:
            return await self._finish(result)
        except StoreError as problem:
            log.info("call %s: %s ran, and its end could not be written: %s", call.id, call.tool, problem)
            self.begun.discard(call.id)
            self.journal.note(self.session_id, "unwritten", call.id, {"why": problem.fact})
            words = outcome.unwritten(call.tool, problem.fact, call.id)
            unknown = Outcome(
                kind="outcome_unknown", message=words, call_id=call.id, tool=call.tool, approval=result.approval
            )
            if self.audience.listeners:
                self.audience.tell(Finished(unknown))
            return unknown

    def _execute(
        self,
        tool: Tool,
        call: Call,
        approval: Approval,
        previews: tuple[Preview, ...] = (),
        consent: Consent | None = None,
    ) -> Outcome | Awaitable[Outcome]:
        """Run the implementation, now that it may. One that waits for nothing has ended when this returns."""
        context = ToolContext(self.state, call.id, tool.manifest, self.session_id, None, self._open_reports)
        editor = None
        if self.editor is not None:
            kept = ChangeLog(self.journal, self.session_id, call.id, self.editor, durable=approval != "not_needed")
            # What is in a private file is for those who asked a person, and no setting has looked at a card.
            editor = SealedEditor(self.editor, previews, kept, sees_private=approval == "person")
        given = {"user_action": consent.action if consent else ALLOWED, "editor": editor, "context": context}
        execution = self.running[call.id] = Execution(tool, context, self.limits.cancel_grace_seconds)
        try:
            if self._asking.get(call.id):
                execution.cancel()
            if self.audience.listeners:
                self.audience.tell(Started(call.id, call.tool, _masked(call.arguments, tool), call.origin))
            ended = execution.begin(call.arguments, given)
        except BaseException:
            self._stopped(execution, call, approval, editor)
            raise
        if ended is None:
            return self._wait(execution, call, approval, editor, consent)
        self._stopped(execution, call, approval, editor)
        return self._judged(execution, ended, call, approval, editor, consent)

    async def _wait(
        self, execution: Execution, call: Call, approval: Approval, editor: SealedEditor | None, consent: Consent | None
    ) -> Outcome:
        try:
            ended = await execution.wait(self._timeout(execution.tool))
        finally:
            self._stopped(execution, call, approval, editor)
        return self._judged(execution, ended, call, approval, editor, consent)

    def _stopped(self, execution: Execution, call: Call, approval: Approval, editor: SealedEditor | None) -> None:
        """Whatever its code still does, it does not do it for this call any more."""
        del self.running[call.id]
        if approval != "not_needed":
            self.journal.stopped(call.id)
        execution.context._close_reports()
        if editor is not None:
            editor.close()

    def _judged(
        self,
        execution: Execution,
        ended: Ended,
        call: Call,
        approval: Approval,
        editor: SealedEditor | None,
        consent: Consent | None,
    ) -> Outcome:
        """What the end of an execution means for whoever asked."""
        result = verdict(execution.tool, call.id, approval, ended)
        if editor is not None:
            changed = tuple(dict.fromkeys(change.path for change in editor.changes))
            result = msgspec.structs.replace(result, changed=changed)
            if editor.violations:
                tried = f"{call.tool} tried to write something else than was shown: {editor.violations[0]}"
                result = msgspec.structs.replace(result, kind="failed", message=displayable(tried))
            if changed and not result.success:
                words = f"{result.message}\n{outcome.changed_before(changed)}"
                result = msgspec.structs.replace(result, message=words)
        if consent is not None and consent.request.author == "person":
            ran = consent.request.shown_arguments
            words = outcome.edited(call.tool, values.canonical(ran).decode())
            if editor is not None and (private := editor.private_shown()):
                words = outcome.edited_in_private(call.tool, private)
            result = msgspec.structs.replace(result, arguments=ran, message=f"{words}\n{result.message}")
        return result

    def _open_reports(self, call_id: str) -> Reports | None:
        """Where a call's progress goes; None for a thread that goes on although its call is over."""
        execution = self.running.get(call_id)
        if execution is None:
            return None
        return Reports(self.session_id, call_id, self.journal, self.audience, execution.loop)

    def _timeout(self, tool: Tool) -> float | None:
        own, limit = tool.manifest.timeout_seconds, self.limits.call_timeout_seconds
        return min(own, limit) if own is not None and limit is not None else own or limit

    async def _finish(self, result: Outcome) -> Outcome:
        self._ending.add(result.call_id)
        try:
            await self.journal.finished(self.session_id, result)
        except Exception:
            self._ending.discard(result.call_id)
            raise
        self._ending.discard(result.call_id)
        self.begun.discard(result.call_id)
        if self.audience.listeners:
            self.audience.tell(Finished(result))
        return result

    async def _end_later(self, result: Awaitable[Outcome]) -> Outcome:
        return self._end(await result)

    def _end(self, result: Outcome) -> Outcome:
        self.journal.finished_freely(self.session_id, result)
        self.begun.discard(result.call_id)
        if self.audience.listeners:
            self.audience.tell(Finished(result))
        return result


async def _awaited(result: Outcome | Awaitable[Outcome]) -> Outcome:
    return result if isinstance(result, Outcome) else await result


def decided_already(call_id: str) -> SessionError:
    """Two decide about one call in doubt, and the other was faster."""
    return SessionError(
        "somebody else has just decided about this call", place=call_id, hint="lastword show says how it stands"
    )


def _masked(arguments: bytes, tool: Tool) -> bytes:
    return values.canonical(mask(values.decode(arguments), tool.secrets)) if tool.secrets else arguments
