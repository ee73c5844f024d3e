"""Pydantic AI, with the last word left to a person: python with_pydantic_ai.py"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import lastword
from lastword.adapters.pydantic_ai import SessionToolset

registry = lastword.ToolRegistry()


@registry.tool(effect="irreversible")
async def pay(to: str, amount: float) -> str:
    """Send money to somebody."""
    return f"Paid {amount:g} to {to}."


async def careful(card: lastword.ApprovalRequest) -> lastword.UserAction:
    print(f"{card.title}? {card.arguments}")
    return card.allow() if card.arguments["amount"] <= 10 else card.deny("that is too much")


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """In the place of a real model: asks for two payments, and then says what it read."""
    read = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if read:
        return ModelResponse(parts=[TextPart("\n".join(f"{part.outcome}: {part.content}" for part in read))])
    wanted = {"call-1": {"to": "Ada", "amount": 7}, "call-2": {"to": "Bo", "amount": 700}}
    return ModelResponse(parts=[ToolCallPart("pay", arguments, id) for id, arguments in wanted.items()])


async def main() -> None:
    async with lastword.Session(registry, approver=careful) as session:
        agent = Agent(FunctionModel(model), toolsets=[SessionToolset(session)])
        result = await agent.run("Pay Ada 7 and Bo 700.")
        print(result.output)


asyncio.run(main())
