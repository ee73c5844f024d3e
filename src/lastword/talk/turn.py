"""What one turn of the person tells whoever shows the conversation, how far it goes by itself, and what it has used up;
and the presets that decide so: model, persona, auto-approval, protocol, bounds.

What does not live here: the two keys of auto-approval (consent/call.py) and reading `lastword.toml` (config).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from lastword.card import one_line
from lastword.config import PresetConfig, PresetLimits, read_text
from lastword.consent import Preset
from lastword.errors import ConfigError, LastWordError, did_you_mean

if TYPE_CHECKING:
    from lastword.consent import Kind, Outcome
    from lastword.talk.feedback import Images
    from lastword.talk.replies import Protocol, Reply


class Said(msgspec.Struct, frozen=True):
    """A piece of the model's text."""

    text: str


class Repairing(msgspec.Struct, frozen=True):
    """The model is told what was wrong with its message."""

    reason: str
    takes_back: ClassVar = True
    """What was shown of the answer so far does not count."""

    @property
    def words(self) -> str:
        # Its first line says what; the excerpts and hints below it are for whoever writes it again.
        first, _, _ = self.reason.partition("\n")
        return f"The model is told what was wrong with its message: {one_line(first, 300)}"


class Retrying(msgspec.Struct, frozen=True):
    """The server could not be reached or could not answer."""

    problem: LastWordError
    attempt: int
    takes_back: ClassVar = True

    @property
    def words(self) -> str:
        return f"Trying again ({self.attempt}): {one_line(self.problem.fact, 300)}"


class Thought(msgspec.Struct, frozen=True):
    """What the model thought before it replied. It is no part of the reply."""

    text: str


class Outgrown(msgspec.Struct, frozen=True):
    """The conversation has grown longer than the model can see."""

    takes_back: ClassVar = False
    words: ClassVar = (
        "This conversation is longer than the model can see. From now on its oldest turns are left out of what it is "
        "shown; here and in the memory they stay."
    )


class Forgotten(msgspec.Struct, frozen=True):
    """The server does not know the conversation any more."""

    conversation_id: str
    takes_back: ClassVar = False
    words: ClassVar = "The server has forgotten this conversation. A new one begins; tools and state stay."


Heard = Said | Thought | Repairing | Retrying | Outgrown | Forgotten
"""What a satellite tells. All but the model's own words and thoughts have words for the person."""


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
        return self.used_in_words(self.tools) if self.had_tools else ""

    @staticmethod
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


DEFAULT = "default"
CONFIGURED = "lastword"
"""The name under which the server's own choice of a model is asked for."""

Constrain = Literal["auto", "never"]
"""Whether a model that can be held to the form of a request is."""


class ResolvedPreset(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a preset decides."""

    preset: Preset
    protocol: Protocol
    model: str
    persona: str | None
    images: Images = "auto"
    bounds: Bounds
    constrain: Constrain = "auto"

    @classmethod
    def all_of(cls, presets: Mapping[str, PresetConfig], *, is_rehearsal: bool = False) -> dict[str, ResolvedPreset]:
        """The presets that a configuration names, and the default one.

        Those that name no protocol have requests; the rehearsal model can be given scripts as well.
        """
        return {
            name: cls(
                preset=Preset(preset.auto_approve, name),
                protocol=preset.protocol or ("script" if is_rehearsal else "json"),
                model=preset.model or CONFIGURED,
                persona=None if preset.persona is None else read_text(preset.persona, "persona"),
                images=preset.images,
                bounds=_bounds(name, preset.limits),
                constrain=preset.constrain,
            )
            for name, preset in {DEFAULT: PresetConfig(), **presets}.items()
        }

    @staticmethod
    def find(presets: Mapping[str, ResolvedPreset], name: str | None) -> str:
        """The name of the preset to begin with, or an error with the nearest one."""
        if name is None:
            return DEFAULT
        if name not in presets:
            hint = did_you_mean(name, presets) or f"the presets are: {', '.join(presets)}"
            raise ConfigError(f"there is no preset {name}", place="--preset", hint=hint)
        return name


def _bounds(preset: str, limits: PresetLimits) -> Bounds:
    given = {name: value for name in PresetLimits.__struct_fields__ if (value := getattr(limits, name)) is not None}
    for name, value in given.items():
        if value <= 0:
            raise ConfigError(f"preset.{preset}.limits.{name} has to be more than zero")
    return Bounds(**given)
