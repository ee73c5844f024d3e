"""Code of a tool that may only look: its request function and preview, which draw the card, and its own approval rule.

It runs under the guard, once, in a thread of its own, for a limited time. What it said becomes data; if it tried to
touch anything, raised, hung or returned nonsense, there is no card and nobody is asked, or its rule has waived nothing.
A tool that hears of a no, and words it for the model, is under the same guard.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lastword.call.execution import Execution
from lastword.call.result import verdict
from lastword.call.threads import THREADS
from lastword.card import Face
from lastword.consent import ApprovalRequest, Call, Kind, LiveCall, Outcome, outcome
from lastword.display import displayable
from lastword.editor import Preview, RecordingEditor
from lastword.errors import LastWordError, ToolError, did_you_mean
from lastword.tools import Tool, ToolContext
from lastword.tools.guard import MAX_OBSERVATIONS, Guard, Observations

if TYPE_CHECKING:
    from lastword.call.setting import Setting
    from lastword.consent import Answerer, UserAction, outcome

log = logging.getLogger("lastword")

T = TypeVar("T")

# A button says a verb. What is longer, or has lines, would push the other button out of sight.
MAX_LABEL = 60

# For a preview of files whose tool has no word for it.
PREVIEW = "Preview"
NO_PREVIEW = "The preview of this tool shows nothing."

_TEXTS = ("message", "title", "primary_button_label", "secondary_button_label")
_FIELDS = (*_TEXTS, "preview_button")
_BUTTON = ("label", "action")

# Tasks that the code left behind are told to stop, and have this long to do so.
CLOSING_SECONDS = 0.1

Finish = Callable[[Any], Any]
"""What a function returned as what it stands for: an awaitable is awaited."""


class Undrawable(msgspec.Struct, frozen=True):
    """There is no card, and why: for the tool's author, unless the tool itself has words for the model."""

    why: str
    for_model: bool = False
    """Whether the tool said by a `ToolError` that there is nothing to ask: the file is not there, say."""

    def ended(self, call: Call) -> Outcome:
        """The end of a call that nobody can be asked about."""
        kind: Kind = "failed" if self.for_model else "refused"
        words = outcome.cut(self.why) if self.for_model else outcome.refused(call.tool, self.why)
        return Outcome(kind=kind, message=words, call_id=call.id, tool=call.tool)


async def draw(tool: Tool, call: Call, setting: Setting, **facts: Any) -> ApprovalRequest | Undrawable:
    """Run the request function and its preview, and build what a person will see. `facts` are not the tool's to say."""
    said = _Said()
    previews: tuple[Preview, ...] = ()
    if tool.request is not None:
        looks = Observations(setting.state)
        guard = Guard(f"the request function of {tool.name}", looks)
        recorder = None if setting.editor is None else RecordingEditor(setting.editor, at_home(), sees_private=True)
        context = setting.context(tool, call.id, guard)
        given = {"editor": recorder, "context": context, "user_action": None}
        try:
            said = await look(
                partial(_ask_tool, tool, call.arguments, given), guard, context, setting.limits.draw_timeout_seconds
            )
        except ToolError as problem:
            tried = _tried(guard, recorder)
            return Undrawable(tried or displayable(str(problem)), for_model=tried is None)
        except LastWordError as problem:
            return Undrawable(displayable(_tried(guard, recorder) or problem.fact))
        except SystemExit:  # Ending the program is no way to draw a card.
            return Undrawable(_tried(guard, recorder) or "it tried to end the program")
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as problem:  # Nor is any other way to get past those who catch exceptions.
            log.error("call %s: the request function of %s raised", call.id, tool.name, exc_info=problem)
            return Undrawable(_tried(guard, recorder) or f"it raised {type(problem).__name__}; the log has the details")
        # The guard is asked even though nothing was raised: the tool may have swallowed it.
        if why := _tried(guard, recorder):
            return Undrawable(why)
        if looks.are_too_many:
            return Undrawable(f"it looked at more than {MAX_OBSERVATIONS} files and keys of the state")
        facts["looked_at"] = looks.taken()
        if recorder is not None:
            previews = recorder.previews
            facts["reads"] = tuple(sorted(recorder.reads.items()))
        if said.preview is not None:
            previews = (*previews, Preview("", None, None, said.preview))
        elif said.preview_label is not None and not previews:
            # The button was promised, and a button that is not there could be missed.
            previews = (Preview("", None, None, NO_PREVIEW),)
        if previews:
            facts["preview"], facts["preview_label"] = previews, said.preview_label or PREVIEW
        facts["primary_button_label"] = said.primary_button_label or ApprovalRequest.ALLOW
        facts["secondary_button_label"] = said.secondary_button_label or ApprovalRequest.CANCEL
    if tool.carried_out_by:
        facts["carried_out_by"] = tool.carried_out_by
    manifest = tool.manifest
    shown = {
        "call_id": call.id,
        "tool": tool.name,
        "manifest": manifest,
        "tool_digest": tool.digest,
        "session_id": setting.session_id,
        "argument_bytes": call.arguments,
        "title": said.title or manifest.display_name,
        "message": said.message or manifest.description,
        "origin": call.origin,
        "principal": setting.principal,
        **facts,  # What is as on nearly every card is not among them.
    }
    if ApprovalRequest.is_large(call.arguments, previews):
        return await THREADS.result_of(partial(_large, shown))
    return ApprovalRequest(**shown)


