"""Pydantic AI's deferred tools, alone and with lastword: python bench/compare/with_pydantic_ai.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import AbstractToolset
from scenes import Till, dies, main

import lastword
from lastword.adapters.pydantic_ai import SessionToolset


def model(messages: list[ModelMessage], info: object) -> ModelResponse:
    """Asks for one payment, then repeats what it read."""
    results = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
    if results:
        return ModelResponse(parts=[TextPart(str(results[0].content))])
    return ModelResponse(parts=[ToolCallPart("pay", {"to": "Ada", "amount": 5}, "call-1")])


def agent(folder: Path, session: lastword.Session | None) -> Agent[None, Any]:
    toolset: AbstractToolset[None]
    if session is not None:
        toolset = SessionToolset(session).approval_required()
    else:
        own: FunctionToolset[None] = FunctionToolset()

        @own.tool_plain(requires_approval=True)
        def pay(to: str, amount: float) -> str:
            return Till(folder.parent).pay(to, amount, dies=dies())

        toolset = own
    return Agent(FunctionModel(model), toolsets=[toolset], output_type=[str, DeferredToolRequests])


class PydanticAI:
    package = "pydantic-ai-slim"

    async def keep(self, folder: Path, session: lastword.Session | None) -> None:
        run = await agent(folder, session).run("Pay Ada.")
        (folder / "messages.json").write_bytes(run.all_messages_json())

    async def go_on(self, folder: Path, session: lastword.Session | None) -> str:
        messages = ModelMessagesTypeAdapter.validate_json((folder / "messages.json").read_bytes())
        yes = DeferredToolResults(approvals={"call-1": True})
        run = await agent(folder, session).run(message_history=messages, deferred_tool_results=yes)
        return str(run.output)


if __name__ == "__main__":
    main(PydanticAI())
