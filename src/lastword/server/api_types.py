"""What comes in and what goes out, as types: requests, answers and errors. The OpenAPI document is made from them.

A request is checked against these types and then passed on as it came: what OpenAI's dialect adds tomorrow, and what
one model's server knows and another does not, is not ours to drop. An error has the shape that OpenAI's clients read.

What does not live here: the types of the newer form (responses_form.py), and deciding to refuse.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lastword.errors import LastWordError
from lastword.wire import Why

# No leading dot or dash: an id is also a part of a path and an argument on a command line.
ConversationId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$(?!\n)",
        max_length=128,
        description="Chosen by the client. An unknown one begins a conversation.",
        examples=["kitchen-2026-11-15"],
    ),
]
CONFIGURED = "lastword"
"""The name under which a request asks for the model that the operator chose."""
UNNAMED = "r-"
"""How the ids of conversations begin that nobody chose an id for: their answers have ids of their own."""
ToolProtocol = Literal["json", "script", "native"]


class TextPart(msgspec.Struct, frozen=True):
    """A piece of text, for clients that send content in parts."""

    type: Literal["text"]
    text: str


class SystemMessage(msgspec.Struct, frozen=True, tag="system", tag_field="role"):
    """A satellite's own prompt."""

    content: str | list[TextPart]


class DeveloperMessage(msgspec.Struct, frozen=True, tag="developer", tag_field="role"):
    """The newer name of a system message."""

    content: str | list[TextPart]


class UserMessage(msgspec.Struct, frozen=True, tag="user", tag_field="role"):
    """What the person said. Parts go to the model's server as they are."""

    content: str | Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    repairs: Annotated[
        bool,
        msgspec.Meta(
            description="Whether it only says what was wrong with the model's last message. The model is shown both "
            "once; the conversation keeps them."
        ),
    ] = False


class FunctionCall(msgspec.Struct, frozen=True):
    """The inside of a native tool call."""

    name: str
    arguments: str = ""


class ToolCall(msgspec.Struct, frozen=True):
    """A native tool call."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant", tag_field="role"):
    """What the model said. Ignored in a conversation, whose history is the server's."""

    content: str | list[TextPart] | None = None
    tool_calls: list[ToolCall] | None = None


class ToolResultMessage(msgspec.Struct, frozen=True, tag="tool_result", tag_field="role"):
    """A tool's result, honoured while that request is pending."""

    name: str
    content: str | list[TextPart]
    id: str | None = None


class ToolMessage(msgspec.Struct, frozen=True, tag="tool", tag_field="role"):
    """The same in OpenAI's form."""

    tool_call_id: str
    content: str | list[TextPart]


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolResultMessage | ToolMessage


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream should carry besides the answer."""

    include_usage: bool | None = None


class Constrain(msgspec.Struct, frozen=True):
    """A form for the reply: as a grammar (GBNF), and as a JSON Schema. The model's server is sent what it can use."""

    grammar: str | None = None
    schema: dict[str, Any] | None = None


class ChatRequest(msgspec.Struct, frozen=True):
    """OpenAI's request, with three fields of ours. Fields that are not named here go to the model's server."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    model: Annotated[str, msgspec.Meta(description="`lastword` is the configured model.")] = CONFIGURED
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1, description="One answer a turn.")] | None = None
    tools: list[dict[str, Any]] | None = None
    conversation_id: ConversationId | None = None
    tool_protocol: ToolProtocol | None = None
    secret_arguments: (
        Annotated[
            dict[str, list[str]],
            msgspec.Meta(description="By tool, the arguments whose values the server must not remember."),
        ]
        | None
    ) = None
    constrain: (
        Annotated[
            Constrain, msgspec.Meta(description="A form that the reply should have, if the model can be held to one.")
        ]
        | None
    ) = None


OURS = ("conversation_id", "tool_protocol", "secret_arguments", "constrain")
"""The fields of a request that the model's server never sees."""


class ToolRequestOut(msgspec.Struct, frozen=True):
    """The model asks for a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class ToolRequestError(msgspec.Struct, frozen=True):
    """The model nearly asked for a tool. `message` is made to be shown to it."""

    code: Why
    message: str


class ScriptOut(msgspec.Struct, frozen=True):
    """The model wrote a script. Its result is sent as that of a tool named `script`."""

    id: str
    text: str


class IgnoredResult(msgspec.Struct, frozen=True):
    """A result that was not passed on, and why."""

    reason: Literal["nothing_pending", "other_request", "duplicate"]
    name: str | None = None
    id: str | None = None


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """What we add to OpenAI's answer; in a stream, to its last chunks."""

    conversation_id: str | None = None
    tool_request: ToolRequestOut | None = None
    tool_requests: list[ToolRequestOut] = []
    tool_request_error: ToolRequestError | None = None
    script: ScriptOut | None = None
    ignored_tool_results: list[IgnoredResult] = []
    constrained: bool = False
    """Whether the model was held to the form that the request named."""
    left_out_turns: int = 0
    """How many of the oldest turns of the conversation the model was not shown, because they do not fit."""


