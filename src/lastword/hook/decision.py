"""A question in the person's one queue, for an agent's call: put once, answered once, and told again when asked again.

It goes through a session, and so through the one door: a changed file, a second answer, a stop, a changed argument are
dealt with there. What is allowed is handed over, and nothing is run.

Afterwards the agent says what became of it: the call that was handed over gets its end, or departed from what was said.
That is the agent's word. Nothing is decided by it, and a call of which nothing is heard stays handed over.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import signal
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from lastword import call, consent, tools
from lastword.errors import SessionError
from lastword.hook.event import FOLDER, NO_OBJECTION, Allowed, HookInput, Refused, Verdict
from lastword.journal import Journal, Life, OnceKey, data_of, open_default_journal
from lastword.lazily import load_later
from lastword.tools.guard import note_agent

if TYPE_CHECKING:
    from lastword import session
    from lastword.hook import agent_tool
else:
    # Where nobody is there who could answer, the agent is told so before all of this is loaded.
    agent_tool, session = load_later("lastword.hook.agent_tool"), load_later("lastword.session")

# How often to look whether another hook of the same call is done with it.
LOOK_SECONDS = 0.1
# Drawing, writing and asking again take their time beside that of the person.
BESIDE_SECONDS = 10.0
# What is kept of a result. The agent has all of it, and shows it.
MAX_RESULT = 4_000
# Calls of one session that are looked through for the one that a result belongs to.
MAX_LOOKED_THROUGH = 200

NOBODY = (
    "Nobody can answer: no `lastword up` runs on this memory, so this was denied and nobody was asked. The person "
    "starts one in a terminal of their own with `lastword up`, and the cards appear on its page. This is not a refusal."
)
MOVED = "Its folder leads elsewhere by now than when it was allowed, so nothing was allowed after all."
CARRIED_OUT = (
    "This call was carried out before: the agent said so, and now it asks for it again under the same name. A yes is "
    "for one call. Ask for a new one."
)
PROBED = "This is the probe of lastword doctor. It is always denied."
BROKEN_OFF = "The question was broken off, and nothing was allowed."
OTHER_ARGUMENTS = "it was carried out with other arguments than were allowed"
WITHOUT_YES = "it was carried out, and had not been allowed"


def decide(said: HookInput, store: str | None, within_seconds: float, whose: Sequence[str] = ("",)) -> Verdict:
    """Ask, or remember, in the memory at this address or the usual one, for this person and whoever else may answer."""
    note_agent()
    person, *others = whose
    return asyncio.run(_decide(said, store, within_seconds, consent.People(person, dict.fromkeys(others, (person,)))))


async def _decide(said: HookInput, store: str | None, within_seconds: float, people: consent.People) -> Verdict:
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


async def ask(journal: Journal, said: HookInput, within_seconds: float) -> Allowed | Refused:
    """Put the card into the queue and wait for the person, no longer than this."""
    attended = journal.programs.is_attended()
    if said.is_probe:
        await journal.store.head()  # A gate without its memory would say no to everything; the doctor wants to know.
        return Refused(PROBED)
    if why := said.why_unclear():
        return Refused(why)
    policy = said.policy()
    if not attended and (policy is None or agent_tool.ruled(said, policy) != "deny"):
        return Refused(NOBODY)
    tool, file = agent_tool.tool_for(said)
    registry = tools.ToolRegistry()
    registry.add(tool)
    asking = session.Session(
        registry,
        id=said.our_session,
        approver=call.wait_for_answer,
        journal=journal,
        editor=file,
        limits=call.Limits(approval_timeout_seconds=within_seconds, watch_after_seconds=0),
        policy=policy,
    )
    if not gc.isenabled():  # All is loaded now, and waiting for a person may take an hour.
        gc.freeze()
        gc.enable()
    call_id = said.our_call()
    if await journal.store.taken(OnceKey.back(call_id)) is not None:
        return Refused(CARRIED_OUT)  # A model that counts its calls from one, in a session that goes on.
    try:
        async with asyncio.timeout(within_seconds + BESIDE_SECONDS), asking:
            while True:
                await _until_let_go(journal, call_id)
                try:
                    outcome = await asking.call(tool.name, said.acting(), call_id=call_id, origin=said.origin)
                    break
                except SessionError:
                    if not journal.store.is_held(f"call:{call_id}"):
                        raise
                    # Another hook of the very same call was faster. It has the card, and its answer is ours.
    except TimeoutError:
        return Refused(f"{said.tool} was not allowed: nobody answered in time. This is not a refusal.")
    if outcome.kind == "handed_over" and isinstance(outcome.value, dict):
        if said.has_folder and outcome.value.get(FOLDER) != str(said.folder):
            return Refused(MOVED)
        why = ""
        if outcome.approval != "person":  # By whose word nobody was asked.
            why = str(((await journal.life(call_id)).handed_over or {}).get("why", ""))
        return Allowed(said.as_given(outcome.value), why)
    return Refused(outcome.message)


async def _until_let_go(journal: Journal, call_id: str) -> None:
    """Wait for another process, which nothing but a look tells us of."""
    for _ in itertools.count():
        if not journal.store.is_held(f"call:{call_id}"):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def close(journal: Journal, said: HookInput) -> None:
    """Write down what became of a call."""
    life = await _life_of(journal, said)
    if life is None:
        return  # Nobody was asked about it: it only looks, or it was there before the hook was.
    departed = WITHOUT_YES if life.handed_over is None else ""
    if life.handed_over is not None and not said.is_of(life.handed_over["arguments"]):
        departed = OTHER_ARGUMENTS
    if departed:
        data = {"to": said.agent.name, "why": departed, "arguments": said.arguments}
        await journal.claim(life.session_id, "departed", life.call_id, data, f"departed:{life.call_id}")
    back = {"to": said.agent.name, "went_well": said.went_well, "message": said.result[:MAX_RESULT]}
    await journal.claim(life.session_id, "handed_back", life.call_id, back, OnceKey.back(life.call_id))


async def _life_of(journal: Journal, said: HookInput) -> Life | None:
    if said.tool_use is not None:
        life = await journal.life(said.our_call())
        return None if life.asked is None else life
    waiting = await _open_handovers(journal, said.our_session, tools.tool_id(said.agent.key, said.tool))
    for life in waiting:
        if life.handed_over is not None and said.is_of(life.handed_over["arguments"]):
            return life
    return waiting[0] if waiting else None


async def _open_handovers(journal: Journal, session_id: str, tool: str) -> Sequence[Life]:
    """The calls of a tool that were handed over in this session and of which nothing was heard since, oldest first."""
    handed = await journal.store.read(stream=session_id, kind="handed_over", last=MAX_LOOKED_THROUGH)
    found = []
    for record in handed:
        if data_of(record).get("tool") == tool and await journal.store.taken(OnceKey.back(record.subject)) is None:
            found.append(await journal.life(record.subject))
    return found
