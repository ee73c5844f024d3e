"""The library of the `llm` command, unchanged, with the server as one of its extra models. It prints what it saw."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

# A model that refuses a short question for its length would be taken to see next to nothing from then on.
TOO_LONG = "Too long" + " and longer" * 2000


def weather(city: str) -> str:
    """Say how the weather is."""
    asked.append({"city": city})
    return "18°C"


asked: list[Any] = []


async def carry_out(llm: Any) -> dict[str, Any]:
    """The programme."""
    model, later = llm.get_model("lastword"), llm.get_async_model("lastword")
    seen: dict[str, Any] = {
        "chat": model.prompt("Say hello.", stream=False).text(),
        "stream": [str(piece) for piece in model.prompt("Count.") if str(piece)],
    }
    told = model.chain("Weather?", tools=[weather]).text()
    seen["tools"] = ["weather", *asked, told]
    slow = asyncio.ensure_future(say(later, "Slow."))
    seen["at_once"] = [await say(later, "Fast."), await say(later, "Open.")]
    seen["at_once"].append(await slow)
    try:
        model.prompt(TOO_LONG, stream=False).text()
    except Exception as problem:
        seen["error"] = getattr(problem, "code", None)
    return seen


async def say(model: Any, words: str) -> str:
    return str(await model.prompt(words).text())


if __name__ == "__main__":
    home = Path(sys.argv[2])
    settings = [
        f"- model_id: lastword\n  model_name: lastword\n  api_base: {sys.argv[1]}\n",
        "  supports_tools: true\n  can_stream: true\n",
    ]
    (home / "extra-openai-models.yaml").write_text("".join(settings))
    os.environ["LLM_USER_PATH"] = str(home)
    import llm as library

    json.dump(asyncio.run(carry_out(library)), sys.stdout)