class AnswerMessage(msgspec.Struct, frozen=True):
    """What the model said."""

    role: Literal["assistant"]
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class AnswerChoice(msgspec.Struct, frozen=True):
    """The one answer."""

    index: int
    message: AnswerMessage
    finish_reason: str | None


class ChatResponse(Extras, frozen=True, kw_only=True):
    """OpenAI's answer and our fields. What else the model's server says in its answer is passed on."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: Annotated[list[AnswerChoice], msgspec.Meta(min_length=1)]
    usage: dict[str, Any] | None = None


class PendingRequest(msgspec.Struct, frozen=True):
    """A request that waits for its result. The digest is None when the model's arguments could not be read."""

    id: str
    name: str
    digest: str | None
    native: bool
    created: int

    def shown(self) -> PendingOut:
        """As a client sees it."""
        return PendingOut(self.id, self.name, self.digest, seconds(self.created))


class PendingOut(msgspec.Struct, frozen=True):
    """A request that waits for its result."""

    id: str
    name: str
    arguments_digest: str | None
    created: int


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation, as the server remembers it."""

    role: Literal["user", "assistant", "tool_result"]
    content: Any = None
    turn: int
    created: int
    name: str | None = None
    id: str | None = None
    tool_calls: list[ToolCall] | None = None


class ConversationSummary(msgspec.Struct, frozen=True):
    """A conversation in the list."""

    id: str
    created: int
    object: Literal["conversation"] = "conversation"


class ConversationList(msgspec.Struct, frozen=True):
    """A page of conversations, oldest first. `next` is the cursor of the following page."""

    data: list[ConversationSummary]
    next: int | None = None
    object: Literal["list"] = "list"


class ConversationOut(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation: the newest messages, oldest first, and what is pending."""

    id: str
    created: int
    turns: int
    messages: list[StoredMessage]
    has_more: bool
    pending: list[PendingOut]
    object: Literal["conversation"] = "conversation"


class RewindRequest(msgspec.Struct, frozen=True):
    """Where to go on from."""

    turns: Annotated[int, msgspec.Meta(ge=0, description="The turns that stay; those after them count no more.")]


class Rewound(msgspec.Struct, frozen=True):
    """A conversation goes on from an earlier turn."""

    id: str
    turns: int
    """The number of its last turn now: going back counts as one."""
    object: Literal["conversation.rewound"] = "conversation.rewound"


class Deleted(msgspec.Struct, frozen=True):
    """A conversation is gone."""

    id: str
    deleted: Literal[True] = True
    object: Literal["conversation.deleted"] = "conversation.deleted"


# Names of models have slashes and colons in them. Whatever they are, they are text that stands in an address.
ModelName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@+-]*$", max_length=200)]


class Model(msgspec.Struct, frozen=True):
    """A model that can be named in a request."""

    id: str
    created: int = 0
    owned_by: str = "upstream"
    object: Literal["model"] = "model"


class ModelList(msgspec.Struct, frozen=True):
    """All of them."""

    data: list[Model]
    object: Literal["list"] = "list"


class Health(msgspec.Struct, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


def text_of(content: str | list[TextPart] | None) -> str:
    """Content as one text."""
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part.text for part in content)


KNOWN_KEYS = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "annotations", "audio", "name"})


def kept_keys(message: dict[str, Any]) -> dict[str, Any] | None:
    """What a message has besides what we know: some servers want it back with the results of its calls."""
    kept = {key: value for key, value in message.items() if key not in KNOWN_KEYS and value is not None}
    return kept or None


def seconds(at: int) -> int:
    """The store's microseconds as OpenAI's seconds."""
    return at // 1_000_000


TYPES = {  # Of every other status: invalid_request_error.
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "upstream_error",
    503: "server_error",
    504: "upstream_error",
}


class ErrorDetail(msgspec.Struct, frozen=True):
    """What went wrong."""

    message: str
    type: str
    code: str
    param: str | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """Every answer that is not a success."""

    error: ErrorDetail


class Refusal(LastWordError):
    """A request that gets an error for an answer. `code` is for programs, the text for people."""

    TOO_LONG = "the conversation is longer than the model can see"
    """How the fact begins when it was too much for the model: the code may be that of the model's server."""

    def __init__(
        self,
        status: int,
        code: str,
        fact: str,
        *,
        param: str | None = None,
        hint: str | None = None,
        headers: dict[str, str] | None = None,
        is_upstream: bool = False,
    ) -> None:
        super().__init__(fact, hint=hint)
        self.is_upstream = is_upstream or code.startswith("upstream_") or code == "no_model"
        """Whether the model's server is to blame."""
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers or {}

    def body(self) -> ErrorBody:
        """As it goes over the wire."""
        return ErrorBody(ErrorDetail(str(self), TYPES.get(self.status, "invalid_request_error"), self.code, self.param))


class ClientGone(LastWordError):
    """Nobody is left to answer to."""
