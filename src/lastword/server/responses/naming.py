"""Ids that say where their thing is: which turn of which conversation, and what of it.

So an id needs no record of its own: what it names is read from the conversation, by whoever may read that. A turn that
was not kept has the number 0, which no kept one has, and its ids lead nowhere.
"""

from __future__ import annotations

import re
import secrets

import msgspec

from lastword.server.conversations import UNNAMED

_PLACE = re.compile(r"(resp|msg|fc)_(\d{1,9})_([A-Za-z0-9][A-Za-z0-9_.:-]{0,131})")


def new_conversation_id() -> str:
    """For a conversation that is known by the ids of its answers."""
    return UNNAMED + secrets.token_hex(12)


class TurnPlace(msgspec.Struct, frozen=True):
    """A turn of a conversation."""

    number: int
    conversation: str

    @property
    def response_id(self) -> str:
        """Of the answer that it ended with."""
        return f"resp_{self.number}_{self.conversation}"

    @property
    def message_id(self) -> str:
        """Of what the model said in it."""
        return f"msg_{self.number}_{self.conversation}"

    def call_id(self, place: int) -> str:
        """Of the item in which the model asks for a tool; the request has an id of its own."""
        # The number stands last but for the conversation, which may have anything in it.
        return f"fc_{self.number}_{place}.{self.conversation}"


def turn_of(id: str) -> TurnPlace | None:
    """The turn that an id is about; None when it is not one of ours."""
    found = _PLACE.fullmatch(id)
    if found is None:
        return None
    kind, number, rest = found.groups()
    if kind == "fc":
        place, dot, rest = rest.partition(".")
        if not (dot and place.isdigit() and rest):
            return None
    return TurnPlace(int(number), rest)
