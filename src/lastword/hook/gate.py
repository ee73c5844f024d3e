"""The program that an agent starts before and after each call of a tool: `lastword hook claude | codex | gemini`.

It reads one event, answers it in the agent's form, and ends. To these agents only the exit code 2 is a no: whatever
goes wrong here ends with it, and with the reason on standard error. Our deadline comes before theirs, since a hook that
they have given up on stops nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from lastword.display import visible
from lastword.errors import LastWordError
from lastword.hook.agents import AGENTS, MARGIN_SECONDS, Agent
from lastword.hook.event import MAX_INPUT_BYTES, NO_OBJECTION, HookInput, answer, read_input
from lastword.lazily import load_later

if TYPE_CHECKING:
    from lastword.hook import agent_tool, decision
else:
    # What only looks is let through before the memory and an event loop are loaded.
    decision = load_later("lastword.hook.decision")
    # Where there are no policy files nothing of this is needed, and an agent waits.
    agent_tool = load_later("lastword.hook.agent_tool")

DENY = 2

# The last resort comes this much after our own end.
LAST_RESORT_SECONDS = 20.0
# What the agent is told of a trouble of ours. The rest is nobody's reading.
MAX_WORDS = 2_000

USAGE = "lastword hook claude | codex | gemini [--within SECONDS] [--store ADDRESS] [--person NAME] [--answerer NAME]…"


class Options:
    """What stands behind the name of the agent."""

    def __init__(self, agent: Agent, arguments: Sequence[str]) -> None:
        self.within_seconds = max(agent.default_seconds - MARGIN_SECONDS, agent.default_seconds / 2)
        self.store: str | None = None
        self.person = ""
        """Whose cards these are, on a memory that several people share."""
        self.answerers: list[str] = []
        """Who else may answer them."""
        rest = list(arguments)
        while rest:
            name, equals, value = rest.pop(0).partition("=")
            if name not in ("--within", "--store", "--person", "--answerer") or not (equals or rest):
                raise LastWordError(f"{name[:60]} is not understood here", place="lastword hook", hint=USAGE)
            value = value if equals else rest.pop(0)
            if name == "--store":
                self.store = value
            elif name == "--person":
                self.person = value
            elif name == "--answerer":
                self.answerers.append(value)
            else:
                self.within_seconds = _seconds(value)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise LastWordError(f"{text[:60]} is no number of seconds", place="--within", hint="up to a day: 86400")
    return seconds


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer one event and end the process. Nothing that happens here ends it with anything but 0 and 2."""
    try:
        printed = run(arguments, sys.stdin.buffer)
        sys.stdout.write(printed)
        sys.stdout.flush()
    except BaseException as problem:
        refuse(problem)
    # Not by way of the interpreter's own end, where a thread or a flush may still fail and say 1.
    os._exit(0)


def refuse(problem: BaseException) -> NoReturn:
    """End with a no, and the reason for whoever reads it."""
    if isinstance(problem, LastWordError):
        words = str(problem)
    elif isinstance(problem, KeyboardInterrupt):
        words = "the question was broken off"
    else:
        words = f"lastword itself failed: {type(problem).__name__}: {problem}"
    try:
        sys.stderr.write(f"lastword: nothing was allowed. {visible(words[:MAX_WORDS])}\n")
        sys.stderr.flush()
    finally:
        os._exit(DENY)


def run(arguments: Sequence[str], stdin: Any) -> str:
    """What to print for the agent. Raises whatever goes wrong."""
    agent = AGENTS[arguments[0]]
    options = Options(agent, arguments[1:])
    _set_last_resort(options.within_seconds)
    said = read_input(agent, stdin.read(MAX_INPUT_BYTES + 1))
    if said.own_tool in agent.looks and not (said.is_before and (said.why_unclear() or is_ruled(said))):
        return answer(said, NO_OBJECTION)
    whose = (options.person, *options.answerers)
    return answer(said, decision.decide(said, options.store, options.within_seconds, whose))


def is_ruled(said: HookInput) -> bool:
    """Whether a rule wants a call asked about or denied, whatever it is."""
    policy = said.policy()
    return policy is not None and agent_tool.ruled(said, policy) in ("ask", "deny")


def _set_last_resort(within_seconds: float) -> None:
    """Whatever hangs, standard input included: end with a no while the agent still listens."""

    def end(number: int, frame: object) -> NoReturn:
        refuse(LastWordError("no answer was found in time"))

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, within_seconds + LAST_RESORT_SECONDS)
