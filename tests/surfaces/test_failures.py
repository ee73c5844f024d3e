"""When something breaks behind a screen: the page gets a sentence with an id, a chat's screen gets nothing at all."""

import json
from pathlib import Path

import pytest

from lastword.store import MemoryStore
from lastword.testing.scripted import ScriptedModel
from surfaces.conftest import MakeTool, Run
from surfaces.windows import House

SECRET = "swordfish"
SENTENCE = "something went wrong inside the server; its log says more about request "

LOUD = """
import logging
logging.getLogger("lastword").error("torn by lastword")
logging.getLogger("elsewhere").warning("torn by a library")
def execute(params):
    raise ValueError("torn by a tool")
AssistantTool.register_execute_tool(execute)
"""


def test_a_failing_route_of_the_page_is_found_by_its_id(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The page's paths stand behind the same perimeter as the API's."""

    class Broken(MemoryStore):
        async def read(self, **asked):  # type: ignore[no-untyped-def]
            if asked.get("stream") == "lost":
                raise RuntimeError(SECRET)
            return await super().read(**asked)

    house = House(tmp_path, Broken()).open()
    try:
        window = house.window()
        status, headers, body = window.raw("GET", "/page/export?session=lost", headers={"Cookie": window.cookie})
    finally:
        house.close()
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (500, "internal_error")
    id = headers["x-request-id"]
    assert error["message"] == SENTENCE + id
    [told] = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
    assert told.startswith(f"request {id} failed: GET /page/export\nTraceback (most recent call last):\n")
    assert "in _export\n" in told
    assert told.endswith("\nRuntimeError")
    assert SECRET not in told


@pytest.mark.parametrize("arguments", [(), ("--plain",), ("--verbose",)], ids=["usual", "plain", "verbose"])
def test_no_line_of_the_log_reaches_the_screen_of_a_chat(
    run: Run, make_tool: MakeTool, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A line in the middle of a card could be taken for a part of it. They are in a file, whoever wrote them."""
    make_tool("loud", LOUD, requireApproval=False, effect="none")
    asked = json.dumps({"tool_request": {"name": "loud", "arguments": {}}})
    with ScriptedModel([asked, "It failed."]) as model:
        chat = run("chat", "--tools", "tools", *arguments, LASTWORD_UPSTREAM=model.url)
        chat.until("You (" if "--plain" in arguments else "▸")
        chat.say("Do it.", "It failed.")
        assert chat.leave() == 0
    file = tmp_path / ".data" / "lastword" / "lastword.log"
    assert ("The log is in " in chat.text) == ("--verbose" in arguments)
    assert b"torn by lastword" not in chat.raw
    assert b"torn by a library" not in chat.raw
    assert b"Traceback" not in chat.raw
    text = file.read_text()
    assert "ERROR lastword: torn by lastword\n" in text
    assert "WARNING elsewhere: torn by a library\n" in text
    assert "ValueError: torn by a tool\n" in text


def test_a_command_that_is_no_chat_keeps_its_log_on_the_terminal(run: Run, make_tool: MakeTool, tmp_path: Path) -> None:
    """Whoever writes a tool and calls it wants to see where it raised, at once."""
    make_tool("loud", LOUD, requireApproval=False, effect="none")
    call = run("call", "loud", "--tools", "tools")
    assert call.finish() == 1
    assert "ValueError: torn by a tool" in call.text
    assert not (tmp_path / ".data" / "lastword" / "lastword.log").exists()
