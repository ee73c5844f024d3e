"""A session for as long as one command needs it: remembered, and attended by the person at the terminal."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lastword.call import Asked, Event, QuestionAsked, wait_for_answer
from lastword.cli import complain
from lastword.commands.doubt import tell_of_doubt
from lastword.commands.editing import open_project
from lastword.commands.options import AUTO_APPROVE, NOT_BY_ITSELF, remembering
from lastword.commands.ruling import rules_here
from lastword.consent import Approver, Preset
from lastword.display import visible
from lastword.journal import cut
from lastword.session import Session
from lastword.tools import ToolRegistry, refuse_below


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
    """Open a session. The person at the terminal first hears of calls in doubt; `wait` leaves cards to others."""
    policy = rules_here(project, store)
    async with remembering(store) as journal:
        if approver is not None:
            await tell_of_doubt(journal)
        if auto_approve:
            refuse_below(AUTO_APPROVE, journal.store, hint=NOT_BY_ITSELF)
        session = Session(
            registry,
            approver=wait_for_answer if wait else approver,
            journal=journal,
            preset=Preset(auto_approve, AUTO_APPROVE if auto_approve else "default"),
            editor=None if project is None else open_project(project),
            policy=policy,
        )
        async with session:
            if wait:
                say_what_waits(session, store)
            yield session


def say_what_waits(session: Session, store: str | None) -> None:
    """Name each question that the session leaves to others, and how to answer it: nobody sees its card here."""
    there = f" --store {shlex.quote(store)}" if store else ""

    def hear(event: Event) -> None:
        if isinstance(event, Asked):
            request = event.request
            what = f"{cut(request.title)} ({request.tool})"
            complain(f"Waiting for an answer: {what}. From any terminal: lastword answer {request.call_id}{there}")

        elif isinstance(event, QuestionAsked):
            question = event.question
            what = f"{visible(cut(question.display_name))} ({question.tool}) wants to know something"
            complain(f"Waiting for an answer: {what}. From any terminal: lastword answer {question.call_id}{there}")

    session.listen(hear)
