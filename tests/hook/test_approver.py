"""`lastword mcp approver`: the tool that `claude --permission-prompt-tool` asks. Anything but a yes is a no."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from hook.gates import PATIENCE_SECONDS, Queue
from lastword.errors import LastWordError
from lastword.mcp.permission_tool import TOOL, PermissionServer
from requirements import requirement
from surfaces.screens import clean_environment
from warm import warm_command

ASKED: dict[str, Any] = {"tool_name": "Bash", "input": {"command": "echo hi"}, "tool_use_id": "toolu_01"}


async def told(home: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """What a client hears from the tool."""
    program, *words = warm_command("mcp", "approver")
    command = StdioServerParameters(command=program, args=words, env=clean_environment(home), cwd=home)
    async with asyncio.timeout(PATIENCE_SECONDS), Client(command) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [TOOL]
        result = await client.call_tool(TOOL, asked)
        [block] = result.content
        said: dict[str, Any] = json.loads(block.text)  # type: ignore[union-attr]
        return said


@requirement("HOOK-4")
@pytest.mark.parametrize("answer", ["allow", "deny", "edit"])
async def test_the_person_answers_for_the_tool(tmp_path: Path, queue: Queue, answer: str):
    """The same card as a hook's, and the answer in the form that Claude Code wants."""
    asking = asyncio.create_task(told(tmp_path, ASKED))
    card = await queue.card()
    assert card.arguments["command"] == "echo hi"
    action = {"allow": card.allow(), "deny": card.deny("no"), "edit": card.edit(command="echo bye")}[answer]
    await queue.answer(card, action)
    said = await asking
    if answer == "deny":
        assert said["behavior"] == "deny"
        assert "no" in said["message"]
    else:
        command = "echo bye" if answer == "edit" else "echo hi"
        assert said == {"behavior": "allow", "updatedInput": {"command": command}}


@requirement("HOOK-4")
async def test_with_nobody_there_it_denies(tmp_path: Path, nobody: Queue):
    """And says how somebody gets there."""
    said = await told(tmp_path, ASKED)
    assert said["behavior"] == "deny"
    assert "lastword up" in said["message"]


@requirement("HOOK-4")
@pytest.mark.parametrize(
    "asked",
    [{}, {"tool_name": "Bash"}, {"input": {}}, {"tool_name": 7, "input": {}}, {"tool_name": "Bash", "input": "rm"}],
    ids=str,
)
async def test_a_question_of_another_form_is_denied(asked: dict[str, Any]):
    """What is not understood cannot be shown."""

    async def never(*given: Any) -> dict[str, Any]:
        raise AssertionError("nobody should be asked")

    assert (await PermissionServer(never).answer(TOOL, asked))["behavior"] == "deny"


@requirement("HOOK-4")
@pytest.mark.parametrize(
    "problem", [LastWordError("the disk is full"), RuntimeError("a bug"), TimeoutError()], ids=repr
)
async def test_whatever_goes_wrong_is_a_no(problem: Exception, caplog: pytest.LogCaptureFixture):
    """Claude Code is told so, and does not have to guess."""
    caplog.set_level("CRITICAL", "lastword.mcp")

    async def fail(*given: Any) -> dict[str, Any]:
        raise problem

    said = await PermissionServer(fail).answer(TOOL, ASKED)
    assert said["behavior"] == "deny"
    assert said["message"]
