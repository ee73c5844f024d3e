"""Where the second step of a card comes from: this program itself, or the server whose window this terminal is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lastword.card import responses
from lastword.consent import ApprovalRequest, UserAction
from lastword.errors import LastWordError
from lastword.rules import GrantChoice, SeenStep, folder_beside, step_of, why_no_step
from lastword.session import Session
from lastword.terminal.window import Window

Look = Callable[[ApprovalRequest, GrantChoice], Awaitable[SeenStep]]
"""Says what a choice would grant from a card."""


ENDS_HERE = "This session ends with this program."


def steps_in(session: Session) -> Look:
    """The second step of a session's own cards."""

    async def look(request: ApprovalRequest, choice: GrantChoice) -> SeenStep:
        folder = folder_beside(request, session.registry, session.editor)
        return await step_of(request, choice, folder, session.pending(), session.journal)

    return look


class OwnSteps:
    """Of a card that is answered in this program."""

    def __init__(self, request: ApprovalRequest, look: Look, session_ends: str = "", me: str = "") -> None:
        self.why_none = why_no_step(request, me)
        self.session_ends = session_ends
        self._request = request
        self._look = look
        self._seen: SeenStep | None = None

    async def look(self, choice: GrantChoice) -> responses.GrantStep:
        self._seen = await self._look(self._request, choice)
        return self._seen.step

    def agree(self, step: responses.GrantStep) -> UserAction:
        seen = self._seen
        if seen is None or seen.terms is None or seen.step.digest != step.digest:
            raise LastWordError("this is not what was read last")
        return self._request.allow_with(seen.terms)


class WindowSteps:
    """Of a card that a server asks about. It puts the grant together itself, from what it told this window."""

    def __init__(self, request: ApprovalRequest, window: Window, why_none: str) -> None:
        self._request = request
        self._window = window
        self.why_none = why_none
        self.session_ends = ""
        self.agreed: str | None = None
        """The digest of the step that the person said yes to."""
        self.granted = ""
        """What is to be said once the server has granted it."""

    async def look(self, choice: GrantChoice) -> responses.GrantStep:
        return await self._window.grant_step(self._request, choice)

    def agree(self, step: responses.GrantStep) -> UserAction:
        self.agreed, self.granted = step.digest, step.granted
        return self._request.allow()
