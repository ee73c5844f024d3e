"""How a call that was handed over is told: in lists, in its life, and on the page. And who counts as there."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from hook.gates import CLAUDE_AFTER, CLAUDE_BEFORE, PATIENCE_SECONDS, Gate, Queue
from hook.test_installing import lastword
from hook.test_once import allowed
from lastword.card import views
from lastword.journal import timeline
from lastword.journal.programs import SEATS, Programs
from lastword.store import MemoryStore
from lastword.tools import ToolRegistry
from lastword.web import calls_of
from requirements import requirement
from surfaces.screens import clean_environment

DEPARTED = CLAUDE_AFTER | {"tool_input": {"command": "rm -rf /"}}
FAILED = CLAUDE_BEFORE | {"hook_event_name": "PostToolUseFailure", "error": "exit code 1"}


@requirement("HOOK-5")
@pytest.mark.parametrize(
    ("afterwards", "status"),
    [
        (None, "handed over"),
        (CLAUDE_AFTER, "handed over, done"),
        (FAILED, "handed over, failed"),
        (DEPARTED, "departed"),
    ],
)
async def test_lists_and_lives_do_not_say_that_we_ran_it(gate, queue, tmp_path, afterwards, status):
    """`lastword calls` and `lastword show`, with the word of the agent as its word."""
    call_id = await allowed(gate, queue, CLAUDE_BEFORE)
    if afterwards is not None:
        await gate.ask(afterwards)
    [listed] = [line for line in lastword(tmp_path, "calls").stdout.splitlines() if line.startswith(call_id)]
    assert f"  {status} " in listed
    assert (call_id in lastword(tmp_path, "calls", "--failed").stdout) == (afterwards is FAILED)
    told = "\n".join(timeline(await queue.journal.store.read(subject=call_id)))
    assert "handed over to Claude Code" in told
    assert "started" not in told
    assert ("departed from what was allowed" in told) == (status == "departed")
    assert ("Claude Code says: done" in told) == (afterwards in (CLAUDE_AFTER, DEPARTED))


async def on_the_page(queue: Queue, call_id: str) -> views.CallItem:
    [story] = calls_of(await queue.journal.store.read(subject=call_id), ToolRegistry())
    return story.item


@requirement("HOOK-5")
async def test_the_page_tells_it_the_same_way(gate: Gate, queue: Queue):
    """A departure is not to be overlooked, and what is well is not drawn as a failure."""
    call_id = await allowed(gate, queue, CLAUDE_BEFORE)
    item = await on_the_page(queue, call_id)
    assert item.end is not None
    assert (item.status, item.end.words, item.end.success) == ("ended", "handed over", True)
    await gate.ask(DEPARTED)
    item = await on_the_page(queue, call_id)
    assert item.end is not None
    assert (item.end.words, item.end.success) == ("departed", False)
    assert "rm -rf /" in item.end.message


@requirement("HOOK-3")
async def test_lastword_up_is_somebody_who_could_answer_and_its_end_is_nobody(
    gate: Gate, nobody: Queue, tmp_path: Path
):
    """Also when it is killed."""
    up = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lastword", "up", "--port", "0", cwd=tmp_path, env=clean_environment(tmp_path),
        stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL,
    )  # fmt: skip
    try:
        assert up.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"Open http" not in await up.stdout.readline():
                pass
        assert nobody.journal.programs.is_attended()
    finally:
        up.kill()
        await up.communicate()
    assert not nobody.journal.programs.is_attended()
    assert (await gate.ask(CLAUDE_BEFORE)).decided["permissionDecision"] == "deny"


def test_one_of_several_that_leaves_does_not_take_the_others_along():
    """Two pages on one memory, and more of them than there are seats."""
    store = MemoryStore()
    first = Programs(store).attending()
    first.__enter__()
    with Programs(store).attending():
        first.__exit__(None, None, None)
        assert Programs(store).is_attended()
    assert not Programs(store).is_attended()
    many = [Programs(store).attending() for _ in range(SEATS + 2)]
    for each in many:
        each.__enter__()
    for each in many:
        each.__exit__(None, None, None)
    assert not Programs(store).is_attended()
