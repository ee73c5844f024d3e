"""One turn: messages come in, the model is asked once, its reply is read, and all of it is remembered together.

The model is never asked a second time by the server. A reply that asks for a tool goes back to the satellite, and the
satellite's next request carries the result.

What does not live here: how an answer is cut into pieces for a stream (stream.py).
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from lastword.server.auth import Caller
from lastword.server.conversations import ChatMessage, Conversation, Conversations, Running, Turn, settle
from lastword.server.intake import Intake, as_they_are, satellite_prompt, take_in
from lastword.server.limits import ServerLimits
from lastword.server.metrics import Metrics
from lastword.server.prompt import compose, translate, window
from lastword.server.refusal import Refusal
from lastword.server.reply import read_reply
from lastword.server.upstream import Upstream
from lastword.server.wire import OURS, ChatRequest, Extras, IgnoredResult, ToolProtocol

CONFIGURED = "lastword"
"""The name under which a request asks for the model that the operator chose."""


class Turns:
    """Carries out turns."""

    def __init__(
        self,
        upstream: Upstream,
        conversations: Conversations,
        *,
        model: str | None,
        persona: str | None,
        limits: ServerLimits,
        metrics: Metrics,
    ) -> None:
        self.upstream = upstream
        self.limits = limits
        self.metrics = metrics
        self._conversations = conversations
        self._model = model
        self._persona = persona
        self._running: dict[str, int] = {}

    def read(self, body: bytes) -> ParsedRequest:
        """What a client asks for, or a refusal."""
        try:
            raw = msgspec.json.decode(body)
            request = msgspec.convert(raw, ChatRequest)
        except msgspec.ValidationError as problem:
            fact, _, place = str(problem).partition(" - at `$.")
            param = place.rstrip("`").split("[")[0].split(".")[0] or None
            raise Refusal(400, "invalid_request", _in_words(fact, place), param=param) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise Refusal(400, "invalid_json", f"the body is not JSON: {problem}") from None
        if len(request.messages) > self.limits.messages:
            raise Refusal(
                413,
                "too_many_messages",
                f"the request holds {len(request.messages)} messages; at most {self.limits.messages} fit",
                param="messages",
                hint="send a conversation_id, and only what is new",
            )
        return ParsedRequest(request, raw)

    def slot(self, asked: ParsedRequest, caller: Caller) -> TurnSlot:
        """The slot for a turn, held while it runs."""
        id = asked.request.conversation_id
        running = None if id is None else self._conversations.running(id)
        return TurnSlot(self._running, caller.id, self.limits.streams_per_token, running)

    async def open(self, asked: ParsedRequest, caller: Caller) -> OpenTurn:
        """A turn that may go to the model. Whoever opens it holds the slot, asks the model and finishes it."""
        if asked.request.conversation_id is None:
            return await self._stateless(asked.request, asked.raw)
        return await self._in_conversation(asked.request, asked.raw, asked.request.conversation_id, caller)

    async def _stateless(self, request: ChatRequest, raw: dict[str, Any]) -> OpenTurn:
        satellite_prompt(request, self.limits)
        kept, ignored = as_they_are(request, raw["messages"])
        persona = [{"role": "system", "content": self._persona}] if self._persona else []
        messages = persona + translate(kept)
        return OpenTurn(self, request, await self._upstream_body(request, raw, messages), ignored)

    async def _in_conversation(self, request: ChatRequest, raw: dict[str, Any], id: str, caller: Caller) -> OpenTurn:
        conversation = await self._conversations.begin(id, caller.id)
        turns = conversation.turns
        intake = take_in(request, conversation.pending.values(), self.limits)
        limits = self.limits
        history = window(conversation.lines, limits.history_turns, limits.history_tokens, conversation.weight)
        messages = compose(self._persona, intake.prompt, history, intake.results, intake.users)
        body = await self._upstream_body(request, raw, messages)
        remembered = Remembered(self._conversations, conversation, caller.id, intake, turns)
        return OpenTurn(self, request, body, intake.ignored, remembered)

    async def _upstream_body(
        self, request: ChatRequest, raw: dict[str, Any], messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The client's own request, with our fields taken out and our messages put in."""
        body = {key: value for key, value in raw.items() if key not in OURS and value is not None}
        body["messages"] = messages
        if request.model == CONFIGURED:
            body["model"] = await self.default_model()
        if not request.stream:
            body.pop("stream", None)
            body.pop("stream_options", None)
        return body

    async def default_model(self) -> str:
        """The configured model; without one, the first that the model's server has."""
        if self._model is None:
            found = await self.upstream.models()
            if not found:
                raise Refusal(502, "no_model", "the model's server has no model", hint="set model in [server]")
            self._model = found[0]
        return self._model


