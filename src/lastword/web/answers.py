"""What a person did with a card, read from what their window sent; and the refusals of answers that come too late."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from lastword.card import Draft, is_typed, one_line, why_two, word_for
from lastword.consent import ApprovalRequest, UserAction
from lastword.display import visible
from lastword.errors import ArgumentsError, Problem
from lastword.server import Refusal
from lastword.tools import Closed, Declined, QuestionAnswer, ToolQuestion, answer_from_texts

# No window of ours lets a card be answered sooner: a page waits longer than this, a terminal a little longer.
UNREAD_SECONDS = 0.4
# Questions that are remembered to have been put. One that is forgotten was put long ago.
MAX_PUT = 1_000


class Put:
    """Since when each question can be read in a window."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def note(self, digest: str) -> None:
        """A window may show this question from now on."""
        self._since.setdefault(digest, time.monotonic())
        if len(self._since) > MAX_PUT:
            del self._since[next(iter(self._since))]

    def is_unread(self, digest: str) -> bool:
        """Whether nobody can have read it yet."""
        since = self._since.get(digest)
        return since is not None and time.monotonic() - since < UNREAD_SECONDS


def check_deliberate(
    request: ApprovalRequest, put: Put, word: str | None, *, folded: Collection[str], opened: Collection[str]
) -> None:
    """Refuse a yes that our own windows would not send: they would not have taken it for meant."""
    if put.is_unread(request.digest):
        raise too_soon()
    if (needed := word_for(request)) is None:
        return
    check_opened(folded, opened, f"{why_two(request)}, and ")
    if not is_typed(word, needed):
        raise Refusal(
            400,
            "not_confirmed",
            f"{why_two(request)}, so one press does not allow it",
            param="word",
            hint=f"type the word {needed} as well",
        )


def check_opened(folded: Collection[str], opened: Collection[str], why: str = "") -> None:
    """Refuse a yes to a card of which a part stayed folded, as far as its window says what it opened."""
    if closed := [part for part in folded if part not in opened]:
        raise Refusal(
            400,
            "not_opened",
            f"{why}a part of it was not opened: {visible(closed[0])}",
            param="opened",
            hint="show all of it before you allow it",
        )


def check_again(tool: str, word: str | None) -> None:
    """Refuse to run a call in doubt once more by one press, whatever its tool says: it may be the second time."""
    if not is_typed(word, tool.casefold()):
        raise Refusal(
            400,
            "not_confirmed",
            "nobody knows whether it happened, so one press does not run it again",
            param="word",
            hint=f"type the name of the tool, {visible(tool)}, as well",
        )


def action_on(request: ApprovalRequest, action: str, reason: str | None, edits: Mapping[str, str]) -> UserAction:
    """What the person did, bound to what they saw. Edits are texts, read in the type that the argument has."""
    if action == "deny":
        return request.deny(reason or None)
    if action == "deny_rest":
        return request.deny_rest(reason or None)
    if action == "close":
        return request.close()
    if action == "allow_second":
        if not request.manifest.secondary_acts:
            raise Refusal(400, "no_second", "the second button of this tool is a no", param="action")
        if edits:
            raise Refusal(400, "edit_refused", "the second button takes the call as it is", param="edits")
        return request.allow_second()
    draft = Draft(request)
    for name, text in edits.items():
        try:
            draft.change(name, text)
        except (Problem, ArgumentsError) as problem:
            raise Refusal(400, "edit_refused", visible(problem.fact), param=name, hint=problem.hint) from None
    return draft.allow()


def too_soon() -> Refusal:
    """Nobody reads as quickly as that."""
    return Refusal(
        409, "too_soon", "this question was put a moment ago, and nobody can have read it", hint="read it first"
    )


def answer_to(question: ToolQuestion, action: str, texts: Mapping[str, str]) -> QuestionAnswer:
    """What the person did with a question of a running tool, in the types of its fields."""
    if action != "give":
        return Declined() if action == "decline" else Closed()
    try:
        return answer_from_texts(question, texts)
    except ArgumentsError as problem:
        first = problem.problems[0]
        label = next((field.title for field in question.fields if field.name == first.place), "") or first.place or ""
        raise Refusal(
            400, "answer_refused", f"{one_line(label, 60)}: {visible(first.fact)}", param=first.place, hint=first.hint
        ) from None


def not_waiting() -> Refusal:
    """The card was answered elsewhere, or its call has ended."""
    return Refusal(409, "not_waiting", "this question is not waiting any more: it was answered, or its call has ended")


def changed() -> Refusal:
    """The same call asks something else by now."""
    return Refusal(409, "changed", "the question has changed since you saw it", hint="look at it again, then answer")
