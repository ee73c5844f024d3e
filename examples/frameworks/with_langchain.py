"""LangChain on LangGraph, with the last word left to a person: python with_langchain.py"""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import lastword
from lastword.adapters.langchain import session_tools

registry = lastword.ToolRegistry()


@registry.tool(effect="irreversible")
async def pay(to: str, amount: float) -> str:
    """Send money to somebody."""
    return f"Paid {amount:g} to {to}."


async def careful(card: lastword.ApprovalRequest) -> lastword.UserAction:
    print(f"{card.title}? {card.arguments}")
    return card.allow() if card.arguments["amount"] <= 10 else card.deny("that is too much")


class Model(GenericFakeChatModel):
    """In the place of a real model: says what it was given to say."""

    def bind_tools(self, tools: Any, **more: Any) -> "Model":
        return self


PAYMENTS = [
    {"name": "pay", "args": {"to": "Ada", "amount": 7}, "id": "call-1"},
    {"name": "pay", "args": {"to": "Bo", "amount": 700}, "id": "call-2"},
]


async def main() -> None:
    async with lastword.Session(registry, approver=careful) as session:
        model = Model(messages=iter([AIMessage("", tool_calls=PAYMENTS), AIMessage("Done.")]))
        agent = create_agent(model, tools=session_tools(session))
        result = await agent.ainvoke({"messages": [HumanMessage("Pay Ada 7 and Bo 700.")]})
        for message in result["messages"]:
            if isinstance(message, ToolMessage):
                print(f"{message.status}: {message.content}")


asyncio.run(main())
