"""What became of a call, in the words of the protocol: for a client, and the model behind it."""

from __future__ import annotations

import base64
from typing import Any

from lastword.consent import Outcome
from lastword.lazily import brought_by
from lastword.runs import Run
from lastword.session import Session

with brought_by("mcp", "mcp", "mcp_types"):
    import mcp_types as types

# Under these names a program finds what the words say.
KIND, CALL = "lastword/kind", "lastword/call"
NOT_ASKED = "lastword/not_asked"
"""By whose word nobody was asked, where a rule or a grant stood for the person."""

EARLIER = "(The same was asked for before, and this is its result, which had not been delivered.)"


async def reply(session: Session, outcome: Outcome, *, is_old: bool = False) -> types.CallToolResult:
    """The end of a call: its words, its value, and what it returned beside that."""
    words = f"{outcome.message}\n{EARLIER}" if is_old else outcome.message
    content: list[Any] = [types.TextContent(type="text", text=words)]
    for kept in outcome.content:
        if kept.kind == "text":
            continue  # Its words are in the message.
        data = base64.b64encode(await session.content(outcome.call_id, kept.digest)).decode()
        if kept.kind == "image":
            content.append(types.ImageContent(type="image", data=data, mime_type=kept.media_type))
        elif kept.kind == "audio":
            content.append(types.AudioContent(type="audio", data=data, mime_type=kept.media_type))
        else:
            uri = f"lastword://{outcome.call_id}/{kept.digest}"
            blob = types.BlobResourceContents(uri=uri, blob=data, mime_type=kept.media_type)
            content.append(types.EmbeddedResource(type="resource", resource=blob))
    value = outcome.value if outcome.gave_value and type(outcome.value) is dict else None
    return types.CallToolResult(
        content=content,
        structured_content=value,
        is_error=not outcome.success,
        _meta={KIND: outcome.kind, CALL: outcome.call_id} | await _not_asked(session, outcome),
    )


async def _not_asked(session: Session, outcome: Outcome) -> dict[str, str]:
    if outcome.approval not in ("rule", "grant"):
        return {}
    started = (await session.journal.life(outcome.call_id)).started or {}
    return {NOT_ASKED: started["why"]} if started.get("why") else {}


def reply_to_script(run: Run, *, is_old: bool = False) -> types.CallToolResult:
    """The end of a script: what it printed, and each error with its place."""
    problems = [str(problem) for problem in run.errors or ((run.error,) if run.error is not None else ())]
    lines = [*run.output, *problems]
    if run.in_doubt is not None:
        lines.append(f"Nobody knows how the call {run.in_doubt} ended. A person has to decide before this goes on.")
    if is_old:
        lines.append(EARLIER)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines) or "The script is done, and printed nothing.")],
        is_error=run.status != "done",
        _meta={KIND: run.status, CALL: run.run_id},
    )


def still_open(call_id: str, what: str, is_running: bool) -> types.CallToolResult:
    """Said shortly before the client would stop waiting."""
    waits = "waits for a person's answer, and nothing has happened yet"
    state = "was allowed, and is running" if is_running else waits
    return _open(call_id, f"The call {call_id} of {what} {state}.", "running" if is_running else "waiting")


def script_still_open(run_id: str, *, waits: bool) -> types.CallToolResult:
    """The same of a script, some of whose calls may be done by then."""
    state = "waits for a person's answer about its next call" if waits else "is running"
    return _open(run_id, f"The script {run_id} {state}.", "waiting" if waits else "running")


def _open(id: str, words: str, kind: str) -> types.CallToolResult:
    words = (
        f"{words} It goes on without you. Ask for exactly the same again to wait for its result: that starts nothing a "
        "second time. Do not try to do it in another way."
    )
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)], is_error=True, _meta={KIND: kind, CALL: id}
    )


def refused(words: str) -> types.CallToolResult:
    """Nothing was done, and why."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=True)
