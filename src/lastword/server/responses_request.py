"""A request in the Responses form as the chat request it stands for.

`previous_response_id` is the conversation, at the turn that it names; without it, and unless `store` is false, a new
conversation begins with everything that the client sends. What the model asked for and what came of it are messages
again, in the form that the model's protocol has for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lastword.server.api_types import ChatRequest, Refusal, ToolProtocol
from lastword.server.auth import Caller
from lastword.server.conversations import Conversation, Conversations
from lastword.server.request_messages import ParsedRequest, decode_body
from lastword.server.responses_answer import has_reply, items_of_turn
from lastword.server.responses_types import (
    ChosenTool,
    ConversationRef,
    InputCall,
    InputCallOutput,
    InputFile,
    InputImage,
    InputItem,
    InputMessage,
    InputPart,
    InputText,
    ItemReference,
    OutputText,
    RefusalText,
    ResponsesRequest,
    SchemaFormat,
    TurnPlace,
    new_conversation_id,
    turn_of,
)
from lastword.server.turns import Turns
from lastword.wire import NotARequest, parse_arguments

# Fields that mean the same in both forms, and have the same name.
_SAME = ("temperature", "top_p", "parallel_tool_calls", "user", "safety_identifier", "prompt_cache_key", "service_tier")
_OURS = ("tool_protocol", "secret_arguments")


class ResponsesAsked(msgspec.Struct, frozen=True):
    """A request in this form, and the chat request it stands for."""

    request: ResponsesRequest
    parsed: ParsedRequest


async def read_request(body: bytes, turns: Turns, conversations: Conversations, caller: Caller) -> ResponsesAsked:
    """What a client asks for, or a refusal."""
    request, _ = decode_body(body, ResponsesRequest, _with_types)
    items = [InputMessage("user", request.input)] if isinstance(request.input, str) else request.input
    turns.check_count(len(items), "input", "send a previous_response_id, and only what is new")
    after = await _previous(request, conversations, caller)
    given = request.conversation
    conversation_id = given.id if isinstance(given, ConversationRef) else given
    if after is not None:
        if given is not None:
            raise Refusal(
                400,
                "invalid_request",
                "previous_response_id and conversation both name a conversation",
                param="conversation",
                hint="send one of them",
            )
        conversation_id = after.conversation
    if request.store is False:
        if conversation_id is not None:
            raise Refusal(
                409,
                "conversation_is_stored",
                "a turn of a conversation is stored with it",
                param="store",
                hint="leave store out, or send the whole history and no conversation",
            )
    elif conversation_id is None:
        conversation_id = new_conversation_id()
    resolved = [await _resolved(item, conversations, caller) for item in items]
    raw = _as_chat(request, resolved)
    if conversation_id is not None:
        raw["conversation_id"] = conversation_id
    number = after.number if after else None
    parsed = ParsedRequest(msgspec.convert(raw, ChatRequest), raw, after=number, brings_history=True)
    return ResponsesAsked(request, parsed)


def _with_types(raw: Any) -> Any:
    """Messages may come without the word that says what they are; everything else that can stand in a list has one.

    And a whole number may come as 50.0: for JSON Schema, in which our document is written, that is an integer.
    """
    match raw:
        case {"max_output_tokens": float(most)} if most.is_integer():
            raw = {**raw, "max_output_tokens": int(most)}
    match raw:
        case {"input": list(items)}:
            typed = [
                {"type": "message", **item} if isinstance(item, dict) and "type" not in item else item for item in items
            ]
            return {**raw, "input": typed}
    return raw


async def _previous(request: ResponsesRequest, conversations: Conversations, caller: Caller) -> TurnPlace | None:
    id = request.previous_response_id
    if id is None:
        return None
    place = turn_of(id)
    found = None if place is None else await find_turn(place, conversations, caller)
    if found is None:
        raise Refusal(
            404,
            "previous_response_not_found",
            "there is no such response",
            param="previous_response_id",
            hint="what was asked with store: false, and what was deleted, cannot be gone on with",
        )
    return place


async def find_turn(place: TurnPlace, conversations: Conversations, caller: Caller) -> Conversation | None:
    """The caller's own conversation that has this turn. One that was gone back over is in it no more."""
    conversation = await conversations.find(place.conversation)
    if conversation is None or conversation.owner != caller.id or not has_reply(conversation, place.number):
        return None
    return conversation


