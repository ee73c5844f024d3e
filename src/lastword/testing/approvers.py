"""Approvers for tests: their answers are decided beforehand, and they keep what they were shown."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from lastword.consent import ALLOWED, ApprovalRequest, UserAction
from lastword.tools import QuestionAnswer, ToolQuestion, questions

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
