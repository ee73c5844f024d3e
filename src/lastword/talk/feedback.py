"""What goes back to the model: results of calls and scripts, and why a message could not be taken.

Results are JSON, so that a model can tell our words from a tool's. What the program itself says to the model is marked
as its own: the person did not write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lastword import values
from lastword.consent import Outcome
from lastword.talk.replies import Protocol

# Of everything a script printed, and of each call's message: the model asked for it, but it has to fit.
MAX_OUTPUT = 20_000
MAX_ERROR = 5_000
MAX_CALL_MESSAGE = 1_000
MAX_CALLS = 50

PROGRAM = "[From the program, not from the person]"

_SHAPES: dict[Protocol, str] = {
    "json": 'To call a tool, the whole message must be {"tool_request": {"name": "…", "arguments": {…}}}.',
    "script": "To use tools, the whole message must be one script, without a fence and without words around it.",
    "native": "To call a tool, use a tool call with a JSON object as its arguments.",
}


def call_result(result: Outcome) -> str:
    """The result of one call."""
    return values.canonical(result.result()).decode()


def script_result(
    status: str, output: Sequence[str], error: str | None, calls: Sequence[Outcome], waiting_for: str | None = None
) -> str:
    """The result of a script: how it ended, what it printed, and what became of each call."""
    said: dict[str, Any] = {"status": status, "output": _cut("\n".join(output), MAX_OUTPUT)}
    if error is not None:
        said["error"] = _cut(error, MAX_ERROR)
    if waiting_for is not None:
        said["note"] = (
            f"It is not known how the call of {waiting_for} ended, because the program stopped while it ran. "
            "A person has to look. Do not repeat it."
        )
    said["calls"] = [
        {"tool": call.tool, "success": call.success, "message": _cut(call.message, MAX_CALL_MESSAGE)}
        for call in calls[:MAX_CALLS]
    ]
    if len(calls) > MAX_CALLS:
        said["more_calls"] = len(calls) - MAX_CALLS
    return values.canonical(said).decode()


def unreadable(reason: str) -> str:
    """The result of a native call that could not be read."""
    return values.canonical(
        {"success": False, "message": f"Nothing was run: {reason}. Send the call again with arguments that are JSON."}
    ).decode()


def secret_is_gone() -> str:
    """The result of a request that was read from a memory, or repeated by the model, without the secret in it."""
    return values.canonical(
        {
            "success": False,
            "message": "Nothing was run: secrets are not kept in the conversation, and the mark stands where one was. "
            "Send the whole request again with the value, and ask the person for it if you do not have it.",
        }
    ).decode()


def repair(reason: str, protocol: Protocol) -> str:
    """Why a message was nearly a request, in words the model can repair it from."""
    return (
        f"{PROGRAM} Your last message looks like a request for a tool, and could not be taken as one: {reason}\n"
        f"{_SHAPES[protocol]} Nothing was run. Send it again, or answer in plain words."
    )


def from_program(words: str) -> str:
    """Something that happened outside the conversation, for the model to know."""
    return f"{PROGRAM} {words}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} characters left out]"