class ParsedRequest(msgspec.Struct, frozen=True):
    """A request as we understand it, and as it came."""

    request: ChatRequest
    raw: dict[str, Any]


class TurnSlot:
    """One of the turns that a caller runs at the same time, and the only one of its conversation."""

    def __init__(self, running: dict[str, int], caller: str, limit: int, conversation: Running | None) -> None:
        self._running = running
        self._caller = caller
        self._limit = limit
        self._conversation = conversation

    def __enter__(self) -> None:
        count = self._running.get(self._caller, 0)
        if count >= self._limit:
            raise Refusal(
                429,
                "too_many_streams",
                f"{self._limit} turns of this token are running",
                hint="wait for one to end, or raise streams_per_token in [server.limits]",
                headers={"Retry-After": "1"},
            )
        if self._conversation is not None:
            self._conversation.__enter__()
        self._running[self._caller] = count + 1

    def __exit__(self, *_: object) -> None:
        left = self._running[self._caller] - 1
        if left:
            self._running[self._caller] = left
        else:
            del self._running[self._caller]
        if self._conversation is not None:
            self._conversation.__exit__()


class Remembered(msgspec.Struct, frozen=True):
    """The conversation that a turn belongs to, and what came in for it."""

    conversations: Conversations
    conversation: Conversation
    owner: str
    intake: Intake
    turns: int
    """Those that the model was asked with."""


class OpenTurn:
    """A turn between the question and the answer."""

    def __init__(
        self,
        turns: Turns,
        request: ChatRequest,
        body: dict[str, Any],
        ignored: list[IgnoredResult],
        remembered: Remembered | None = None,
    ) -> None:
        self.limits = turns.limits
        self.metrics = turns.metrics
        self.request = request
        self.body = body
        self.protocol: ToolProtocol = request.tool_protocol or ("native" if request.tools else "json")
        self._upstream = turns.upstream
        self._ignored = ignored
        self._remembered = remembered

    async def answer(self) -> dict[str, Any]:
        """Ask the model and give back its whole answer with our fields in it."""
        start = time.perf_counter()
        try:
            completion = await self._upstream.complete(self.body)
        finally:
            self.metrics.count_asking(time.perf_counter() - start)
        extras = await self.finish(completion.message)
        self.metrics.count_tokens(completion.body["usage"])
        return {**completion.body, **msgspec.to_builtins(extras)}

    async def finish(self, message: dict[str, Any]) -> Extras:
        """Read the model's message and remember the turn. After this the client may know of it."""
        at = time.time_ns() // 1000
        reading = read_reply(message, self.protocol, at, stateless=self._remembered is None)
        remembered = self._remembered
        if remembered is not None:
            intake = remembered.intake
            said = ChatMessage("assistant", message.get("content"), tool_calls=message.get("tool_calls"))
            turn = Turn(
                said=[*intake.results, *intake.users, said],
                settled=settle(remembered.conversation.pending.values(), intake.answered),
                pending=reading.pending,
                after=remembered.turns,
            )
            await remembered.conversations.commit(remembered.conversation, remembered.owner, turn)
        self.metrics.count_reading(reading, self._ignored)
        return Extras(
            conversation_id=self.request.conversation_id,
            tool_request=reading.requests[0] if reading.requests else None,
            tool_requests=reading.requests,
            tool_request_error=reading.error,
            script=reading.script,
            ignored_tool_results=self._ignored,
        )


def _in_words(fact: str, place: str) -> str:
    return f"{place.rstrip('`')}: {fact}" if place else fact
