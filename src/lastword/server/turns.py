"""One turn: messages come in, the model is asked once, its reply is read, and all of it is remembered together.

A reply that asks for a tool goes back to the satellite, and the satellite's next request carries the result; the
server never goes on by itself. It asks a second time in one case: the model's server refused to read the question,
because it was too long or because of the form that the reply should have. Then it is asked once more, with less.

In a stream text goes out as it comes. What may still turn out to be a request is held back until that is decided, and
then goes out whole: as text, or beside the request it is. The turn is remembered before the chunk that says it is
complete.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.errors import NotJSON, did_you_mean
from lastword.server.api_types import (
    CONFIGURED,
    OURS,
    ChatRequest,
    Extras,
    IgnoredResult,
    Model,
    Refusal,
    ToolProtocol,
    kept_keys,
)
from lastword.server.completion import Completion, StreamedReply, Thoughts, garbage, set_aside, set_aside_piece
from lastword.server.conversations import Conversation, Conversations, Turn, settle
from lastword.server.history import ChatMessage, Context, compose, translate, turns_left_out, window, without_repairs
from lastword.server.model_server import ContextExceeded, Upstream, hold, let_go, reasons
from lastword.server.reply import read_reply, watches, without_secrets
from lastword.server.request_messages import (
    Intake,
    ParsedRequest,
    as_they_are,
    decode_body,
    satellite_prompt,
    take_in,
    take_in_history,
    went_on,
)

if TYPE_CHECKING:
    from lastword.server.auth import Caller
    from lastword.server.metrics import Metrics
    from lastword.server.server_limits import ServerLimits

OUR_MODEL = Model(CONFIGURED, owned_by="lastword")
MAX_CONTEXTS = 100
"""Models whose size is kept in mind."""


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
        is_reasoning: bool = False,
    ) -> None:
        self.is_reasoning = is_reasoning
        self.upstream = upstream
        self.limits = limits
        self.metrics = metrics
        self._conversations = conversations
        self._model = model
        self._persona = persona
        self._running: Counter[str] = Counter()
        self._contexts: dict[str, Context] = {}
        self._takes_grammars = True  # Until the model's server has refused one.

    def read(self, body: bytes) -> ParsedRequest:
        """What a client asks for, or a refusal."""
        request, raw = decode_body(body, ChatRequest)
        self.check_count(len(request.messages), "messages", "send a conversation_id, and only what is new")
        return ParsedRequest(request, raw)

    def check_count(self, count: int, param: str, hint: str) -> None:
        """Refuse a request that holds too much."""
        if count > self.limits.messages:
            fact = f"the request holds {count} messages; at most {self.limits.messages} fit"
            raise Refusal(413, "too_many_messages", fact, param=param, hint=hint)

    @contextmanager
    def slot(self, asked: ParsedRequest, caller: Caller) -> Iterator[None]:
        """The slot for a turn while it runs: one of so many of its caller, and the only one of its conversation."""
        id, most = asked.request.conversation_id, self.limits.streams_per_token
        if self._running[caller.id] >= most:
            fact = f"{most} turns of this token are running"
            hint = "wait for one to end, or raise streams_per_token in [server.limits]"
            raise Refusal(429, "too_many_streams", fact, hint=hint, headers={"Retry-After": "1"})
        with nullcontext() if id is None else self._conversations.running(id):
            self._running[caller.id] += 1
            try:
                yield
            finally:
                self._running[caller.id] -= 1
                if not self._running[caller.id]:
                    del self._running[caller.id]

    async def open(self, asked: ParsedRequest, caller: Caller) -> OpenTurn:
        """A turn that may go to the model. Whoever opens it holds the slot, asks the model and finishes it."""
        if asked.request.conversation_id is None:
            return await self._stateless(asked.request, asked.raw)
        return await self._in_conversation(asked, asked.request.conversation_id, caller)

    async def _stateless(self, request: ChatRequest, raw: dict[str, Any]) -> OpenTurn:
        satellite_prompt(request, self.limits)
        kept, ignored = as_they_are(request, raw["messages"])
        persona = [{"role": "system", "content": self._persona}] if self._persona else []
        turn = OpenTurn(self, request, await self._upstream_body(request, raw), ignored)
        turn.body["messages"] = persona + translate(kept)
        turn.constrained = await self._hold(turn)
        return turn

    async def _in_conversation(self, asked: ParsedRequest, id: str, caller: Caller) -> OpenTurn:
        request, raw = asked.request, asked.raw
        conversation = await self._conversations.begin(id, caller.id)
        turns = conversation.turns
        if asked.after not in (None, turns):
            raise went_on()
        if asked.brings_history and not turns:
            intake = take_in_history(request, raw["messages"], self.limits)
        else:
            intake = take_in(request, conversation.pending.values(), self.limits, has_history=turns > 0)
        body = await self._upstream_body(request, raw)
        remembered = Remembered(self._conversations, conversation, caller.id, intake, turns)
        turn = OpenTurn(self, request, body, intake.ignored, remembered)
        turn.constrained = await self._hold(turn)
        self._show(turn)
        return turn

    def _show(self, turn: OpenTurn) -> None:
        """Put into a question what the model gets to see: what has to be there, and of the history what fits."""
        remembered = turn.remembered
        assert remembered is not None
        conversation, intake, limits = remembered.conversation, remembered.intake, self.limits
        lines = window(conversation.lines, limits.history_turns, limits.history_tokens, conversation.chains)
        new = [*intake.earlier, *intake.results]
        fixed = compose(self._persona, intake.prompt, (), new, intake.users, -1)
        context = self.context(turn.body)
        shown = context.fit(
            fixed, without_repairs(lines, conversation.chains.last_repair), is_answering=bool(intake.results)
        )
        last = conversation.chains.last_dependent
        turn.body["messages"] = compose(self._persona, intake.prompt, shown, new, intake.users, last)
        turn.left_out_turns = turns_left_out(conversation.lines, shown)

    async def _hold(self, turn: OpenTurn) -> bool:
        """Hold the model to the form that a request names, if it can be."""
        constrain = turn.request.constrain
        if constrain is None:
            return False
        abilities = await self.upstream.abilities()
        context = self.context(turn.body)
        context.tokens = context.tokens or abilities.context_tokens
        return self._takes_grammars and not self.is_reasoning and hold(turn.body, constrain.grammar, abilities.dialect)

    def ease(self, turn: OpenTurn, problem: Refusal) -> bool:
        """Make a question smaller that the model's server refused to read; whether there was a way."""
        if isinstance(problem, ContextExceeded):
            shown = len(turn.body["messages"])
            self.context(turn.body).refused(turn.body["messages"], problem)
            if turn.remembered is None:
                return False  # The history is the client's, and so is what of it may go.
            self._show(turn)
            return len(turn.body["messages"]) < shown
        if problem.is_upstream and problem.status == 400 and "grammar" in problem.fact and turn.constrained:
            self._takes_grammars = turn.constrained = False
            return let_go(turn.body)
        return False

    def context(self, body: dict[str, Any]) -> Context:
        """What is known of the context of the model that a question is for."""
        if len(self._contexts) > MAX_CONTEXTS:
            self._contexts.clear()  # Clients choose the names.
        return self._contexts.setdefault(str(body.get("model")), Context())

    async def _upstream_body(self, request: ChatRequest, raw: dict[str, Any]) -> dict[str, Any]:
        """The client's own request, with our fields taken out; what the model gets to see is put in later."""
        body = {key: value for key, value in raw.items() if key not in OURS and value is not None}
        if request.model == CONFIGURED:
            body["model"] = await self.default_model()
        if not request.stream:
            body.pop("stream", None)
            body.pop("stream_options", None)
        return body

    def forget_model(self, model: str | None) -> None:
        """Another model answers from now on: this one, where it has a name. What was known was of the one before."""
        self._model = model
        self._contexts.clear()
        self._takes_grammars = True

    async def default_model(self) -> str:
        """The configured model; without one, the first that the model's server has."""
        if self._model is None:
            found = await self.upstream.models()
            if not found:
                raise Refusal(502, "no_model", "the model's server has no model", hint="set model in [server]")
            self._model = found[0]
        return self._model

    async def models(self) -> list[Model]:
        """Our name for the configured model, and the names of the model's server if it answers."""
        try:
            found = await self.upstream.models()
        except Refusal:
            found = []
        return [OUR_MODEL, *(Model(name) for name in found if name != CONFIGURED)]

    async def model(self, name: str) -> Model:
        """One model, by the name that a request would use."""
        if name == CONFIGURED:
            return OUR_MODEL
        found = await self.upstream.models()
        if name not in found:
            hint = did_you_mean(name, [CONFIGURED, *found]) or "GET /v1/models lists them"
            raise Refusal(404, "model_not_found", "the model's server has no such model", param="model", hint=hint)
        return Model(name)


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
        self.metrics = turns.metrics
        self.request = request
        self.body = body
        self.protocol: ToolProtocol = request.tool_protocol or ("native" if request.tools else "json")
        self.remembered = remembered
        self.constrained = False
        self.left_out_turns = 0
        self._turns = turns
        self._ignored = ignored

    async def chunks(self) -> AsyncGenerator[dict[str, Any]]:
        """Ask the model, and give its answer in pieces. Nothing was received when the first of them raises."""
        asked_again = False
        while True:
            async with aclosing(self._turns.upstream.stream(self.body)) as chunks:
                try:
                    first = await anext(chunks, None)
                except Refusal as problem:
                    if asked_again or not self._turns.ease(self, problem):
                        raise
                    asked_again = True
                    continue
                thoughts = Thoughts() if self._reasons else None
                if first is not None:
                    yield set_aside_piece(first, thoughts) if thoughts else first
                async for chunk in chunks:
                    yield set_aside_piece(chunk, thoughts) if thoughts else chunk
                return

    def streamed(self) -> StreamedReply:
        """What the chunks are put together in."""
        return StreamedReply(watches(self.protocol), self._turns.limits.reply_bytes)

    async def _complete(self) -> Completion:
        try:
            return await self._turns.upstream.complete(self.body)
        except Refusal as problem:
            if not self._turns.ease(self, problem):
                raise
        return await self._turns.upstream.complete(self.body)

    @property
    def _reasons(self) -> bool:
        return self._turns.is_reasoning or reasons(str(self.body.get("model", "")))

    @property
    def number(self) -> int:
        """Which turn of its conversation it will be; 0 for one that is not kept."""
        return 0 if self.remembered is None else self.remembered.turns + 1

    async def answer(self) -> tuple[dict[str, Any], Extras]:
        """Ask the model, and give back its whole answer and our fields."""
        start = time.perf_counter()
        try:
            completion = await self._complete()
        finally:
            self.metrics.count_asking(time.perf_counter() - start)
        if self._reasons:
            message = set_aside(completion.message)
            choice = {**completion.body["choices"][0], "message": message}
            completion = Completion({**completion.body, "choices": [choice]}, message)
        return completion.body, await self.finish(completion.message, completion.body["usage"])

    async def finish(self, message: dict[str, Any], usage: dict[str, Any] | None) -> Extras:
        """Read the model's message and remember the turn. After this the client may know of it."""
        at = time.time_ns() // 1000
        reading = read_reply(message, self.protocol, at, stateless=self.remembered is None)
        remembered = self.remembered
        if remembered is not None:
            intake = remembered.intake
            secrets = self.request.secret_arguments or {}
            kept, pending = without_secrets(message, reading.pending, self.protocol, secrets)
            said = ChatMessage(
                "assistant", kept.get("content"), tool_calls=kept.get("tool_calls"), others=kept_keys(kept)
            )
            turn = Turn(
                said=[*intake.earlier, *intake.results, *intake.users, said],
                settled=settle(remembered.conversation.pending.values(), intake.answered),
                pending=pending,
                after=remembered.turns,
            )
            try:
                await remembered.conversations.commit(remembered.conversation, remembered.owner, turn)
            except NotJSON:
                # Of what came in, all was checked; of the model's message, keys that we do not know are kept unread.
                raise garbage() from None
        self.metrics.count_reading(reading, self._ignored)
        self.metrics.count_tokens(usage)
        self._turns.context(self.body).counted(self.body["messages"], usage)
        return Extras(
            conversation_id=self.request.conversation_id,
            tool_request=reading.requests[0] if reading.requests else None,
            tool_requests=reading.requests,
            tool_request_error=reading.error,
            script=reading.script,
            ignored_tool_results=self._ignored,
            constrained=self.constrained,
            left_out_turns=self.left_out_turns,
        )
