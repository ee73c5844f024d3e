"""What may be said, and what the model is told when a person goes back to an earlier message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lastword.card import views
from lastword.server import Refusal

# A message that a person types or pastes.
MAX_SAID = 100_000
# Of the calls that stay done when a person goes back, what the model is told. They are all in the timeline.
MAX_TOLD = 50


def check_said(text: str) -> None:
    """Refuse a message that is empty or too long."""
    if not text:
        raise Refusal(400, "nothing_said", "the message is empty")
    if len(text) > MAX_SAID:
        raise Refusal(413, "too_long", f"the message is longer than {MAX_SAID:,} characters")


def went_back(done: Sequence[views.CallItem]) -> str:
    """That these calls stay done although what was said after the message does not count any more."""
    ends = [(call.tool, call.end.kind if call.end else "nobody knows how it ended") for call in done[-MAX_TOLD:]]
    calls = "; ".join(f"{tool} ({end})" for tool, end in ends)
    return (
        "The person went back to an earlier message, and what was said after it does not count any more. "
        f"These calls were made after it and stay done: {calls}."
    )


def stay_done(done: Sequence[views.CallItem]) -> str:
    """The same for the person."""
    calls = f"{len(done)} call{'' if len(done) == 1 else 's'}"
    return f"You went back to an earlier message. What was called since stays done: {calls}."


def since_then(items: Mapping[str, views.Item], said: views.MessageItem) -> list[views.Item]:
    """A message and all that came after it."""
    found = list(items.values())
    return found[found.index(said) :]
