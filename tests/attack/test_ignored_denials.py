"""The answer was no, and the tool acts all the same. It cannot, and that is reported as its bug."""

import asyncio
import contextlib
import logging
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from lastword import Limits, Session, ToolRegistry, UserAction
from lastword.consent import DENIED
from lastword.editor import ProjectEditor
from lastword.errors import NotAllowedNow
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL


@requirement("TOOL-43", "TOOL-40")
@pytest.mark.parametrize("swallows", [False, True], ids=["lets it out", "swallows it"])
@pytest.mark.parametrize("action", [DENIED, UserAction.CLOSED], ids=["denied", "closed"])
@pytest.mark.parametrize("how", ["sync", "async", "inline", "behind a lambda"])
@pytest.mark.parametrize("effect", ["file", "state", "editor", "call"])
async def test_a_tool_that_forgot_to_look_cannot_act(
    registry: ToolRegistry, assistant, tmp_path: Path, caplog, effect: str, how: str, action: UserAction, swallows: bool
):
    """Under the guard, as when its card was drawn; and the words for the model say whose fault it is."""
    caplog.set_level(logging.CRITICAL, "lastword")
    target = tmp_path / "effect.txt"
    if effect in ("editor", "call") and how in ("sync", "inline"):
        how = "async"  # these two can only be awaited

    def touch(context: Any) -> None:
        if effect == "file":
            target.write_text("done")
        elif effect == "state":
            context.set_state("done", True)

    async def reach(context: Any, editor: Any) -> None:
        try:
            touch(context)
            if effect == "editor":
                await editor.write_to_file("effect.txt", "done")
            elif effect == "call":
                await session.call("free")
        except Exception:
            if not swallows:
                raise

    def execute(params, user_action, context):
        try:
            touch(context)
        except Exception:
            if not swallows:
                raise
        return {"success": True, "message": "Sent, of course."}

    async def execute_async(params, user_action, context, editor):
        await reach(context, editor)
        return {"success": True, "message": "Sent, of course."}

    tool = assistant(None, {"sync": execute, "inline": execute, "async": execute_async}.get(how) or _lambda(reach))
    object.__setattr__(tool, "inline", how == "inline")
    registry.register("free", {"description": "d", "parameters": [], "returns": "any"}, lambda a, c: target.touch())
    session = Session(registry, approver=FixedApprover(action), editor=ProjectEditor(tmp_path))
    outcome = await session.call("send", CALL)
    assert (outcome.kind, outcome.approval) == ("denied", "person")
    assert outcome.overstepped
    assert f"A bug in send: it tried to {outcome.overstepped} although" in outcome.message
    assert "Sent, of course" not in outcome.message
    assert not target.exists()
    assert session.get_all_state() == {}


@requirement("TOOL-42", "TOOL-43")
@pytest.mark.parametrize("phase", ["drawing", "denied"])
async def test_state_is_read_only_from_a_thread_that_the_guard_does_not_see(registry: ToolRegistry, assistant, phase):
    """A thread of the tool's own has a context of its own; the tool's context still knows its phase."""
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done = threading.Event()

    def work() -> None:
        context = jobs.get()
        if context is not None:
            with contextlib.suppress(NotAllowedNow):
                context.set_state("a", 1)
            done.set()

    def request(context):
        if phase == "drawing":
            jobs.put(context)
            assert done.wait(30)
        return {"message": "?"}

    def execute(context, user_action):
        jobs.put(context)
        assert done.wait(30)
        return {"success": True, "message": "Sent, of course."}

    assistant(request, execute)
    session = Session(registry, approver=FixedApprover(DENIED))
    worker = threading.Thread(target=work)
    worker.start()
    outcome = await session.call("send", CALL)
    worker.join()
    assert outcome.kind == ("refused" if phase == "drawing" else "denied")
    assert "tried to set the state 'a'" in outcome.message
    assert session.get_all_state() == {}


@requirement("TOOL-43", "TOOL-44")
@pytest.mark.parametrize("by", ["file", "editor"])
async def test_a_forbidden_path_that_is_no_text_is_reported_all_the_same(
    registry: ToolRegistry, assistant, tmp_path: Path, caplog, by: str
):
    """The name of a file may hold bytes that no journal can write; the call still ends as a denial."""
    caplog.set_level(logging.CRITICAL, "lastword")

    async def execute(user_action, editor):
        if by == "file":
            (tmp_path / "a\udcff").write_text("x")
        await editor.write_to_file("a\udcff", "x")

    assistant(None, execute)
    session = Session(registry, approver=FixedApprover(DENIED), editor=ProjectEditor(tmp_path))
    outcome = await session.call("send", CALL)
    assert outcome.kind == "denied"
    assert "a\ufffd" in outcome.message
    assert list(tmp_path.iterdir()) == []


def _lambda(reach: Any) -> Any:
    async def later(context: Any, editor: Any) -> dict[str, Any]:
        await reach(context, editor)
        return {"success": True, "message": "Sent, of course."}

    return lambda user_action, context, editor: later(context, editor)


@requirement("TOOL-40", "TOOL-13")
@pytest.mark.parametrize("action", [DENIED, UserAction.CLOSED], ids=["denied", "closed"])
@pytest.mark.parametrize("style", ["registry", "function"])
async def test_a_tool_that_does_not_take_the_answer_is_not_even_invoked(registry: ToolRegistry, effects, action, style):
    """There is nothing that it could be told. Only a function that declares `user_action` hears a no."""

    def wipe(args: Any = None, context: Any = None) -> None:
        effects.append("wiped")

    if style == "registry":
        registry.register("wipe", {"description": "Wipes.", "parameters": []}, wipe, require_approval=True)
    else:
        registry.tool(id="wipe")(lambda: effects.append("wiped"))
    assert (await Session(registry, approver=FixedApprover(action)).call("wipe")).kind == "denied"
    assert effects == []


@requirement("TOOL-40", "TOOL-47")
async def test_a_tool_words_its_own_cancellation(registry: ToolRegistry, send, effects):
    """And the person's reason stands beside it."""
    action = UserAction(False, True, reason="Wrong Ann.")
    outcome = await Session(registry, approver=FixedApprover(action)).call("send", CALL)
    assert outcome.message.splitlines() == [
        "send was not run: the person denied it.",
        "Their reason: Wrong Ann.",
        "Then not.",
        "That settles it, unless they ask for it again.",
    ]
    assert effects == []


def _hangs(user_action: Any) -> Any:
    threading.Event().wait(30)


async def _hangs_async(user_action: Any) -> Any:
    await asyncio.Event().wait()


async def _raises(user_action: Any) -> Any:
    raise RuntimeError("the password is hunter2")


@requirement("TOOL-43")
@pytest.mark.parametrize("execute", [_hangs, _hangs_async, _raises])
async def test_a_tool_that_cannot_word_a_denial_is_denied_all_the_same(
    registry: ToolRegistry, assistant, caplog, execute
):
    """What it does with the no is its own affair; the no stands."""
    caplog.set_level(logging.CRITICAL, "lastword")
    assistant(None, execute)
    limits = Limits(draw_timeout_seconds=0.05)
    outcome = await Session(registry, approver=FixedApprover(DENIED), limits=limits).call("send", CALL)
    assert outcome.kind == "denied"
    assert "hunter2" not in outcome.message
