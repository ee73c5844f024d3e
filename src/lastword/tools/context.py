"""What a running tool can reach: state, progress, questions, cancellation, and the facts of its call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from lastword.errors import ToolError
from lastword.store import refuse_if_watched
from lastword.tools.guard import Guard
from lastword.tools.manifest import Manifest
from lastword.tools.questions import NOBODY, Closed, QuestionAnswer, QuestionField, read_form, read_message
from lastword.tools.state import State, StateOwner

OnCancel = Callable[[], Any]

Deps = TypeVar("Deps")


class Reporting(Protocol):
    """Where a tool's progress goes."""

    def add(self, message: str, id: str | None, fraction: float | None) -> None: ...

    def close(self) -> None: ...


class Questioning(Protocol):
    """Where a tool's questions go."""

    loop: asyncio.AbstractEventLoop

    def put(self, message: str, fields: tuple[QuestionField, ...]) -> Coroutine[Any, Any, QuestionAnswer]: ...

    def close(self, why: str) -> None: ...


class ToolContext(StateOwner, Generic[Deps]):
    """Handed to tools that declare `context`, and behind `AssistantTool` while one runs.

    `ToolContext[Deps]` says what the host gave to the session as `deps`.
    """

    # The context of the tool whose code is running in this task or thread.
    current: ClassVar[ContextVar[ToolContext[Any] | None]] = ContextVar("lastword_tool_context", default=None)

    # How nearly every call leaves them: set only when they change.
    _guard: Guard | None = None
    _reports: Reporting | None = None
    _questions: Questioning | None = None
    _cancelled = False
    _on_cancel: OnCancel | None = None

    def __init__(
        self,
        state: State,
        call_id: str = "",
        manifest: Manifest | None = None,
        session_id: str = "",
        guard: Guard | None = None,
        open_reports: Callable[[str], Reporting | None] | None = None,
        deps: Any = None,
        user: str | None = None,
        open_questions: Callable[[], Questioning | None] | None = None,
    ) -> None:
        self._state = state
        self._state_call_id = call_id
        if guard is not None:
            self._guard = guard
        self._open_reports = open_reports
        self._open_questions = open_questions
        self.call_id = call_id
        """The same when a call is retried after a crash: use it as the idempotency key."""
        self.manifest = manifest
        self.session_id = session_id
        self.deps: Deps = deps
        """What the host gave to the session: a connection, a client. Never journaled, shown, or in a script's reach."""
        self.user = user
        """Who the session acts for, if the host said so. As private as `deps`."""

    def report(self, message: str, id: str | None = None, *, fraction: float | None = None) -> None:
        """Say how it goes. The same id updates the earlier line in place; a fraction draws a bar."""
        if self._reports is None and self._open_reports is not None:
            self._reports = self._open_reports(self.call_id)  # Most calls say nothing, and pay nothing for it.
        if self._reports is not None:
            refuse_if_watched("report the progress of another call")
            self._reports.add(str(message), id, fraction)

    async def ask(self, message: str, schema: Mapping[str, Any]) -> QuestionAnswer:
        """Ask the person something while the tool runs: `Given`, `Declined` or `Closed`. It approves nothing.

        `schema` is a flat JSON Schema object: texts, numbers, booleans and choices, `"secret": true` for what nobody
        shall see. The time until there is an answer is not the tool's.
        """
        asking = self._asking(message, schema)
        if asking is None:
            return Closed(NOBODY)
        questions, work = asking
        if asyncio.get_running_loop() is questions.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, questions.loop))

    def ask_sync(self, message: str, schema: Mapping[str, Any]) -> QuestionAnswer:
        """`ask` for a tool that runs in a thread."""
        asking = self._asking(message, schema)
        if asking is None:
            return Closed(NOBODY)
        questions, work = asking
        if _running_loop() is not None:
            work.close()
            raise ToolError(
                "ask_sync waits, and would hold up the event loop that it was called on",
                hint="make the tool async and await context.ask(…)",
            )
        return asyncio.run_coroutine_threadsafe(work, questions.loop).result()

    def _asking(
        self, message: str, schema: Mapping[str, Any]
    ) -> tuple[Questioning, Coroutine[Any, Any, QuestionAnswer]] | None:
        """Where the question goes, and the way there; None when there is nobody. Who only looks may not ask."""
        refuse_if_watched("ask the person something")
        if self._guard is not None:
            raise self._guard.refuse("ask the person something")
        words, fields = read_message(message), read_form(schema)
        if self._questions is None and self._open_questions is not None:
            self._questions = self._open_questions()
        return None if self._questions is None else (self._questions, self._questions.put(words, fields))

    def _close_questions(self, why: str) -> None:
        self._open_questions = None
        if self._questions is not None:
            self._questions.close(why)

    def _close_reports(self) -> None:
        self._open_reports = None
        if self._reports is not None:
            self._reports.close()

    @property
    def is_cancelled(self) -> bool:
        """True from the moment a person cancels the call, or its time is up."""
        return self._cancelled

    @property
    def on_cancel(self) -> Callable[[OnCancel], OnCancel]:
        """Assign a function, or pass one: it is called once on cancellation, and may return a partial result."""
        return self._set_on_cancel

    @on_cancel.setter
    def on_cancel(self, function: OnCancel | None) -> None:
        self._on_cancel = function

    def _set_on_cancel(self, function: OnCancel) -> OnCancel:
        self._on_cancel = function
        return function

    def _before_change(self, what: str) -> None:
        super()._before_change(what)
        if self._guard is not None:
            raise self._guard.refuse(what)

    def _before_look(self, key: str | None) -> None:
        if self._guard is None:
            super()._before_look(key)
        else:  # Also from a thread that the guard does not see.
            self._guard.note_state(self._state, key)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
