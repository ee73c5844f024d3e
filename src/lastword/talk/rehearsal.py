"""The rehearsal model: for trying every tool and every card without a model.

It is a model to the server like any other, and sees what any other would see: the messages, and the tools as the
satellite describes them. It understands nothing. `/tool name=value` becomes a request for that tool, a pasted script
becomes a script, and `tour` begins a short walk. What it says always says who is speaking.

What does not live here: the tools of the tour (tour.py).
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lastword import values
from lastword.server import Abilities, Completion, is_script
from lastword.talk.feedback import PROGRAM

NAME = "rehearsal"
# The tools that its tour asks for. They are the satellite's: this model, like any other, only knows their names.
NOTE = "tour_note"
POSTCARD = "tour_postcard"
NOTE_ARGUMENTS = {"path": "note.md", "text": "Somebody read this before it was written."}
POSTCARD_ARGUMENTS = {"to": "the moon", "text": "Wish you were here."}
SIGNED = "Rehearsal model:"
# A result is repeated as far as a person would read it; all of it is in the journal.
MAX_QUOTED = 600
# How many tools a greeting lists.
MAX_LISTED = 12

_CALL = re.compile(r"/([A-Za-z_]\w*)\s*(.*)", re.DOTALL)
_RESULT = re.compile(r'Result of the tool ("(?:[^"\\]|\\.)*")\. [^\n]*\n---- (\w+)\n(.*)\n---- \2\n', re.DOTALL)
# A tool as the instructions list it, for scripts and for requests, and an argument on a line of its own.
_LISTED = re.compile(r"(?:CALL ([A-Za-z_]\w*) \{(.*?)\}|- ([A-Za-z_]\w*)(?: with \((.*?)\))?)(?:$|:| ->)")
_ARGUMENT = re.compile(r"(\w+)\??: (\w+)")
_ARGUMENT_LINE = re.compile(r"    (\w+) \((\w+), (?:required|optional)\)")

Message = Mapping[str, Any]


class Rehearsal:
    """The model, as the server needs it."""

    NAME = NAME

    async def complete(self, body: dict[str, Any]) -> Completion:
        message = rehearse(msgspec.json.decode(msgspec.json.encode(body["messages"])), body.get("tools"))
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        return Completion.checked(
            {
                "model": NAME,
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": _usage(body, message),
            }
        )

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        whole = await self.complete(body)
        head = {"id": whole.body["id"], "created": int(time.time()), "model": NAME}
        for word in re.findall(r"\S+\s*|\s+", whole.message["content"] or ""):
            yield {**head, "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
        delta = {}
        if calls := whole.message.get("tool_calls"):
            delta = {"tool_calls": [{"index": index, **call} for index, call in enumerate(calls)]}
        reason = whole.body["choices"][0]["finish_reason"]
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        yield {**head, "choices": [], "usage": whole.body["usage"]}

    async def models(self) -> list[str]:
        return [NAME]

    async def abilities(self) -> Abilities:
        return Abilities()

    async def close(self) -> None:
        """It holds nothing."""


def rehearse(messages: Sequence[Message], tools: Sequence[Message] | None = None) -> dict[str, Any]:
    """What the model answers: a message with text, or with a native call. Pure but for the id of the call."""
    # It has no eyes: the messages with pictures are left out.
    messages = [m for m in messages if not (isinstance(m.get("content"), list) and _content(m).startswith(PROGRAM))]
    stage = _Stage(messages, tools)
    last = messages[-1] if messages else {"role": "user", "content": ""}
    results = list(_results(messages[-1:], messages))
    if results:
        return _text(stage.answer(*results[-1]))
    said = _content(last).strip()
    if call := _CALL.fullmatch(said):
        return stage.call(call[1], call[2])
    if is_script(said):
        return stage.script(said)
    if said.lower() in ("tour", "next"):
        return stage.walk(said.lower())
    return _text(stage.greet())


class _Stage:
    """What this model can know: the messages, and the tools as they were described to it."""

    def __init__(self, messages: Sequence[Message], tools: Sequence[Message] | None) -> None:
        self._messages = messages
        self._native = bool(tools)
        self._prompt = "\n".join(_content(m) for m in messages if m["role"] == "system")
        self._scripts = "gets a script" in self._prompt and not self._native
        self.tools = _from_schemas(tools) if tools else _from_prompt(self._prompt)

    def call(self, name: str, text: str) -> dict[str, Any]:
        """A request for a tool. A name that does not exist is asked for too: the answer to that is worth seeing."""
        try:
            words = shlex.split(text)
        except ValueError as problem:
            return _text(f"{SIGNED} I cannot read that: {problem}. Write /{name} name=value other='two words'.")
        arguments: dict[str, Any] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                return _text(f"{SIGNED} {word} is not an argument. Write /{name} name=value.")
            arguments[key] = _value(value, self.tools.get(name, {}).get(key))
        return self.request(name, arguments)

    def request(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._native:
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            call = {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return _text(json.dumps({"tool_request": {"name": name, "arguments": arguments}}, ensure_ascii=False))

    def script(self, text: str) -> dict[str, Any]:
        if self._scripts:
            return _text(text)
        return _text(
            f"{SIGNED} That is a script, and this preset does not take scripts. Use one with the protocol script."
        )

    def answer(self, name: str, content: str) -> str:
        """What came of a request, in words; and in a tour, what comes next."""
        if self._touring() and name in (NOTE, POSTCARD):
            return self._after(name, content)
        result = _read(content)
        if "status" in result:
            told = [f"The script ended: {result['status']}.", result.get("output") or "", result.get("error") or ""]
            return f"{SIGNED} " + "\n".join(filter(None, told))
        how = "succeeded" if result.get("success") else "did not succeed"
        return f"{SIGNED} {name} {how}. It says:\n{_quoted(str(result.get('message', content)))}"

    def greet(self) -> str:
        names = list(self.tools)
        examples = "\n".join(f"  /{name}{_usage_of(self.tools[name])}" for name in names[:MAX_LISTED])
        if len(names) > MAX_LISTED:
            examples += f"\n  and {len(names) - MAX_LISTED} more: /tools lists them"
        listed = f"These tools can be tried:\n{examples}" if names else "There are no tools here."
        more = ["Type `tour` for a walk of a minute."] if NOTE in names else []
        if self._scripts:
            more.append("A pasted script is run as one.")
        lines = [
            f"{SIGNED} I am not a language model and understand nothing. I turn what you type into requests, so that "
            "tools and cards can be tried without a model.",
            listed,
            *more,
        ]
        return "\n".join(lines)

    # The tour. Everything it knows, it reads from the conversation.

    def walk(self, word: str) -> dict[str, Any]:
        if NOTE not in self.tools:
            return _text(f"{SIGNED} The tour needs its own tools, and they are not here. `lastword chat` brings them.")
        if word == "tour":
            return _text(
                f"{SIGNED} The tour has three steps: you will allow something, deny something, and take something "
                "back. It works on a folder that is thrown away afterwards.\n"
                "1 of 3. I ask to write a note. Type `next`, unless its card is here already. The card shows the exact "
                "change: read it, then allow it."
            )
        if not self._touring():
            return _text(f"{SIGNED} `next` comes after `tour`. Type `tour`.")
        if not self._has(NOTE, success=True):
            return self.request(NOTE, NOTE_ARGUMENTS)
        if not self._has(POSTCARD, success=False):
            return self.request(POSTCARD, POSTCARD_ARGUMENTS)
        if not self._took_back():
            return _text(f"{SIGNED} 3 of 3. Type /undo first: it takes the note back. Then type `next`.")
        return _text(
            f"{SIGNED} That was the tour. You allowed a change that you had seen, denied what you did not want, and "
            "took back what was done. All of it is remembered: the page has a timeline of it, the "
            "terminal /runs.\n"
            "Now a tool of your own: stop this with Ctrl+D in its terminal, then `lastword new tool NAME`."
        )

    def _after(self, name: str, content: str) -> str:
        success = _read(content).get("success")
        if name == NOTE and success:
            return (
                f"{SIGNED} You allowed it, and the note is written: exactly what the card showed.\n"
                "2 of 3. Type `next`: I will ask for something that cannot be undone. Deny it, and say why if you like."
            )
        if name == NOTE:
            return f"{SIGNED} Nothing was written, because you did not allow it. Type `next` to be asked again."
        if success:
            return f"{SIGNED} You allowed it. (Nothing was sent: it is a tour.) Type `next`, and deny it this time."
        return (
            f"{SIGNED} It was not sent. What I was told:\n{_quoted(str(_read(content).get('message', '')))}\n"
            "3 of 3. Type /undo: it takes the note back. Then type `next`."
        )

    def _touring(self) -> bool:
        return self._since_tour() is not None

    def _since_tour(self) -> Sequence[Message] | None:
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            if message["role"] == "user" and _content(message).strip().lower() == "tour":
                return self._messages[place:]
        return None

    def _has(self, name: str, *, success: bool) -> bool:
        since = self._since_tour() or ()
        return any(n == name and bool(_read(c).get("success")) == success for n, c in _results(since, self._messages))

    def _took_back(self) -> bool:
        since = self._since_tour() or ()
        return any(_content(m).startswith(PROGRAM) and f"Took back {NOTE}" in _content(m) for m in since)


def _results(messages: Sequence[Message], history: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """The results among these messages: the tool's name and what it gave."""
    names = {call["id"]: call["function"]["name"] for m in history for call in m.get("tool_calls") or ()}
    for message in messages:
        if message["role"] == "tool":
            yield names.get(message["tool_call_id"], "the tool"), _content(message)
        elif message["role"] == "user" and (found := _RESULT.match(_content(message))):
            yield json.loads(found[1]), found[3]


