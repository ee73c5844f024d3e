"""Questions of other programs that share this memory: `lastword run --wait` in a terminal, another session.

They are shown beside the cards of the page's own session and answered through the journal, where the program that
asked finds the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lastword.card.trouble import trouble
from lastword.consent.answerer import Answerer
from lastword.consent.approval import ApprovalRequest
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.server.refusal import Refusal
from lastword.web.answers import action_on, changed, not_waiting
from lastword.web.conversation import ConversationView
from lastword.web.story import Story

# The memory changes with every call; looking once in this time is soon enough for another program's question.
LOOK_SECONDS = 0.5


class OtherSessions:
    """Watches the memory for questions of sessions other than the page's own."""

    def __init__(self, view: ConversationView, journal: Journal, look_seconds: float = LOOK_SECONDS) -> None:
        self._view = view
        self._journal = journal
        self._look_seconds = look_seconds
        self._shown: dict[str, dict[str, Any]] = {}

    async def watch(self) -> None:
        """Look whenever something was written, until cancelled."""
        told = ""
        while True:
            try:
                head = await self._journal.store.head()
                await self.look()
                told = ""
                await self._journal.store.changed(head.seq)
            except Exception as problem:
                # A broken record or a full disk is met again at every look, and is told once.
                if (what := f"{type(problem).__name__}: {problem}") != told:
                    told = what
                    self._view.note(trouble("Questions of other programs cannot be shown now", problem), problem=True)
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Show what waits, and hide what does not any more."""
        own = self._view.session.id
        waiting = {facts["call_id"]: facts for facts in await self._journal.waiting() if facts["session_id"] != own}
        for call_id in self._shown.keys() - waiting.keys():
            del self._shown[call_id]
            self._view.hide(call_id)
        for call_id, facts in waiting.items():
            if self._shown.get(call_id, {}).get("digest") != facts["digest"]:
                self._shown[call_id] = facts
                story = Story.begin(call_id, facts["session_id"])
                records = await self._journal.store.read(subject=call_id, kind="asked")
                story.asked(ApprovalRequest.from_facts(facts), records[-1].at / 1e6)
                self._view.show(story.item)

    def has(self, call_id: str) -> bool:
        """Whether this question is one of ours."""
        return call_id in self._shown

    def question(self, call_id: str, digest: str) -> ApprovalRequest:
        """The request behind a card, for a window that has seen it and may answer it."""
        facts = self._shown.get(call_id)
        if facts is None:
            raise not_waiting()
        if facts["digest"] != digest:
            raise changed()
        return ApprovalRequest.from_facts(facts)

    async def answer(
        self, call_id: str, digest: str, action: str, reason: str | None, edits: Mapping[str, str], by: Answerer
    ) -> None:
        """Answer one, having seen the request with this digest."""
        said = action_on(self.question(call_id, digest), action, reason, edits)
        facts = self._shown[call_id]
        try:
            first = await self._journal.answer(facts, said, by)
        except SessionError as problem:
            raise Refusal(400, "edit_refused", problem.fact, hint=problem.hint) from None
        await self.look()
        if not first:
            raise not_waiting()
