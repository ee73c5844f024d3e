"""A question in the person's one queue, for an agent's call: put once, answered once, and told again when asked again.

It goes through a session, and so through the one door: a changed file, a second answer, a stop, a changed argument are
dealt with there. What is allowed is handed over, and nothing is run.
"""

from __future__ import annotations

import asyncio
import itertools
from hashlib import sha256

from lastword import ids, values
from lastword.call import Limits, wait_for_answer
from lastword.errors import SessionError
from lastword.hook.acting import FOLDER, acting, as_given, folder_of, has_folder, why_unclear
from lastword.hook.agents import PROBE
from lastword.hook.contract import Allowed, HookInput, Refused
from lastword.hook.keys import AgentKeys
from lastword.hook.ruling import policy_of, ruled
from lastword.hook.showing import tool_for
from lastword.journal import Journal, back_key, is_attended
from lastword.session import Session
from lastword.tools import ToolRegistry

# How often to look whether another hook of the same call is done with it.
LOOK_SECONDS = 0.1
# Drawing, writing and asking again take their time beside that of the person.
BESIDE_SECONDS = 10.0

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


def session_of(said: HookInput) -> str:
    """The session of ours that the calls of an agent's session are remembered in."""
    return f"{said.agent.key}-{_digest(said.agent.key, said.session)}"


def call_of(said: HookInput) -> str:
    """The id of a call: the same for the same agent, session and tool use. A call that has no name gets a new one."""
    if said.tool_use is None:
        return f"{said.agent.key}-{ids.new()}"
    what = "asked" if said.event == said.agent.permission else "called"
    return f"{said.agent.key}-{_digest(said.agent.key, said.session, said.tool_use, what)}"


def _digest(*parts: str) -> str:
    return sha256(values.canonical(list(parts))).hexdigest()[:20]


async def ask(journal: Journal, said: HookInput, within_seconds: float) -> Allowed | Refused:
    """Put the card into the queue and wait for the person, no longer than this."""
    attended = is_attended(journal.store)
    if said.tool == PROBE:
        await journal.store.head()  # A gate without its memory would say no to everything; the doctor wants to know.
        return Refused(PROBED)
    if why := why_unclear(said):
        return Refused(why)
    policy = policy_of(said)
    if not attended and ruled(said, policy) != "deny":
        return Refused(NOBODY)
    tool, file = tool_for(said, AgentKeys().of(said.agent))
    registry = ToolRegistry()
    registry.add(tool)
    session = Session(
        registry,
        id=session_of(said),
        approver=wait_for_answer,
        journal=journal,
        editor=file,
        limits=Limits(approval_timeout_seconds=within_seconds, watch_after_seconds=0),
        policy=policy,
    )
    call_id, arguments = call_of(said), acting(said)
    if await journal.store.taken(back_key(call_id)) is not None:
        return Refused(CARRIED_OUT)  # A model that counts its calls from one, in a session that goes on.
    try:
        async with asyncio.timeout(within_seconds + BESIDE_SECONDS), session:
            while True:
                await _until_let_go(journal, call_id)
                try:
                    outcome = await session.call(tool.name, arguments, call_id=call_id, origin=_origin(said))
                    break
                except SessionError:
                    if not journal.store.is_held(f"call:{call_id}"):
                        raise
                    # Another hook of the very same call was faster. It has the card, and its answer is ours.
    except TimeoutError:
        return Refused(f"{said.tool} was not allowed: nobody answered in time. This is not a refusal.")
    if outcome.kind == "handed_over" and isinstance(outcome.value, dict):
        if has_folder(said) and outcome.value.get(FOLDER) != str(folder_of(said)):
            return Refused(MOVED)
        why = "" if outcome.approval == "person" else await _why_not_asked(journal, call_id)
        return Allowed(as_given(said, outcome.value), why)
    return Refused(outcome.message)


async def _why_not_asked(journal: Journal, call_id: str) -> str:
    """By whose word nobody was asked about a call that was handed over."""
    handed = (await journal.life(call_id)).handed_over
    return "" if handed is None else str(handed.get("why", ""))


async def _until_let_go(journal: Journal, call_id: str) -> None:
    """Wait for another process, which nothing but a look tells us of."""
    for _ in itertools.count():
        if not journal.store.is_held(f"call:{call_id}"):
            return
        await asyncio.sleep(LOOK_SECONDS)


def _origin(said: HookInput) -> str:
    return f"{said.agent.name}, session {said.session[:8]}, in {said.cwd or 'a folder that it does not say'}"
