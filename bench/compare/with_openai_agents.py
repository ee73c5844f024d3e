"""The OpenAI Agents SDK's approvals, alone and with lastword: python bench/compare/with_openai_agents.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import Agent, RunConfig, Runner, RunState, Tool, function_tool
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call
from scenes import Till, dies, main

import lastword
from lastword.adapters.openai_agents import function_tools

UNTRACED = RunConfig(tracing_disabled=True)


def agent(folder: Path, session: lastword.Session | None, *steps: Any) -> Agent[Any]:
    @function_tool(needs_approval=True)
    def pay(to: str, amount: float) -> str:
        """Send money to somebody."""
        return Till(folder.parent).pay(to, amount, dies=dies())

    tools: list[Tool] = [pay] if session is None else function_tools(session, pausing=True)
    return Agent(name="clerk", model=ScriptedModel([list(step) for step in steps]), tools=tools)


class OpenAIAgents:
    package = "openai-agents"

    async def keep(self, folder: Path, session: lastword.Session | None) -> None:
        payment = function_call("pay", {"to": "Ada", "amount": 5}, call_id="call-1")
        run = await Runner.run(agent(folder, session, [payment]), "Pay Ada.", run_config=UNTRACED)
        state = run.to_state()
        for waiting in run.interruptions:
            state.approve(waiting)
        (folder / "state.json").write_text(state.to_string())

    async def go_on(self, folder: Path, session: lastword.Session | None) -> str:
        clerk = agent(folder, session, [assistant_message("Done.")])
        state = await RunState.from_string(clerk, (folder / "state.json").read_text())
        run = await Runner.run(clerk, state, run_config=UNTRACED)
        return " ".join(str(item.output) for item in run.new_items if isinstance(item, ToolCallOutputItem))


if __name__ == "__main__":
    main(OpenAIAgents())
