"""LangChain's ChatOpenAI, unchanged, against the server at the address it is given. What it saw is printed as JSON."""

import asyncio
import json
import sys
from typing import Any

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

# A model that refuses a short question for its length would be taken to see next to nothing from then on.
TOO_LONG = "Too long" + " and longer" * 2000


def weather(city: str) -> str:
    """Say how the weather is."""
    return "18°C"


async def carry_out(url: str, form: str) -> dict[str, Any]:
    """The programme, in one of the two forms."""
    model = ChatOpenAI(
        model="lastword", base_url=url, api_key="none", max_retries=0, use_responses_api=form == "responses"
    )
    seen: dict[str, Any] = {"chat": model.invoke("Say hello.").text}
    seen["stream"] = [piece.text for piece in model.stream("Count.") if piece.text]
    history: list[Any] = [HumanMessage("Weather?")]
    asked = model.bind_tools([weather]).invoke(history)
    (call,) = asked.tool_calls
    history += [asked, ToolMessage(weather(**call["args"]), tool_call_id=call["id"])]
    seen["tools"] = [call["name"], call["args"], model.bind_tools([weather]).invoke(history).text]
    whole: Any = None
    for piece in model.bind_tools([weather]).stream("Weather?"):
        whole = piece if whole is None else whole + piece
    seen["streamed_tools"] = [[entry["name"], entry["args"]] for entry in whole.tool_calls]
    slow = asyncio.ensure_future(model.ainvoke(f"Slow {form}."))
    seen["at_once"] = [(await model.ainvoke("Fast.")).text, (await model.ainvoke(f"Open {form}.")).text]
    seen["at_once"].append((await slow).text)
    try:
        model.invoke(TOO_LONG)
    except openai.BadRequestError as problem:
        seen["error"] = problem.code
    if form == "responses":
        again = model.invoke("Again.", previous_response_id=model.invoke("Say hello.").response_metadata["id"])
        keeping = ChatOpenAI(
            model="lastword", base_url=url, api_key="none", max_retries=0,
            use_responses_api=True, use_previous_response_id=True,
        )  # fmt: skip
        first = keeping.invoke("Say hello.")
        seen["again"] = [
            again.text,
            keeping.invoke([HumanMessage("Say hello."), first, HumanMessage("Again.")]).text,
            model.invoke([HumanMessage("Say hello."), first, HumanMessage("Again.")]).text,
        ]
    return seen


async def main() -> None:
    # In one loop: LangChain's connections outlive the model that they were made for.
    json.dump({form: await carry_out(sys.argv[1], form) for form in ("chat", "responses")}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
