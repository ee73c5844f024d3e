"""Where cards lie until somebody answers: here, in another window, or in another process. The first answer counts.

What does not live here: how a card is drawn (draw.py), what an answer is worth and what it starts (asking.py).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from lastword.call.eager import start
from lastword.call.events import Asked, Audience
from lastword.call.threads import THREADS
from lastword.consent import (
    Answerer,
    ApprovalRequest,
    Approver,
    Outcome,
    Seal,
    UserAction,
    answerer_of,
    outcome,
    person,
)
from lastword.errors import Detached, LastWordError, Tampered
from lastword.journal import Journal, answer_key
from lastword.store import Record

log = logging.getLogger("lastword")

Answer = tuple[UserAction, Answerer | Seal]
"""What was done, and by whom; an answer that stands in the journal already comes with its seal."""


CANCELLED = person("cancel")
"""Whoever cancels a call closes its card."""


class WaitingCard(msgspec.Struct):
    """A card that waits, and where its answer will arrive."""

    request: ApprovalRequest
    answer: asyncio.Future[Answer]


class Desk:
    """The cards of one session that wait for an answer."""

    def __init__(
        self,
        journal: Journal,
        audience: Audience,
        approver: Approver | None,
        *,
        timeout_seconds: float | None,
        watch: Callable[[], None] | None,
        watch_after_seconds: float,
    ) -> None:
        self.approver = approver
        self.pending: dict[str, WaitingCard] = {}
        self._journal = journal
        self._audience = audience
        self._timeout_seconds = timeout_seconds
        self._watch = watch
        self._watch_after_seconds = watch_after_seconds

    async def ask(self, request: ApprovalRequest) -> Answer | Outcome:
        """Put the card before a person and wait."""
        if self.approver is None:
            return _nobody(request, "there is nobody to ask")
        loop = asyncio.get_running_loop()
        # Whoever looks gets a copy: "frozen" is a word that later versions of Python let others talk their way around.
        shown = request.copy()
        waiting = WaitingCard(shown, loop.create_future())
        self.pending[request.call_id] = waiting
        if self._audience.listeners:
            self._audience.tell(Asked(shown))
        asking = watching = None
        try:
            asking = start(loop, self._ask_approver(self.approver, waiting))
            if self._watch is not None and not waiting.answer.done():
                watching = loop.call_later(self._watch_after_seconds, self._watch)
            if self._timeout_seconds is None:
                return await waiting.answer
            async with asyncio.timeout(self._timeout_seconds):
                return await waiting.answer
        except TimeoutError:
            assert self._timeout_seconds is not None
            words = outcome.expired(request.tool, self._timeout_seconds)
            return Outcome(kind="expired", message=words, call_id=request.call_id, tool=request.tool)
        except (Tampered, Detached):
            raise
        except LastWordError as problem:
            return _nobody(request, problem.fact)
        finally:
            del self.pending[request.call_id]
            if asking:
                asking.cancel()
            if watching:
                watching.cancel()

    async def _ask_approver(self, approver: Approver, waiting: WaitingCard) -> None:
        answer = waiting.answer
        try:
            # A plain function may wait for a key or for a colleague, and the loop belongs to everybody.
            ask = partial(approver, waiting.request)
            action: Any = ask() if _is_async(approver) else await THREADS.result_of(ask)
            if inspect.isawaitable(action):
                action = await action
            if not isinstance(action, UserAction):
                hint = "return request.allow() or request.deny(reason)"
                raise LastWordError(f"it answered with a {type(action).__name__} instead of a UserAction", hint=hint)
            by = answerer_of(approver)
        except BaseException as problem:
            # An approver that raises is nobody, whatever it raises. Its trouble is for the log, not for the model.
            if not answer.done():
                log.error("call %s: the approver failed", waiting.request.call_id, exc_info=problem)
                fact = f"the one who should have been asked failed ({type(problem).__name__})"
                answer.set_exception(LastWordError(fact))
            if isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            if not answer.done():
                answer.set_result((action, by))

    def answer(self, call_id: str, action: UserAction, by: Answerer | Seal) -> bool:
        """Answer a card that waits here. False when it is not waiting any more."""
        waiting = self.pending.get(call_id)
        if waiting is None or waiting.answer.done():
            return False
        if action.agrees and action.answers is None and waiting.request.problem is not None:
            return False  # The same call is asked again. A yes that names no card may be meant for the one before.
        waiting.answer.set_result((action, by))
        return True

    def close(self, call_id: str) -> bool:
        """Nobody wants the question answered any more."""
        waiting = self.pending.get(call_id)
        return waiting is not None and self.answer(call_id, waiting.request.close(), CANCELLED)

    def leave(self, call_id: str) -> bool:
        """Stop waiting for an answer. The question stays as it is. False when none waits."""
        waiting = self.pending.get(call_id)
        if waiting is None or waiting.answer.done():
            return False
        words, hint = "the question was left waiting", "ask for the call again with the same call_id"
        waiting.answer.set_exception(Detached(words, place=call_id, hint=hint))
        return True

    async def heard(self, record: Record) -> None:
        """An answer from elsewhere: if its card waits here, it is answered."""
        waiting = self.pending.get(record.subject)
        if waiting is None or record.once != answer_key(waiting.request.nonce):
            return
        try:
            action, sealed = await self._journal.answer_to(waiting.request)
        except Tampered as problem:
            if not waiting.answer.done():
                waiting.answer.set_exception(problem)
            return
        self.answer(record.subject, action, sealed)


def _is_async(approver: Approver) -> bool:
    """Whether calling it gives something to await. An object may have a `__call__` that does."""
    return inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(type(approver).__call__)


def _nobody(request: ApprovalRequest, why: str) -> Outcome:
    words = outcome.no_approver(request.tool, why)
    return Outcome(kind="no_approver", message=words, call_id=request.call_id, tool=request.tool)


async def wait_for_answer(request: ApprovalRequest) -> UserAction:
    """An approver that asks nobody itself: the card waits until somebody answers it elsewhere."""
    answered: asyncio.Future[UserAction] = asyncio.get_running_loop().create_future()
    return await answered
