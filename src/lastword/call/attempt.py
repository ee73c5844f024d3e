"""One start of a call's code: what it is given, and what its end means: a kind, words for the model, value and content.

Nothing here decides whether the code may run. The door does, and has it in the journal before anything of this happens.
Nothing is cut out of content. A result that does not fit is told as one that was not kept, although its tool ran.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.call.changes import ChangeLog
from lastword.call.desk import CALL_OVER, CallQuestions, Desk, Reports
from lastword.call.execution import Ended, Execution, Returned, StillActs
from lastword.call.setting import Setting, Started
from lastword.consent import (
    ALLOWED,
    Call,
    Kept,
    Kind,
    LiveCall,
    Outcome,
    Phase,
    UserAction,
    clean_alt,
    clean_name,
    in_words,
    mask,
    outcome,
    size_in_words,
)
from lastword.display import displayable
from lastword.editor import RecordingEditor, SealedEditor
from lastword.errors import NotJSON, ToolError
from lastword.tools import Tool, ToolContext, content
from lastword.tools.guard import Guard

if TYPE_CHECKING:
    from lastword.consent import Answerer, Approval, ApprovalRequest
    from lastword.editor import Preview

log = logging.getLogger("lastword")

# What holds no content.
_SCALARS = frozenset((dict, str, int, float, bool, type(None)))


class Attempt(Execution):
    """One start of one call."""

    _editor: SealedEditor | None = None

    def __init__(
        self,
        setting: Setting,
        desk: Desk,
        tool: Tool,
        call: Call,
        live: LiveCall,
        approval: Approval,
        previews: tuple[Preview, ...] = (),
        request: ApprovalRequest | None = None,
    ) -> None:
        must_stop = approval != "not_needed"
        context: ToolContext[Any] = ToolContext(
            setting.state,
            call.id,
            tool.manifest,
            setting.session_id,
            None,
            self._open_reports,
            setting.deps,
            setting.user,
            self._open_questions,
        )
        super().__init__(tool, context, setting.limits.cancel_grace_seconds, must_stop=must_stop)
        self._setting, self._desk = setting, desk
        self._call, self._live, self._approval, self._request = call, live, approval, request
        if setting.editor is not None:
            kept = ChangeLog(setting.journal, setting.session_id, call.id, setting.editor, durable=must_stop)
            # What is in a private file is for those who asked a person, and no setting has looked at a card.
            is_asked = approval == "person"
            guards = None if is_asked else self._why_guarded
            self._editor = SealedEditor(setting.editor, previews, kept, sees_private=is_asked, guards=guards)

    def _why_guarded(self, path: str) -> str | None:
        """Why a call that nobody was asked about must not write a file. Without a diff no yes says which it is for."""
        found = self._setting.guarded([path], self.tool)
        return None if found is None else found.why

    def run(self, action: UserAction = ALLOWED) -> Outcome | Awaitable[Outcome]:
        """Run the implementation, now that it may. One that waits for nothing has ended when this returns."""
        live, call, audience = self._live, self._call, self._setting.audience
        live.execution, live.phase = self, Phase.RUNNING
        try:
            if live.is_cancelled:
                self.cancel()
            if audience.listeners:
                shown = masked(call.arguments, self.tool)
                audience.tell(Started(call.id, call.tool, shown, call.origin, live.not_asked))
            given = {"user_action": action, "editor": self._editor, "context": self.context}
            ended = self.begin(call.arguments, given)
        except BaseException:
            self._call_is_over()
            raise
        if ended is None:
            return self._run_on()
        self._call_is_over()
        return self._judged(ended)

    async def _run_on(self) -> Outcome:
        own, limit = self.tool.manifest.timeout_seconds, self._setting.limits.call_timeout_seconds
        try:
            ended = await self.wait(min(own, limit) if own is not None and limit is not None else own or limit)
        finally:
            self._call_is_over()
        return self._judged(ended)

    def _call_is_over(self) -> None:
        """Whatever its code still does, it does not do it for this call any more."""
        self._live.phase = Phase.STOPPED
        self._is_late = not self.is_over and self._must_stop
        self._silence()

    def _silence(self) -> None:
        self.context._close(CALL_OVER)
        if self._editor is not None:
            self._editor.close()

    def _ended_late(self, ended: Ended) -> None:
        self._setting.journal.note(self._setting.session_id, "ended_late", self._call.id, {"how": ended.how})

    def _judged(self, ended: Ended) -> Outcome:
        """What the end of an execution means for whoever asked."""
        call, editor = self._call, self._editor
        result = verdict(self.tool, call.id, self._approval, ended, self._live)
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
        is_open = self._live.phase is Phase.RUNNING and not self.context._cancelled
        return Reports(self._setting, call_id, self.loop) if is_open else None

    def _open_questions(self) -> CallQuestions | None:
        """Where the call's questions go; None for code that goes on although its call is over."""
        is_open = self._live.phase is Phase.RUNNING and not self.context._cancelled
        session_id, manifest = self._setting.session_id, self.tool.manifest
        return CallQuestions(self._desk, session_id, self._call.id, manifest, self) if is_open else None


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
            said = verdict(tool, call.id, approval, ended, LiveCall())
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


