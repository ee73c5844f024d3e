"""What waits for a person: cards, questions of running tools, and how these are answered here or elsewhere, once.

And what a running tool reports: coalesced for the eye, bounded for the journal, in order. What does not live here: how
a card is drawn (draw.py), what an answer is worth and what it starts (approval_round.py), a question's form
(tools/questions.py).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from lastword import values
from lastword.call.events import Asked, QuestionAnswered, QuestionAsked, Reported
from lastword.call.threads import THREADS, start
from lastword.consent import Answerer, ApprovalRequest, Approver, Outcome, Phase, Seal, UserAction, outcome
from lastword.display import displayable
from lastword.errors import Detached, LastWordError, QuestionError, Tampered
from lastword.journal import OnceKey, ToolQuestions
from lastword.tools import QuestionAnswer, ToolQuestion, questions

if TYPE_CHECKING:
    from lastword.call.setting import Setting
    from lastword.store import Record
    from lastword.tools import Manifest

log = logging.getLogger("lastword")

T = TypeVar("T")

OnQuestion = Callable[[ToolQuestion], Awaitable[QuestionAnswer] | QuestionAnswer]
"""Whoever answers what running tools ask: an async function, or a plain one, which then runs in a thread."""

CALL_CANCELLED = "the call was cancelled"
CALL_OVER = "the call is over"
TOOL_LEFT = "the tool stopped waiting for the answer"
# Nobody fills in more forms for one call. A loop that asks until it likes the answer would hold a person for ever.
MAX_QUESTIONS = 100

# A line of progress that changes more often than this cannot be read.
INTERVAL_SECONDS = 0.05
# Enough to see afterwards how a call went; the screen sees all of them.
MAX_JOURNALED = 100


class WaitingCard(msgspec.Struct):
    """A card that waits, and where its answer will arrive. An answer that stands in the journal comes with its seal."""

    request: ApprovalRequest
    answer: asyncio.Future[tuple[UserAction, Answerer | Seal]]


class OpenQuestion(msgspec.Struct):
    """A question that waits, and where its answer will arrive. An answer that stands in the journal has no author."""

    question: ToolQuestion
    answer: asyncio.Future[tuple[QuestionAnswer, Answerer | None]]


class Desk:
    """The cards and questions of one session that wait for an answer."""

    def __init__(
        self, setting: Setting, approver: Approver | None, on_question: OnQuestion | None, watch: Callable[[], None]
    ) -> None:
        self._setting = setting
        self._approver = approver
        self._approver_is_async = _is_async(approver)
        self._on_question = on_question
        self._watch = watch
        """Starts listening for answers from other processes."""
        self.pending: dict[str, WaitingCard] = {}
        self.questions: dict[str, OpenQuestion] = {}
        self._errands: set[asyncio.Task[None]] = set()

    async def _answer(self, asking: Coroutine[Any, Any, None], answer: asyncio.Future[T]) -> T:
        """Ask somebody here, and after a moment in other processes, for as long as the question waits."""
        limits, loop = self._setting.limits, answer.get_loop()
        task = start(loop, asking)
        if answer.done():
            task.cancel()  # Whoever was asked may wait still, although somebody else was faster.
            return answer.result()
        watching = loop.call_later(limits.watch_after_seconds, self._watch)
        try:
            async with asyncio.timeout(limits.approval_timeout_seconds):
                return await answer
        finally:
            task.cancel()
            watching.cancel()

    # Cards.

    async def ask(self, request: ApprovalRequest) -> tuple[UserAction, Answerer | Seal] | Outcome:
        """Put the card before a person and wait."""
        if self._approver is None:
            return _nobody(request, "there is nobody to ask")
        # Whoever looks gets a copy: "frozen" is a word that later versions of Python let others talk their way around.
        shown = request.copy()
        waiting = WaitingCard(shown, asyncio.get_running_loop().create_future())
        self.pending[request.call_id] = waiting
        if self._setting.audience.listeners:
            self._setting.audience.tell(Asked(shown))
        try:
            return await self._answer(self._ask_approver(self._approver, waiting), waiting.answer)
        except TimeoutError:
            words = outcome.expired(request.tool, self._setting.limits.approval_timeout_seconds or 0)
            return Outcome(kind="expired", message=words, call_id=request.call_id, tool=request.tool)
        except (Tampered, Detached):
            raise
        except LastWordError as problem:
            return _nobody(request, problem.fact)
        finally:
            del self.pending[request.call_id]

    async def _ask_approver(self, approver: Approver, waiting: WaitingCard) -> None:
        answer = waiting.answer
        try:
            action = await _said(approver, waiting.request, self._approver_is_async)
            if not isinstance(action, UserAction):
                hint = "return request.allow() or request.deny(reason)"
                raise LastWordError(f"it answered with a {type(action).__name__} instead of a UserAction", hint=hint)
            by = Answerer.of(approver)
        except BaseException as problem:
            # An approver that raises is nobody, whatever it raises. Its trouble is for the log, not for the model.
            if not answer.done():
                log.error("call %s: the approver failed", waiting.request.call_id, exc_info=problem)
                answer.set_exception(LastWordError(_failed(problem)))
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

    def cancel(self, call_id: str) -> None:
        """Stop a running call, or close the card that waits for it. Between the two, its next step finds out."""
        live, waiting = self._setting.live.get(call_id), self.pending.get(call_id)
        if live is None:
            return
        if live.phase is Phase.RUNNING:
            assert live.execution is not None
            live.execution.cancel()
        elif waiting is None or not self.answer(call_id, waiting.request.close(), Answerer.CANCELLED):
            live.is_cancelled = True

    def leave(self, call_id: str) -> bool:
        """Stop waiting for an answer, and leave the card to whoever may still give one. False when none waits."""
        waiting = self.pending.get(call_id)
        if waiting is None or waiting.answer.done():
            return False
        words, hint = "the question was left waiting", "ask for the call again with the same call_id"
        waiting.answer.set_exception(Detached(words, place=call_id, hint=hint))
        self._setting.journal.note(self._setting.session_id, "detached", call_id, {})
        return True

    async def answered_elsewhere(self, record: Record) -> None:
        """An answer from elsewhere: if its card waits here, it is answered."""
        waiting = self.pending.get(record.subject)
        if waiting is None or record.once != OnceKey.answer(waiting.request.nonce):
            return
        try:
            action, sealed = await self._setting.journal.answer_to(waiting.request)
        except Tampered as problem:
            if not waiting.answer.done():
                waiting.answer.set_exception(problem)
            return
        self.answer(record.subject, action, sealed)

    # Questions of running tools. They approve nothing.

    async def put_question(self, question: ToolQuestion, why_closed: Callable[[], str | None]) -> QuestionAnswer:
        """Put a running tool's question before a person and wait."""
        setting, journal = self._setting, self._setting.journal
        if self._on_question is None:
            log.info("call %s: %s asked something, and nobody answers questions here", question.call_id, question.tool)
            return questions.Closed(questions.NOBODY)
        await ToolQuestions(journal).put_down(question, setting.principal)
        waiting = OpenQuestion(question, asyncio.get_running_loop().create_future())
        self.questions[question.id] = waiting
        setting.audience.tell(QuestionAsked(question))
        answer: QuestionAnswer
        by: Answerer | None
        try:
            if why := why_closed():  # While it was written down.
                answer, by = questions.Closed(why), Answerer.CANCELLED
            else:
                try:
                    answer, by = await self._answer(self._ask_handler(self._on_question, waiting), waiting.answer)
                except TimeoutError:
                    seconds = setting.limits.approval_timeout_seconds
                    answer, by = questions.Closed(f"nobody answered within {seconds:g} seconds"), Answerer.CANCELLED
        except asyncio.CancelledError:
            self._left(question)
            raise
        finally:
            del self.questions[question.id]
        if by is None or not await ToolQuestions(journal).write_answer(question, answer, by.signed(setting.principal)):
            # Somebody was faster, in another window or another process. Theirs is the answer.
            answer, by = await ToolQuestions(journal).given_answer(question, setting.principal)
        setting.audience.tell(QuestionAnswered(question.call_id, question.id, ToolQuestions.how(answer), by))
        return answer

    async def _ask_handler(self, on_question: OnQuestion, waiting: OpenQuestion) -> None:
        try:
            said = await _said(on_question, waiting.question, _is_async(on_question))
            # For a method, the object that it belongs to says who answers.
            owner = getattr(on_question, "__self__", None)
            by = Answerer.of(on_question if owner is None else owner)
            answer = questions.check_answer(waiting.question, said)
        except BaseException as problem:
            # Whoever fails to answer is nobody. Their trouble is for the log, not for the tool.
            if not waiting.answer.done():
                log.error("call %s: nobody could be asked", waiting.question.call_id, exc_info=problem)
                waiting.answer.set_result((questions.Closed(_failed(problem)), Answerer.CANCELLED))
            if isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise
        else:
            if not waiting.answer.done():
                waiting.answer.set_result((answer, by))

    def answer_question(self, question_id: str, answer: QuestionAnswer, by: Answerer) -> bool:
        """Answer a question that waits here. False when it does not any more; an error when the answer does not fit."""
        waiting = self.questions.get(question_id)
        if waiting is None or waiting.answer.done():
            return False
        waiting.answer.set_result((questions.check_answer(waiting.question, answer), by))
        return True

    def close_questions(self, call_id: str, why: str) -> None:
        """Nobody wants the questions of this call answered any more."""
        for waiting in list(self.questions.values()):
            if waiting.question.call_id == call_id and not waiting.answer.done():
                waiting.answer.set_result((questions.Closed(why), Answerer.CANCELLED))

    def question_answered_elsewhere(self, record: Record) -> None:
        """An answer from elsewhere: if its question waits here, it is answered."""
        for waiting in self.questions.values():
            if record.once == ToolQuestions.key(waiting.question.id) and not waiting.answer.done():
                waiting.answer.set_result((questions.Closed(), None))

    def _left(self, question: ToolQuestion) -> None:
        """Whoever awaited the answer is gone. The question must not go on waiting for one."""
        setting = self._setting

        async def close() -> None:
            try:
                by = Answerer.CANCELLED.signed(setting.principal)
                await ToolQuestions(setting.journal).write_answer(question, questions.Closed(TOOL_LEFT), by)
            except LastWordError as problem:
                log.warning("call %s: its question could not be closed: %s", question.call_id, problem)

        task = asyncio.get_running_loop().create_task(close())
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        setting.audience.tell(QuestionAnswered(question.call_id, question.id, "closed", Answerer.CANCELLED))


