"""How far a satellite's loop goes by itself, and what one turn of the person has used up. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec

from lastword.talk.replies import Reply


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
    """Further attempts when the server or the model cannot be reached: together about fifteen seconds."""


Bound = Literal["steps", "seconds", "tokens", "repairs", "stop"]
"""What ends the loop: the limits above, and a person who stopped everything."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How far it went. `bound` is None when the model answered in words; `text` is what it said last."""

    text: str
    bound: Bound | None
    words: str
    """For the person, when a bound was reached: which, and what now."""
    steps: int
    tokens: int
    seconds: float


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
        self._repairs = 0
        self._seconds = 0.0

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
        self._steps += 1
        self._tokens += reply.tokens

    def repair(self) -> None:
        """Count a mistake that the model is told of."""
        if self._repairs >= self._bounds.repairs:
            raise BoundReached("repairs")
        self._repairs += 1

    def ended(self, text: str, bound: Bound | None) -> Ended:
        return Ended(
            text=text,
            bound=bound,
            words="" if bound is None else _stopped(bound, self._bounds),
            steps=self._steps,
            tokens=self._tokens,
            seconds=self._seconds,
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
