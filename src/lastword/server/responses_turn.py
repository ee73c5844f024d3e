"""A turn in the Responses form: what is asked, what the model said as a message, and what it asks for as calls.

`previous_response_id` is the conversation, at the turn that it names; without it, and unless `store` is false, a new
conversation begins with everything that the client sends.

The answer comes whole, from the model or from memory, or as events, piece by piece. The turn itself is the one of
turns.py: a conversation that was begun in one form can be gone on with in the other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword.server.api_types import ChatRequest, Extras, Refusal, ToolRequestOut, seconds
from lastword.server.request_messages import ParsedRequest, decode_body
from lastword.server.responses_form import (
    ConversationRef,
    IncompleteDetails,
    InputItem,
    InputMessage,
    ItemReference,
    ResponseOut,
    ResponsesRequest,
    TurnPlace,
    as_chat,
    new_conversation_id,
    turn_of,
    with_types,
)
from lastword.wire import ToolRequest, parse_tool_request, write_event

if TYPE_CHECKING:
    from lastword.server.auth import Caller
    from lastword.server.completion import StreamedReply
    from lastword.server.conversations import Conversation, Conversations
    from lastword.server.history import HistoryLine
    from lastword.server.turns import OpenTurn, Turns

Status = Literal["in_progress", "completed", "incomplete"]
_BROKEN_OFF: dict[str, IncompleteDetails] = {
    "length": IncompleteDetails("max_output_tokens"),
    "content_filter": IncompleteDetails("content_filter"),
}


async def _previous(request: ResponsesRequest, conversations: Conversations, caller: Caller) -> TurnPlace | None:
    id = request.previous_response_id
    if id is None:
        return None
    found = await KeptTurn.find(id, conversations, caller)
    if found is None:
        fact = "there is no such response"
        hint = "what was asked with store: false, and what was deleted, cannot be gone on with"
        raise Refusal(404, "previous_response_not_found", fact, param="previous_response_id", hint=hint)
    return found.place


async def _resolved(item: InputItem, conversations: Conversations, caller: Caller) -> InputItem:
    """The item itself, where it was only named."""
    if not isinstance(item, ItemReference):
        return item
    kept = await KeptTurn.find(item.id, conversations, caller)
    for found in kept.items() if kept is not None else ():
        if found["id"] == item.id:
            return msgspec.convert(found, InputItem)  # type: ignore[no-any-return]
    hint = "what was asked with store: false was not kept; send the item itself"
    raise Refusal(404, "item_not_found", "there is no such item", param="input", hint=hint)


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
    ours = msgspec.structs.asdict(extras) if extras else {}
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


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn that is in a conversation, with the model's reply in it."""

    place: TurnPlace
    conversation: Conversation
    line: HistoryLine

    @classmethod
    async def find(cls, id: str, conversations: Conversations, caller: Caller) -> KeptTurn | None:
        """The turn of the caller's own that an id is about. One that was gone back over is in no conversation more."""
        place = turn_of(id)
        conversation = None if place is None else await conversations.find(place.conversation)
        if place is None or conversation is None or conversation.owner != caller.id:
            return None
        # The newest is looked for first: that is the one people go on from.
        for line in reversed(conversation.lines):
            if line.turn == place.number and line.said.role == "assistant":
                return cls(place, conversation, line)
            if line.turn < place.number:
                break  # Going back, or the number of a turn that there never was.
        return None

    def response(self, model: str) -> ResponseOut:
        """Its answer as the conversation knows it: the model's words, not what they cost or how they were asked for."""
        head = {"created": seconds(self.line.at), "model": model}
        return respond(ResponsesRequest(input=""), self.place, head, status="completed", output=self.items())

    def items(self) -> list[dict[str, Any]]:
        """Its output items."""
        said = self.line.said
        message = {"content": said.content, "tool_calls": said.tool_calls}
        return output_items(self.place, message, self._requests(said.content))

    def _requests(self, content: Any) -> list[ToolRequestOut]:
        """What a message in our own protocol asked for.

        Whether it did is not in its words: for a model with native calls the same text is text. What tells is the
        record of the request, or of its result.
        """
        conversation, number = self.conversation, self.place.number
        if number == conversation.turns:
            ids = [entry.id for entry in conversation.pending.values() if not entry.native]
        else:
            following = (line.said for line in conversation.lines if line.turn == number + 1)
            ids = [said.id or "" for said in following if said.role == "tool_result" and not said.native]
        found = parse_tool_request(content) if ids and isinstance(content, str) else None
        return [ToolRequestOut(ids[0], found.name, found.arguments)] if isinstance(found, ToolRequest) else []