def verdict(tool: Tool, call_id: str, approval: Approval, ended: Ended, live: LiveCall) -> Outcome:
    """What the end of an execution means for whoever asked.

    The bytes that it returned are left with the living call, until they are kept.
    """
    if isinstance(ended, Returned):
        if type(ended.value) in _SCALARS:
            return _returned(tool, call_id, approval, ended.value)
        return _with_content(tool, call_id, approval, ended.value, live)
    kind, words = ended.told(tool.name, call_id, live.cancelled_by)
    still_acts = type(ended) is StillActs
    return Outcome(kind=kind, message=words, call_id=call_id, tool=tool.name, approval=approval, still_acts=still_acts)


def _with_content(tool: Tool, call_id: str, approval: Approval, value: Any, live: LiveCall) -> Outcome:
    try:
        taken = take(tool.name, value)
    except ToolError as problem:
        return Outcome(kind="failed", message=problem.fact, call_id=call_id, tool=tool.name, approval=approval)
    if taken is None:
        return _returned(tool, call_id, approval, value)
    described = in_words(taken.kept)
    if taken.has_value or tool.style == "assistant":
        result = _returned(tool, call_id, approval, taken.value)
        if result.kind == "failed" and type(taken.value) is not dict:
            return result  # It is not what the tool promised, and the content alone would say otherwise.
        texts = (result.message, *taken.texts)
    else:
        result = Outcome(kind="succeeded", message="", call_id=call_id, tool=tool.name, approval=approval)
        texts = taken.texts
    said = outcome.cut(displayable("\n".join(texts)))
    message = "\n".join(part for part in (said, described) if part)
    live.contents = taken.contents
    if not taken.has_value and tool.style != "assistant":
        # A script gets the words, since there is no value that it could get.
        result = msgspec.structs.replace(result, value=message, gave_value=True)
    return msgspec.structs.replace(result, message=message, content=taken.kept)


def _returned(tool: Tool, call_id: str, approval: Approval, value: Any) -> Outcome:
    if tool.style != "registry" and type(value) is dict and len(value) == 2:
        success, message = value.get("success"), value.get("message")
        if type(success) is bool and type(message) is str:
            kind: Kind = "succeeded" if success else "failed"
            words = outcome.cut(displayable(message))
            return Outcome(kind=kind, message=words, call_id=call_id, tool=tool.name, approval=approval)
    try:
        value, words = _as_value(tool, call_id, value)
    except ToolError as problem:
        return Outcome(kind="failed", message=problem.fact, call_id=call_id, tool=tool.name, approval=approval)
    return Outcome(
        kind="succeeded",
        message=words if len(words) <= outcome.MAX_MESSAGE else outcome.cut(words),
        call_id=call_id,
        tool=tool.name,
        value=value,
        gave_value=True,
        approval=approval,
    )


