"""Carrying out one call's code: what it is given, how it is followed while it runs, and what its end means.

Nothing here decides whether the code may run. The door does, and has it in the journal before anything of this happens.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import msgspec

from lastword import values
from lastword.call.changes import ChangeLog
from lastword.call.events import Started
from lastword.call.execution import Ended, Execution, Raised, Returned, StillActs, verdict
from lastword.call.questions import CALL_OVER, CallQuestions
from lastword.call.reports import Reports
from lastword.call.setting import Setting
from lastword.consent import (
    ALLOWED,
    Answerer,
    Approval,
    ApprovalRequest,
    Call,
    LiveCall,
    Outcome,
    Phase,
    UserAction,
    mask,
    outcome,
)
from lastword.display import displayable
from lastword.editor import Preview, RecordingEditor, SealedEditor
from lastword.tools import Tool
from lastword.tools.guard import Guard

log = logging.getLogger("lastword")


class Attempt:
    """One start of one call."""

    __slots__ = ("_approval", "_call", "_editor", "_execution", "_live", "_request", "_setting", "_tool")

    def __init__(
        self,
        setting: Setting,
        tool: Tool,
        call: Call,
        live: LiveCall,
        approval: Approval,
        previews: tuple[Preview, ...] = (),
        request: ApprovalRequest | None = None,
    ) -> None:
        self._setting = setting
        self._tool = tool
        self._call = call
        self._live = live
        self._approval = approval
        self._request = request
        context = setting.context(tool, call.id, None, self._open_reports, self._open_questions)
        must_stop = approval != "not_needed"
        self._execution = Execution(tool, context, setting.limits.cancel_grace_seconds, must_stop=must_stop)
        self._execution.when_told = self._silence
        self._editor: SealedEditor | None = None
        if setting.editor is not None:
            kept = ChangeLog(setting.journal, setting.session_id, call.id, setting.editor, durable=must_stop)
            # What is in a private file is for those who asked a person, and no setting has looked at a card.
            is_asked = approval == "person"
            guards = None if is_asked else self._why_guarded
            self._editor = SealedEditor(setting.editor, previews, kept, sees_private=is_asked, guards=guards)

    def _why_guarded(self, path: str) -> str | None:
        """Why a call that nobody was asked about must not write a file. Without a diff no yes says which it is for."""
        found = self._setting.guarded([path], self._tool)
        return None if found is None else found.why

    def run(self, action: UserAction = ALLOWED) -> Outcome | Awaitable[Outcome]:
        """Run the implementation, now that it may. One that waits for nothing has ended when this returns."""
        execution, live, call = self._execution, self._live, self._call
        given = {"user_action": action, "editor": self._editor, "context": execution.context}
        live.execution, live.phase = execution, Phase.RUNNING
        try:
            if live.is_cancelled:
                execution.cancel()
            audience = self._setting.audience
            if audience.listeners:
                shown = masked(call.arguments, self._tool)
                audience.tell(Started(call.id, call.tool, shown, call.origin, live.not_asked))
            ended = execution.begin(call.arguments, given)
        except BaseException:
            self._stopped()
            raise
        if ended is None:
            return self._wait()
        self._stopped()
        return self._judged(ended)

    async def _wait(self) -> Outcome:
        try:
            ended = await self._execution.wait(self._timeout())
        finally:
            self._stopped()
        return self._judged(ended)

    def _stopped(self) -> None:
        """Whatever its code still does, it does not do it for this call any more."""
        self._live.phase = Phase.STOPPED
        execution = self._execution
        if not execution.is_over and self._approval != "not_needed":
            execution.when_over = self._ended_late
        self._silence()

    def _silence(self) -> None:
        """What it writes or reports from now on, it does not for this call."""
        self._execution.context._close_reports()
        self._execution.context._close_questions(CALL_OVER)
        if self._editor is not None:
            self._editor.close()

    def _ended_late(self, ended: Ended) -> None:
        """The code went on after its call was over. When it stops at last, that is a fact of the call."""
        how = "returned" if isinstance(ended, Returned) else "raised" if isinstance(ended, Raised) else "stopped"
        self._setting.journal.note(self._setting.session_id, "ended_late", self._call.id, {"how": how})

    def _judged(self, ended: Ended) -> Outcome:
        """What the end of an execution means for whoever asked."""
        call, editor = self._call, self._editor
        result = verdict(self._tool, call.id, self._approval, ended, self._live)
        if isinstance(ended, StillActs):
            result = msgspec.structs.replace(result, still_acts=True)
        if editor is not None:
            changed = tuple(dict.fromkeys(change.path for change in editor.changes))
            result = msgspec.structs.replace(result, changed=changed)
            if editor.violations:
                what = "something else than was shown" if editor.shown else "what a person has to be asked about"
                tried = f"{call.tool} tried to write {what}: {editor.violations[0]}"
                result = msgspec.structs.replace(result, kind="failed", message=displayable(tried))
            if changed and not result.success:
                words = f"{result.message}\n{outcome.changed_before(changed)}"
                result = msgspec.structs.replace(result, message=words)
        if self._request is not None and self._request.author == "person":
            ran = self._request.shown_arguments
            words = outcome.edited(call.tool, values.written(ran).decode())
            if editor is not None and (private := editor.private_shown()):
                words = outcome.edited_in_private(call.tool, private)
            result = msgspec.structs.replace(result, arguments=ran, message=f"{words}\n{result.message}")
        return result

    def _open_reports(self, call_id: str) -> Reports | None:
        """Where the call's progress goes; None for a thread that goes on although its call is over."""
        if self._live.phase is not Phase.RUNNING or self._execution.context._cancelled:
            return None
        setting = self._setting
        return Reports(setting.session_id, call_id, setting.journal, setting.audience, self._execution.loop)

    def _open_questions(self) -> CallQuestions | None:
        """Where the call's questions go; None for code that goes on although its call is over."""
        desk, running = self._setting.questions, self._execution
        if desk is None or self._live.phase is not Phase.RUNNING or running.context._cancelled:
            return None
        return CallQuestions(desk, self._setting.session_id, self._call.id, self._tool.manifest, running)

    def _timeout(self) -> float | None:
        own, limit = self._tool.manifest.timeout_seconds, self._setting.limits.call_timeout_seconds
        return min(own, limit) if own is not None and limit is not None else own or limit


