"""What a satellite tells whoever shows the conversation, as it happens."""

from __future__ import annotations

import msgspec

from lastword.errors import LastWordError


class Said(msgspec.Struct, frozen=True):
    """A piece of the model's text."""

    text: str


class Repairing(msgspec.Struct, frozen=True):
    """The model is told what was wrong with its message."""

    reason: str


class Retrying(msgspec.Struct, frozen=True):
    """The server could not be reached or could not answer. What was shown of the answer so far does not count."""

    problem: LastWordError
    attempt: int


class Thought(msgspec.Struct, frozen=True):
    """What the model thought before it replied. It is no part of the reply."""

    text: str


class Outgrown(msgspec.Struct, frozen=True):
    """The conversation has grown longer than the model can see: from now on its oldest turns are not shown to it."""


class Forgotten(msgspec.Struct, frozen=True):
    """The server does not know the conversation any more. A new one has begun."""

    conversation_id: str


Heard = Said | Thought | Repairing | Retrying | Outgrown | Forgotten