def _is_async(handler: Callable[[Any], Any] | None) -> bool:
    """Whether a handler is async, or an object whose `__call__` is."""
    if handler is None:
        return False
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


async def _said(handler: Callable[[Any], Any], asked: Any, is_async: bool) -> Any:
    """What whoever is asked says. A plain function may wait for a key, and the loop belongs to everybody."""
    if is_async:
        said = handler(asked)
    else:
        said = await THREADS.result_of(partial(handler, asked))
    return await said if type(said) is CoroutineType or inspect.isawaitable(said) else said


def _failed(problem: BaseException) -> str:
    return f"the one who should have been asked failed ({type(problem).__name__})"


def _nobody(request: ApprovalRequest, why: str) -> Outcome:
    words = outcome.no_approver(request.tool, why)
    return Outcome(kind="no_approver", message=words, call_id=request.call_id, tool=request.tool)


async def wait_for_answer(request: ApprovalRequest) -> UserAction:
    """An approver that asks nobody itself: the card waits until somebody answers it elsewhere."""
    answered: asyncio.Future[UserAction] = asyncio.get_running_loop().create_future()
    return await answered


async def wait_for_question(question: ToolQuestion) -> QuestionAnswer:
    """Asks nobody itself: the question waits until somebody answers it elsewhere."""
    answered: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
    return await answered