def _large(shown: dict[str, Any]) -> ApprovalRequest:
    """A request of megabytes, whose digest and whose rows take moments that others on the loop have use for."""
    request = ApprovalRequest(**shown)
    Face.keep_rows(request)
    return request


def _tried(guard: Guard, recorder: RecordingEditor | None) -> str | None:
    """What was attempted and must not be, in words."""
    attempts = guard.violations + ([] if recorder is None else recorder.attempts)
    return displayable(f"it tried to {attempts[0]} before anybody agreed") if attempts else None


class _Said(msgspec.Struct, frozen=True):
    """What a request function said, as plain text that nobody can change any more."""

    message: str = ""
    title: str = ""
    primary_button_label: str = ""
    secondary_button_label: str = ""
    preview_label: str | None = None
    """None when there is no preview button."""
    preview: str | None = None
    """What the preview said in words; None when it showed files, or nothing."""


def _ask_tool(tool: Tool, arguments: bytes, given: Mapping[str, Any], finish: Finish) -> _Said:
    """Call the request function, and its preview when it has one. Under the guard, also where its answer is read."""
    assert tool.request is not None
    said = finish(tool.request(**tool.bind_request(arguments, given)))
    if not isinstance(said, dict):
        raise LastWordError(f"it returned a {type(said).__name__} instead of a dict with a message")
    # A mapping of the tool's own could say one thing here and another when the card is built.
    fields: dict[str, Any] = dict(said)
    _refuse_unknown(fields, _FIELDS, "it returned")
    texts = {name: _text(f"its {name}", fields.get(name)) for name in _TEXTS}
    if not texts["message"]:
        raise LastWordError("it returned no message")
    button = fields.get("preview_button")
    if button is None:
        return _Said(**texts)
    if not isinstance(button, dict) or not isinstance(button.get("label"), str) or not callable(button.get("action")):
        raise LastWordError("its preview_button is not {label, action}")
    _refuse_unknown(button, _BUTTON, "its preview_button has")
    label = _text("its preview_button's label", button["label"])
    shown = finish(button["action"]())
    if isinstance(shown, list) and all(each is None for each in shown):
        shown = None  # `lambda: [editor.open_diff_editor(…) for …]`: each showed its file.
    if shown is not None and not isinstance(shown, str):
        raise LastWordError(
            f"its preview returned a {type(shown).__name__}, which cannot be shown; it shows files through the editor, "
            "or returns text"
        )
    return _Said(**texts, preview_label=label, preview=_text("its preview", shown) or None)


def _refuse_unknown(fields: dict[str, Any], known: Sequence[str], where: str) -> None:
    for key in fields:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise LastWordError(f"{where} the unknown field {key}" + (f" ({hint})" if hint else ""))


