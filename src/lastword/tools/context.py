"""What a running tool can reach: state, progress, cancellation, and the facts of its call."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from lastword.tools.guard import Guard, refuse_if_watched
from lastword.tools.manifest import Manifest
from lastword.tools.state import State, StateOwner

OnCancel = Callable[[], Any]


class Reporting(Protocol):
    """Where a tool's progress goes."""

    def add(self, message: str, id: str | None, fraction: float | None) -> None: ...

    def close(self) -> None: ...


class ToolContext(StateOwner):
    """Handed to tools that declare `context`, and behind `AssistantTool` while one runs."""

    # How nearly every call leaves them: set only when they change.
    _guard: Guard | None = None
    _reports: Reporting | None = None
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
    ) -> None:
        self._state = state
        self._state_call_id = call_id
        if guard is not None:
            self._guard = guard
        self._open_reports = open_reports
        self.call_id = call_id
        """The same when a call is retried after a crash: use it as the idempotency key."""
        self.manifest = manifest
        self.session_id = session_id

    def report(self, message: str, id: str | None = None, *, fraction: float | None = None) -> None:
        """Say how it goes. The same id updates the earlier line in place; a fraction draws a bar."""
        if self._reports is None and self._open_reports is not None:
            self._reports = self._open_reports(self.call_id)  # Most calls say nothing, and pay nothing for it.
        if self._reports is not None:
            refuse_if_watched("report the progress of another call")
            self._reports.add(str(message), id, fraction)

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


current: ContextVar[ToolContext | None] = ContextVar("lastword_tool_context", default=None)
"""The context of the tool whose code is running in this task or thread."""
