"""What a running tool can reach: state, progress, questions, cancellation, and the facts of its call.

State is what the tools of a session share: JSON values under names, with descriptions, and their text for a prompt.
Values are kept as canonical bytes, so whatever a caller does with what it put in or got out changes nothing here. Who
may change state, and where changes are remembered, is decided by the owner: see `StateOwner`.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from lastword import values
from lastword.errors import LastWordError, NotJSON, ToolError
from lastword.store import refuse_if_watched
from lastword.tools.guard import Guard, note_state
from lastword.tools.questions import NOBODY, Closed, QuestionAnswer, QuestionField, read_form, read_message

if TYPE_CHECKING:
    from lastword.tools.manifest import Manifest

log = logging.getLogger("lastword")

Formatter = Callable[[Any], str]
OnCancel = Callable[[], Any]
Deps = TypeVar("Deps")

# A prompt is paid for by the token; a person reads the whole value elsewhere.
MAX_PROMPT_VALUE = 400
# From 2001 to 2286: outside of it, a number under a name like `date` is something else.
_EPOCH_SECONDS = range(1_000_000_000, 10_000_000_000)
_TIME_NAME = re.compile(r"time|date", re.IGNORECASE)


class StateMetadata(msgspec.Struct, frozen=True):
    """What a key means, and how its value is written in a prompt."""

    description: str
    formatter: Formatter | None = None


Remember = Callable[[str, dict[str, Any], str], None]
"""(what happened, data, call id): the owner's way to write a change down."""


class State:
    """The values themselves. Safe to use from the threads that tools run in."""

    # What can happen to state. Each is remembered with the call that made it.
    SET = "state_set"
    DESCRIBED = "state_described"
    CLEARED = "state_cleared"

    def __init__(self, remember: Remember | None = None) -> None:
        self._values: dict[str, bytes] = {}
        self._metadata: dict[str, StateMetadata] = {}
        self._remember = remember
        self._lock = threading.RLock()

    def set(self, key: str, value: Any, metadata: StateMetadata | None, call_id: str) -> None:
        if not isinstance(key, str) or not key:
            raise NotJSON(f"a state key is a non-empty string, not {key!r}")
        try:
            values.canonical(key)
            data = values.canonical(value)
        except NotJSON as problem:
            raise NotJSON(f"state {key!r} cannot be set: {problem.fact}", hint=problem.hint) from None
        with self._lock:
            self._values[key] = data
            if self._remember:
                self._remember(State.SET, {"key": key, "value": values.decode(data)}, call_id)
            if metadata is not None:
                self.describe(key, metadata, call_id)

    def describe(self, key: str, metadata: StateMetadata, call_id: str) -> None:
        with self._lock:
            self._metadata[key] = metadata
            if self._remember:
                self._remember(State.DESCRIBED, {"key": key, "description": metadata.description}, call_id)

    def clear(self, call_id: str) -> None:
        with self._lock:
            self._values.clear()
            self._metadata.clear()
            if self._remember:
                self._remember(State.CLEARED, {}, call_id)

    def get(self, key: str) -> Any:
        data = self._values.get(key)
        return None if data is None else values.decode(data)

    def has(self, key: str) -> bool:
        return key in self._values

    def all(self) -> dict[str, Any]:
        with self._lock:
            return {key: values.decode(data) for key, data in self._values.items()}

    def keys(self) -> list[str]:
        """Every key that has a value or a description."""
        with self._lock:
            return [*self._values, *(key for key in self._metadata if key not in self._values)]

    def mark(self, key: str) -> str | None:
        """A digest of what is known under a key; None when nothing is."""
        with self._lock:
            data, metadata = self._values.get(key), self._metadata.get(key)
        if data is None and metadata is None:
            return None
        description = str(metadata.description) if metadata else ""
        return values.digest((data or b"") + b"\0" + description.encode("utf-8", "surrogatepass"))

    def metadata(self, key: str) -> StateMetadata | None:
        return self._metadata.get(key)

    def all_metadata(self) -> dict[str, StateMetadata]:
        with self._lock:
            return dict(self._metadata)

    def restore(self, kind: str, data: dict[str, Any]) -> None:
        """Apply a remembered change again, without remembering it a second time."""
        with self._lock:
            if kind == State.SET:
                self._values[data["key"]] = values.canonical(data["value"])
            elif kind == State.DESCRIBED:
                known = self._metadata.get(data["key"])
                # Formatters are code, and registered again by code: keep one that is already here.
                self._metadata[data["key"]] = StateMetadata(data["description"], known.formatter if known else None)
            elif kind == State.CLEARED:
                self._values.clear()
                self._metadata.clear()

    def format_for_prompt(self) -> str:
        """One line a key: `key: value (description)`."""
        with self._lock:
            keys = list(self._values)
        if not keys:
            return "No state information available."
        return "\n".join(self._line(key) for key in keys)

    def _line(self, key: str) -> str:
        value = self.get(key)
        metadata = self._metadata.get(key)
        shown = None
        note = ""
        if metadata is not None and metadata.formatter is not None:
            try:
                shown = str(metadata.formatter(value))
            except Exception as problem:
                log.warning("the formatter of the state's %s failed", key, exc_info=problem)
                note = f" [its formatter failed: {type(problem).__name__}]"
        if shown is None:
            shown = _shown(key, value)
        shown = _flat(shown)
        if len(shown) > MAX_PROMPT_VALUE:
            shown = f"{shown[:MAX_PROMPT_VALUE]}… ({len(shown)} characters)"
        words = f" ({_flat(metadata.description)})" if metadata is not None and metadata.description else ""
        return f"{_flat(key)}: {shown}{words}{note}"


