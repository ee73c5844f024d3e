"""Carrying out an implementation: on the loop or in a thread, with a time limit, until it ends or is told to.

`_invoke` holds the one line of the code base that calls a tool's execute function. What does not live here: whether
it may run at all. That is decided in calls.py.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from assent import outcome, values
from assent.context import ToolContext, current
from assent.errors import ArgumentsError, NotAllowedNow, NotJSON, ToolError
from assent.guard import Guard
from assent.outcome import Kind
from assent.signature import to_json
from assent.threads import THREADS
from assent.tool import Tool

log = logging.getLogger("assent")

# How long a cancelled tool may take to stop by itself, and `on_cancel` to say what there is.
CANCEL_GRACE_SECONDS = 2.0


class Returned(msgspec.Struct, frozen=True):
    value: Any


class Raised(msgspec.Struct, frozen=True):
    problem: BaseException


class Cancelled(msgspec.Struct, frozen=True):
    partial: str | None


class TimedOut(msgspec.Struct, frozen=True):
    seconds: float


Ended = Returned | Raised | Cancelled | TimedOut


class Execution:
    """One running implementation. Whatever ends it first decides; what comes later is ignored."""

    __slots__ = ("_grace_seconds", "_loop", "_settled", "_task", "_waiter", "cancelling", "context", "tool")

    def __init__(self, tool: Tool, context: ToolContext, grace_seconds: float = CANCEL_GRACE_SECONDS) -> None:
        self.tool = tool
        self.context = context
        self.cancelling = False
        self._grace_seconds = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._settled: Ended | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def run(
        self, arguments: bytes, given: Mapping[str, Any], *, timeout_seconds: float | None, guard: Guard | None = None
    ) -> Ended:
        """Start the implementation and wait for an end."""
        tool = self.tool
        try:
            args, kwargs = tool.bind(arguments, given)
        except ArgumentsError as problem:
            return Raised(problem)
        if tool.is_async:
            self._task = start(self._loop, self._on_loop(args, kwargs, guard))
        elif tool.inline:
            self._inline(args, kwargs, guard)
        else:
            self._in_thread(args, kwargs, guard)
        if (ended := self._ended()) is not None:
            return ended

        timer = None
        if timeout_seconds is not None:
            timer = self._loop.call_later(timeout_seconds, self._time_is_up, timeout_seconds)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.cancel()  # Whoever waited for the call is gone. The tool is told, and nobody hears its answer.
            raise
        finally:
            if timer is not None:
                timer.cancel()
        ended = self._ended()
        assert ended is not None
        return ended

    def _ended(self) -> Ended | None:
        return self._settled

    def cancel(self) -> None:
        """A person wants it to stop: tell the tool at once, keep what it has, and end."""
        if self._settled is None and not self.cancelling:
            self.cancelling = True
            self.context._cancelled = True
            self._loop.create_task(self._stop())

    async def _stop(self) -> None:
        function, self.context._on_cancel = self.context._on_cancel, None
        partial: str | None = None
        if function is not None:
            try:
                async with asyncio.timeout(self._grace_seconds):
                    partial = await self._ask_for_partial(function)
            except Exception as problem:
                log.warning("call %s: on_cancel of %s failed", self.context.call_id, self.tool.name, exc_info=problem)
        self._settle(Cancelled(partial))
        self._let_go()

    async def _ask_for_partial(self, function: Callable[[], Any]) -> str | None:
        result = function()
        if inspect.isawaitable(result):
            result = await result
        return None if result is None else str(result)

    def _time_is_up(self, seconds: float) -> None:
        self.context._cancelled = True
        self._settle(TimedOut(seconds))
        self._let_go()

    def _let_go(self) -> None:
        """Give the code a moment to see that it was cancelled, then stop waiting for it."""
        self._loop.call_later(self._grace_seconds, self._abandon)

    def _abandon(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
        elif self._task is None and not self.context._returned:
            log.warning(
                "call %s: %s does not stop; its thread was abandoned. Look at is_cancelled in the tool.",
                self.context.call_id,
                self.tool.name,
            )

    def _settle(self, ended: Ended) -> None:
        if self._settled is None:
            self._settled = ended
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    async def _on_loop(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        try:
            result = _guarded(guard, self.context, self.tool, args, kwargs)
            if inspect.isawaitable(result):
                if guard is None:
                    result = await result
                else:
                    with guard.watching():
                        result = await result
        except asyncio.CancelledError:
            self._settle(Cancelled(None))
            raise
        except BaseException as problem:
            self._settle(Raised(problem))
            if not isinstance(problem, Exception):
                raise
        else:
            self._settle(Returned(result))

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        token = current.set(self.context)
        try:
            self._settle(Returned(_guarded(guard, self.context, self.tool, args, kwargs)))
        except Exception as problem:
            self._settle(Raised(problem))
        finally:
            current.reset(token)

    def _in_thread(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        def done(result: Any, problem: BaseException | None) -> None:
            self.context._returned = True
            self._settle(Returned(result) if problem is None else Raised(problem))

        THREADS.run(lambda: _guarded(guard, self.context, self.tool, args, kwargs), done, self._loop)


def _guarded(
    guard: Guard | None, context: ToolContext, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    current.set(context)
    if guard is None:
        return _invoke(tool, args, kwargs)
    with guard.watching():
        return _invoke(tool, args, kwargs)


def _invoke(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    assert tool.execute is not None
    return tool.execute(*args, **kwargs)  # The one line that runs an implementation.


if sys.version_info >= (3, 12):

    def start(loop: asyncio.AbstractEventLoop, coroutine: Any) -> asyncio.Task[None]:
        """A task that begins now."""
        # Starting at once saves a turn of the loop for every tool that does not wait.
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:

    def start(loop: asyncio.AbstractEventLoop, coroutine: Any) -> asyncio.Task[None]:
        """A task that begins at the next turn of the loop."""
        return loop.create_task(coroutine)


def verdict(tool: Tool, call_id: str, ended: Ended) -> tuple[Kind, str, Any]:
    """What an end means: the kind of outcome, the words for the model, and the value if there is one."""
    if isinstance(ended, Returned):
        return _returned(tool, ended.value)
    name = tool.name
    if isinstance(ended, Cancelled):
        return "cancelled", outcome.cut(outcome.cancelled(name, ended.partial)), None
    if isinstance(ended, TimedOut):
        return "timed_out", outcome.timed_out(name, ended.seconds), None
    problem = ended.problem
    if isinstance(problem, ArgumentsError):
        return "invalid_arguments", str(problem), None
    if isinstance(problem, (ToolError, NotAllowedNow)):
        return "failed", outcome.cut(str(problem)), None
    log.error("call %s: %s raised", call_id, name, exc_info=problem)
    return "raised", outcome.raised(name, problem, call_id), None


def _returned(tool: Tool, value: Any) -> tuple[Kind, str, Any]:
    if tool.style != "registry" and type(value) is dict and value.keys() == {"success", "message"}:
        success, message = value["success"], value["message"]
        if type(success) is bool and type(message) is str:
            return ("succeeded" if success else "failed"), outcome.cut(_encodable(message)), None
    if tool.style == "assistant":
        return (
            "failed",
            f"{tool.name} returned something other than {{success, message}}; its author must mend it.",
            None,
        )
    try:
        value = to_json(value)
        data = values.encode(value)
        shown = value if type(value) is str else data.decode()
    except (NotJSON, TypeError, RecursionError) as problem:
        fact = problem.fact if isinstance(problem, NotJSON) else str(problem)
        return "failed", f"{tool.name} returned a value that JSON cannot hold: {fact}", None
    wanted = tool.manifest.returns
    found = values.type_name[type(value)]
    if wanted not in ("any", found):
        return "failed", f"{tool.name} promised to return a {wanted} and returned a {found}.", None
    if value is None and tool.style == "function":
        shown = "Done."
    return "succeeded", outcome.cut(shown), value


def _encodable(message: str) -> str:
    """Half characters cannot be written to a journal or sent to a model."""
    return message.encode("utf-8", "replace").decode()
