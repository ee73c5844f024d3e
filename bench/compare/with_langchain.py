"""LangChain's human in the loop on LangGraph, alone and with lastword: python bench/compare/with_langchain.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from scenes import Till, dies, main

import lastword
from lastword.adapters.langchain import session_tools

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}
PAYMENT = AIMessage("", tool_calls=[{"name": "pay", "args": {"to": "Ada", "amount": 5}, "id": "call-1"}])


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **more: Any) -> Model:
        return self


def agent(folder: Path, session: lastword.Session | None, saver: AsyncSqliteSaver, says: AIMessage) -> Any:
    model = Model(messages=iter([says]))
    if session is not None:
        return create_agent(model, session_tools(session), checkpointer=saver, interrupt_before=["tools"])

    @tool
    def pay(to: str, amount: float) -> str:
        """Send money to somebody."""
        return Till(folder.parent).pay(to, amount, dies=dies())

    asks: Any = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    return create_agent(model, [pay], checkpointer=saver, middleware=[asks])


class LangChain:
    package = "langchain"

    async def keep(self, folder: Path, session: lastword.Session | None) -> None:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
            await agent(folder, session, saver, PAYMENT).ainvoke({"messages": [HumanMessage("Pay Ada.")]}, THREAD)

    async def go_on(self, folder: Path, session: lastword.Session | None) -> str:
        yes: Any = Command(resume={"decisions": [{"type": "approve"}]}) if session is None else None
        async with AsyncSqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
            state = await agent(folder, session, saver, AIMessage("Done.")).ainvoke(yes, THREAD)
        return " ".join(str(said.content) for said in state["messages"] if isinstance(said, ToolMessage))


if __name__ == "__main__":
    main(LangChain())
