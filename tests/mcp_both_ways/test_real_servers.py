"""The servers that people run: server-everything and server-filesystem, on the node that the tests bring."""

import asyncio
import json

import pytest
from real_servers import NODE, script

import lastword
from lastword import UserAction
from lastword.call.events import Event, Reported
from lastword.testing import FixedApprover
from lastword.tools import tool_id
from mcp_neighbour import Neighbour, until
from requirements import requirement


@requirement("MCP-7", "MCP-8", "MCP-9")
async def test_everything_of_server_everything_arrives(tmp_path):
    """A sum, an image byte for byte, a structured value, links, progress, cancellation, and no secret of ours."""
    shop = Neighbour(tmp_path, command=NODE, args=[script("server-everything")], env={"MY_KEY": "${KEY}"})
    shop.secrets.keep("KEY", "hush-hush")
    await shop.trust()
    heard: list[Event] = []
    async with shop.session() as session:
        session.listen(heard.append)

        async def call(name: str, arguments: dict | None = None, **more):
            return await session.call(tool_id("shop", name), arguments or {}, **more)

        assert (await call("get-sum", {"a": 2, "b": 3})).value == "The sum of 2 and 3 is 5."
        assert (await call("get-sum", {"a": "2"})).kind == "invalid_arguments"
        image = await call("get-tiny-image")
        [picture] = [kept for kept in image.content if kept.kind == "image"]
        assert (await session.content(image.call_id, picture.digest)).startswith(b"\x89PNG\r\n\x1a\n")
        weather = await call("get-structured-content", {"location": "New York"})
        assert weather.value.keys() == {"temperature", "conditions", "humidity"}
        assert "which was not followed" in (await call("get-resource-links", {"count": 2})).message
        told = json.dumps([(await call("get-env")).value])
        assert "hush-hush" not in told
        assert (await call("trigger-long-running-operation", {"duration": 0.2, "steps": 2})).success
        assert [event.fraction for event in heard if isinstance(event, Reported)][-1] == 1.0
        long = asyncio.create_task(
            call("trigger-long-running-operation", {"duration": 60, "steps": 60}, call_id="long")
        )
        before = len(heard)
        await until(lambda: any(isinstance(event, Reported) for event in heard[before:]))
        session.cancel("long")
        assert (await long).kind == "cancelled"


@requirement("MCP-11")
@pytest.mark.parametrize(
    ("answer", "words"), [(lastword.Declined(), "declined"), (lastword.Closed(), "cancel")], ids=["declined", "closed"]
)
async def test_elicitation_of_server_everything_is_refused_as_it_was(tmp_path, answer, words):
    """The server tells declined from closed, as the person did."""
    shop = await Neighbour(tmp_path, command=NODE, args=[script("server-everything")]).trusted()
    async with shop.session(on_question=lambda question: answer) as session:
        outcome = await session.call(tool_id("shop", "trigger-elicitation-request"), {})
    assert words in outcome.message.lower()


@requirement("MCP-11")
async def test_elicitation_of_server_everything_is_given_with_lists_put_together(tmp_path):
    """Of a list each value is a question of its own; too many of them are asked about again."""
    shop = await Neighbour(tmp_path, command=NODE, args=[script("server-everything")]).trusted()
    asked = []

    def on_question(question):
        asked.append(question)
        chosen = [f.name for f in question.fields if f.name.startswith("untitledMultipleSelectEnum: ")]
        return lastword.Given({"name": "Ada"} | dict.fromkeys(chosen[:4] if len(asked) == 1 else chosen[:2], True))

    async with shop.session(on_question=on_question) as session:
        outcome = await session.call(tool_id("shop", "trigger-elicitation-request"), {})
    assert "choose 1 to 3" in asked[1].message
    assert "- Name: Ada" in outcome.message
    assert '"Guitar",\n      "Piano"\n    ]' in outcome.message


@requirement("MCP-6", "MCP-8")
async def test_the_filesystem_server_writes_only_what_was_allowed(tmp_path):
    """A yes writes, a no does not, an edit writes what the person made of it, and its refusals are its words."""
    box = tmp_path / "box"
    box.mkdir()
    shop = await Neighbour(tmp_path, command=NODE, args=[script("server-filesystem"), str(box)]).trusted()
    path = str(box / "a.txt")
    edited = UserAction(True, False, arguments={"path": path, "content": "edited"})
    approver = FixedApprover([UserAction(True, False), UserAction(False, True), edited, UserAction(True, False)])
    async with shop.session(approver) as session:
        assert (await session.call("shop__write_file", {"path": path, "content": "hello"})).success
        assert (box / "a.txt").read_text() == "hello"
        assert (await session.call("shop__write_file", {"path": path, "content": "no"})).kind == "denied"
        assert (box / "a.txt").read_text() == "hello"
        assert (await session.call("shop__write_file", {"path": path, "content": "model"})).success
        assert (box / "a.txt").read_text() == "edited"
        outside = await session.call("shop__write_file", {"path": str(tmp_path / "b.txt"), "content": "x"})
        assert outside.kind == "failed"
        assert "the MCP server shop says that it failed" in outside.message
