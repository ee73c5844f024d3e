"""What each framework has of its own: progress, marks of a result, sync code, arguments with the names it uses."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from frameworks import UNTRACED, Wanted, WithLangChain, WithPydanticAI
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic_ai import Agent, AgentStreamEvent, BinaryContent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from lastword import (
    ApprovalRequest,
    File,
    Image,
    Reported,
    Session,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolResult,
    UserAction,
)
from lastword.adapters import MAX_SHOWN_BYTES, carry
from lastword.adapters.langchain import session_tools
from lastword.adapters.openai_agents import function_tools
from lastword.adapters.pydantic_ai import SessionToolset, ToolProgress
from lastword.testing import FixedApprover
from requirements import requirement

COPY = Wanted("copy", {}, "call-1")


@pytest.fixture
def registry(registry: ToolRegistry) -> ToolRegistry:
    @registry.tool
    async def copy(context: ToolContext[Any]) -> str:
        """Copy three files."""
        for number in (1, 2, 3):
            context.report(f"file {number}", id=str(number), fraction=number / 3)
        return "copied"

    @registry.tool(require_approval=False)
    async def fail() -> str:
        """Fail."""
        raise ToolError("the printer is on fire")

    return registry


@requirement("TOOL-70")
async def test_progress_is_in_the_event_stream_of_pydantic_ai(registry):
    """In order, under the id of the call, and all of it before the result."""
    heard: list[Any] = []

    async def hear(context: object, events: Any) -> None:
        event: AgentStreamEvent
        async for event in events:
            if isinstance(event, ToolProgress):
                heard.append((event.message, event.id, round(event.fraction or 0, 2), event.tool_call_id))

    async with Session(registry, approver=FixedApprover()) as session:
        agent = Agent(TestModel(call_tools=["copy"]), toolsets=[SessionToolset(session)])
        await agent.run("Go.", event_stream_handler=hear)
    assert [event[:3] for event in heard] == [(f"file {n}", str(n), round(n / 3, 2)) for n in (1, 2, 3)]
    assert all("copy" in event[3] for event in heard)


@requirement("TOOL-70")
async def test_progress_is_in_the_custom_stream_of_langgraph(registry):
    """As any other tool's that writes there."""
    async with Session(registry, approver=FixedApprover()) as session:
        agent = create_agent(WithLangChain._model((COPY,)), tools=session_tools(session))
        given: Any = {"messages": [HumanMessage("Go.")]}
        heard = [chunk async for chunk in agent.astream(given, stream_mode="custom")]
    assert [(chunk["message"], chunk["tool_call_id"]) for chunk in heard] == [
        (f"file {n}", "call-1") for n in (1, 2, 3)
    ]


@requirement("TOOL-70")
@pytest.mark.parametrize(
    ("wanted", "answer", "outcome"),
    [
        (COPY, ApprovalRequest.allow, "success"),
        (COPY, ApprovalRequest.deny, "denied"),
        (COPY, ApprovalRequest.close, "denied"),
        (Wanted("fail", {}, "call-1"), ApprovalRequest.allow, "failed"),
        (Wanted("copy", {"no": 1}, "call-1"), ApprovalRequest.allow, "failed"),
    ],
)
async def test_the_end_of_a_call_has_its_own_mark_in_pydantic_ai(registry, wanted, answer, outcome):
    """A denial is a decision, and no error that a provider would ask to retry."""
    async with Session(registry, approver=FixedApprover(answer)) as session:
        agent = Agent(FunctionModel(WithPydanticAI._model((wanted,))), toolsets=[SessionToolset(session)])
        messages = (await agent.run("Go.")).all_messages()
    [part] = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert part.outcome == outcome
    if outcome == "success":
        assert part.metadata["kind"] == "succeeded"
        assert part.metadata["approval"] == "person"


async def test_the_test_model_of_pydantic_ai_calls_every_tool(registry):
    """Whoever tests an agent with it sees each tool asked about."""
    approver = FixedApprover()
    async with Session(registry, approver=approver) as session:
        run = await Agent(TestModel(), toolsets=[SessionToolset(session)]).run("Go.")
    assert "copied" in run.output
    assert [card.tool for card in approver.requests] == ["copy"]


