"""What a server says while a tool of it is called: its answer as what our tools return, and questions to the person.

Nothing that an answer links to is fetched. Secrets that the server was given are taken out of every text.

A question is a card that says where the answer goes, and meanwhile the server's time stands still. Given, declined and
closed are told apart. An address is shown whole and opened by nobody here. A form that cannot be shown is answered for
the person with a refusal, and never with anything else. Where several of a list may be chosen, each is a question of
its own, answered with yes or no.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.display import left_out
from lastword.errors import QuestionError, ToolError
from lastword.mcp.server_trust import marked
from lastword.tools import content as tool_content
from lastword.tools import questions

if TYPE_CHECKING:
    from lastword.mcp.secrets import UsedSecrets
    from lastword.tools import ToolContext

# Of what a server says went wrong. A model reads it, and a person may.
MAX_QUOTED = 4_000

# How often the same is asked when too few or too many of a list were chosen.
MAX_TIMES = 3
_OPENED = "opened"
_ADDRESS_FORM = {
    "type": "object",
    "properties": {_OPENED: {"type": "boolean", "title": "I opened this address myself, and the server may go on"}},
    "required": [_OPENED],
}


def result_of(server: str, answer: dict[str, Any], used: UsedSecrets) -> Any:
    """What a call of a server's tool gave. ToolError, with its words quoted, when the server says that it failed."""
    content = answer.get("content") or []
    if answer.get("isError"):
        words = "\n".join(block["text"] for block in content if block.get("type") == "text")
        raise ToolError(f"the MCP server {server} says that it failed: {quoted(words or 'nothing more', used)}")
    blocks = _joined([_block(block, used) for block in content])
    if "structuredContent" in answer:
        value = used.hide_in(answer["structuredContent"])
        # Servers repeat the value as text for clients that know no better.
        rest = [block for block in blocks if not (isinstance(block, str) and _is_json_of(block, value))]
        return tool_content.ToolResult(value, _texts(rest)) if rest or value is None else value
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
    return tool_content.ToolResult(None, _texts(blocks)) if blocks else "The server gave nothing back."


def quoted(words: str, used: UsedSecrets) -> str:
    """A server's words, as its words."""
    words = used.hide(words)  # All of it, before it is cut: half a secret is one, too.
    return f"“{marked(words[:MAX_QUOTED])}”" + (left_out(len(words) - MAX_QUOTED) if len(words) > MAX_QUOTED else "")


def _block(block: dict[str, Any], used: UsedSecrets) -> tool_content.Block | str:
    kind = block.get("type")
    if kind == "text":
        return used.hide(str(block.get("text", "")))
    if kind in ("image", "audio"):
        data, claimed = _bytes(block.get("data")), block.get("mimeType")
        return (tool_content.Image if kind == "image" else tool_content.Audio)(data, media_type=claimed)
    if kind == "resource_link":
        about = f": {block['description']}" if block.get("description") else ""
        return used.hide(f"[A link, which was not followed] {block.get('name', '')} {block.get('uri', '')}{about}")
    if kind == "resource":
        resource = block.get("resource") or {}
        name = used.hide(str(resource.get("uri", "")))
        if "text" in resource:
            return tool_content.Text(used.hide(str(resource["text"])), name=name)
        return tool_content.File(_bytes(resource.get("blob")), media_type=resource.get("mimeType"), name=name)
    return f"[A block of the kind {str(kind)[:60]}, which is not known here]"


def _bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ToolError("the server ran, but what it returned as base64 is none; what it did stays done") from None


def _joined(blocks: Sequence[tool_content.Block | str]) -> list[tool_content.Block | str]:
    """Texts that follow each other, as one: some servers send a block for every line."""
    joined: list[tool_content.Block | str] = []
    for block in blocks:
        if joined and isinstance(block, str) and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n{block}"
        else:
            joined.append(block)
    return joined


def _texts(blocks: Sequence[tool_content.Block | str]) -> list[tool_content.Block | str]:
    return [tool_content.Text(block) if isinstance(block, str) else block for block in blocks]