async def _resolved(item: InputItem, conversations: Conversations, caller: Caller) -> InputItem:
    """The item itself, where it was only named."""
    if not isinstance(item, ItemReference):
        return item
    place = turn_of(item.id)
    conversation = None if place is None else await find_turn(place, conversations, caller)
    if place is not None and conversation is not None:
        for found in items_of_turn(conversation, place.number):
            if found["id"] == item.id:
                return msgspec.convert(found, InputItem)  # type: ignore[no-any-return]
    raise Refusal(
        404,
        "item_not_found",
        "there is no such item",
        param="input",
        hint="what was asked with store: false was not kept; send the item itself",
    )


def _as_chat(request: ResponsesRequest, items: Sequence[InputItem]) -> dict[str, Any]:
    protocol: ToolProtocol = request.tool_protocol or ("native" if request.tools else "json")
    prompt = [{"role": "system", "content": request.instructions}] if request.instructions else []
    raw: dict[str, Any] = {"model": request.model, "messages": [*prompt, *_messages(items, protocol)]}
    raw |= {name: value for name in (*_SAME, *_OURS) if (value := getattr(request, name)) is not None}
    if request.stream:
        raw |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        raw["tools"] = [_without_nothing(msgspec.to_builtins(tool)) for tool in request.tools]
        choice = request.tool_choice
        if choice is not None:
            named = {"type": "function", "function": {"name": choice.name}} if isinstance(choice, ChosenTool) else None
            raw["tool_choice"] = named or choice
    if request.max_output_tokens is not None:
        # The older name of it: every server knows that one, and a limit that is ignored is none.
        raw["max_tokens"] = request.max_output_tokens
    if request.reasoning is not None and request.reasoning.effort is not None:
        raw["reasoning_effort"] = request.reasoning.effort
    if request.text is not None:
        if request.text.verbosity is not None:
            raw["verbosity"] = request.text.verbosity
        if isinstance(form := request.text.format, SchemaFormat):
            schema = {key: value for key, value in msgspec.to_builtins(form).items() if key != "type"}
            schema = {key: value for key, value in schema.items() if value is not None}
            raw["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif form is not None:
            raw["response_format"] = msgspec.to_builtins(form)
    return raw


def _without_nothing(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as chat requests have it."""
    function = {key: value for key, value in tool.items() if key != "type" and value is not None}
    return {"type": "function", "function": function}


def _messages(items: Sequence[InputItem], protocol: ToolProtocol) -> list[dict[str, Any]]:
    """The items as messages. Calls that follow one another, and the words before them, were one message."""
    messages: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    """Of the calls that went out as text, whose results have to go by name."""
    for item in items:
        if isinstance(item, InputMessage):
            messages.append(_said(item))
        elif isinstance(item, InputCall):
            arguments = parse_arguments(item.arguments)
            if protocol != "native" and not isinstance(arguments, NotARequest):
                names[item.call_id] = item.name
                asked = {"tool_request": {"name": item.name, "arguments": arguments}}
                messages.append({"role": "assistant", "content": msgspec.json.encode(asked).decode()})
                continue
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            call = {"id": item.call_id, "type": "function"}
            function = {"name": item.name, "arguments": item.arguments}
            messages[-1].setdefault("tool_calls", []).append({**call, "function": function})
        elif isinstance(item, InputCallOutput):
            output = item.output if isinstance(item.output, str) else "".join(part.text for part in item.output)
            if item.call_id in names:
                messages.append({"role": "tool_result", "name": names[item.call_id], "content": output})
            else:
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": output})
    return messages


def _said(item: InputMessage) -> dict[str, Any]:
    if isinstance(item.content, str):
        return {"role": item.role, "content": item.content}
    if item.role == "user" and not all(isinstance(part, InputText) for part in item.content):
        return {"role": "user", "content": [_part(part) for part in item.content]}
    return {"role": item.role, "content": "".join(_words(part) for part in item.content)}


def _words(part: InputPart) -> str:
    if isinstance(part, InputText | OutputText):
        return part.text
    return part.refusal if isinstance(part, RefusalText) else ""


def _part(part: InputPart) -> dict[str, Any]:
    if isinstance(part, InputImage):
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": part.image_url, **detail}}
    if isinstance(part, InputFile):
        named = {"filename": part.filename} if part.filename else {}
        return {"type": "file", "file": {"file_data": part.file_data, **named}}
    return {"type": "text", "text": _words(part)}