def _text(what: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LastWordError(f"{what} is a {type(value).__name__}, not a string")
    text = displayable(str.__str__(value))  # A class of the tool's own that passes for text ends here.
    if what.endswith("_label") and (len(text) > MAX_LABEL or not text.isprintable()):
        raise LastWordError(f"{what} is not one line of at most {MAX_LABEL} characters")
    return text


async def waives(tool: Tool, call: Call, setting: Setting) -> bool:
    """Whether the tool's own rule says that these very arguments need nobody's yes.

    It can only make a question unnecessary, so whatever goes wrong with it asks. Only the value `False` waives: a rule
    that raises, hangs, touches something, looks at something that may be different a moment later, or forgets to return
    has not said that nobody need be asked.
    """
    if tool.needs_approval is None:
        return False
    looks = Observations(setting.state)
    guard = Guard(f"the approval rule of {tool.name}", looks, hears_glances=True)
    try:
        context = setting.context(tool, call.id, guard)
        said = await look(partial(_ask_rule, tool, call.arguments), guard, context, setting.limits.draw_timeout_seconds)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as problem:
        why = problem.fact if isinstance(problem, LastWordError) else f"it raised {type(problem).__name__}"
        log.error("call %s: the approval rule of %s failed, so a person is asked: %s", call.id, tool.name, why)
        return False
    if guard.violations:
        why = f"it tried to {guard.violations[0]}"
    elif looks.are_too_many or looks.has_glanced or looks.taken():
        why = "it looked at files, folders or state, and may decide by the arguments alone"
    elif said is not False and said is not True:
        why = f"it returned a {type(said).__name__}, and not True or False"
    else:
        return said is False
    log.error("call %s: the approval rule of %s does not count, so a person is asked: %s", call.id, tool.name, why)
    return False


def _ask_rule(tool: Tool, arguments: bytes, finish: Finish) -> Any:
    assert tool.needs_approval is not None
    return finish(tool.needs_approval(**tool.bind_rule(arguments)))


async def decline(
    setting: Setting, tool: Tool, call: Call, action: UserAction, approval: outcome.Approval, by: Answerer
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
            said = verdict(tool, call, approval, ended, LiveCall())
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


async def look(work: Callable[[Finish], T], guard: Guard, context: ToolContext[Any], timeout_seconds: float) -> T:
    """Do some work that may only look. Work that is not over in time is left behind, still watched.

    Async code gets an event loop of its own in that thread. It could block, and on the session's loop it would then
    hold up everybody, the clock that limits its own time among them. What it leaves on its loop ends with the phase.
    """
    own = _OwnLoop()
    took = 0.0

    def watched() -> T:
        nonlocal took
        began = time.monotonic()
        ToolContext.current.set(context)
        try:
            with guard.watching():
                try:
                    return work(own.finish)
                finally:
                    own.close()
        finally:
            took = time.monotonic() - began

    answer = THREADS.start(watched)
    try:
        await asyncio.wait({answer}, timeout=timeout_seconds)
    finally:
        if not answer.done():
            context._cancelled = True
            own.abandon()
    # A loop that is busy hears of both the result and the end of the time too late; how long it took is known.
    if not answer.done() or took > timeout_seconds:
        raise LastWordError(f"it did not finish within {timeout_seconds:g} seconds")
    result, problem = answer.result()
    if isinstance(problem, asyncio.CancelledError):
        raise LastWordError("it was cancelled from within")
    if problem is not None:
        raise problem
    return result


def at_home() -> Callable[[Coroutine[Any, Any, T]], Awaitable[T]]:
    """A way to await, from the loop of a phase, what belongs to this one: an editor of the host's may live here."""
    home, context = asyncio.get_running_loop(), contextvars.copy_context()

    async def there(coroutine: Coroutine[Any, Any, T]) -> T:
        # In the host's context: it is the host's code that reads, and not the tool's.
        return await asyncio.wrap_future(context.run(asyncio.run_coroutine_threadsafe, coroutine, home))

    return there


class _OwnLoop:
    """The event loop of one phase, made when something is to be awaited."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_abandoned = False

    def finish(self, result: Any) -> Any:
        if inspect.isawaitable(result) and not self._is_abandoned:
            if self._loop is None:
                # Outside of the guard, which would take the pipe that wakes the loop for a use of the network.
                self._loop = contextvars.Context().run(asyncio.SelectorEventLoop)
            result = self._loop.run_until_complete(self._hold(result))
        if self._is_abandoned:  # It came back late, and whatever would be next does not begin.
            raise LastWordError("its time is up")
        return result

    async def _hold(self, result: Awaitable[T]) -> T:
        self._task = asyncio.current_task()
        return await result

    def abandon(self) -> None:
        """Stop waiting, from another thread. Code that awaits is told; code that blocks finds out when it is back."""
        self._is_abandoned = True
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # It is closed: the code came back in this very moment.
                loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """End what was left on the loop, while the guard still watches."""
        loop = self._loop
        if loop is None:
            return
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=CLOSING_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
