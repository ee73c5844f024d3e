"""A model in a process of its own: prints its address, and "thinking" when it will not answer. Ends with its input."""

import sys
from typing import Any

from lastword.testing.scripted import Fault, Reply, ScriptedModel

CALL = {"id": "c1", "type": "function", "function": {"name": "lookup_weather", "arguments": '{"city": "Lisbon"}'}}
LISBON = '{"tool_request": {"name": "lookup_weather", "arguments": {"city": "Lisbon"}}}'


def reply(body: dict[str, Any]) -> Reply:
    said = body["messages"][-1]["content"]
    if said == "What is the weather in Lisbon?":
        return {"tool_calls": [CALL]} if body.get("tools") else LISBON
    if said.startswith("Result of the tool") or body["messages"][-1]["role"] == "tool":
        return "It is 18°C and clear in Lisbon."
    if said == "think":
        sys.stdout.write("thinking\n")
        sys.stdout.flush()
        return Fault("hang")
    if said.startswith("ask "):
        return '{"tool_request": {"name": "' + said[4:] + '"}}'
    return "Hello." if said == "Say hello." else f"You said {said}"


if __name__ == "__main__":
    with ScriptedModel(reply, models=["scripted"]) as model:
        sys.stdout.write(model.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()
