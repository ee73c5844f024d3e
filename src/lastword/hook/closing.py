"""What an agent says once its tool has run: the call that was handed over gets its end, or departed from what was said.

It is the agent's word. Nothing is decided by it, and a call of which nothing is heard stays handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lastword import values
from lastword.hook.acting import as_given
from lastword.hook.asking import call_of, session_of
from lastword.hook.contract import HookInput
from lastword.journal import Journal, Life, back_key, data_of
from lastword.tools import tool_id

# What is kept of a result. The agent has all of it, and shows it.
MAX_RESULT = 4_000
# Calls of one session that are looked through for the one that a result belongs to.
MAX_LOOKED_THROUGH = 200
OTHER_ARGUMENTS = "it was carried out with other arguments than were allowed"
WITHOUT_YES = "it was carried out, and had not been allowed"


async def close(journal: Journal, said: HookInput) -> None:
    """Write down what became of a call."""
    life = await _life_of(journal, said)
    if life is None:
        return  # Nobody was asked about it: it only looks, or it was there before the hook was.
    if life.handed_over is None:
        await _depart(journal, life, said, WITHOUT_YES)
    elif not _is_what_was_allowed(life, said):
        await _depart(journal, life, said, OTHER_ARGUMENTS)
    went_well = said.event != "PostToolUseFailure" and said.error is None
    message = (said.error or _in_words(said.response))[:MAX_RESULT]
    back = {"to": said.agent.name, "went_well": went_well, "message": message}
    await journal.claim(life.session_id, "handed_back", life.call_id, back, back_key(life.call_id))


async def _depart(journal: Journal, life: Life, said: HookInput, why: str) -> None:
    """Write down that the agent did something else than it was allowed to."""
    data = {"to": said.agent.name, "why": why, "arguments": said.arguments}
    await journal.claim(life.session_id, "departed", life.call_id, data, f"departed:{life.call_id}")


async def _life_of(journal: Journal, said: HookInput) -> Life | None:
    if said.tool_use is not None:
        life = await journal.life(call_of(said))
        return None if life.asked is None else life
    waiting = await _open_handovers(journal, session_of(said), tool_id(said.agent.key, said.tool))
    for life in waiting:
        if life.handed_over is not None and _is_what_was_allowed(life, said):
            return life
    return waiting[0] if waiting else None


async def _open_handovers(journal: Journal, session_id: str, tool: str) -> Sequence[Life]:
    """The calls of a tool that were handed over in this session and of which nothing was heard since, oldest first."""
    handed = await journal.store.read(stream=session_id, kind="handed_over", last=MAX_LOOKED_THROUGH)
    found = []
    for record in handed:
        if data_of(record).get("tool") == tool and await journal.store.taken(back_key(record.subject)) is None:
            found.append(await journal.life(record.subject))
    return found


def _is_what_was_allowed(life: Life, said: HookInput) -> bool:
    """Whether the arguments are those that were allowed. The folder is not compared: a command may have left it."""
    assert life.handed_over is not None
    return values.equal(as_given(said, life.handed_over["arguments"]), said.arguments)


def _in_words(response: Any) -> str:
    if response is None:
        return ""
    text = response if isinstance(response, str) else values.written(response).decode()
    return text[:MAX_RESULT]
