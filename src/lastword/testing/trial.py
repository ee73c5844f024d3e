"""A session for the tests of a tool, in plain sync code, and approvers whose answers are decided beforehand.

A trial remembers for as long as the test lasts, answers its own cards as the test says, and can die in the middle of a
call: what a tool does when it is asked for again after a crash is part of what its author promises.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from lastword.call import Decision, Limits, OnQuestion
from lastword.call.events import Event, Reported
from lastword.consent import ALLOWED, ApprovalRequest, Outcome, Preset, UserAction
from lastword.journal import Journal
from lastword.session import Session
from lastword.tools import QuestionAnswer, Tool, ToolQuestion, ToolRegistry, questions

if TYPE_CHECKING:
    from lastword.editor import ScriptEditorProvider
    from lastword.store import Store

# A test that waits longer than this waits for something that does not come.
PATIENCE_SECONDS = 30.0

FixedAnswer = QuestionAnswer | dict[str, Any]
Answer = UserAction | Callable[[ApprovalRequest], UserAction | Awaitable[UserAction]]


class FixedApprover:
    """An approver with its answers decided beforehand; it keeps the requests it was shown.

    Give it one action for every card, a list with one for each, or a function from the request to an action. Asked more
    often than the list foresees, it fails, and a failing approver is nobody: nothing runs.
    """

    name = "fixed approver"

    def __init__(self, answer: Answer | Iterable[Answer] = ALLOWED) -> None:
        self.requests: list[ApprovalRequest] = []
        self._answers: Iterator[Answer]
        if isinstance(answer, UserAction) or callable(answer):
            self._answers = itertools.repeat(answer)
        else:
            self._answers = iter(list(answer))

    async def __call__(self, request: ApprovalRequest) -> UserAction:
        self.requests.append(request)
        answer = next(self._answers, None)
        if answer is None:
            raise AssertionError(f"asked {len(self.requests)} times, which is more often than there are answers")
        if isinstance(answer, UserAction):
            return answer
        action = answer(request)
        return await action if inspect.isawaitable(action) else action


class FixedAnswers:
    """Answers what running tools ask, as decided beforehand; it keeps the questions it was shown.

    `Session(registry, on_question=FixedAnswers({"city": "Rome"}))`. Give it one answer for every question, or a list
    with one for each: the values to fill in, `Declined()` or `Closed()`. Asked more often than the list foresees, it
    fails, and the tool hears that the question was closed.
    """

    name = "fixed answers"

    def __init__(self, answer: FixedAnswer | Iterable[FixedAnswer]) -> None:
        self.questions: list[ToolQuestion] = []
        self._answers: Iterator[FixedAnswer]
        if isinstance(answer, (dict, questions.Given, questions.Declined, questions.Closed)):
            self._answers = itertools.repeat(answer)
        else:
            self._answers = iter(list(answer))

    async def __call__(self, question: ToolQuestion) -> QuestionAnswer:
        self.questions.append(question)
        answer = next(self._answers, None)
        if answer is None:
            raise AssertionError(f"asked {len(self.questions)} times, which is more often than there are answers")
        return questions.Given(answer) if isinstance(answer, dict) else answer


class Trial:
    """Tools on trial. Give it functions, tools, folders of tools or one registry, and what is answered to each card.

    `on_question` answers what the tools ask while they run; without it they hear that nobody is there.
    """

    def __init__(
        self,
        *tools: Tool | Callable[..., Any] | ToolRegistry | str | Path,
        answer: Answer | Iterable[Answer] = ALLOWED,
        preset: Preset | None = None,
        state: dict[str, Any] | None = None,
        editor: ScriptEditorProvider | None = None,
        limits: Limits | None = None,
        deps: Any = None,
        user: str | None = None,
        on_question: OnQuestion | None = None,
    ) -> None:
        self.registry = _registry_of(tools)
        self.approver = FixedApprover(answer)
        self.reports: list[str] = []
        """What the tools reported, in order."""
        self._facts: dict[str, Any] = {
            "id": uuid4().hex,  # The same one in the next process.
            "approver": self.approver,
            "preset": preset,
            "state": state,
            "editor": editor,
            "limits": limits,
            "deps": deps,
            "user": user,
            "on_question": on_question,
        }
        journal = Journal()
        self._store = journal.store
        self._heard = threading.Condition()
        self.session = self._open(journal)

    @property
    def cards(self) -> list[ApprovalRequest]:
        """The cards that were shown, in order."""
        return self.approver.requests

    def call(self, tool: str, arguments: dict[str, Any] | None = None, *, call_id: str | None = None) -> Outcome:
        """Ask for one tool, and wait for its end."""
        return self.session.call_sync(tool, arguments, call_id=call_id)

    def start(self, tool: str, arguments: dict[str, Any] | None = None) -> Going:
        """Ask for one tool, and go on with the test while it runs."""
        return Going(self, tool, arguments)

    def crash(self, tool: str, arguments: dict[str, Any] | None = None, *, call_id: str = "crashed") -> None:
        """Run a call, and die after the tool's code and before its end is written. The trial goes on in a new process.

        Ask for the call again with the same id to see what becomes of it: in doubt, or run again if it is idempotent.
        """
        self.session.close_sync()
        dying = _Dying(self._store)
        session = self._open(dying)

        def call() -> None:
            with suppress(CancelledError):  # That is how it ends: nobody is told.
                session.call_sync(tool, arguments, call_id=call_id)

        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        came = dying.reached.wait(PATIENCE_SECONDS)
        session.close_sync()
        asyncio.run(dying.close())
        caller.join(PATIENCE_SECONDS)
        self.session = self._open(Journal(self._store))
        assert came, f"{tool} asks nobody, or never came to its end, so nothing is in doubt"

    def in_doubt(self) -> list[str]:
        """The calls of which nobody knows how they ended."""
        return [life.call_id for life in self.session.run_sync(self.session.in_doubt())]

    def resolve(self, call_id: str, decision: Decision) -> Outcome:
        """Decide about a call in doubt: `again`, `done` or `abandon`."""
        return self.session.run_sync(self.session.resolve(call_id, decision))

    def until_reported(self, words: str) -> None:
        """Wait until a tool has reported something with these words in it."""
        with self._heard:
            heard = self._heard.wait_for(lambda: any(words in said for said in self.reports), PATIENCE_SECONDS)
        assert heard, f"nothing with {words!r} was reported; what was: {self.reports}"

    def close(self) -> None:
        """End what still runs. Happens by itself with the `lastword_session` fixture, and with `with`."""
        self.session.close_sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, journal: Journal) -> Session:
        session = Session(self.registry, journal=journal, **self._facts)
        session.listen(self._hear)
        return session

    def _hear(self, event: Event) -> None:
        if isinstance(event, Reported):
            with self._heard:
                self.reports.append(event.message)
                self._heard.notify_all()


class Going:
    """A call that was started and is not waited for yet."""

    def __init__(self, trial: Trial, tool: str, arguments: dict[str, Any] | None) -> None:
        self.call_id = uuid4().hex
        self._trial = trial
        self._ended: list[Outcome | BaseException] = []

        def call() -> None:
            try:
                self._ended.append(trial.call(tool, arguments, call_id=self.call_id))
            except BaseException as problem:
                self._ended.append(problem)

        self._thread = threading.Thread(target=call, daemon=True)
        self._thread.start()

    def until_reported(self, words: str) -> Going:
        """Wait until it has reported something with these words in it."""
        self._trial.until_reported(words)
        return self

    def cancel(self) -> Going:
        """Stop it, as a person would."""
        self._trial.session.cancel(self.call_id)
        return self

    def outcome(self) -> Outcome:
        """How it ended."""
        self._thread.join(PATIENCE_SECONDS)
        assert self._ended, "it has not ended"
        [ended] = self._ended
        if isinstance(ended, BaseException):
            raise ended
        return ended


class _Dying(Journal):
    """The memory of a process that dies when the end of a call is to be written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.reached = threading.Event()

    def finished(self, session_id: str, outcome: Outcome, contents: tuple[bytes, ...] = ()) -> Awaitable[bool]:
        self.reached.set()
        return asyncio.get_running_loop().create_future()


def _registry_of(tools: Iterable[Tool | Callable[..., Any] | ToolRegistry | str | Path]) -> ToolRegistry:
    given = list(tools)
    if len(given) == 1 and isinstance(given[0], ToolRegistry):
        return given[0]
    registry = ToolRegistry()
    for tool in given:
        if isinstance(tool, (str, Path)):
            registry.load(tool)
        elif isinstance(tool, ToolRegistry):
            for each in tool.all():
                registry.add(each)
        else:
            registry.add(tool)
    return registry
