"""Questions of running tools while they wait: one at a time for each call, answered here or elsewhere, once.

The clock that limits the call stands still meanwhile. A call that is cancelled, or over, has no question any more. What
does not live here: cards that ask whether a call may run (desk.py), and the form (tools/questions.py).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import msgspec

from lastword import ids
from lastword.call.desk import CANCELLED
from lastword.call.eager import start
from lastword.call.events import Audience, QuestionAnswered, QuestionAsked
from lastword.call.threads import THREADS
from lastword.consent import Answerer, answerer_of, sign
from lastword.errors import LastWordError, QuestionError
from lastword.journal import Journal, how, put_down, question_answer_key, read_given_answer, write_answer
from lastword.store import Record
from lastword.tools import Manifest, QuestionAnswer, ToolQuestion, questions

log = logging.getLogger("lastword")

OnQuestion = Callable[[ToolQuestion], Awaitable[QuestionAnswer] | QuestionAnswer]
"""Whoever answers what running tools ask: an async function, or a plain one, which then runs in a thread."""

CALL_CANCELLED = "the call was cancelled"
CALL_OVER = "the call is over"
# Nobody fills in more forms for one call. A loop that asks until it likes the answer would hold a person for ever.
MAX_QUESTIONS = 100

TOOL_LEFT = "the tool stopped waiting for the answer"


class OpenQuestion(msgspec.Struct):
    """A question that waits, and where its answer will arrive. An answer that stands in the journal has no author."""

    question: ToolQuestion
    answer: asyncio.Future[tuple[QuestionAnswer, Answerer | None]]


class QuestionDesk:
    """The questions of one session that wait for an answer."""

    def __init__(
        self,
        journal: Journal,
        audience: Audience,
        on_question: OnQuestion | None,
        *,
        timeout_seconds: float | None,
        watch: Callable[[], None] | None,
        watch_after_seconds: float,
        principal: Callable[[], str] = str,
    ) -> None:
        self.on_question = on_question
        self._principal = principal
        self.pending: dict[str, OpenQuestion] = {}
        self._journal = journal
        self._audience = audience
        self._timeout_seconds = timeout_seconds
        self._watch = watch
        self._watch_after_seconds = watch_after_seconds
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, question: ToolQuestion, why_closed: Callable[[], str | None]) -> QuestionAnswer:
        """Put the question before a person and wait."""
        if self.on_question is None:
            log.info("call %s: %s asked something, and nobody answers questions here", question.call_id, question.tool)
            return questions.Closed(questions.NOBODY)
        await put_down(self._journal, question, self._principal())
        loop = asyncio.get_running_loop()
        waiting = OpenQuestion(question, loop.create_future())
        self.pending[question.id] = waiting
        self._audience.tell(QuestionAsked(question))
        asking = watching = None
        answer: QuestionAnswer
        by: Answerer | None
        try:
            if why := why_closed():  # While it was written down.
                answer, by = questions.Closed(why), CANCELLED
            else:
                asking = start(loop, self._ask_handler(self.on_question, waiting))
                if self._watch is not None and not waiting.answer.done():
                    watching = loop.call_later(self._watch_after_seconds, self._watch)
                answer, by = await self._wait(waiting)
        except asyncio.CancelledError:
            self._left(question)
            raise
        finally:
            del self.pending[question.id]
            if asking:
                asking.cancel()
            if watching:
                watching.cancel()
        if by is None:
            answer, by = await read_given_answer(self._journal, question, self._principal())
        elif not await write_answer(self._journal, question, answer, sign(by, self._principal())):
            # Somebody was faster, in another window or another process. Theirs is the answer.
            answer, by = await read_given_answer(self._journal, question, self._principal())
        self._audience.tell(QuestionAnswered(question.call_id, question.id, how(answer), by))
        return answer

    async def _wait(self, waiting: OpenQuestion) -> tuple[QuestionAnswer, Answerer | None]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await waiting.answer
        except TimeoutError:
            return questions.Closed(f"nobody answered within {self._timeout_seconds:g} seconds"), CANCELLED

    async def _ask_handler(self, on_question: OnQuestion, waiting: OpenQuestion) -> None:
        try:
            ask = partial(on_question, waiting.question)
            said = ask() if _is_async(on_question) else await THREADS.result_of(ask)
            if inspect.isawaitable(said):
                said = await said
            answer, by = questions.check_answer(waiting.question, said), _author_of(on_question)
        except BaseException as problem:
            # Whoever fails to answer is nobody. Their trouble is for the log, not for the tool.
            if not waiting.answer.done():
                log.error("call %s: nobody could be asked", waiting.question.call_id, exc_info=problem)
                fact = f"the one who should have been asked failed ({type(problem).__name__})"
                waiting.answer.set_result((questions.Closed(fact), CANCELLED))
            if isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            if not waiting.answer.done():
                waiting.answer.set_result((answer, by))

    def answer(self, question_id: str, answer: QuestionAnswer, by: Answerer) -> bool:
        """Answer a question that waits here. False when it does not any more; an error when the answer does not fit."""
        waiting = self.pending.get(question_id)
        if waiting is None or waiting.answer.done():
            return False
        waiting.answer.set_result((questions.check_answer(waiting.question, answer), by))
        return True

    def close(self, call_id: str, why: str) -> None:
        """Nobody wants the questions of this call answered any more."""
        for waiting in list(self.pending.values()):
            if waiting.question.call_id == call_id and not waiting.answer.done():
                waiting.answer.set_result((questions.Closed(why), CANCELLED))

    async def heard(self, record: Record) -> None:
        """An answer from elsewhere: if its question waits here, it is answered."""
        for waiting in self.pending.values():
            if record.once == question_answer_key(waiting.question.id) and not waiting.answer.done():
                waiting.answer.set_result((questions.Closed(), None))

    def _left(self, question: ToolQuestion) -> None:
        """Whoever awaited the answer is gone. The question must not go on waiting for one."""

        async def close() -> None:
            try:
                await write_answer(
                    self._journal, question, questions.Closed(TOOL_LEFT), sign(CANCELLED, self._principal())
                )
            except LastWordError as problem:
                log.warning("call %s: its question could not be closed: %s", question.call_id, problem)

        task = asyncio.get_running_loop().create_task(close())
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        self._audience.tell(QuestionAnswered(question.call_id, question.id, "closed", CANCELLED))


class Clocked(Protocol):
    """Whatever runs with a limited time, and asks."""

    loop: asyncio.AbstractEventLoop

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class CallQuestions:
    """The questions of one running call."""

    def __init__(self, desk: QuestionDesk, session_id: str, call_id: str, manifest: Manifest, running: Clocked) -> None:
        self._desk = desk
        self._session_id = session_id
        self._call_id = call_id
        self._manifest = manifest
        self._running = running
        self.loop = running.loop
        self._turn = asyncio.Lock()
        self._closed: str | None = None
        self._asked = 0

    async def put(self, message: str, fields: tuple[questions.QuestionField, ...]) -> QuestionAnswer:
        """Ask, when whatever the call asked before is answered. Its time stands still."""
        async with self._turn:
            if self._closed is not None:
                return questions.Closed(self._closed)
            if self._asked == MAX_QUESTIONS:
                hint = "ask for several things in one form, and take a no for an answer"
                raise QuestionError(f"one call asks at most {MAX_QUESTIONS} questions", hint=hint)
            self._asked += 1
            question = questions.question_of(
                ids.new(), self._call_id, self._session_id, self._manifest, message, fields
            )
            self._running.pause()
            try:
                return await self._desk.ask(question, lambda: self._closed)
            finally:
                self._running.resume()

    def close(self, why: str) -> None:
        """The call is over, or about to be."""
        if self._closed is None:
            self._closed = why
            self._desk.close(self._call_id, why)


def _is_async(handler: OnQuestion) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def _author_of(handler: OnQuestion) -> Answerer:
    """Whoever answers through this handler: for a method, the object that it belongs to says who that is."""
    owner = getattr(handler, "__self__", None)
    return answerer_of(handler) if owner is None else answerer_of(owner)


async def wait_for_question(question: ToolQuestion) -> QuestionAnswer:
    """Asks nobody itself: the question waits until somebody answers it elsewhere."""
    answered: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
    return await answered


def handler_for(approver: Any, waits: Any) -> OnQuestion | None:
    """Who answers questions where only an approver was named: whoever it says, or whoever answers cards elsewhere."""
    if approver is waits:
        return wait_for_question
    handler: OnQuestion | None = getattr(approver, "on_question", None)
    return handler
