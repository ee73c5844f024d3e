"""A satellite in 30 lines of the standard library: python satellite_30_lines.py SERVER QUESTION"""

import json
import os
import sys
from urllib.request import Request, urlopen


def lookup_weather(city: str) -> str:
    return f"{city} is 18°C and clear."


TOOLS = {"lookup_weather": lookup_weather}
SHAPE = '{"tool_request": {"name": "lookup_weather", "arguments": {"city": "CITY"}}}'
PROMPT = {"role": "system", "content": f"To look up the weather, answer with this JSON and nothing else: {SHAPE}"}


def turn(message: dict[str, str]) -> bytes:
    body = json.dumps({"conversation_id": f"weather-{os.getpid()}", "messages": [PROMPT, message]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('LASTWORD_TOKEN', '')}"}
    with urlopen(Request(f"{sys.argv[1]}/v1/chat/completions", body, headers)) as answer:
        return bytes(answer.read())


answer = json.loads(turn({"role": "user", "content": sys.argv[2]}))
for _ in range(5):  # The loop is ours, and so is its bound.
    if (request := answer["tool_request"]) is None:
        break
    content = TOOLS[request["name"]](**request["arguments"])
    result = {"role": "tool_result", "id": request["id"], "name": request["name"], "content": content}
    answer = json.loads(turn(result))
print(answer["choices"][0]["message"]["content"])
