"""The Responses form: what comes in and goes out, as types; its ids; and the chat request that a request stands for.

The OpenAPI document is made from the types. Unlike a chat request, which is passed on with whatever it holds, this form
is translated. So what is not named here is refused: it would be dropped in silence.

An id says which turn of which conversation it is about, and what of it. So it needs no record of its own: what it names
is read from the conversation, by whoever may read that. A turn that was not kept has the number 0, which no kept one
has, and its ids lead nowhere.

What the model asked for and what came of it are messages again, in the form that the model's protocol has for them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from lastword.server.api_types import CONFIGURED, UNNAMED, ConversationId, Extras, ToolProtocol
from lastword.wire import NotARequest, parse_arguments

if TYPE_CHECKING:
    from lastword.server.turns import OpenTurn

# Fields that mean the same in both forms, and have the same name.
_SAME = ("temperature", "top_p", "parallel_tool_calls", "user", "safety_identifier", "prompt_cache_key", "service_tier")
_OURS = ("tool_protocol", "secret_arguments")

ResponseId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^resp_[0-9]{1,9}_[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$(?!\n)",
        max_length=143,
        description="The id of an answer. It goes on from there, with everything said before.",
    ),
]

MAX_INTEGER = 2**53
"""What every reader of JSON keeps as it is. Beyond 64 bits a number is read as no integer at all."""


class InputText(msgspec.Struct, frozen=True, tag="input_text"):
    """A piece of text from the client."""

    text: str


class OutputText(msgspec.Struct, frozen=True, tag="output_text"):
    """A piece of text from the model, sent back."""

    text: str


class RefusalText(msgspec.Struct, frozen=True, tag="refusal"):
    """The model's words of refusal, sent back."""

    refusal: str


class InputImage(msgspec.Struct, frozen=True, tag="input_image"):
    """A picture, by its address. Files that OpenAI keeps are not here."""

    image_url: str
    detail: str | None = None


class InputFile(msgspec.Struct, frozen=True, tag="input_file"):
    """A file, with its contents."""

    file_data: str
    filename: str | None = None


InputPart = InputText | OutputText | RefusalText | InputImage | InputFile


class InputMessage(msgspec.Struct, frozen=True, tag="message"):
    """Words. `type` may be left out. Of pictures and files, those of the user count."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputPart]


class InputCall(msgspec.Struct, frozen=True, tag="function_call"):
    """What the model asked for, sent back."""

    call_id: str
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: str


class InputCallOutput(msgspec.Struct, frozen=True, tag="function_call_output"):
    """A tool's result, honoured while that request is pending."""

    call_id: str
    output: str | list[InputText]


class ItemReference(msgspec.Struct, frozen=True, tag="item_reference"):
    """An output item of an earlier answer, by its id."""

    id: str


InputItem = InputMessage | InputCall | InputCallOutput | ItemReference


class ResponsesTool(msgspec.Struct, frozen=True):
    """A function that the client can run. The server runs none, so there are no others."""

    type: Literal["function"]
    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChosenTool(msgspec.Struct, frozen=True):
    """The one function that the model has to call."""

    type: Literal["function"]
    name: str


class PlainFormat(msgspec.Struct, frozen=True, tag="text"):
    """Words."""


class JsonFormat(msgspec.Struct, frozen=True, tag="json_object"):
    """Any JSON object."""


class SchemaFormat(msgspec.Struct, frozen=True, tag="json_schema"):
    """JSON of a certain form."""

    name: str
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of the words."""

    format: PlainFormat | JsonFormat | SchemaFormat | None = None
    verbosity: str | None = None


class ReasoningOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hard to think. There are no summaries here."""

    effort: str | None = None
    summary: None = None


class ConversationRef(msgspec.Struct, frozen=True):
    """A conversation by its id."""

    id: ConversationId


class ResponseStreamOptions(msgspec.Struct, frozen=True):
    """Accepted, and without effect: nothing is padded here."""

    include_obfuscation: bool | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI's request as far as it is about words and functions, with two fields of ours."""

    input: (
        Annotated[str, msgspec.Meta(description="What the user says.")]
        | Annotated[list[InputItem], msgspec.Meta(min_length=1)]
    )
    model: Annotated[str, msgspec.Meta(description="`lastword` is the configured model.")] = CONFIGURED
    instructions: Annotated[str, msgspec.Meta(description="A prompt for this turn alone.")] | None = None
    previous_response_id: ResponseId | None = None
    conversation: ConversationId | ConversationRef | None = None
    store: (
        Annotated[bool, msgspec.Meta(description="Whether it can be gone on with. Yes, unless told not to.")] | None
    ) = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    tools: list[ResponsesTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    truncation: Literal["auto", "disabled"] | None = None
    include: list[Literal["reasoning.encrypted_content"]] | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    tool_protocol: ToolProtocol | None = None
    secret_arguments: dict[str, list[str]] | None = None


class IncompleteDetails(msgspec.Struct, frozen=True):
    """Why an answer breaks off."""

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseOut(Extras, frozen=True, kw_only=True):
    """OpenAI's answer and our fields. `output` has what the model said, and each function that it asks for."""

    id: str
    created_at: int
    model: str
    status: Literal["in_progress", "completed", "incomplete"]
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None = None
    incomplete_details: IncompleteDetails | None = None
    error: None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: ConversationRef | None = None
    store: bool = True
    tools: list[ResponsesTool]
    tool_choice: str | ChosenTool = "auto"
    parallel_tool_calls: bool = True
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    truncation: str = "disabled"
    metadata: dict[str, str]
    object: Literal["response"] = "response"


_PLACE = re.compile(r"(resp|msg|fc)_(\d{1,9})_([A-Za-z0-9][A-Za-z0-9_.:-]{0,131})")


def new_conversation_id() -> str:
    """For a conversation that is known by the ids of its answers."""
    return UNNAMED + secrets.token_hex(12)


class TurnPlace(msgspec.Struct, frozen=True):
    """A turn of a conversation."""

    number: int
    conversation: str

    @classmethod
    def of(cls, turn: OpenTurn) -> TurnPlace:
        """Where a turn will be found. One that is not kept will not."""
        return cls(turn.number, turn.request.conversation_id or secrets.token_hex(12))

    @property
    def response_id(self) -> str:
        """Of the answer that it ended with."""
        return f"resp_{self.number}_{self.conversation}"

    @property
    def message_id(self) -> str:
        """Of what the model said in it."""
        return f"msg_{self.number}_{self.conversation}"

    def call_id(self, place: int) -> str:
        """Of the item in which the model asks for a tool; the request has an id of its own."""
        # The number stands last but for the conversation, which may have anything in it.
        return f"fc_{self.number}_{place}.{self.conversation}"


def turn_of(id: str) -> TurnPlace | None:
    """The turn that an id is about; None when it is not one of ours."""
    found = _PLACE.fullmatch(id)
    if found is None:
        return None
    kind, number, rest = found.groups()
    if kind == "fc":
        place, dot, rest = rest.partition(".")
        if not (dot and place.isdigit() and rest):
            return None
    return TurnPlace(int(number), rest)


def with_types(raw: Any) -> Any:
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


def as_chat(request: ResponsesRequest, items: Sequence[InputItem]) -> dict[str, Any]:
    """The chat request that a request in this form stands for; `items` are those of its input."""
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
