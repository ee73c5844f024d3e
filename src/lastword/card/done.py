"""What a window is answered after it did something. What it is shown then comes as events (items.py)."""

from __future__ import annotations

import msgspec


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Something was done."""

    event: str
    """The newest event. A window that has seen it has seen what was done at once."""


class DoneInWords(Done, frozen=True, kw_only=True):
    """Something was done that needs words."""

    message: str


class TriedModel(Done, frozen=True, kw_only=True):
    """A model was tried and kept, and this is what it can do."""

    model: str
    streams: bool
    native: bool
    """Whether it asks for tools in its own way."""
    grammar: bool
    """Whether it can be held to a form."""
    context_tokens: int | None
    protocols: tuple[str, ...]
    """Those in which it asked for a tool."""
    unlisted: str
    """That its server does not list it, in words with the nearest that it lists; empty when it does."""


class NewKey(Done, frozen=True, kw_only=True):
    """A key was made."""

    path: str
    """Opens the page once."""


class AnswerResult(msgspec.Struct, frozen=True):
    """What became of one answer among several."""

    call_id: str
    code: str | None = None
    """None: it counts. Else why it does not."""
    message: str = ""


class DoneSeverally(Done, frozen=True, kw_only=True):
    """Several cards were answered, each by itself."""

    results: tuple[AnswerResult, ...]
