"""The three frameworks with their own fake models, each behind the same few verbs, so that one test serves all.

A run is a model that asks for some calls and is done when it has read the results. `keep` lets it stop before the calls
and writes the framework's own state into a folder; `go_on` takes it up from there, in whichever process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from agents import Agent as OpenAIAgent
from agents import FunctionTool, Runner, RunState
from agents.items import ToolCallOutputItem
from agents.run import RunConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset

from lastword import Session
from lastword.adapters.langchain import session_tools
from lastword.adapters.openai_agents import function_tools
from lastword.adapters.pydantic_ai import SessionToolset


class Wanted(NamedTuple):
    """A call that the model asks for."""

    tool: str
    arguments: Any
    id: str


class Result(NamedTuple):
    """What the model was given for it."""

    words: str
    status: Literal["success", "failed", "denied", "text"]
    """As the framework marks it; `text` where it knows no marks."""


class Framework(Protocol):
    async def offered(self, session: Session) -> dict[str, Any]: ...

    async def run(self, session: Session, *calls: Wanted) -> list[Result]: ...

    async def keep(self, session: Session, folder: Path, *calls: Wanted) -> None: ...

    async def go_on(self, session: Session, folder: Path) -> list[Result]: ...


class WithPydanticAI:
    async def offered(self, session: Session) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def look(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            seen.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
            return ModelResponse(parts=[TextPart("Done.")])

        await Agent(FunctionModel(look), toolsets=[SessionToolset(session)]).run("Go.")
        return seen

    async def run(self, session: Session, *calls: Wanted) -> list[Result]:
        agent = Agent(FunctionModel(self._model(calls)), toolsets=[SessionToolset(session)])
        return self._results((await agent.run("Go.")).all_messages())

    async def keep(self, session: Session, folder: Path, *calls: Wanted) -> None:
        run = await self._pausing(session, calls).run("Go.")
        assert isinstance(run.output, DeferredToolRequests)
        (folder / "messages.json").write_bytes(run.all_messages_json())

    async def go_on(self, session: Session, folder: Path) -> list[Result]:
        messages = ModelMessagesTypeAdapter.validate_json((folder / "messages.json").read_bytes())
        asked = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
        agreed = DeferredToolResults(approvals={part.tool_call_id: True for part in asked})
        agent = self._pausing(session, ())
        run = await agent.run(message_history=messages, deferred_tool_results=agreed)
        return self._results(run.all_messages())

    def _pausing(self, session: Session, calls: tuple[Wanted, ...]) -> Agent[None, str | DeferredToolRequests]:
        toolset: AbstractToolset[None] = SessionToolset(session).approval_required()
        return Agent(FunctionModel(self._model(calls)), toolsets=[toolset], output_type=[str, DeferredToolRequests])

    @staticmethod
    def _model(calls: tuple[Wanted, ...]) -> Any:
        def answer(messages: list[ModelMessage], info: object) -> ModelResponse:
            if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
                return ModelResponse(parts=[TextPart("Done.")])
            return ModelResponse(parts=[ToolCallPart(call.tool, call.arguments, call.id) for call in calls])

        return answer

    @staticmethod
    def _results(messages: list[ModelMessage]) -> list[Result]:
        parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
        marks: dict[str, Any] = {"success": "success", "failed": "failed", "denied": "denied"}
        return [Result(str(part.content), marks[part.outcome]) for part in parts if isinstance(part, ToolReturnPart)]


class WithOpenAIAgents:
    async def offered(self, session: Session) -> dict[str, Any]:
        tools = [tool for tool in function_tools(session) if isinstance(tool, FunctionTool)]
        return {tool.name: tool.params_json_schema for tool in tools}

    async def run(self, session: Session, *calls: Wanted) -> list[Result]:
        return self._results(await Runner.run(self._agent(session, calls), "Go.", run_config=UNTRACED))

    async def keep(self, session: Session, folder: Path, *calls: Wanted) -> None:
        run = await Runner.run(self._agent(session, calls, pausing=True), "Go.", run_config=UNTRACED)
        assert len(run.interruptions) == len(calls)
        (folder / "state.json").write_text(run.to_state().to_string())

    async def go_on(self, session: Session, folder: Path) -> list[Result]:
        agent = self._agent(session, (), pausing=True)
        state = await RunState.from_string(agent, (folder / "state.json").read_text())
        for waiting in state.get_interruptions():
            state.approve(waiting)
        return self._results(await Runner.run(agent, state, run_config=UNTRACED))

    @staticmethod
    def _agent(session: Session, calls: tuple[Wanted, ...], *, pausing: bool = False) -> OpenAIAgent[Any]:
        wanted = [
            function_call(call.tool, call.arguments, call_id=call.id, item_id=f"item-{place}")
            for place, call in enumerate(calls)
        ]
        steps = [*([wanted] if wanted else []), [assistant_message("Done.")]]
        return OpenAIAgent(name="clerk", model=ScriptedModel(steps), tools=function_tools(session, pausing=pausing))

    @staticmethod
    def _results(run: Any) -> list[Result]:
        return [Result(item.output, "text") for item in run.new_items if isinstance(item, ToolCallOutputItem)]


UNTRACED = RunConfig(tracing_disabled=True)


class _Speaker(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **more: Any) -> _Speaker:
        return self


class WithLangChain:
    async def offered(self, session: Session) -> dict[str, Any]:
        forms = [convert_to_openai_tool(tool)["function"] for tool in session_tools(session)]
        return {form["name"]: form["parameters"] for form in forms}

    async def run(self, session: Session, *calls: Wanted) -> list[Result]:
        agent = create_agent(self._model(calls), tools=session_tools(session))
        return self._results(await agent.ainvoke({"messages": [HumanMessage("Go.")]}))

    async def keep(self, session: Session, folder: Path, *calls: Wanted) -> None:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
            agent = self._pausing(session, calls, saver)
            await agent.ainvoke({"messages": [HumanMessage("Go.")]}, THREAD)
            assert (await agent.aget_state(THREAD)).next == ("tools",) * len(calls)

    async def go_on(self, session: Session, folder: Path) -> list[Result]:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
            return self._results(await self._pausing(session, (), saver).ainvoke(None, THREAD))

    def _pausing(self, session: Session, calls: tuple[Wanted, ...], saver: AsyncSqliteSaver) -> Any:
        tools = session_tools(session)
        return create_agent(self._model(calls), tools=tools, checkpointer=saver, interrupt_before=["tools"])

    @staticmethod
    def _model(calls: tuple[Wanted, ...]) -> _Speaker:
        def speak() -> Iterator[AIMessage]:
            if calls:
                wanted = [{"name": call.tool, "args": call.arguments, "id": call.id} for call in calls]
                yield AIMessage("", tool_calls=wanted)
            yield AIMessage("Done.")

        return _Speaker(messages=speak())

    @staticmethod
    def _results(state: dict[str, Any]) -> list[Result]:
        said = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        return [
            Result(str(message.content), "success" if message.status == "success" else "failed") for message in said
        ]


THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}

FRAMEWORKS: dict[str, Framework] = {
    "pydantic_ai": WithPydanticAI(),
    "openai_agents": WithOpenAIAgents(),
    "langchain": WithLangChain(),
}


def change_kept(folder: Path, old: str, new: str) -> None:
    """Change a text in a state that is kept, as somebody could who reaches the file."""
    for path in folder.iterdir():
        found = path.read_bytes()
        assert len(old) == len(new)
        path.write_bytes(found.replace(old.encode(), new.encode()))
