"""A satellite in 30 lines of the standard library: python satellite_30_lines.py SERVER QUESTION"""

import json
import os
import sys
from urllib.request import Request, urlopen


def lookup_weather(city):
    return f"{city} is 18°C and clear."


TOOLS = {"lookup_weather": lookup_weather}
SHAPE = '{"tool_request": {"name": "lookup_weather", "arguments": {"city": "CITY"}}}'
PROMPT = {"role": "system", "content": f"To look up the weather, answer with this JSON and nothing else: {SHAPE}"}


def turn(message):
    body = json.dumps({"conversation_id": f"weather-{os.getpid()}", "messages": [PROMPT, message]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('LASTWORD_TOKEN', '')}"}
    with urlopen(Request(f"{sys.argv[1]}/v1/chat/completions", body, headers)) as answer:
        return json.load(answer)


answer = turn({"role": "user", "content": sys.argv[2]})
for _ in range(5):  # The loop is ours, and so is its bound.
    if (request := answer["tool_request"]) is None:
        break
    content = TOOLS[request["name"]](**request["arguments"])
    answer = turn({"role": "tool_result", "id": request["id"], "name": request["name"], "content": content})
print(answer["choices"][0]["message"]["content"])
