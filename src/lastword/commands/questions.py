"""What running tools ask, on the command line: listed beside the cards that wait, and answered from any terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from lastword.cli import DONE, FAILED
from lastword.commands.doubt import WHO
from lastword.commands.options import with_own_journal
from lastword.display import visible
from lastword.errors import LastWordError
from lastword.journal import Journal, StandingQuestion, answer_from_elsewhere, cut, standing_questions
from lastword.terminal import terminal_approver
from lastword.tools import Declined, QuestionAnswer

PLACE = "lastword answer"
_DONE = {"Given": "Answered.", "Declined": "Declined: you would rather not say.", "Closed": "Closed without an answer."}


def question_facts(standing: StandingQuestion) -> dict[str, Any]:
    """One as JSON, in a list with cards: `question` tells it from them."""
    question = msgspec.to_builtins(standing.question)
    return {"call_id": standing.question.call_id, "question": question, "asker": standing.asker}


def list_tool_questions(asking: Sequence[StandingQuestion]) -> None:
    """Name each, and say of those that nobody hears an answer to that they are dead."""
    for standing in asking:
        question = standing.question
        dead = ", of a program that has ended: no answer reaches it" if standing.is_dead else ""
        click.echo(f"{question.call_id}  {visible(cut(question.display_name))} wants to know something{dead}")
        click.echo(f"    {visible(question.tool)} asks: “{visible(cut(question.message))}”")


async def find_question(journal: Journal, call_id: str) -> StandingQuestion | None:
    """What the tool of this call asks, if it asks something."""
    found, damaged = await standing_questions(journal)
    if call_id in damaged:
        raise damaged[call_id]
    return next((standing for standing in found if standing.question.call_id == call_id), None)


def answer_question(call_id: str, said: str | None, store: str | None, *, plain: bool) -> int:
    """Answer what a running tool asks: with its form here, or by declining."""
    if said in ("allow", "second"):
        raise LastWordError(
            "this is a question of a running tool, and no approval: there is nothing to allow",
            place=PLACE,
            hint=f"{PLACE} {call_id} shows it; --deny says that you would rather not say",
        )

    async def reply(journal: Journal) -> tuple[QuestionAnswer, bool]:
        standing = await find_question(journal, call_id)
        if standing is None:
            raise LastWordError("this question waits no longer", place=call_id)
        answer = Declined() if said == "deny" else await _ask_here(standing, plain=plain)
        return answer, await answer_from_elsewhere(journal, standing, answer, WHO)

    answer, first = with_own_journal(store, PLACE, reply)
    if not first:
        click.echo("Somebody else answered it first. Nothing was changed.", err=True)
        return FAILED
    click.echo(_DONE[type(answer).__name__])
    return DONE


async def _ask_here(standing: StandingQuestion, *, plain: bool) -> QuestionAnswer:
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise LastWordError("there is no terminal to show the question on", place=PLACE, hint="say --deny to decline")
    return await approver.on_question(standing.question, elsewhere=True)
