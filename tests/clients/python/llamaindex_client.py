"""LlamaIndex's OpenAILike, unchanged, against the server at the address it is given. What it saw is printed as JSON."""

import asyncio
import json
import sys
from typing import Any

import openai
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses

# A model that refuses a short question for its length would be taken to see next to nothing from then on.
TOO_LONG = "Too long" + " and longer" * 2000


def weather(city: str) -> str:
    """Say how the weather is."""
    return "18°C"


async def carry_out(url: str, kind: type[OpenAILike] | type[OpenAILikeResponses]) -> dict[str, Any]:
    """The programme, in one of the two forms."""
    model = kind(
        model="lastword",
        api_base=url,
        api_key="none",
        max_retries=0,
        is_chat_model=True,
        is_function_calling_model=True,
    )

    async def say(words: str) -> str:
        return (await model.achat([ChatMessage(role="user", content=words)])).message.content or ""

    count = [ChatMessage(role="user", content="Count.")]
    seen: dict[str, Any] = {
        "chat": await say("Say hello."),
        "stream": [piece.delta for piece in model.stream_chat(count) if piece.delta],
    }
    tool = FunctionTool.from_defaults(fn=weather)
    asked = model.chat_with_tools([tool], user_msg="Weather?")
    (call,) = model.get_tool_calls_from_response(asked)
    history = [
        ChatMessage(role="user", content="Weather?"),
        asked.message,
        ChatMessage(role="tool", content=weather(**call.tool_kwargs), additional_kwargs={"tool_call_id": call.tool_id}),
    ]
    told = model.chat_with_tools([tool], chat_history=history)
    seen["tools"] = [call.tool_name, call.tool_kwargs, told.message.content]
    slow = asyncio.ensure_future(say(f"Slow {kind.__name__}."))
    seen["at_once"] = [await say("Fast."), await say(f"Open {kind.__name__}.")]
    seen["at_once"].append(await slow)
    try:
        await say(TOO_LONG)
    except openai.BadRequestError as problem:
        seen["error"] = problem.code
    return seen


if __name__ == "__main__":
    kinds = {"chat": OpenAILike, "responses": OpenAILikeResponses}
    json.dump({form: asyncio.run(carry_out(sys.argv[1], kind)) for form, kind in kinds.items()}, sys.stdout)