def test_a_sync_run_of_pydantic_ai_needs_nothing_more(registry):
    """`run_sync` runs an event loop, and the session lives on it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # It would make one itself, and leave it open.
    try:
        session = Session(registry, approver=FixedApprover())
        run = Agent(TestModel(), toolsets=[SessionToolset(session)]).run_sync("Go.")
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert "copied" in run.output


async def test_a_tool_that_comes_later_is_offered_at_the_next_step(registry):
    """The toolset is the session's, as it stands."""
    async with Session(registry, approver=FixedApprover()) as session:
        toolset = SessionToolset(session, id="desk")
        registry.register("later", {"type": "object", "properties": {}}, lambda args, context: "late")
        run = await Agent(TestModel(call_tools=["later"]), toolsets=[toolset]).run("Go.")
    assert "late" in run.output


@requirement("TOOL-70")
@pytest.mark.parametrize("written", ["{not json", "[1]", '"text"', "null", '{"a":1,"a":2}'])
async def test_arguments_that_are_no_object_are_told_to_an_openai_agent(registry, written):
    """A model's slip is its own to mend, and nobody is asked about it."""
    approver = FixedApprover()
    async with Session(registry, approver=approver) as session:
        steps = [[function_call("copy", written, call_id="call-1")], [assistant_message("Done.")]]
        agent = OpenAIAgent(name="clerk", model=ScriptedModel(steps), tools=function_tools(session))
        run = await Runner.run(agent, "Go.", run_config=UNTRACED)
    assert run.final_output == "Done."
    assert [card.tool for card in approver.requests] == (["copy"] if written == "null" else [])


@requirement("TOOL-70")
async def test_an_argument_may_have_a_name_that_langchain_uses_itself(registry):
    """What the model wrote is what is shown and run, and nothing of the framework's takes its place."""
    odd = ["config", "run_manager", "callbacks", "runtime", "state", "store", "self", "tool_call_id", "args", "kwargs"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in odd}, "required": odd}
    registry.register("odd", schema, lambda args, context: args, require_approval=True)
    approver = FixedApprover()
    written = {name: f"the model's {name}" for name in odd}
    async with Session(registry, approver=approver) as session:
        [result] = await WithLangChain().run(session, Wanted("odd", written, "call-1"))
    assert approver.requests[0].arguments == written
    assert json.loads(result.words) == written


@requirement("TOOL-70")
def test_a_sync_graph_runs_a_sync_session(registry):
    """`invoke` in plain code, with a plain approver: and told, not run, the second time."""
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> UserAction:
        asked.append(request.call_id)
        return request.allow()

    with Session(registry, id="desk", approver=approver) as session:
        for _ in range(2):
            agent = create_agent(WithLangChain._model((COPY,)), tools=session_tools(session))
            messages = agent.invoke({"messages": [HumanMessage("Go.")]})["messages"]
            [said] = [message for message in messages if isinstance(message, ToolMessage)]
            assert (said.content, said.status) == ("copied", "success")
            assert said.artifact["kind"] == "succeeded"
        other = create_agent(WithLangChain._model((Wanted("fail", {}, "call-1"),)), tools=session_tools(session))
        messages = other.invoke({"messages": [HumanMessage("Go.")]})["messages"]
        assert "this id was given to another call" in str(messages[-2].content)
    assert asked == ["desk:call-1"]


async def test_a_tool_of_langchain_that_is_called_by_hand_gives_its_words(registry):
    """Without a message there is none to answer, and every such call is a new one."""
    approver = FixedApprover()
    async with Session(registry, approver=approver) as session:
        [copy] = [tool for tool in session_tools(session) if tool.name == "copy"]
        assert [await copy.ainvoke({}), await copy.ainvoke({})] == ["copied", "copied"]
    assert len({card.call_id for card in approver.requests}) == 2


PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)
URL = f"data:image/png;base64,{b64encode(PNG).decode()}"


