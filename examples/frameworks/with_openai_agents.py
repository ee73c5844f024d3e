"""The OpenAI Agents SDK, with the last word left to a person: python with_openai_agents.py"""

import asyncio

from agents import Agent, RunConfig, Runner
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

import lastword
from lastword.adapters.openai_agents import function_tools

registry = lastword.ToolRegistry()


@registry.tool(effect="irreversible")
async def pay(to: str, amount: float) -> str:
    """Send money to somebody."""
    return f"Paid {amount:g} to {to}."


async def careful(card: lastword.ApprovalRequest) -> lastword.UserAction:
    print(f"{card.title}? {card.arguments}")
    return card.allow() if card.arguments["amount"] <= 10 else card.deny("that is too much")


# In the place of a real model: asks for two payments, and then is done.
MODEL = ScriptedModel(
    [
        [
            function_call("pay", {"to": "Ada", "amount": 7}, call_id="call-1"),
            function_call("pay", {"to": "Bo", "amount": 700}, call_id="call-2"),
        ],
        [assistant_message("Done.")],
    ]
)


async def main() -> None:
    async with lastword.Session(registry, approver=careful) as session:
        agent = Agent(name="clerk", model=MODEL, tools=function_tools(session))
        # Without a key there is nowhere to send traces to.
        result = await Runner.run(agent, "Pay Ada 7 and Bo 700.", run_config=RunConfig(tracing_disabled=True))
        for item in result.new_items:
            if isinstance(item, ToolCallOutputItem):
                print(item.output)


asyncio.run(main())
