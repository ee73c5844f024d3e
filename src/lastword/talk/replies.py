"""A model's reply as the satellite has it: text, calls, a script, or a request gone wrong.

It comes in two ways: as the chunks of a turn, or, when the connection was lost on the way, from what the server
remembers of the turn. Both give the same reply. Pure: nothing here is sent or run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from lastword.errors import ScriptError
from lastword.script import Concealed, parse
from lastword.wire import NotARequest, ToolRequest, parse_arguments, parse_tool_request

Protocol = Literal["json", "script", "native"]

SCRIPT = "script"
"""The name under which the server awaits the result of a script."""


class Request(msgspec.Struct, frozen=True):
    """A call that the model asks for. With `problem`, it could not be read and is only to be answered."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    problem: str | None = None

    @property
    def lacks_secret(self) -> bool:
        """Whether a secret stood there that was not kept."""
        return Concealed.NOT_KEPT in self.arguments.values()

    @classmethod
    def read(cls, id: str, name: str, arguments: str) -> Request:
        """A native call."""
        found = parse_arguments(arguments)
        return cls(id, name, problem=found.reason) if isinstance(found, NotARequest) else cls(id, name, found)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said in one turn."""

    turn: int
    """Its number in the conversation: with the request's id it names a call once and for all."""
    text: str = ""
    requests: tuple[Request, ...] = ()
    script: Request | None = None
    """The id under which its result is awaited; the text is the script."""
    malformed_because: str | None = None
    """Why the message nearly is a request, and is none."""
    tokens: int = 0
    counted: int | None = None
    """The tokens that the model's server counted, where it does."""
    reasoning: str = ""
    """What it thought before, where its server tells."""
    left_out_turns: int = 0
    """How many of the oldest turns it was not shown."""
    ignored: tuple[str, ...] = ()
    """The results of ours that the server did not take, by the ids of their requests."""

    @property
    def lacks_secret(self) -> bool:
        """Whether a secret stood in its text that was not kept."""
        return Concealed.NOT_KEPT in self.text

    @property
    def waits(self) -> bool:
        """Whether the model waits for a result."""
        return bool(self.requests or self.script)


class Pieces:
    """Puts a reply together from the chunks of a turn."""

    def __init__(self, turn: int, protocol: Protocol) -> None:
        self._turn = turn
        self._protocol = protocol
        self._text: list[str] = []
        self._calls: dict[int, tuple[str, str]] = {}
        self._extras: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._thoughts: list[str] = []

    def add(self, chunk: dict[str, Any]) -> str:
        """Take the next chunk; gives back what of it is text for the person."""
        piece = ""
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            piece += delta.get("content") or ""
            if isinstance(thought := delta.get("reasoning_content"), str):
                self._thoughts.append(thought)
            for call in delta.get("tool_calls") or ():
                if name := (call.get("function") or {}).get("name"):
                    self._calls.setdefault(call["index"], (call.get("id") or "", name))
        self._text.append(piece)
        if "tool_requests" in chunk:
            self._extras = chunk
        self._usage = chunk.get("usage") or self._usage
        asks = self._extras.get("tool_requests") or self._extras.get("script")
        return "" if asks else piece

    def whole(self) -> Reply:
        """The reply, once every chunk is here."""
        text = "".join(self._text)
        extras = self._extras
        readable = tuple(Request(r["id"], r["name"], r["arguments"]) for r in extras.get("tool_requests") or ())
        problem = extras.get("tool_request_error")
        words = problem["message"] if problem else None
        known = {request.id for request in readable}
        unreadable = tuple(
            Request(id, name, problem=words or "its arguments could not be read")
            for _, (id, name) in sorted(self._calls.items())
            if id not in known
        )
        script = extras.get("script")
        tokens = self._usage.get("total_tokens")
        return Reply(
            turn=self._turn,
            text=text,
            requests=readable + unreadable,
            script=Request(script["id"], SCRIPT) if script else None,
            malformed_because=None
            if unreadable
            else words or near_script(text, self._protocol, bool(readable or script)),
            tokens=tokens if type(tokens) is int else estimate(text),
            counted=tokens if type(tokens) is int and tokens >= 0 else None,
            reasoning="".join(self._thoughts),
            left_out_turns=extras.get("left_out_turns") or 0,
            ignored=tuple(entry.get("id") or "" for entry in extras.get("ignored_tool_results") or ()),
        )


