"""What the calls of a session share: the settings that its host gave, and whoever listens to what happens in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import rules, values
from lastword.consent import LiveCall, LiveRun, Phase
from lastword.editor import folder_of
from lastword.errors import SessionError
from lastword.tools import ToolContext

if TYPE_CHECKING:
    from lastword.call.events import Event
    from lastword.consent import Preset
    from lastword.editor import ScriptEditorProvider
    from lastword.journal import Journal
    from lastword.rules import Policy
    from lastword.tools import State, Tool, ToolRegistry
    from lastword.tools.guard import Guard

log = logging.getLogger("lastword")

# How long a cancelled tool may take to stop by itself, and `on_cancel` to say what there is.
CANCEL_GRACE_SECONDS = 2.0
# A card is drawn from what is at hand. One that needs longer than this would leave the person waiting.
DRAW_TIMEOUT_SECONDS = 10.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how often they are tried."""

    answer_valid_seconds: float = 60.0
    """An answer must start its call within this time: a yes given to yesterday's world is not consent to today's."""
    approval_timeout_seconds: float | None = None
    """A question waits for ever unless this is set."""
    draw_timeout_seconds: float = DRAW_TIMEOUT_SECONDS
    call_timeout_seconds: float | None = None
    """For tools that declare no timeout of their own, and an upper bound for those that do."""
    cancel_grace_seconds: float = CANCEL_GRACE_SECONDS
    times_asked: int = 3
    """How often the same call is asked again when an approval did not hold."""
    watch_after_seconds: float = 0.05
    """Approvers in the same process mostly answer at once; only when they do not, other processes are listened for."""


@dataclass(slots=True)
class Setting:
    """The same for every call of a session, but for what its user may change at any time."""

    session_id: str
    registry: ToolRegistry
    journal: Journal
    state: State
    preset: Preset
    editor: ScriptEditorProvider | None
    limits: Limits
    deps: Any = None
    user: str | None = None
    policy: Policy | None = None
    principal: str = ""
    """Whose session it is; known when it was opened."""
    gave: set[str] = field(default_factory=set)
    """The grants that were given here, which end with the session."""
    audience: Audience = field(default_factory=lambda: Audience())
    live: dict[str, LiveCall] = field(default_factory=dict)
    """The calls that are asked about or carried out right now."""
    runs: dict[str, LiveRun] = field(default_factory=dict)
    """The scripts that are carried out right now."""

    @property
    def running(self) -> dict[str, LiveCall.Stoppable]:
        """The calls whose code runs right now."""
        return {
            call_id: live.execution
            for call_id, live in list(self.live.items())
            if live.phase is Phase.RUNNING and live.execution is not None
        }

    @property
    def user_digest(self) -> str | None:
        """What the journal knows them by: whose a grant is has to be known, and who they are has not."""
        return None if self.user is None else values.digest(self.user.encode())

    def folder(self) -> Path:
        """The folder that paths and commands of calls are meant from."""
        return folder_of(self.editor) or Path.cwd()

    def editor_in(self, folder: Path | None) -> ScriptEditorProvider | None:
        """This session's editor, unless the files to restore are another project's."""
        here = folder_of(self.editor)
        if folder is not None and here is not None and here != folder:
            raise SessionError(
                f"the call changed files in {folder}, and this session works in {here}",
                place=self.session_id,
                hint="undo it in a session with an editor on that folder, or with lastword undo",
            )
        return self.editor

    def guarded(self, paths: Iterable[str], tool: Tool) -> rules.ProtectedFile | None:
        """The first of these paths of a tool's call at which lies what people alone change."""
        read = [] if self.policy is None else [file.path for file in self.policy.files]
        return rules.ProtectedFile.first(paths, tool.folder_from(self.folder), read, self.journal.store)

    def context(self, tool: Tool, call_id: str, guard: Guard) -> ToolContext[Any]:
        """What code of a tool that may only look can reach: the session's state, and what its host gave it."""
        return ToolContext(self.state, call_id, tool.manifest, self.session_id, guard, deps=self.deps, user=self.user)


# A listener that is this far behind is not reading any more.
MAX_WAITING = 10_000


class Audience:
    """Whoever listens to a session."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: list[Callable[[Event], None]] = []
        """Empty while nobody listens, so that nothing is prepared for nobody."""

    def tell(self, event: Event) -> None:
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except BaseException as problem:
                if isinstance(problem, (KeyboardInterrupt, SystemExit)):
                    raise
                # Whoever watches a call must not be able to break it, also not by a cancelled future that it looked at:
                # the call would take that for its own cancellation. One that failed would fail again.
                log.error("a listener failed and hears nothing more", exc_info=problem)
                self._forget(listener)

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event from now on; returns what stops it."""
        self.listeners.append(listener)
        return lambda: self._forget(listener)

    def _forget(self, listener: Callable[[Event], None]) -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)

    async def events(self) -> AsyncIterator[Event]:
        """Every event from now on, as an async iterator. Who falls too far behind gets what is there, and an error."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def put(event: Event) -> None:
            if queue.qsize() >= MAX_WAITING:
                stop()
                log.warning("a listener does not read: after %d events it hears nothing more", MAX_WAITING)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

        stop = self.listen(put)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            stop()
        raise SessionError(
            f"more than {MAX_WAITING} events waited to be read, so the later ones were not kept",
            hint="read faster, or listen again; the journal has everything that happened",
        )
