"""Drawing a card: the request phase of a call, under the guard.

The tool's request function and its preview run here, once, and may only look. What they said becomes data; if they
tried to touch anything, raised, hung or returned nonsense, there is no card and nobody is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from lastword.call.looking import Finish, at_home, look
from lastword.call.setting import Setting
from lastword.call.threads import THREADS
from lastword.card import Face
from lastword.consent import ALLOW, CANCEL, ApprovalRequest, Call, is_large
from lastword.display import displayable
from lastword.editor import Preview, RecordingEditor
from lastword.errors import LastWordError, ToolError, did_you_mean
from lastword.tools import Tool
from lastword.tools.guard import MAX_OBSERVATIONS, Guard, Observation, Observations

log = logging.getLogger("lastword")

# A button says a verb. What is longer, or has lines, would push the other button out of sight.
MAX_LABEL = 60

# For a preview of files whose tool has no word for it.
PREVIEW = "Preview"
NO_PREVIEW = "The preview of this tool shows nothing."

_TEXTS = ("message", "title", "primary_button_label", "secondary_button_label")
_FIELDS = (*_TEXTS, "preview_button")
_BUTTON = ("label", "action")


class Undrawable(msgspec.Struct, frozen=True):
    """There is no card, and why: for the tool's author, unless the tool itself has words for the model."""

    why: str
    for_model: bool = False
    """Whether the tool said by a `ToolError` that there is nothing to ask: the file is not there, say."""


async def draw(tool: Tool, call: Call, setting: Setting, **facts: Any) -> ApprovalRequest | Undrawable:
    """Run the request function and its preview, and build what a person will see."""
    said = _Said()
    previews: tuple[Preview, ...] = ()
    reads: tuple[tuple[str, str | None], ...] = ()
    looked_at: tuple[Observation, ...] = ()
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
        looked_at = looks.taken()
        if recorder is not None:
            previews = recorder.previews
            reads = tuple(sorted(recorder.reads.items()))
        if said.preview is not None:
            previews = (*previews, Preview("", None, None, said.preview))
        elif said.preview_label is not None and not previews:
            # The button was promised, and a button that is not there could be missed.
            previews = (Preview("", None, None, NO_PREVIEW),)
    manifest = tool.manifest
    build = partial(
        ApprovalRequest,
        call_id=call.id,
        tool=tool.name,
        manifest=manifest,
        tool_digest=tool.digest,
        session_id=setting.session_id,
        argument_bytes=call.arguments,
        title=said.title or manifest.display_name,
        message=said.message or manifest.description,
        primary_button_label=said.primary_button_label or ALLOW,
        secondary_button_label=said.secondary_button_label or CANCEL,
        preview_label=(said.preview_label or PREVIEW) if previews else None,
        preview=previews,
        reads=reads,
        looked_at=looked_at,
        origin=call.origin,
        principal=setting.principal,
        carried_out_by=tool.carried_out_by or "",
        **facts,
    )
    return await THREADS.result_of(partial(_large, build)) if is_large(call.arguments, previews) else build()


def _large(build: Callable[[], ApprovalRequest]) -> ApprovalRequest:
    """A request of megabytes, whose digest and whose rows take moments that others on the loop have use for."""
    request = build()
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