def _from_schemas(tools: Sequence[Message]) -> dict[str, dict[str, str]]:
    """Name → argument → type, from native tools."""
    known = {}
    for tool in tools:
        properties = tool["function"].get("parameters", {}).get("properties", {})
        known[tool["function"]["name"]] = {name: str(schema.get("type", "any")) for name, schema in properties.items()}
    return known


def _from_prompt(prompt: str) -> dict[str, dict[str, str]]:
    """The same, from the lines of the prompt, as any model has to read them."""
    listed = prompt.partition("\nTools:\n")[2].partition("\n\n")[0]  # What follows may hold examples.
    known: dict[str, dict[str, str]] = {}
    for line in listed.split("\n"):
        if found := _LISTED.match(line):
            latest = known[found[1] or found[3]] = dict(_ARGUMENT.findall(found[2] or found[4] or ""))
        elif known and (argument := _ARGUMENT_LINE.match(line)):
            latest[argument[1]] = argument[2]
    return known


def _value(text: str, kind: str | None) -> Any:
    """A value as the tool wants it: a text as it stands, everything else as JSON where it is JSON."""
    if kind == "string":
        return text
    try:
        return values.parse(text)
    except values.NotJSON:
        return text


def _usage_of(arguments: Mapping[str, str]) -> str:
    return "".join(f" {name}={'…' if kind == 'string' else kind}" for name, kind in arguments.items())


def _usage(body: Message, message: Message) -> dict[str, int]:
    """Counted as if four bytes were a token."""
    asked = len(msgspec.json.encode(body["messages"])) // 4
    said = len(msgspec.json.encode(message)) // 4
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _content(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _read(content: str) -> dict[str, Any]:
    try:
        found = values.parse(content)
    except values.NotJSON:
        return {}
    return found if isinstance(found, dict) else {}


def _quoted(text: str) -> str:
    kept = text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}… ({len(text) - MAX_QUOTED} more characters)"
    return "\n".join(f"  {line}" for line in kept.split("\n"))


def _text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}
