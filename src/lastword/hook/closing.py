"""What an agent says once its tool has run: the call that was handed over gets its end, or departed from what was said.

It is the agent's word. Nothing is decided by it, and a call of which nothing is heard stays handed over.
"""

from __future__ import annotations

from typing import Any

from lastword import values
from lastword.hook.acting import as_given
from lastword.hook.asking import call_of, session_of
from lastword.hook.contract import HookInput
from lastword.journal import MAX_RESULT, Journal, Life, depart, hand_back, open_handovers
from lastword.tools import tool_id

OTHER_ARGUMENTS = "it was carried out with other arguments than were allowed"
WITHOUT_YES = "it was carried out, and had not been allowed"


async def close(journal: Journal, said: HookInput) -> None:
    """Write down what became of a call."""
    life = await _life_of(journal, said)
    if life is None:
        return  # Nobody was asked about it: it only looks, or it was there before the hook was.
    name = said.agent.name
    if life.handed_over is None:
        await depart(journal, life, name, WITHOUT_YES, said.arguments)
    elif not _is_what_was_allowed(life, said):
        await depart(journal, life, name, OTHER_ARGUMENTS, said.arguments)
    went_well = said.event != "PostToolUseFailure" and said.error is None
    await hand_back(journal, life, name, went_well=went_well, message=said.error or _in_words(said.response))


async def _life_of(journal: Journal, said: HookInput) -> Life | None:
    if said.tool_use is not None:
        life = await journal.life(call_of(said))
        return None if life.asked is None else life
    waiting = await open_handovers(journal, session_of(said), tool_id(said.agent.key, said.tool))
    for life in waiting:
        if life.handed_over is not None and _is_what_was_allowed(life, said):
            return life
    return waiting[0] if waiting else None


def _is_what_was_allowed(life: Life, said: HookInput) -> bool:
    """Whether the arguments are those that were allowed. The folder is not compared: a command may have left it."""
    assert life.handed_over is not None
    return values.equal(as_given(said, life.handed_over["arguments"]), said.arguments)


def _in_words(response: Any) -> str:
    if response is None:
        return ""
    text = response if isinstance(response, str) else values.written(response).decode()
    return text[:MAX_RESULT]