async def decline(
    setting: Setting, tool: Tool, call: Call, action: UserAction, approval: Approval, by: Answerer
) -> Outcome:
    """The answer is no. A tool that takes the answer may word it, under the guard."""
    own_words: str | None = None
    overstepped: str | None = None
    after_no: dict[str, Any] | None = None
    if tool.takes_answer:
        guard = Guard(f"{tool.name}, after the answer was no,")
        recorder = None if setting.editor is None else RecordingEditor(setting.editor)
        context = setting.context(tool, call.id, guard)
        heard = action
        if tool.manifest.secondary_acts:
            # Its second button is a yes, so a no must not look like that one.
            heard = msgspec.structs.replace(action, secondary_confirmed=False, acts=None)
        given = {"user_action": heard, "editor": recorder, "context": context}
        execution = Execution(tool, context)
        ended = execution.begin(call.arguments, given, guard) or await execution.wait(
            setting.limits.draw_timeout_seconds
        )
        tried = guard.violations + ([] if recorder is None else [displayable(what) for what in recorder.attempts])
        if tried:
            overstepped = tried[0]
            log.error("call %s: %s tried to %s although it was denied", call.id, tool.name, overstepped)
            own_words = outcome.overstepped(tool.name, overstepped)
        else:
            said = verdict(tool, call.id, approval, ended)
            if said.kind in ("succeeded", "failed"):
                own_words, after_no = said.message, said.result()
    # The dialogue of an MCP client may have answered by itself, and a tool may have stopped everything: that is told as
    # theirs, and not as a person's no.
    whose = {"by": str(by)} if by.kind in ("client", "below") else {}
    words = outcome.denied(tool.name, action.reason, own_words, closed=not action.secondary_confirmed, **whose)
    return Outcome(
        kind="denied",
        message=words,
        call_id=call.id,
        tool=tool.name,
        approval=approval,
        overstepped=overstepped,
        after_no=after_no,
    )


def masked(arguments: bytes, tool: Tool) -> bytes:
    """What listeners are told of a call's arguments."""
    return values.written(mask(values.decode(arguments), tool.secrets)) if tool.secrets else arguments
