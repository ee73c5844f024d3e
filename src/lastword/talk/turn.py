"""What one turn of the person tells whoever shows the conversation, how far it goes by itself, and what it has used up.

And what was asked for already in it: nobody is asked twice for what they have refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword import values
from lastword.errors import ArgumentsError, LastWordError
from lastword.journal import Journal, Life, data_of

if TYPE_CHECKING:
    from lastword.consent import Kind, Outcome
    from lastword.talk.replies import Reply
    from lastword.tools import ToolRegistry


class Said(msgspec.Struct, frozen=True):
    """A piece of the model's text."""

    text: str


class Repairing(msgspec.Struct, frozen=True):
    """The model is told what was wrong with its message."""

    reason: str


class Retrying(msgspec.Struct, frozen=True):
    """The server could not be reached or could not answer. What was shown of the answer so far does not count."""

    problem: LastWordError
    attempt: int


class Thought(msgspec.Struct, frozen=True):
    """What the model thought before it replied. It is no part of the reply."""

    text: str


class Outgrown(msgspec.Struct, frozen=True):
    """The conversation has grown longer than the model can see: from now on its oldest turns are not shown to it."""


class Forgotten(msgspec.Struct, frozen=True):
    """The server does not know the conversation any more. A new one has begun."""

    conversation_id: str


Heard = Said | Thought | Repairing | Retrying | Outgrown | Forgotten


RAN: tuple[Kind, ...] = ("succeeded", "failed", "raised", "timed_out", "outcome_unknown")
"""The ends of calls whose code was run, or may have been."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How far the loop goes on by itself before a person has to say something."""

    steps: int = 16
    """Replies of the model. A task that needs more should be looked at in between."""
    seconds: float = 600.0
    """Spent waiting for the model. What tools and people take is not counted: they have limits of their own."""
    tokens: int = 200_000
    """As the model's server counts them, the prompts of every step included."""
    repairs: int = 3
    """How often the model is told that its request or script was wrong. One that does not get it by then will not."""
    reconnects: int = 6
    """Further attempts when the server cannot be reached: together about fifteen seconds. For a whole message, and
    never for a model's server that failed: ours has tried that again itself."""


Bound = Literal["steps", "seconds", "tokens", "repairs", "stop"]
"""What ends the loop: the limits above, and a person who stopped everything."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How far it went. `bound` is None when the model answered in words; `text` is what it said last."""

    text: str
    bound: Bound | None
    words: str
    """For the person, when a bound was reached or nothing was said: what happened, and what now."""
    steps: int
    tokens: int
    seconds: float
    turn: int = 0
    """The turn of the conversation with which it ended."""
    counted: int | None = None
    """The tokens that the model's server counted for it, when it counted every reply."""
    tools: tuple[str, ...] = ()
    """Those that ran for this answer, each once, in the order in which they first did."""
    had_tools: bool = False
    """Whether there were any to use."""

    @property
    def used(self) -> str:
        """What was used for the answer, in words; nothing where there was nothing to use."""
        return used_in_words(self.tools) if self.had_tools else ""


def used_in_words(tools: Sequence[str]) -> str:
    """What was used for an answer, where there were tools to use."""
    return f"Used: {', '.join(tools)}" if tools else "No tool was used for this answer"


NO_WORD = "The model answered without a word. Say something to go on."