@pytest.fixture
def drawing(registry: ToolRegistry) -> ToolRegistry:
    """A tool that draws, one that lies, and one that draws more than a model is given."""

    @registry.tool(require_approval=False)
    def plot() -> ToolResult:
        """Draw the sales."""
        return ToolResult({"sum": 7}, [Image(PNG, name="plot.png", alt="Sales"), File(b"1,2", name="a.csv")])

    @registry.tool(require_approval=False)
    def lie() -> Image:
        """Draw nothing."""
        return Image(b"<html>", media_type="image/png", name="lie.png")

    @registry.tool(require_approval=False)
    def huge() -> list[Image]:
        """Draw a lot."""
        return [Image(PNG + bytes(MAX_SHOWN_BYTES), name="huge.png"), Image(PNG, name="small.png")]

    return registry


Shown = tuple[str, list[str]]
"""The words that a model was given for a call, and the addresses of the images."""


async def shown_by_pydantic_ai(session: Session, tool: str, images: bool = True) -> Shown:
    toolset = SessionToolset(session, images=images)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)
        return ModelResponse(parts=[TextPart("Done.") if asked else ToolCallPart(tool, {}, "c")])

    messages = (await Agent(FunctionModel(model), toolsets=[toolset]).run("Go.")).all_messages()
    parts = messages[-2].parts
    words = next(str(part.content) for part in parts if isinstance(part, ToolReturnPart))
    seen = [item for part in parts if isinstance(part, UserPromptPart) for item in part.content]
    return words, [item.data_uri for item in seen if isinstance(item, BinaryContent)]


async def shown_by_openai_agents(session: Session, tool: str, images: bool = True) -> Shown:
    model = ScriptedModel([[function_call(tool, {}, call_id="c")], [assistant_message("Done.")]])
    agent: Any = OpenAIAgent(name="clerk", model=model, tools=function_tools(session, images=images))
    run = await Runner.run(agent, "Go.", run_config=UNTRACED)
    items: list[Any] = run.to_input_list()
    [output] = [item["output"] for item in items if item.get("type") == "function_call_output"]
    if isinstance(output, str):
        return output, []
    return output[0]["text"], [part["image_url"] for part in output if part["type"] == "input_image"]


async def shown_by_langchain(session: Session, tool: str, images: bool = True) -> Shown:
    [found] = [each for each in session_tools(session, images=images) if each.name == tool]
    message = await found.ainvoke({"type": "tool_call", "name": tool, "args": {}, "id": "c"})
    if isinstance(message.content, str):
        return message.content, []
    words, *blocks = message.content_blocks
    return words["text"], [f"data:{block['mime_type']};base64,{block['base64']}" for block in blocks]


SHOWN = [shown_by_pydantic_ai, shown_by_openai_agents, shown_by_langchain]


@requirement("TOOL-64", "TOOL-70")
@pytest.mark.parametrize("shown_by", SHOWN)
@pytest.mark.parametrize(
    ("tool", "images", "words", "pictures"),
    [
        # Behind the same words as always; the file stays with the person.
        ("plot", True, '{"sum":7}\n[image plot.png', [URL]),
        # A model that is sent a page in a picture's clothes fails, and one of megabytes costs more than it tells.
        ("lie", True, "", []),
        ("huge", True, "huge.png", [URL]),
        # Some models refuse a whole request for one picture, and some hosts want none to leave the house.
        ("plot", False, "plot.png", []),
    ],
)
async def test_a_picture_that_a_tool_returned_is_seen_by_a_model_that_can(
    drawing, shown_by, tool, images, words, pictures
):
    """In the framework's own form, if it is one and not too large, and wanted."""
    async with Session(drawing) as session:
        said, shown = await shown_by(session, tool, images=images)
    assert shown == pictures
    assert words in said


@requirement("TOOL-70")
async def test_a_listener_who_is_gone_does_not_cost_the_result(registry, caplog):
    """The tool has acted. A model that reads of an error instead asks for the same thing under another id."""

    async def gone(report: Reported) -> None:
        raise ConnectionError("the stream is closed")

    async with Session(registry, approver=FixedApprover()) as session:
        outcome = await carry(session, "copy", {}, given_id="call-1", origin="a test", hearer=gone)
    assert (outcome.kind, outcome.message) == ("succeeded", "copied")
    assert "its progress could not be told" in caplog.text