_encode = msgspec.json.Encoder().encode


class AskedResponse:
    """A turn that somebody asks for in this form, and its one answer."""

    def __init__(self, request: ResponsesRequest, parsed: ParsedRequest) -> None:
        self.parsed = parsed
        self._request = request
        self._number = 0
        self._items: dict[str, OpenItem] = {}
        """Those that were opened, by the id of the request they are, or nothing for the message."""
        self._calls: dict[int, CallBeginning] = {}
        """Calls by the index that the model's server gives them."""

    @classmethod
    async def read(cls, body: bytes, turns: Turns, conversations: Conversations, caller: Caller) -> AskedResponse:
        """What a client asks for, with the chat request that it stands for; or a refusal."""
        request, _ = decode_body(body, ResponsesRequest, with_types)
        items = [InputMessage("user", request.input)] if isinstance(request.input, str) else request.input
        turns.check_count(len(items), "input", "send a previous_response_id, and only what is new")
        after = await _previous(request, conversations, caller)
        given = request.conversation
        conversation_id = given.id if isinstance(given, ConversationRef) else given
        if after is not None:
            if given is not None:
                fact = "previous_response_id and conversation both name a conversation"
                raise Refusal(400, "invalid_request", fact, param="conversation", hint="send one of them")
            conversation_id = after.conversation
        if request.store is False:
            if conversation_id is not None:
                fact = "a turn of a conversation is stored with it"
                hint = "leave store out, or send the whole history and no conversation"
                raise Refusal(409, "conversation_is_stored", fact, param="store", hint=hint)
        elif conversation_id is None:
            conversation_id = new_conversation_id()
        raw = as_chat(request, [await _resolved(item, conversations, caller) for item in items])
        if conversation_id is not None:
            raw["conversation_id"] = conversation_id
        number = after.number if after else None
        parsed = ParsedRequest(msgspec.convert(raw, ChatRequest), raw, after=number, brings_history=True)
        return cls(request, parsed)

    def whole(self, turn: OpenTurn, body: Mapping[str, Any], extras: Extras) -> ResponseOut:
        """An answer in the form of chat completions, in this one."""
        self._place = TurnPlace.of(turn)
        choice = body["choices"][0]
        status, details = how_it_ended(choice["finish_reason"])
        output = output_items(self._place, choice["message"], extras.tool_requests, status)
        return respond(
            self._request,
            self._place,
            body,
            status=status,
            output=output,
            usage=count(body["usage"]),
            incomplete_details=details,
            extras=extras,
        )

    async def stream(self, turn: OpenTurn, chunks: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[bytes]:
        """The answer to a turn, from the chunks of the model's server."""
        self._place = TurnPlace.of(turn)
        reply = turn.streamed()
        begun = False
        async for chunk in chunks:
            choice = reply.take(chunk)
            if not begun:
                begun = True
                yield self._begin(reply)
            if choice is not None:
                for event in self._take(choice["delta"]):
                    yield event
        extras = await turn.finish(reply.finish(), reply.usage)
        if not begun:
            yield self._begin(reply)
        status, details = how_it_ended(reply.finish_reason)
        for item in output_items(self._place, reply.message, extras.tool_requests, status):
            # What has not been said of it, and that it is all.
            for event in self._close_message(item) if item["type"] == "message" else self._close_call(item):
                yield event
        output = [entry.item for entry in self._items.values()]
        response = respond(
            self._request,
            self._place,
            reply.head,
            status=status,
            output=output,
            usage=count(reply.usage),
            incomplete_details=details,
            extras=extras,
        )
        yield self._event(f"response.{status}", response=response)

    def broken(self, refusal: Refusal) -> bytes:
        """What a client is told when the stream breaks off in the middle: documents have one form, servers another."""
        error = refusal.body().error
        return self._event("error", code=error.code, message=error.message, param=error.param, error=error)

    def _begin(self, reply: StreamedReply) -> bytes:
        response = respond(self._request, self._place, reply.head, status="in_progress", output=[])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def _take(self, delta: dict[str, Any]) -> Iterator[bytes]:
        if text := delta.get("content"):
            if "" not in self._items:
                yield from self._open_message(text_part(""))
            yield self._say(self._items[""], text)
        for piece in delta.get("tool_calls", ()):
            beginning = self._calls.setdefault(piece["index"], CallBeginning(len(self._calls)))
            yield from self._argue(beginning, piece)

    def _argue(self, beginning: CallBeginning, piece: dict[str, Any]) -> Iterator[bytes]:
        """A piece of a call. Its item is opened with its name, which may come in pieces, before its arguments."""
        beginning.id = beginning.id or piece.get("id") or ""
        function = piece.get("function")
        if not isinstance(function, dict):
            return
        name, arguments = function.get("name"), function.get("arguments")
        beginning.name += name if isinstance(name, str) else ""
        if isinstance(arguments, str) and arguments and beginning.name:
            if beginning.id not in self._items:
                item = call_item(self._place, beginning.number, beginning.id, beginning.name, "", "in_progress")
                yield self._open(beginning.id, item)
            yield self._grow(self._items[beginning.id], arguments)

    def _open_message(self, part: dict[str, Any]) -> Iterator[bytes]:
        yield self._open("", {**message_item(self._place, {}, "in_progress"), "content": []})
        yield self._of(self._items[""], "response.content_part.added", content_index=0, part=part)

    def _open(self, key: str, item: dict[str, Any]) -> bytes:
        entry = self._items[key] = OpenItem(item, len(self._items))
        return self._event("response.output_item.added", output_index=entry.index, item=item)

    def _say(self, entry: OpenItem, text: str) -> bytes:
        entry.sent += len(text)
        return self._of(entry, "response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def _grow(self, entry: OpenItem, arguments: str) -> bytes:
        entry.sent += len(arguments)
        return self._of(entry, "response.function_call_arguments.delta", delta=arguments)

    def _close_message(self, item: dict[str, Any]) -> Iterator[bytes]:
        (part,) = item["content"]
        if "" not in self._items:
            yield from self._open_message({**part, "refusal": ""} if part["type"] == "refusal" else text_part(""))
        entry = self._items[""]
        if part["type"] == "refusal":
            words = part["refusal"]
            yield self._of(entry, "response.refusal.delta", content_index=0, delta=words)
            yield self._of(entry, "response.refusal.done", content_index=0, refusal=words)
        else:
            if rest := part["text"][entry.sent :]:
                yield self._say(entry, rest)
            yield self._of(entry, "response.output_text.done", content_index=0, text=part["text"], logprobs=[])
        yield self._of(entry, "response.content_part.done", content_index=0, part=part)
        yield self._done(entry, item)

    def _close_call(self, item: dict[str, Any]) -> Iterator[bytes]:
        id, arguments = item["call_id"], item["arguments"]
        if id not in self._items:
            yield self._open(id, {**item, "status": "in_progress", "arguments": ""})
        entry = self._items[id]
        item["id"] = entry.item["id"]
        if rest := arguments[entry.sent :]:
            yield self._grow(entry, rest)
        named = {"name": item["name"], "arguments": arguments}
        yield self._of(entry, "response.function_call_arguments.done", **named)
        yield self._done(entry, item)

    def _done(self, entry: OpenItem, item: dict[str, Any]) -> bytes:
        entry.item = item
        return self._event("response.output_item.done", output_index=entry.index, item=item)

    def _of(self, entry: OpenItem, kind: str, **facts: Any) -> bytes:
        return self._event(kind, item_id=entry.item["id"], output_index=entry.index, **facts)

    def _event(self, kind: str, **facts: Any) -> bytes:
        data = _encode({"type": kind, "sequence_number": self._number, **facts})
        self._number += 1
        return write_event(data, kind=kind)


@dataclass(slots=True)
class OpenItem:
    """An item of which something went out."""

    item: dict[str, Any]
    index: int
    sent: int = 0
    """How many characters."""


@dataclass(slots=True)
class CallBeginning:
    """What is known of a call before its arguments come."""

    number: int
    id: str = ""
    name: str = ""
