"""What goes over the wire, byte for byte: the answers of both forms, whole and as events, and their refusals.

Clients are state machines over these bytes: an event more, a key that moved or a null that went is a change for them.
"""

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lastword.testing.scripted import Fault
from requirements import requirement

GOLDEN = Path(__file__).parent.parent / "golden" / "wire"
ASK = '{"tool_request": {"name": "weather", "arguments": {"city": "Lisbon"}}}'
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
UNREAD = {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city'}}
SHORT: dict[str, Any] = {"role": "assistant", "content": "Once"}
CUT = {"choices": [{"index": 0, "message": SHORT, "delta": SHORT, "finish_reason": "length"}]}
NO: dict[str, Any] = {"role": "assistant", "content": None, "refusal": "I cannot."}
REFUSED = {"choices": [{"index": 0, "message": NO, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
# By name: what the model says, and the fields of the request that differ.
SCENES: dict[str, tuple[Any, dict[str, Any]]] = {
    "words": ("Hello there.", {}),
    "words in a conversation": ("Hello.", {"conversation": "kitchen"}),
    "a request": (ASK, {"conversation": "kitchen"}),
    "a near miss": (f"Sure! {ASK}", {}),
    "a script": ("LET x = 1\nPRINT(x)", {"tool_protocol": "script"}),
    "native calls": ({"content": "Looking.", "tool_calls": [CALL, UNREAD]}, {"tools": True}),
    "thoughts": ("<think>Hm.</think>Yes.", {"model": "qwen3"}),
    "cut short": (Fault("garbage", body=json.dumps(CUT).encode()), {}),
    "declined": (Fault("garbage", body=json.dumps(REFUSED).encode()), {}),
    "broken off": (Fault("die", after=["One ", "two"]), {}),
    "refused by the model's server": (Fault("status", status=400, code="context_length_exceeded"), {}),
    "nothing new": ("Hello.", {"conversation": "kitchen", "said": {"role": "assistant", "content": "I said so."}}),
    "no request": ("Hello.", {"stream": "perhaps"}),
}
# What is new each time: the clock, and ids.
NEW = re.compile(
    r'(?<="created":)\d+|(?<="created_at":)\d+|call_[0-9a-f]{24}|chatcmpl-[0-9a-f]+|r-[0-9a-f]{24}|(?<=_0_)[0-9a-f]{24}'
    r"|(?<=_0_0\.)[0-9a-f]{24}"
)


def _named(known: dict[str, str], new: re.Match[str]) -> str:
    return known.setdefault(new[0], f"NEW-{len(known)}")


def spoken(form: str, fields: dict[str, Any], *, stream: bool) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request."""
    given: dict[str, Any] = {"stream": stream, **fields}
    said = given.pop("said", {"role": "user", "content": "Hi"})
    function = {"name": "weather", "parameters": {"type": "object"}}
    if form == "responses":
        tools = [{"type": "function", **function}] if given.pop("tools", False) else []
        return "/v1/responses", {"input": [said], **given, **({"tools": tools} if tools else {})}
    if given.pop("tools", False):
        given["tools"] = [{"type": "function", "function": function}]
    if conversation := given.pop("conversation", None):
        given["conversation_id"] = conversation
    return "/v1/chat/completions", {"messages": [said], "stream_options": {"include_usage": True}, **given}


@requirement("API-20", "API-67")
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_every_byte_of_an_answer_is_what_it_was(house, form):
    """Both forms share one turn; neither may move when the other does."""
    says: list[Any] = []
    server = house.server(lambda _: says[-1], limits={"retries": 0})
    written = []
    for number, (name, (reply, fields)) in enumerate(SCENES.items()):
        says.append(reply)
        for how in ("whole", "stream"):
            named = {"conversation": f"{how}-{number}"} if "conversation" in fields else {}
            path, body = spoken(form, fields | named, stream=how == "stream")
            answer = server.send("POST", path, body)
            known: dict[str, str] = {}
            said = NEW.sub(partial(_named, known), answer.body.decode().rstrip())
            written.append(f"=== {name}, {how}: {answer.status} {answer.headers['content-type']}\n{said}\n")
    file = GOLDEN / f"{form}.txt"
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(written), encoding="utf-8")
    assert "\n".join(written) == file.read_text(encoding="utf-8")
