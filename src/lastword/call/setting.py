"""What a session gives to its calls: the tools, the memory, the state and the settings that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.call.events import Audience
from lastword.call.execution import CANCEL_GRACE_SECONDS
from lastword.call.questions import QuestionDesk
from lastword.consent import Call, Preset
from lastword.editor import ScriptEditorProvider, folder_of
from lastword.journal import Journal
from lastword.lazily import load_later
from lastword.rules import Decision, Policy, by_keys, decide, folder_for
from lastword.tools import State, Tool, ToolContext, ToolRegistry
from lastword.tools.guard import Guard

if TYPE_CHECKING:
    from lastword.rules import guarded
else:
    # It knows all files that decide something, and most sessions have nothing that stands for a person.
    guarded = load_later("lastword.rules.guarded")

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


class Setting:
    """The same for every call of a session, but for the preset, which its user may change at any time."""

    __slots__ = (
        "audience",
        "deps",
        "editor",
        "gave",
        "journal",
        "limits",
        "policy",
        "preset",
        "principal",
        "questions",
        "registry",
        "session_id",
        "state",
        "user",
        "user_digest",
    )

    def __init__(
        self,
        session_id: str,
        registry: ToolRegistry,
        journal: Journal,
        state: State,
        preset: Preset,
        editor: ScriptEditorProvider | None,
        limits: Limits,
        deps: Any = None,
        user: str | None = None,
        policy: Policy | None = None,
        principal: str = "",
    ) -> None:
        self.session_id = session_id
        self.registry = registry
        self.journal = journal
        self.state = state
        self.preset = preset
        self.editor = editor
        self.limits = limits
        self.deps = deps
        self.user = user
        self.user_digest = None if user is None else values.digest(user.encode())
        """What the journal knows them by: whose a grant is has to be known, and who they are has not."""
        self.policy = policy
        self.principal = principal
        self.gave: set[str] = set()
        """The grants that were given here, which end with the session."""
        self.audience = Audience()
        self.questions: QuestionDesk | None = None
        """Where the questions of running tools wait."""

    def folder(self) -> Path:
        """The folder that paths and commands of calls are meant from."""
        return folder_of(self.editor) or Path.cwd()

    def decide(self, tool: Tool, call: Call) -> Decision:
        """Whose yes a call needs, as preset and rules are at this moment."""
        policy = self.policy
        if policy is None:
            return by_keys(tool.manifest, self.preset)
        return decide(tool, self.preset, policy, call, self.folder)

    def forbids(self, tool: Tool, call: Call) -> bool:
        """Whether a rule denies a call at this moment, whoever has said yes to it."""
        return self.policy is not None and self.policy.verdict(tool, call, self.folder).saying == "deny"

    def guarded(self, paths: Iterable[str], tool: Tool) -> guarded.GuardedFile | None:
        """The first of these paths of a tool's call at which lies what people alone change."""
        return guarded.first_guarded(paths, folder_for(tool, self.folder), self.policy, self.journal.store)

    def context(
        self,
        tool: Tool,
        call_id: str,
        guard: Guard | None = None,
        open_reports: Callable[[str], Any] | None = None,
        open_questions: Callable[[], Any] | None = None,
    ) -> ToolContext[Any]:
        """What a tool can reach in one call: the session's state, and what its host gave it."""
        return ToolContext(
            self.state,
            call_id,
            tool.manifest,
            self.session_id,
            guard,
            open_reports,
            self.deps,
            self.user,
            open_questions,
        )
