"""Trying a model: what it can do, found out with one harmless tool that is never run.

The model is asked one question in each protocol, through the very server and the very instructions that a conversation
would use. What it replies is looked at, and nothing of it is carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.errors import LastWordError
from lastword.server import Refusal, build_app
from lastword.session import Session
from lastword.store import MemoryStore
from lastword.talk.apiclient import Api, InProcessWire
from lastword.talk.satellite import Satellite
from lastword.tools import ToolRegistry

if TYPE_CHECKING:
    from lastword.server import Upstream
    from lastword.talk.replies import Protocol

QUESTION = "What time is it in Lisbon? Use the tool."
# One reply of a large model on a small machine, to a question that needs a line.
TRIAL_SECONDS = 120.0

# A request or a script for one tool is a tenth of this. A small model that has begun to tell a story does not come back
# to the tool, and would tell it until its context is full.
MAX_SAID = 1_000

PROTOCOLS: tuple[Protocol, ...] = ("json", "script", "native")


class _Watched:
    """A model whose pieces are counted, and who is not listened to for longer than it takes to ask for a tool."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.complete, self.models, self.abilities = upstream.complete, upstream.models, upstream.abilities
        self.close = upstream.close
        self.most_pieces = 0

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        pieces = 0
        said = ""
        async with aclosing(self._upstream.stream(body)) as chunks:
            async for chunk in chunks:
                deltas = [choice.get("delta") or {} for choice in chunk.get("choices") or ()]
                pieces += any(delta.get("content") or delta.get("tool_calls") for delta in deltas)
                self.most_pieces = max(self.most_pieces, pieces)
                yield chunk
                said += "".join(text for delta in deltas if isinstance(text := delta.get("content"), str))
                # What it thinks aloud first may be long.
                is_thinking = said.lstrip().startswith("<think>") and "</think>" not in said
                if not is_thinking and len(said.rpartition("</think>")[2]) > MAX_SAID:
                    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
                    return


class ModelTrial(msgspec.Struct, frozen=True):
    """What a model was found to do."""

    context_tokens: int | None
    dialect: str
    handled: tuple[Protocol, ...]
    streams: bool = False
    """Whether an answer came in pieces."""
    problem: str | None = None
    """Why it could not be tried to the end."""
    too_long: tuple[Protocol, ...] = ()
    """The protocols whose very instructions are more than it sees."""

    @property
    def words(self) -> str:
        """In a sentence or two."""
        size = f"sees {self.context_tokens} tokens" if self.context_tokens else "does not say how much it sees"
        form = "can be held to a grammar" if self.dialect != "none" else "cannot be held to a grammar"
        if self.problem is not None:
            return f"{size}; {form}; could not be tried: {self.problem}"
        if self.too_long:
            form += f"; sees too little for the instructions of: {', '.join(self.too_long)}"
        if not self.handled:
            return f"{size}; {form}; asked for the tool in no protocol, so tools will not work with it"
        best = f'; protocol = "{self.better}" in a preset suits it' if self.better else ""
        return f"{size}; {form}; asked for a tool in: {', '.join(self.handled)}{best}"

    @property
    def better(self) -> Protocol | None:
        """The protocol that suits it: its own way of calling where it has one, else requests, else scripts."""
        return next((protocol for protocol in ("native", "json", "script") if protocol in self.handled), None)


async def try_model(upstream: Upstream, model: str | None = None) -> ModelTrial:
    """Ask a model for the tool in every protocol. The upstream is the caller's to close."""
    abilities = await upstream.abilities()
    watched = _Watched(upstream)
    app = build_app(MemoryStore(), watched, model=model, log=lambda line: None)
    handled: list[Protocol] = []
    too_long: list[Protocol] = []
    problem: str | None = None
    registry = ToolRegistry()

    @registry.tool(require_approval=False, effect="none")
    def get_time(city: str) -> str:
        """Says what time it is in a city."""
        raise AssertionError("a trial runs nothing")

    for protocol in PROTOCOLS:
        async with Session(registry) as session:
            satellite = Satellite(session, Api(InProcessWire(app)), protocol=protocol)
            satellite.bounds = msgspec.structs.replace(satellite.bounds, reconnects=0, seconds=TRIAL_SECONDS)
            try:
                async with asyncio.timeout(TRIAL_SECONDS):
                    reply = await satellite.first_reply(QUESTION)
            except LastWordError as refusal:
                if refusal.fact.startswith(Refusal.TOO_LONG):
                    too_long.append(protocol)
                    continue
                problem = refusal.fact
                break
            except TimeoutError:
                problem = f"no reply within {TRIAL_SECONDS:g} seconds"
                break
        asked = any(request.name == "get_time" and not request.problem for request in reply.requests)
        # A request is taken where a script is awaited, but shows nothing of scripts.
        if (reply.script is not None and "get_time" in reply.text) if protocol == "script" else asked:
            handled.append(protocol)
    return ModelTrial(
        abilities.context_tokens, abilities.dialect, tuple(handled), watched.most_pieces > 1, problem, tuple(too_long)
    )