def remembered(conversation: dict[str, Any], protocol: Protocol) -> Reply | None:
    """The last reply of a conversation as the server remembers it; None when there is none."""
    last = next((m for m in reversed(conversation["messages"]) if m["role"] == "assistant"), None)
    if last is None:
        return None
    text = last.get("content") or ""
    pending = conversation["pending"]
    requests: list[Request] = []
    script: Request | None = None
    malformed_because: str | None = None
    if last.get("tool_calls"):
        waiting = {entry["id"] for entry in pending}
        calls = ((call["id"], call["function"]) for call in last["tool_calls"] if call["id"] in waiting)
        requests = [Request.read(id, function["name"], function["arguments"]) for id, function in calls]
    else:
        found = parse_tool_request(text)
        if isinstance(found, ToolRequest):
            requests = [Request(entry["id"], found.name, found.arguments) for entry in pending[:1]]
        elif pending:
            script = Request(pending[0]["id"], SCRIPT)
        elif protocol != "native":
            malformed_because = found.reason if found.near else near_script(text, protocol, asks=False)
    return Reply(
        turn=conversation["turns"],
        text=text,
        requests=tuple(requests),
        script=script,
        malformed_because=malformed_because,
        tokens=estimate(text),
    )


def spoken_in(conversation: dict[str, Any]) -> int:
    """The turn of a conversation in which the person spoke last, or we for them."""
    return max((m["turn"] for m in conversation["messages"] if m["role"] == "user"), default=0)


def was_said(conversation: dict[str, Any], sent: Sequence[dict[str, Any]]) -> bool:
    """Whether the last turn of a conversation holds exactly these messages of ours."""
    last = [m for m in conversation["messages"] if m["turn"] == conversation["turns"] and m["role"] != "assistant"]
    ours = [m for m in sent if m["role"] in ("user", "tool_result")]
    key = [(m["role"], m.get("id") if m["role"] == "tool_result" else None, m["content"]) for m in ours]
    # The server puts results before words, in the order in which they came.
    key.sort(key=lambda entry: entry[0] == "user")
    return [(m["role"], m.get("id"), m["content"]) for m in last] == key


# A statement that only a script would begin with, perhaps inside a fence.
_STATEMENT = re.compile(
    r"\s*(?:(?:```|~~~)[^\n]*\n\s*)?"
    r"(?:(?:LET|SET|(?i:let|set)(?=\s+\w+\s*=\s*(?:TRY\s+)?CALL\b))\s+\w+\s*=|(?:TRY\s+)?CALL\s+\w+\s*\{"
    r"|IF\s.*\sTHEN\b|FOR\s+\w+\s+IN\b|PRINT\s*\()"
)


def near_script(text: str, protocol: Protocol, asks: bool) -> str | None:
    """Why a message that begins like a script is none; None when it is text, or asks for something already.

    The server calls a message text unless all of it parses. A model that meant a script should hear what is wrong.
    """
    if asks or protocol != "script" or not _STATEMENT.match(text):
        return None
    if text.lstrip().startswith(("```", "~~~")):
        return "the script is inside a markdown fence; send it without one"
    try:
        parse(text)
    except ScriptError as problem:
        return str(problem)
    return None


# English and code have about four characters a token; for servers that do not count.
CHARACTERS_PER_TOKEN = 4


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // CHARACTERS_PER_TOKEN + 1
