"""What a person did with a card, read from what their window sent; and the refusals of answers that come too late."""

from __future__ import annotations

from collections.abc import Mapping

from lastword.card.draft import Draft
from lastword.consent.approval import ApprovalRequest, UserAction
from lastword.display import visible
from lastword.errors import ArgumentsError, Problem
from lastword.server.refusal import Refusal


def action_on(request: ApprovalRequest, action: str, reason: str | None, edits: Mapping[str, str]) -> UserAction:
    """What the person did, bound to what they saw. Edits are texts, read in the type that the argument has."""
    if action == "deny":
        return request.deny(reason or None)
    if action == "close":
        return request.close()
    draft = Draft(request)
    for name, text in edits.items():
        try:
            draft.change(name, text)
        except (Problem, ArgumentsError) as problem:
            raise Refusal(400, "edit_refused", visible(problem.fact), param=name, hint=problem.hint) from None
    return draft.allow()


def not_waiting() -> Refusal:
    """The card was answered elsewhere, or its call has ended."""
    return Refusal(409, "not_waiting", "this question is not waiting any more: it was answered, or its call has ended")


def changed() -> Refusal:
    """The same call asks something else by now."""
    return Refusal(409, "changed", "the question has changed since you saw it", hint="look at it again, then answer")
