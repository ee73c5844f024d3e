"""Calls that another program carries out: handed over with a person's yes, and what that program says afterwards.

Such a call has no start in the journal, because nothing of ours ran. That it was handed over stands in the place of
one, takes the same key, and goes to the disk in one step with the answer. What comes later is the other program's word,
and is told as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from lastword.consent import Call
from lastword.journal.records import HandedOverFacts, Life, data_of
from lastword.store import Entry, Store

_encode = msgspec.json.Encoder().encode

# What is kept of a result. The other program has all of it, and shows it.
MAX_RESULT = 4_000
# Calls of one session that are looked through for the one that a result belongs to.
MAX_LOOKED_THROUGH = 200


def handed_over(session_id: str, call: Call, to: str, approval: str, once: str, at: float, why: str = "") -> Entry:
    """The record that stands where others have their start. `why`: why nobody was asked."""
    facts = HandedOverFacts(call.tool, msgspec.Raw(call.arguments), call.origin, approval, to, why)
    return Entry(session_id, "handed_over", call.id, int(at * 1_000_000), _encode(facts), once, irrevocable=True)


def back_key(call_id: str) -> str:
    """The key that the word of the other program takes: it is heard once."""
    return f"handed_back:{call_id}"


class Claiming(Protocol):
    """What is needed of a journal here."""

    store: Store

    async def claim(self, session_id: str, kind: str, subject: str, data: dict[str, Any], once: str) -> bool: ...

    async def life(self, call_id: str) -> Life: ...


async def hand_back(journal: Claiming, life: Life, to: str, *, went_well: bool, message: str) -> bool:
    """Write down what the other program says became of a call. False when it had said so before."""
    data = {"to": to, "went_well": went_well, "message": message[:MAX_RESULT]}
    return await journal.claim(life.session_id, "handed_back", life.call_id, data, back_key(life.call_id))


async def depart(journal: Claiming, life: Life, to: str, why: str, arguments: dict[str, Any]) -> bool:
    """Write down that the other program did something else than it was allowed to."""
    data = {"to": to, "why": why, "arguments": arguments}
    return await journal.claim(life.session_id, "departed", life.call_id, data, f"departed:{life.call_id}")


def handover_in_words(life: Life) -> str:
    """How a call stands that was handed over, for a list."""
    if life.departed is not None:
        return "departed"
    if life.handed_back is None:
        return "handed over"
    return "handed over, done" if life.handed_back["went_well"] else "handed over, failed"


async def open_handovers(journal: Claiming, session_id: str, tool: str) -> Sequence[Life]:
    """The calls of a tool that were handed over in this session and of which nothing was heard since, oldest first."""
    handed = await journal.store.read(stream=session_id, kind="handed_over", last=MAX_LOOKED_THROUGH)
    found = []
    for record in handed:
        if data_of(record).get("tool") == tool and await journal.store.taken(back_key(record.subject)) is None:
            found.append(await journal.life(record.subject))
    return found
