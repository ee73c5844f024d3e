"""A question of a server to the person, while a call of it runs: a card that says where the answer goes.

Given, declined and closed are told apart. An address is shown whole and opened by nobody here. A form that cannot be
shown is answered for the person with a refusal, and never with anything else. Where several of a list may be chosen,
each is a question of its own, answered with yes or no.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lastword.errors import QuestionError
from lastword.mcp.definitions import marked
from lastword.tools import ToolContext, questions

# How often the same is asked when too few or too many of a list were chosen.
MAX_TIMES = 3

_OPENED = "opened"
_ADDRESS_FORM = {
    "type": "object",
    "properties": {_OPENED: {"type": "boolean", "title": "I opened this address myself, and the server may go on"}},
    "required": [_OPENED],
}


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
