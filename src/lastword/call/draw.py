"""Drawing a card: the request phase of a call, under the guard.

The tool's request function and its preview run here, once, and may only look. What they said becomes data; if they
tried to touch anything, raised, hung or returned nonsense, there is no card and nobody is asked.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from lastword.call.threads import THREADS
from lastword.consent.approval import ALLOW, CANCEL, ApprovalRequest
from lastword.display import displayable
from lastword.editor import ScriptEditorProvider
from lastword.editor.recording import Preview, RecordingEditor
from lastword.errors import LastWordError, ToolError, did_you_mean
from lastword.journal import Call
from lastword.tools.context import ToolContext, current
from lastword.tools.guard import Guard
from lastword.tools.state import State
from lastword.tools.tool import Tool

log = logging.getLogger("lastword")

# A card is drawn from what is at hand. One that needs longer than this would leave the person waiting.
DRAW_TIMEOUT_SECONDS = 10.0

# A button says a verb. What is longer, or has lines, would push the other button out of sight.
MAX_LABEL = 60

_FIELDS = ("message", "title", "preview_button", "primary_button_label", "secondary_button_label")


class Undrawable(msgspec.Struct, frozen=True):
    """There is no card, and why: for the tool's author, unless the tool itself has words for the model."""

    why: str
    for_model: bool = False
    """Whether the tool said by a `ToolError` that there is nothing to ask: the file is not there, say."""


async def draw(
    tool: Tool,
    call: Call,
    *,
    session_id: str,
    state: State,
    editor: ScriptEditorProvider | None,
    timeout_seconds: float = DRAW_TIMEOUT_SECONDS,
    **facts: Any,
) -> ApprovalRequest | Undrawable:
    """Run the request function and its preview, and build what a person will see."""
    said: dict[str, Any] = {}
    previews: tuple[Preview, ...] = ()
    reads: tuple[tuple[str, str | None], ...] = ()
    button: dict[str, Any] = {}
    if tool.request is not None:
        guard = Guard(f"the request function of {tool.name}")
        recorder = None if editor is None else RecordingEditor(editor, sees_private=True)
        context = ToolContext(state, call_id=call.id, manifest=tool.manifest, session_id=session_id, guard=guard)
        given = {"editor": recorder, "context": context, "user_action": None}
        try:
            kwargs = tool.bind_request(call.arguments, given)
            said = _checked(await _watched(tool.request, kwargs, guard, context, timeout_seconds))
            shown = None
            if said.get("preview_button"):
                shown = await _watched(said["preview_button"]["action"], {}, guard, context, timeout_seconds)
        except ToolError as problem:
            tried = _tried(guard, recorder)
            return Undrawable(tried or displayable(str(problem)), for_model=tried is None)
        except LastWordError as problem:
            return Undrawable(displayable(_tried(guard, recorder) or problem.fact))
        except Exception as problem:
            log.error("call %s: the request function of %s raised", call.id, tool.name, exc_info=problem)
            return Undrawable(_tried(guard, recorder) or f"it raised {type(problem).__name__}; the log has the details")
        # The guard is asked even though nothing was raised: the tool may have swallowed it.
        if why := _tried(guard, recorder):
            return Undrawable(why)
        if recorder is not None:
            previews = recorder.previews
            reads = tuple(sorted(recorder.reads.items()))
        if isinstance(shown, str):
            previews = (*previews, Preview("", None, None, displayable(shown)))
        if said.get("preview_button") and not previews:
            if shown is not None:
                # The tool has something to show and nobody would see it: a card without it asks for less than it says.
                what = f"its preview returned a {type(shown).__name__}"
                return Undrawable(f"{what}; return a text, or call editor.open_diff_editor(path, content)")
            log.warning(
                "call %s: the preview of %s showed nothing, so its card has no button for it. "
                "Return a text, or call editor.open_diff_editor(path, content).",
                call.id,
                tool.name,
            )
        said = {key: displayable(value) if isinstance(value, str) else value for key, value in said.items()}
        button = said.get("preview_button") or {}
    manifest = tool.manifest
    return ApprovalRequest(
        call_id=call.id,
        tool=tool.name,
        manifest=manifest,
        tool_digest=tool.digest,
        session_id=session_id,
        canonical_arguments=call.arguments,
        title=said.get("title") or manifest.display_name,
        message=said.get("message") or manifest.description,
        primary_button_label=said.get("primary_button_label") or ALLOW,
        secondary_button_label=said.get("secondary_button_label") or CANCEL,
        preview_label=displayable(button.get("label", "")) if previews else None,
        preview=previews,
        reads=reads,
        origin=call.origin,
        **facts,
    )


