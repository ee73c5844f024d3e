"""Questions of other programs that share this memory: `lastword run --wait` in a terminal, another session.

They stand in the inbox beside the cards of the page's own session, and are answered through the journal, where the
program that asked finds the answer. Whether that program still lives is looked at again and again: it dies without a
word.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastword.card import called, entry_of
from lastword.consent import ApprovalRequest
from lastword.errors import SessionError, Tampered
from lastword.journal import StandingQuestion, ToolQuestions, data_of
from lastword.rules import Grants
from lastword.server import Refusal
from lastword.web.call_item import CallItemBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from lastword.card import views
    from lastword.consent import Answerer, UserAction
    from lastword.store import Record
    from lastword.tools import QuestionAnswer, ToolQuestion
    from lastword.web.conversation import ConversationView

# The memory changes with every call; looking once in this time is soon enough for another program's question.
LOOK_SECONDS = 0.5
# Nothing is written when a program dies. This soon its cards are told from those that somebody waits for.
ASKER_SECONDS = 2.0
# Calls that were allowed here and have not ended. Of one more, nobody is told what became of it.
MAX_FOLLOWED = 500
# Ends of calls in which, at the start, is looked for those that nobody answered.
MAX_LOOKED_BACK = 500
# What a row says of how a call ended. `lastword show` has all of it.
MAX_SAID = 300

# After these the call runs, and its end is waited for.
YES = ("allowed", "second", "edited", "standing")


class OtherSessions:
    """Watches the memory for questions of sessions other than the page's own."""

    is_own = False

    def __init__(self, view: ConversationView) -> None:
        self._view = view
        self._journal = view.session.journal
        self._shown: dict[str, dict[str, Any]] = {}
        self._asked_at: dict[str, float] = {}
        self._asking: dict[str, StandingQuestion] = {}
        self._damaged: Set[str] = frozenset()
        """The questions of which was told that they are not what was written."""
        self._answered: set[str] = set()
        """Digests of what was answered here. A look that had begun before must not bring it back."""
        self._has_looked_back = False
        self._running: set[str] = set()
        """Calls that were allowed and have not ended."""

    async def watch(self) -> None:
        """Look whenever something was written or somebody died, until cancelled."""
        told = ""
        while True:
            try:
                await self._look_back()
                head = await self._journal.store.head()
                await self.look()
                told = ""
                await self._until_something_happens(head.seq)
            except Exception as problem:
                # A broken record or a full disk is met again at every look, and is told once.
                if (what := f"{type(problem).__name__}: {problem}") != told:
                    told = what
                    self._view.shown.tell_trouble("Questions of other programs cannot be shown now", problem)
            await asyncio.sleep(LOOK_SECONDS)

    async def _until_something_happens(self, after: int) -> None:
        while True:
            try:
                async with asyncio.timeout(ASKER_SECONDS):
                    await self._journal.store.changed(after)
                return
            except TimeoutError:
                alive = {facts["process"] for facts in self._shown.values() if facts["asker"] == "waits"}
                if not all(self._journal.store.is_held(f"process:{process}") for process in alive):
                    return  # Somebody has died.

    async def look(self) -> None:
        """Show what waits, and hide what does not any more."""
        found, damaged = await self._journal.questions()
        standing, more = await ToolQuestions(self._journal).standing()
        damaged |= more
        for call_id in damaged.keys() - self._damaged:
            self._view.shown.tell_trouble("A question that waits cannot be shown", damaged[call_id])
        self._damaged = damaged.keys()
        self._answered &= {facts["digest"] for facts in found}
        theirs = [f for f in found if self._is_theirs(f) and f["digest"] not in self._answered]
        names = programs_called(theirs)
        before, waiting = self._shown, {f["call_id"]: f | {"program": names[_whose(f)]} for f in theirs}
        put = [
            await self._entry(facts)
            for call_id, facts in waiting.items()
            if _look_of(before.get(call_id)) != _look_of(facts)
        ]
        gone = [await self._gone(call_id) for call_id in before if call_id not in waiting]
        ended = [end for call_id in [*self._running] if (end := await self._gone(call_id)).end is not None]
        self._shown = waiting
        self._asked_at = {call_id: at for call_id, at in self._asked_at.items() if call_id in waiting}
        self._view.inbox.change(put, gone)
        for end in ended:
            self._running.discard(end.id)
            self._view.inbox.ended(end)
        self._show_questions(standing)

    async def _look_back(self) -> None:
        """Once: what nobody answered in time before this program was started."""
        if self._has_looked_back:
            return
        found: list[tuple[views.InboxEntry, float]] = []
        for record in await self._journal.store.read(kind="finished", last=MAX_LOOKED_BACK):
            with suppress(Tampered):  # It is told of where its session is looked at.
                if (data_of(record) or {}).get("kind") == "expired":
                    asked = await self._journal.store.read(subject=record.subject, kind="asked", last=1)
                    found += [(entry, record.at / 1e6) for each in asked if (entry := self._missed(each))]
        self._view.inbox.recall(found)
        self._has_looked_back = True

    def _missed(self, asked: Record) -> views.InboxEntry | None:
        if not (facts := data_of(asked)):
            return None
        is_own = facts["session_id"] == self._view.session.id
        program = called(facts.get("program") or "", facts.get("process") or "", facts["session_id"])
        return entry_of(
            ApprovalRequest.from_facts(facts),
            asked.at / 1e6,
            session=None if is_own else facts["session_id"],
            program="" if is_own else program,
        )

    def _is_theirs(self, facts: dict[str, Any]) -> bool:
        """Whether another session asks, or another program that has the same conversation open."""
        if facts["session_id"] != self._view.session.id:
            return True
        # What a dead program asked in our own conversation is asked again by ourselves.
        return facts["asker"] == "waits" and facts.get("process") not in (None, "", self._journal.process_name())

    async def _entry(self, facts: dict[str, Any]) -> views.InboxEntry:
        call_id = facts["call_id"]
        if call_id not in self._asked_at:
            records = await self._journal.store.read(subject=call_id, kind="asked", limit=1)
            self._asked_at[call_id] = records[0].at / 1e6 if records else 0.0
        return entry_of(
            ApprovalRequest.from_facts(facts),
            self._asked_at[call_id],
            session=facts["session_id"],
            program=facts["program"],
            asker=facts["asker"],
        )

    async def _gone(self, call_id: str) -> views.InboxGone:
        """What became of a card that waits no longer. What was answered before it was asked again is no reply."""
        call = CallItemBuilder.begin(call_id)
        kinds = ("asked", "answered", "started", "handed_over", "finished")
        for record in await self._journal.store.read(subject=call_id, kind=kinds):
            if record.kind == "asked":
                call = CallItemBuilder.begin(call_id)
            else:
                call.add(record)
        gone = call.gone(MAX_SAID)
        is_yes = gone.end is None and gone.reply is not None and gone.reply.how in YES
        if is_yes and len(self._running) < MAX_FOLLOWED:
            self._running.add(call_id)
        return gone

    def _show_questions(self, found: Iterable[StandingQuestion]) -> None:
        """Show what running tools of other sessions ask. What a dead program asked goes nowhere, and is not shown."""
        own = self._view.session.id
        asking = {s.question.call_id: s for s in found if s.question.session_id != own and not s.is_dead}
        for call_id in self._asking.keys() - asking.keys():
            del self._asking[call_id]
            self._view.shown.hide(call_id)
        for call_id, standing in asking.items():
            known = self._asking.get(call_id)
            if known is None or known.question.id != standing.question.id:
                self._asking[call_id] = standing
                call = CallItemBuilder.begin(call_id, standing.question.session_id)
                call.questioned(standing.question, elsewhere=True)
                self._view.show(call.item)

    # As of the cards in the conversation: see OwnCards.

    def has(self, call_id: str) -> bool:
        """Whether this call is of another session, and asks something."""
        return call_id in self._shown or call_id in self._asking

    def request(self, call_id: str) -> ApprovalRequest | None:
        facts = self._shown.get(call_id)
        return None if facts is None else ApprovalRequest.from_facts(facts)

    def call(self, call_id: str) -> views.CallItem | None:
        if (request := self.request(call_id)) is None:
            return None
        call = CallItemBuilder.begin(call_id, request.session_id)
        call.asked(request, self._asked_at.get(call_id, 0.0), me=self._journal.people.me)
        return call.item

    def form(self, call_id: str, question_id: str) -> ToolQuestion | None:
        standing = self._asking.get(call_id)
        return None if standing is None or standing.question.id != question_id else standing.question

    async def answer(self, request: ApprovalRequest, action: UserAction, by: Answerer) -> bool:
        """Windows hear of it with the next look."""
        call_id, digest = request.call_id, request.digest
        facts = self._shown.get(call_id)
        if facts is None:
            return False
        try:
            first = await Grants(self._journal).answer_elsewhere(facts, action, by)
        except SessionError as problem:
            code = "edit_refused" if action.grant is None else "not_granted"
            raise Refusal(400, code, problem.fact, hint=problem.hint) from None
        if not first:
            await self.look()
            return False
        self._answered.add(digest)
        self._shown = {other: facts for other, facts in self._shown.items() if other != call_id}
        self._view.inbox.drop(await self._gone(call_id))
        return True

    async def answer_form(self, question: ToolQuestion, answer: QuestionAnswer, by: Answerer) -> bool:
        first = await ToolQuestions(self._journal).answer_from_elsewhere(self._asking[question.call_id], answer, by)
        await self.look()
        return first

    def beside(self, request: ApprovalRequest) -> tuple[Path, list[ApprovalRequest]]:
        folder = Path(self._shown.get(request.call_id, {}).get("folder", ""))  # As it said; nobody knows an empty one.
        return folder, [ApprovalRequest.from_facts(facts) for facts in self._shown.values()]


def _look_of(facts: dict[str, Any] | None) -> tuple[str, str, str] | None:
    """What of a question a window would see change."""
    return None if facts is None else (facts["digest"], facts["asker"], facts["program"])


def _whose(facts: dict[str, Any]) -> tuple[str, str]:
    """The program that asks: what it calls itself, and what the memory knows it by."""
    return facts.get("program") or "", facts.get("process") or facts["session_id"]


def programs_called(found: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """What each program that asks is called here."""
    asking = {_whose(facts): facts["session_id"] for facts in found}
    # What a person reads counts: of two long names that differ where they are cut, each looks like the other.
    read = {(name, process): called(name, process, session) for (name, process), session in asking.items()}
    same = Counter(read.values())
    return {whose: called(*whose, session, same[read[whose]]) for whose, session in asking.items()}
