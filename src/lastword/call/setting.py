"""What a session gives to its calls: the tools, the memory, the state and the settings that all of them share."""

from __future__ import annotations

import msgspec

from lastword.call import draw
from lastword.call.events import Audience
from lastword.call.execution import CANCEL_GRACE_SECONDS
from lastword.consent.approval import Preset
from lastword.editor import ScriptEditorProvider
from lastword.journal import Journal
from lastword.tools.registry import ToolRegistry
from lastword.tools.state import State


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how often they are tried."""

    answer_valid_seconds: float = 60.0
    """An answer must start its call within this time: a yes given to yesterday's world is not consent to today's."""
    approval_timeout_seconds: float | None = None
    """A question waits for ever unless this is set."""
    draw_timeout_seconds: float = draw.DRAW_TIMEOUT_SECONDS
    call_timeout_seconds: float | None = None
    """For tools that declare no timeout of their own, and an upper bound for those that do."""
    cancel_grace_seconds: float = CANCEL_GRACE_SECONDS
    times_asked: int = 3
    """How often the same call is asked again when an approval did not hold."""
    watch_after_seconds: float = 0.05
    """Approvers in the same process mostly answer at once; only when they do not, other processes are listened for."""


class Setting:
    """The same for every call of a session, but for the preset, which its user may change at any time."""

    __slots__ = ("audience", "editor", "journal", "limits", "preset", "registry", "session_id", "state")

    def __init__(
        self,
        session_id: str,
        registry: ToolRegistry,
        journal: Journal,
        state: State,
        preset: Preset,
        editor: ScriptEditorProvider | None,
        limits: Limits,
    ) -> None:
        self.session_id = session_id
        self.registry = registry
        self.journal = journal
        self.state = state
        self.preset = preset
        self.editor = editor
        self.limits = limits
        self.audience = Audience()
