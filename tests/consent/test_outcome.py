"""Thirteen ends of a call, told apart in the journal and in the words for the model."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from lastword import Limits, Outcome, Session, ToolError, ToolRegistry, UserAction, wait_for_answer
from lastword.consent import ALLOWED, DENIED, Kind
from lastword.editor import ProjectEditor
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.store import MemoryStore
from lastword.testing import FixedApprover, memory_journal
from lastword.tools import Tool
from requirements import requirement
from sending import CALL, until

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


class Dying(MemoryStore):
    """Forgets how the first call ended, as a process that died in the middle of it would."""

    async def commit(self, *entries):
        if any(entry.kind == "finished" for entry in entries) and not self.died:
            self.died = True
            return True
        return await super().commit(*entries)

    died = False


async def reach(kind: str, registry: ToolRegistry, assistant) -> tuple[Outcome, Session]:
    """Bring about one kind of outcome, each through the public door."""
    facts: dict = {"approver": FixedApprover()}
    arguments: object = CALL
    execute = request = None
    if kind == "failed":

        def execute(params):
            return {"success": False, "message": "The bank is closed."}

    elif kind == "raised":

        def execute(params):
            raise ValueError("x")

    elif kind == "invalid_arguments":
        arguments = {"to": 5}
    elif kind == "denied":
        facts["approver"] = FixedApprover(DENIED)
    elif kind == "no_approver":
        facts["approver"] = None
    elif kind == "expired":
        facts |= {"approver": wait_for_answer, "limits": Limits(approval_timeout_seconds=0.01)}
    elif kind == "stale":
        facts["approver"] = FixedApprover(UserAction(True, False, answers="0" * 64))
    elif kind == "refused":

        def request(params):
            return None

    elif kind == "timed_out":

        async def execute(params):
            await asyncio.Event().wait()

        facts["limits"] = Limits(call_timeout_seconds=0.01, cancel_grace_seconds=0)
    elif kind == "cancelled":

        async def execute(params, context):  # type: ignore[misc]
            session.cancel(context.call_id)
            await asyncio.Event().wait()

        facts["limits"] = Limits(cancel_grace_seconds=0)
    elif kind == "outcome_unknown":
        facts["journal"] = Journal(Dying())
    tool = assistant(request, execute)
    if kind == "handed_over":
        registry.unregister("send")
        registry.add(Tool(tool.manifest, "assistant", None, code=b"elsewhere", carried_out_by="Somebody else"))
    session = Session(registry, id="s", **facts)
    outcome = await session.call("nobody" if kind == "unknown_tool" else "send", arguments)  # type: ignore[arg-type]
    if kind == "outcome_unknown":
        [life] = await session.in_doubt()
        outcome = await session.resolve(life.call_id, "abandon")
    return outcome, session


@requirement("TOOL-48")
@pytest.mark.parametrize("kind", get_args(Kind))
async def test_every_kind_is_reached_and_journaled(registry, assistant, history, caplog, kind):
    """Exactly fourteen, each by its own road, each with its approval."""
    caplog.set_level(logging.CRITICAL, "lastword")
    outcome, session = await reach(kind, registry, assistant)
    assert outcome.kind == kind
    assert outcome.success == (kind == "succeeded")
    asked = {"succeeded", "failed", "raised", "denied", "timed_out", "cancelled", "outcome_unknown"} | {"handed_over"}
    assert outcome.approval == ("person" if kind in asked else "none")
    finished = [data for name, data in await history(session.journal, "s") if name == "finished"]
    assert [data["kind"] for data in finished] == [kind]
    assert finished[0]["message"] == outcome.message
    assert outcome.result() == {"success": outcome.success, "message": outcome.message}


@requirement("TOOL-48")
async def test_no_two_kinds_have_the_same_words(registry, assistant, caplog):
    """A model that was denied must not retry; one that sent bad arguments should; a timeout is no refusal."""
    caplog.set_level(logging.CRITICAL, "lastword")
    words = {}
    for kind in get_args(Kind):
        if registry.is_registered("send"):
            registry.unregister("send")
        words[kind] = (await reach(kind, registry, assistant))[0].message
    assert len(set(words.values())) == 14
    assert "denied it" in words["denied"]
    for kind in ("no_approver", "expired"):
        assert "This is not a refusal" in words[kind]
    for kind in ("no_approver", "expired", "stale", "refused", "denied"):
        assert "was not run" in words[kind]
    for kind in ("timed_out", "cancelled", "outcome_unknown", "raised", "failed"):
        assert "was not run" not in words[kind]


@requirement("TOOL-48", "TOOL-45")
async def test_a_call_in_doubt_runs_again_only_as_it_was_agreed_to(registry, assistant, effects):
    """With the arguments that the person left on the card, once, and by the same tool."""
    tool = assistant()
    approver = FixedApprover(lambda request: request.edit(amount=1))
    session = Session(registry, approver=approver, journal=Journal(Dying()))
    await session.call("send", CALL)
    [life] = await session.in_doubt()
    registry.unregister("send")
    registry.add(replace(tool, code=b"other", execute=lambda params: effects.append("the other tool")))
    with pytest.raises(SessionError, match="not the one that was agreed to"):
        await session.resolve(life.call_id, "again")
    assert effects == [{"to": "Ann", "amount": 1}]
    registry.unregister("send")
    registry.add(tool)
    assert (await session.resolve(life.call_id, "again")).kind == "succeeded"
    assert effects == [{"to": "Ann", "amount": 1}] * 2
    with pytest.raises(SessionError, match="not in doubt"):
        await session.resolve(life.call_id, "again")


@requirement("TOOL-46")
async def test_a_call_that_runs_again_may_still_write_only_what_was_shown(registry, assistant, tmp_path: Path):
    """The consent it had covers the preview it had."""
    contents = iter(["shown", "something else"])

    async def request(params, editor):
        return {
            "message": "?",
            "preview_button": {"label": "P", "action": lambda: editor.open_diff_editor("a", "shown")},
        }

    async def execute(params, user_action, editor):
        content = next(contents)
        if content != "shown":
            await editor.write_to_file("b", content)
        return {"success": True, "message": ""}

    assistant(request, execute)
    journal = Journal(Dying())
    session = Session(registry, approver=FixedApprover(), journal=journal, editor=ProjectEditor(tmp_path))
    await session.call("send", CALL)
    [life] = await session.in_doubt()
    assert (await session.resolve(life.call_id, "again")).kind == "failed"
    assert not (tmp_path / "b").exists()


@requirement("TOOL-48")
async def test_a_call_in_doubt_is_decided_once(registry, assistant):
    """Two people look at the same doubt; the second finds it settled. A word that is no decision decides nothing."""
    outcome, session = await reach("outcome_unknown", registry, assistant)
    assert await session.in_doubt() == []
    with pytest.raises(SessionError, match="not in doubt"):
        await session.resolve(outcome.call_id, "done")
    with pytest.raises(SessionError, match="yes is no decision"):
        await session.resolve(outcome.call_id, "yes")  # type: ignore[arg-type]


def test_an_outcome_is_frozen():
    """What happened cannot be changed afterwards."""
    outcome = Outcome(kind="failed", message="m", call_id="c", tool="t")
    with pytest.raises(AttributeError):
        outcome.kind = "succeeded"  # type: ignore[misc]
    assert msgspec.structs.replace(outcome, kind="succeeded").success


@requirement("TOOL-33", "TOOL-47")
async def test_words_of_people_and_tools_reach_the_model_as_they_are(registry, assistant):
    """A reason, and a tool's own words, are quoted and not interpreted."""
    assistant(None, lambda params: (_ for _ in ()).throw(ToolError("{braces} %s")))
    session = Session(registry, approver=FixedApprover([ALLOWED, UserAction(False, True, reason="{no} %d")]))
    assert (await session.call("send", CALL)).message == "{braces} %s"
    assert "Their reason: {no} %d" in (await session.call("send", CALL)).message


async def test_a_session_that_is_closed_calls_nothing_more(registry, send, effects):
    """Whoever holds it by mistake is told to open another."""
    session = Session(registry, approver=FixedApprover(), journal=memory_journal())
    await session.close()
    with pytest.raises(SessionError, match="the session is closed"):
        await session.call("send", CALL)
    assert effects == []


async def test_a_card_from_before_a_close_can_still_be_answered(registry, send, effects):
    """Closing stops listening; it does not decide."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.create_task(session.call("send", CALL))
    await until(session.pending)
    [request] = session.pending()
    await session.close()
    assert session.answer(request.call_id, request.deny()) == [request.call_id]
    assert (await call).kind == "denied"
    assert effects == []
