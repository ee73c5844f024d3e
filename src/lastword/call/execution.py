"""Carrying out a call's code: on the loop or in a thread, with a time limit, until it ends or is told to.

`_invoke` holds the one line of the code base that calls a tool's execute function. Nothing here decides whether it may
run at all: the door does, and has it in the journal before anything of this happens. What its end means is said in
result.py.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from lastword.call.changes import ChangeLog
from lastword.call.desk import CALL_CANCELLED, CALL_OVER, CallQuestions, Desk, Reports
from lastword.call.events import Started
from lastword.call.result import Ended, Raised, Returned, StillActs, StoppedEarly, TimedOut, partial_words, verdict
from lastword.call.setting import CANCEL_GRACE_SECONDS, Setting
from lastword.call.threads import THREADS, start
from lastword.consent import ALLOWED, Call, LiveCall, Outcome, Phase, Secrets, UserAction
from lastword.editor import SealedEditor
from lastword.errors import ToolError
from lastword.tools import Tool, ToolContext

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, outcome
    from lastword.editor import Preview
    from lastword.tools.guard import Guard

log = logging.getLogger("lastword")

# A coroutine that was cancelled unwinds at once, unless it refuses.
UNWIND_SECONDS = 1.0
# Found in an eighth of the time that a member of an enumeration takes, and every call comes by both.
_RUNNING, _STOPPED = Phase.RUNNING, Phase.STOPPED
# What tools mostly return. `inspect.isawaitable` costs a microsecond, which every call would pay.
_PLAIN = frozenset((dict, str, list, int, float, bool, type(None)))


class Execution:
    """One running implementation. Whatever ends it first decides; what comes later is ignored."""

    cancelling = False
    is_over = False
    """Whether its code does not run any more."""
    _began = True
    _over: asyncio.Future[None] | None = None
    _task: asyncio.Task[None] | None = None
    _stopping: asyncio.Task[None] | None = None
    _settled: Ended | None = None
    _waiter: asyncio.Future[None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _limit: float | None = None
    _left: float | None = None
    """Of its time, while its clock stands still."""
    _pauses = 0
    _is_late = False
    """Whether its call is over, and its code was not."""
    _grace_seconds = CANCEL_GRACE_SECONDS
    _must_stop = False
    """Whether it may not be told as stopped while its code still runs: a yes was given for what it does."""

    def __init__(self, tool: Tool, context: ToolContext[Any]) -> None:
        self.tool = tool
        self.context = context
        self.loop = asyncio.get_running_loop()

    def _silence(self) -> None:
        """What it writes or reports from now on, it does not for its call."""
        self.context._close(CALL_OVER)

    def _ended_late(self, ended: Ended) -> None:
        """The code went on after its call was over, and has stopped at last."""

    def begin(self, arguments: bytes, given: Mapping[str, Any], guard: Guard | None = None) -> Ended | None:
        """Start the implementation; how it ended, when it is over already."""
        if self.cancelling:  # In the last moment. It comes to its end like any other, and nothing has to stop.
            self._began, self.is_over = False, True
            return None
        tool = self.tool
        try:
            args, kwargs = tool.bind(arguments, given)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # A type's own validation is the tool's code, and may raise anything.
            self.is_over = True
            return Raised(problem)
        if tool.is_async:
            self._task = start(self.loop, self._on_loop(args, kwargs, guard))
        elif tool.inline:
            self._inline(args, kwargs, guard)
        else:
            self._in_thread(args, kwargs, guard)
        return self._settled

    async def wait(self, timeout_seconds: float | None) -> Ended:
        """Wait for an end, which may have come since."""
        if self._settled is None:
            self._waiter = self.loop.create_future()
            self._limit = self._left = timeout_seconds
            self._run_clock()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.cancel()  # Whoever waited for the call is gone. The tool is told, and nobody hears its answer.
                if self._must_stop:
                    await self._unwind()
                raise
            finally:
                if self._timer is not None:
                    self._timer.cancel()
        assert self._settled is not None
        return self._settled

    def pause(self) -> None:
        """Let its clock stand still: a person is being asked something, and their time is not the tool's."""
        self._pauses += 1
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - self.loop.time())
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        """Let its clock go on where it stood."""
        self._pauses -= 1
        self._run_clock()

    def _run_clock(self) -> None:
        if self._left is not None and self._limit is not None and not self._pauses and self._settled is None:
            self._timer = self.loop.call_later(self._left, self._time_is_up, self._limit)
            self._left = None

    def cancel(self) -> None:
        """A person wants it to stop: tell the tool at once, keep what it has, and end."""
        if self._settled is None and self._stopping is None:
            self.cancelling = True
            self.context._cancelled = True
            self.context._close_questions(CALL_CANCELLED)
            self._stopping = self.loop.create_task(self._stop())

    @property
    def is_working(self) -> bool:
        """Whether its code still runs, also when nobody waits for it any more."""
        return self._began and not self.is_over

    async def _stop(self) -> None:
        ToolContext.current.set(self.context)
        function, self.context._on_cancel = self.context._on_cancel, None
        partial: str | None = None
        try:
            if function is not None:
                async with asyncio.timeout(self._grace_seconds):
                    partial = await self._ask_for_partial(function)
        except BaseException as problem:
            # Whatever it raises, even the cancellation of a task of its own that it stopped and waits for.
            log.warning("call %s: on_cancel of %s failed", self.context.call_id, self.tool.name, exc_info=problem)
            if isinstance(problem, KeyboardInterrupt):
                self._settle(StillActs(partial) if self._must_stop else StoppedEarly(partial, self._began))
                raise
        if self._must_stop:
            self._settle(StoppedEarly(partial, self._began) if await self._code_stops() else StillActs(partial))
            return
        self._settle(StoppedEarly(partial, self._began))
        if self._began:
            self._let_go()

    async def _code_stops(self) -> bool:
        """Whether the code comes to its end, given a moment to see that it was cancelled."""
        self._silence()
        await self._wait_until_over(self._grace_seconds)
        if not self.is_over and self._task is not None:
            self._task.cancel()
            await self._wait_until_over(UNWIND_SECONDS)
        if not self.is_over:
            self._report_abandoned()
        return self.is_over

    async def _unwind(self) -> None:
        """Give the code a last moment: what has stopped by then is known to have stopped."""
        if self._task is not None and not self.is_over:
            self._task.cancel()
        with suppress(asyncio.CancelledError):  # Somebody who cannot wait even that long learns less.
            await self._wait_until_over(UNWIND_SECONDS)

    async def _wait_until_over(self, seconds: float) -> None:
        if not self.is_over:
            self._over = self._over or self.loop.create_future()
            await asyncio.wait({self._over}, timeout=seconds)

    async def _ask_for_partial(self, function: Callable[[], Any]) -> str | None:
        if self.tool.is_async or self.tool.inline or inspect.iscoroutinefunction(function):
            result = function()
        else:
            # A sync tool's function is as likely to block as the tool itself, and the loop belongs to everybody.
            result, problem = await THREADS.start(function)
            if problem is not None:
                raise ToolError("on_cancel raised") from problem
        if inspect.isawaitable(result):
            result = await result
        return None if result is None else partial_words(result)

    def _time_is_up(self, seconds: float) -> None:
        if self._stopping is not None:
            return  # A person was faster, and that is what is told.
        self.context._cancelled = True
        if self._must_stop and not self.is_over:
            self._stopping = self.loop.create_task(self._stop_late(seconds))
            return
        self._settle(TimedOut(seconds))
        self._let_go()

    async def _stop_late(self, seconds: float) -> None:
        self._settle(TimedOut(seconds) if await self._code_stops() else StillActs(seconds=seconds))

    def _let_go(self) -> None:
        """Give the code a moment to see that it was cancelled, then stop waiting for it."""
        self.loop.call_later(self._grace_seconds, self._abandon)

    def _abandon(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
        elif self._task is None and not self.is_over:
            self._report_abandoned()

    def _report_abandoned(self) -> None:
        log.warning(
            "call %s: %s does not stop; its %s was abandoned. Look at is_cancelled in the tool.",
            self.context.call_id,
            self.tool.name,
            "thread" if self._task is None else "task",
        )

    def _ended(self, ended: Ended) -> None:
        """The code has come to its end by itself."""
        self.is_over = True
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
        if self._is_late:
            self._ended_late(ended)
        # Once somebody has cancelled, only the cancellation ends the call: what the tool returns is ignored.
        if self._stopping is None:
            self._settle(ended)

    def _settle(self, ended: Ended) -> None:
        if self._settled is None:
            self._settled = ended
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    async def _on_loop(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        try:
            result = _invoke(guard, self.context, self.tool, args, kwargs)
            if type(result) is CoroutineType or (type(result) not in _PLAIN and inspect.isawaitable(result)):
                result = await result if guard is None else await _watched(result, guard)
        except BaseException as problem:
            self._raised(problem)
            if isinstance(problem, (asyncio.CancelledError, KeyboardInterrupt)):
                raise
        else:
            self._ended(Returned(result))

    async def _afterwards(self, result: Awaitable[Any], guard: Guard | None) -> None:
        """Wait for what a sync function returned instead of a result."""
        ToolContext.current.set(self.context)
        try:
            self._ended(Returned(await _watched(result, guard)))
        except BaseException as problem:
            self._raised(problem)
            if isinstance(problem, (asyncio.CancelledError, KeyboardInterrupt)):
                raise

    def _returned(self, result: Any, guard: Guard | None) -> None:
        try:
            is_result = type(result) in _PLAIN or not inspect.isawaitable(result)
        except Exception as problem:  # An object that stands for another may have to be asked what it is, and fail.
            self._raised(problem)
            return
        if is_result:
            self._ended(Returned(result))
        else:
            self._task = self.loop.create_task(self._afterwards(result, guard))

    def _raised(self, problem: BaseException) -> None:
        # Only a cancellation that somebody asked for is one. A tool that lets one of its own slip out has failed.
        stopped = isinstance(problem, asyncio.CancelledError) and self.context._cancelled
        self._ended(StoppedEarly(None) if stopped else Raised(problem))

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        before = ToolContext.current.get()
        try:
            result = _invoke(guard, self.context, self.tool, args, kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            self._raised(problem)
        else:
            self._returned(result, guard)
        finally:
            ToolContext.current.set(before)

    def _in_thread(self, args: tuple[Any, ...], kwargs: dict[str, Any], guard: Guard | None) -> None:
        def done(result: Any, problem: BaseException | None) -> None:
            if problem is None:
                self._returned(result, guard)
            else:
                self._raised(problem)

        THREADS.run(lambda: _invoke(guard, self.context, self.tool, args, kwargs), done, self.loop)


class Attempt(Execution):
    """One start of one call."""

    _editor: SealedEditor | None = None

    def __init__(
        self,
        setting: Setting,
        desk: Desk,
        tool: Tool,
        call: Call,
        live: LiveCall,
        approval: outcome.Approval,
        previews: tuple[Preview, ...] = (),
        request: ApprovalRequest | None = None,
    ) -> None:
        # Every call makes one, so it is put together here, without a step through the class above.
        self.tool = tool
        self.context = ToolContext(
            setting.state,
            call.id,
            tool.manifest,
            setting.session_id,
            None,
            self._open_reports,
            setting.deps,
            setting.user,
            self._open_questions,
        )
        self.loop = asyncio.get_running_loop()
        self._grace_seconds = setting.limits.cancel_grace_seconds
        self._must_stop = must_stop = approval != "not_needed"
        self._setting = setting
        self._desk = desk
        self._call = call
        self._live = live
        self._approval = approval
        self._request = request
        if setting.editor is not None:
            kept = ChangeLog(setting.journal, setting.session_id, call.id, setting.editor, durable=must_stop)
            # What is in a private file is for those who asked a person, and no setting has looked at a card.
            is_asked = approval == "person"
            guards = None if is_asked else self._why_guarded
            self._editor = SealedEditor(setting.editor, previews, kept, sees_private=is_asked, guards=guards)

    def _why_guarded(self, path: str) -> str | None:
        """Why a call that nobody was asked about must not write a file. Without a diff no yes says which it is for."""
        found = self._setting.guarded([path], self.tool)
        return None if found is None else found.why

    def run(self, action: UserAction = ALLOWED) -> Outcome | Awaitable[Outcome]:
        """Run the implementation, now that it may. One that waits for nothing has ended when this returns."""
        live, call, audience = self._live, self._call, self._setting.audience
        live.execution = self
        live.phase = _RUNNING
        try:
            if live.is_cancelled:
                self.cancel()
            if audience.listeners:
                shown = Secrets.masked(call.arguments, self.tool.secrets)
                audience.tell(Started(call.id, call.tool, shown, call.origin, live.not_asked))
            given = {"user_action": action, "editor": self._editor, "context": self.context}
            ended = self.begin(call.arguments, given)
        except BaseException:
            self._call_is_over()
            raise
        if ended is None:
            return self._run_on()
        self._call_is_over()
        return verdict(self.tool, call, self._approval, ended, live, self._editor, self._request)

    async def _run_on(self) -> Outcome:
        own, limit = self.tool.manifest.timeout_seconds, self._setting.limits.call_timeout_seconds
        try:
            ended = await self.wait(min(own, limit) if own is not None and limit is not None else own or limit)
        finally:
            self._call_is_over()
        return verdict(self.tool, self._call, self._approval, ended, self._live, self._editor, self._request)

    def _call_is_over(self) -> None:
        """Whatever its code still does, it does not do it for this call any more."""
        live = self._live
        live.phase = _STOPPED
        if self.is_over:
            live.execution = None  # Nothing is left to stop. Each would keep the other until a garbage collection.
        else:
            self._is_late = self._must_stop
        self._silence()

    def _silence(self) -> None:
        self.context._close(CALL_OVER)
        if self._editor is not None:
            self._editor.close()

    def _ended_late(self, ended: Ended) -> None:
        self._setting.journal.note(self._setting.session_id, "ended_late", self._call.id, {"how": ended.how})

    def _open_reports(self, call_id: str) -> Reports | None:
        """Where the call's progress goes; None for a thread that goes on although its call is over."""
        is_open = self._live.phase is Phase.RUNNING and not self.context._cancelled
        return Reports(self._setting, call_id, self.loop) if is_open else None

    def _open_questions(self) -> CallQuestions | None:
        """Where the call's questions go; None for code that goes on although its call is over."""
        is_open = self._live.phase is Phase.RUNNING and not self.context._cancelled
        session_id, manifest = self._setting.session_id, self.tool.manifest
        return CallQuestions(self._desk, session_id, self._call.id, manifest, self) if is_open else None


async def _watched(result: Awaitable[Any], guard: Guard | None) -> Any:
    if guard is None:
        return await result
    with guard.watching():
        return await result


def _invoke(
    guard: Guard | None, context: ToolContext[Any], tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if guard is not None:
        with guard.watching():
            return _invoke(None, context, tool, args, kwargs)
    ToolContext.current.set(context)
    assert tool.execute is not None
    return tool.execute(*args, **kwargs)  # The one line that runs an implementation.
