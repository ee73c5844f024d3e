"""An answer in the Responses form: what the model said as a message, and each tool that it asks for as a call."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from lastword.server.chat import OpenTurn
from lastword.server.conversations import Conversation, HistoryLine, seconds
from lastword.server.responses.naming import TurnPlace
from lastword.server.responses.wire import ConversationRef, IncompleteDetails, ResponseOut, ResponsesRequest
from lastword.server.wire import Extras, ToolRequestOut
from lastword.wire import ToolRequest, parse_tool_request

Status = Literal["in_progress", "completed", "incomplete"]

_BROKEN_OFF: dict[str, IncompleteDetails] = {
    "length": IncompleteDetails("max_output_tokens"),
    "content_filter": IncompleteDetails("content_filter"),
}


def place_of(turn: OpenTurn) -> TurnPlace:
    """Where a turn will be found. One that is not kept will not."""
    return TurnPlace(turn.number, turn.request.conversation_id or secrets.token_hex(12))


def whole(request: ResponsesRequest, turn: OpenTurn, answer: Mapping[str, Any]) -> ResponseOut:
    """An answer in the form of chat completions, in this one."""
    choice = answer["choices"][0]
    place = place_of(turn)
    extras = msgspec.convert({name: answer[name] for name in Extras.__struct_fields__}, Extras)
    status, details = how_it_ended(choice["finish_reason"])
    return respond(
        request,
        place,
        answer,
        status=status,
        output=output_items(place, choice["message"], extras.tool_requests, status),
        usage=count(answer["usage"]),
        incomplete_details=details,
        extras=extras,
    )


def how_it_ended(finish_reason: str) -> tuple[Literal["completed", "incomplete"], IncompleteDetails | None]:
    """Whether an answer is all of it, and why not."""
    details = _BROKEN_OFF.get(finish_reason)
    return ("incomplete" if details else "completed"), details


def respond(
    request: ResponsesRequest,
    place: TurnPlace,
    head: Mapping[str, Any],
    *,
    status: Status,
    output: list[dict[str, Any]],
    usage: dict[str, Any] | None = None,
    incomplete_details: IncompleteDetails | None = None,
    extras: Extras | None = None,
) -> ResponseOut:
    """The response object; what the client has asked for is repeated in it."""
    ours = {name: getattr(extras, name) for name in Extras.__struct_fields__} if extras else {}
    return ResponseOut(
        **ours,
        id=place.response_id,
        created_at=head["created"],
        model=head["model"],
        status=status,
        output=output,
        usage=usage,
        incomplete_details=incomplete_details,
        instructions=request.instructions,
        previous_response_id=request.previous_response_id,
        conversation=ConversationRef(place.conversation) if place.number else None,
        store=place.number > 0,
        tools=request.tools or [],
        tool_choice=request.tool_choice or "auto",
        parallel_tool_calls=request.parallel_tool_calls is not False,
        max_output_tokens=request.max_output_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        text=request.text,
        reasoning=request.reasoning,
        truncation=request.truncation or "disabled",
        metadata=request.metadata or {},
    )


def output_items(
    place: TurnPlace, message: Mapping[str, Any], requests: Sequence[ToolRequestOut], status: Status = "completed"
) -> list[dict[str, Any]]:
    """What a model's message holds. One that is a request in our own protocol is that request, and no words."""
    calls = message.get("tool_calls")
    if calls:
        items = [message_item(place, message, status)] if message.get("content") else []
        asked = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    else:
        asked = [(entry.id, entry.name, msgspec.json.encode(entry.arguments).decode()) for entry in requests]
        items = [] if asked else [message_item(place, message, status)]
    return items + [call_item(place, number, *call) for number, call in enumerate(asked)]


def message_item(place: TurnPlace, message: Mapping[str, Any], status: Status) -> dict[str, Any]:
    """What the model said, as an item."""
    refusal = message.get("refusal")
    if refusal and not message.get("content"):
        part = {"type": "refusal", "refusal": refusal}
    else:
        part = text_part(message.get("content") or "")
    return {"type": "message", "id": place.message_id, "role": "assistant", "status": status, "content": [part]}


def text_part(text: str) -> dict[str, Any]:
    """A piece of it."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(
    place: TurnPlace, number: int, id: str, name: str, arguments: str, status: Status = "completed"
) -> dict[str, Any]:
    """A request for a tool, as an item. `id` is that of the request, which its result names."""
    named = {"call_id": id, "name": name, "arguments": arguments}
    return {"type": "function_call", "id": place.call_id(number), **named, "status": status}


def count(usage: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What it cost, in the words of this form. Nothing when the model's server did not count."""
    if not usage:
        return None
    taken, given = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
    cached = _number(usage.get("prompt_tokens_details"), "cached_tokens")
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": given,
        "output_tokens_details": {
            "reasoning_tokens": _number(usage.get("completion_tokens_details"), "reasoning_tokens")
        },
        "total_tokens": _number(usage, "total_tokens") or taken + given,
    }


def _number(usage: Any, name: str) -> int:
    found = usage.get(name) if isinstance(usage, Mapping) else None
    return found if type(found) is int else 0


def remembered(conversation: Conversation, place: TurnPlace, model: str) -> ResponseOut:
    """An answer as the conversation knows it: the model's words, not what they cost or how they were asked for."""
    line = _reply(conversation, place.number)
    head = {"created": seconds(line.at), "model": model}
    output = items_of_turn(conversation, place.number)
    return respond(ResponsesRequest(input=""), place, head, status="completed", output=output)


def items_of_turn(conversation: Conversation, number: int) -> list[dict[str, Any]]:
    """The output items of a turn that is kept."""
    said = _reply(conversation, number).said
    message = {"content": said.content, "tool_calls": said.tool_calls}
    return output_items(TurnPlace(number, conversation.id), message, _requests(conversation, number, said.content))


def has_reply(conversation: Conversation, number: int) -> bool:
    """Whether an answer of this number can be read and gone on from."""
    return _find_reply(conversation, number) is not None


def _reply(conversation: Conversation, number: int) -> HistoryLine:
    found = _find_reply(conversation, number)
    assert found is not None, "whoever asks has looked whether there is one"
    return found


def _find_reply(conversation: Conversation, number: int) -> HistoryLine | None:
    # The newest is looked for first: that is the one people go on from.
    for line in reversed(conversation.lines):
        if line.turn == number and line.said.role == "assistant":
            return line
        if line.turn < number:
            return None  # Going back, or the number of a turn that there never was.
    return None


def _requests(conversation: Conversation, number: int, content: Any) -> list[ToolRequestOut]:
    """What a message in our own protocol asked for.

    Whether it did is not in its words: for a model with native calls the same text is text. What tells is the record
    of the request, or of its result.
    """
    if number == conversation.turns:
        ids = [entry.id for entry in conversation.pending.values() if not entry.native]
    else:
        following = (line.said for line in conversation.lines if line.turn == number + 1)
        ids = [said.id or "" for said in following if said.role == "tool_result" and not said.native]
    found = parse_tool_request(content) if ids and isinstance(content, str) else None
    return [ToolRequestOut(ids[0], found.name, found.arguments)] if isinstance(found, ToolRequest) else []
