"""A session for as long as one command needs it: remembered, and attended by whoever sits at the terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lastword.commands.doubt import tell_of_doubt
from lastword.commands.editing import open_project
from lastword.commands.options import remembering
from lastword.consent.approval import Approver, Preset
from lastword.session import Session, wait_for_answer
from lastword.tools.registry import ToolRegistry


@asynccontextmanager
async def visit(
    registry: ToolRegistry,
    approver: Approver | None,
    *,
    store: str | None,
    auto_approve: bool,
    wait: bool,
    project: str | None,
) -> AsyncIterator[Session]:
    """Open a session. Whoever is at the terminal is told first of calls in doubt; `wait` leaves cards to others."""
    async with remembering(store) as journal:
        if approver is not None:
            await tell_of_doubt(journal)
        session = Session(
            registry,
            approver=wait_for_answer if wait else approver,
            journal=journal,
            preset=Preset(auto_approve, "--auto-approve" if auto_approve else "default"),
            editor=None if project is None else open_project(project),
        )
        async with session:
            yield session
