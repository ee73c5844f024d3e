"""What the end of a call's code means for whoever asked: a kind, words for the model, value and content.

Nothing is cut out of content. A result that does not fit is told as one that was not kept, although its tool ran.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from lastword import values
from lastword.consent import Kept, Kind, Outcome, outcome
from lastword.display import displayable
from lastword.errors import ArgumentsError, NotAllowedNow, NotJSON, OutcomeUnknown, ToolError
from lastword.tools import content

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, Call, LiveCall, outcome
    from lastword.editor import SealedEditor
    from lastword.tools import Tool

log = logging.getLogger("lastword")

# What holds no content.
_SCALARS = frozenset((dict, str, int, float, bool, type(None)))


class Returned(msgspec.Struct, frozen=True, gc=False):
    how: ClassVar = "returned"
    value: Any


class Raised(msgspec.Struct, frozen=True):
    how: ClassVar = "raised"
    problem: BaseException

    def told(self, name: str, call_id: str, by: str) -> tuple[Kind, str]:
        problem = self.problem
        if isinstance(problem, ArgumentsError):
            return "invalid_arguments", displayable(str(problem))
        if isinstance(problem, OutcomeUnknown):
            return "outcome_unknown", outcome.cut(displayable(outcome.said_unknown(name, problem.fact, call_id)))
        if isinstance(problem, (ToolError, NotAllowedNow)):
            return "failed", outcome.cut(displayable(str(problem)))
        log.error("call %s: %s raised", call_id, name, exc_info=problem)
        return "raised", outcome.raised(name, problem, call_id)


class StoppedEarly(msgspec.Struct, frozen=True):
    how: ClassVar = "stopped"
    partial: str | None
    began: bool = True

    def told(self, name: str, call_id: str, by: str) -> tuple[Kind, str]:
        words = outcome.cancelled(name, self.partial, by) if self.began else outcome.called_off(name, by)
        return "cancelled", outcome.cut(displayable(words))


class TimedOut(msgspec.Struct, frozen=True):
    how: ClassVar = "stopped"
    seconds: float

    def told(self, name: str, call_id: str, by: str) -> tuple[Kind, str]:
        return "timed_out", outcome.timed_out(name, self.seconds)


class StillActs(msgspec.Struct, frozen=True):
    """It was told to stop, and its code runs on: nobody can say what it will have done."""

    how: ClassVar = "stopped"
    partial: str | None = None
    seconds: float | None = None
    """The time limit that it exceeded; None when a person cancelled it."""

    def told(self, name: str, call_id: str, by: str) -> tuple[Kind, str]:
        words = outcome.still_acts(name, self.partial, self.seconds, by)
        return "outcome_unknown", outcome.cut(displayable(words))


Ended = Returned | Raised | StoppedEarly | TimedOut | StillActs


def verdict(
    tool: Tool,
    call: Call,
    approval: outcome.Approval,
    ended: Ended,
    live: LiveCall,
    editor: SealedEditor | None = None,
    request: ApprovalRequest | None = None,
) -> Outcome:
    """What the end of an execution means for whoever asked.

    The bytes that it returned are left with the living call, until they are kept.
    """
    if not isinstance(ended, Returned):
        kind, words = ended.told(tool.name, call.id, live.cancelled_by)
        acts = type(ended) is StillActs
        result = Outcome(kind=kind, message=words, call_id=call.id, tool=tool.name, approval=approval, still_acts=acts)
    elif type(ended.value) in _SCALARS:
        result = _returned(tool, call.id, approval, ended.value)
    else:
        result = _with_content(tool, call.id, approval, ended.value, live)
    if editor is not None:
        result = _as_it_wrote(result, editor)
    if request is not None and request.author == "person":
        ran = request.shown_arguments
        words = outcome.edited(call.tool, values.written(ran).decode())
        if editor is not None and (private := editor.private_shown()):
            words = outcome.edited_in_private(call.tool, private)
        result = msgspec.structs.replace(result, arguments=ran, message=f"{words}\n{result.message}")
    return result


def _as_it_wrote(result: Outcome, editor: SealedEditor) -> Outcome:
    """The end of a call that could change files: what it changed, and whether it tried to change others."""
    changed = tuple(dict.fromkeys(change.path for change in editor.changes))
    result = msgspec.structs.replace(result, changed=changed)
    if editor.violations:
        what = "something else than was shown" if editor.shown else "what a person has to be asked about"
        tried = f"{result.tool} tried to write {what}: {editor.violations[0]}"
        result = msgspec.structs.replace(result, kind="failed", message=displayable(tried))
    if changed and not result.success:
        words = f"{result.message}\n{outcome.changed_before(changed)}"
        result = msgspec.structs.replace(result, message=words)
    return result


def _with_content(tool: Tool, call_id: str, approval: outcome.Approval, value: Any, live: LiveCall) -> Outcome:
    try:
        taken = take(tool.name, value)
    except ToolError as problem:
        return Outcome(kind="failed", message=problem.fact, call_id=call_id, tool=tool.name, approval=approval)
    if taken is None:
        return _returned(tool, call_id, approval, value)
    described = Kept.in_words(taken.kept)
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


def _returned(tool: Tool, call_id: str, approval: outcome.Approval, value: Any) -> Outcome:
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
            name = Kept.clean_name(block.name, block.kind, block.media_type or "")
            raise _too_large(
                tool, f"{name} has more than {Kept.size_in_words(content.MAX_BLOCK_BYTES)}, the most for one block"
            )
        total += len(block.data)
        if total > content.MAX_RESULT_BYTES:
            raise _too_large(tool, f"its blocks have more than {Kept.size_in_words(content.MAX_RESULT_BYTES)} together")
        kept.append(_keep(block, block.data))
    texts = tuple(block.data.decode() for block in blocks if block.data is not None and block.kind == "text")
    return Taken(value, has_value, tuple(kept), tuple(block.data for block in blocks if block.data is not None), texts)


def _keep(block: content.Block, data: bytes) -> Kept:
    kind, media_type = content.true_kind(block.kind, data, block.media_type, block.name)
    name = Kept.clean_name(block.name, kind, media_type)
    return Kept(kind, values.digest(data), media_type, len(data), name, Kept.clean_alt(block.alt))


def _too_large(tool: str, why: str) -> ToolError:
    return ToolError(
        f"{tool} ran, but its result was too large to keep: {why}. Nothing of the result was kept, and what the tool "
        "did stays done. Ask for less, or for a part at a time."
    )


def partial_words(partial: Any) -> str:
    """What a tool had when it was stopped: a text as it is, everything else as the JSON that a result would be."""
    if type(partial) is str:
        return partial
    try:
        return values.encode(content.to_json(partial)).decode()
    except Exception:  # The tool's own way of becoming JSON. Of one that was stopped, anything is better than nothing.
        return str(partial)