def _tried(guard: Guard, recorder: RecordingEditor | None) -> str | None:
    """What was attempted and must not be, in words."""
    attempts = guard.violations + ([] if recorder is None else recorder.attempts)
    return displayable(f"it tried to {attempts[0]} before anybody agreed") if attempts else None


async def _watched(
    function: Callable[..., Any], kwargs: dict[str, Any], guard: Guard, context: ToolContext, timeout_seconds: float
) -> Any:
    """Call a function that may only look, for a limited time. One that does not come back is left behind."""

    def call() -> Any:
        current.set(context)
        with guard.watching():
            return function(**kwargs)

    async def watch() -> Any:
        try:
            result = call() if inspect.iscoroutinefunction(inspect.unwrap(function)) else await in_thread()
            if inspect.isawaitable(result):
                current.set(context)
                with guard.watching():
                    result = await result
        except (Exception, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except SystemExit as problem:  # Ending the program is no way to draw a card.
            raise LastWordError("it tried to end the program") from problem
        except BaseException as problem:  # Nor is any other way to get past those who catch exceptions.
            log.error("call %s: the request function raised", context.call_id, exc_info=problem)
            raise LastWordError(f"it raised {type(problem).__name__}; the log has the details") from problem
        return result

    async def in_thread() -> Any:
        answer = loop.create_future()

        def done(result: Any, problem: BaseException | None) -> None:
            if not answer.done():
                answer.set_result((result, problem))

        THREADS.run(call, done, loop)
        result, problem = await answer
        if problem is not None:
            raise problem
        return result

    loop = asyncio.get_running_loop()
    waiting = loop.create_task(watch())
    try:
        finished, _ = await asyncio.wait({waiting}, timeout=timeout_seconds)
    except asyncio.CancelledError:
        waiting.cancel()
        raise
    if waiting.cancelled():
        raise LastWordError("it was cancelled from within")
    if not finished:
        waiting.cancel()
        raise LastWordError(f"it did not finish within {timeout_seconds:g} seconds")
    return waiting.result()


def _checked(said: Any) -> dict[str, Any]:
    """What a request function may return, or an error for its author."""
    if not isinstance(said, dict):
        raise LastWordError(f"it returned a {type(said).__name__} instead of a dict with a message")
    # A mapping of the tool's own could say one thing here and another when the card is built.
    fields: dict[str, Any] = dict(said)
    for key, value in fields.items():
        if key not in _FIELDS:
            hint = did_you_mean(str(key), _FIELDS)
            raise LastWordError(f"it returned the unknown field {key}" + (f" ({hint})" if hint else ""))
        if key == "preview_button":
            if value is not None and (
                not isinstance(value, dict)
                or not isinstance(value.get("label"), str)
                or not callable(value.get("action"))
            ):
                raise LastWordError("its preview_button is not {label, action}")
        elif value is not None and not isinstance(value, str):
            raise LastWordError(f"its {key} is a {type(value).__name__}, not a string")
        elif value and key.endswith("_label") and (len(value) > MAX_LABEL or not value.isprintable()):
            raise LastWordError(f"its {key} is not one line of at most {MAX_LABEL} characters")
    if not fields.get("message"):
        raise LastWordError("it returned no message")
    return fields