def _flat(text: str) -> str:
    """In one line, whatever ends lines in it: a value must not look like another key of the state."""
    return " ".join(text.splitlines())


def _shown(key: str, value: Any) -> str:
    if type(value) is not int and type(value) is not float:
        return value if isinstance(value, str) else values.canonical(value).decode()
    shown = values.number_text(value)
    if _TIME_NAME.search(key):
        seconds = value / 1000 if int(value) // 1000 in _EPOCH_SECONDS else value
        if int(seconds) in _EPOCH_SECONDS:
            moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
            return f"{shown} ({moment.isoformat(timespec='seconds').replace('+00:00', 'Z')})"
    return shown


class StateOwner:
    """The state methods, for whoever owns or lends a state: a session, a registry, a tool's context."""

    _state: State
    _state_call_id: str = ""

    def set_state(self, key: str, value: Any, metadata: StateMetadata | dict[str, Any] | None = None) -> None:
        """Remember a JSON value under a name. Setting a value keeps its metadata."""
        self._before_change(f"set the state {key!r}")
        self._state.set(key, value, as_metadata(metadata), self._state_call_id)

    def get_state_value(self, key: str) -> Any:
        """The value, or None when there is none."""
        self._before_look(key)
        return self._state.get(key)

    def has_state(self, key: str) -> bool:
        self._before_look(key)
        return self._state.has(key)

    def get_all_state(self) -> dict[str, Any]:
        self._before_look(None)
        return self._state.all()

    def clear_state(self) -> None:
        """Forget all values and all metadata."""
        self._before_change("clear the state")
        self._state.clear(self._state_call_id)

    def get_state_metadata(self, key: str) -> StateMetadata | None:
        self._before_look(key)
        return self._state.metadata(key)

    def get_all_state_metadata(self) -> dict[str, StateMetadata]:
        self._before_look(None)
        return self._state.all_metadata()

    def register_state_metadata(self, key: str, metadata: StateMetadata | dict[str, Any]) -> None:
        """Say what a key means, before or after it has a value."""
        self._before_change(f"describe the state {key!r}")
        found = as_metadata(metadata)
        assert found is not None
        self._state.describe(key, found, self._state_call_id)

    def format_state_for_prompt(self) -> str:
        """The state as the lines of a prompt."""
        self._before_look(None)
        return self._state.format_for_prompt()

    def _before_change(self, what: str) -> None:
        """Refuse while a tool may only look, whoever's state its code got hold of."""
        refuse_if_watched(what)

    def _before_look(self, key: str | None) -> None:
        """What a card is drawn from is part of the question: one key, or all of them."""
        note_state(self._state, key)


def as_metadata(metadata: StateMetadata | dict[str, Any] | None) -> StateMetadata | None:
    """Accept the seeds' plain objects as well as our class."""
    if metadata is None or isinstance(metadata, StateMetadata):
        return metadata
    if not isinstance(metadata, dict) or not isinstance(metadata.get("description"), str):
        raise LastWordError(
            "state metadata needs a description", hint='pass {"description": "…"} or StateMetadata("…")'
        )
    return StateMetadata(metadata["description"], metadata.get("formatter"))


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

    def _close(self, why: str) -> None:
        """What its code reports or asks from now on, it does not for its call."""
        self._open_reports = self._open_questions = None
        if self._reports is not None:
            self._reports.close()
        if self._questions is not None:
            self._questions.close(why)

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
