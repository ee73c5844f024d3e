"""What is said to one event: before a call the person's answer, after it nothing, but it is written down."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

from lastword.consent import People
from lastword.hook.asking import ask
from lastword.hook.closing import close
from lastword.hook.contract import NO_OBJECTION, HookInput, Refused, Verdict
from lastword.journal import open_default_journal
from lastword.tools.guard import note_agent

BROKEN_OFF = "The question was broken off, and nothing was allowed."


def decide(said: HookInput, store: str | None, within_seconds: float, whose: Sequence[str] = ("",)) -> Verdict:
    """Ask, or remember, in the memory at this address or the usual one, for this person and whoever else may answer."""
    note_agent()
    # All is loaded, and waiting for a person may take an hour.
    gc.freeze()
    gc.enable()
    person, *others = whose
    people = People(person, dict.fromkeys(others, (person,)))
    return asyncio.run(_decide(said, store, within_seconds, people))


async def _decide(said: HookInput, store: str | None, within_seconds: float, people: People) -> Verdict:
    journal = open_default_journal(store)
    journal.people = people
    try:
        if said.is_before:
            return await _unless_told_to_end(ask(journal, said, within_seconds))
        await close(journal, said)
        return NO_OBJECTION
    finally:
        await journal.close()


async def _unless_told_to_end(asked: Coroutine[Any, Any, Verdict]) -> Verdict:
    """The answer; when the agent does not want it any more, its card is taken back and nobody is asked in vain."""
    task = asyncio.ensure_future(asked)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return Refused(BROKEN_OFF)
