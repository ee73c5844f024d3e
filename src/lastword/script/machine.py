"""The machine that runs a script.

It takes the steps of a program one after the other and waits where one gives something to wait for. It knows nothing of
tools: what a CALL means is the host's business, and a host that gives plain values makes a run that never waits.

    machine = Machine(parse(text), host)
    result = await machine.run()

A machine runs once.
"""

from __future__ import annotations

from asyncio import sleep, to_thread
from collections.abc import Callable, Mapping
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import msgspec

from lastword.script.compiler import write_program
from lastword.script.runtime import RUN, SLICE, STACK, UNSET, Frame, Host, RunState, ScriptLimits
from lastword.script.steps import PAUSE, go_through
from lastword.script.tokens import LARGE_TEXT, CallFailed, Cancelled, LimitExceeded, PlacedError
from lastword.values import MAX_SIZE, NotJSON, plain, weigh

if TYPE_CHECKING:
    from lastword.script.nodes import Script

_DEFAULT_LIMITS = ScriptLimits()

Status = Literal["done", "failed", "cancelled"]


class Result(msgspec.Struct, frozen=True):
    """How a run ended, what it printed, and the variables at its top as they then were."""

    status: Status
    output: list[str]
    variables: dict[str, Any]
    error: PlacedError | None


P = ParamSpec("P")
T = TypeVar("T")


async def aside(text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on a text: at once, or in a thread where the text is large, so that nobody else waits for it.

    Reading, checking and writing out a script know nothing of the loop and change nothing that others see. Python hands
    the processor from thread to thread every few milliseconds, so the loop has its turns.
    """
    if len(text) <= LARGE_TEXT:
        return work(*args, **kwargs)
    return await to_thread(work, *args, **kwargs)


class Machine:
    """One run of one script."""

    def __init__(
        self,
        script: Script,
        host: Host,
        variables: Mapping[str, Any] | None = None,
        limits: ScriptLimits | None = None,
    ) -> None:
        self.script = script
        self.given = variables or {}
        self._program = write_program(script, self.given)
        self._host = host
        self._limits = limits or _DEFAULT_LIMITS

    async def run(self) -> Result:
        """Run to the end, or to the first error."""
        program, run = self._program, RunState(self._host, self._limits)
        self._run = run
        stack: list[Any] = []
        frame: Frame = [UNSET] * program.frame_size
        frame[RUN], frame[STACK] = run, stack
        if self.given:
            for name, value in self.given.items():
                frame[program.slots[name]] = value
        error: PlacedError | None = None
        variables: dict[str, Any] = {}
        run.deadline = perf_counter() + run.limits.seconds
        try:
            run.charge(program.cost, program.words, 0)
            # The steps are taken here and not in a coroutine of their own, which every wait would pass through.
            steps = program.steps
            end = len(steps)
            number = 0
            while number < end:
                outcome = steps[number](frame)
                number += 1
                if outcome is None:
                    if run.fuel < 0:
                        await self._breathe()
                elif type(outcome) is int:
                    if outcome >= 0:
                        number = outcome
                    else:
                        number = ~outcome
                        await self._breathe()
                        if run.rest:
                            await self._go_on_inside(frame)
                elif outcome is PAUSE:
                    await self._breathe()
                    await self._go_on_inside(frame)
                else:
                    before = perf_counter()
                    stack.append(await outcome)
                    run.deadline += perf_counter() - before
        except PlacedError as problem:
            error = problem
        except CallFailed as failure:
            error = failure.at(run.at)
        try:
            await self._read_variables(frame, variables)
        except LimitExceeded as problem:
            # The first thing that went wrong is the one to report.
            error = error or problem
        if error is not None:
            script = self.script
            await aside(script.source, error.locate, script.source, script.name, "run")
        status: Status = "done" if error is None else "cancelled" if type(error) is Cancelled else "failed"
        return Result(status, run.output, variables, error)

    async def _breathe(self) -> None:
        """Let others have their turn; the time they take is not ours."""
        run = self._run
        run.check_clock()
        before = perf_counter()
        await sleep(0)
        run.deadline += perf_counter() - before
        run.fuel = SLICE

    async def _go_on_inside(self, frame: Frame) -> None:
        """Finish the blocks that were left in their middle, from the inside out."""
        run = self._run
        while run.rest:
            innermost, *around = run.rest
            run.rest = []
            if go_through(frame, innermost) is None:
                run.rest = around
            else:
                run.rest += around
                await self._breathe()

    async def _read_variables(self, frame: Frame, into: dict[str, Any]) -> None:
        """Copy the variables at the top, within the limits for values that leave a script."""
        limits, given = self._run.limits, self.given
        left = limits.value_size
        # Elements that are copied before somebody else has a turn. What is more is copied in a thread.
        at_once = SLICE
        if given:
            into.update(given)
        for name, slot in self._program.slots.items():
            value = frame[slot]
            kind = type(value)
            if kind in _SIMPLE or (kind is float and isfinite(value) and not value.is_integer()):
                into[name] = value
                continue
            if value is UNSET or (name in given and value is given[name]):
                continue
            if given:
                into.pop(name, None)
            if kind is dict and len(value) <= at_once:
                record = _size_of_record(value)
                if record is not None and record <= left and limits.value_depth:
                    left -= record
                    at_once -= len(value)
                    into[name] = value.copy()
                    continue
            try:
                if kind is not list and kind is not dict:
                    into[name] = plain(value)
                    continue
                try:
                    into[name], size, elements = _copy(value, limits, left, at_once)
                    at_once -= elements
                except NotJSON:
                    # Too large, too deep, or too much for now: where there is time it shows which.
                    into[name], size, _ = await to_thread(_copy, value, limits, left, MAX_SIZE)
                left -= size
            except NotJSON as problem:
                at = self._program.changed.get(slot, 0)
                raise LimitExceeded(f"the variables left at the end: {name} is {problem.fact}", at) from None


def _copy(value: Any, limits: ScriptLimits, max_size: int, max_elements: int) -> tuple[Any, int, int]:
    """A list or object as it leaves a script, its size, and how many of that are elements."""
    depth = limits.value_depth
    size, elements = weigh(value, max_depth=depth, max_size=max_size, max_elements=max_elements)
    return plain(value, max_depth=depth, max_size=limits.value_size), size, elements


# What is its own plain form. Of numbers with a point that is said one by one: whole ones leave as integers.
_SIMPLE = frozenset([str, int, bool, type(None)])
_SIMPLE_KEYS = frozenset([str])


def _size_of_record(value: dict[Any, Any]) -> int | None:
    """The size, as `weigh` counts it, of an object that is its own plain form and needs no look inside; else None."""
    items = value.values()
    if not _SIMPLE.issuperset(map(type, items)) or not _SIMPLE_KEYS.issuperset(map(type, value)):
        return None
    size = len(value) + 1 + sum(map(len, value))
    for item in items:
        if type(item) is str:
            size += len(item)
    return size
