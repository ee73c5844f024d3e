"""Calls that an earlier process left behind: told again, gone on with, or put before a person. Never done twice.

A call that was started and has no end is in doubt. Only two can say that it runs again: a person, and the tool that
declares itself idempotent. What does not live here: the life of a call that begins (door.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import UNSET

from lastword import values
from lastword.call.door import Door, decided_already
from lastword.consent import Answerer, Kind, Outcome, Secrets, outcome
from lastword.errors import ArgumentsError, SessionError

if TYPE_CHECKING:
    from lastword.journal import Life
    from lastword.tools import Tool

Decision = Literal["again", "done", "abandon"]


async def recover(
    door: Door,
    life: Life,
    name: str,
    arguments: Any,
    origin: str = "",
    *,
    resumable: bool = False,
    problem: str | None = None,
) -> Outcome:
    """Go on with a call that an earlier process left behind. Nothing that was started starts itself again."""
    _check_ours(door, life)
    if life.call_id in door.setting.live and not life.in_doubt and life.finished is None:
        raise SessionError(
            "this call is being carried out already", place=life.call_id, hint="lastword show says how it stands"
        )
    _check_same(door, life, name, arguments)
    if life.finished is not None:
        return life.outcome()
    # The journal's word starts something here. Its end, or that an answer was spent, must not have been hidden.
    await door.journal.prove_since(life.call_id)
    if not life.in_doubt:
        result = door.carry_out(life.call_id, name, arguments, origin, life, resumable=resumable, problem=problem)
        return result if isinstance(result, Outcome) else await result
    assert life.started is not None
    tool = door.setting.registry.find(name)
    if door.journal.is_running(life):
        return Outcome(kind="outcome_unknown", message=outcome.still_running(name), call_id=life.call_id, tool=name)
    is_same = tool is not None and tool.digest == life.started["tool_digest"]
    is_stopped = (life.asked or {}).get("stops", 0) != await door.journal.stops()
    if tool is not None and tool.manifest.idempotent and is_same and not is_stopped:
        # What was agreed to runs again, as a person may have changed it. Only secrets were not kept.
        agreed = life.started["arguments"]
        tool, call = door.admit(life.call_id, name, arguments if tool.secrets else agreed, origin)
        is_agreed = values.equal(Secrets.hide(values.decode(call.arguments), tool.secrets), agreed)
        # A person's yes was to this call. A standing one may have been taken back since.
        by = Answerer.read((life.answered or {}).get("approver"))
        is_agreed = is_agreed and (by.kind == "person" or await door.authority.still_stands(tool, call, by))
        if is_agreed and not door.authority.forbids(tool, call):
            return await door.start_again(tool, call, life, "it declares itself idempotent")
    return Outcome(kind="outcome_unknown", message=outcome.unknown(name), call_id=life.call_id, tool=name)


async def resolve(door: Door, call_id: str, decision: Decision, by: str, value: Any = UNSET) -> Outcome:
    """A person says what to do about a call in doubt. Their word is written down before anything happens.

    Of a call that was done they may know what it gave.
    """
    if decision not in get_args(Decision):
        raise SessionError(f"{decision} is no decision", hint=f"one of {', '.join(get_args(Decision))}")
    if value is not UNSET and decision != "done":
        raise SessionError("only a call that was done gave a value", place=call_id, hint="say done, or no value")
    life = await door.journal.life(call_id)
    _check_ours(door, life)
    if not life.in_doubt:
        raise SessionError("this call is not in doubt", place=call_id, hint="lastword show says how it stands")
    if door.journal.is_running(life):
        raise SessionError("this call is still running", place=call_id, hint="wait for it, or cancel it first")
    await door.journal.prove_since(call_id)
    assert life.started is not None
    started, name = life.started, life.started["tool"]
    if decision == "again":
        tool, call = door.admit(call_id, name, started["arguments"], started["origin"])
        if tool.secrets:
            raise SessionError(
                "its secrets were not kept, so it cannot be run again", place=call_id, hint="ask for a new call"
            )
        return await door.start_again(tool, call, life, f"decided by {by}")
    kind: Kind = "succeeded" if decision == "done" else "outcome_unknown"
    words = outcome.taken_as_done(name, by) if decision == "done" else outcome.given_up(name, by)
    result = Outcome(kind=kind, message=words, call_id=call_id, tool=name, approval=started["approval"])
    if value is not UNSET:
        result = msgspec.structs.replace(result, value=values.plain(value), gave_value=True)
    if not await door.journal.settle(door.setting.session_id, result, life, f"{decision}, decided by {by}"):
        raise decided_already(call_id)
    return result


def difference(life: Life, tool: Tool, arguments: Any) -> str | None:
    """What is asked for now, if it is not what the journal knows of this call: another tool, or other arguments."""
    known = life.proposed or life.started or life.finished
    if not known:
        return None  # Nothing is known of it, or what was known is pruned.
    if known["tool"] != tool.name:
        return f"a call of {known['tool']}, and not of {tool.name}"
    if "arguments" not in known:
        return None  # It was turned away before its arguments were worth writing down.
    try:
        now = Secrets.hide(values.decode(tool.validate({} if arguments is None else arguments)), tool.secrets)
    except ArgumentsError:
        now = None
    return None if now is not None and values.equal(now, known["arguments"]) else f"{tool.name} with other arguments"


def _check_same(door: Door, life: Life, name: str, arguments: Any) -> None:
    """An id names one call. To answer another with its outcome would say that something was done which was not."""
    tool = door.setting.registry.find(name)
    if tool is None:
        known = life.proposed or life.started or life.finished or {}
        found = None if known.get("tool", name) == name else f"a call of {known['tool']}"
    else:
        found = difference(life, tool, arguments)
    if found is not None:
        raise SessionError(
            f"this id was given to another call: {found}", place=life.call_id, hint="give every call an id of its own"
        )


def _check_ours(door: Door, life: Life) -> None:
    if life.session_id and life.session_id != door.setting.session_id:
        raise SessionError(
            f"this call belongs to another session, {life.session_id}",
            place=life.call_id,
            hint="open that one, or give the call an id of its own",
        )