class BoundReached(Exception):
    """Inside the loop only: it goes no further."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(bound)
        self.bound: Bound = bound


class Spent:
    """What one turn of the person has used up."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._steps = 0
        self._tokens = 0
        self._counted: int | None = None
        self._repairs = 0
        self._reconnects = 0
        self._seconds = 0.0
        self._tools: dict[str, None] = {}
        self.had_tools = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._bounds.seconds - self._seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time that passes inside."""
        since = time.monotonic()
        try:
            yield
        finally:
            self._seconds += time.monotonic() - since

    def check(self) -> None:
        """Stop before another step when there is nothing left for it."""
        if self._steps >= self._bounds.steps:
            raise BoundReached("steps")
        if self._seconds >= self._bounds.seconds:
            raise BoundReached("seconds")
        if self._tokens >= self._bounds.tokens:
            raise BoundReached("tokens")

    def take(self, reply: Reply) -> None:
        """Count a reply."""
        is_first = self._steps == 0
        self._steps += 1
        self._tokens += reply.tokens
        # A sum of which a part is a guess is a guess.
        so_far = 0 if is_first else self._counted
        self._counted = None if so_far is None or reply.counted is None else so_far + reply.counted

    def ran(self, outcome: Outcome) -> None:
        """Count a call, if it came to running."""
        if outcome.kind in RAN:
            self._tools[outcome.tool] = None

    def repair(self) -> None:
        """Count a mistake that the model is told of."""
        if self._repairs >= self._bounds.repairs:
            raise BoundReached("repairs")
        self._repairs += 1

    def reconnect(self) -> int | None:
        """Count a further attempt to reach the server; which one it is, or None when there were enough."""
        if self._reconnects >= self._bounds.reconnects:
            return None
        self._reconnects += 1
        return self._reconnects

    def ended(self, text: str, bound: Bound | None, turn: int = 0) -> Ended:
        return Ended(
            turn=turn,
            text=text,
            bound=bound,
            words=_stopped(bound, self._bounds) if bound is not None else "" if text.strip() else NO_WORD,
            steps=self._steps,
            tokens=self._tokens,
            counted=self._counted,
            seconds=self._seconds,
            tools=tuple(self._tools),
            had_tools=self.had_tools,
        )


def _stopped(bound: Bound, bounds: Bounds) -> str:
    if bound == "stop":
        return "Stopped: everything was stopped. What was done is kept. Say something to go on."
    limit = getattr(bounds, bound)
    what = {
        "steps": f"the model has replied {limit} times",
        "seconds": f"the model has taken {limit:g} seconds",
        "tokens": f"the model has used {limit} tokens",
        "repairs": f"the model was told {limit} times what was wrong with its request, and still gets it wrong",
    }[bound]
    return f"Stopped: {what}, which is the bound `{bound}`. What was done is kept. Say something to go on."


JUST_DONE = "the same was just done"
"""On the card of a request that repeats the one before it."""

WENT_BACK = "went_back"
"""The kind of the records that say from which turn on a conversation does not count any more."""

# What does not fit fits no better when it is sent again at once.
_USELESS = ("invalid_arguments", "unknown_tool")


class Repetition:
    """The requests and scripts of one message of the person, and what became of them."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._denied: dict[tuple[str, bytes], Outcome] = {}
        self._scripts: dict[str, str] = {}
        self._last: tuple[tuple[str, bytes], Outcome] | None = None

    def outcome(self, name: str, arguments: dict[str, Any]) -> Outcome | None:
        """What became of an equal request that is not to be carried out again."""
        key = self._key(name, arguments)
        if (denied := self._denied.get(key)) is not None:
            return denied
        last = self._last
        return last[1] if last is not None and last[0] == key and last[1].kind in _USELESS else None

    def problem(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What the card of a request has to say of the one before it."""
        key, last = self._key(name, arguments), self._last
        return JUST_DONE if last is not None and last[0] == key and last[1].success else None

    def remember(self, name: str, arguments: dict[str, Any], outcome: Outcome) -> None:
        """A request was carried out."""
        key = self._key(name, arguments)
        self._last = key, outcome
        if outcome.kind == "denied":
            self._denied[key] = outcome

    def script_result(self, script: str) -> str | None:
        """The result of an equal script of which the person denied a call."""
        return self._scripts.get(script.strip())

    async def remember_script(self, script: str, result: str, calls: list[Outcome], journal: Journal) -> None:
        """A script was run."""
        if any(call.kind == "denied" for call in calls):
            self._scripts[script.strip()] = result
        for call in calls:
            self._take(await journal.life(call.call_id))

    async def recall(self, journal: Journal, session_id: str, conversation_id: str, turn: int) -> None:
        """What was denied since this turn, in a process that has died meanwhile."""
        for record in await journal.history(session_id, kind=("requested", WENT_BACK)):
            facts = data_of(record)
            if record.kind == WENT_BACK:
                self._denied.clear()  # Turns that were given out anew begin with nothing.
                continue
            if facts["conversation"] != conversation_id or facts["turn"] < turn:
                continue
            life = await journal.life(record.subject)
            self._take(life)
            number = 0  # Of a script, its calls; they are numbered.
            while (call := await journal.life(f"{record.subject}.{number}")).asked or call.started or call.finished:
                self._take(call)
                number += 1

    def _take(self, life: Life) -> None:
        asked = life.asked
        if asked is not None and life.finished is not None and (outcome := life.outcome()).kind == "denied":
            self._denied[self._key(asked["tool"], asked["arguments"])] = outcome

    @property
    def denied(self) -> frozenset[tuple[str, bytes]]:
        """The calls that the person said no to, as tools and their arguments in canonical form."""
        return frozenset(self._denied)

    def _key(self, name: str, arguments: Any) -> tuple[str, bytes]:
        """What makes two requests the same: what would be shown and run, whether a default was written out or not."""
        tool = self._registry.find(name)
        try:
            return name, values.canonical(arguments if tool is None else values.decode(tool.validate(arguments)))
        except ArgumentsError:
            return name, values.canonical(arguments)