def handler_for(approver: Any) -> OnQuestion | None:
    """Who answers questions where only an approver was named: whoever it says, or whoever answers cards elsewhere."""
    return wait_for_question if approver is wait_for_answer else getattr(approver, "on_question", None)


class Clocked(Protocol):
    """Whatever runs with a limited time, and asks."""

    loop: asyncio.AbstractEventLoop

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class CallQuestions:
    """The questions of one running call: one at a time. The clock that limits the call stands still meanwhile."""

    def __init__(self, desk: Desk, session_id: str, call_id: str, manifest: Manifest, running: Clocked) -> None:
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
                values.new_id(), self._call_id, self._session_id, self._manifest, message, fields
            )
            self._running.pause()
            try:
                return await self._desk.put_question(question, lambda: self._closed)
            finally:
                self._running.resume()

    def close(self, why: str) -> None:
        """The call is over, or about to be."""
        if self._closed is None:
            self._closed = why
            self._desk.close_questions(self._call_id, why)


class Reports:
    """The reports of one call. `add` may be called from the tool's thread; everything else happens on the loop."""

    def __init__(self, setting: Setting, call_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self._setting = setting
        self._call_id = call_id
        self._loop = loop
        self._held: dict[str, Reported] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._journaled = 0
        self._closed = False

    def add(self, message: str, id: str | None, fraction: float | None) -> None:
        """Take a report from the tool, whichever thread it runs in."""
        message, id = displayable(message), None if id is None else displayable(str(id))
        report = Reported(self._call_id, message, id, None if fraction is None else min(1.0, max(0.0, fraction)))
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._take(report)
        else:
            self._loop.call_soon_threadsafe(self._take, report)

    def close(self) -> None:
        """Show what is still held back. What an abandoned thread reports later is dropped."""
        for id in list(self._held):
            self._release(id)
        for timer in self._timers.values():
            timer.cancel()
        self._closed = True

    def _take(self, report: Reported) -> None:
        if self._closed:
            return
        if report.id is None:
            # A line of its own comes after everything that was said before it.
            for id in list(self._held):
                self._release(id)
            self._show(report)
        elif report.id in self._timers:
            self._held[report.id] = report
        else:
            self._show(report)
            self._timers[report.id] = self._loop.call_later(INTERVAL_SECONDS, self._release, report.id)

    def _release(self, id: str) -> None:
        timer = self._timers.pop(id, None)
        if timer is not None:
            timer.cancel()
        if report := self._held.pop(id, None):
            self._show(report)

    def _show(self, report: Reported) -> None:
        if self._journaled < MAX_JOURNALED:
            self._journaled += 1
            data = {"message": report.message, "id": report.id, "fraction": report.fraction}
            self._setting.journal.note(self._setting.session_id, "reported", self._call_id, data)
        if self._setting.audience.listeners:
            self._setting.audience.tell(report)