def _as_value(tool: Tool, call_id: str, value: Any) -> tuple[Any, str]:
    """What a tool returned as the JSON value that it promised, and as text."""
    if tool.style == "assistant":
        raise ToolError(f"{tool.name} returned something other than {{success, message}}; its author must mend it.")
    try:
        try:
            value, data = values.reduce(value)
        except NotJSON:
            value = content.to_json(value)
            data = values.encode(value)
    except Exception as problem:  # A model's or a dataclass's own way of becoming JSON is the tool's code.
        if isinstance(problem, NotJSON):
            fact = problem.fact
        else:
            log.error("call %s: what %s returned could not be made JSON", call_id, tool.name, exc_info=problem)
            fact = f"{type(problem).__name__}: {problem}"
        raise ToolError(displayable(f"{tool.name} returned a value that JSON cannot hold: {fact}")) from None
    wanted = tool.manifest.returns
    if wanted != "any" and wanted != (found := values.type_name[type(value)]):
        raise ToolError(f"{tool.name} promised to return {_with_article(wanted)} and returned {_with_article(found)}.")
    if value is None and tool.style == "function":
        return None, "Done."
    return value, value if type(value) is str else data.decode()


def _with_article(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[0] in "ao" else f"a {kind}"


class Taken(msgspec.Struct, frozen=True):
    """What a tool returned, in two: the value, and what goes with it."""

    value: Any
    has_value: bool
    kept: tuple[Kept, ...]
    contents: tuple[bytes, ...]
    """The bytes of what was kept, in its order."""
    texts: tuple[str, ...]


def take(tool: str, returned: Any) -> Taken | None:
    """The content of what a tool returned; None when it is a value and nothing else. ToolError when it cannot be."""
    try:
        return _take(tool, returned)
    except ToolError:
        raise
    except Exception as problem:  # A block or a list of the tool's own class is the tool's code.
        log.error("what %s returned could not be kept", tool, exc_info=problem)
        raise ToolError(f"{tool} ran, but what it returned could not be kept: {type(problem).__name__}") from None


def _take(tool: str, returned: Any) -> Taken | None:
    if isinstance(returned, content.ToolResult):
        given = () if returned.content is None else returned.content
        blocks = [given] if isinstance(given, (content.Block, str)) else given
        if not isinstance(blocks, (list, tuple)):
            raise ToolError(
                f"{tool} ran, but the content of its result is a {type(given).__name__}, where a list of blocks and "
                "texts belongs. Its author must mend it."
            )
        return _taken(tool, returned.value, returned.value is not None or not blocks, blocks)
    if isinstance(returned, content.Block):
        return _taken(tool, None, False, [returned])
    if isinstance(returned, (list, tuple)) and any(isinstance(item, content.Block) for item in returned):
        return _taken(tool, None, False, returned)
    return None


def _taken(tool: str, value: Any, has_value: bool, given: Sequence[Any]) -> Taken:
    for item in given:
        if not isinstance(item, (content.Block, str)):
            raise ToolError(
                f"{tool} ran, but returned content with a {type(item).__name__} in it, which is neither a block nor "
                "text. Its author must mend it: a value and content go together as ToolResult(value, content)."
            )
    if len(given) > content.MAX_BLOCKS:
        raise _too_large(tool, f"it holds {len(given)} blocks, and {content.MAX_BLOCKS} are the most")
    blocks = [content.Text(item) if isinstance(item, str) else item for item in given]
    total = 0
    kept: list[Kept] = []
    for block in blocks:
        if block.data is None:
            name = clean_name(block.name, block.kind, block.media_type or "")
            raise _too_large(
                tool, f"{name} has more than {size_in_words(content.MAX_BLOCK_BYTES)}, the most for one block"
            )
        total += len(block.data)
        if total > content.MAX_RESULT_BYTES:
            raise _too_large(tool, f"its blocks have more than {size_in_words(content.MAX_RESULT_BYTES)} together")
        kept.append(_keep(block, block.data))
    texts = tuple(block.data.decode() for block in blocks if block.data is not None and block.kind == "text")
    return Taken(value, has_value, tuple(kept), tuple(block.data for block in blocks if block.data is not None), texts)


def _keep(block: content.Block, data: bytes) -> Kept:
    kind, media_type = content.true_kind(block.kind, data, block.media_type, block.name)
    name = clean_name(block.name, kind, media_type)
    return Kept(kind, values.digest(data), media_type, len(data), name, clean_alt(block.alt))


def _too_large(tool: str, why: str) -> ToolError:
    return ToolError(
        f"{tool} ran, but its result was too large to keep: {why}. Nothing of the result was kept, and what the tool "
        "did stays done. Ask for less, or for a part at a time."
    )