def _is_json_of(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


class _Several(msgspec.Struct, frozen=True):
    """A field of which several values may be chosen."""

    choices: dict[str, str]
    """The field of our form that stands for each value."""
    least: int
    most: int


async def put_to_person(server: str, asked: dict[str, Any], context: ToolContext[Any]) -> dict[str, Any]:
    """Ask, and say what became of it in the words of the protocol."""
    words = marked(str(asked.get("message", "")))
    several: dict[str, _Several] = {}
    if asked.get("mode") == "url":
        address = marked(str(asked.get("url", "")))
        message = (
            f"The MCP server {server} says: “{words}”\nIt wants you to open this address, which is opened by nobody "
            f"here:\n{address}\nWhat you enter there goes to whoever runs that address."
        )
        form: Any = _ADDRESS_FORM
    else:
        message = f"The MCP server {server} asks: “{words}”\nYour answer goes to the MCP server {server}."
        form, several = _flat(asked.get("requestedSchema"))
    again = ""
    for _ in range(MAX_TIMES):
        try:
            answer = await context.ask(f"{message}{again}", form)
        except QuestionError as problem:
            context.report(f"The MCP server {server} asked something that cannot be shown: {problem.fact}")
            break
        if isinstance(answer, questions.Declined):
            return {"action": "decline"}
        if not isinstance(answer, questions.Given):
            break
        if asked.get("mode") == "url":
            return {"action": "accept" if answer.values.get(_OPENED) is True else "decline"}
        given, misfit = _gathered(answer.values, several)
        if misfit is None:
            return {"action": "accept", "content": given}
        again = f"\n{misfit}"
    return {"action": "cancel"}


def _flat(schema: Any) -> tuple[Any, dict[str, _Several]]:
    """A form without lists, and which of its fields stand for the values of one."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return schema or {}, {}
    flat: dict[str, Any] = {}
    several: dict[str, _Several] = {}
    for name, own in properties.items():
        values = _values(own)
        if values is None:
            flat[name] = own
            continue
        least, most = own.get("minItems", 0), own.get("maxItems", len(values))
        choices = {value: f"{name}: {value}" for value in values}
        several[name] = _Several(
            choices, least if type(least) is int else 0, most if type(most) is int else len(values)
        )
        title = own.get("title") or name
        for value, shown in values.items():
            flat[choices[value]] = {"type": "boolean", "title": f"{title}: {shown}"}
    required = [name for name in schema.get("required", ()) if name in flat]
    return {"type": "object", "properties": flat, "required": required}, several


def _values(own: Any) -> dict[str, str] | None:
    """What may be chosen of a list, each with its title; None for any other field."""
    if not isinstance(own, dict) or own.get("type") != "array" or not isinstance(own.get("items"), dict):
        return None
    items = own["items"]
    found: dict[str, str] = {}
    for entry in items.get("enum") or items.get("anyOf") or items.get("oneOf") or ():
        value = entry.get("const") if isinstance(entry, dict) else entry
        if not isinstance(value, str):
            return None
        found[value] = str(entry.get("title", value)) if isinstance(entry, dict) else value
    return found or None


def _gathered(given: dict[str, Any], several: dict[str, _Several]) -> tuple[dict[str, Any], str | None]:
    """What was given, with the lists put together again; and what is wrong with one of them."""
    stand_in = {field for own in several.values() for field in own.choices.values()}
    content = {name: value for name, value in given.items() if name not in stand_in}
    for name, own in several.items():
        if not any(field in given for field in own.choices.values()):
            continue  # Nothing was said of it.
        chosen = [value for value, field in own.choices.items() if given.get(field) is True]
        if not own.least <= len(chosen) <= own.most:
            return content, f"Of {marked(name)} choose {own.least} to {own.most}."
        content[name] = chosen
    return content, None


class PausableClock:
    """Runs out once, after so many seconds in which it was not paused."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.run_out = asyncio.Event()
        self._left = seconds
        self._pauses = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._go_on()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still for as long as somebody thinks."""
        self._pauses += 1
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - self._loop.time())
            self.stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._go_on()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        if not self._pauses and not self.run_out.is_set():
            self._timer = self._loop.call_later(self._left, self.run_out.set)
